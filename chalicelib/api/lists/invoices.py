"""The list of a merchant's invoices."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from chalicelib.api.lists.common import assets_of_coin, assets_of_network, by_id, in_coin_units, slug_of
from chalicelib.api.lists.fields import ListField, Spelled, amount, coin, day, hash_text, network, text, time
from chalicelib.api.lists.listing import Listing
from chalicelib.api.lists.query import Shortcut
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.errors import InvalidParameter, NotFound
from chalicelib.domain.ids import asset_parts, first_id
from chalicelib.domain.invoices.invoices import Invoice

if TYPE_CHECKING:
    from chalicelib.api.context import Ctx


def _status(sent: str, _: Any) -> str:
    """Any status there may be: besides our own, whatever was set by hand."""
    if not re.fullmatch(r"[a-z0-9_-]{1,64}", sent, re.ASCII):
        raise ValueError("must have 1 to 64 characters of a-z, 0-9, _ and -")
    return sent


def _status_field() -> ListField:
    found = text("status", lambda r, _: r.status, "The status; several may be sent.", examples=("completed",))
    return replace(found, parse=_status, operators=("eq", "ne", "in", "like")).taking_several().indexed("status")


def _called(ctx: Ctx, external_id: str) -> list[Invoice]:
    try:
        return [ctx.services.invoices.by_external_id(ctx.tenant, external_id)]
    except NotFound:
        return []


def _paid_to(ctx: Ctx, sent: Spelled) -> list[Invoice]:
    """An address has one invoice at most."""
    try:
        made_for = ctx.services.addresses.find(ctx.tenant, sent.sent).invoice_id
        return [] if made_for is None else [ctx.services.invoices.get(ctx.tenant, made_for)]
    except (NotFound, InvalidParameter):
        return []


def _asked(invoice: Invoice, catalogue: Catalogue) -> Decimal | None:
    """In coin units; None where nobody has chosen a coin yet."""
    return None if invoice.address is None else in_coin_units(invoice.amount, invoice.asset, catalogue)


INVOICES = Listing(
    "invoices",
    (
        time("createdAt", lambda r, _: r.created_at, "When it was made.").known_as("created_at").indexed("time"),
        text("id", lambda r, _: r.id, "The invoice's id.", sortable=False),
        _status_field(),
        coin(lambda r, _: asset_parts(r.asset)[1] if r.address else None, name="currency").indexed("asset", assets_of_coin),
        network(lambda r, _: slug_of(r.network) if r.address else None).indexed("asset", assets_of_network),
        amount("amount", _asked, "What is asked for, in coin units."),
        amount("received", lambda r, c: in_coin_units(r.received, r.asset, c), "What was credited, in coin units."),
        hash_text("address", lambda r, _: r.address, "The payment address."),
        text("externalId", lambda r, _: r.external_id, "The merchant's own id."),
        time("expiresAt", lambda r, _: r.expires_at, "When it expires."),
    ),
    (
        Shortcut("from", "createdAt", "gte", "From this day on, UTC.", day, ("2026-05-01",)),
        Shortcut("to", "createdAt", "lte", "Up to and with this day, UTC.", day, ("2026-05-31",)),
    ),
    kind=Invoice,
    family="inv",
    indexes=frozenset({"time", "status", "asset"}),
    position=lambda ms: first_id("inv", ms),
    keyed={"id": by_id(Invoice), "externalId": _called, "address": _paid_to},
)
