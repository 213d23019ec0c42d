"""Invoices: made with an address of their own, moved by what the chain shows, expired by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.catalogue import Coin
from chalicelib.domain.deposits import Deposit
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import NetworkId, TenantId, network_parts, new_id
from chalicelib.domain.invoices import ExternalId, Invoice
from chalicelib.domain.work import Work
from chalicelib.usecases.addresses import Addresses, Also, nothing_more
from chalicelib.usecases.changes import Change, Close, Conflict, Open, Save
from chalicelib.usecases.outbox import News
from chalicelib.usecases.ports import Clock, Page, Store
from chalicelib.usecases.trying import until_settled
from chalicelib.usecases.views import Views

_SEPARATOR = "|"


def expiry_work(invoice: Invoice) -> Work:
    """The obligation to look at an invoice when its time is over; in the lane of its network, which knows how far it is scanned."""
    return Work("expiry", invoice.network, f"{invoice.expires_at:015d}", f"{invoice.tenant}{_SEPARATOR}{invoice.id}")


class Invoices:
    def __init__(self, store: Store, addresses: Addresses, clock: Clock, default_expiry: int) -> None:
        """`default_expiry` in seconds."""
        self._store, self._addresses, self._clock, self._default_expiry = store, addresses, clock, default_expiry

    def create(
        self,
        tenant: TenantId,
        coin: Coin,
        amount: int,
        *,
        external_id: str | None = None,
        description: str | None = None,
        redirect_url: str | None = None,
        expires_in: int | None = None,
        also: Also = nothing_more,
    ) -> Invoice:
        """A new invoice over `amount` units of `coin`, payable for `expires_in` seconds at an address of its own.

        Raises BusinessRule (inactive coin or network, externalId taken), Unavailable.
        """
        if amount <= 0:
            raise ValueError("an invoice asks for more than nothing")
        realm, slug = network_parts(coin.network)
        catalogue = self._store.catalogue(realm)
        network = catalogue.networks[slug]
        if network.status != "active":
            raise BusinessRule("network", f"{slug} is not active here: payments to it would not be seen")
        if coin.status != "ACTIVE":
            raise BusinessRule("currency", f"{coin.slug} on {slug} is not active")
        now = self._clock.now_ms()
        invoice_id = new_id("inv", now)
        address, changes = self._addresses.prepare(tenant, network, "common", invoice_id=invoice_id)
        seconds = self._default_expiry if expires_in is None else expires_in
        invoice = Invoice(
            id=invoice_id,
            tenant=tenant,
            network=network.id,
            asset=coin.asset,
            address=address.address,
            address_id=address.id,
            amount=amount,
            created_at=now,
            expires_at=now + seconds * 1000,
            external_id=external_id,
            description=description,
            redirect_url=redirect_url,
            emitted=1,
        )
        news = News(now)
        news.tell(tenant, "invoice.created", invoice.id, 1, Views(catalogue).invoice(invoice))
        unique = [Save(ExternalId(tenant, external_id, invoice.id))] if external_id is not None else []
        try:
            self._store.commit([*unique, *changes, Save(invoice), Open(expiry_work(invoice)), *news.emit(), *also(invoice)])
        except Conflict as conflict:
            if unique and conflict.change == unique[0]:
                raise BusinessRule("externalId", f"there is already an invoice with the externalId {external_id}") from conflict
            raise
        return invoice

    def get(self, tenant: TenantId, invoice_id: str) -> Invoice:
        """Raises NotFound, also for another merchant's invoice."""
        invoice = self._store.get(Invoice, tenant=tenant, id=invoice_id)
        if invoice is None:
            raise NotFound(f"No invoice {invoice_id[:80]}", {"id": invoice_id[:80]})
        return invoice

    def by_external_id(self, tenant: TenantId, external_id: str) -> Invoice:
        """Raises NotFound."""
        link = self._store.get(ExternalId, tenant=tenant, value=external_id)
        if link is None:
            raise NotFound(f"No invoice with externalId {external_id[:80]}", {"externalId": external_id[:80]})
        return self.get(tenant, link.invoice_id)

    def page(self, tenant: TenantId, limit: int, after: str | None = None, newest_first: bool = True) -> Page[Invoice]:
        return self._store.page(Invoice, limit=limit, after=after, newest_first=newest_first, tenant=tenant)

    def override(self, tenant: TenantId, invoice_id: str, status: str, by: str) -> Invoice:
        """Set the status by hand: recorded with who and when; from then on nothing changes it by itself. Raises NotFound."""

        def decide() -> Invoice:
            now = self._clock.now_ms()
            before = self.get(tenant, invoice_id)
            after = replace(before, manual_status=status, manual_by=by, manual_at=now, version=before.version + 1).settled()
            news = News(now)
            catalogue = self._store.catalogue(network_parts(before.network)[0])
            after = announce(news, before, after, Views(catalogue))
            self._store.commit([Save(after), *news.emit()])
            return after

        return until_settled(decide)

    def expire_due(self, network: NetworkId, until_ms: int, limit: int = 200) -> int:
        """Close the time of invoices of `network` that ended by `until_ms`; how many were looked at.

        `until_ms` is how far the chain is known: a payment made in time is never missed because scanning was late.
        """
        due = self._store.open_work("expiry", network, upto=f"{until_ms:015d}", limit=limit)
        for work in due:
            self._expire(work)
        return len(due)

    def _expire(self, work: Work) -> None:
        tenant, invoice_id = work.id.split(_SEPARATOR)

        def decide() -> None:
            before = self._store.get(Invoice, tenant=tenant, id=invoice_id)
            if before is None or before.manual_status is not None:
                self._store.commit([Close(work)])
                return
            news = News(self._clock.now_ms())
            # Also where enough money is on its way or there: should it fall out of the chain, the time is over all the same.
            after = replace(before, expired=True, version=before.version + 1).settled()
            views = Views(self._store.catalogue(network_parts(before.network)[0]))
            after = announce(news, before, after, views)
            self._store.commit([Save(after), Close(work), *news.emit()])

        try:
            until_settled(decide)
        except Conflict as conflict:
            if conflict.change != Close(work):
                raise
            # Another sweep closed it: nothing is left to do.


