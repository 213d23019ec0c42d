"""Receipts, a few at a time: one may have as many logs as a block has gas for, whatever its transaction was worth."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from chalicelib.chains.abi import TRANSFER_TOPIC
from chalicelib.chains.answers import Garbled
from chalicelib.chains.rows import Thin
from chalicelib.chains.rpc import Request, TooMuch, Transport, rows_of

AT_ONCE = 50
"""Receipts asked for in one batch."""


def receipts_of(rpc: Transport, txids: Sequence[str], also: Collection[str] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Each transaction's id and receipt; its body, too, of those in `also`, else None. None where the node has none.

    Where some are too large together, each is read by itself, and its logs without what nobody needs of them: of those that are no
    transfers contract, first topic and number stay. Raises RpcError, Unavailable, Garbled.
    """
    for start in range(0, len(txids), AT_ONCE):
        some = txids[start : start + AT_ONCE]
        bodies = [txid for txid in some if txid in also]
        requests: list[Request] = [("eth_getTransactionReceipt", [txid]) for txid in some]
        requests += [("eth_getTransactionByHash", [txid]) for txid in bodies]
        try:
            told = rpc.batch(requests)
        except TooMuch:
            for txid in some:
                receipt = rows_of(rpc, "eth_getTransactionReceipt", [txid], _thin(), "logs")
                yield txid, receipt, rpc.call("eth_getTransactionByHash", [txid]) if txid in also else None
        else:
            body_of = dict(zip(bodies, told[len(some) :], strict=True))
            for txid, receipt in zip(some, told, strict=False):
                yield txid, receipt, body_of.get(txid)


def _thin() -> Thin:
    same: dict[Any, Any] = {}

    def thin(logs: list[Any]) -> list[Any]:
        kept = []
        try:
            for log in logs:
                topics = log["topics"]
                if topics and topics[0] == TRANSFER_TOPIC:
                    kept.append(log)
                    continue
                address, first = log["address"], topics[0] if topics else None
                few = same.setdefault(first, topics[:1])
                kept.append({"address": same.setdefault(address, address), "topics": few, "logIndex": log["logIndex"]})
        except (KeyError, TypeError, IndexError):
            raise Garbled("a receipt's log lacks a field") from None
        return kept

    return thin
