"""Invoices."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.models import (
    AddressText,
    CamelRequest,
    CoinSlug,
    MoneyRequest,
    NetworkSlug,
    PositiveAmount,
    Query,
    chosen_coin,
    matching,
)
from chalicelib.api.paging import ListQuery, listed
from chalicelib.api.routes import endpoint
from chalicelib.domain.errors import InvalidParameter, NotFound
from chalicelib.domain.ids import asset_parts
from chalicelib.domain.invoices import Invoice
from chalicelib.domain.money import parse_units
from chalicelib.usecases.views import iso

MAX_EXPIRY = 365 * 86400
"""Seconds."""
ExternalId = Annotated[str, Field(min_length=1, max_length=255)]
RedirectUrl = Annotated[str, Field(max_length=2000), matching(r"https?://[^\s/]+\S*", "must be an http or https URL")]
InvoiceId = Annotated[str, Field(min_length=1, max_length=128)]


class InvoiceCreate(MoneyRequest, CamelRequest):
    coin_field: ClassVar[str] = "currency"

    currency: CoinSlug
    amount: PositiveAmount
    network: NetworkSlug | None = None
    external_id: ExternalId | None = None
    description: Annotated[str, Field(max_length=1000)] | None = None
    redirect_url: RedirectUrl | None = None
    expires_in: Annotated[int, Field(ge=1, le=MAX_EXPIRY)] | None = None


class InvoiceOverride(CamelRequest):
    invoice_id: InvoiceId
    status: Annotated[str, matching(r"[a-z0-9_-]{1,64}", "must have 1 to 64 characters of a-z, 0-9, _ and -")]


class InvoiceById(Query):
    id: InvoiceId


class InvoiceByExternalId(Query, CamelRequest):
    external_id: ExternalId


def _several(value: Any) -> Any:
    """One value, a list of them, or a text with commas."""
    texts = value if isinstance(value, list) else [value]
    return [part for text in texts for part in text.split(",")] if all(isinstance(text, str) for text in texts) else value


class InvoicesQuery(ListQuery):
    status: Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], BeforeValidator(_several)] | None = None
    address: AddressText | None = None
    currency: CoinSlug | None = None
    from_: Annotated[date | None, Field(alias="from")] = None
    to: date | None = None


@endpoint(
    "POST", "/invoices", family="flat", permission="invoices:create", body=InvoiceCreate, status=201, creates=True,
    summary="Ask to be paid",
)  # fmt: skip
def create_invoice(ctx: Ctx, body: InvoiceCreate) -> Answer:
    """Without `network`: the coin on its first active network; the answer says which. `expiresIn` in seconds."""
    coin = chosen_coin(ctx.catalogue, "currency", body.currency, body.network)
    answer = ctx.once(ctx.views.invoice)
    ctx.services.invoices.create(
        ctx.tenant,
        coin,
        parse_units(body.amount, coin.decimals),
        external_id=body.external_id,
        description=body.description,
        redirect_url=body.redirect_url,
        expires_in=body.expires_in,
        also=answer.also,
    )
    return answer.answer


@endpoint("GET", "/invoices", family="flat", permission="invoices:read", query=InvoiceById, summary="One invoice")
def get_invoice(ctx: Ctx, query: InvoiceById) -> Answer:
    try:
        return Answer(ctx.views.invoice(ctx.services.invoices.get(ctx.tenant, query.id)))
    except NotFound:
        raise InvalidParameter.one("id", query.id, "must be the id of an invoice") from None


@endpoint(
    "GET", "/invoices/getByExternalId", family="flat", permission="invoices:read", query=InvoiceByExternalId,
    summary="One invoice by the merchant's own id",
)  # fmt: skip
def get_by_external_id(ctx: Ctx, query: InvoiceByExternalId) -> Answer:
    try:
        return Answer(ctx.views.invoice(ctx.services.invoices.by_external_id(ctx.tenant, query.external_id)))
    except NotFound:
        raise InvalidParameter.one("externalId", query.external_id, "must be the externalId of an invoice") from None


@endpoint(
    "GET", "/invoices/getAll", family="flat", permission="invoices:read", query=InvoicesQuery,
    summary="The merchant's invoices, newest first",
)  # fmt: skip
def list_invoices(ctx: Ctx, query: InvoicesQuery) -> Answer:
    """`from` and `to` are inclusive days in UTC; `count` is how many invoices there are in all (see `pagination`)."""
    filtered = any(value is not None for value in (query.status, query.address, query.currency, query.from_, query.to))

    def wanted(invoice: Invoice) -> bool:
        day = iso(invoice.created_at)[:10]
        return (
            (query.status is None or invoice.status in query.status)
            and query.address in (None, invoice.address)
            and query.currency in (None, asset_parts(invoice.asset)[1])
            and (query.from_ is None or day >= query.from_.isoformat())
            and (query.to is None or day <= query.to.isoformat())
        )

    def fetch(limit: int, after: str | None, newest_first: bool) -> Any:
        return ctx.services.invoices.page(ctx.tenant, limit, after, newest_first)

    found, pagination = listed(query, fetch, lambda invoice: invoice.id, wanted if filtered else None)
    data = [ctx.views.invoice(invoice) for invoice in found]
    count = len(data) if pagination["total"] is None else pagination["total"]
    return Answer({"count": count, "data": data, "meta": {"pagination": pagination}})


@endpoint(
    "PUT", "/invoices", family="flat", permission="invoices:write", body=InvoiceOverride, status=201,
    summary="Set an invoice's status by hand",
)  # fmt: skip
def override_invoice(ctx: Ctx, body: InvoiceOverride) -> Answer:
    """Recorded with who and when; from then on nothing changes the status by itself."""
    try:
        invoice = ctx.services.invoices.override(ctx.tenant, body.invoice_id, body.status, ctx.key.id)
    except NotFound:
        raise InvalidParameter.one("invoiceId", body.invoice_id, "must be the id of an invoice") from None
    return Answer({"message": "Invoice status updated", "invoiceId": invoice.id, "newStatus": invoice.status})
