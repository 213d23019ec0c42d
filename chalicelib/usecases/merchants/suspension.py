"""Suspending merchants. Their API keys are refused, and their withdrawals wait with the reason `suspended`; money that arrives is
credited, and what is in flight goes on. Resuming undoes it.

A request is let in by its key's own item (`Gate`), and by nothing else: a suspension is written on every key. First the record
`Suspension` is stored. From then on no key is made, since making one rests on that record (`unless_suspended`), and no withdrawal
begins. Then it is carried to the keys, a few in a transaction, each on condition that the record is as it was read. Of two
operators at once the last one's word reaches every key. Where a request dies in between, the record is not `carried`, and the same
request again goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import REALMS, MerchantId, Realm, TenantId, tenant_id
from chalicelib.domain.merchants.merchants import ApiKey, Merchant
from chalicelib.domain.merchants.suspensions import ListedMerchant, Suspension
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Absent, Change, Enforce, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

KEYS_AT_ONCE = 4
"""Keys of one transaction: two items each, and the record that it rests on."""


def unless_suspended(store: Store, tenant: TenantId) -> Change:
    """The condition that a merchant is not suspended meanwhile. Raises BusinessRule where it is, Unavailable."""
    found = store.get(Suspension, tenant=tenant)
    if found is None:
        return Absent(Suspension, {"tenant": tenant})
    if found.suspended:
        raise BusinessRule("merchant", "is suspended: no key is made for it")
    return Still(found)


def listed(store: Store, merchant: Merchant) -> ListedMerchant:
    """The merchant's entry of the operator's list; version 0 where there is none yet, of merchants from before the list."""
    found = store.get(ListedMerchant, id=merchant.id)
    return found or ListedMerchant(merchant.id, merchant.name, merchant.created_at, version=0)


class Suspensions:
    """`clock` is the machines' clock, as that of keys."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def of(self, merchant: MerchantId, realms: Sequence[Realm]) -> list[Suspension | None]:
        """The record of each realm, None where there is none. Raises Unavailable."""
        return self._store.get_many([(Suspension, {"tenant": tenant_id(merchant, realm)}) for realm in realms])

    def put(self, id: MerchantId, realms: Sequence[Realm], suspended: bool, by: str, reason: str | None) -> list[Suspension]:
        """Suspend a merchant in these realms, or resume it there; the records afterwards. `by` is the id of the operator's key.

        The same again changes nothing but another reason, and goes on with keys that do not say so yet. When this returns, every
        key does. Raises NotFound, BusinessRule for a merchant that has admin keys (the operator's own), Conflict, Unavailable.
        """
        merchant = self._store.get(Merchant, id=id)
        if merchant is None:
            raise NotFound(f"No merchant {id[:80]}", {"id": id[:80]})
        if suspended and any(key.level == "admin" for realm in REALMS for key in self._keys(tenant_id(id, realm))):
            raise BusinessRule("id", "this merchant has admin keys: the operator's own merchant can not be suspended")
        until_settled(partial(self._decide, merchant, tuple(realms), suspended, by, reason))
        return [self._carry(tenant_id(id, realm)) for realm in realms]

    def _decide(self, merchant: Merchant, realms: tuple[Realm, ...], suspended: bool, by: str, reason: str | None) -> None:
        now, changes = self._clock.now_ms(), list[Change]()
        for realm, found in zip(realms, self.of(merchant.id, realms), strict=True):
            before = found or Suspension(tenant_id(merchant.id, realm), False, now, by, carried=True, version=0)
            after = replace(before, suspended=suspended, reason=reason if suspended else None)
            if before.suspended != suspended:
                after = replace(after, since=now, by=by, carried=False)
            if after != before:
                changes.append(Save(next_version(after)))
        if changes:
            entry = listed(self._store, merchant)
            self._store.commit([*changes, Save(entry.standing_in(realms, suspended))])

    def _carry(self, tenant: TenantId) -> Suspension:
        """Write the record as it is now on every key of the tenant. Raises Conflict where it changes all the time, Unavailable."""
        return until_settled(partial(self._carried, tenant))

    def _carried(self, tenant: TenantId) -> Suspension:
        found = self._store.get(Suspension, tenant=tenant)
        if found is None:
            return Suspension(tenant, False, self._clock.now_ms(), "", carried=True)
        if found.carried:
            return found
        others = [key for key in self._keys(tenant) if (key.suspended_at is not None) != found.suspended]
        for first in range(0, len(others), KEYS_AT_ONCE):
            changes: list[Change] = [Still(found)]
            for key in others[first : first + KEYS_AT_ONCE]:
                after = replace(next_version(key), suspended_at=found.since if found.suspended else None)
                changes += [Save(after), Enforce(after)]
            self._store.commit(changes)
        carried = replace(next_version(found), carried=True)
        self._store.commit([Save(carried)])
        return carried

    def _keys(self, tenant: TenantId) -> Iterator[ApiKey]:
        """The keys that are not revoked: one that is will be refused for ever."""
        after: str | None = None
        while True:
            page = self._store.page(ApiKey, limit=500, after=after, tenant=tenant)
            yield from (key for key in page.items if key.revoked_at is None)
            after = page.next
            if after is None:
                return
