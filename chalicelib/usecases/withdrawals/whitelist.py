"""The merchant's whitelist: trusted addresses, with limits.

While multisig is enabled its signers guard what lets more money go: an address that is added, a limit that is raised or taken
away. Trusting less needs nobody.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from chalicelib.domain.addresses.addresses import payees_place
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.errors import BusinessRule, InvalidAddress, NotFound
from chalicelib.domain.ids import NetworkId, TenantId, network_parts
from chalicelib.domain.merchants.settings import MerchantSettings
from chalicelib.domain.screening.risk import Payees, mark_of
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.approvals import whitelist_text
from chalicelib.domain.withdrawals.whitelist import WhitelistEntry, entry_id
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.merchants.signer_guard import Signatures, check_signed
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Page, Store


class Whitelist:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock) -> None:
        self._store, self._rules, self._clock = store, rules, clock

    def adding(
        self,
        tenant: TenantId,
        network: Network,
        address: str,
        label: str,
        daily_limit: str | None,
        monthly_limit: str | None,
        signatures: Signatures = (),
    ) -> Creation[WhitelistEntry]:
        """Prepare to trust an address. Limits are plain decimals in coin units, for each coin by itself; zero or None: no limit.

        Raises InvalidAddress, BusinessRule (a daily limit over the monthly one); a try raises BusinessRule (on the list already,
        signatures are missing).
        """
        try:
            shown = self._rules.normalize(network.id, address)
        except ValueError as error:
            details = {"address": address[:120], "network": network.slug}
            raise InvalidAddress(f"Not an address of {network.slug}: {error}", details) from error
        daily, monthly = _limits(daily_limit, monthly_limit)
        name = entry_id(tenant, network.id, shown)

        def prepare() -> Prepared[WhitelistEntry]:
            now = self._clock.now_ms()
            before, settings, alike = self._guarded(tenant, name, payees_place(network), shown)
            if before is not None and before.removed_at is None:
                raise BusinessRule("address", f"is on the whitelist for {network.slug} already, as {before.id}")
            version = version_after(before)
            entry = WhitelistEntry(name, tenant, network.id, shown, label, now, now, daily, monthly, version=version)
            _check_guarded(settings, 0 if before is None else before.version, entry, signatures)
            # From now on an address that only looks like it is told from it.
            trusted = alike.with_trusted(shown)
            return Prepared(entry, [Save(entry), *([] if trusted is None else [Save(trusted)])])

        return Creation(self._store, prepare)

    def get(self, tenant: TenantId, name: str) -> WhitelistEntry:
        """Raises NotFound, also for another merchant's."""
        return _there(self._store.get(WhitelistEntry, tenant=tenant, id=name), name)

    def page(self, tenant: TenantId, limit: int, after: str | None = None, newest_first: bool = True) -> Page[WhitelistEntry]:
        return self._store.page(WhitelistEntry, limit=limit, after=after, newest_first=newest_first, tenant=tenant)

    def change(self, tenant: TenantId, name: str, signatures: Signatures = (), **changes: str | None) -> WhitelistEntry:
        """Change `label`, `daily_limit`, `monthly_limit`; other fields stay. Raises NotFound, BusinessRule."""

        def decide() -> WhitelistEntry:
            found, settings = self._store.get_many(
                [(WhitelistEntry, {"tenant": tenant, "id": name}), (MerchantSettings, {"tenant": tenant})]
            )
            settings = settings or MerchantSettings(tenant)
            before = _there(found, name)
            after = replace(next_version(before), **changes, updated_at=self._clock.now_ms())  # type: ignore[arg-type]
            daily, monthly = _limits(after.daily_limit, after.monthly_limit)
            after = replace(after, daily_limit=daily, monthly_limit=monthly)
            if _more(before.daily_limit, daily) or _more(before.monthly_limit, monthly):
                _check_guarded(settings, before.version, after, signatures)
            self._store.commit([Save(after)])
            return after

        return until_settled(decide)

    def _guarded(
        self, tenant: TenantId, name: str, place: NetworkId, address: str
    ) -> tuple[WhitelistEntry | None, MerchantSettings, Payees]:
        """The entry with this id, the settings that say who guards it, and payees that look like its address; one call."""
        mark = mark_of(address)
        entry, settings, alike = self._store.get_many(
            [
                (WhitelistEntry, {"tenant": tenant, "id": name}),
                (MerchantSettings, {"tenant": tenant}),
                (Payees, {"tenant": tenant, "network": place, "mark": mark}),
            ]
        )
        return entry, settings or MerchantSettings(tenant), alike or Payees(tenant, place, mark)

    def remove(self, tenant: TenantId, name: str) -> WhitelistEntry:
        """Trust an address no more. Raises NotFound."""

        def decide() -> WhitelistEntry:
            before = self.get(tenant, name)
            now = self._clock.now_ms()
            self._store.commit([Save(replace(next_version(before), removed_at=now, updated_at=now))])
            return before

        return until_settled(decide)


def _limits(daily: str | None, monthly: str | None) -> tuple[str | None, str | None]:
    found = [None if text is None or not Decimal(text) else text for text in (daily, monthly)]
    if found[0] is not None and found[1] is not None and Decimal(found[0]) > Decimal(found[1]):
        raise BusinessRule("daily_limit", "must not be more than monthly_limit")
    return found[0], found[1]


def _there(found: WhitelistEntry | None, name: str) -> WhitelistEntry:
    if found is None or found.removed_at is not None:
        raise NotFound(f"No whitelist address {name[:80]}", {"id": name[:80]})
    return found


def _more(before: str | None, after: str | None) -> bool:
    """Whether a limit lets more go than the one before."""
    return before is not None and (after is None or Decimal(after) > Decimal(before))


def _check_guarded(settings: MerchantSettings, revision: int, entry: WhitelistEntry, signatures: Signatures) -> None:
    if settings.multisig.enabled:
        shown = {
            "address": entry.address,
            "network": network_parts(entry.network)[1],
            "daily_limit": entry.daily_limit,
            "monthly_limit": entry.monthly_limit,
        }
        check_signed(whitelist_text(entry.tenant, revision, shown), settings.multisig, (), signatures)
