"""Internal transfers: native coins that a contract sent. No log has them; a trace of the block does, where the node can trace.

Two methods are known, `debug_traceBlockByHash` with geth's callTracer and `trace_block` of Parity, Erigon, Nethermind and Reth;
which of them a node has is found out by asking once.

A transfer's position is "trace:<recipient>:<n>", the n-th that its transaction moves to this recipient. Places in the call tree
would differ between nodes (some leave out calls of precompiled contracts); the order of what reaches one recipient can not.

A stranger's transaction can make the trace of its block too large to be read, or nest it too deep, for little money. That is no
fault of the node: such a block is traced transaction by transaction, and what can not be read even so is left out and said. What it
may have moved to us is found by comparing balances (`usecases/scanning/internal_transfers.py`).

Blocks of a chain that makes four a second are traced in requests of so many transactions, and several requests at the same time, as
long as the node answers them soon: else half as many. All answers that are under way share the room of one batch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

from chalicelib.chains.answers import Garbled
from chalicelib.chains.evm.frames import Moved, internal, listed, of_call_tracer, of_parity
from chalicelib.chains.evm.quantities import hash32
from chalicelib.chains.held import MOST_ROWS, rows_in
from chalicelib.chains.rpc import AT_ONCE, Limited, NotServed, RpcError, TooMuch, TooMuchTogether, Transport, one_room
from chalicelib.domain.chain import Block, Transfer
from chalicelib.usecases.ports.failures import Unavailable

log = logging.getLogger(__name__)

_CALL_TRACER = {"tracer": "callTracer", "tracerConfig": {"onlyTopCall": False, "withLog": False}}
_FLAT_TRACER = {"tracer": "flatCallTracer"}
_FIRST = 2
"""Blocks in the first request to a node: whether it traces, and how soon, is not known yet."""
TOGETHER = 200
"""Transactions that are traced in one request, as far as whole blocks go: about those of a full block of ethereum, whose trace has
megabytes and takes a node a second or so."""
SOON, LATE = 1.0, 3.0
"""Seconds. A node that answers all requests so soon is asked twice as many at the same time, and half as many where one takes so
long: whoever waits does not get a trace any sooner."""
TRANSACTIONS_AT_ONCE = 20
MOST_SECONDS = 10.0
"""How long blocks that are asked for at once may be traced transaction by transaction: for each a node runs those before it."""
REST = 600.0
"""Seconds for which a node is not asked again that did not trace in time: a slow tracer must not hold up every payment. Meanwhile
`usecases/scanning/internal_transfers.py` compares balances."""


class Tracer:
    """`must`: a block that can not be traced is not read at all; else it is read without traces, and a new failure is logged."""

    def __init__(self, slug: str, rpc: Transport, must: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._slug, self._rpc, self._must, self._clock = slug, rpc, must, clock
        self._rests_until = 0.0
        self._method: str | None = None
        self._can = True
        self._one_by_one_until = 0.0
        self._at_once = 1
        self._traced_of: dict[str, dict[str, list[Moved]]] = {}

    @property
    def works(self) -> bool | None:
        """Whether the node traces; None while it was not asked."""
        if not self._can or self._clock() < self._rests_until:
            return False
        return True if self._method else None

    def add(self, blocks: Sequence[Block], running: Mapping[str, Sequence[str]], room: int = MOST_ROWS) -> int:
        """Put the internal transfers into `blocks`, until these have more rows than `room`. How many of the blocks, from the first
        on, have theirs. `running` has the transactions that may run code, by block hash. Raises Garbled, RpcError, Unavailable."""
        # A block whose transactions call nothing has nothing inside.
        left = [n for n, block in enumerate(blocks) if running[block.hash]]
        self._one_by_one_until = self._clock() + MOST_SECONDS
        while left:
            if sum(rows_in(block) for block in blocks[: left[0]]) > room:
                return left[0]
            parts = self._parts([blocks[n] for n in left], running)
            left = left[sum(map(len, parts)) :]
            for part, traced in zip(parts, self._at_the_same_time(parts, running), strict=True):
                if traced is None:
                    left = []  # the node rests; what it has told already counts
                    continue
                for block, frames in zip(part, traced, strict=True):
                    block.transfers.extend(internal(frames, block))
        return len(blocks)

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> frozenset[Transfer]:
        """Those of `transfers` that the trace of their own transactions has. The receipts have to be checked besides."""
        found: set[Transfer] = set()
        txids = list(dict.fromkeys(transfer.txid for transfer in transfers))
        for start in range(0, len(txids), TRANSACTIONS_AT_ONCE):
            some = txids[start : start + TRANSACTIONS_AT_ONCE]
            traced = self._together(some, block) if len(some) > 1 else None
            for frames in (self._of_transaction(txid, block) for txid in some) if traced is None else traced:
                found.update(internal(frames or [], block))
        return frozenset(found) & frozenset(transfers)

    def _parts(self, blocks: Sequence[Block], running: Mapping[str, Sequence[str]]) -> list[list[Block]]:
        """The first of `blocks`, in the requests that are sent next: each of `TOGETHER` transactions, or of one block with more."""
        if self._method is None:
            return [list(blocks[:_FIRST])]
        parts: list[list[Block]] = []
        room = 0
        for block in blocks:
            size = len(running[block.hash])
            if size > room or not parts:
                if len(parts) == self._at_once:
                    break
                parts.append([])
                room = TOGETHER
            parts[-1].append(block)
            room -= size
        return parts

    def _at_the_same_time(
        self, parts: Sequence[list[Block]], running: Mapping[str, Sequence[str]]
    ) -> list[list[list[Moved]] | None]:
        """What moved in the blocks of each part, as `_traced`. A part that the node refused only because of the others is asked for
        once more, by itself."""
        method, began = self._method, self._clock()
        if method is None or len(parts) == 1:
            alone = [self._traced(part, running) for part in parts]
            self._at_once = self._paced(self._clock() - began)
            return alone
        with one_room(), ThreadPoolExecutor(len(parts)) as pool:
            # Each in a context of its own: two threads can not be in the same one.
            asked = [pool.submit(copy_context().run, partial(self._asked, method, part)) for part in parts]
        self._at_once = self._paced(self._clock() - began)
        found = []
        for part, answer in zip(parts, asked, strict=True):
            if isinstance(answer.exception(), (Limited, TooMuchTogether)):
                self._at_once = 1
                found.append(self._traced(part, running))
            else:
                found.append(self._traced(part, running, answer.result))
        return found

    def _paced(self, took: float) -> int:
        """How many requests are sent at the same time after some that took so many seconds."""
        if took > LATE:
            return max(1, self._at_once // 2)
        return min(AT_ONCE, 2 * self._at_once) if took < SOON else self._at_once

    def _asked(self, method: str, blocks: Sequence[Block]) -> list[list[Moved]]:
        answers = self._rpc.batch([self._request(method, block) for block in blocks])
        return [self._frames(method, answer, block) for answer, block in zip(answers, blocks, strict=True)]

    def _traced(
        self,
        blocks: Sequence[Block],
        running: Mapping[str, Sequence[str]],
        told: Callable[[], list[list[Moved]]] | None = None,
    ) -> list[list[Moved]] | None:
        """What moved in each block, None where the node can not trace. `running`: the transactions that run code, by block hash.
        `told`: what the node answered already, or raises what it refused."""
        if told is None and self.works is False:
            return None
        known = self._method
        for method in (known,) if known else ("debug_traceBlockByHash", "trace_block"):
            try:
                found = self._asked(method, blocks) if told is None else told()
            except TooMuch as error:
                # The node traces, and more than can be read: the block's fault, or a stranger's in it.
                self._method = method
                return self._block_by_block(blocks, running, error)
            except (RpcError, NotServed) as error:
                if known:
                    return self._block_by_block(blocks, running, error)
                log.info("%s: no %s: %s", self._slug, method, error)
            except Unavailable as error:
                if self._must:
                    raise
                # The node has just told these blocks: it is the tracing that it does not do in time.
                self._rests_until = self._clock() + REST
                self._at_once = 1
                log.error("ALARM %s: block %d is not traced in time, and was read without: %s", self._slug, blocks[0].number, error)
                return None
            else:
                self._method = method
                return found
        if self._must:
            raise Unavailable(f"{self._slug}: the node can not trace, and this network must be traced")
        log.warning("%s: the node can not trace: what contracts send to our addresses is not seen in blocks", self._slug)
        self._can = False
        return None

    def _block_by_block(
        self, blocks: Sequence[Block], running: Mapping[str, Sequence[str]], error: Exception
    ) -> list[list[Moved]] | None:
        """The node can trace, and does not trace these: each by itself; nothing of the one that is at fault.

        A block that can not be traced (a transaction that takes the tracer too long) must not stop the network: what contracts paid
        in it is the operator's to look after, unless the network says that nothing may be passed over.
        """
        if len(blocks) > 1:
            return [frames for block in blocks for frames in self._traced([block], running) or [[]]]
        if isinstance(error, TooMuch):
            return self._one_by_one(blocks[0], running[blocks[0].hash])
        if self._must:
            raise Unavailable(f"{self._slug}: the node does not trace block {blocks[0].number}: {error}") from error
        log.error("ALARM %s: block %d can not be traced, and was read without: %s", self._slug, blocks[0].number, error)
        return [[]]

    def _one_by_one(self, block: Block, txids: Sequence[str]) -> list[list[Moved]] | None:
        """What moved in a block whose trace can not be read as a whole: transaction by transaction, without what is at fault."""
        log.warning("%s: the trace of block %d is too large or too deep: one transaction at a time", self._slug, block.number)
        # What there was no time for is gone on with, where nothing may be passed over.
        done = self._traced_of.pop(block.hash, {})
        todo = [txid for txid in txids if txid not in done]
        try:
            while todo:
                for txid, frames in zip(todo, self._of_transactions(todo[:TRANSACTIONS_AT_ONCE], block), strict=False):
                    done[txid] = frames
                todo = todo[TRANSACTIONS_AT_ONCE:]
                if self._clock() > self._one_by_one_until:
                    break
        except Unavailable as error:
            if self._must:
                raise
            self._rests_until = self._clock() + REST
            log.error("ALARM %s: block %d is not traced in time, and was read without: %s", self._slug, block.number, error)
            return None
        if todo and self._must:
            self._traced_of = {block.hash: done}
            raise Unavailable(f"{self._slug}: block {block.number} is traced one transaction at a time, and {len(todo)} are left")
        if todo:
            log.error("ALARM %s: block %d can not be traced, and was read without: no time", self._slug, block.number)
        return [[moved for txid in txids for moved in done.get(txid, ())]]

    def _of_transactions(self, txids: Sequence[str], block: Block) -> list[list[Moved]]:
        if self._method != "trace_block" and (together := self._together(txids, block)) is not None:
            return together
        found = []
        for txid in txids:
            try:
                frames = self._of_transaction(txid, block)
            except (RpcError, Garbled) as error:
                log.info("%s: %s: %s", self._slug, txid, error)
                frames = None
            if frames is None:
                log.error(
                    "ALARM %s: block %d can not be traced, and was read without %s", self._slug, block.number, txid
                )  # fmt: skip
            found.append(frames or [])
        return found

    def _together(self, txids: Sequence[str], block: Block) -> list[list[Moved]] | None:
        """What each of some transactions moved inside, None where one of them can not be traced so, or no one knows how yet."""
        try:
            if self._method == "trace_block":
                answers = self._rpc.batch([("trace_transaction", [txid]) for txid in txids])
                return [list(of_parity(listed(answer), block)) for answer in answers]
            if self._method is not None:
                answers = self._rpc.batch([("debug_traceTransaction", [txid, _CALL_TRACER]) for txid in txids])
                return [list(of_call_tracer([{"txHash": t, "result": a}])) for t, a in zip(txids, answers, strict=True)]
        except (RpcError, TooMuch, Garbled):
            log.info("%s: a transaction of block %d can not be traced: each by itself", self._slug, block.number)
        return None

    def _request(self, method: str, block: Block) -> tuple[str, list[Any]]:
        return (method, [block.hash, _CALL_TRACER]) if method == "debug_traceBlockByHash" else (method, [hex(block.number)])

    def _frames(self, method: str, answer: Any, block: Block) -> list[Moved]:
        if not isinstance(answer, list):
            raise Garbled("a block's trace is no list")
        return list(of_call_tracer(answer) if method == "debug_traceBlockByHash" else of_parity(answer, block))

    def _of_transaction(self, txid: str, block: Block) -> list[Moved] | None:
        """What a transaction moved inside, None where its trace can not be read.

        A flat trace does not nest, so it may be read where that of geth's callTracer is too deep.
        """
        if self._method != "trace_block":
            try:
                return list(
                    of_call_tracer([{"txHash": txid, "result": self._rpc.call("debug_traceTransaction", [txid, _CALL_TRACER])}])
                )
            except TooMuch as error:
                log.info("%s: %s: %s", self._slug, txid, error)
            except RpcError:
                if self._method is not None:
                    raise
                # Nothing was traced in this process yet, so the node may be of the other kind.
                return list(of_parity(listed(self._rpc.call("trace_transaction", [txid])), block))
        for method, more in (("trace_transaction", []), ("debug_traceTransaction", [_FLAT_TRACER])):
            try:
                return list(of_parity(listed(self._rpc.call(method, [txid, *more])), block))
            except TooMuch as error:
                log.info("%s: %s: %s", self._slug, txid, error)
            except (RpcError, NotServed) as error:
                if self._method == "trace_block" and method == "trace_transaction":
                    raise
                log.info("%s: no flat trace of %s: %s", self._slug, txid, error)
        return None


def that_run(answer: Any) -> list[str]:
    """A block's transactions that may run code: that carry data, make a contract, or have more gas than a payment needs, which is
    exactly 21,000. Ids of them, by an answer to eth_getBlockByNumber with full transactions.

    A contract's receive function runs without data; a payment with exactly 21,000 gas can not run anything.
    """
    return [
        hash32(row.get("hash"), "a transaction's hash")
        for row in answer["transactions"]
        if row.get("input", row.get("data", "0x")) != "0x" or row.get("to") is None or row.get("gas") != "0x5208"
    ]
