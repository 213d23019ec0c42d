"""What happened on the chains for the merchant."""

from __future__ import annotations

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.paging import ListQuery, listed
from chalicelib.api.routes import endpoint
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits import Deposit
from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.ports import Page

_HASHES_SEEN = 10_000  # transactions that a search by hash looks through, newest first
_CHUNK = 500


@endpoint(
    "GET", "/transactions", family="envelope", permission="transactions:read", query=ListQuery,
    summary="The merchant's transactions, newest first",
)  # fmt: skip
def list_transactions(ctx: Ctx, query: ListQuery) -> Answer:
    def fetch(limit: int, after: str | None, newest_first: bool) -> Page[Deposit]:
        return _page(ctx, limit, after, newest_first)

    found, pagination = listed(query, fetch, lambda deposit: f"{deposit.created_at:015d}#{deposit.id}")
    tips = _tips(ctx, found)
    return Answer([ctx.views.deposit(deposit, tips.get(deposit.network)) for deposit in found], pagination)


@endpoint(
    "GET", "/transactions/{txId}", family="envelope", permission="transactions:read",
    summary="One transaction, by its id or by its hash on the chain",
)  # fmt: skip
def get_transaction(ctx: Ctx) -> Answer:
    """Where several movements to the merchant share a hash, the newest is shown."""
    name = ctx.param("txId")
    found = ctx.services.store.get(Deposit, id=name) if name.startswith("tx_") else _by_hash(ctx, name)
    if found is None or found.tenant != ctx.tenant:
        raise NotFound(f"No transaction {name[:80]}", {"txId": name[:80]})
    return Answer(ctx.views.deposit(found, _tips(ctx, [found]).get(found.network)))


def _page(ctx: Ctx, limit: int, after: str | None, newest_first: bool) -> Page[Deposit]:
    return ctx.services.store.page(Deposit, limit=limit, after=after, newest_first=newest_first, tenant=ctx.tenant)


def _by_hash(ctx: Ctx, txid: str) -> Deposit | None:
    after: str | None = None
    for _ in range(_HASHES_SEEN // _CHUNK):
        page = _page(ctx, _CHUNK, after, True)
        for deposit in page.items:
            if deposit.txid.lower() == txid.lower():
                return deposit
        after = page.next
        if after is None:
            return None
    return None


def _tips(ctx: Ctx, deposits: list[Deposit]) -> dict[NetworkId, int]:
    """The height of each network that has an unconfirmed deposit among these: the others' count is settled."""
    networks = sorted({deposit.network for deposit in deposits if deposit.status == "pending"})
    if not networks:
        return {}
    cursors = ctx.services.store.get_many([(Cursor, {"network": network}) for network in networks])
    return {cursor.network: cursor.tip for cursor in cursors if cursor is not None}
