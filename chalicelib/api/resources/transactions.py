"""What happened on the chains for the merchant: deposits, the transactions of withdrawals, and the stakes that it ordered. Keys of
the level admin are shown the operator's moves between its own places as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import Listing, ListQuery, amount, choice, coin, flag, hash_text, network, text, time, whole
from chalicelib.api.lists.common import assets_of_coin, assets_of_network, in_coin_units, slug_of
from chalicelib.api.lists.coverage import covered
from chalicelib.api.lists.fields import Condition
from chalicelib.api.routes import endpoint
from chalicelib.domain.addresses.addresses import Watched, watched_key
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId, TenantId, asset_parts, place_in_time, tenant_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move, operators, transaction_state, transaction_type
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import Withdrawal, transaction_status
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.transaction_views import transaction_id
from chalicelib.usecases.ports.store import Listed
from chalicelib.usecases.transactions.transaction_lookup import Transaction, TransactionLookup

TYPES = ("deposit", "withdrawal", "collection", "topup", "stake")
STATUSES = ("pending", "confirmed", "failed", "orphaned")
MOST_RELEASABLE = 1000
"""Deposits that an operator is shown at once: they have no order, and more of them are read once these are released."""
MOST_BESIDE_ARCHIVED = 1000
"""Transactions of an archived invoice's address that came after it was archived."""


def _type(r: Transaction, _: Any) -> str:
    if isinstance(r, Move):
        return transaction_type(r)
    if isinstance(r, CoinMove):
        return "collection"
    return "deposit" if isinstance(r, Deposit) else "stake" if isinstance(r, Stake) else "withdrawal"


def _status(r: Transaction, _: Any) -> str:
    if isinstance(r, Move):
        return transaction_state(r)
    if isinstance(r, CoinMove):
        return r.transaction_status
    return transaction_status(r.status) if isinstance(r, Withdrawal) else r.status


def _address(r: Transaction, _: Any) -> str:
    if isinstance(r, Move | CoinMove):
        return r.recipient
    return r.address if isinstance(r, Deposit) else r.wallet if isinstance(r, Stake) else r.to_address


def _from(r: Transaction, _: Any) -> str | None:
    if isinstance(r, Move | CoinMove):
        return r.source
    return r.sender if isinstance(r, Deposit) else r.wallet if isinstance(r, Stake) else r.from_address


def _fee(r: Transaction, catalogue: Any) -> Any:
    if isinstance(r, Deposit):
        return None
    if isinstance(r, Move | CoinMove):
        return in_coin_units(r.fee, catalogue.native(slug_of(r.network)).asset, catalogue)
    return in_coin_units(r.fee, r.asset if isinstance(r, Stake) else r.fee_asset, catalogue)


def _hash(r: Transaction, _: Any) -> str | None:
    return r.hash if isinstance(r, Move | CoinMove) else r.txid


def _operators(ctx: Ctx) -> list[TenantId]:
    """Under whose name a key of the level admin is shown transactions, beside its own merchant's."""
    return [operators(ctx.realm)] if ctx.key.level == "admin" else []


def _lookup(ctx: Ctx) -> TransactionLookup:
    return TransactionLookup(ctx.services.store, ctx.catalogue, ctx.tenant, _operators(ctx))


def _found(transaction: Transaction | None) -> list[Transaction]:
    return [] if transaction is None else [transaction]


TRANSACTIONS = Listing(
    "transactions",
    (
        time("createdAt", lambda r, _: r.created_at, "When it was first seen; of a withdrawal or a stake, when that was asked for.")
        .known_as("created_at")
        .indexed("time"),
        choice("type", _type, TYPES, "What it is."),
        choice("status", _status, STATUSES, "How far it is.").indexed("status"),
        network(lambda r, _: slug_of(r.network)).indexed("asset", assets_of_network),
        coin(lambda r, _: asset_parts(r.asset)[1]).indexed("asset", assets_of_coin),
        amount("amount", lambda r, c: in_coin_units(r.amount, r.asset, c), "The amount, in coin units."),
        amount("fee", _fee, "What the network took, in units of its native coin."),
        hash_text("hash", _hash, "The chain's hash.").indexed("hash"),
        hash_text("address", _address, "The address that received it.").indexed("address"),
        hash_text("from", _from, "Where it came from."),
        hash_text("to", _address, "Where it went."),
        text("id", lambda r, _: transaction_id(r), "The transaction's id.", sortable=False),
        text("invoiceId", lambda r, _: r.invoice_id if isinstance(r, Deposit) else None, "The invoice it paid.", sortable=False),
        text("withdrawalId", lambda r, _: r.id if isinstance(r, Withdrawal) else None, "The withdrawal it paid.", sortable=False),
        whole("blockNumber", lambda r, _: r.block_number, "Its block."),
        time("confirmedAt", lambda r, _: r.confirmed_at, "When it was confirmed."),
        flag(
            "releasable",
            lambda r, _: isinstance(r, Deposit) and r.releasable,
            "Whether it is a deposit that an operator can release: held, below the minimum, or set aside.",
        ),
    ),
    family="tx",
    indexes=frozenset({"time", "status", "asset", "hash", "address"}),
    position=lambda ms: place_in_time(ms, ""),
    keyed={
        "id": lambda ctx, id: _found(_lookup(ctx).by_id(id)),
        "withdrawalId": lambda ctx, id: _found(_lookup(ctx).payment_of(id)),
    },
    place=lambda r: place_in_time(r.created_at, r.id),
    beside=_operators,
)


