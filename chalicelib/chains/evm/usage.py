"""Use of addresses of an EVM network: their balances and nonces, many in one request.

Balances of a token come from a program that the node runs by `eth_call`, as those of the native coin do (balances.py): it asks the
contract of each address in turn and returns the answers. An address that sent anything, coins or tokens, has a nonce; one that was
only paid has a balance.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from chalicelib.chains.abi import address_bytes, balance_call
from chalicelib.chains.answers import Garbled
from chalicelib.chains.evm.balances import MOST_TOGETHER, many_balances, told_balances
from chalicelib.chains.evm.quantities import data, quantity
from chalicelib.chains.rpc import Request, RpcError, Transport
from chalicelib.domain.recovery.addresses import Usage

log = logging.getLogger(__name__)

_PROGRAM = bytes.fromhex(
    "604f" "38" "03" "80" "604f" "6040" "39"  # bytes of words behind this program, copied to memory 0x40: the token, then addresses
    "6040" "01" "6060"  # where they end; where the first address is
    "63" "70a08231" "60e0" "1b" "6000" "52"  # the call's selector, balanceOf(address), at 0
    "5b" "81" "81" "10" "15" "6046" "57"  # JUMPDEST at 0x1a, until DUP2 DUP2 LT ISZERO: PUSH1 end, JUMPI
    "80" "51" "6004" "52"  # the address behind the selector
    "6020" "81" "6024" "6000" "6040" "51" "5a" "fa"  # STATICCALL: the answer in the place of the address
    "3d" "601f" "10" "16" "603f" "57"  # it succeeded AND 31 < RETURNDATASIZE: PUSH1 next, JUMPI
    "6000" "80" "fd"  # else REVERT: nobody has no balance because a call failed
    "5b" "6020" "01" "601a" "56"  # next: JUMPDEST at 0x3f, one word on, JUMP
    "5b" "50" "6060" "90" "03" "6060" "f3"  # end: JUMPDEST at 0x46, RETURN everything behind the token
)  # fmt: skip


def token_balances(contract: str, addresses: Sequence[str]) -> str:
    """The data of the call, for up to MOST_TOGETHER addresses."""
    words = b"".join(address_bytes(each).rjust(32, b"\0") for each in (contract, *addresses))
    return "0x" + (_PROGRAM + words).hex()


def usage(rpc: Transport, addresses: Sequence[str], contracts: Collection[str]) -> list[Usage]:
    """The use of each address by the newest block. Raises RpcError, Garbled, Unavailable."""
    if not addresses:
        return []
    found: list[Usage] = []
    for start in range(0, len(addresses), MOST_TOGETHER):
        part = addresses[start : start + MOST_TOGETHER]
        sent = [quantity(told, "a nonce") for told in rpc.batch([("eth_getTransactionCount", [a, "latest"]) for a in part])]
        held = _native(rpc, part)
        for contract in contracts:
            held = [one + other for one, other in zip(held, _of_token(rpc, contract, part), strict=True)]
        found += ["holding" if units else "emptied" if nonce else "unused" for units, nonce in zip(held, sent, strict=True)]
    return found


def _native(rpc: Transport, addresses: Sequence[str]) -> list[int]:
    try:
        return told_balances(rpc.call("eth_call", [{"data": many_balances(addresses)}, "latest"]), len(addresses))
    except (RpcError, Garbled) as error:
        log.info("balances are asked for one by one: %s", error)
    told = rpc.batch([("eth_getBalance", [address, "latest"]) for address in addresses])
    return [quantity(balance, "a balance") for balance in told]


def _of_token(rpc: Transport, contract: str, addresses: Sequence[str]) -> list[int]:
    """Units of a token; none where there is no such contract on this chain."""
    if data(rpc.call("eth_getCode", [contract, "latest"]), "a contract's code") == b"":
        return [0] * len(addresses)
    try:
        call = {"data": token_balances(contract, addresses)}
        return told_balances(rpc.call("eth_call", [call, "latest"]), len(addresses))
    except (RpcError, Garbled) as error:
        log.info("balances of %s are asked for one by one: %s", contract, error)
    requests: list[Request] = [
        ("eth_call", [{"to": contract, "data": "0x" + balance_call(address).hex()}, "latest"]) for address in addresses
    ]
    return [_word(answer, contract) for answer in rpc.batch(requests)]


def _word(answer: object, contract: str) -> int:
    told = data(answer, "a balance")
    if len(told) != 32:
        raise Garbled(f"{contract} knows no balanceOf")
    return int.from_bytes(told)
