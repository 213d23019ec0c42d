"""The first API key of a merchant, made by the operator.

Further keys are made by the merchant's own keys. An operator's API key makes the first one alone, so that one that was stolen
is no way to a merchant's money; a merchant that has lost all of its keys gets another one by the operator's command line.
"""

from __future__ import annotations

from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import TenantId, tenant_id
from chalicelib.domain.merchants.merchants import ApiKey, Tally
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.merchants.access import alive, issue_key
from chalicelib.usecases.merchants.api_keys import Made, NoLongerValid, NotHeld, Terms
from chalicelib.usecases.merchants.merchants import Directory
from chalicelib.usecases.merchants.suspension import unless_suspended
from chalicelib.usecases.ports.changes import Change, Enforce, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store


class FirstKeys:
    """`clock` is the machines' clock."""

    def __init__(self, store: Store, clock: Clock, directory: Directory) -> None:
        self._store, self._clock, self._directory = store, clock, directory

    def has_keys(self, tenant: TenantId) -> bool:
        """Whether the merchant has, or had, any API key in this realm. Raises Unavailable."""
        return self._tally(tenant) is not None or bool(self._store.page(ApiKey, limit=1, tenant=tenant).items)

    def creating(self, maker: ApiKey, id: str, terms: Terms) -> Creation[Made]:
        """Prepare the first API key of a merchant, in the realm of the operator's key that makes it. It has no admin level, and
        nothing of the maker's restrictions: it is used by others, elsewhere.

        A try raises NotFound, NotHeld (a permission that the maker lacks), NoLongerValid, BusinessRule: the merchant has, or had,
        a key there, or is suspended.
        """

        def prepare() -> Prepared[Made]:
            now, merchant = self._clock.now_ms(), self._directory.get(id)
            tenant = tenant_id(merchant.id, maker.realm)
            by = self._store.get(ApiKey, tenant=maker.tenant, id=maker.id)
            if by is None or not alive(by, now):
                raise NoLongerValid(maker)
            missing = [each for each in terms["permissions"] if each not in by.permissions]
            if missing:
                raise NotHeld(missing, by.permissions)
            if self.has_keys(tenant):
                raise BusinessRule("id", "this merchant has, or had, an API key here: its own keys make others")
            made = issue_key(merchant=merchant.id, realm=maker.realm, level="client", now_ms=now, created_by=by.id, **terms)
            first = Tally(tenant, "keys", 1)  # of two at once, one finds the other's
            changes: list[Change] = [Still(by), Save(made[0]), Enforce(made[0]), Save(first), unless_suspended(self._store, tenant)]
            return Prepared(made, changes)

        return Creation(self._store, prepare)

    def _tally(self, tenant: TenantId) -> Tally | None:
        return self._store.get(Tally, tenant=tenant, of="keys")
