"""Stores what a step of a collection decided: one transaction each, with the obligation where that has moved."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.treasury.collections import (
    LONGEST_MS,
    MOST_TRIES,
    Collecting,
    Collection,
    Ending,
    ParkReason,
    WaitReason,
    collection_work,
    ended,
    waited,
    went_on,
)
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.work import Command
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import Change, Close, Open, Save
from chalicelib.usecases.treasury.collection.fees import MoveFees
from chalicelib.usecases.treasury.collection.open_here import open_at
from chalicelib.usecases.treasury.moves.planning import dropped
from chalicelib.usecases.wallets.sweep_candidates import place_id

log = logging.getLogger(__name__)


class CollectionRecords:
    """Of one network of accounts. The functions that store return whether another step may follow now. They raise Conflict,
    Unavailable."""

    def __init__(self, context: NetworkContext, fees: MoveFees) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._fees = fees

    def move(self, id: str) -> Move | None:
        """Raises Unavailable."""
        return self._store.get(Move, network=self._network.id, id=id)

    def coin(self, collection: Collection) -> Coin:
        return self._store.catalogue(self._network.realm).coins[self._network.slug, collection.coin]

    def open_here(self, collection: Collection) -> Collecting:
        """The open collections of its address. Raises Unavailable."""
        return open_at(self._store, self._rules, self._network, collection.address)

    def ask(self, before: Collection) -> bool:
        """It needs an operator's word. Looked at now and then: the threshold may have changed."""
        if before.state != "waits_for_approval":
            log.warning("%s: collection %s over %d waits for approval", self._network.id, before.id, before.amount)
        after = went_on(before, "waits_for_approval", self._clock.now_ms() + LONGEST_MS)
        return self.save(before, after) and False

    def wait(self, before: Collection, reason: WaitReason, detail: str | None) -> bool:
        """It can not go on now: looked at again later, ever more rarely."""
        if before.reason != reason:
            log.warning("%s: collection %s waits: %s: %s", self._network.id, before.id, reason, detail)
        return self.save(before, waited(before, reason, detail, self._clock.now_ms())) and False

    def failed(self, before: Collection, what: str, move: Move | None) -> bool:
        """A move came to nothing: tried again after a while, and not for ever."""
        why = f"{what}: " + ("is gone" if move is None else f"{move.state}: {move.reason}")
        tried = replace(before, tries=before.tries + 1)
        if tried.tries >= MOST_TRIES:
            return self.park(tried, "failed", why)
        # The pause grows with the failures, whatever succeeded between them.
        after = waited(replace(tried, reason="failed", waits=tried.tries - 1), "failed", why, self._clock.now_ms())
        log.warning("%s: collection %s: %s", self._network.id, before.id, why)
        return self.save(before, after) and False

    def park(self, before: Collection, reason: ParkReason, detail: str) -> bool:
        """Nothing of it goes on: a sweep that is planned only is taken back, one that has its bytes is followed instead."""
        now, more = self._clock.now_ms(), list[Change]()
        sweep = self.move(before.sweeps[-1]) if before.sweeps else None
        if sweep is not None and not sweep.at_rest:
            if sweep.state != "planned":
                return self.save(before, replace(before, state="sweep_sent", look_at=now))
            more = dropped(sweep, f"its collection is parked: {reason}", now)
        after = replace(next_version(before), state="parked", reason=reason, detail=detail[:300], updated_at=now)
        self._store.commit([Save(after), Close(collection_work(before)), *more])
        log.error("ALARM %s: collection %s is parked: %s: %s", self._network.id, before.id, reason, detail)
        return False

    def end(self, before: Collection, state: Ending) -> bool:
        """It is settled. What is there beyond, or came meanwhile, asks for another one."""
        news = News(self._clock.now_ms())
        record = self.open_here(before)
        balance = self._fees.booked(before.address, self.coin(before))
        if before.again or (state == "swept" and balance.units - balance.small > 0):
            news.command(Command("collectable", self._network.id, {"id": place_id(record.address, before.coin)}))
        closing: list[Change] = [Save(record.without(before.coin)), Close(collection_work(before))]
        self._store.commit([Save(ended(before, state, news.at)), *closing, *news.emit()])
        return False

    def save(self, before: Collection, after: Collection, more: Sequence[Change] = (), news: News | None = None) -> bool:
        """`after` in place of what is stored, with its obligation where that has moved, and `more`. Always True."""
        saved = replace(after, updated_at=self._clock.now_ms(), version=version_after(before))
        works: list[Change] = []
        if collection_work(saved) != collection_work(before):
            works = [Close(collection_work(before)), Open(collection_work(saved))]
        self._store.commit([Save(saved), *works, *more, *(news.emit() if news is not None else ())])
        return True