def announce(news: News, before: Invoice, after: Invoice, views: Views) -> Invoice:
    """Tell what changed between the two; the invoice with its count of events raised."""
    if after.status == before.status:
        return after
    order = ("pending", "partial", "confirming", "completed")
    back = after.status in order and before.status in order and order.index(after.status) < order.index(before.status)
    name = "invoice.reverted" if back else f"invoice.{after.status}"
    if name not in ("invoice.partial", "invoice.confirming", "invoice.completed", "invoice.expired", "invoice.reverted"):
        return after
    return _tell(news, after, name, views)


def _tell(news: News, invoice: Invoice, name: str, views: Views) -> Invoice:
    told = replace(invoice, emitted=invoice.emitted + 1)
    news.tell(told.tenant, name, told.id, told.emitted, views.invoice(told))
    return told


def with_payment_seen(news: News, before: Invoice, deposit: Deposit, views: Views) -> Invoice:
    """The invoice after a payment for it came into a block. Another coin on its address is the merchant's, not the invoice's."""
    if deposit.asset != before.asset:
        return before
    if not deposit.late:
        after = replace(before, unconfirmed=before.unconfirmed + deposit.amount, version=before.version + 1).settled()
        return announce(news, before, after, views)
    open_still = before.settled_status() in ("pending", "partial")
    after = replace(
        before,
        late_unconfirmed=before.late_unconfirmed + deposit.amount,
        expired=before.expired or open_still,
        version=before.version + 1,
    ).settled()
    after = announce(news, before, after, views)
    return _tell(news, after, "invoice.late_payment", views)


def with_payment_confirmed(news: News, before: Invoice, deposit: Deposit, views: Views) -> Invoice:
    """The invoice after that payment was credited."""
    if deposit.asset != before.asset:
        return before
    version = before.version + 1
    if deposit.late:
        late = before.late_unconfirmed - deposit.amount
        return replace(before, late_unconfirmed=late, late=before.late + deposit.amount, version=version)
    after = replace(
        before, unconfirmed=before.unconfirmed - deposit.amount, confirmed=before.confirmed + deposit.amount, version=version
    ).settled()
    return announce(news, before, after, views)


def with_payment_orphaned(news: News, before: Invoice, deposit: Deposit, views: Views) -> Invoice:
    """The invoice after that payment (in its state before the reorganisation) fell out of the chain."""
    if deposit.asset != before.asset:
        return before
    credited = deposit.credited
    field = ("late" if credited else "late_unconfirmed") if deposit.late else ("confirmed" if credited else "unconfirmed")
    left = {field: getattr(before, field) - deposit.amount}
    after = replace(before, version=before.version + 1, **left).settled()
    if after.status == "expired" and before.status != "expired":
        return _tell(news, after, "invoice.reverted", views)
    return announce(news, before, after, views)


def changes_of(before: Invoice | None, after: Invoice | None) -> Sequence[Change]:
    """The change that stores an invoice, where there is one and it differs."""
    return (Save(after),) if after is not None and after is not before else ()
