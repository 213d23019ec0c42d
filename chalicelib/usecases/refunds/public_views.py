"""What is shown without a key: a claim link to its payee, and an invoice's refunds to its payer.

Who has the invoice's id is not always who is paid back: neither the claim link nor the address is shown to the payer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chalicelib.domain.catalogue.explorers import transaction_url
from chalicelib.domain.ids import network_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.money import format_units
from chalicelib.domain.times import iso
from chalicelib.usecases.base.payment_requests import coin_and_network
from chalicelib.usecases.base.views import without_none
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.refunds.claims import Claim
from chalicelib.usecases.refunds.refund_reads import Shown, known_refunds, listed

MOST_SHOWN = 20


def payee_view(claim: Claim) -> dict[str, Any]:
    """What its payee may see."""
    terms, withdrawal = claim.refund.terms, claim.shown.withdrawal
    txid = None if withdrawal is None else withdrawal.txid
    return without_none(
        {
            "status": claim.status,
            "amount": format_units(terms.amount, claim.coin.decimals),
            "currency": claim.coin.slug,
            "symbol": claim.coin.symbol,
            "network": claim.network.slug,
            "description": terms.text,
            "address": claim.refund.address,
            "transactionHash": txid,
            "explorerUrl": None if txid is None else transaction_url(claim.network, txid),
            "expiresAt": iso(terms.expires_at or 0),
            "expiresIn": claim.seconds_left if claim.status == "awaiting_claim" else 0,
        }
    )


def payer_refunds(store: Store, invoice: Invoice, ids: Sequence[str], now_ms: int) -> list[dict[str, Any]]:
    """The refunds with these ids, newest first, at most twenty: two reads, one where none is on its way, none without ids.

    `by` says which way it was sent: to an `address` that the shop named, or by a `link` that the shop gave to its customer.
    `now_ms` by the clock of the invoice's realm. Raises Unavailable.
    """
    if not ids:
        return []
    newest = ids[: -MOST_SHOWN - 1 : -1]
    found = listed(store, known_refunds(store, invoice.tenant, newest))
    return [_record(store, shown, now_ms) for shown in found]


def _record(store: Store, shown: Shown, now_ms: int) -> dict[str, Any]:
    terms = shown.refund.terms
    realm, slug = network_parts(terms.network)
    catalogue = store.catalogue(realm)
    coin, network = catalogue.coin_of(terms.asset), catalogue.networks[slug]
    over = terms.expires_at is not None and now_ms >= terms.expires_at and shown.status == "awaiting_claim"
    record: dict[str, Any] = {
        "status": "expired" if over else shown.status,
        "by": "address" if terms.expires_at is None else "link",
        **coin_and_network(coin.asset),
        "symbol": coin.symbol,
        "amount": format_units(terms.amount, coin.decimals),
        "createdAt": iso(terms.created_at),
    }
    if terms.expires_at is not None:
        record["expiresAt"] = iso(terms.expires_at)
    if terms.sent_by is not None:
        record["sentBy"] = terms.sent_by
    txid = None if shown.withdrawal is None else shown.withdrawal.txid
    link = None if txid is None else transaction_url(network, txid)
    return record | ({} if txid is None else {"txId": txid}) | ({} if link is None else {"explorerUrl": link})
