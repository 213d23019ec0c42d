"""Lots of moves out of a service wallet of an account network: one lot per wallet and coin is under way at a time.

The record `Distribution` names the moves of the lot, and is saved with their plan.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.treasury.collections import FIRST_WAIT_MS, LONGEST_MS, Distribution
from chalicelib.domain.treasury.moves import Move, Origin
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Change, Save

log = logging.getLogger(__name__)


class Lots:
    """Of one network of accounts. Each step raises Conflict, Unavailable."""

    def __init__(self, context: NetworkContext) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock

    def place(self, wallet: Wallet) -> str:
        return form_of(self._rules, self._network, wallet.address)

    def record(self, wallet: Wallet, coin: Coin) -> Distribution:
        place = self.place(wallet)
        found = self._store.get(Distribution, network=self._network.id, address=place, asset=coin.asset)
        return found or Distribution(self._network.id, place, coin.asset)

    def ready(self, wallet: Wallet, coin: Coin) -> Distribution | None:
        """The wallet's record, where nothing is under way and nothing has to wait. What has come to rest is taken note of first."""
        return until_settled(lambda: self._at_rest(wallet, coin))

    def origin(self, record: Distribution, number: int) -> Origin:
        """Of the `number`-th move of the record's next lot, from 1."""
        return Origin(self._network.id, f"{self._network.id}|{record.id}", record.number + number, self._clock.now_ms())

    def plan(self, record: Distribution, moves: Sequence[Move], changes: Sequence[Change], news: News) -> None:
        """Store the next lot: `record` names `moves`, which `changes` plan."""
        ids = tuple(move.id for move in moves)
        after = replace(next_version(record), number=record.number + len(moves), moves=ids, reason=None)
        self._store.commit([Save(after), *changes, *news.emit()])

    def say(self, record: Distribution, reason: str | None) -> None:
        """Note for operators what the wallet's balance waits for."""
        if record.reason == reason:
            return
        log.info("%s: what %s has of %s waits: %s", record.network, record.address, record.asset, reason)
        self._store.commit([Save(replace(next_version(record), reason=reason))])

    def put_off(self, record: Distribution, reason: str) -> None:
        """It came to nothing: an alarm, and another try after a while."""
        pause = min(FIRST_WAIT_MS * 2 ** min(record.tries, 20), 24 * LONGEST_MS)
        look_at = self._clock.now_ms() + pause
        after = replace(record, moves=(), topups=0, tries=record.tries + 1, look_at=look_at, reason=reason[:300])
        self._store.commit([Save(replace(after, version=version_after(record)))])
        log.error("ALARM %s: what %s has of %s can not go on: %s", record.network, record.address, record.asset, reason)

    def _at_rest(self, wallet: Wallet, coin: Coin) -> Distribution | None:
        record = self.record(wallet, coin)
        if record.moves:
            wanted = [(Move, {"network": self._network.id, "id": id}) for id in record.moves]
            moves: list[Move | None] = self._store.get_many(wanted)
            if any(move is not None and not move.at_rest for move in moves):
                return None
            bad = [move for move in moves if move is not None and move.state != "settled"]
            if bad:
                self.put_off(record, f"move {bad[0].id}: {bad[0].state}: {bad[0].reason}")
                return None
            record = replace(next_version(record), moves=(), tries=0, look_at=0)
            self._store.commit([Save(record)])
        return record if record.look_at <= self._clock.now_ms() else None
