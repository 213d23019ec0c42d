"""Use of addresses on Tron: whether the account exists, and its balances of TRX and of tokens.

An account exists from its first TRX on and for ever; one that only tokens came to has a balance of theirs and no account. The
interface has no batches, and no call that asks for many: a few requests are under way at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from chalicelib.chains.abi import balance_call
from chalicelib.chains.answers import Garbled
from chalicelib.chains.tron.calls import call_failed, returned
from chalicelib.chains.tron.values import hex_address, row, whole
from chalicelib.domain.recovery.addresses import Usage


class Node(Protocol):
    def batch(self, requests: Sequence[tuple[str, Any]]) -> list[Any]: ...


def usage(node: Node, addresses: Sequence[str], contracts: Collection[str]) -> list[Usage]:
    """The use of each address by the newest block. Raises RpcError, Garbled, Unavailable."""
    accounts = node.batch([("wallet/getaccount", {"address": hex_address(each), "visible": False}) for each in addresses])
    exists = [bool(row(account, "an account")) for account in accounts]
    held = [whole(account.get("balance"), "a balance") for account in accounts]
    for contract in contracts:
        code = node.batch([("wallet/getcontract", {"value": hex_address(contract), "visible": False})])[0]
        if not row(code, "a contract"):
            continue  # not on this chain
        calls = [("wallet/triggerconstantcontract", _asked(address, contract)) for address in addresses]
        for at, answer in enumerate(node.batch(calls)):
            held[at] += _units(row(answer, "a call's answer"), contract)
    return ["holding" if units else "emptied" if there else "unused" for units, there in zip(held, exists, strict=True)]


def _asked(holder: str, contract: str) -> dict[str, Any]:
    owner = hex_address(holder)
    call = balance_call("0x" + owner[2:]).hex()
    return {"owner_address": owner, "contract_address": hex_address(contract), "data": call, "visible": False}


def _units(answer: dict[str, Any], contract: str) -> int:
    found = returned(answer)
    if call_failed(answer) is not None or len(found) != 32:
        raise Garbled(f"{contract} knows no balanceOf")
    return int.from_bytes(found)
