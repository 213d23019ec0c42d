"""Collections: balances on their way from deposit addresses to the service wallets. The operator's, of one realm."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, amount, choice, coin, hash_text, network, text, time
from chalicelib.api.lists.common import assets_of_coin, assets_of_network, in_coin_units, slug_of
from chalicelib.api.models import CamelRequest
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import place_in_time
from chalicelib.domain.money import format_units
from chalicelib.domain.times import iso
from chalicelib.domain.treasury.collections import STATES, Collection


class CollectionDecision(CamelRequest):
    """What the operator decided about a collection."""

    action: Annotated[
        Literal["approve", "reject", "retry"],
        Field(
            description=(
                "`approve` is for one that waits for an approval, `reject` for that and for one that is parked, `retry` for one "
                "that is parked or waits."
            ),
            examples=["approve"],
        ),
    ]
    reason: (
        Annotated[str, Field(min_length=1, max_length=200, description="Why; kept with it.", examples=["checked by hand"])] | None
    ) = None


def _of_realm(ctx: Ctx, id: str) -> list[Collection]:
    found = ctx.services.store.get(Collection, id=id)
    return [found] if found is not None and found.realm == ctx.realm else []


COLLECTIONS = Listing(
    "collections",
    (
        time("createdAt", lambda r, _: r.created_at, "When it was started.").known_as("created_at").indexed("time"),
        text("id", lambda r, _: r.id, "The collection's id.", sortable=False),
        choice("status", lambda r, _: r.state, STATES, "How far it is.").indexed("status"),
        text("reason", lambda r, _: r.reason, "What it waits for, or why it is parked."),
        network(lambda r, _: slug_of(r.network)).indexed("asset", assets_of_network),
        coin(lambda r, _: r.coin).indexed("asset", assets_of_coin),
        amount("amount", lambda r, c: in_coin_units(r.amount, r.asset, c), "The amount, in coin units."),
        hash_text("address", lambda r, _: r.address, "The deposit address.").indexed("address"),
        hash_text("destination", lambda r, _: r.destination, "The service wallet."),
        time("updatedAt", lambda r, _: r.updated_at, "When it changed last.").known_as("updated_at"),
    ),
    family="col",
    owner=lambda ctx: ctx.realm,
    indexes=frozenset({"time", "status", "asset", "address"}),
    position=lambda ms: place_in_time(ms, ""),
    keyed={"id": _of_realm},
    place=lambda r: place_in_time(r.created_at, r.id),
)


@endpoint(
    "GET", "/collections", family="object", level="admin", permission="addresses:read", query=COLLECTIONS, envelope=True,
    answer="list[collections.Collection]", summary="Collections of all merchants' addresses, newest first",
)  # fmt: skip
def list_collections(ctx: Ctx, query: ListQuery) -> Answer:
    """Of the key's realm, those at their end too. Not the published interface's: how coins get from deposit addresses to the
    service wallets is nowhere else to be seen. On live bitcoin and litecoin many deposits are spent at once: what waits is one
    collection of the network there, at the hot wallet's address, and so is each transaction above approveThreshold (rejected, its
    coins are left alone for a day); the rest are transactions of type `collection` alone."""
    found, pagination = COLLECTIONS.page(ctx, query)
    return Answer([_view(ctx, one) for one in found], pagination)


@endpoint(
    "GET", "/collections/{id}", family="object", level="admin", permission="addresses:read", answer="collections.Collection",
    summary="One collection",
)  # fmt: skip
def get_collection(ctx: Ctx) -> Answer:
    """404 for one of the other realm."""
    return Answer(_view(ctx, ctx.services.collect_decisions.read(ctx.realm, ctx.param("id"))))


@endpoint(
    "PUT", "/collections/{id}", family="object", level="admin", permission="addresses:write", body=CollectionDecision,
    answer="collections.Collection", errors=("NOT_FOUND",), summary="Approve, refuse or retry a collection",
    shows={"status": "planned"},
)  # fmt: skip
def decide_collection(ctx: Ctx, body: CollectionDecision) -> Answer:
    """`approve`: goes on with the amount that it has now; what came to the address since is left for the next one. `reject`: ends
    it; the next deposit to the address asks again. `retry`: looks again at once, with the settings, fees and balances of then, and
    with as many tries and top-ups as a new one has.
    Anything else than what fits its status is a VALIDATION_ERROR. The poll of its network takes the next step."""
    decided = ctx.services.collect_decisions.decide(ctx.realm, ctx.param("id"), body.action, body.reason, ctx.key.id)
    return Answer(_view(ctx, decided))


def _view(ctx: Ctx, one: Collection) -> dict[str, Any]:
    slug = slug_of(one.network)
    known, native = ctx.catalogue.coins[slug, one.coin], ctx.catalogue.native(slug)

    def units(amount: int | None) -> str | None:
        return None if amount is None else format_units(amount, known.decimals)

    return {
        "id": one.id,
        "network": slug,
        "coin": one.coin,
        "address": one.address,
        "destination": one.destination,
        "amount": units(one.amount),
        "status": one.state,
        "reason": one.reason,
        "detail": one.detail,
        "fee": format_units(one.fee, native.decimals),
        "feeCoin": native.slug,
        "topups": list(one.topups),
        "toppedUp": format_units(one.topped_up, native.decimals),
        "sweeps": list(one.sweeps),
        "hash": one.txid,
        "arrived": units(one.arrived),
        "approvedAmount": units(one.approved),
        "decidedBy": one.decided_by,
        "decidedAt": None if one.decided_at is None else iso(one.decided_at),
        "note": one.note,
        "createdAt": iso(one.created_at),
        "updatedAt": iso(one.updated_at),
        "nextLookAt": iso(one.look_at) if not one.ended and one.state != "parked" else None,
        "endedAt": None if one.ended_at is None else iso(one.ended_at),
    }
