"""Withdrawals, in both published forms."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.models import AddressText, CoinSlug, Metadata, MoneyRequest, NetworkSlug, PositiveAmount, chosen_coin
from chalicelib.api.paging import ListQuery, listed
from chalicelib.api.routes import endpoint
from chalicelib.domain.addresses import Wallet
from chalicelib.domain.errors import InvalidParameter
from chalicelib.domain.ids import asset_parts, network_parts
from chalicelib.domain.money import parse_units
from chalicelib.domain.withdrawals import Priority, Withdrawal
from chalicelib.usecases.ports import Page
from chalicelib.usecases.views import iso
from chalicelib.usecases.withdrawals import payout_parts

_MINUTES: dict[Priority, int] = {"low": 60, "normal": 30, "high": 15, "urgent": 10}
"""The longer end of the published confirmation times."""
_PENDING_SEEN = 1000  # pending withdrawals of one network that the operator's list looks at


class WithdrawCreate(MoneyRequest):
    network: NetworkSlug
    coin: CoinSlug
    address: AddressText
    amount: PositiveAmount


class WithdrawalCreate(MoneyRequest):
    network: NetworkSlug
    coin: CoinSlug
    amount: PositiveAmount
    to_address: AddressText
    from_address_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    priority: Priority = "normal"
    metadata: Metadata | None = None


class WithdrawalsQuery(ListQuery):
    status: Literal["pending", "processing", "broadcasting", "confirming", "confirmed", "failed", "cancelled"] | None = None
    network: NetworkSlug | None = None
    coin: CoinSlug | None = None


@endpoint(
    "POST", "/withdraws", family="object", permission="withdrawals:create", rate_class="withdrawals.create", body=WithdrawCreate,
    status=201, creates=True, summary="Pay out",
)  # fmt: skip
def create_withdraw(ctx: Ctx, body: WithdrawCreate) -> Answer:
    return _create(ctx, body.network, body.coin, body.amount, body.address, "normal", None)


@endpoint(
    "POST", "/withdrawals", family="envelope", permission="withdrawals:create", rate_class="withdrawals.create",
    body=WithdrawalCreate, status=201, creates=True, summary="Pay out",
)  # fmt: skip
def create_withdrawal(ctx: Ctx, body: WithdrawalCreate) -> Answer:
    if body.from_address_id is not None:
        hot = ctx.services.store.get(Wallet, network=ctx.catalogue.networks[body.network].id, role="hot")
        if hot is None or hot.address != body.from_address_id:
            raise InvalidParameter.one("from_address_id", body.from_address_id, f"must be a hot wallet of {body.network}")
    return _create(ctx, body.network, body.coin, body.amount, body.to_address, body.priority, body.metadata)


def _create(
    ctx: Ctx, network: str, slug: str, amount: str, to_address: str, priority: Priority, metadata: dict[str, Any] | None
) -> Answer:
    coin = chosen_coin(ctx.catalogue, "coin", slug, network)

    def record(withdrawal: Withdrawal) -> dict[str, Any]:
        expected = iso(withdrawal.created_at + _MINUTES[withdrawal.priority] * 60_000)
        return {**ctx.views.withdrawal(withdrawal), "estimated_confirmation_time": expected}

    answer = ctx.once(record)
    ctx.services.withdrawals.create(
        ctx.tenant,
        coin,
        parse_units(amount, coin.decimals),
        to_address,
        priority=priority,
        metadata=metadata,
        also=answer.also,
    )
    return answer.answer


@endpoint(
    "GET", "/withdraws", family="object", level="admin", permission="withdrawals:read", query=ListQuery, envelope=True,
    summary="Pending withdrawals of all merchants",
)  # fmt: skip
def list_pending(ctx: Ctx, query: ListQuery) -> Answer:
    """Of the admin key's realm. At most 1,000 of each network are looked at."""
    store = ctx.services.store
    wanted: list[tuple[type[Any], dict[str, str]]] = []
    for network in ctx.catalogue.networks.values():
        for work in store.open_work("payout", network.id, limit=_PENDING_SEEN):
            tenant, withdrawal_id = payout_parts(work)
            wanted.append((Withdrawal, {"tenant": tenant, "id": withdrawal_id}))
    pending = [w for w in (store.get_many(wanted) if wanted else []) if w is not None and w.status == "pending"]

    def fetch(limit: int, after: str | None, newest_first: bool) -> Page[Withdrawal]:
        rows = sorted(pending, key=lambda w: w.id, reverse=newest_first)
        if after is not None:
            rows = [w for w in rows if (w.id < after if newest_first else w.id > after)]
        return Page(rows[:limit], rows[limit - 1].id if len(rows) > limit else None)

    found, pagination = listed(query, fetch, lambda w: w.id)
    return Answer([ctx.views.withdrawal(w) for w in found], pagination)


@endpoint(
    "GET", "/withdrawals", family="envelope", permission="withdrawals:read", query=WithdrawalsQuery,
    summary="The merchant's withdrawals, newest first",
)  # fmt: skip
def list_withdrawals(ctx: Ctx, query: WithdrawalsQuery) -> Answer:
    filtered = any(value is not None for value in (query.status, query.network, query.coin))

    def wanted(w: Withdrawal) -> bool:
        return (
            query.status in (None, w.status)
            and query.network in (None, network_parts(w.network)[1])
            and query.coin in (None, asset_parts(w.asset)[1])
        )

    def fetch(limit: int, after: str | None, newest_first: bool) -> Page[Withdrawal]:
        return ctx.services.withdrawals.page(ctx.tenant, limit, after, newest_first)

    found, pagination = listed(query, fetch, lambda w: w.id, wanted if filtered else None)
    return Answer([ctx.views.withdrawal(w) for w in found], pagination)


@endpoint("GET", "/withdrawals/{id}", family="envelope", permission="withdrawals:read", summary="One withdrawal")
def get_withdrawal(ctx: Ctx) -> Answer:
    return Answer(ctx.views.withdrawal(ctx.services.withdrawals.get(ctx.tenant, ctx.param("id"))))


@endpoint("DELETE", "/withdrawals/{id}", family="envelope", permission="withdrawals:write", summary="Cancel a pending withdrawal")
def cancel_withdrawal(ctx: Ctx) -> Answer:
    return Answer(ctx.views.withdrawal(ctx.services.withdrawals.cancel(ctx.tenant, ctx.param("id"))))
