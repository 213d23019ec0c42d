"""Finality of a payment of ours: the depth of its block, and the quorum of nodes that confirm it (money rule 11).

* Depth counts in blocks that were scanned, each linked to the one before: what a node says that its height is moves no money.
  Nor does a receipt in another block than the one that was scanned at that height.
* That a payment failed gives its money back, which no reorganisation undoes once it is spent again. Where several nodes are
  configured, more than half of them have to tell it of the same block, and none that answers may tell otherwise.
* That a payment can never happen is believed only when every node denies its transactions.
* That a payment succeeded is one node's word, or two's where it is worth more than the network's `agreement_usd`.
* A node without a vote (`node_votes`) is not waited for where what is at stake is worth less than `agreement_usd`: every other one
  has to say the same then, and that a payment failed is believed only of a transaction that the scanner met in that very block.
  An outage, or an attacker, that silences the honest nodes leaves the lying one: what is worth more waits for the operator.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from chalicelib.domain.catalogue.catalogue import AGREEMENT_USD, Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import Cursor, Receipt
from chalicelib.domain.ids import AssetId
from chalicelib.domain.transactions.sightings import Ours, Seen, Sighting
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import ChainReader, Jury
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.scanning.quorum import worth_more

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Scanned:
    """How far a network is scanned: `height`, never above what the node has; `recent` are the hashes of the last blocks, `epoch`
    counts the reorganisations that were followed, `noted_from` is the block that sightings are complete from, and no block before
    it is younger than `noted_at` (`Cursor`). `unsure`: the network is halted, or a reorganisation is being followed: what the
    chain is, is not decided."""

    height: int
    tip: int
    recent: Mapping[str, str]
    epoch: int = 0
    noted_from: int | None = None
    unsure: bool = False
    noted_at: int | None = None

    def depth(self, number: int) -> int:
        """Blocks from `number` to the last one scanned, both counted."""
        return max(0, self.height - number + 1)

    def holds(self, receipt: Receipt) -> bool:
        """Whether its block is not another one than was scanned at that height."""
        return self.recent.get(str(receipt.block_number), receipt.block_hash) == receipt.block_hash


def scanned_so_far(network: Network, reader: ChainReader, store: Store) -> Scanned:
    """How far `network` is scanned now. Raises Unavailable."""
    tip = reader.tip()
    cursor = store.get(Cursor, network=network.id)
    if cursor is None:
        return Scanned(-1, tip, {})
    stands = cursor.number if cursor.rewind_to is None else min(cursor.number, cursor.rewind_to)
    unsure = cursor.halted is not None or cursor.rewind_to is not None
    return Scanned(min(stands, tip), tip, cursor.recent, cursor.epoch, cursor.noted_from, unsure, cursor.noted_at)


class Finality:
    """For one network and one poll."""

    def __init__(self, context: NetworkContext, rates: RatesOf) -> None:
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._rates, self._clock = rates, context.clock
        self._told: dict[str, tuple[list[Receipt | None], Iterator[Receipt | None]]] = {}

    def scanned(self) -> Scanned:
        """As of now. Raises Unavailable."""
        return scanned_so_far(self._network, self._reader, self._store)

    def believed(
        self,
        said: Receipt,
        scanned: Scanned,
        asset: AssetId,
        units: int,
        paid: Callable[[Receipt], bool] = lambda it: it.success,
        ours: Ours | None = None,
    ) -> Receipt | None:
        """The receipt by which `units` of `asset` may be settled, given the one that a node tells, whose block is deep enough.

        None while that has to wait. `paid` says whether a receipt tells that the payment happened, `ours` by what the scanner would
        have met its transactions. Raises Unavailable.
        """
        if not scanned.holds(said):
            log.error("ALARM %s: %s is said to be in another block than was scanned", self._network.id, said.txid)
            return None
        if not isinstance(self._reader, Jury) or (paid(said) and not self._large(asset, units)):
            return said
        told: list[Receipt | None] = []
        for receipt in self._testimonies(said.txid, self._reader):
            told.append(receipt)
            if receipt is None or not paid(receipt) or not self._deep(receipt, scanned):
                continue
            if Counter(other.block_hash for other in told if other is not None and paid(other))[receipt.block_hash] >= 2:
                return receipt
        same = [other for other in told if other is not None and other.block_hash == said.block_hash and not paid(other)]
        if not paid(said) and len(same) == len(told):
            if 2 * len(same) > self._reader.members:
                return said
            if len(told) == self._heard(self._reader, asset, units) and self._met(ours, said):
                return said
        words = "and do not tell the same"
        if self._reader.voteless:
            words = "the others have no vote: the operator has to bring them back, or to take them out"
        log.error(
            "ALARM %s: what became of %s is not settled: %d of %d nodes answer, %s",
            *(self._network.id, said.txid, len(told), self._reader.members, words),
        )
        return None

    def _deep(self, receipt: Receipt, scanned: Scanned) -> bool:
        return scanned.holds(receipt) and scanned.depth(receipt.block_number) >= self._network.confirmations

    def _testimonies(self, txid: str, jury: Jury) -> Iterator[Receipt | None]:
        """Of each node that answers, asked when the next is taken: once, however many payments share the transaction."""
        told, rest = self._told.setdefault(txid, ([], jury.testimonies(txid)))
        for place in count():
            if place == len(told):
                try:
                    told.append(next(rest))
                except StopIteration:
                    return
                except Unavailable:
                    del self._told[txid]
                    raise
            yield told[place]

    def _met(self, ours: Ours | None, said: Receipt) -> bool:
        """Whether the scanner met the transaction of a receipt in the very block that it names."""
        subjects = () if ours is None else ours.subjects
        found = self._store.get_many([(Sighting, {"network": self._network.id, "subject": each}) for each in subjects])
        return any(each is not None and Seen(said.txid, said.block_number, said.block_hash) in each.seen for each in found)

    def denied(self, txids: Sequence[str], asset: AssetId, units: int) -> bool:
        """Whether no node has any of these transactions in a block; `units` of `asset` are at stake. A node that has a vote and
        does not answer is waited for. Raises Unavailable where none answers."""
        return self._untold(txids, lambda jury: self._heard(jury, asset, units))

    def untold(self, txids: Sequence[str]) -> bool:
        """Whether no node has any of these transactions in a block, however much is at stake: for what an operator has decided. One
        that has a vote and does not answer is waited for. Raises Unavailable where none answers."""
        return self._untold(txids, lambda jury: jury.members - jury.voteless)

    def _untold(self, txids: Sequence[str], heard: Callable[[Jury], int]) -> bool:
        if not isinstance(self._reader, Jury):
            return all(self._reader.receipt(txid) is None for txid in txids)
        for txid in txids:
            told = list(self._reader.testimonies(txid))
            if len(told) < heard(self._reader) or any(receipt is not None for receipt in told):
                return False
        return True

    def every_node(self, asset: AssetId, units: int) -> bool:
        """Whether all nodes have to be heard about `units` of `asset`, also those that have no vote."""
        return self._large(asset, units, AGREEMENT_USD)

    def _heard(self, jury: Jury, asset: AssetId, units: int) -> int:
        """How many nodes have to be heard about `units` of `asset`: all that have a vote, and of what is worth much simply all."""
        silent = jury.voteless
        return jury.members - (0 if silent and self.every_node(asset, units) else silent)

    def _large(self, asset: AssetId, units: int, unless_set: int | None = None) -> bool:
        """Whether it is worth more than `agreement_usd`, or `unless_set` where the network has none. Without a fresh rate:
        everything is."""
        network = self._network
        limit = unless_set if network.agreement_usd is None else network.agreement_usd
        coin = next((c for c in self._store.catalogue(network.realm).coins_of(network.slug) if c.asset == asset), None)
        return worth_more(limit, coin, units, self._rates(network.realm), self._clock.now_ms())
