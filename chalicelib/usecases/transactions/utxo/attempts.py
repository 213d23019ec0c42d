"""Whether an attempt of a UTXO transaction is in the chain, or can ever be: whatever its kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from chalicelib.domain.chain import Receipt
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.sightings import by_inputs
from chalicelib.domain.transactions.utxo_attempts import Attempts, M, Made
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.work import Work
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.given_up import GivenUps
from chalicelib.usecases.transactions.losses import Losses
from chalicelib.usecases.transactions.mined_attempts import mined_attempt
from chalicelib.usecases.transactions.sighting_gaps import NoteGaps
from chalicelib.usecases.transactions.sorting import Out
from chalicelib.usecases.transactions.utxo.kinds import R

log = logging.getLogger(__name__)


Fate = Literal["possible", "doubtful", "dead", "met"]
"""`met`: a block that was scanned has one of its attempts, whatever nodes tell of it now."""


class CoinAttempts:
    """Of one network of coins. `broadcast` hands bytes to the node, and raises Refused. Every method raises Unavailable."""

    def __init__(
        self,
        context: NetworkContext,
        payer: CoinPayer,
        finality: Finality,
        broadcast: Callable[[str], None],
        answers: Answers,
    ) -> None:
        network, store = context.network, context.store
        self._network, self._store, self._clock = network, store, context.clock
        self._payer, self._finality, self._broadcast, self._answers = payer, finality, broadcast, answers
        self._losses, self._gaps = Losses(network, context.reader, store), NoteGaps(network, store)
        self._given_ups = GivenUps(network, store, self._losses, finality)

    def mined(self, record: Attempts[M], scanned: Scanned) -> tuple[tuple[str, Receipt] | None, bool]:
        """The id of the attempt of `record` that is in a block of the chain, with its receipt; and whether one is in any block at
        all."""
        found = mined_attempt(self._network, self._answers, record.id, record.txids, scanned)
        return None if found.receipt is None else (record.txids[found.place], found.receipt), found.somewhere

    def accepted(self, attempts: Sequence[Made]) -> bool:
        """Whether the node has one of them in its mempool, or takes it now."""
        for attempt in attempts:
            if attempt.raw is None:
                continue
            try:
                self._broadcast(attempt.raw)
            except Refused as refused:
                log.warning("%s: %s is in no block and the node refuses it: %s", self._network.id, attempt.txid, refused)
                continue
            return True
        return False

    def impossible(self, needed: Sequence[str]) -> bool:
        """Whether one of the coins (outpoints) is spent by others in a block, or was taken back by the chain.

        Only what the node denies with its mempool and without it: a rival that waits there may lose against ours, and a coin that
        waits there may be back in the next block.
        """
        denied = [name for name, found in zip(needed, self._payer.unspent(needed), strict=True) if found is None]
        return bool(denied) and None in self._payer.unspent(denied, mempool=False)

    def out(self, work: Work, record: Bundle | CoinMove, needed: Sequence[str], overdue: bool) -> Out:
        """How a record that is signed is sorted; `needed` are the coins that each of its attempts spends."""
        newest = record.newest
        asks = record.renew or record.doubtful_since is not None or self._given_ups.decided(record.id)
        return Out(
            work,
            by_inputs(record.txids, needed),
            record.created_at,
            0 if newest is None else newest.signed_at,
            asks=asks or newest is None or newest.raw is None,
            undone=record.round > 0,
            overdue=overdue,
        )

    def fate(self, record: R, needed: Sequence[str], scanned: Scanned) -> tuple[Fate, R]:
        """What can become of a record none of whose attempts is in a block by the nodes' word; and the record, with when it was
        first doubted: stored where that has changed. `needed` are the coins that each of its attempts spends. Raises Conflict.

        That nodes do not know a coin any more makes it doubtful, and an alarm. Dead it is once another transaction was met in a
        block that spends one of them (money rule 13), and every node says so too. A decision to give it up ends it on the condition
        on which it was taken, that a coin is gone: it is a row, and may have been written by anybody.
        """
        ours = by_inputs(record.txids, needed)
        if self._losses.met(record.id, ours, scanned):
            return "met", record
        if self.impossible(needed) and self._given_ups.standing(record.id, ours, scanned) is not None:
            return "dead", replace(record, doubtful_since=scanned.height)
        if self.accepted(record.signed) or not self.impossible(needed):
            return "possible", self.doubted(record, None)
        if record.doubtful_since is None:
            log.error("ALARM %s: %s spends a coin that is spent or gone, and is in no block", self._network.id, record.id)
            return "doubtful", self.doubted(record, scanned.height)
        if self._losses.lost(ours, scanned):
            return "dead" if self._denied(record, needed) else "doubtful", record
        if scanned.height - record.doubtful_since >= self._network.reorg_depth:
            self._gaps.close_since(record.created_at, scanned, self._clock.now_ms())
        return "doubtful", record

    def proved_dead(self, record: Bundle | CoinMove, needed: Sequence[str], scanned: Scanned) -> bool:
        """Whether others have a coin that all attempts spend, by the blocks, or somebody decided to give it up; and no node says
        otherwise: what the blocks and the decision say are rows."""
        if not self.impossible(needed) or not self._finality.untold(record.txids):
            return False
        if self._store.get(GivenUp, id=record.id) is not None:
            return True
        return self._losses.lost(by_inputs(record.txids, needed), scanned)

    def watched_enough(self, record: Bundle | CoinMove, scanned: Scanned) -> bool:
        """Whether a dead record needs no more looks: as many blocks again as a reorganisation is followed have passed. One that the
        chain has after all is told of once, with what an operator needs: what was given back is gone then."""
        found = mined_attempt(self._network, self._answers, record.id, record.txids, scanned)
        if found.receipt is None:
            since = record.doubtful_since
            return since is None or scanned.height - since >= 2 * self._network.reorg_depth
        if scanned.depth(found.receipt.block_number) < self._network.confirmations:
            return False
        log.error(
            "ALARM %s: %s was given up at height %s and its coins given back, and its transaction %s is in block %d: %d units "
            "that the ledger has again are spent",
            *(self._network.id, record.id, record.doubtful_since, found.receipt.txid, found.receipt.block_number, record.total),
        )
        return True

    def doubted(self, record: R, since: int | None) -> R:
        """`record` with that height, stored. `updated_at` says when somebody last worked on it, which nobody did."""
        if record.doubtful_since == since:
            return record
        noted = replace(next_version(record), doubtful_since=since)
        self._store.commit([Save(noted)])
        return noted

    def _denied(self, record: Bundle | CoinMove, needed: Sequence[str]) -> bool:
        """Whether every node says so: one node's word must not have the coins spent, or anybody paid, a second time."""
        if self._finality.denied(record.txids, record.asset, record.total) and self._payer.denied(needed):
            return True
        log.error("ALARM %s: %s can not be mined any more, and not every node says so", self._network.id, record.id)
        return False
