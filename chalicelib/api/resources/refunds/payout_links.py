"""Payout links: links that pay who has them, at an address of their own."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from chalicelib.api.coins_by_name import chosen_coin
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import CoinSlug, Metadata, NetworkSlug, PositiveAmount
from chalicelib.api.lists import Listing, ListQuery, amount, coin, hash_text, network, text, time
from chalicelib.api.lists.common import by_id, in_coin_units, slug_of
from chalicelib.api.models import CamelRequest, MoneyRequest
from chalicelib.api.resources.invoices.invoice_settings import ExpirySeconds
from chalicelib.api.resources.refunds.refunds import SHOWN_ONCE, made_record, shown_record
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import asset_parts, first_id
from chalicelib.domain.money import parse_units
from chalicelib.domain.refunds.refunds import PayoutLink
from chalicelib.usecases.refunds.payout_links import LinkWishes


class PayoutLinkCreate(MoneyRequest, CamelRequest):
    """A payout whose address is not known yet."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"network": "ethereum", "coin": "eth", "amount": "0.05", "description": "Prize of May"}]}
    )

    network: NetworkSlug
    coin: CoinSlug
    amount: PositiveAmount
    description: Annotated[str | None, Field(max_length=500, description="Its payee sees it.", examples=["Prize of May"])] = None
    expires_in: Annotated[
        ExpirySeconds | None, Field(description="Seconds in which the link can be used; 7 days by default.", examples=[604_800])
    ] = None
    metadata: Metadata | None = None


PAYOUT_LINKS = Listing(
    "payout-links",
    (
        time("createdAt", lambda r, _: r.terms.created_at, "When it was made.").known_as("created_at").indexed("time"),
        text("id", lambda r, _: r.id, "The link's id.", sortable=False),
        network(lambda r, _: slug_of(r.terms.network)),
        coin(lambda r, _: asset_parts(r.terms.asset)[1]),
        amount("amount", lambda r, c: in_coin_units(r.terms.amount, r.terms.asset, c), "The amount, in coin units."),
        hash_text("address", lambda r, _: r.address, "Where it is paid to."),
        time("expiresAt", lambda r, _: r.terms.expires_at, "Until when it can be used.").known_as("expires_at"),
    ),
    kind=PayoutLink,
    position=lambda ms: first_id("pol", ms),
    keyed={"id": by_id(PayoutLink)},
)


@endpoint(
    "POST", "/payout-links", family="object", permission="withdrawals:create",
    body=PayoutLinkCreate, status=201, creates=True, answer="refunds.PayoutLink",
    errors=("INSUFFICIENT_BALANCE", "DAILY_LIMIT_EXCEEDED"), summary="Pay somebody whose address is not known",
    shows=SHOWN_ONCE,
)  # fmt: skip
def create_payout_link(ctx: Ctx, body: PayoutLinkCreate) -> Answer:
    """The amount is frozen with the answer, and `claimUrl` is there once: who has it names an address, and is paid once. It is a
    withdrawal with all its rules then. Where `whitelist_enforced` is on, `refundDailyLimitUSD` counts these links too. Unused
    until `expiresAt`, the money is available again."""
    found = chosen_coin(ctx.catalogue, "coin", body.coin, body.network)
    wishes = LinkWishes(body.description, body.expires_in, body.metadata or {}, ctx.gateway_url)
    creating = ctx.services.payout_links.creating(ctx.tenant, found, parse_units(body.amount, found.decimals), wishes)
    return ctx.create(creating, lambda made: made_record(ctx, made), secret=True)


@endpoint(
    "GET", "/payout-links", family="object", permission="withdrawals:read", query=PAYOUT_LINKS, envelope=True,
    answer="list[refunds.PayoutLink]", summary="The merchant's payout links, newest first",
)  # fmt: skip
def list_payout_links(ctx: Ctx, query: ListQuery) -> Answer:
    """Their `claimUrl` is null: it was shown when they were made."""
    found, pagination = PAYOUT_LINKS.page(ctx, query)
    return Answer([shown_record(ctx, each) for each in ctx.services.payout_links.shown(found)], pagination)


@endpoint(
    "GET", "/payout-links/{id}", family="object", permission="withdrawals:read", answer="refunds.PayoutLink",
    errors=("NOT_FOUND",), summary="One payout link",
)  # fmt: skip
def get_payout_link(ctx: Ctx) -> Answer:
    """`status` follows the withdrawal that pays it."""
    return Answer(shown_record(ctx, ctx.services.payout_links.get(ctx.tenant, ctx.param("id"))))


@endpoint(
    "DELETE", "/payout-links/{id}", family="object", permission="withdrawals:create", answer="refunds.PayoutLink",
    errors=("NOT_FOUND",), summary="Cancel a payout link", shows={"status": "cancelled"},
)  # fmt: skip
def cancel_payout_link(ctx: Ctx) -> Answer:
    """Before it is paid. The money is available again, and the link pays nobody. One that is cancelled already is answered as it
    is."""
    return Answer(shown_record(ctx, ctx.services.payout_links.cancel(ctx.tenant, ctx.param("id"))))
