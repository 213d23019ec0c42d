"""Refunds of invoices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import AddressText, CoinSlug, NetworkSlug, PositiveAmount
from chalicelib.api.lists import Listing, ListQuery, amount, choice, coin, hash_text, network, text, time
from chalicelib.api.lists.common import by_id, in_coin_units, slug_of
from chalicelib.api.lists.query import PageQuery
from chalicelib.api.models import CamelRequest
from chalicelib.api.problems import shown
from chalicelib.api.resources.invoices.invoice_settings import ExpirySeconds
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.errors import FieldProblem
from chalicelib.domain.ids import asset_parts, first_id
from chalicelib.domain.money import plain
from chalicelib.domain.refunds.refunds import MODES, Mode, Refund
from chalicelib.usecases.refunds.amounts import Asked
from chalicelib.usecases.refunds.making import Made
from chalicelib.usecases.refunds.refund_reads import Shown
from chalicelib.usecases.refunds.refunds import RefundWishes

SHOWN_ONCE = {"claimUrl": "https://pay.example/api/claim/5w8mJ0y3Qk1rZt7uXv2bNc4dEf6gHi8jKl0mNo2pQr4"}
"""An example of what the answer to a POST has alone."""
_STATES = ("awaiting_claim", "pending", "processing", "completed", "failed", "expired", "cancelled")


class RefundCreate(CamelRequest):
    """What shall go back to who paid an invoice."""

    mode: Annotated[
        Mode,
        Field(
            description="`same`: in a coin that the invoice was paid in. `fiat`: an amount in the invoice's currency, at the rate "
            "of now.",
            examples=["same"],
        ),
    ]
    amount: Annotated[
        PositiveAmount | None,
        Field(
            description="In coin units; in the mode `fiat` in the invoice's currency. Without it: what was overpaid of a completed "
            "invoice, else all that is credited and not refunded.",
            examples=["0.05"],
        ),
    ] = None
    coin: Annotated[
        CoinSlug | None,
        Field(description="Needed in the mode `same` where the invoice was paid in two; in `fiat` by default the one paid most."),
    ] = None
    network: NetworkSlug | None = None
    address: Annotated[
        AddressText | None, Field(description="Where to pay to. Without it the answer has a link that asks for it.")
    ] = None
    reason: Annotated[str | None, Field(max_length=500, description="Its payer sees it.", examples=["Out of stock"])] = None
    sent_by: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=100,
            description="How you send the link, in your words: the invoice's page shows it, and never the link.",
            examples=["E-mail to j…@example.com"],
        ),
    ] = None
    expires_in: Annotated[
        ExpirySeconds | None, Field(description="Seconds in which the link can be used; 7 days by default.", examples=[604_800])
    ] = None

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        words = "must not be there together with address: there is nothing to claim"
        problems = [
            FieldProblem(name, shown(name, sent[name]), (words,))
            for name in ("expiresIn", "sentBy")
            if sent.get("address") is not None and sent.get(name) is not None and name not in wrong
        ]
        if sent.get("network") is not None and sent.get("coin") is None and sent.get("mode") == "fiat" and "network" not in wrong:
            problems.append(FieldProblem("coin", None, ("is required with network in the mode fiat",)))
        return problems


def _found(shown: Shown) -> Any:
    return shown.refund.terms


REFUNDS = Listing(
    "refunds",
    (
        time("createdAt", lambda r, _: _found(r).created_at, "When it was made.").known_as("created_at"),
        text("id", lambda r, _: r.refund.id, "The refund's id."),
        choice("status", lambda r, _: r.status, _STATES, "How far it is."),
        choice("mode", lambda r, _: _found(r).mode, MODES, "What its amount was asked for in."),
        network(lambda r, _: slug_of(_found(r).network)),
        coin(lambda r, _: asset_parts(_found(r).asset)[1]),
        amount("amount", lambda r, c: in_coin_units(_found(r).amount, _found(r).asset, c), "The amount, in coin units."),
        hash_text("address", lambda r, _: r.refund.address, "Where it is paid to."),
    ),
    bare=True,
)

ALL_REFUNDS = Listing(
    "all-refunds",
    (
        time("createdAt", lambda r, _: r.terms.created_at, "When it was made.").known_as("created_at").indexed("time"),
        text("id", lambda r, _: r.id, "The refund's id.", sortable=False),
        text("invoiceId", lambda r, _: r.terms.invoice_id, "Whose money goes back.", sortable=False).known_as("invoice_id"),
        choice("mode", lambda r, _: r.terms.mode, MODES, "What its amount was asked for in."),
        network(lambda r, _: slug_of(r.terms.network)),
        coin(lambda r, _: asset_parts(r.terms.asset)[1]),
        amount("amount", lambda r, c: in_coin_units(r.terms.amount, r.terms.asset, c), "The amount, in coin units."),
        hash_text("address", lambda r, _: r.address, "Where it is paid to."),
        time("expiresAt", lambda r, _: r.terms.expires_at, "Until when its link can be used.").known_as("expires_at"),
    ),
    kind=Refund,
    position=lambda ms: first_id("ref", ms),
    keyed={"id": by_id(Refund)},
)


def made_record(ctx: Ctx, made: Made) -> dict[str, Any]:
    """The record as its creation answers it: with the link."""
    return ctx.views.refund(made.refund, claim_url=made.claim_url)


def shown_record(ctx: Ctx, found: Shown) -> dict[str, Any]:
    return ctx.views.refund(found.refund, found.withdrawal)


@endpoint(
    "POST", "/invoices/{id}/refunds", family="flat", permission="withdrawals:create",
    body=RefundCreate, status=201, creates=True, answer="refunds.Refund",
    errors=("NOT_FOUND", "INVALID_ADDRESS", "INSUFFICIENT_BALANCE", "DAILY_LIMIT_EXCEEDED"),
    summary="Give money of an invoice back", shows=SHOWN_ONCE,
)  # fmt: skip
def create_refund(ctx: Ctx, body: RefundCreate) -> Answer:
    """Out of the merchant's balance: the amount is frozen with the answer. With `address` its withdrawal is ordered at once;
    without it the answer has `claimUrl`, a page that asks the payer for an address of the right network, shows it back and pays
    once. A link that nobody used expires, and the money is available again.

    Each refund is a fraction of what is credited for the invoice now, by units or, in the mode `fiat`, by worth as it was counted.
    The fractions never exceed 1, and never more of a coin is refunded in the mode `same` than came in it. Open invoices can be
    refunded too, and what was refunded still counts as paid: cancel one first that the rest must not complete. A payment that
    falls out of the chain takes its part away: while the rest does not cover the refunds, none is made and no link of them can be
    used. What came late is no overpayment, unless it counts: of a completed invoice that was paid again after its time, name the
    `amount`, or all of it goes back.

    A refund is paid by a withdrawal with all its rules: approvals, limits, risk, the kill switch, the fee budget. Where
    `whitelist_enforced` is on it may go to any address, as far as `refundDailyLimitUSD` of the merchant's settings allows.
    """
    asked = Asked(body.mode, None if body.amount is None else plain(body.amount), body.coin, body.network)
    wishes = RefundWishes(body.address, body.reason, body.expires_in, ctx.gateway_url, body.sent_by)
    creating = ctx.services.refunds.creating(ctx.tenant, ctx.param("id"), asked, wishes)
    return ctx.create(creating, lambda made: made_record(ctx, made), secret=body.address is None)


@endpoint(
    "GET", "/invoices/{id}/refunds", family="flat", permission="withdrawals:read", query=REFUNDS,
    answer="list[refunds.Refund]", errors=("NOT_FOUND",), summary="All refunds of an invoice",
)  # fmt: skip
def list_refunds(ctx: Ctx, query: PageQuery) -> Answer:
    """Newest first; an invoice has 100 at most."""
    found = ctx.services.refunds.of_invoice(ctx.tenant, ctx.param("id"))[::-1]
    return Answer([shown_record(ctx, each) for each in REFUNDS.array(ctx, query, found)])


@endpoint(
    "GET", "/refunds", family="object", permission="withdrawals:read", query=ALL_REFUNDS, envelope=True,
    answer="list[refunds.Refund]", summary="The merchant's refunds, newest first",
)  # fmt: skip
def list_all_refunds(ctx: Ctx, query: ListQuery) -> Answer:
    """Of all invoices. Their `claimUrl` is null: it was shown when they were made."""
    found, pagination = ALL_REFUNDS.page(ctx, query)
    return Answer([shown_record(ctx, each) for each in ctx.services.refunds.shown(found)], pagination)


@endpoint(
    "GET", "/refunds/{id}", family="object", permission="withdrawals:read", answer="refunds.Refund", errors=("NOT_FOUND",),
    summary="One refund",
)  # fmt: skip
def get_refund(ctx: Ctx) -> Answer:
    """`status` follows the withdrawal that pays it."""
    return Answer(shown_record(ctx, ctx.services.refunds.get(ctx.tenant, ctx.param("id"))))


@endpoint(
    "DELETE", "/refunds/{id}", family="object", permission="withdrawals:create", answer="refunds.Refund", errors=("NOT_FOUND",),
    summary="Cancel a refund", shows={"status": "cancelled"},
)  # fmt: skip
def cancel_refund(ctx: Ctx) -> Answer:
    """Before it is paid: a link that was not used, or a withdrawal that is pending. The money is available again, and the link
    pays nobody. One that is cancelled already is answered as it is."""
    return Answer(shown_record(ctx, ctx.services.refunds.cancel(ctx.tenant, ctx.param("id"))))
