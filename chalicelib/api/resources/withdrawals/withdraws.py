"""Withdrawals in the reference form: bare objects."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.coins_by_name import chosen_coin
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import AddressText, CoinSlug, NetworkSlug, PositiveAmount
from chalicelib.api.lists import ListQuery
from chalicelib.api.lists.withdrawals import PENDING
from chalicelib.api.models import MoneyRequest
from chalicelib.api.resources.withdrawals.withdrawals import create_one
from chalicelib.api.routes import endpoint
from chalicelib.domain.money import parse_units
from chalicelib.usecases.withdrawals.facts import Output


class WithdrawCreate(MoneyRequest):
    """One withdrawal."""

    network: NetworkSlug
    coin: CoinSlug
    address: Annotated[AddressText, Field(examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    amount: PositiveAmount


@endpoint(
    "POST", "/withdraws", family="object", permission="withdrawals:create", rate_class="withdrawals.create", body=WithdrawCreate,
    status=201, creates=True, answer="withdrawals.CreatedWithdrawal", summary="Pay out",
)  # fmt: skip
def create_withdraw(ctx: Ctx, body: WithdrawCreate) -> Answer:
    """The same withdrawal as `POST /withdrawals` makes, at the priority normal, answered without the envelope."""
    coin = chosen_coin(ctx.catalogue, "coin", body.coin, body.network)
    return create_one(ctx, coin, Output(body.address, parse_units(body.amount, coin.decimals), "address"))


@endpoint(
    "GET", "/withdraws", family="object", level="admin", permission="withdrawals:read", query=PENDING, envelope=True,
    answer="list[withdrawals.Withdrawal]", summary="Pending withdrawals of all merchants",
)  # fmt: skip
def list_pending(ctx: Ctx, query: ListQuery) -> Answer:
    """Of the admin key's realm, those that wait for an approval included."""
    chosen, pagination = PENDING.page(ctx, query)
    return Answer([ctx.views.withdrawal(w) for w in chosen], pagination)
