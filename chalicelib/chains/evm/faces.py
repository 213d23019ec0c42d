"""Detection of tokens that mirror the network's native coin: token balances against native ones, of active addresses.

All at one block, so that nothing moves in between. The addresses: those that the caller knows to hold a balance, and the
producers, senders and recipients of the newest blocks, since a sender has native coins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chalicelib.chains.abi import balance_call
from chalicelib.chains.answers import Garbled
from chalicelib.chains.evm.logs import hash_in
from chalicelib.chains.evm.quantities import address, data, quantity
from chalicelib.chains.evm.refusals import would_fail
from chalicelib.chains.rpc import Request, RpcError, Transport
from chalicelib.domain.catalogue.native_faces import follows_native
from chalicelib.usecases.ports.tokens import NoToken

WANTED = 24
"""Addresses that are asked about."""
_BACK = (1, 7, 56)
"""How many blocks are read for them, at first and then more: a quiet chain has little in each."""


def is_face(rpc: Transport, contract: str, decimals: int, native_decimals: int, holders: Sequence[str]) -> bool | None:
    """See `usecases.ports.tokens.TokenReader.is_native_face`. Raises NoToken, RpcError, Garbled, Unavailable."""
    newest = rpc.call("eth_getBlockByNumber", ["latest", True])
    if not isinstance(newest, dict):
        raise Garbled("the node has no newest block")
    number = quantity(newest.get("number"), "a block's number")
    asked = _asked(rpc, newest, number, [each.lower() for each in holders], contract.lower())
    tag = hex(number)
    requests: list[Request] = [("eth_getBalance", [each, tag]) for each in asked]
    natives = [quantity(told, "a balance") for told in rpc.batch(requests)]
    told = _token_balances(rpc, contract, asked, tag)
    if hash_in(rpc.call("eth_getBlockByNumber", [tag, False]), number) != newest.get("hash"):
        raise Garbled("a block fell out of the chain while balances were read")
    pairs = [(native, token) for native, token in zip(natives, told, strict=True) if token is not None]
    if asked and not pairs:
        raise NoToken("it does not tell balances")
    return follows_native(pairs, native_decimals, decimals)


def _asked(rpc: Transport, newest: dict[str, Any], number: int, holders: Sequence[str], contract: str) -> list[str]:
    blocks, read = [newest], 1
    for more in _BACK[1:]:
        found = _in_blocks(blocks, holders, contract)
        first = max(0, number - read - more + 1)
        if len(found) >= WANTED or first > number - read:
            return found
        blocks += rpc.batch([("eth_getBlockByNumber", [hex(n), True]) for n in range(first, number - read + 1)])
        read += more
    return _in_blocks(blocks, holders, contract)


def _in_blocks(blocks: Sequence[Any], holders: Sequence[str], contract: str) -> list[str]:
    """Up to WANTED addresses: those that are known, then makers and senders, then recipients; without the contract itself."""
    makers: list[Any] = []
    recipients: list[Any] = []
    for block in blocks:
        if not isinstance(block, dict) or not isinstance(block.get("transactions"), list):
            raise Garbled("a block has no list of transactions")
        makers += [block.get("miner"), *(row.get("from") for row in block["transactions"] if isinstance(row, dict))]
        recipients += [row.get("to") for row in block["transactions"] if isinstance(row, dict)]
    named = [address(each, "an address") for each in (*makers, *recipients) if each is not None]
    return [each for each in dict.fromkeys((*holders, *named)) if each != contract][:WANTED]


def _token_balances(rpc: Transport, contract: str, addresses: Sequence[str], tag: str) -> list[int | None]:
    """What the contract says that each has; None where it does not say it of that one (some refuse the zero address)."""
    requests: list[Request] = [("eth_call", [{"to": contract, "data": "0x" + balance_call(each).hex()}, tag]) for each in addresses]
    try:
        return [_units(told) for told in rpc.batch(requests)]
    except RpcError as error:
        if not would_fail(error):
            raise
    found: list[int | None] = []
    for method, parameters in requests:
        try:
            found.append(_units(rpc.call(method, parameters)))
        except RpcError as error:
            if not would_fail(error):
                raise
            found.append(None)
    return found


def _units(told: Any) -> int | None:
    answer = data(told, "a balance")
    return int.from_bytes(answer) if len(answer) == 32 else None