@endpoint(
    "GET", "/transactions", family="envelope", permission="transactions:read", query=TRANSACTIONS,
    answer="list[transactions.Transaction]", summary="The merchant's transactions, newest first",
)  # fmt: skip
def list_transactions(ctx: Ctx, query: ListQuery) -> Answer:
    """A withdrawal is listed from the moment that its transaction is signed, at the place of the time when it was asked for.
    Stakes (`POST /networks/tron/stake`) are listed for the merchant whose key ordered them, from the order on. A key of the level
    admin is also shown what the operator moves between its own places, once that is signed: `topup` is native coin for the fee of
    what shall leave an address, `collection` any other move (a sweep, a distribution, a move to the cold wallet). Nobody's balance
    changes by these, and no merchant sees them. Asked for `releasable=true`, such a key is shown the deposits of all merchants that
    it can release (`POST /transactions/{txId}/release`), with their `merchantId`: the first thousand of them. Asked by `invoiceId`
    or `hash`, the list has archived ones, too."""
    if ctx.key.level == "admin" and any(
        (c.field.name, c.operator, c.value) == ("releasable", "eq", True) for c in query.conditions
    ):
        return _releasable(ctx, query)
    covers = covered(ctx)
    if covers and (complete := _with_archived_asked(ctx, query)) is not None:
        return complete
    found, pagination = TRANSACTIONS.page(ctx, query, also=_of_invoice(ctx, query))
    return Answer(_shown(ctx, found), pagination | covers)


@endpoint(
    "GET", "/transactions/{txId}", family="envelope", permission="transactions:read",
    answer="transactions.Transaction", summary="One transaction, by its id or by its hash on the chain",
)  # fmt: skip
def get_transaction(ctx: Ctx) -> Answer:
    """Where several movements to the merchant share a hash, the newest is shown; `GET /transactions?hash=` lists them all."""
    return Answer(_shown(ctx, [_lookup(ctx).named(ctx.param("txId"))])[0])


@endpoint(
    "GET", "/transactions/address/{address}", family="envelope", permission="transactions:read", query=TRANSACTIONS,
    answer="list[transactions.Transaction]", summary="The transactions of one of the merchant's addresses, newest first",
)  # fmt: skip
def list_transactions_of_address(ctx: Ctx, query: ListQuery) -> Answer:
    """`address` is the address itself or its id. One that is not the merchant's is 404; a key of the level admin may ask for
    service wallets, too."""
    return _of_address(ctx, query)


@endpoint(
    "GET", "/addresses/{address}/transactions", family="object", permission="transactions:read", query=TRANSACTIONS, envelope=True,
    answer="list[transactions.Transaction]", summary="The transactions of one of the merchant's addresses, newest first",
)  # fmt: skip
def list_transactions_under_address(ctx: Ctx, query: ListQuery) -> Answer:
    """The same as `GET /transactions/address/{address}`."""
    return _of_address(ctx, query)


def _releasable(ctx: Ctx, query: ListQuery) -> Answer:
    """A page of all merchants' deposits that an operator can release."""
    store = ctx.services.store
    places = store.places(Listed("dep", "releasable", ctx.realm, "releasable"), limit=MOST_RELEASABLE).places
    deposits = [found for found in store.at(places, known_only=True) if isinstance(found, Deposit)]
    found, pagination = TRANSACTIONS.over(ctx, query, deposits, position=lambda d: place_in_time(d.created_at, d.id))
    owners = [{} if each.tenant is None else {"merchantId": tenant_parts(each.tenant)[0]} for each in found]
    return Answer([shown | owner for shown, owner in zip(_shown(ctx, found), owners, strict=True)], pagination)


def _of_address(ctx: Ctx, query: ListQuery) -> Answer:
    named = ctx.param("address")
    if _operators(ctx) and _of_wallet(ctx, named):
        return _listed_at(ctx, query, named)
    known = ctx.services.addresses.find(ctx.tenant, named)
    if known.invoice_id is None:
        return _listed_at(ctx, query, known.address, covered(ctx))
    archived = [each for each in _archived(ctx, known.invoice_id) if each.address == known.address]
    if not archived:
        return _listed_at(ctx, query, known.address)
    return _with_archived(ctx, query, archived, [Listed("tx", "address", ctx.tenant, known.address)])


