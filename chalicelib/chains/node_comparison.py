"""What several nodes say of one network, compared: how high it is, and what a block moves."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from chalicelib.chains.providers import Health
from chalicelib.chains.rpc import shared_by
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Transfer
from chalicelib.usecases.ports.failures import Contradiction, Unavailable
from chalicelib.usecases.ports.readers import ChainReader

log = logging.getLogger(__name__)

T = TypeVar("T")

TOLERATED_SECONDS = 15
"""How far a node's tip may be behind the others' before another is chosen, in seconds of blocks."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeReader:
    """A reader of one node, and the node's health."""

    reader: ChainReader
    health: Health

    def ask(self, ask: Callable[[ChainReader], T]) -> T:
        """The reader's answer; its failure counts against the node's health. Raises as `ask` does."""
        return self.health.watched(lambda: ask(self.reader))


class Answers(Generic[T]):
    """What some nodes were asked already, and the others are asked when their answer is wanted."""

    def __init__(self, ask: Callable[[ChainReader], T], begun: dict[NodeReader, Future[T]]) -> None:
        self._ask, self._begun = ask, begun

    def of(self, seen: NodeReader) -> T:
        """The node's answer, which is not kept. Raises as `NodeReader.ask` does."""
        begun = self._begun.pop(seen, None)
        return seen.ask(self._ask) if begun is None else begun.result()

    def begun(self, seen: NodeReader) -> bool:
        """Whether the node was asked already, and its answer not taken yet."""
        return seen in self._begun


@contextmanager
def asked_at_once(readers: Sequence[NodeReader], ask: Callable[[ChainReader], T]) -> Iterator[Answers[T]]:
    """Ask these nodes at the same time, in this block of the `with` statement, which ends when all of them have answered. Who is
    alone is asked when the answer is wanted."""
    if len(readers) < 2:
        yield Answers(ask, {})
        return
    with shared_by(len(readers)), ThreadPoolExecutor(len(readers)) as pool:
        yield Answers(ask, {seen: pool.submit(copy_context().run, seen.ask, ask) for seen in readers})


def tolerated(network: Network) -> int:
    """Blocks that a node's tip may be behind the others'."""
    return max(1, math.ceil(TOLERATED_SECONDS / network.block_time))


def drop_unbelievable(network: Network, tips: dict[NodeReader, int]) -> None:
    """Take the nodes out of `tips` that nothing can be read of at the height that they name, and one that alone is far ahead."""
    _drop_impossible(network, tips)
    _drop_alone(network, tips)


def _drop_impossible(network: Network, tips: dict[NodeReader, int]) -> None:
    """Take those out that are far ahead of all others and have no block there: nothing would ever be read of them."""
    while len(tips) > 1:
        second, first = sorted(tips.values())[-2:]
        ahead = next(seen for seen, tip in tips.items() if tip == first)
        if first <= second + tolerated(network) or _has(ahead, first):
            return
        ahead.health.failed("it names a tip that it has no block for")
        del tips[ahead]


def _drop_alone(network: Network, tips: dict[NodeReader, int]) -> None:
    """Take out who alone is far ahead, while two others are where the other is: nobody is read for the height that it names."""
    if len(tips) < 3:
        return
    third, second, first = sorted(tips.values())[-3:]
    if first <= second + tolerated(network) or second > third + tolerated(network):
        return
    ahead = next(seen for seen, tip in tips.items() if tip == first)
    log.error("ALARM %s: node %d alone is at %d, the others at %d", network.id, ahead.health.number, first, second)
    del tips[ahead]


def _has(seen: NodeReader, number: int) -> bool:
    try:
        return seen.ask(lambda reader: reader.block_hash(number)) is not None
    except Unavailable:
        return False


def compared(
    network: Network,
    teller: NodeReader,
    readers: Sequence[NodeReader],
    blocks: list[Block],
    contracts: Collection[str],
    told: Answers[list[Block]],
) -> list[Block]:
    """`blocks` with the transfers added that a second node tells of them. Without a second one they stay as they are. `told`: what
    it was asked about these blocks, and perhaps others, while the first one answered."""
    for seen in readers:
        if seen is teller or seen.health.rests_for:
            continue
        by_hash = {block.hash: block for block in blocks}
        first, last = blocks[0].number, blocks[-1].number
        try:
            # It may tell no more at once than it can hold, which are other blocks than those that the first one could.
            while first <= last and (
                others := told.of(seen) if told.begun(seen) else seen.ask(lambda reader: reader.blocks(first, last, contracts))  # noqa: B023
            ):
                first = others[-1].number + 1
                for other in others:
                    if other.hash in by_hash:
                        by_hash[other.hash] = _both(network, teller, seen, by_hash[other.hash], other)
        except Unavailable:
            continue
        return list(by_hash.values())
    return blocks


def _both(network: Network, teller: NodeReader, second: NodeReader, block: Block, other: Block) -> Block:
    ours, theirs = frozenset(block.transfers), frozenset(other.transfers)
    missing = [t for t in other.transfers if t not in ours and not _by_trace(t)]
    extra = [t for t in block.transfers if t not in theirs and not _by_trace(t)]
    if not missing and not extra:
        return block
    log.error(
        "ALARM %s: of block %d, node %d tells %d transfers that node %d does not, and lacks %d of its",
        *(network.id, block.number, teller.health.number, len(extra), second.health.number, len(missing)),
    )
    for seen, left_out in ((teller, missing), (second, extra)):
        _blame(seen, block, left_out)
    return replace(block, transfers=[*block.transfers, *missing])


def _blame(seen: NodeReader, block: Block, left_out: list[Transfer]) -> None:
    """Leave a node alone that proves by its own receipts what it had left out."""
    try:
        if left_out and evidence(seen.reader, block, left_out):
            seen.health.failed(f"it left out transfers of block {block.number}")
    except Unavailable:
        seen.health.failed("it can not prove or disprove what another tells")


def evidence(reader: ChainReader, block: Block, transfers: Sequence[Transfer]) -> frozenset[Transfer]:
    """Those of `transfers` that one node proves. That it contradicts one is its word about that one, not about the others."""
    try:
        return frozenset(reader.proven(block, transfers))
    except Contradiction:
        if len(transfers) == 1:
            return frozenset()
        return frozenset().union(*(evidence(reader, block, [transfer]) for transfer in transfers))


def _by_trace(transfer: Transfer) -> bool:
    """Internal transfers: not every node can trace."""
    return transfer.position.startswith(("trace:", "int:"))
