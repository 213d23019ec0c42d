"""Withdrawals in the reference form: bare objects."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.models import AddressText, CoinSlug, MoneyRequest, NetworkSlug, PositiveAmount
from chalicelib.api.paging import ListQuery, listed
from chalicelib.api.resources.withdrawals import create_one
from chalicelib.api.routes import endpoint
from chalicelib.domain.withdrawals import Withdrawal
from chalicelib.usecases.ports import Page
from chalicelib.usecases.withdrawal_steps import payout_parts

_PENDING_SEEN = 1000  # pending withdrawals of one network that the operator's list looks at


class WithdrawCreate(MoneyRequest):
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
    return create_one(ctx, body.network, body.coin, body.amount, body.address, address_field="address")


@endpoint(
    "GET", "/withdraws", family="object", level="admin", permission="withdrawals:read", query=ListQuery, envelope=True,
    answer="list[withdrawals.Withdrawal]", summary="Pending withdrawals of all merchants",
)  # fmt: skip
def list_pending(ctx: Ctx, query: ListQuery) -> Answer:
    """Of the admin key's realm, those that wait for an approval included. At most 1,000 of each network are looked at, and 1,000
    that wait for an approval."""
    store = ctx.services.store
    wanted: list[tuple[type[Any], dict[str, str]]] = []
    for network in ctx.catalogue.networks.values():
        for work in store.open_work("payout", network.id, limit=_PENDING_SEEN):
            tenant, withdrawal_id = payout_parts(work)
            wanted.append((Withdrawal, {"tenant": tenant, "id": withdrawal_id}))
    wanted += [
        (Withdrawal, {"tenant": request.tenant, "id": request.id})
        for request in ctx.services.approvals.page(ctx.realm, _PENDING_SEEN).items
    ]
    # One that was approved a moment ago may be in both.
    found = store.get_many(wanted) if wanted else []
    pending = list({w.id: w for w in found if w is not None and w.status == "pending"}.values())

    def fetch(limit: int, after: str | None, newest_first: bool) -> Page[Withdrawal]:
        rows = sorted(pending, key=lambda w: w.id, reverse=newest_first)
        if after is not None:
            rows = [w for w in rows if (w.id < after if newest_first else w.id > after)]
        return Page(rows[:limit], rows[limit - 1].id if len(rows) > limit else None)

    chosen, pagination = listed(query, fetch, lambda w: w.id)
    return Answer([ctx.views.withdrawal(w) for w in chosen], pagination)
