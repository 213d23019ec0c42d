"""One invoice, named by its path: read, cancelled, given more time."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.models import CamelRequest
from chalicelib.api.resources.invoices.invoices import looked_at, shown_invoices
from chalicelib.api.routes import endpoint

MAX_EXTENSION = 30 * 86400
"""Seconds."""


class InvoiceExtension(CamelRequest):
    """How long it can still be paid."""

    expires_in: Annotated[int, Field(ge=1, le=MAX_EXTENSION, description="Seconds from now, 30 days at most.", examples=[3600])]


@endpoint(
    "GET", "/invoices/{id}", family="flat", permission="invoices:read", answer="invoices.Invoice",
    summary="One invoice, by its path",
)  # fmt: skip
def get_invoice_by_path(ctx: Ctx) -> Answer:
    """As `GET /v1/invoices?id=…`, with 404 for an id that never was, or another merchant's."""
    return Answer(looked_at(ctx, ctx.services.invoices.get(ctx.tenant, ctx.param("id"))))


@endpoint(
    "DELETE", "/invoices/{id}", family="flat", permission="invoices:write", answer="invoices.Invoice", summary="Cancel an invoice",
    shows={"status": "cancelled", "paymentUri": None},
)  # fmt: skip
def cancel_invoice(ctx: Ctx) -> Answer:
    """While it is `pending` or `partial`: what was paid stays the merchant's. Cancelling it again changes nothing and is answered
    the same; any other status is VALIDATION_ERROR.

    It is cancelled for good: what is paid afterwards is credited and raises `invoice.late_payment`, and never completes it.
    """
    return Answer(shown_invoices(ctx, [ctx.services.invoice_deadlines.cancel(ctx.tenant, ctx.param("id"))])[0])


@endpoint(
    "POST", "/invoices/{id}/extend", family="flat", permission="invoices:write", body=InvoiceExtension, status=200,
    answer="invoices.Invoice", summary="Give an invoice more time",
)  # fmt: skip
def extend_invoice(ctx: Ctx, body: InvoiceExtension) -> Answer:
    """While it is `pending` or `partial`, or `expired` without any payment: then it is `pending` again. Any other status is
    VALIDATION_ERROR. The price stays what it was. A time that would end before the present one changes nothing.
    """
    return Answer(shown_invoices(ctx, [ctx.services.invoice_deadlines.extend(ctx.tenant, ctx.param("id"), body.expires_in)])[0])
