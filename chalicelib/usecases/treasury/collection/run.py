"""The poll's run over the collections of an account network: a bounded part in each run.

Those under way first. Then, by turns, new ones (hints: of those that are seen, what is worth most) and those that wait and are due,
the longest first: many that only wait, dust that anybody can send, keep nothing else from being started. Only what is in motion
after its look counts as under way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial

from chalicelib.domain.catalogue.coin_settings import collects
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.collections import IN_MOTION, Collection, pressing
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.work import Work, WorkKind, time_order
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.treasury.collection.fees import MoveFees
from chalicelib.usecases.treasury.collection.planning import CollectPlanning
from chalicelib.usecases.treasury.collection.steps import CollectSteps
from chalicelib.usecases.wallets.sweep_candidates import hint_place

log = logging.getLogger(__name__)

MOST_UNDER_WAY = 200
"""No more are started while so many are under way: withdrawals pay from the same hot wallet, one nonce after the other."""
MOST_LOOKS = 1_000
"""Collections, and hints, that one run looks at."""
_PAGE = 100
_TURN = 20
"""So many of one kind, then of the other."""


class CollectRun:
    """Of one network of accounts."""

    def __init__(self, context: NetworkContext, planning: CollectPlanning, steps: CollectSteps, fees: MoveFees) -> None:
        self._network, self._store, self._clock = context.network, context.store, context.clock
        self._planning, self._steps, self._fees = planning, steps, fees

    def work(self, more: Callable[[], bool]) -> None:
        """Raises Unavailable, Failures. Asks for nothing where no coin of the network is collected."""
        catalogue = self._store.catalogue(self._network.realm)
        if not any(collects(coin) for coin in catalogue.coins_of(self._network.slug)):
            return
        with Each(f"{self._network.id}: collections") as each:
            under_way, waiting = 0, list[str]()
            for page in self._pages("collection", time_order(self._clock.now_ms())):
                records = self._records([work.id for work in page])
                going = [c for c in records if pressing(c)]
                waiting += [c.id for c in records if not pressing(c)]
                for id in self._moved(going):
                    if not more():
                        return
                    each.take(id, partial(self._look, id))
                under_way += self._in_motion([c.id for c in going])
            hints = self._hints() if under_way < MOST_UNDER_WAY else []
            while (hints or waiting) and under_way < MOST_UNDER_WAY and more():
                begun: list[tuple[bool, str]] = []
                turn, hints = hints[:_TURN], hints[_TURN:]
                for hint in turn[: MOST_UNDER_WAY - under_way]:
                    if more():
                        each.take(hint.id, partial(self._begin, hint, begun))
                # Native coins last: what is at the address may pay for its tokens.
                due, waiting = waiting[:_TURN], waiting[_TURN:]
                looked = [id for _, id in sorted(begun)] + due
                for id in looked:
                    if not more():
                        break
                    each.take(id, partial(self._look, id))
                under_way += self._in_motion(looked)

    def _look(self, id: str) -> None:
        try:
            self._steps.advance(id)
        except Conflict:
            raise
        except Exception as error:
            # It must not be the first that every run spends its time on.
            self._steps.put_off(id, error)
            raise

    def _begin(self, hint: Work, begun: list[tuple[bool, str]]) -> None:
        id = self._planning.plan(hint)
        if id is not None:
            native = self._store.catalogue(self._network.realm).native(self._network.slug)
            begun.append((hint_place(hint.id)[1] == native.slug, id))

    def _hints(self) -> list[Work]:
        """By their worth, the dearest first; those without a rate last. Raises Unavailable."""
        works = [work for page in self._pages("collectable", None) for work in page]
        if len(works) <= _TURN:
            return works
        coins = {coin.slug: coin for coin in self._store.catalogue(self._network.realm).coins_of(self._network.slug)}
        values: dict[str, Decimal] = {}
        for start in range(0, len(works), _PAGE):
            places = {work.id: hint_place(work.id) for work in works[start : start + _PAGE] if hint_place(work.id)[1] in coins}
            keys = [
                (WalletBalance, {"network": self._network.id, "address": address, "asset": coins[slug].asset})
                for address, slug in places.values()
            ]
            found: list[WalletBalance | None] = self._store.get_many(keys) if keys else []
            for (id, (_, slug)), balance in zip(places.items(), found, strict=True):
                value = None if balance is None else self._fees.value(coins[slug], balance.units)
                if value is not None:
                    values[id] = value
        return sorted(works, key=lambda work: (-values.get(work.id, Decimal(0)), work.id))

    def _records(self, ids: list[str]) -> list[Collection]:
        found: list[Collection | None] = known_of(self._store, [(Collection, {"id": id}) for id in ids]) if ids else []
        return [collection for collection in found if collection is not None]

    def _in_motion(self, ids: list[str]) -> int:
        return sum(collection.state in IN_MOTION for collection in self._records(ids))

    def _moved(self, records: list[Collection]) -> list[str]:
        """Those about which there is something new: most wait for a move that is on its way."""
        awaited = {c.id: move for c in records if (move := _awaited(c)) is not None}
        wanted = [(Move, {"network": self._network.id, "id": id}) for id in awaited.values()]
        moves: list[Move | None] = known_of(self._store, wanted) if wanted else []
        resting = {id for id, move in zip(awaited, moves, strict=True) if move is None or move.at_rest or move.reason is not None}
        return [c.id for c in records if c.id not in awaited or c.id in resting]

    def _pages(self, kind: WorkKind, upto: str | None) -> Iterator[list[Work]]:
        after: Work | None = None
        for _ in range(MOST_LOOKS // _PAGE):
            page = self._store.open_work(kind, self._network.id, upto=upto, after=after, limit=_PAGE)
            if page:
                yield page
            if len(page) < _PAGE:
                return
            after = page[-1]


def _awaited(collection: Collection) -> str | None:
    """The move that the next step waits for."""
    if collection.state == "topup_sent":
        return collection.topups[-1]
    return collection.sweeps[-1] if collection.state == "sweep_sent" else None
