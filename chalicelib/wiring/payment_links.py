"""Payment links, and the invoices that visitors open from them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.usecases.payment_links.links import PaymentLinks
    from chalicelib.usecases.payment_links.opening import LinkOpening
    from chalicelib.wiring.invoices import InvoiceWiring
    from chalicelib.wiring.parts import Parts


class PaymentLinkWiring:
    def __init__(self, parts: Parts, invoices: InvoiceWiring) -> None:
        self._parts, self._invoices = parts, invoices

    @cached_property
    def payment_links(self) -> PaymentLinks:
        from chalicelib.usecases.payment_links.links import PaymentLinks

        return PaymentLinks(self._parts.store, self._parts.realm_clock, self._invoices.invoice_settings)

    @cached_property
    def link_opening(self) -> LinkOpening:
        from chalicelib.store.counters import DynamoCounters
        from chalicelib.usecases.payment_links.opening import LinkOpening

        parts = self._parts
        invoices, choosable, counters = self._invoices.invoices, self._invoices.choosable, DynamoCounters(parts.store.models)
        return LinkOpening(parts.store, self.payment_links, invoices, choosable, counters, parts.clock_of)
