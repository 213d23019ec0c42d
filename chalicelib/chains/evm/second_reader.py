"""EVM orders and signed bytes, read by eth-account and web3 (money rule 15). Imported by the functions that sign alone, at their
first signature: eth-account takes half a second of CPU, web3, which tokens' calls need, a quarter on top.

Nothing of ours is used that builds or reads transactions: encoding, digest, call data and signer are theirs. Both sides rest on the
same primitives of others: the rlp package, pycryptodome's Keccak and libsecp256k1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from chalicelib.usecases.ports.second_reader import Built, Order, Reading

_TOKEN = {
    "type": "function",
    "name": "transfer",
    "stateMutability": "nonpayable",
    "inputs": [{"name": "to", "type": "address"}, {"name": "value", "type": "uint256"}],
    "outputs": [{"type": "bool"}],
}
"""EIP-20's transfer(address,uint256), as the ABI writes it."""


class EvmSecondReader:
    """Implements `usecases.ports.second_reader.SecondReader` for one EVM network.

    eth-account knows no network, so `chain_id` is that of our own list. An order states neither type, gas nor fee rates. `terms`
    reads them from our bytes by our own decoding, under the names of JSON-RPC: `gas`, and `gasPrice` or `maxFeePerGas` with
    `maxPriorityFeePerGas`, in wei. They are plain data here. Gas times rate has to be the order's fee, which the caller has
    bounded, and a term that our decoding got wrong makes another digest.
    """

    def __init__(self, chain_id: int, terms: Callable[[str], Mapping[str, int]]) -> None:
        self._chain_id, self._terms = chain_id, terms

    def built(self, order: Order) -> Built:
        """The order's transaction as eth-account builds it. Raises ValueError for anything but a payment with a nonce, for fields
        that eth-account or web3 refuse, and where gas and fee rate do not come to the order's fee."""
        if order.kind != "payment" or order.nonce is None or order.amount <= 0:
            raise ValueError("an EVM order is a payment of something, and has a nonce")
        terms = dict(self._terms(order.unsigned))
        if _fee(terms) != order.fee:
            raise ValueError(f"gas and fee rate come to {_fee(terms)} wei, and {order.fee} were allowed")
        with _library():
            from eth_account._utils.legacy_transactions import serializable_unsigned_transaction_from_dict
            from eth_utils.address import to_checksum_address

            recipient = to_checksum_address(order.recipient)
            fields: dict[str, Any] = {"chainId": self._chain_id, "nonce": order.nonce, **terms}
            if order.contract is None:
                fields |= {"to": recipient, "value": order.amount, "data": b""}
            else:
                call = _call(recipient, order.amount)
                fields |= {"to": to_checksum_address(order.contract), "value": 0, "data": call}
            if "gasPrice" not in terms:
                fields |= {"type": 2, "accessList": ()}
            digest = bytes(serializable_unsigned_transaction_from_dict(fields).hash())
            signer = to_checksum_address(order.sender).lower()
        paid = {"recipient": recipient.lower(), "amount": order.amount, "fee": order.fee, "signer": signer}
        return Built((digest,), {"type": 0, **_plain(fields), **paid})

    def read(self, order: Order, raw: str) -> Reading:
        """The fields of signed bytes of any type that eth-account knows. Raises ValueError where they are not in the one encoding
        that it gives them itself, for a call of anything but `transfer`, and for a signature in the upper half (EIP-2)."""
        with _library():
            from eth_account import Account
            from eth_utils.crypto import keccak
            from hexbytes import HexBytes

            signed = HexBytes(raw)
            fields, s = _decoded(signed)
            signer = Account.recover_transaction(signed).lower()
            txid = "0x" + keccak(bytes(signed)).hex()
            data = bytes(fields["data"])
            recipient, amount = _paid_by(data) if data else ("0x" + bytes(fields["to"]).hex(), fields["value"])
            from eth_keys.constants import SECPK1_N
        if not 0 < s <= SECPK1_N // 2:
            raise ValueError("the signature's s is in the upper half")
        paid = {"recipient": recipient, "amount": amount, "fee": _fee(fields), "signer": signer, "txid": txid}
        return {**_plain(fields), **paid}


def _decoded(signed: Any) -> tuple[dict[str, Any], int]:
    """The fields of signed bytes without their signature, and its s."""
    import rlp
    from eth_account._utils.legacy_transactions import Transaction
    from eth_account._utils.signing import extract_chain_id
    from eth_account.typed_transactions.typed_transaction import TypedTransaction

    if signed[0] <= 0x7F:  # EIP-2718: a type
        typed = TypedTransaction.from_bytes(signed)
        fields, again = dict(typed.as_dict()), typed.encode()
    else:
        legacy = Transaction.from_bytes(bytes(signed))
        fields, again = dict(legacy.as_dict()), rlp.encode(legacy)
        fields |= {"type": 0, "chainId": extract_chain_id(fields["v"])[0]}
    if bytes(again) != bytes(signed):
        raise ValueError("the bytes are not those that it would write itself")
    signature = {name: fields.pop(name) for name in "vrs"}
    return fields, int(signature["s"])


@cache
def _token() -> Any:
    from web3 import Web3
    from web3.providers import BaseProvider

    return Web3(BaseProvider()).eth.contract(abi=[_TOKEN])  # this provider reaches no node


def _call(recipient: str, amount: int) -> bytes:
    return bytes.fromhex(_token().encode_abi("transfer", args=[recipient, amount])[2:])


def _paid_by(data: bytes) -> tuple[str, int]:
    """Recipient and amount of call data. web3 takes bytes behind the arguments, so it is encoded again and compared."""
    _, arguments = _token().decode_function_input(data)
    if _call(arguments["to"], arguments["value"]) != data:
        raise ValueError("the call data are not those that it would write itself")
    return arguments["to"].lower(), arguments["value"]


def _fee(fields: Mapping[str, Any]) -> int:
    """The most that they can cost, in wei."""
    rate = fields["gasPrice"] if "gasPrice" in fields else fields["maxFeePerGas"]
    return int(fields["gas"] * rate)


def _plain(fields: Mapping[str, Any]) -> dict[str, object]:
    """As they can be compared and logged: bytes and addresses in lower-case hex."""
    return {name: _hex(value) for name, value in fields.items()}


def _hex(value: Any) -> object:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return value.lower() if isinstance(value, str) else value


@contextmanager
def _library() -> Iterator[None]:
    """Every fault that a library finds is a ValueError: theirs have no common kind."""
    try:
        yield
    except Exception as error:
        raise ValueError(f"eth-account: {type(error).__name__}: {error}") from error
