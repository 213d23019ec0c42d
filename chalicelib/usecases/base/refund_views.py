"""Public records of refunds and payout links, in answers and in events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.ids import network_parts
from chalicelib.domain.money import format_units
from chalicelib.domain.refunds.refunds import Refund, Terms, event_family
from chalicelib.domain.refunds.status import Status, status_of
from chalicelib.domain.times import iso
from chalicelib.domain.withdrawals.withdrawals import Withdrawal


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a refund or a payout link is, and to whom it goes."""

    status: Status
    address: str | None = None
    withdrawal_id: str | None = None
    failure: str | None = None


def standing(refund: Refund, withdrawal: Withdrawal | None) -> Standing:
    """How far `refund` is. `withdrawal` is the one that pays it, None before there is one."""
    failure = refund.failure if withdrawal is None else withdrawal.failure
    status = status_of(refund.status, None if withdrawal is None else withdrawal.status)
    return Standing(status, refund.address, refund.withdrawal_id, failure if status == "failed" else None)


def standing_by(withdrawal: Withdrawal) -> Standing:
    """The same by the withdrawal alone."""
    status = status_of("claimed", withdrawal.status)
    return Standing(status, withdrawal.to_address, withdrawal.id, withdrawal.failure if status == "failed" else None)


def refund_record(refund_id: str, terms: Terms, now: Standing, coin: Coin, claim_url: str | None = None) -> dict[str, Any]:
    """The public record. `claim_url` is shown once, in the answer that makes the link."""
    invoices = event_family(refund_id) == "refund"
    record: dict[str, Any] = {"id": refund_id}
    if invoices:
        record |= {"invoiceId": terms.invoice_id, "mode": terms.mode}
    record |= {
        "status": now.status,
        "amount": format_units(terms.amount, coin.decimals),
        "coin": coin.slug,
        "network": network_parts(terms.network)[1],
        "address": now.address,
        "reason" if invoices else "description": terms.text,
        "claimUrl": claim_url,
        "expiresAt": None if terms.expires_at is None else iso(terms.expires_at),
        "withdrawalId": now.withdrawal_id,
        "createdAt": iso(terms.created_at),
    }
    beside = {
        "fiatAmount": terms.fiat_amount,
        "fiatCurrency": terms.fiat,
        "metadata": terms.metadata or None,
        "failureReason": now.failure,
        "sentBy": terms.sent_by,
    }
    return record | {name: value for name, value in beside.items() if value is not None}
