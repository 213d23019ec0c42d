"""Quorum: one network read through several nodes and compared (money rule 11).

Any fault that a reader finds with its node (no answer, garbage, a contradiction) makes the next one answer. A poll keeps to one
node: `tip` chooses it, the rest asks it first. Two nodes' answers about a block are compared at random, and for every block where
the network asks for agreement; a transfer that only one of them has is kept, and the receipts decide. Works for every family.

Where two are needed in any case, both are asked at the same time: a poll waits for the slower one and not for their sum. Others are
asked when those have not answered.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TypeVar

from chalicelib.chains.held import full
from chalicelib.chains.node_comparison import NodeReader, asked_at_once, compared, drop_unbelievable, evidence, tolerated
from chalicelib.chains.providers import Health, in_order
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Header, Receipt, Transfer
from chalicelib.domain.recovery.addresses import Usage
from chalicelib.usecases.ports.failures import Contradiction, Unavailable
from chalicelib.usecases.ports.readers import Balances, ChainReader, Contracts, Usages

log = logging.getLogger(__name__)

T = TypeVar("T")

_KNOWN: tuple[Usage, ...] = ("unused", "used", "emptied", "holding")
"""From what says least of an address to what says most."""

COMPARED = 1 / 64
"""The part of the ranges of blocks that is read of a second node, too, where the network does not ask for agreement."""


class QuorumReader:
    """Implements `usecases.ports.readers.ChainReader`, `Witness` and `Jury` over a reader for each node, in the order of
    preference.

    `draw` gives numbers from 0 to 1: which ranges are compared.
    """

    def __init__(self, network: Network, readers: Sequence[NodeReader], draw: Callable[[], float] = random.random) -> None:
        if len(readers) < 2:
            raise ValueError("several readers are two at least")
        self._network, self._readers, self._draw = network, list(readers), draw
        self._preferred: NodeReader | None = None
        self._told = -1

    def tip(self) -> int:
        """Number of the newest block of the node that this poll reads: the node that was read last, unless it is behind.

        A node behind what this process has read already is passed over; so is one that names a tip and has no block there, and one
        that is far ahead of two others which agree. Of two, nobody can say which one is wrong: the higher is read.
        """
        tips: dict[NodeReader, int] = {}
        trouble: Unavailable | None = None
        order = self._in_order()
        with asked_at_once([seen for seen in order if not seen.health.rests_for], lambda reader: reader.tip()) as told:
            for seen in order:
                if tips and seen.health.rests_for:
                    continue
                try:
                    tips[seen] = seen.health.tip = told.of(seen)
                except Unavailable as error:
                    trouble = error
        drop_unbelievable(self._network, tips)
        if not tips:
            raise trouble or Unavailable(f"no node of {self._network.id} answers")
        highest = max(tips.values())
        least = max(self._told if self._told <= highest else 0, highest - tolerated(self._network))
        if self._preferred is None or tips.get(self._preferred, -1) < least:
            # Without a memory of what was read (a fresh process), only the highest is surely not behind the cursor.
            self._preferred = next(seen for seen in self._readers if tips.get(seen) == highest)
        return tips[self._preferred]

    def blocks(self, first: int, last: int, contracts: Collection[str]) -> list[Block]:
        """As one reader. Fewer blocks than asked for are believed only when no node has more, or when no more are held at once."""
        compares = self._network.agreement_usd is not None or self._draw() < COMPARED
        order = self._in_order()
        with asked_at_once(self._pair(order) if compares else [], lambda reader: reader.blocks(first, last, contracts)) as told:
            teller, found = self._most(last - first + 1, self._answers(told.of, order), full)
            self._preferred = teller
            if found:
                self._told = max(self._told, found[-1].number)
                if compares:
                    found = compared(self._network, teller, self._in_order(), found, contracts, told)
        return found

    def _pair(self, order: Sequence[NodeReader]) -> list[NodeReader]:
        """Who tells blocks, and who is compared with it. Two blocks of a UTXO network may not fit into memory at the same time: its
        nodes are asked one after the other, which costs a block of minutes nothing."""
        if self._network.family == "utxo":
            return []
        return [order[0], *[seen for seen in order[1:] if not seen.health.rests_for][:1]]

    def headers(self, first: int, last: int) -> list[Header]:
        """As one reader. Fewer than asked for are believed only when no node has more."""
        told = self._answers(lambda seen: seen.ask(lambda reader: reader.headers(first, last)))
        self._preferred, found = self._most(last - first + 1, told)
        return found

    def _most(
        self,
        wanted: int,
        answers: Iterator[tuple[NodeReader, list[T]]],
        enough: Callable[[list[T]], bool] = lambda told: False,
    ) -> tuple[NodeReader, list[T]]:
        """The first answer that has all that is wanted, or is `enough`; else the longest; and who told it."""
        best = next(answers)
        while len(best[1]) < wanted and not enough(best[1]):
            other = next(answers, None)
            if other is None:
                break
            best = max(best, other, key=lambda each: len(each[1]))
        return best

    def block_hash(self, number: int) -> str | None:
        """As one reader. That there is none is believed only when no node has one."""
        told = self._answers(lambda seen: seen.ask(lambda reader: reader.block_hash(number)))
        return next((found for _, found in told if found is not None), None)

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        """As one reader. A transfer that it disproves is checked with a second node, and where those two differ, with a third.

        Raises Contradiction where as many nodes confirm it as deny it: neither side is believed with money.
        """
        yes: dict[Transfer, int] = dict.fromkeys(transfers, 0)
        asked = 0
        for _, proven in self._answers(lambda seen: seen.ask(lambda reader: evidence(reader, block, transfers))):
            asked += 1
            for transfer in proven & yes.keys():
                yes[transfer] += 1
            if asked == 1 and len(proven) == len(yes):
                return list(transfers)
            if asked > 1 and all(2 * count != asked for count in yes.values()):
                break
        if any(2 * count == asked for count in yes.values()):
            log.error("ALARM %s: nodes contradict each other about transactions of block %d", self._network.id, block.number)
            raise Contradiction(f"the nodes of {self._network.id} contradict each other about block {block.number}")
        return [transfer for transfer in transfers if 2 * yes[transfer] > asked]

    def receipt(self, txid: str) -> Receipt | None:
        return self._first(lambda reader: reader.receipt(txid))

    @property
    def members(self) -> int:
        return len(self._readers)

    @property
    def healths(self) -> list[Health]:
        return [seen.health for seen in self._readers]

    @property
    def voteless(self) -> int:
        return sum(seen.health.voteless for seen in self._readers)

    def revisit(self, nodes: Collection[str]) -> None:
        for seen in self._readers:
            if seen.health.name in nodes:
                with suppress(Unavailable):
                    seen.ask(lambda reader: reader.tip())

    def testimonies(self, txid: str) -> Iterator[Receipt | None]:
        """Each node's answer about a transaction: money is given back on no single one's word.

        One that has no vote is not asked again so soon after it did not answer: it would cost each transaction its timeout.
        """
        heard = (seen for seen in self._in_order() if not (seen.health.voteless and seen.health.rests_for))
        for _, told in self._answers(lambda seen: seen.ask(lambda reader: reader.receipt(txid)), heard):
            yield told

    def balance(self, address: str, contract: str | None = None) -> int:
        return self._first(lambda reader: reader.balance(address, contract))

    def solid(self) -> int:
        """As one reader (Tron only)."""
        return self._first(lambda reader: reader.solid())  # type: ignore[attr-defined,no-any-return]

    def solid_balance(self, address: str, contract: str | None = None) -> int:
        """As one reader (Tron only), where two nodes say the same: one that lies, or lags, is nobody's proof."""
        return self._alike(lambda reader: reader.solid_balance(address, contract))  # type: ignore[attr-defined]

    def solid_balances(self, addresses: Sequence[str], contract: str | None = None) -> list[int] | None:
        """As one reader (Tron only). Where two nodes differ about an address, it is asked for by itself."""

        def ask(reader: ChainReader) -> list[int] | None:
            return reader.solid_balances(addresses, contract)  # type: ignore[attr-defined,no-any-return]

        told: list[list[int]] = []
        order = self._in_order()
        with asked_at_once(order[:2], ask) as asked:
            for _, answer in self._answers(asked.of, order):
                if answer is not None:
                    told.append(answer)
                if len(told) > 1:
                    break
        if len(told) < 2:
            return None
        both = zip(addresses, *told, strict=True)
        return [first if first == other else self.solid_balance(address, contract) for address, first, other in both]

    def staked(self, address: str) -> int:
        """As one reader (Tron only), where two nodes say the same."""
        return self._alike(lambda reader: reader.staked(address))  # type: ignore[attr-defined]

    def _alike(self, ask: Callable[[ChainReader], int]) -> int:
        told: set[int] = set()
        for seen in self._in_order():
            try:
                answer = seen.ask(ask)
            except Unavailable:
                continue
            if answer in told:
                return answer
            told.add(answer)
        raise Unavailable(f"{self._network.id}: no two nodes tell the same balance")

    def has_code(self, address: str) -> bool:
        """As one reader; of a network that has contracts alone."""

        def asked(reader: ChainReader) -> bool:
            if not isinstance(reader, Contracts):
                raise TypeError(f"{self._network.id} has no contracts")
            return reader.has_code(address)

        return self._first(asked)

    @property
    def traces(self) -> bool | None:
        """Whether every node traces: blocks of a node that does not may lack internal transfers."""
        told = [seen.reader.traces if isinstance(seen.reader, Balances) else None for seen in self._readers]
        return False if False in told else None if None in told else True

    def balances_at(self, addresses: Sequence[str], number: int, block_hash: str, contract: str | None = None) -> list[int]:
        """As one reader, from two nodes that agree about an address: nothing else proves a balance. Where the first two differ,
        others are asked. Raises Unavailable where there are no two."""
        told: list[list[int]] = []
        for answer in self._balances(lambda reader: reader.balances_at(addresses, number, block_hash, contract)):
            told.append(answer)
            agreed = [next((value for value in column if column.count(value) > 1), None) for column in zip(*told, strict=True)]
            found = [value for value in agreed if value is not None]
            if len(told) > 1 and len(found) == len(addresses):
                if len(told) > 2:
                    log.warning("%s: a node tells other balances at block %d than two others", self._network.id, number)
                return found
        if len(told) < 2:
            raise Unavailable(f"{self._network.id}: there are no two nodes to tell balances")
        log.error("ALARM %s: two nodes tell different balances at block %d", self._network.id, number)
        raise Unavailable(f"{self._network.id}: no two nodes tell the same balances at block {number}")

    def nonces(self, addresses: Sequence[str]) -> list[int]:
        """As one reader, the higher answer of two nodes. Raises Unavailable where there are no two."""
        told = list(islice(self._balances(lambda reader: reader.nonces(addresses)), 2))
        if len(told) < 2:
            raise Unavailable(f"{self._network.id}: there are no two nodes to tell balances")
        return [max(pair) for pair in zip(*told, strict=True)]

    def usage(self, addresses: Sequence[str], contracts: Collection[str]) -> list[Usage]:
        """As one reader: of all that answer, the one that knows most of an address. One that lags or lies hides none."""
        found: list[Usage] | None = None
        trouble: Unavailable | None = None
        for seen in self._in_order():
            if not isinstance(seen.reader, Usages):
                continue
            try:
                told = seen.health.watched(partial(seen.reader.usage, addresses, contracts))
            except Unavailable as error:
                trouble = error
                continue
            found = told if found is None else [max(pair, key=_KNOWN.index) for pair in zip(found, told, strict=True)]
        if found is None:
            raise trouble or Unavailable(f"no node of {self._network.id} answers")
        return found

    def _balances(self, ask: Callable[[Balances], list[T]]) -> Iterator[list[T]]:
        """What each answers that does; two are wanted, and asked at the same time."""
        able = [seen for seen in self._in_order() if isinstance(seen.reader, Balances)]
        with asked_at_once(able[:2], ask) as told:  # type: ignore[arg-type]  # of those that can tell
            for seen in able:
                try:
                    answer = told.of(seen)
                except Unavailable:
                    continue
                yield answer

    def final(self, tag: str) -> int:
        """Number of the block that the node calls `tag` (EVM only)."""
        return self._first(lambda reader: reader.final(tag))  # type: ignore[attr-defined,no-any-return]

    def audited(self, block: Block, contracts: Collection[str]) -> list[Transfer]:
        """As one reader (EVM only). A node that contradicts itself is put on cool-down, and the next one is asked."""
        return self._first(lambda reader: reader.audited(block, contracts))  # type: ignore[attr-defined]

    def first_logs(self, block: Block, txids: Sequence[str]) -> dict[str, int]:
        """As one reader (EVM only)."""
        return self._first(lambda reader: reader.first_logs(block, txids))  # type: ignore[attr-defined]

    def agreed(self, block: Block, transfers: Sequence[Transfer]) -> bool:
        """Whether two nodes have `block` in the chain and prove all of `transfers` in it. Never raises for a node's fault: a
        node that does not answer, or has not got so far, does not count; a contradiction is logged."""

        def says(reader: ChainReader) -> bool | None:
            found = reader.block_hash(block.number)
            if found is None:
                return None
            return found == block.hash and evidence(reader, block, transfers) == frozenset(transfers)

        agreeing = 0
        order = self._in_order()
        with asked_at_once(order[:2], says) as told:
            for seen in order:
                try:
                    right = told.of(seen)
                except Unavailable:
                    continue
                if right:
                    agreeing += 1
                    if agreeing == 2:
                        return True
                elif right is not None:
                    log.error("ALARM %s: node %d says otherwise of block %d", self._network.id, seen.health.number, block.number)
        log.warning("%s: %d of %d nodes vouch for block %d", self._network.id, agreeing, len(self._readers), block.number)
        return False

    def _first(self, ask: Callable[[ChainReader], T]) -> T:
        return next(self._answers(lambda seen: seen.ask(ask)))[1]

    def _answers(
        self, ask: Callable[[NodeReader], T], readers: Iterable[NodeReader] | None = None
    ) -> Iterator[tuple[NodeReader, T]]:
        """Each node's answer, asked for when the caller wants one more. Raises Unavailable where none answers."""
        answered = False
        trouble: Unavailable | None = None
        for seen in self._in_order() if readers is None else readers:
            try:
                told = ask(seen)
            except Unavailable as error:
                trouble = error
                continue
            answered = True
            yield seen, told
        if not answered:
            raise trouble or Unavailable(f"no node of {self._network.id} answers")

    def _in_order(self) -> list[NodeReader]:
        return in_order(self._readers, self._preferred)
