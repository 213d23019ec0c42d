"""Moves under way between the operator's own wallets and addresses."""

from __future__ import annotations

from typing import Any, get_args

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, amount, choice, coin, hash_text, network, text, time
from chalicelib.api.lists.common import in_coin_units, slug_of
from chalicelib.api.lists.query import PageQuery
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import asset_parts
from chalicelib.domain.money import format_units
from chalicelib.domain.times import iso
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.usecases.treasury.open_moves import MoveStatus, ShownKind, move_status, open_moves

MOVES = Listing(
    "moves",
    (
        text("id", lambda r, _: r.id, "The move's id.", sortable=False),
        choice("kind", lambda r, _: r.kind, get_args(ShownKind), "What it is for."),
        network(lambda r, _: slug_of(r.network)),
        coin(lambda r, _: asset_parts(r.asset)[1]),
        amount("amount", lambda r, c: in_coin_units(r.amount, r.asset, c), "What it moves, in coin units."),
        choice("status", lambda r, _: move_status(r), get_args(MoveStatus), "How far it is."),
        hash_text("from", lambda r, _: r.source, "Where it comes from."),
        hash_text("to", lambda r, _: r.recipient, "Where it goes."),
        hash_text("hash", lambda r, _: r.hash, "Its newest transaction."),
        text("owner", lambda r, _: r.owner, "What planned it.", sortable=False),
        time("createdAt", lambda r, _: r.created_at, "When it was planned.").known_as("created_at"),
        time("updatedAt", lambda r, _: r.updated_at, "When it changed last.").known_as("updated_at"),
    ),
    bare=True,
)


@endpoint(
    "GET", "/moves", family="object", level="admin", permission="transactions:read", query=MOVES, answer="list[moves.Move]",
    summary="Moves between our own addresses that are under way",
)  # fmt: skip
def list_moves(ctx: Ctx, query: PageQuery) -> Answer:
    """Of the key's realm, oldest first in each network, 200 of each at most. What is at its end is in `GET /v1/transactions`, as
    `collection`, `topup` or `stake`."""
    found = open_moves(ctx.services.store, list(ctx.catalogue.networks.values()))
    return Answer([_view(ctx, move) for move in MOVES.array(ctx, query, found)])


def _view(ctx: Ctx, move: Move | CoinMove) -> dict[str, Any]:
    slug, symbol = slug_of(move.network), asset_parts(move.asset)[1]
    native = ctx.catalogue.native(slug)
    return {
        "id": move.id,
        "kind": move.kind,
        "network": slug,
        "coin": symbol,
        "amount": format_units(move.amount, ctx.catalogue.coins[slug, symbol].decimals),
        "from": move.source,
        "to": move.recipient,
        "status": move_status(move),
        "hash": move.hash,
        "fee": format_units(move.fee, native.decimals),
        "feeCoin": native.slug,
        "owner": move.owner,
        "reason": move.reason,
        "createdAt": iso(move.created_at),
        "updatedAt": iso(move.updated_at),
    }
