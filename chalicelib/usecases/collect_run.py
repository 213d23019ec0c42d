"""What the poll of a network of accounts does for its collections, a bounded part of it in each run: those under way first."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial

from chalicelib.domain.catalogue import Network
from chalicelib.domain.coin_settings import collects
from chalicelib.domain.collecting import Collection
from chalicelib.domain.moves import Move
from chalicelib.domain.work import Work, WorkKind, time_order
from chalicelib.usecases.collect_hints import hint_place
from chalicelib.usecases.collect_planning import CollectPlanning
from chalicelib.usecases.collect_steps import CollectSteps
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.trying import Each

log = logging.getLogger(__name__)

MOST_UNDER_WAY = 200
"""No more are begun while so many are under way: withdrawals pay from the same hot wallet, one nonce after the other."""
MOST_LOOKS = 1_000
"""Collections, and hints, that one run looks at."""
_PAGE = 100


class CollectRun:
    """Of one network of accounts."""

    def __init__(self, network: Network, store: Store, clock: Clock, planning: CollectPlanning, steps: CollectSteps) -> None:
        self._network, self._store, self._clock, self._planning, self._steps = network, store, clock, planning, steps

    def work(self, more: Callable[[], bool]) -> None:
        """Raises Unavailable, Failures. Asks for nothing where no coin of the network is collected."""
        catalogue = self._store.catalogue(self._network.realm)
        if not any(collects(coin) for coin in catalogue.coins_of(self._network.slug)):
            return
        with Each(f"{self._network.id}: collections") as each:
            under_way = 0
            for page in self._pages("collection", time_order(self._clock.now_ms())):
                under_way += len(page)
                for id in self._moved(page):
                    if not more():
                        return
                    each.take(id, partial(self._steps.advance, id))
            for page in self._pages("collectable", None):
                begun: list[tuple[bool, str]] = []
                for hint in page:
                    if under_way + len(begun) >= MOST_UNDER_WAY or not more():
                        break
                    each.take(hint.id, partial(self._begin, hint, begun))
                # Native coins last: what is at the address may pay for its tokens.
                for _, id in sorted(begun):
                    each.take(id, partial(self._steps.advance, id))
                under_way += len(begun)
                if under_way >= MOST_UNDER_WAY or not more():
                    return

    def _begin(self, hint: Work, begun: list[tuple[bool, str]]) -> None:
        id = self._planning.plan(hint)
        if id is not None:
            native = self._store.catalogue(self._network.realm).native(self._network.slug)
            begun.append((hint_place(hint.id)[1] == native.slug, id))

    def _moved(self, page: list[Work]) -> list[str]:
        """Those of a page about which there is something new: most wait for a move that is on its way."""
        records: list[Collection | None] = self._store.get_many([(Collection, {"id": work.id}) for work in page])
        awaited = {c.id: move for c in records if c is not None and (move := _awaited(c)) is not None}
        wanted = [(Move, {"network": self._network.id, "id": id}) for id in awaited.values()]
        moves: list[Move | None] = self._store.get_many(wanted) if wanted else []
        resting = {id for id, move in zip(awaited, moves, strict=True) if move is None or move.at_rest or move.reason is not None}
        return [c.id for c in records if c is not None and (c.id not in awaited or c.id in resting)]

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
