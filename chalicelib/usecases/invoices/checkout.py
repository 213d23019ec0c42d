"""The payer's view of an invoice. The id alone is enough to read it, without a key; it changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.domain.catalogue.catalogue import Catalogue, Coin, Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import NetworkId, Realm, asset_parts, network_parts
from chalicelib.domain.invoices.choices import Choice
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.money import format_units
from chalicelib.domain.times import iso
from chalicelib.usecases.base.payment_requests import choice_answer, misdirected_record, payer_record
from chalicelib.usecases.base.transaction_views import depth
from chalicelib.usecases.base.views import payment_uri, without_none
from chalicelib.usecases.invoices.choosing import known_invoice
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store


@dataclass(frozen=True, slots=True)
class Checkout:
    """An invoice as its payer sees it. `tips` are the heights of the chains that hold its payments; `seconds_left` until its time
    is over, by the clock of its realm. `locked`: no rate is promised for the coin that it shows, or one that still holds."""

    invoice: Invoice
    coin: Coin
    network: Network
    tips: Mapping[NetworkId, int]
    seconds_left: int
    locked: bool = True

    def confirmations(self, catalogue: Catalogue) -> tuple[int, int]:
        """Confirmations of the payment that lacks the most, and those that its network needs; 0 where nothing is paid."""
        counted = []
        for payment in self.invoice.payments:
            place = self.invoice.network_of(payment)
            needed = catalogue.networks[network_parts(place)[1]].confirmations
            counted.append((max(needed if payment.confirmed else 0, depth(payment.block, self.tips.get(place))), needed))
        return min(counted, key=lambda pair: pair[0] - pair[1], default=(0, self.network.confirmations))

    def payment_uri(self, catalogue: Catalogue) -> str | None:
        """The payment URI of the missing amount, and no more; None where nothing is to be paid (any more), or at no rate."""
        return payment_uri(self.invoice, self.coin, catalogue) if self.seconds_left and self.locked else None


class Checkouts:
    def __init__(self, store: Store, clock_of: Callable[[Realm], Clock], looked: Callable[[Invoice], Invoice]) -> None:
        """`looked` gives an invoice new rates where its payer's lock has ended (`choosing.Choices.looked`)."""
        self._store, self._clock_of, self._looked = store, clock_of, looked

    def find(self, invoice_id: str) -> Checkout:
        """The invoice with that id, of any merchant: at most three reads. Raises NotFound, Unavailable.

        An id that is not in our form is not looked up. The index that knows the owner follows the invoice by a moment.
        """
        found = known_invoice(self._store, invoice_id)
        if found is None:
            raise _unknown(invoice_id)
        return self.of(self._looked(found))

    def of(self, invoice: Invoice) -> Checkout:
        """An invoice that was read a moment ago. Raises Unavailable."""
        realm, slug = network_parts(invoice.network)
        catalogue = self._store.catalogue(realm)
        coin = catalogue.coin(slug, asset_parts(invoice.asset)[1])
        if coin is None:
            raise LookupError(f"{invoice.asset} is not in the catalogue")
        networks = sorted({invoice.network_of(payment) for payment in invoice.payments})
        cursors = [self._store.get(Cursor, network=network) for network in networks]
        tips = {cursor.network: cursor.tip for cursor in cursors if cursor is not None}
        now = self._clock_of(realm).now_ms()
        current = None if invoice.choosing is None else invoice.choosing.current
        locked = current is None or current.is_locked(now)
        return Checkout(invoice, coin, catalogue.networks[slug], tips, max(0, (invoice.expires_at - now) // 1000), locked)

    def names(self, checkout: Checkout) -> dict[str, str]:
        """What the networks of its realm are called, by slug."""
        return {slug: network.name for slug, network in self._store.catalogue(checkout.network.realm).networks.items()}

    def chosen(self, invoice: Invoice, choice: Choice) -> dict[str, Any]:
        """The public record of a choice."""
        catalogue = self._store.catalogue(network_parts(invoice.network)[0])
        return choice_answer(invoice, choice, catalogue.coin_of(choice.asset), catalogue)

    def public(self, checkout: Checkout) -> dict[str, Any]:
        """Its public record: of the merchant only the texts that it wrote for its payer."""
        invoice, coin = checkout.invoice, checkout.coin
        counts = invoice.takes_late and invoice.status in ("confirming", "completed")
        late = 0 if counts else invoice.late + invoice.late_unconfirmed
        catalogue = self._store.catalogue(checkout.network.realm)
        confirmations, needed = checkout.confirmations(catalogue)

        def amount(units: int) -> str:
            return format_units(units, coin.decimals)

        shown = without_none(
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
                "paymentUri": checkout.payment_uri(catalogue),
                "expiresAt": iso(invoice.expires_at),
                "expiresIn": checkout.seconds_left,
                "description": invoice.description,
                "redirectUrl": invoice.redirect_url,
                "cancelUrl": invoice.cancel_url,
                "confirmations": confirmations,
                "requiredConfirmations": needed,
            }
        )
        shown |= misdirected_record(invoice, catalogue.coin_of)
        return (
            shown
            if invoice.choosing is None
            else shown | payer_record(invoice, invoice.choosing, catalogue.coin_of, late_counts=counts)
        )


def _unknown(invoice_id: str) -> NotFound:
    return NotFound(f"No invoice {invoice_id[:80]}", {"id": invoice_id[:80]})
