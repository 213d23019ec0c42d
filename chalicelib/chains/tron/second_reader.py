"""The second reader of Tron (money rule 15): of the order alone it makes the id that the key signs, and it reads the signed bytes.

tronpy builds and decodes transfers and contract calls; stakes and loans, which it does not know, Google's protobuf by a schema
of its own (`schema`). This shares no code with `transactions`, `protobuf` and `values`, which make our bytes. The functions here
import the libraries, when something is signed, and nothing else does. `TronPayer.prepare` does not compare encoders: all that it
builds comes here before a key signs it.

No order says to which block a transaction refers, when it was made, when it ends, and what a call may burn. The library reads these
terms from our unsigned bytes, within bounds: a day of validity, the nonce within the time, and a `fee_limit` of at most the order's
fee and `fees.MOST_FEE_LIMIT`. The signed bytes must have the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from chalicelib.chains.tron.fees import MOST_FEE_LIMIT
from chalicelib.chains.tron.schema import published
from chalicelib.usecases.ports.second_reader import Built, Order, OrderKind

Facts = dict[str, object]
"""Fields by the names that Tron publishes, with `raw.` and `contract.` before those of raw_data and of its contract: a memo and
call data are both `data`. Addresses in base58check, other bytes in hex, amounts in sun or the token's units."""

_STAKES: dict[OrderKind, str] = {
    "stake": "FreezeBalanceV2Contract",
    "delegation": "DelegateResourceContract",
    "undelegation": "UnDelegateResourceContract",
}
_TRANSFER = {
    "type": "Function",
    "name": "transfer",
    "stateMutability": "Nonpayable",
    "inputs": [{"name": "to", "type": "address"}, {"name": "value", "type": "uint256"}],
    "outputs": [{"type": "bool"}],
}
_TERMS = ("raw.ref_block_bytes", "raw.ref_block_hash", "raw.expiration", "raw.timestamp", "raw.fee_limit")
_LONGEST_LIFE_MS = 24 * 3600_000
"""java-tron, Constant.MAXIMUM_TIME_UNTIL_EXPIRATION: a node takes nothing that ends later."""


class TronSecondReader:
    """Implements `usecases.ports.second_reader.SecondReader` for every kind of order that is signed for Tron."""

    def built(self, order: Order) -> Built:
        """The order's transaction with the terms of its unsigned bytes. Raises ValueError where the library builds or reads none,
        or the terms are out of bounds."""
        with _only_value_errors():
            kind, fields = _contract(order), _fields(order)
            terms = _terms(order, _raw_facts(kind, bytes.fromhex(order.unsigned)))
            txid = _txid(order, terms, fields)
            named = {"contract.type": kind, "contract.type_url": f"type.googleapis.com/protocol.{kind}", "txid": txid.hex()}
            return Built((txid,), named | terms | _spelled(fields | {"signer": fields["owner_address"]}))

    def read(self, order: Order, raw: str) -> Facts:
        """Every field of the signed bytes `raw`, their `txid`, and `signer`, whose key signed them. An unknown field and another
        encoding are facts as well. Raises ValueError unless the library reads a transaction with one contract and one signature."""
        from tronpy.keys import Signature

        with _only_value_errors():
            signed = bytes.fromhex(raw)
            kind = _contract(order)
            whole = _schema(kind)["Transaction"].FromString(signed)
            raw_data = whole.raw_data.SerializeToString()
            if len(whole.signature) != 1 or whole.signature[0][64:] not in (b"\0", b"\1"):
                raise ValueError("there is not one signature, in the form in which we write it")
            txid = sha256(raw_data).digest()
            key = Signature(whole.signature[0]).recover_public_key_from_msg_hash(txid)
            signer = {"txid": txid.hex(), "signer": key.to_base58check_address()}
            return _strange(whole, signed) | _raw_facts(kind, raw_data) | signer


def built_by_tronpy(order: Order, terms: Facts) -> Any:
    """tronpy's transaction of a transfer or a call with these terms; `txid` is by its encoder."""
    builder = _tronpy_builder(order, terms["raw.fee_limit"])
    # Its own times are the machine's; ours follow the chain's.
    builder._raw_data |= {"timestamp": terms["raw.timestamp"], "expiration": terms["raw.expiration"]}
    # Of the block's id only the two parts that a transaction refers to are looked at.
    block_id = f"{'0' * 12}{terms['raw.ref_block_bytes']}{terms['raw.ref_block_hash']}{'0' * 32}"
    return builder.build(offline=True, ref_block_id=block_id)


def _contract(order: Order) -> str:
    """The kind of contract that carries out the order."""
    if order.kind == "payment":
        return "TransferContract" if order.contract is None else "TriggerSmartContract"
    return _STAKES[order.kind]


def _schema(kind: str) -> dict[str, Any]:
    if kind in _STAKES.values():
        return published()
    from tronpy.proto import tron_pb2

    return {"Transaction": tron_pb2.Transaction, "raw": tron_pb2.Transaction.raw, kind: getattr(tron_pb2, kind)}


def _raw_facts(kind: str, raw: bytes) -> Facts:
    """Every field of raw_data, of its one contract, and of that contract's contents, which are read as of this kind."""
    schema = _schema(kind)
    message = schema["raw"].FromString(raw)
    if len(message.contract) != 1:
        raise ValueError(f"the transaction has {len(message.contract)} contracts")
    (contract,) = message.contract
    packed = contract.parameter
    inner = schema[kind].FromString(packed.value)
    facts: Facts = {"raw.fee_limit": 0} | _set(message, "raw.", "contract") | _set(contract, "contract.", "parameter") | _set(inner)
    facts |= {"contract.type": contract.ContractType.Name(contract.type), "contract.type_url": packed.type_url}
    resources = inner.DESCRIPTOR.fields_by_name.get("resource")
    if resources is not None:  # the number of BANDWIDTH is 0, which is left out
        facts["resource"] = resources.enum_type.values_by_number[inner.resource].name
    strange = _strange(message, raw) | _strange(contract) | _strange(packed) | _strange(inner, packed.value)
    return _spelled(facts) | strange


