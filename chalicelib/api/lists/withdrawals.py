"""Lists of withdrawals: a merchant's, and those that are pending in a realm, of all merchants."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from chalicelib.api.lists.common import assets_of_coin, assets_of_network, by_id, in_coin_units, slug_of
from chalicelib.api.lists.fields import amount, choice, coin, hash_text, network, text, time, whole
from chalicelib.api.lists.listing import Listing
from chalicelib.api.lists.query import Shortcut
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.ids import asset_parts, first_id
from chalicelib.domain.withdrawals.withdrawals import PendingReason, Priority, Withdrawal, WithdrawalStatus
from chalicelib.usecases.base.transaction_views import confirmations
from chalicelib.usecases.ports.store import Listed

if TYPE_CHECKING:
    from chalicelib.api.context import Ctx

_MOST_OF_A_HASH = 1000


def _confirmations(withdrawal: Withdrawal, catalogue: Catalogue) -> int:
    network = catalogue.network(slug_of(withdrawal.network))
    counted = withdrawal.confirmations
    return counted if network is None else confirmations(network, withdrawal.status == "confirmed", counted)


_FIELDS = (
    time("created_at", lambda r, _: r.created_at, "When it was asked for.").known_as("createdAt").indexed("time"),
    text("id", lambda r, _: r.id, "The withdrawal's id.", sortable=False),
    choice("status", lambda r, _: r.status, get_args(WithdrawalStatus), "How far it is.").indexed("status"),
    choice(
        "pending_reason",
        lambda r, _: r.pending_reason if r.status == "pending" else None,
        get_args(PendingReason),
        "What a pending one waits for.",
    ),
    network(lambda r, _: slug_of(r.network)).indexed("asset", assets_of_network),
    coin(lambda r, _: asset_parts(r.asset)[1]).indexed("asset", assets_of_coin),
    amount("amount", lambda r, c: in_coin_units(r.amount, r.asset, c), "The amount, in coin units."),
    amount("fee", lambda r, c: in_coin_units(r.fee, r.fee_asset, c), "The network's fee, in units of its native coin."),
    hash_text("to_address", lambda r, _: r.to_address, "Where it goes.").indexed("address"),
    hash_text("from_address", lambda r, _: r.from_address, "The wallet that pays."),
    hash_text("transaction_hash", lambda r, _: r.txid, "Its transaction on the chain."),
    choice("priority", lambda r, _: r.priority, get_args(Priority), "How fast it should be."),
    whole("confirmations", _confirmations, "Confirmations so far, as they are shown: never more than the network asks for."),
    whole("block_number", lambda r, _: r.block_number, "Its block."),
    time("updated_at", lambda r, _: r.updated_at, "When it changed last.").known_as("updatedAt"),
    time("confirmed_at", lambda r, _: r.confirmed_at, "When it was confirmed.").known_as("confirmedAt"),
)
_DATES = (
    Shortcut(
        "from_date", "created_at", "gte", "From this day or time on, ISO 8601.", examples=("2026-05-01", "2026-05-01T12:00:00Z")
    ),
    Shortcut("to_date", "created_at", "lte", "Up to this time, or to the end of this day.", examples=("2026-05-31",)),
)


def _paid_by(ctx: Ctx, txid: str) -> list[Withdrawal]:
    store = ctx.services.store
    found = store.at(store.places(Listed("tx", "hash", ctx.tenant, txid), limit=_MOST_OF_A_HASH).places, known_only=True)
    return [record for record in found if isinstance(record, Withdrawal)]


WITHDRAWALS = Listing(
    "withdrawals",
    _FIELDS,
    _DATES,
    kind=Withdrawal,
    family="wd",
    indexes=frozenset({"time", "status", "asset", "address"}),
    position=lambda ms: first_id("wd", ms),
    keyed={"id": by_id(Withdrawal), "transaction_hash": _paid_by},
)
PENDING = Listing(
    "pending-withdrawals",
    _FIELDS,
    _DATES,
    family="wd",
    by="pending",
    owner=lambda ctx: ctx.realm,
    indexes=frozenset({"pending"}),
    position=lambda ms: first_id("wd", ms),
)
