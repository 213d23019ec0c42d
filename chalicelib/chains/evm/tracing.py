"""Internal transfers: native coins that a contract sent. No log tells of them; a trace of the block does, where the node can trace.

Two methods are known, `debug_traceBlockByHash` with geth's callTracer and `trace_block` of Parity, Erigon, Nethermind and Reth;
which of them a node has is found out by asking once. Frames below the transaction itself count if they move value (CALL, CREATE,
CREATE2, SELFDESTRUCT), and neither they nor a frame around them was reverted. DELEGATECALL and STATICCALL move nothing.

A transfer's position is "trace:<recipient>:<n>", the n-th that its transaction moves to this recipient. Places in the call tree
would differ between nodes (some leave out calls of precompiled contracts); the order of what reaches one recipient can not.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from chalicelib.chains.evm.parsing import MOST_UNITS
from chalicelib.chains.evm.quantities import Garbled, address, hash32, member, quantity
from chalicelib.chains.rpc import NotServed, RpcError, TooMuch, Transport
from chalicelib.domain.chain import Block, Transfer
from chalicelib.usecases.ports.failures import Unavailable

log = logging.getLogger(__name__)

POSITION = "trace:"
_CALL_TRACER = {"tracer": "callTracer", "tracerConfig": {"onlyTopCall": False, "withLog": False}}
_MOVING = frozenset({"CALL", "CREATE", "CREATE2", "SELFDESTRUCT"})
_AT_ONCE = 2
"""Traces asked in one batch: one of a full block has megabytes, and takes a node seconds."""
REST = 600.0
"""Seconds for which a node is not asked again that did not trace in time: a slow tracer must not hold up every payment. Meanwhile
`usecases/reconcile.py` compares balances."""


class Moved(NamedTuple):
    """A frame that moved `units`, addresses in storage form."""

    txid: str
    sender: str
    recipient: str
    units: int


class Tracer:
    """`must`: what can not be traced is not read at all; else it is read without, and where that is news it is said."""

    def __init__(self, slug: str, rpc: Transport, must: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._slug, self._rpc, self._must, self._clock = slug, rpc, must, clock
        self._rests_until = 0.0
        self._method: str | None = None
        self._can = True

    @property
    def works(self) -> bool | None:
        """Whether the node traces; None while it was not asked."""
        if not self._can or self._clock() < self._rests_until:
            return False
        return True if self._method else None

    def add(self, blocks: Sequence[Block], answers: Sequence[Any]) -> None:
        """Put the internal transfers into `blocks`, which were parsed from `answers`. Raises Garbled, RpcError, Unavailable."""
        # A block whose transactions call nothing has nothing inside; and a plain payment's gas is exactly this much.
        asked = [block for block, answer in zip(blocks, answers, strict=True) if _calls_something(answer)]
        for start in range(0, len(asked), _AT_ONCE):
            part = asked[start : start + _AT_ONCE]
            traced = self._traced(part)
            if traced is None:
                return
            for block, answer in zip(part, traced, strict=True):
                if answer is not None:
                    block.transfers.extend(internal(self._frames(answer, block), block))

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> frozenset[Transfer]:
        """Those of `transfers` that the trace of their own transactions has. The receipts have to be looked at besides."""
        found: set[Transfer] = set()
        for txid in dict.fromkeys(transfer.txid for transfer in transfers):
            found.update(internal(self._of_transaction(txid, block), block))
        return frozenset(found) & frozenset(transfers)

    def _traced(self, blocks: Sequence[Block]) -> list[Any] | None:
        """A trace of each block, None where the node can not trace."""
        if self.works is False:
            return None
        known = self._method
        for method in (known,) if known else ("debug_traceBlockByHash", "trace_block"):
            try:
                answers = self._rpc.batch([self._request(method, block) for block in blocks])
            except (RpcError, TooMuch, NotServed) as error:
                if known:
                    return self._one_by_one(blocks, error)
                log.info("%s: no %s: %s", self._slug, method, error)
            except Unavailable as error:
                if self._must:
                    raise
                # The node has just told these blocks: it is the tracing that it does not do in time.
                self._rests_until = self._clock() + REST
                log.error("ALARM %s: block %d is not traced in time, and was read without: %s", self._slug, blocks[0].number, error)
                return None
            else:
                self._method = method
                return answers
        if self._must:
            raise Unavailable(f"{self._slug}: the node can not trace, and this network must be traced")
        log.warning("%s: the node can not trace: what contracts send to our addresses is not seen in blocks", self._slug)
        self._can = False
        return None

    def _one_by_one(self, blocks: Sequence[Block], error: Exception) -> list[Any]:
        """The node can trace, and does not trace these: each by itself, None for the one that is at fault.

        A block that can not be traced (a transaction that takes the tracer too long) must not stop the network: what contracts paid
        in it is the operator's to look after, unless the network says that nothing may be passed over.
        """
        if len(blocks) > 1:
            return [answer for block in blocks for answer in self._traced([block]) or [None]]
        if self._must:
            raise Unavailable(f"{self._slug}: the node does not trace block {blocks[0].number}: {error}") from error
        log.error("ALARM %s: block %d can not be traced, and was read without: %s", self._slug, blocks[0].number, error)
        return [None]

    def _request(self, method: str, block: Block) -> tuple[str, list[Any]]:
        return (method, [block.hash, _CALL_TRACER]) if method == "debug_traceBlockByHash" else (method, [hex(block.number)])

    def _frames(self, answer: Any, block: Block) -> list[Moved]:
        if not isinstance(answer, list):
            raise Garbled("a block's trace is no list")
        return list(_of_call_tracer(answer) if self._method == "debug_traceBlockByHash" else _of_parity(answer, block))

    def _of_transaction(self, txid: str, block: Block) -> list[Moved]:
        if self._method == "trace_block":
            return list(_of_parity(_listed(self._rpc.call("trace_transaction", [txid])), block))
        try:
            answer = self._rpc.call("debug_traceTransaction", [txid, _CALL_TRACER])
        except RpcError:
            if self._method is not None:
                raise
            # Nothing was traced in this process yet, so the node may be of the other kind.
            return list(_of_parity(_listed(self._rpc.call("trace_transaction", [txid])), block))
        return list(_of_call_tracer([{"txHash": txid, "result": answer}]))


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


def _calls_something(answer: Any) -> bool:
    """Whether a block has a transaction that may run code: it carries data, makes a contract, or has more gas than a payment needs.

    A contract's receive function runs without data; a payment with exactly 21,000 gas can not run anything.
    """
    return any(
        row.get("input", row.get("data", "0x")) != "0x" or row.get("to") is None or row.get("gas") != "0x5208"
        for row in answer["transactions"]
    )


def _of_call_tracer(answer: list[Any]) -> Iterator[Moved]:
    for entry in answer:
        txid = hash32(member(entry, "txHash", "a trace"), "a trace's transaction")
        if entry.get("error") is not None or not isinstance(entry.get("result"), dict):
            raise Garbled("a transaction could not be traced")
        if entry["result"].get("error") is None:
            yield from _inside(entry["result"], txid)


def _inside(frame: dict[str, Any], txid: str) -> Iterator[Moved]:
    """What the calls of `frame` moved, depth first as it happened. Iterative: a stack of calls may be 1,024 deep."""
    stack = [iter(_listed(frame.get("calls", [])))]
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
            stack.append(iter(_listed(calls)))


def _of_parity(answer: list[Any], block: Block) -> Iterator[Moved]:
    """`trace_block` and `trace_transaction`: one entry for each call, in order; a reverted one before those inside it."""
    reverted: dict[str, list[list[int]]] = defaultdict(list)
    for entry in answer:
        kind = member(entry, "type", "a trace")
        if kind not in ("call", "create", "suicide"):
            continue  # a miner's reward
        if hash32(entry.get("blockHash"), "a trace's block") != block.hash:
            raise Garbled("a trace is of another block")
        txid = hash32(entry.get("transactionHash"), "a trace's transaction")
        path = _listed(entry.get("traceAddress"))
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


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Garbled("a trace has no list where one should be")
    return value
