"""Stakes of the hot wallet on Tron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from chalicelib.api.coins_by_name import amount_problem
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import PositiveAmount
from chalicelib.api.lists import Listing, amount, choice, text, time
from chalicelib.api.lists.common import in_coin_units
from chalicelib.api.lists.query import PageQuery
from chalicelib.api.models import Request
from chalicelib.api.problems import shown
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.errors import FieldProblem
from chalicelib.domain.money import format_units, parse_units
from chalicelib.domain.treasury.stakes import Resource, Stake

STAKES = Listing(
    "stakes",
    (
        text("transactionId", lambda r, _: r.txid, "The transaction's hash.", sortable=False),
        amount("amount", lambda r, c: in_coin_units(r.amount, c.native("tron").asset, c), "The amount, in TRX."),
        choice("resource", lambda r, _: r.resource, get_args(Resource), "What it was staked for."),
        choice("status", lambda r, _: r.status, ("pending", "confirmed", "failed"), "How far it is."),
        time("createdAt", lambda r, _: r.created_at, "When it was asked for.").known_as("created_at"),
    ),
    bare=True,
    order="desc",
)


class StakeRequest(Request):
    """What shall be staked."""

    amount: Annotated[PositiveAmount, Field(description="TRX, 1 at least.", examples=["1000"])]
    resource: Annotated[Literal["BANDWIDTH", "ENERGY"], Field(description="What it is staked for.")]

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        if "amount" in wrong:
            return []
        words = amount_problem(catalogue.native("tron"), sent["amount"])
        return [] if words is None else [FieldProblem("amount", shown("amount", sent["amount"]), (words,))]


@endpoint(
    "POST", "/networks/tron/stake", family="object", level="admin", permission="networks:write", body=StakeRequest, status=201,
    creates=True, summary="Stake TRX of the hot wallet", answer="networks.Stake", errors=("INSUFFICIENT_BALANCE",),
)  # fmt: skip
def stake(ctx: Ctx, body: StakeRequest) -> Answer:
    """The answer is `pending`, and it is `confirmed` when its block has the network's confirmations (`GET /networks/tron/stake`).
    It is a transaction of the merchant whose key ordered it (`GET /transactions?type=stake`). What is staked is no longer in the
    hot wallet's balance. With too little in the hot wallet it is refused here (`INSUFFICIENT_BALANCE`), or `failed` where the
    coins went elsewhere before it was in a block.

    On the real Tron (Stake 2.0) the node is asked for the transaction at once, and it is signed within seconds. One that no block
    took within ten minutes is replaced by another, whose `transactionId` is a new one, when the chain's solid block proves
    that the first can never be taken. Where tron is not active, or its node does not answer: `VALIDATION_ERROR`.
    """
    coin = ctx.catalogue.native("tron")
    units = parse_units(body.amount, coin.decimals)
    ordering = ctx.services.staking.ordering(ctx.tenant, ctx.catalogue.networks["tron"], coin, units, body.resource)
    return ctx.create(ordering, lambda made: staked(made, coin))


@endpoint(
    "GET", "/networks/tron/stake", family="object", level="admin", permission="networks:read", query=STAKES,
    summary="All stakes, newest first", answer="list[networks.Stake]",
)  # fmt: skip
def stakes(ctx: Ctx, query: PageQuery) -> Answer:
    """All of them unless `limit` or `page` is sent."""
    coin = ctx.catalogue.native("tron")
    found = STAKES.array(ctx, query, ctx.services.staking.all(ctx.catalogue.networks["tron"]))
    return Answer([staked(stake, coin) for stake in found])


def staked(made: Stake, coin: Coin) -> dict[str, Any]:
    amount = format_units(made.amount, coin.decimals)
    return {"transactionId": made.txid, "amount": amount, "resource": made.resource, "status": made.status}
