"""Merchants: admission of a request, API keys, settings, balances."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.ids import TenantId
    from chalicelib.domain.ledger import Balance
    from chalicelib.store.access import Access
    from chalicelib.usecases.merchants.api_keys import ApiKeys
    from chalicelib.usecases.merchants.first_key import FirstKeys
    from chalicelib.usecases.merchants.merchants import Directory
    from chalicelib.usecases.merchants.settings import MerchantSettingsService
    from chalicelib.usecases.merchants.shop import Shops
    from chalicelib.usecases.merchants.source_limits import SourceLimits
    from chalicelib.usecases.merchants.suspension import Suspensions
    from chalicelib.wiring.parts import Parts


class MerchantWiring:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @cached_property
    def gate(self) -> Access:
        from chalicelib.store.access import Access

        settings, client = self._parts.settings, self._parts.store.models.connection.client
        return Access(client, settings.table("tenants"), settings.realms, by_source=settings.stage == "demo")

    @cached_property
    def source_limits(self) -> SourceLimits:
        from chalicelib.usecases.merchants.source_limits import SourceLimits

        return SourceLimits()

    @cached_property
    def api_keys(self) -> ApiKeys:
        from chalicelib.usecases.merchants.api_keys import ApiKeys

        return ApiKeys(self._parts.store, self._parts.clock)

    @cached_property
    def suspensions(self) -> Suspensions:
        from chalicelib.usecases.merchants.suspension import Suspensions

        return Suspensions(self._parts.store, self._parts.clock)

    @cached_property
    def directory(self) -> Directory:
        from chalicelib.usecases.merchants.merchants import Directory

        return Directory(self._parts.store, self._parts.clock)

    @cached_property
    def first_keys(self) -> FirstKeys:
        from chalicelib.usecases.merchants.first_key import FirstKeys

        return FirstKeys(self._parts.store, self._parts.clock, self.directory)

    @cached_property
    def merchant_settings(self) -> MerchantSettingsService:
        from chalicelib.usecases.merchants.settings import MerchantSettingsService

        return MerchantSettingsService(self._parts.store, self._parts.realm_clock)

    @cached_property
    def shops(self) -> Shops:
        from chalicelib.usecases.merchants.shop import Shops

        return Shops(self._parts.store)

    def balances(self, tenant: TenantId) -> list[Balance]:
        """Every balance that the merchant ever had, as it is shown."""
        from chalicelib.usecases.base.awaited_deposits import balances_of

        return balances_of(self._parts.store, tenant)
