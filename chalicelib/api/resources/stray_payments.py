"""Payments to our addresses on the wrong EVM network, or in an unregistered token: for the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.coins_by_name import known_network
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import AddressText, NetworkSlug, matching
from chalicelib.api.lists import Listing, ListQuery, choice, hash_text, network, text, time, whole
from chalicelib.api.lists.common import slug_of
from chalicelib.api.models import CamelRequest
from chalicelib.api.routes import endpoint
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import place_in_time, tenant_parts
from chalicelib.domain.money import format_units
from chalicelib.domain.stray_payments import STATUSES, StrayPayment
from chalicelib.domain.times import iso
from chalicelib.usecases.stray_payments.decisions import Looked

_HASH = "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"


class StrayLook(CamelRequest):
    """The transaction that shall be read."""

    network: NetworkSlug
    txid: Annotated[
        str,
        Field(description="Its hash on that network.", examples=[_HASH]),
        matching(r"0x[0-9a-fA-F]{64}", "must be 0x and 64 hexadecimal digits"),
    ]


class StrayReturn(CamelRequest):
    """Where the payment shall go."""

    address: Annotated[AddressText, Field(description="An address of that network, as its payer names it.")]


def _of_realm(ctx: Ctx, id: str) -> list[StrayPayment]:
    found = ctx.services.store.get(StrayPayment, id=id)
    return [found] if found is not None and found.realm == ctx.realm else []


STRAYS = Listing(
    "stray-payments",
    (
        time("createdAt", lambda r, _: r.created_at, "When it was first read.").known_as("created_at").indexed("time"),
        text("id", lambda r, _: r.id, "The payment's id.", sortable=False),
        choice("status", lambda r, _: r.status, STATUSES, "What was decided.").indexed("status"),
        network(lambda r, _: slug_of(r.network)),
        hash_text("txid", lambda r, _: r.txid, "The transaction.").indexed("hash"),
        hash_text("address", lambda r, _: r.address, "The deposit address.").indexed("address"),
        whole("blockNumber", lambda r, _: r.block_number, "Its block."),
        time("updatedAt", lambda r, _: r.updated_at, "When it changed last.").known_as("updated_at"),
    ),
    family="stray",
    owner=lambda ctx: ctx.realm,
    indexes=frozenset({"time", "status", "hash", "address"}),
    position=lambda ms: place_in_time(ms, ""),
    keyed={"id": _of_realm},
    place=lambda r: place_in_time(r.created_at, r.id),
)


@endpoint(
    "GET", "/stray-payments", family="object", level="admin", permission="addresses:read", query=STRAYS, envelope=True,
    answer="list[stray_payments.StrayPayment]", summary="Payments on the wrong network that were read, newest first",
)  # fmt: skip
def list_stray_payments(ctx: Ctx, query: ListQuery) -> Answer:
    """Those that `POST /v1/stray-payments` has read, of the key's realm. Which transactions to read is told by payers, and by the
    alarm `a payment to …, which receives on …`."""
    found, pagination = STRAYS.page(ctx, query)
    return Answer(_views(ctx, ctx.services.stray_payments.known(found)), pagination)


@endpoint(
    "POST", "/stray-payments", family="object", level="admin", permission="addresses:write", body=StrayLook, status=201,
    creates=True, envelope=True, answer="stray_payments.Read", summary="Read a transaction that paid on the wrong network",
)  # fmt: skip
def read_stray_payment(ctx: Ctx, body: StrayLook) -> Answer:
    """Lists every movement of the transaction to a deposit address of any merchant of the key's realm: the native coin, what
    contracts sent of it where the nodes trace (`internalTransfers` says whether), and tokens, those too that are not registered
    (`coin` null, `contractAddress` and `units` tell which and how much). Nothing is credited by it. Read again, it tells what is
    known by then: after a reorganisation the payment's new block; what was decided stays.

    EVM networks only, active ones. Where there are several nodes, two have to vouch for it. A transaction in no block, a failed
    one, one of the service itself, or one that brought nothing to us is a VALIDATION_ERROR, and so is a node that does not answer.
    What came to service wallets is not listed.
    """
    looking = ctx.services.stray_payments.looking(known_network(ctx.catalogue, body.network), body.txid)
    return ctx.create(looking, lambda looked: _read(ctx, looked))


@endpoint(
    "POST", "/stray-payments/{id}/credit", family="object", level="admin", permission="addresses:write", status=201,
    creates=True, envelope=True, answer="stray_payments.StrayPayment", errors=("NOT_FOUND",), shows={"status": "credit"},
    summary="Credit a payment to the merchant whose address it came to",
)  # fmt: skip
def credit_stray_payment(ctx: Ctx) -> Answer:
    """The address is watched on that network from now on, and the payment's block is scanned again: it becomes an ordinary deposit
    of the merchant, once, with its events, minimum, grey list and confirmations (`transactionStatus`). It counts for no invoice.

    VALIDATION_ERROR: decided before (of `credit` and `return` the first one counts, for ever), recorded already, fewer blocks on
    top than the network's confirmations, or a token that is not registered (`POST /v1/coins` first).
    """
    crediting = ctx.services.stray_payments.crediting(ctx.realm, ctx.param("id"), ctx.key.id)
    return ctx.create(crediting, lambda stray: _views(ctx, _recorded(ctx, [stray]))[0])


@endpoint(
    "POST", "/stray-payments/{id}/return", family="object", level="admin", permission="withdrawals:create", body=StrayReturn,
    status=201, creates=True, envelope=True, answer="stray_payments.StrayPayment", errors=("NOT_FOUND", "INVALID_ADDRESS",
    "DAILY_LIMIT_EXCEEDED"), shows={"status": "return", "returnTo": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"},
    summary="Send a payment back",
)  # fmt: skip
def return_stray_payment(ctx: Ctx, body: StrayReturn) -> Answer:
    """It is credited to the operator's merchant (the key's own) instead, and once it is, a withdrawal of all of it to `address` is
    ordered (`withdrawalId`): an ordinary one, with its limits, approvals, risk, kill switch and fee. The coins lie on the deposit
    address until they are collected there: until the hot wallet of the network has as much, the withdrawal waits for liquidity.
    `detail` says what it waits for before there is one. One that fails or is cancelled leaves the money with the operator's
    merchant, who can withdraw it anew. Whatever becomes of the address later, this payment is never its merchant's.

    VALIDATION_ERROR as for `credit`; also where the address is watched on that network (the payment is its merchant's: credit it),
    and whatever a withdrawal to `address` would be refused with now, but for the balance.
    """
    returning = ctx.services.stray_payments.sending_back(ctx.realm, ctx.param("id"), body.address, ctx.tenant, ctx.key.id)
    return ctx.create(returning, lambda stray: _views(ctx, _recorded(ctx, [stray]))[0])


def _read(ctx: Ctx, looked: Looked) -> dict[str, Any]:
    return {
        "network": looked.network,
        "txid": looked.txid,
        "blockNumber": looked.block_number,
        "internalTransfers": "read" if looked.internal else "unknown",
        "payments": _views(ctx, _recorded(ctx, looked.payments)),
    }


Recorded = Sequence[tuple[StrayPayment, Deposit | None]]


def _recorded(ctx: Ctx, strays: Sequence[StrayPayment]) -> Recorded:
    """What an answer to a POST tells, before it is stored: of every payment, or TooNew, which tells the caller to ask again."""
    return ctx.services.stray_payments.recorded(strays)


def _views(ctx: Ctx, strays: Recorded) -> list[dict[str, Any]]:
    """With how high the chains are: one read for a hundred."""
    networks = sorted({stray.network for stray, _ in strays})
    cursors = ctx.services.store.get_many([(Cursor, {"network": id}) for id in networks]) if networks else []
    tips = {cursor.network: cursor.tip for cursor in cursors if cursor is not None}
    return [_view(ctx, each, deposit, tips) for each, deposit in strays]


def _view(ctx: Ctx, one: StrayPayment, deposit: Deposit | None, tips: Mapping[str, int]) -> dict[str, Any]:
    coin, slug = ctx.services.stray_payments.coin(one), slug_of(one.network)
    return {
        "id": one.id,
        "status": one.status,
        "network": slug,
        "txid": one.txid,
        "position": one.position,
        "address": one.address,
        "from": one.sender,
        "merchantId": tenant_parts(one.tenant)[0],
        "coin": None if coin is None else coin.slug,
        "symbol": None if coin is None else coin.symbol,
        "contractAddress": one.contract,
        "amount": None if coin is None else format_units(one.units, coin.decimals),
        "units": str(one.units),
        "blockNumber": one.block_number,
        "blockHash": one.block_hash,
        "confirmations": max(0, tips.get(one.network, 0) - one.block_number + 1),
        "requiredConfirmations": ctx.catalogue.networks[slug].confirmations,
        "transactionId": None if deposit is None else deposit.id,
        "transactionStatus": None if deposit is None else deposit.status,
        "returnTo": one.return_to,
        "withdrawalId": one.withdrawal_id,
        "detail": one.detail,
        "decidedBy": one.decided_by,
        "decidedAt": None if one.decided_at is None else iso(one.decided_at),
        "createdAt": iso(one.created_at),
        "updatedAt": iso(one.updated_at),
    }
