"""A reconciliation run of one network: step by step through its places (`walk`), as far as the time allows, and on from there.

One record has the whole state of a run. Each step ends in one commit of it, by its version. So a step that dies has done nothing,
of two workers at once one counts, and a step that is done is never done again. A network that can not be read now is retried for
hours; then the run ends, and says that it is not complete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from chalicelib.domain.catalogue.coin_settings import collects
from chalicelib.domain.ids import AssetId, TenantId, new_id, tenant_id
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.domain.merchants.merchants import Merchant
from chalicelib.domain.reconciliation import (
    MOST_TROUBLE_MS,
    Comparison,
    ComparisonReport,
    Difference,
    DifferencesPart,
    Place,
    ReconciliationOrder,
    Seen,
    Unread,
    owed_by,
    part_after,
    run_due,
)
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Change, Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Halted, Unavailable
from chalicelib.usecases.ports.store import Span
from chalicelib.usecases.reconciliation.comparisons import Looks
from chalicelib.usecases.reconciliation.reports import parts_of
from chalicelib.usecases.reconciliation.sweeps import swept_since
from chalicelib.usecases.reconciliation.walk import Walk
from chalicelib.usecases.wallets.sweep_candidates import hint, open_hint
from chalicelib.usecases.wallets.utxos import pays_from_coins

log = logging.getLogger(__name__)

Step = Literal["idle", "on", "waits"]
"""`idle`: no run is open; `on`: there is more to do now; `waits`: for a block, for time, or for a node."""
AGAIN_AT_ONCE = 25
"""Suspects that one step looks at."""
MOST_KNOWN = 25
"""Parts of the last report in which it is looked for when a difference was first seen."""
_MERCHANTS = 500


class ReconciliationRun:
    """`page` is how many rows of the table one step reads. `clock` is the machine's: runs are the operator's, not the realm's."""

    def __init__(self, context: NetworkContext, looks: Looks, clock: Clock, page: int = 500) -> None:
        self._context, self._network, self._store = context, context.network, context.store
        self._looks, self._clock, self._walk = looks, clock, Walk(context, looks, page)
        self._since: tuple[str, Mapping[tuple[str, AssetId, bool], int]] = ("", {})

    def begin(self) -> bool:
        """Begin a run where one is due: a day after the last, or when one was ordered. Whether one is open now.

        Raises Conflict, Unavailable.
        """
        state, order = self._store.get_many(
            [(Comparison, {"network": self._network.id}), (ReconciliationOrder, {"realm": self._network.realm})]
        )
        if state is not None and state.open:
            return True
        now = self._clock.now_ms()
        ordered = order is not None and (state is None or order.at > state.started_at)
        if not run_due(state, order, now):
            return False
        version = version_after(state)
        part = None if ordered else part_after(state)
        self._store.commit(
            [Save(Comparison(self._network.id, new_id("rec", now), now, now, part=part, version=version, kept=version))]
        )
        return True

    def work(self, more: Callable[[], bool]) -> Step:
        """Take as many steps of the open run as `more` allows. Raises any unexpected error."""
        step: Step = "on"
        while step == "on" and more():
            step = self.step()
        return step

    def step(self, patience_ms: int = MOST_TROUBLE_MS) -> Step:
        """One step of the open run. Where the network could not be read for `patience_ms`, the run ends incomplete."""
        state = self._store.get(Comparison, network=self._network.id)
        if state is None or not state.open:
            return "idle"
        if state.kept != state.version:
            # An older version wrote it last, and knows nothing of parts: what it went through is not what a sum is made of.
            state = state.begun_anew()
        try:
            after = self._next(state)
        except (Unavailable, Halted, LookupError) as error:
            return self._troubled(state, error, patience_ms)
        if after is None:
            return "waits"
        return self._commit(state, replace(after, trouble=None, trouble_since=None))

    def _troubled(self, state: Comparison, error: Exception, patience_ms: int) -> Step:
        now = self._clock.now_ms()
        since = now if state.trouble_since is None else state.trouble_since
        log.warning("%s: it can not be compared now: %s", self._network.id, error)
        after = replace(state, trouble=" ".join(str(error).split())[:300], trouble_since=since)
        if now - since >= patience_ms:
            after = replace(after, phase="done")
        return "waits" if self._commit(state, after) == "on" else "idle"

    def _commit(self, before: Comparison, after: Comparison) -> Step:
        now = self._clock.now_ms()
        version = version_after(before)
        after = replace(after, updated_at=now, version=version, kept=version)
        after, full = after.parted()
        changes: list[Change] = []
        if full or not after.open:
            known = self._last()
            generation = ((0 if known is None else known.version) + 1) % 2
            changes = [Save(self._part(after.run, generation, *part)) for part in full]
        if not after.open:
            report = self._report(after, now, known)
            # The report has all lists: the state of the next run begins empty anyway.
            changes += [Save(replace(after, sums=(), suspects=(), differences=(), worst=(), skipped=())), Save(report)]
            # Before it is stored: twice is better than never, which a crash in between would make of it.
            self._tell(report)
        else:
            changes.append(Save(after))
        try:
            self._store.commit(changes)
        except Conflict:
            log.info("%s: somebody else compares it at the same time", self._network.id)
            return "waits"
        return "on" if after.open else "idle"

    def _part(self, run: str, generation: int, number: int, differences: tuple[Difference, ...]) -> DifferencesPart:
        named = {"network": self._network.id, "generation": str(generation), "part": f"{number}"}
        before = self._store.get(DifferencesPart, **named)
        version = version_after(before)
        return DifferencesPart(self._network.id, generation, number, run, differences, version)

    def _next(self, state: Comparison) -> Comparison | None:
        """The run after one step; None where it has to wait."""
        match state.phase:
            case "before" | "after":
                return self._owed(state)
            case "walk":
                return self._walked(state)
            case _:
                return self._looked_again(state)

    def _owed(self, state: Comparison) -> Comparison:
        """With what the next merchants have."""
        page = self._store.sweep(Merchant, limit=_MERCHANTS, after=state.after or None)
        span = Span(f"{self._network.id}:", f"{self._network.id}:~")
        balances: list[tuple[TenantId, AssetId, int]] = []
        for merchant in page.items:
            tenant, after = tenant_id(merchant.id, self._network.realm), None
            while True:
                found = self._store.page(Balance, limit=200, after=after, span=span, tenant=tenant)
                balances += [(b.tenant, b.asset, b.available + b.frozen + b.held) for b in found.items]
                after = found.next
                if after is None:
                    break
        state = replace(state.owing(owed_by(balances)), after=page.next or "")
        if page.next is not None:
            return state
        if state.phase == "before":
            return replace(state, phase="walk")
        short = [each.asset for each in state.sums if each.short]
        state = state.sweeping(swept_since(self._context, short, state.started_at))
        return state.over_again() if state.unsure else replace(state, phase="done")

    def _walked(self, state: Comparison) -> Comparison:
        """After a look at the next places."""
        places, after = self._walk.step(state)
        seen = self._looks.look(places) if places else []
        self._hint(seen)
        state = state.seeing(seen, self._clock.now_ms(), self._known())
        return replace(state, after=after or "", phase="walk" if after is not None else "again")

    def _hint(self, seen: Sequence[Seen | Unread]) -> None:
        """Open hints for balances at deposit addresses, which may have to be collected: each run anew, whatever became of older
        ones."""
        network = self._network
        coins = {coin.asset for coin in self._context.coins() if collects(coin)}
        if not coins or network.status != "active":
            return
        for deposit in self._looks.unspent:
            open_hint(self._store, network.id, deposit)
        for each in seen if not pays_from_coins(network) else ():
            place = each.place
            if isinstance(each, Seen) and place.role == "user" and place.asset in coins and each.units > 0:
                hint(self._store, network, WalletBalance(network.id, place.address, place.asset, each.units))

    def _looked_again(self, state: Comparison) -> Comparison | None:
        if not state.suspects:
            return replace(state, phase="after", after="")
        now, block = self._clock.now_ms(), self._looks.block()
        due = [suspect for suspect in state.suspects if suspect.due(now, block)][:AGAIN_AT_ONCE]
        if not due:
            return None
        coins = {c.asset: c for c in self._context.coins()}
        places = [Place(s.address, s.role, s.asset, self._looks.form(coins[s.asset].contract), s.staked) for s in due]
        return state.seeing(self._looks.look(places), now, self._known())

    def _last(self) -> ComparisonReport | None:
        return self._store.get(ComparisonReport, network=self._network.id)

    def _known(self) -> Mapping[tuple[str, AssetId, bool], int]:
        """When the differences of the last report were first seen."""
        report = self._last()
        if report is None:
            return {}
        if report.run != self._since[0]:
            listed = list(report.differences)
            for part in parts_of(self._store, report, range(2, min(report.parts, MOST_KNOWN) + 2)):
                listed += part.differences
            self._since = report.run, {d.key: d.first_seen for d in listed}
        return self._since[1]

    def _report(self, state: Comparison, now: int, before: ComparisonReport | None) -> ComparisonReport:
        complete = state.trouble is None
        return ComparisonReport(
            network=state.network,
            run=state.run,
            started_at=state.started_at,
            finished_at=now,
            complete=complete,
            looked=state.looked,
            first_block=state.first_block,
            last_block=state.last_block,
            sums=state.sums,
            differences=state.differences,
            found=state.found,
            parts=state.parts,
            worst=state.worst,
            skipped=state.skipped,
            unread=state.unread,
            trouble=state.trouble,
            version=version_after(before),
        )

    def _tell(self, report: ComparisonReport) -> None:
        """At least once for each run."""
        name = self._network.id
        if report.clean:
            log.info("%s: %d places are as the ledger says", name, report.looked)
            return
        if report.found:
            first = report.worst[0]
            net = [f"{change:+d} of {sums.asset}" for sums in report.sums if (change := sums.held - sums.expected)]
            log.error(
                "ALARM %s: reconciliation found %d places that differ from the ledger, such as %s (%s): %d units of %s, not %d. "
                "In all: %s",
                *(name, report.found, first.address, first.role, first.held, first.asset, first.expected),
                ", ".join(net) or "as much as there has to be",
            )
        if report.unread:
            place = report.skipped[0]
            log.error(
                "ALARM %s: reconciliation could not compare %d places, such as %s at %s: %s",
                *(name, report.unread, place.asset, place.address, place.why),
            )
        for sums in report.insolvent:
            log.error("ALARM %s: %d units of %s are owed, and %d are there", name, sums.liabilities, sums.asset, sums.assets)
        if not report.complete:
            log.error("ALARM %s: reconciliation could not compare everything: %s", name, report.trouble)
