"""Rounds of the archive: all merchants of a realm one after the other, each one's old invoices from the oldest on, then its old
deposits without an invoice.

A list has no archived invoice, so what a round finds is what is still in the tables. Its place is stored after each page: dying in
between repeats a page, which is found empty then. A round begins a day after the last one ended, since invoices that can not leave
are looked at again each time; those that are too large are an alarm where a round meets more of them than the last one did. Ages
are counted in machine time: a realm's own may be moved ahead by a developer.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chalicelib.domain.archive.payments import DAY_MS, SAID_MS, ArchiveRound, stands_alone
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import Realm, TenantId, first_id, place_in_time
from chalicelib.domain.merchants.suspensions import ListedMerchant
from chalicelib.domain.versions import next_version
from chalicelib.usecases.archive.archiving import Archiving, Outcome
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Listed, Span, Store

log = logging.getLogger(__name__)

_PAGE = 50


class ArchiveRounds:
    def __init__(self, realm: Realm, store: Store, archiving: Archiving, clock: Clock, after_days: int) -> None:
        """`clock` is the machine's."""
        if after_days <= 0:
            raise ValueError("nothing leaves the tables while the archive is off")
        self._realm, self._store, self._archiving, self._clock, self._after_days = realm, store, archiving, clock, after_days

    def work(self, keep_going: Callable[[], bool]) -> int:
        """Go on with the round, or begin a due one, while `keep_going`; how many payments were archived. One that fails does not
        keep the others. Raises `Failures` at the end, Unavailable."""
        now = self._clock.now_ms()
        round_ = self._begun(now)
        archived = 0
        if round_ is None:
            return archived
        with Each(f"archive {self._realm}") as each:
            while round_ is not None and keep_going():
                archived_now, round_ = self._page(round_, now, each)
                archived += archived_now
        return archived

    def _begun(self, now: int) -> ArchiveRound | None:
        """The round that goes on, or begins; None where none is due. What lists cover is said a while before anything leaves
        them."""
        known = self._store.get(ArchiveRound, realm=self._realm) or ArchiveRound(self._realm)
        if known.merchant is None and now - known.ended_at < DAY_MS:
            return None
        before = (now // DAY_MS - self._after_days) * DAY_MS
        if known.merchant is None and before > known.before:  # fixed for the round: a walk longer than a day would begin anew
            known = self._saved(replace(known, before=before, said_at=now))
        return known if now - known.said_at >= SAID_MS else None

    def _page(self, round_: ArchiveRound, now: int, each: Each) -> tuple[int, ArchiveRound | None]:
        """Archive a page of one merchant's invoices, and behind the last one a page of its deposits without an invoice; the round
        behind it, None at its end. Behind a merchant's last page that is the next merchant's beginning: one write for both."""
        if round_.after is None:
            return 0, self._next_merchant(round_, now)
        tenant = TenantId(f"{round_.merchant}:{self._realm}")
        outcomes: Counter[Outcome] = Counter()
        if round_.after < round_.behind_invoices:
            found = self._store.places(
                Listed("inv", "time", tenant), limit=_PAGE, after=round_.after, span=Span(high=round_.behind_invoices)
            )
            ids = [place.sk for place in found.places]
            outcomes += self._counted(tenant, self._archiving.archive_invoices(tenant, ids, round_.before, each))
            if found.more:
                return self._behind(round_, outcomes, after=found.places[-1].position)
            round_ = replace(round_, after=round_.behind_invoices, deposits_after=None)
        found = self._store.places(
            Listed("tx", "time", tenant), limit=_PAGE, after=round_.deposits_after, span=Span(high=place_in_time(round_.before, ""))
        )
        alone = [d.id for d in self._store.at(found.places, known_only=True) if isinstance(d, Deposit) and stands_alone(d)]
        outcomes += self._counted(tenant, self._archiving.archive_deposits(tenant, alone, round_.before, each))
        if found.more:
            return self._behind(round_, outcomes, deposits_after=found.places[-1].position)
        return outcomes["archived"], self._next_merchant(replace(round_, large=round_.large + outcomes["large"]), now)

    def _counted(self, tenant: TenantId, outcomes: Mapping[str, Outcome]) -> Counter[Outcome]:
        for id, outcome in outcomes.items():
            if outcome == "large":
                log.warning("%s of %s has too many rows for the archive: it stays", id, tenant)
        return Counter(outcomes.values())

    def _behind(self, round_: ArchiveRound, outcomes: Counter[Outcome], **place: str) -> tuple[int, ArchiveRound]:
        changed: dict[str, Any] = {"large": round_.large + outcomes["large"], **place}
        return outcomes["archived"], self._saved(replace(round_, **changed))

    def _next_merchant(self, round_: ArchiveRound, now: int) -> ArchiveRound | None:
        page = self._store.page(ListedMerchant, limit=1, after=round_.merchant)
        round_ = replace(round_, deposits_after=None)
        if page.items:
            return self._saved(replace(round_, merchant=page.items[0].id, after=first_id("inv", 0)))
        if round_.large > round_.large_before:
            log.warning("ALARM archive %s: %d payments have too many rows and stay", self._realm, round_.large)
        self._saved(replace(round_, merchant=None, after=None, ended_at=now, large=0, large_before=round_.large))
        return None

    def _saved(self, round_: ArchiveRound) -> ArchiveRound:
        after = next_version(round_)
        self._store.commit([Save(after)])
        return after
