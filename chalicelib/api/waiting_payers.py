"""What tells the scan that a payer waits. It changes no answer, and no failure of it fails a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.domain.ids import network_parts
from chalicelib.domain.invoices.waiting import expected_since

if TYPE_CHECKING:
    from chalicelib.domain.invoices.invoices import Invoice
    from chalicelib.wiring import Services


def payer_waits(services: Services, invoice: Invoice) -> None:
    """Keep the networks busy that an open invoice may be paid on at any moment."""
    if not services.settings.ticks:
        return
    realm, _ = network_parts(invoice.network)
    now, networks = services.clock_of(realm).now_ms(), services.catalogue(realm).networks
    for network, since in expected_since(invoice).items():
        services.ticks.ask(networks[network_parts(network)[1]], since, now, by_link=invoice.payment_link is not None)
