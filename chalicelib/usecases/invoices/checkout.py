"""The payer's view of an invoice. The id alone is enough to read it, without a key; it changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.domain.catalogue.catalogue import Catalogue, Coin, Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import NetworkId, Realm, asset_parts, network_parts
from chalicelib.domain.invoices.choices import Choice
from chalicelib.domain.invoices.invoices import OPEN, PAYABLE, Invoice
from chalicelib.domain.money import format_units
from chalicelib.domain.refunds.refunds import InvoiceRefunds
from chalicelib.domain.times import iso
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.payment_requests import choice_answer, misdirected_record, payer_record
from chalicelib.usecases.base.transaction_views import depth
from chalicelib.usecases.base.views import payment_uri, without_none
from chalicelib.usecases.catalogue.conditions import Condition, Conditions
from chalicelib.usecases.invoices.choosing import known_invoice
from chalicelib.usecases.invoices.payer_views import delays, offered, payment_records, shown_payments, usual_seconds
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store


@dataclass(frozen=True, slots=True)
class Checkout:
    """An invoice as its payer sees it. `tips` are the heights of the chains that hold its payments; `seconds_left` until its time
    is over, by the clock of its realm. `locked`: no rate is promised for the coin that it shows, or one that still holds;
    `lock_left` are the seconds until that ends, None where none is promised. `deposits` are those of the payments that it shows,
    by id; `refunds` are public records; `conditions` those of the networks that it is, or may be, paid on."""

    invoice: Invoice
    coin: Coin
    network: Network
    tips: Mapping[NetworkId, int]
    seconds_left: int
    locked: bool = True
    lock_left: int | None = None
    deposits: Mapping[str, Deposit] = field(default_factory=dict)
    refunds: Sequence[Mapping[str, Any]] = ()
    conditions: Mapping[NetworkId, Condition] = field(default_factory=dict)
    now_ms: int = 0

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


@dataclass(frozen=True, slots=True)
class _Beside:
    """Records beside an invoice."""

    cursors: Sequence[Cursor]
    deposits: Sequence[Deposit]
    refund_ids: Sequence[str]


RefundsOf = Callable[[Store, Invoice, Sequence[str], int], list[dict[str, Any]]]
"""Public records of the refunds with these ids, at a time in milliseconds since 1970."""


class Checkouts:
    def __init__(
        self,
        store: Store,
        clock_of: Callable[[Realm], Clock],
        looked: Callable[[Invoice], Invoice],
        refunds_of: RefundsOf,
        conditions: Conditions,
        rates: RatesOf,
    ) -> None:
        """`looked` gives an invoice new rates where its payer's lock has ended (`choosing.Choices.looked`); `refunds_of` renders
        its refunds (`usecases.refunds.public_views`)."""
        self._store, self._clock_of, self._looked = store, clock_of, looked
        self._refunds_of, self._conditions, self._rates = refunds_of, conditions, rates

    def find(self, invoice_id: str) -> Checkout:
        """The invoice with that id, of any merchant: two reads, one more where something was paid, and two more where something is
        refunded; another one, twice a minute and process, while it is open. Raises NotFound, Unavailable.

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
        now = self._clock_of(realm).now_ms()
        beside = self._beside(invoice)
        current = None if invoice.choosing is None else invoice.choosing.current
        locked = current is None or current.is_locked(now)
        until = None if current is None else current.locked_until
        return Checkout(
            invoice,
            coin,
            catalogue.networks[slug],
            tips={cursor.network: cursor.tip for cursor in beside.cursors},
            seconds_left=max(0, (invoice.expires_at - now) // 1000),
            locked=locked,
            lock_left=None if until is None else max(0, (until - now) // 1000),
            deposits={deposit.id: deposit for deposit in beside.deposits},
            refunds=self._refunds_of(self._store, invoice, beside.refund_ids, now),
            conditions=self._conditions_of(invoice, catalogue, now),
            now_ms=now,
        )

    def _beside(self, invoice: Invoice) -> _Beside:
        """What is stored beside an invoice: one read, none where nothing was paid."""
        networks = sorted({invoice.network_of(payment) for payment in invoice.payments})
        wanted: list[tuple[type[Any], Mapping[str, str]]] = [(Cursor, {"network": network}) for network in networks]
        wanted += [(Deposit, {"id": payment.deposit}) for payment in shown_payments(invoice)]
        # Nothing is given back of what was never credited. What was may fall out of the chain again, refunds and all.
        if invoice.payments or invoice.counted("confirmed") or invoice.counted("late"):
            wanted.append((InvoiceRefunds, {"tenant": invoice.tenant, "invoice_id": invoice.id}))
        found = [one for one in (known_of(self._store, wanted) if wanted else ()) if one is not None]
        return _Beside(
            [one for one in found if isinstance(one, Cursor)],
            [one for one in found if isinstance(one, Deposit)],
            next((one.ids for one in found if isinstance(one, InvoiceRefunds)), ()),
        )

    def _conditions_of(self, invoice: Invoice, catalogue: Catalogue, now: int) -> Mapping[NetworkId, Condition]:
        if invoice.status not in OPEN:
            return {}
        names = {invoice.network, *(invoice.network_of(payment) for payment in invoice.payments)}
        if invoice.choosing is not None and invoice.status in PAYABLE:
            names |= {asset_parts(one.asset)[0] for one in invoice.choosing.accept}
        networks = [catalogue.networks[network_parts(name)[1]] for name in sorted(names)]
        return self._conditions.of(networks, now)

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
                "fiatAmount": invoice.fiat_amount,
                "fiatCurrency": None if invoice.priced is None else invoice.priced.fiat,
                "status": invoice.status,
                "paymentUri": checkout.payment_uri(catalogue),
                "createdAt": iso(invoice.created_at),
                "expiresAt": iso(invoice.expires_at),
                "expiresIn": checkout.seconds_left,
                "description": invoice.description,
                "redirectUrl": invoice.redirect_url,
                "cancelUrl": invoice.cancel_url,
                "confirmations": confirmations,
                "requiredConfirmations": needed,
                "usualSeconds": usual_seconds(checkout.network),
                "payments": payment_records(invoice, catalogue, checkout.tips, checkout.deposits),
                "refunds": list(checkout.refunds),
                "delays": delays(self._relied_on(invoice), checkout.conditions),
            }
        )
        shown |= misdirected_record(invoice, catalogue.coin_of)
        if invoice.choosing is None:
            return shown
        shown |= payer_record(invoice, invoice.choosing, catalogue.coin_of, late_counts=counts)
        rates = self._rates(checkout.network.realm)
        shown["accept"] = offered(invoice.choosing, catalogue, checkout.conditions, rates, checkout.now_ms)
        return shown | ({} if checkout.lock_left is None else {"lockedIn": checkout.lock_left})

    @staticmethod
    def _relied_on(invoice: Invoice) -> list[NetworkId]:
        """The networks that it is waiting for: where it is to be paid, and where payments of it are not credited yet."""
        chosen = invoice.choosing is None or invoice.choosing.current is not None
        here = [invoice.network] if invoice.status in PAYABLE and chosen else []
        seen = [invoice.network_of(payment) for payment in invoice.payments if not payment.confirmed]
        return list(dict.fromkeys([*here, *seen]))


def _unknown(invoice_id: str) -> NotFound:
    return NotFound(f"No invoice {invoice_id[:80]}", {"id": invoice_id[:80]})
