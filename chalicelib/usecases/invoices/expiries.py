"""Expires invoices whose time is over, round robin over merchants, as long as there is time.

The open work lies in order of time, so one merchant's hundred thousand invoices may stand before all others. Each run first reads
many rows and takes a few of every merchant. It goes on where the last run of this process stopped, and begins again behind the last
row. Then it takes all from the oldest on. A crash leaves nothing that the next run does not find: the work of an expired invoice is
closed, all other work is open.

An invoice whose payer chose coins of several networks expires once all of them are scanned to its end: its work moves from lane to
lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.invoices.choices import Choosing
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.versions import next_version
from chalicelib.domain.work import Work
from chalicelib.usecases.base.fairness import in_turn
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.base.views import Tips, Views
from chalicelib.usecases.invoices.invoices import expiry_work, work_key
from chalicelib.usecases.invoices.status import changed, expired
from chalicelib.usecases.ports.changes import Close, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

PAGE = 500
"""Rows of open work that are read at once: some 120 KB."""
GLANCED = 20_000
"""Rows that one run glances over: 40 reads."""
SHARE = 50
"""Invoices of one merchant that are closed while others may be waiting behind them."""
AT_LEAST = 200
"""Invoices that every run closes, however late it is."""
_AT_ONCE = 50


class InvoiceExpiries:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._glanced: dict[NetworkId, Work] = {}
        """Where the last glance of this process stopped. Another process begins at the oldest: later, and nothing is lost."""

    def expire_due(self, network: NetworkId, until_ms: int, more: Callable[[], bool] = lambda: True) -> int:
        """Expire the invoices of `network` whose time ended by `until_ms`, while `more` says that there is time; the number of
        invoices read.

        `until_ms` is how far the chain is known: a payment made in time is never missed because scanning was late. Raises
        Unavailable, Failures.
        """
        run = _Run(self._store, self._clock, network, f"{until_ms:015d}", more)
        with Each(f"{network}: invoices") as run.each:
            stopped = run.glance(self._glanced.pop(network, None))
            if stopped is not None:
                self._glanced[network] = stopped
            if not run.whole:
                run.from_the_oldest()
        return len(run.tried)


class _Run:
    """One run over due invoices. `whole`: one page held all of them, and they are done."""

    def __init__(self, store: Store, clock: Clock, network: NetworkId, upto: str, more: Callable[[], bool]) -> None:
        self._store, self._clock, self._network, self._upto, self._more = store, clock, network, upto, more
        self.each = Each(network)
        self.tried: set[str] = set()
        self.whole = False

    def glance(self, after: Work | None) -> Work | None:
        """A few of every merchant's; the row to go on behind at the next run, None for the oldest."""
        taken: Counter[str] = Counter()
        begun = after
        for _ in range(GLANCED // PAGE):
            page = self._page(after)
            last = len(page) < PAGE
            if begun is None and last and not self.tried:
                self.whole = self._take(in_turn(page, _owner))
                return None
            few = [work for work in in_turn(page, _owner) if self._has_a_turn(work, taken)]
            if not self._take(few):
                return after
            if last:
                return None
            after = page[-1]
            if not self._may_begin():
                break
        return after

    def from_the_oldest(self) -> None:
        """Everything, while there is time."""
        after: Work | None = None
        while True:
            page = self._page(after)
            if not self._take([work for work in in_turn(page, _owner) if work.id not in self.tried]) or len(page) < PAGE:
                return
            after = page[-1]

    def _page(self, after: Work | None) -> list[Work]:
        return self._store.open_work("expiry", self._network, upto=self._upto, after=after, limit=PAGE)

    def _has_a_turn(self, work: Work, taken: Counter[str]) -> bool:
        taken[_owner(work)] += 1
        return taken[_owner(work)] <= SHARE and work.id not in self.tried

    def _take(self, works: Sequence[Work]) -> bool:
        """Close them; whether there was time for all."""
        for start in range(0, len(works), _AT_ONCE):
            some = works[start : start + _AT_ONCE]
            if not self._may_begin():
                return False
            wanted: list[tuple[type[Any], dict[str, str]]] = [work_key(work) for work in some]
            expire: list[Callable[[], None]]
            try:
                *found, cursor = self._store.get_many([*wanted, (Cursor, {"network": self._network})])
                tip = None if cursor is None else cursor.tip
                expire = [partial(self._expire, work, invoice, tip) for work, invoice in zip(some, found, strict=True)]
            except (LookupError, ValueError, TypeError):
                # One of them can not be read: it must not keep the others.
                expire = [partial(self._expire_alone, work) for work in some]
            for work, close in zip(some, expire, strict=True):
                if not self._may_begin():
                    return False
                self.tried.add(work.id)
                self.each.take(work.id, close)
        return True

    def _expire_alone(self, work: Work) -> None:
        kind, key = work_key(work)
        cursor = self._store.get(Cursor, network=self._network)
        self._expire(work, self._store.get(kind, **key), None if cursor is None else cursor.tip)

    def _may_begin(self) -> bool:
        return len(self.tried) < AT_LEAST or self._more()

    def _expire(self, work: Work, found: Invoice | None, tip: int | None) -> None:
        """`found` as it was read a moment ago with others; after a conflict it is read by itself. Raises Conflict, also where
        another sweep has closed it: nothing is left to do then."""
        kind, key = work_key(work)
        read = [found]

        def decide() -> None:
            self._close(work, read.pop() if read else self._store.get(kind, **key), tip)

        until_settled(decide, of=work)

    def _close(self, work: Work, before: Invoice | None, tip: int | None) -> None:
        if before is None or before.manual_status is not None or expiry_work(before) != work:
            # Where it has another deadline by now, the work of that one is open.
            self._store.commit([Close(work)])
            return
        lane = None if before.choosing is None else self._behind(before, before.choosing)
        if before.choosing is not None and lane is not None:
            moved = before.choosing.in_lane(before.expires_at, [self._network], lane)
            after = replace(next_version(before), choosing=moved)
            self._store.commit([Save(after), Close(work), Open(expiry_work(after))])
            return
        news = News(self._clock.now_ms())
        views = Views(self._store.catalogue(network_parts(before.network)[0]))
        tips: Tips = tip if before.choosing is None or tip is None else {self._network: tip}
        after = expired(news, before, views, tips if before.payments else None)
        self._store.commit([*changed(before, after), Close(work), *news.emit()])

    def _behind(self, invoice: Invoice, choosing: Choosing) -> NetworkId | None:
        """A network of its choices that may not be scanned up to its end yet, None where all are: a payment in time is never
        missed. The work goes on in that network's lane, where it is due once that is scanned so far.

        A network that is not active is not waited for: nothing is seen there.
        """
        catalogue = self._store.catalogue(network_parts(invoice.network)[0])
        others = [network for network in choosing.unscanned(invoice.expires_at) if network != self._network]
        active = [network for network in others if catalogue.networks[network_parts(network)[1]].status == "active"]
        cursors = self._store.get_many([(Cursor, {"network": network}) for network in active]) if active else []
        for network, cursor in zip(active, cursors, strict=True):
            if cursor is None or cursor.block_time <= invoice.expires_at:
                return network
        return None


def _owner(work: Work) -> str:
    return work.id.split("|")[0]
