"""Constant calls: calls of a Tron contract that change nothing, and the node that answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from chalicelib.chains.answers import Garbled
from chalicelib.chains.tron.values import data, hex_address, row, words

_NOT_HERE = "not support"
"""In the words of a node that is not set up for constant calls: its answer has the code of a call that fails."""


class Node(Protocol):
    """One node, or several that stand in for each other: `chains.tron.http.TronHttp` has this form."""

    def call(self, method: str, params: Any = ()) -> Any: ...

    def batch(self, requests: Sequence[tuple[str, Any]]) -> list[Any]: ...


def constant_call(node: Node, owner: str, contract: str, call: bytes, family: str = "wallet") -> dict[str, Any]:
    """The answer to a call of `contract` that changes nothing, as if `owner` made it. `family` is which state it is asked of."""
    request = {
        "owner_address": hex_address(owner),
        "contract_address": hex_address(contract),
        "data": call.hex(),
        "visible": False,
    }
    return row(node.call(f"{family}/triggerconstantcontract", request), "a call's answer")


def call_failed(answer: Mapping[str, Any]) -> str | None:
    """The reason why a constant call fails on the chain, None where it does not. Raises Garbled where the node did not run it."""
    result = row(answer.get("result"), "a call's result")
    transaction = answer.get("transaction")
    rets = transaction.get("ret") if isinstance(transaction, dict) else None
    failed = isinstance(rets, list) and any(isinstance(ret, dict) and ret.get("ret") == "FAILED" for ret in rets)
    code = result.get("code")
    if _NOT_HERE in words(result.get("message")):
        raise Garbled("the node does not run calls")
    if failed or code in ("CONTRACT_VALIDATE_ERROR", "CONTRACT_EXE_ERROR") or (code is None and result.get("message")):
        return words(result.get("message")) or "the call fails"
    if result.get("result") is not True:
        raise Garbled(f"the node does not run the call: {words(result.get('message'))}")
    return None


def returned(answer: Mapping[str, Any]) -> bytes:
    """The result of a constant call."""
    found = answer.get("constant_result")
    if found is None:
        return b""
    if not isinstance(found, list) or len(found) > 1:
        raise Garbled("a call's result is no list of one")
    return data(found[0], "a call's result") if found else b""
