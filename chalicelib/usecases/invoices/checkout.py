"""The payer's view of an invoice. The id alone is enough to read it, without a key; it changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chalicelib.domain.catalogue.catalogue import Catalogue, Coin, Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import Realm, asset_parts, network_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.money import format_units
from chalicelib.domain.times import iso
from chalicelib.usecases.base.views import depth, payment_uri, without_none
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Listed, Store

INVOICE_ID = re.compile(r"inv_[0-9a-hjkmnp-tv-z]{26}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Checkout:
    """An invoice as its payer sees it. `tip` is the chain's height, None where nothing is paid; `seconds_left` until its time is
    over, by the clock of its realm."""

    invoice: Invoice
    coin: Coin
    network: Network
    tip: int | None
    seconds_left: int

    @property
    def confirmations(self) -> int:
        """Confirmations of the payment that has the fewest; 0 where nothing is paid."""
        counted = [
            max(self.network.confirmations if payment.confirmed else 0, depth(payment.block, self.tip))
            for payment in self.invoice.payments
        ]
        return min(counted, default=0)

    def payment_uri(self, catalogue: Catalogue) -> str | None:
        """The payment URI of the missing amount, and no more; None where nothing is to be paid (any more)."""
        return payment_uri(self.invoice, self.coin, catalogue) if self.seconds_left else None


class Checkouts:
    def __init__(self, store: Store, clock_of: Callable[[Realm], Clock]) -> None:
        self._store, self._clock_of = store, clock_of

    def find(self, invoice_id: str) -> Checkout:
        """The invoice with that id, of any merchant: at most three reads. Raises NotFound, Unavailable.

        An id that is not in our form is not looked up. The index that knows the owner follows the invoice by a moment.
        """
        if not INVOICE_ID.fullmatch(invoice_id):
            raise _unknown(invoice_id)
        places = self._store.places(Listed("inv", "id", invoice_id), limit=1).places
        invoice: Invoice | None = next(iter(self._store.at(places)), None) if places else None
        if invoice is None:
            raise _unknown(invoice_id)
        realm, slug = network_parts(invoice.network)
        catalogue = self._store.catalogue(realm)
        coin = catalogue.coin(slug, asset_parts(invoice.asset)[1])
        if coin is None:
            raise LookupError(f"{invoice.asset} is not in the catalogue")
        cursor = self._store.get(Cursor, network=invoice.network) if invoice.payments else None
        left = invoice.expires_at - self._clock_of(realm).now_ms()
        return Checkout(invoice, coin, catalogue.networks[slug], None if cursor is None else cursor.tip, max(0, left // 1000))

    def public(self, checkout: Checkout) -> dict[str, Any]:
        """Its public record: of the merchant only the texts that it wrote for its payer."""
        invoice, coin = checkout.invoice, checkout.coin
        counts = invoice.takes_late and invoice.status in ("confirming", "completed")
        late = 0 if counts else invoice.late + invoice.late_unconfirmed

        def amount(units: int) -> str:
            return format_units(units, coin.decimals)

        return without_none(
            {
                "amount": amount(invoice.amount),
                "received": amount(invoice.received),
                "unconfirmed": amount(invoice.unconfirmed + invoice.late_unconfirmed),
                "missing": amount(invoice.missing),
                "overpaid": amount(invoice.overpaid) if invoice.overpaid else None,
                "late": amount(late) if late else None,
                "currency": coin.slug,
                "symbol": coin.symbol,
                "network": checkout.network.slug,
                "address": invoice.address,
                "status": invoice.status,
                "paymentUri": checkout.payment_uri(self._store.catalogue(checkout.network.realm)),
                "expiresAt": iso(invoice.expires_at),
                "expiresIn": checkout.seconds_left,
                "description": invoice.description,
                "redirectUrl": invoice.redirect_url,
                "cancelUrl": invoice.cancel_url,
                "confirmations": checkout.confirmations,
                "requiredConfirmations": checkout.network.confirmations,
            }
        )


def _unknown(invoice_id: str) -> NotFound:
    return NotFound(f"No invoice {invoice_id[:80]}", {"id": invoice_id[:80]})
