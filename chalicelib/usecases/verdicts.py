"""When the chain's word about a payment of ours is final: how deep its block is, and how many nodes have to say so (money rule 11).

* Depth counts in blocks that were scanned, each linked to the one before: what a node says that its height is moves no money.
  Nor does a receipt in another block than the one that was scanned at that height.
* That a payment failed gives its money back, which no reorganisation undoes once it is spent again. Where several nodes are
  configured, more than half of them have to tell it of the same block, and none that answers may tell otherwise.
* That a payment can never happen is believed only when every node denies its transactions.
* That a payment succeeded is one node's word, or two's where it is worth more than the network's `agreement_usd`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chalicelib.domain.catalogue import Network
from chalicelib.domain.chain import Cursor, Receipt
from chalicelib.domain.ids import AssetId
from chalicelib.domain.rates import RatesOf
from chalicelib.usecases.large_payments import worth_more
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.readers import ChainReader, Jury
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Scanned:
    """How far a network is scanned: `height`, never above what the node has; `recent` are the hashes of the last blocks, `epoch`
    counts the reorganisations that were followed, `noted_from` is the block that sightings are complete from
    (`Cursor`). `unsure`: the network is halted, or a reorganisation is being followed: what the chain is, is not decided."""

    height: int
    tip: int
    recent: Mapping[str, str]
    epoch: int = 0
    noted_from: int | None = None
    unsure: bool = False

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
    return Scanned(min(stands, tip), tip, cursor.recent, cursor.epoch, cursor.noted_from, unsure)


class Verdicts:
    """For one network and one poll."""

    def __init__(self, network: Network, reader: ChainReader, store: Store, rates: RatesOf, clock: Clock) -> None:
        self._network, self._reader, self._store = network, reader, store
        self._rates, self._clock = rates, clock

    def scanned(self) -> Scanned:
        """As of now. Raises Unavailable."""
        return scanned_so_far(self._network, self._reader, self._store)

    def believed(
        self, said: Receipt, scanned: Scanned, asset: AssetId, units: int, paid: Callable[[Receipt], bool] = lambda it: it.success
    ) -> Receipt | None:
        """The receipt by which `units` of `asset` may be settled, given the one that a node tells, whose block is deep enough.

        None while that has to wait. `paid` says whether a receipt tells that the payment happened. Raises Unavailable.
        """
        if not scanned.holds(said):
            log.error("ALARM %s: %s is said to be in another block than was scanned", self._network.id, said.txid)
            return None
        if not isinstance(self._reader, Jury) or (paid(said) and not self._large(asset, units)):
            return said
        told: list[Receipt | None] = []
        for receipt in self._reader.testimonies(said.txid):
            told.append(receipt)
            if receipt is None or not paid(receipt) or not scanned.holds(receipt):
                continue
            if scanned.depth(receipt.block_number) < self._network.confirmations:
                continue
            if Counter(other.block_hash for other in told if other is not None and paid(other))[receipt.block_hash] >= 2:
                return receipt
        same = [other for other in told if other is not None and other.block_hash == said.block_hash and not paid(other)]
        if not paid(said) and len(same) == len(told) and 2 * len(same) > self._reader.members:
            return said
        log.error(
            "ALARM %s: what became of %s is not settled: %d of %d nodes answer, and do not tell the same",
            *(self._network.id, said.txid, len(told), self._reader.members),
        )
        return None

    def denied(self, txids: Sequence[str]) -> bool:
        """Whether no node has any of these transactions in a block. One that does not answer is waited for. Raises Unavailable
        where none does."""
        if not isinstance(self._reader, Jury):
            return all(self._reader.receipt(txid) is None for txid in txids)
        for txid in txids:
            told = list(self._reader.testimonies(txid))
            if len(told) < self._reader.members or any(receipt is not None for receipt in told):
                return False
        return True

    def _large(self, asset: AssetId, units: int) -> bool:
        """Without a fresh rate: everything."""
        network = self._network
        coin = next((c for c in self._store.catalogue(network.realm).coins_of(network.slug) if c.asset == asset), None)
        return worth_more(network.agreement_usd, coin, units, self._rates(network.realm), self._clock.now_ms())