def _with_archived_asked(ctx: Ctx, query: ListQuery) -> Answer | None:
    """All transactions of an invoice, or of a transaction's hash, that is asked for; None where none of them is archived."""
    invoice_id, txid = _asked(query, "invoiceId"), _asked(query, "hash")
    if invoice_id is not None and (archived := _archived(ctx, invoice_id)):
        addresses = dict.fromkeys(each.address for each in archived) | dict.fromkeys(_addresses(ctx, invoice_id))
        return _with_archived(ctx, query, archived, [Listed("tx", "address", ctx.tenant, each) for each in addresses])
    if txid is not None:
        from chalicelib.usecases.archive.reading import by_hash  # hardly ever asked for

        if archived := by_hash(ctx.services.store, ctx.tenant, txid):
            return _with_archived(ctx, query, archived, [Listed("tx", "hash", ctx.tenant, txid)])
    return None


def _with_archived(ctx: Ctx, query: ListQuery, archived: list[Deposit], lists: list[Listed]) -> Answer:
    """A page of `archived` and of what is in `lists`."""
    store = ctx.services.store
    places = [place for each in lists for place in store.places(each, limit=MOST_BESIDE_ARCHIVED).places]
    every = {each.id: each for each in (*archived, *store.at(places, known_only=True)) if each is not None}
    found, pagination = TRANSACTIONS.over(ctx, query, every.values(), position=lambda t: place_in_time(t.created_at, t.id))
    return Answer(_shown(ctx, found), pagination)


def _listed_at(ctx: Ctx, query: ListQuery, address: str, covers: dict[str, Any] | None = None) -> Answer:
    found, pagination = TRANSACTIONS.page(ctx, query, also=[TRANSACTIONS.condition("address", address.lower())])
    return Answer(_shown(ctx, found), pagination | (covers or {}))


def _archived(ctx: Ctx, invoice_id: str) -> list[Deposit]:
    from chalicelib.usecases.archive.reading import of_invoice  # hardly ever asked for

    return of_invoice(ctx.services.store, ctx.tenant, invoice_id, ctx.now_ms)


def _of_wallet(ctx: Ctx, address: str) -> bool:
    """Whether it is a service wallet's, now or before it was replaced."""
    found: dict[tuple[str, ...], tuple[type[Any], dict[str, str]]] = {}
    for each in ctx.catalogue.networks.values():
        if (text := _spelled(ctx, each, address)) is not None:
            kind, key = watched_key(each, form_of(ctx.services.rules, each, text))
            found[tuple(key.values())] = (kind, key)
    watched: list[Watched | None] = ctx.services.store.get_many(list(found.values()))
    return any(one is not None and one.role != "user" for one in watched)


def _spelled(ctx: Ctx, network: Network, address: str) -> str | None:
    try:
        return ctx.services.rules.normalize(network.id, address)
    except ValueError:
        return None


def _asked(query: ListQuery, field: str) -> str | None:
    """The one value of a text field that is asked for."""
    return next((str(c.value) for c in query.conditions if c.field.name == field and c.operator == "eq"), None)


def _addresses(ctx: Ctx, invoice_id: str) -> Sequence[str]:
    invoice = ctx.services.store.get(Invoice, tenant=ctx.tenant, id=invoice_id)
    return [] if invoice is None else invoice.addresses


def _of_invoice(ctx: Ctx, query: ListQuery) -> list[Condition]:
    """What `invoiceId` implies, if it was sent: who pays an invoice pays to its address, which has an index."""
    asked = _asked(query, "invoiceId")
    if asked is None:
        return []
    places = _addresses(ctx, asked)
    if len(places) > 1:
        return [replace(TRANSACTIONS.condition("address", tuple(address.lower() for address in places)), operator="in")]
    return [TRANSACTIONS.condition("address", places[0].lower() if places else "-")]


def _shown(ctx: Ctx, transactions: list[Transaction]) -> list[dict[str, Any]]:
    tips = _tips(ctx, transactions)
    return [_view(ctx, one, tips.get(one.network)) for one in transactions]


def _view(ctx: Ctx, one: Transaction, tip: int | None) -> dict[str, Any]:
    if isinstance(one, Move | CoinMove):
        return ctx.views.move(one)
    if isinstance(one, Withdrawal):
        return ctx.views.payment(one)
    return ctx.views.deposit(one, tip) if isinstance(one, Deposit) else ctx.views.stake(one, tip)


def _tips(ctx: Ctx, transactions: list[Transaction]) -> dict[NetworkId, int]:
    """The height of each network that has an unconfirmed deposit among these: the others' count is settled."""
    networks = sorted({one.network for one in transactions if isinstance(one, Deposit) and one.status == "pending"})
    if not networks:
        return {}
    cursors = ctx.services.store.get_many([(Cursor, {"network": network}) for network in networks])
    return {cursor.network: cursor.tip for cursor in cursors if cursor is not None}
