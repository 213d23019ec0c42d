"""Refunds, payout links, and the claim of either."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import HASH, CamelRecord, Metadata, Money, Time

STATUS = (
    "`awaiting_claim`: the link was not used yet. `pending`: its withdrawal waits, for an approval for instance. `processing`: it "
    "is being paid. After `failed`, `expired` and `cancelled` the money is available again."
)
Status = Literal["awaiting_claim", "pending", "processing", "completed", "failed", "expired", "cancelled"]
_CLAIM_URL = (
    "Where its payee names an address. It is shown once, in the answer that makes it, and null elsewhere: who has it is paid. The "
    "service keeps a hash of it alone."
)
_WITHDRAWAL = "The withdrawal that pays it, once the address is known. It is there as soon as it is ordered."
_ADDRESS = "Where it is paid to; null until that is known."
_EXPIRES = "Until when the link can be used; null where the address came with the request."


class _Paid(CamelRecord):
    """What refunds and payout links have in common. The examples are of a link that was not used yet."""

    status: Annotated[Status, Field(description=STATUS, examples=["awaiting_claim"])]
    amount: Annotated[Money, Field(description="What is paid, in coin units. It is frozen from the beginning.", examples=["0.05"])]
    coin: Annotated[str, Field(description="The coin's slug.", examples=["eth"])]
    network: Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
    address: Annotated[str | None, Field(description=_ADDRESS, examples=[None, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    claim_url: Annotated[str | None, Field(description=_CLAIM_URL, examples=[None])]
    expires_at: Annotated[Time | None, Field(description=_EXPIRES, examples=["2026-05-08T12:00:00.000Z"])]
    withdrawal_id: Annotated[str | None, Field(description=_WITHDRAWAL, examples=[None, "wd_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    created_at: Time
    failure_reason: Annotated[str, Field(description="Why it failed.", examples=["rejected"])] = None  # type: ignore[assignment]


class Refund(_Paid):
    """Money of an invoice that goes back to its payer."""

    id: Annotated[str, Field(description="The refund's id.", examples=["ref_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    invoice_id: Annotated[str, Field(description="The invoice's id.", examples=["inv_01jc9w3zj8q2m4k6n8r0t2v4x6"])]
    mode: Annotated[Literal["same", "fiat"], Field(description="What the amount was asked for in.", examples=["same"])]
    fiat_amount: Annotated[Money, Field(description="In the mode `fiat`: what was asked for.", examples=["49.9"])] = None  # type: ignore[assignment]
    fiat_currency: Annotated[str, Field(description="Its currency: the invoice's.", examples=["EUR"])] = None  # type: ignore[assignment]
    reason: Annotated[str | None, Field(description="The merchant's word, which the payer sees.", examples=["Out of stock"])]
    sent_by: Annotated[str, Field(description="How the merchant sends the link.", examples=["E-mail to j…@example.com"])] = None  # type: ignore[assignment]


class PayoutLink(_Paid):
    """A payout to somebody whose address is not known yet."""

    id: Annotated[str, Field(description="The link's id.", examples=["pol_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    description: Annotated[str | None, Field(description="What it is for; its payee sees it.", examples=["Prize of May"])]
    metadata: Metadata = None  # type: ignore[assignment]


class Claim(CamelRecord):
    """A link as its payee sees it."""

    status: Annotated[Status, Field(description=STATUS, examples=["awaiting_claim"])]
    amount: Annotated[Money, Field(description="What is paid.", examples=["0.05"])]
    currency: Annotated[str, Field(description="The coin's slug.", examples=["eth"])]
    symbol: Annotated[str, Field(description="The coin's symbol.", examples=["ETH"])]
    network: Annotated[str, Field(description="The network whose address is asked for.", examples=["ethereum"])]
    description: Annotated[str, Field(description="What it is for.", examples=["Out of stock"])] = None  # type: ignore[assignment]
    address: Annotated[str, Field(description="Where it is paid to.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])] = (
        None  # type: ignore[assignment]
    )
    confirm: Annotated[str, Field(description="Send it with the same address to be paid there.", examples=["8d1f0c2b7a6e5d43"])] = (
        None  # type: ignore[assignment]
    )
    transaction_hash: Annotated[str, Field(description="On the chain, once it was broadcast.", examples=[HASH])] = None  # type: ignore[assignment]
    explorer_url: Annotated[
        str,
        Field(description="The transaction in the network's public explorer.", examples=[f"https://etherscan.io/tx/{HASH}"]),
    ] = None  # type: ignore[assignment]
    expires_at: Annotated[Time, Field(description="Until when it can be claimed.")]
    expires_in: Annotated[int, Field(description="Seconds until then; 0 where it can not be claimed.", examples=[604_800], ge=0)]
