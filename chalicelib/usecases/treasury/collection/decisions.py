"""An operator's decisions about a collection: release it, refuse it, retry it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import Realm, network_parts
from chalicelib.domain.treasury.collections import Collection, collection_work, ended, went_on
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.treasury.collection.open_here import open_at

Action = Literal["approve", "reject", "retry"]


class CollectDecisions:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock) -> None:
        self._store, self._rules, self._clock = store, rules, clock

    def read(self, realm: Realm, id: str) -> Collection:
        """Raises NotFound, also for one of another realm."""
        found = self._store.get(Collection, id=id)
        if found is None or found.realm != realm:
            raise NotFound(f"No collection {id[:80]}", {"id": id[:80]})
        return found

    def decide(self, realm: Realm, id: str, action: Action, reason: str | None, by: str) -> Collection:
        """The collection as it is then. `by` is the id of the operator's key. Raises NotFound, BusinessRule, Unavailable."""

        def take() -> Collection:
            before = self.read(realm, id)
            now = self._clock.now_ms()
            noted = replace(before, decided_by=by, decided_at=now, note=reason)
            if action == "retry":
                return self._go_on(before, replace(noted, tries=0, topups_since=0), ("parked", "waiting"), now)
            if action == "approve":
                return self._go_on(before, replace(noted, approved=before.amount), ("waits_for_approval",), now)
            _check(before, ("waits_for_approval", "parked"), action)
            after = ended(noted, "rejected", now)
            network = self._store.catalogue(realm).networks[network_parts(before.network)[1]]
            record = open_at(self._store, self._rules, network, before.address)
            works = [] if before.state == "parked" else [Close(collection_work(before))]
            self._store.commit([Save(after), Save(record.past(before.id)), *works])
            return after

        return until_settled(take)

    def _go_on(self, before: Collection, noted: Collection, fitting: tuple[str, ...], now: int) -> Collection:
        _check(before, fitting, "approve" if "waits_for_approval" in fitting else "retry")
        after = replace(went_on(noted, "planned", now), updated_at=now, version=version_after(before))
        works: list[Change] = [] if before.state == "parked" else [Close(collection_work(before))]
        works.append(Open(collection_work(after)))
        same = before.state != "parked" and collection_work(after) == collection_work(before)
        self._store.commit([Save(after), *([] if same else works)])
        return after


def _check(before: Collection, fitting: tuple[str, ...], action: str) -> None:
    if before.state not in fitting:
        raise BusinessRule("action", f"the collection is {before.state}: {action} is for one that is {' or '.join(fitting)}")
