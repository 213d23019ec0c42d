"""Follows stakes on a real network: receipts alone decide (money rule 8). Part of the poll; needs no key."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.domain.treasury.stakes import Stake, stake_command
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.kill_switch import put_back, stopped
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.staking import StakingNode
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Scanned, Verdicts
from chalicelib.usecases.transactions.given_up import GivenUps
from chalicelib.usecases.transactions.losses import Losses, stake_sent
from chalicelib.usecases.transactions.mined_attempts import mined_attempt
from chalicelib.usecases.transactions.replacement_bounds import worn_out
from chalicelib.usecases.transactions.sighting_gaps import NoteGaps
from chalicelib.usecases.treasury.tron.stake_booking import StakeBooking
from chalicelib.usecases.treasury.tron.staking import OPEN_AT_ONCE

log = logging.getLogger(__name__)

IDLE_SECONDS = 60
"""A stake whose signature was asked for so long ago is asked for again: a command may be lost."""


class StakeFollowing:
    """Brings the open stakes of one real network to their end."""

    def __init__(
        self,
        network: Network,
        reader: ChainReader,
        node: StakingNode,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        renewals: RenewalRules,
        verdicts: Verdicts,
    ) -> None:
        self._network, self._reader, self._node, self._renewals = network, reader, node, renewals
        self._store, self._rules, self._clock, self._verdicts = store, rules, clock, verdicts
        self._losses, self._gaps = Losses(network, reader, store), NoteGaps(network, store)
        self._given_ups = GivenUps(network, store, self._losses, verdicts)
        self._booking = StakeBooking(network, reader, store, rules, clock, verdicts)

    def work(self, more: Callable[[], bool]) -> None:
        """Raises Unavailable, Failures."""
        with Each(f"{self._network.id}: stakes") as each:
            each.take("those that are final", partial(self._booking.watch, more))
            for work in self._store.open_work("stake", self._network.id, limit=OPEN_AT_ONCE):
                if not more():
                    return
                each.take(work.id, partial(until_settled, partial(self._follow, work.id)))

    def _follow(self, stake_id: str) -> None:
        stake = self._store.get(Stake, network=self._network.id, id=stake_id)
        if stake is None or stake.status != "pending":
            return
        scanned = self._verdicts.scanned()
        mined = mined_attempt(self._network, Answers(self._reader), stake.id, stake.txids, scanned)
        if mined.receipt is not None:
            self._booking.ripen(stake, mined.receipt)
            return
        ours = stake_sent(self._network, self._rules, self._node, stake)
        if self._losses.met(stake.id, ours, scanned) or put_back(self._store, self._network.realm) is not None:
            return  # as with payments
        if self._given_ups.standing(stake.id, ours, scanned) is not None:
            self._booking.give_up(stake)
            return
        if stopped(self._store, self._network.realm):
            return  # a stake is money that leaves the hot wallet, too
        if stake.raw is None or stake.unsigned is None:
            self._ask(stake)
        elif stake.renew or self._lost(stake, ours, scanned):
            self._ask_again(stake)
        else:
            try:
                self._node.broadcast(stake.raw)
            except Refused as refused:
                log.warning("%s: stake %s is in no block and the node refuses it: %s", self._network.id, stake.id, refused)

    def _lost(self, stake: Stake, ours: Ours, scanned: Scanned) -> bool:
        """Whether no block will ever have it: every node says so, and the blocks prove it (money rule 13)."""
        coin = self._store.catalogue(self._network.realm).native(self._network.slug)
        if not self._node.renewable(stake.unsigned or "", stake.txid, self._verdicts.every_node(coin.asset, stake.amount)):
            return False
        lost = self._losses.lost(ours, scanned)
        if not lost:
            self._gaps.close(self._losses.gap(ours, scanned), scanned, self._clock.now_ms())
        return lost

    def _ask_again(self, stake: Stake) -> None:
        if worn_out(self._network, self._renewals, stake):
            return
        self._ask(replace(stake, renew=True))

    def _ask(self, wanted: Stake) -> None:
        """Ask the function that signs for its signature, or for another one in place of what has expired."""
        news = News(self._clock.now_ms())
        due = news.at - wanted.touched_at >= IDLE_SECONDS * 1000
        if not due and not (wanted.renew and wanted.raw is not None):
            return
        news.command(stake_command(wanted))
        self._store.commit([Save(replace(next_version(wanted), touched_at=news.at)), *news.emit()])
