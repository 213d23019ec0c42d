"""Internal transfers in traces: geth's callTracer, whose calls nest, and Parity's flat lists.

Frames below the transaction itself count if they move value (CALL, CREATE, CREATE2, SELFDESTRUCT), and neither they nor a frame
around them was reverted. DELEGATECALL and STATICCALL move nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from chalicelib.chains.answers import Garbled, member
from chalicelib.chains.evm.parsing import MOST_UNITS
from chalicelib.chains.evm.quantities import address, hash32, quantity
from chalicelib.domain.chain import Block, Transfer

POSITION = "trace:"
_MOVING = frozenset({"CALL", "CREATE", "CREATE2", "SELFDESTRUCT"})


class Moved(NamedTuple):
    """A frame that moved `units`, addresses in storage form."""

    txid: str
    sender: str
    recipient: str
    units: int


def internal(frames: Sequence[Moved], block: Block) -> list[Transfer]:
    """The transfers of a block's frames, in their order."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    transfers = []
    for frame in frames:
        if frame.units > MOST_UNITS:
            raise Garbled("a call moves more than there is")
        place = counts[frame.txid, frame.recipient]
        counts[frame.txid, frame.recipient] += 1
        transfers.append(
            Transfer(frame.txid, f"{POSITION}{frame.recipient}:{place}", None, frame.sender, frame.recipient, frame.units)
        )
    return transfers


def of_call_tracer(answer: list[Any]) -> Iterator[Moved]:
    """Of a block, one entry for each transaction. Raises Garbled."""
    for entry in answer:
        txid = hash32(member(entry, "txHash", "a trace"), "a trace's transaction")
        if entry.get("error") is not None or not isinstance(entry.get("result"), dict):
            raise Garbled("a transaction could not be traced")
        if entry["result"].get("error") is None:
            yield from _inside(entry["result"], txid)


def _inside(frame: dict[str, Any], txid: str) -> Iterator[Moved]:
    """What the calls of `frame` moved, depth first as it happened. Iterative: a stack of calls may be 1,024 deep."""
    stack = [iter(listed(frame.get("calls", [])))]
    while stack:
        call = next(stack[-1], None)
        if call is None:
            stack.pop()
            continue
        if member(call, "error", "a call") is not None:
            continue  # reverted, and everything in it with it
        kind, value = call.get("type"), call.get("value")
        if kind in _MOVING and value not in (None, "0x0") and (units := quantity(value, "a call's value")):
            yield from _moved(txid, call.get("from"), call.get("to"), units)
        if calls := call.get("calls"):
            stack.append(iter(listed(calls)))


def of_parity(answer: list[Any], block: Block) -> Iterator[Moved]:
    """`trace_block` and `trace_transaction`: one entry for each call, in order; a reverted one before those inside it."""
    reverted: dict[str, list[list[int]]] = defaultdict(list)
    for entry in answer:
        kind = member(entry, "type", "a trace")
        if kind not in ("call", "create", "suicide"):
            continue  # a miner's reward
        if hash32(entry.get("blockHash"), "a trace's block") != block.hash:
            raise Garbled("a trace is of another block")
        txid = hash32(entry.get("transactionHash"), "a trace's transaction")
        path = listed(entry.get("traceAddress"))
        if any(path[: len(around)] == around for around in reverted[txid]):
            continue
        if entry.get("error") is not None:
            reverted[txid].append(path)
            continue
        if not path:
            continue  # the transaction itself: a native transfer of the block
        action = entry.get("action")
        if kind == "suicide":
            sender, recipient = member(action, "address", "an action"), member(action, "refundAddress", "an action")
            value = action.get("balance")
        else:
            sender, value = member(action, "from", "an action"), member(action, "value", "an action")
            if kind == "call" and action.get("callType", "call") != "call":
                continue
            recipient = action.get("to") if kind == "call" else member(entry.get("result"), "address", "a creation")
        if units := quantity(value, "a call's value"):
            yield from _moved(txid, sender, recipient, units)


def _moved(txid: str, sender: Any, recipient: Any, units: int) -> Iterator[Moved]:
    """What a contract sends to itself has not moved."""
    moved = Moved(txid, address(sender, "a sender"), address(recipient, "a recipient"), units)
    if moved.sender != moved.recipient:
        yield moved


def listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Garbled("a trace has no list where one should be")
    return value
