"""Refunds of invoices: made out of the merchant's balance, read, cancelled.

The request freezes the amount and answers; the withdrawal of one with an address follows at once, here, or by the network's poll
where this function dies.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import TenantId, new_id, tenant_parts
from chalicelib.domain.refunds.refunds import DEFAULT_EXPIRY, MOST_OF_AN_INVOICE, Refund, Terms
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.refunds.amounts import Asked, priced
from chalicelib.usecases.refunds.cancelling import Cancelling
from chalicelib.usecases.refunds.making import Made, Making, Payee, Wanted, new_link
from chalicelib.usecases.refunds.ordering import Ordering
from chalicelib.usecases.refunds.refund_reads import Shown, found, listed, of_invoice, refunded

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RefundWishes:
    """What is asked for beside the amount. Without an `address` a link is made, which lives for `expires_in` seconds."""

    address: str | None = None
    reason: str | None = None
    expires_in: int | None = None
    gateway_url: str | None = None
    """The beginning of links where the deployment has no PUBLIC_URL."""
    sent_by: str | None = None
    """The way by which the merchant sends the link."""


class Refunds:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        making: Making,
        ordering: Ordering,
        cancelling: Cancelling,
        rates_of: RatesOf,
        public_url: str | None = None,
    ) -> None:
        self._store, self._clock, self._making, self._ordering = store, clock, making, ordering
        self._cancelling, self._rates_of, self._public_url = cancelling, rates_of, public_url

    def creating(self, tenant: TenantId, invoice_id: str, asked: Asked, wishes: RefundWishes) -> Creation[Made]:
        """Freeze the amount of a refund, and give it a link, or order its payment.

        It or a try raises NotFound, InvalidAddress, InvalidParameter, BusinessRule (nothing left to refund, no fresh rate, not
        allowed), DailyLimitExceeded, InsufficientBalance, Unavailable.
        """
        now, realm = self._clock.now_ms(), tenant_parts(tenant)[1]
        refund_id = new_id("ref", now)
        base = self._public_url or wishes.gateway_url
        destination = new_link(base) if wishes.address is None else Payee(wishes.address, new_id("wd", now))

        def prepare() -> Prepared[Made]:
            known = refunded(self._store, tenant, invoice_id)
            if len(known.row.ids) >= MOST_OF_AN_INVOICE:
                raise BusinessRule("invoiceId", f"has had {MOST_OF_AN_INVOICE} refunds, and can have no more")
            price = priced(known, asked, self._store.catalogue(realm), self._rates_of(realm), now)
            terms = Terms(
                network=price.coin.network,
                asset=price.coin.asset,
                amount=price.units,
                created_at=now,
                invoice_id=invoice_id,
                mode=price.mode,
                fiat=price.fiat,
                fiat_amount=price.fiat_amount,
                text=wishes.reason,
                expires_at=now + (wishes.expires_in or DEFAULT_EXPIRY) * 1000 if wishes.address is None else None,
                hook=known.invoice.hook,
                sent_by=wishes.sent_by,
            )
            row = replace(next_version(known.row), ids=(*known.row.ids, refund_id))
            return self._making.prepared(Wanted(refund_id, tenant, price.coin, terms, destination), [Save(row)])

        return Creation(self._store, prepare, self._order)

    def _order(self, made: Made) -> None:
        if made.refund.status != "ordered":
            return
        try:
            self._ordering.order(made.refund)
        except (Unavailable, Conflict) as error:
            log.warning("refund %s is accepted, and its withdrawal is made later: %s", made.refund.id, error)

    def get(self, tenant: TenantId, refund_id: str) -> Shown:
        """Raises NotFound, also for another merchant's refund."""
        return found(self._store, tenant, refund_id, Refund)

    def shown(self, refunds: Sequence[Refund]) -> list[Shown]:
        """Each with its withdrawal, in one read: as `refund_reads.listed`."""
        return listed(self._store, refunds)

    def of_invoice(self, tenant: TenantId, invoice_id: str) -> list[Shown]:
        """All refunds of an invoice, oldest first. Raises NotFound."""
        return of_invoice(self._store, tenant, invoice_id)

    def cancel(self, tenant: TenantId, refund_id: str) -> Shown:
        """Give its money back before it is paid. Raises NotFound, BusinessRule."""
        return self._cancelling.cancel(tenant, refund_id, Refund)
