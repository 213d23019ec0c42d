"""Invoices, their settings, their checkout page, their expiry."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.usecases.invoices.cancel_and_extend import InvoiceDeadlines
    from chalicelib.usecases.invoices.checkout import Checkouts
    from chalicelib.usecases.invoices.choosable import ChoosableInvoices
    from chalicelib.usecases.invoices.choosing import Choices
    from chalicelib.usecases.invoices.expiries import InvoiceExpiries
    from chalicelib.usecases.invoices.invoices import Invoices
    from chalicelib.usecases.invoices.payer_transactions import InvoiceTransactions
    from chalicelib.usecases.invoices.settings import InvoiceSettingsService
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.wallets import WalletWiring


class InvoiceWiring:
    def __init__(self, parts: Parts, wallets: WalletWiring, chains: ChainWiring) -> None:
        self._parts, self._wallets, self._chains = parts, wallets, chains

    @cached_property
    def invoices(self) -> Invoices:
        from chalicelib.usecases.invoices.invoices import Invoices

        parts, addresses = self._parts, self._wallets.addresses
        url = parts.settings.public_url
        return Invoices(parts.store, addresses, parts.realm_clock, self.invoice_settings, parts.rates, url)

    @cached_property
    def checkouts(self) -> Checkouts:
        from chalicelib.usecases.catalogue.conditions import Conditions
        from chalicelib.usecases.invoices.checkout import Checkouts
        from chalicelib.usecases.refunds.public_views import payer_refunds

        parts = self._parts
        conditions = Conditions(parts.store)
        return Checkouts(parts.store, parts.clock_of, self.choices.looked, payer_refunds, conditions, parts.rates)

    @cached_property
    def payer_transactions(self) -> InvoiceTransactions:
        from chalicelib.store.counters import DynamoCounters
        from chalicelib.usecases.invoices.payer_transactions import InvoiceTransactions

        parts, counters = self._parts, DynamoCounters(self._parts.store.models)
        build = self._chains.payer_transactions
        return InvoiceTransactions(parts.store, self.checkouts, build, parts.rules, counters, parts.clock_of)

    @cached_property
    def choices(self) -> Choices:
        from chalicelib.usecases.invoices.choosing import Choices

        parts = self._parts
        return Choices(parts.store, self._wallets.addresses, self.invoice_settings, parts.clock_of, parts.rates)

    @cached_property
    def choosable(self) -> ChoosableInvoices:
        from chalicelib.usecases.invoices.choosable import ChoosableInvoices

        parts = self._parts
        return ChoosableInvoices(parts.store, self.invoices, self.invoice_settings, parts.realm_clock, parts.rates)

    @cached_property
    def invoice_settings(self) -> InvoiceSettingsService:
        from chalicelib.usecases.invoices.settings import InvoiceSettingsService

        return InvoiceSettingsService(self._parts.store, self._parts.settings.default_expiry)

    @cached_property
    def invoice_expiries(self) -> InvoiceExpiries:
        from chalicelib.usecases.invoices.expiries import InvoiceExpiries

        return InvoiceExpiries(self._parts.store, self._parts.realm_clock)

    @cached_property
    def invoice_deadlines(self) -> InvoiceDeadlines:
        from chalicelib.usecases.invoices.cancel_and_extend import InvoiceDeadlines

        return InvoiceDeadlines(self._parts.store, self.invoices, self._parts.realm_clock)