def _set(message: Any, prefix: str = "", apart: str = "") -> Facts:
    """The fields that are there and not their default, without the one called `apart`, which is read by itself."""
    return {prefix + field.name: value for field, value in message.ListFields() if field.name != apart}


def _strange(message: Any, encoded: bytes | None = None) -> Facts:
    """Unknown fields of a message, and any encoding of it but the library's: a field that is there twice, or for nothing."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    name = message.DESCRIPTOR.name
    found: Facts = {f"{name}, unknown field {each.field_number}": True for each in UnknownFieldSet(message)}
    if encoded is not None and message.SerializeToString(deterministic=True) != encoded:
        found[f"{name}, encoding"] = "not canonical"
    return found


def _spelled(facts: Facts) -> Facts:
    """With bytes in hex; addresses in base58check where they are Tron's 21 bytes, since the library takes others as well."""
    from tronpy.keys import to_base58check_address

    def spelled(name: str, value: object) -> object:
        if not isinstance(value, bytes):
            return value
        address = name.endswith(("_address", "signer")) and len(value) == 21 and value[0] == 0x41
        return to_base58check_address(value) if address else value.hex()

    return {name: spelled(name, value) for name, value in facts.items()}


def _terms(order: Order, found: Facts) -> Facts:
    """The fields of our bytes that the order leaves open. Raises ValueError unless they are within bounds."""
    terms = {name: found.get(name) for name in _TERMS}
    number, half, ends, made, limit = terms.values()
    if not isinstance(number, str) or not isinstance(half, str) or len(number) != 4 or len(half) != 16:
        raise ValueError("the transaction does not refer to a block")
    if not isinstance(ends, int) or not isinstance(made, int) or not 0 < ends - made <= _LONGEST_LIFE_MS:
        raise ValueError("the transaction does not end within a day")
    if order.nonce is not None and made % 1000 != order.nonce % 1000:
        raise ValueError("the transaction's time has another nonce than the order")
    least, most = (0, 0) if order.contract is None else (1, min(order.fee, MOST_FEE_LIMIT))
    if not isinstance(limit, int) or not least <= limit <= most:
        raise ValueError(f"the transaction may burn {limit} sun for energy, and its order {most}")
    return terms


def _fields(order: Order) -> Facts:
    """The contents of the order's contract. Raises ValueError for addresses that are not Tron's, and amounts that no field has."""
    from tronpy.keys import is_base58check_address, to_raw_address

    named = (order.sender, order.recipient, order.contract)
    if not all(is_base58check_address(each) for each in named if each is not None):
        raise ValueError("an address is not Tron's")
    if not 0 < order.amount < (2**63 if order.contract is None else 2**256):
        raise ValueError("the order moves nothing, or more than there can be")
    owner = to_raw_address(order.sender)
    if order.kind == "payment":
        value = _tronpy_builder(order, 0)._raw_data["contract"][0]["parameter"]["value"]
        names = ("owner_address", "to_address", "contract_address", "data")
        return {name: bytes.fromhex(value[name]) for name in names if name in value} | (
            {"amount": order.amount} if order.contract is None else {}
        )
    if order.resource is None:
        raise ValueError("the order names no resource")
    if order.kind == "stake":
        return {"owner_address": owner, "frozen_balance": order.amount, "resource": order.resource}
    receiver = to_raw_address(order.recipient)
    return {"owner_address": owner, "resource": order.resource, "balance": order.amount, "receiver_address": receiver}


def _txid(order: Order, terms: Facts, fields: Facts) -> bytes:
    """The id of the order's transaction with these terms, as the library computes it."""
    if order.kind == "payment":
        return bytes.fromhex(built_by_tronpy(order, terms).txid)
    number, half, ends, made, _ = terms.values()
    kind, schema = _contract(order), published()
    raw = schema["raw"](
        ref_block_bytes=bytes.fromhex(str(number)), ref_block_hash=bytes.fromhex(str(half)), expiration=ends, timestamp=made
    )
    raw.contract.add(type=kind).parameter.Pack(schema[kind](**fields))
    return sha256(raw.SerializeToString(deterministic=True)).digest()


def _tronpy_builder(order: Order, fee_limit: object) -> Any:
    from tronpy.contract import Contract

    client = _Offline(fee_limit)
    if order.contract is None:
        return client.trx.transfer(order.sender, order.recipient, order.amount)
    token = Contract(order.contract, abi=[_TRANSFER], owner_address=order.sender, client=client)
    return token.functions.transfer(order.recipient, order.amount)


class _Offline:
    """The parts of a client that tronpy's builders use. It asks no node; tronpy's own client would bring keys of strangers."""

    def __init__(self, fee_limit: object) -> None:
        from tronpy.tron import Trx

        self.conf = {"fee_limit": fee_limit}
        self.trx = Trx(self)


@contextmanager
def _only_value_errors() -> Iterator[None]:
    """What a library can not build or read raises ValueError, by whatever name the library calls it."""
    from google.protobuf.message import Error

    try:
        yield
    except (Error, LookupError, TypeError) as error:
        raise ValueError(f"the library reads no such transaction: {error}") from error
