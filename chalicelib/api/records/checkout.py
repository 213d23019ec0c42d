"""Answers for the payment page."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from chalicelib.api.records.base import CamelRecord, Money, Time
from chalicelib.api.records.invoices import (
    ACCEPT,
    ASKED,
    CANCEL,
    CHOICES,
    FIAT,
    MISDIRECTED,
    OVERPAID,
    PAID,
    PAYMENT_URI,
    PLACE,
    STATUS,
    AcceptedCoin,
    InvoiceChoice,
    InvoiceRate,
    Misdirected,
    Slug,
)

MISSING = "What is still to be paid in time; payments that are in blocks count."
LATE = "What came after the time was over, or after a cancellation, and does not count. It is credited to the merchant."
CHOICE_URI = "Asks a wallet for what is missing: BIP 21, EIP-681, or tron:. Null where nothing more should be sent."
URI = "Asks a wallet for what is missing: BIP 21, EIP-681, or tron:. Absent where nothing is to be paid (any more)."


class Checkout(CamelRecord):
    """An invoice as its payer sees it."""

    amount: Annotated[Money | None, Field(description=ASKED)]
    received: Annotated[Money, Field(description="What has been credited for it, late payments included.", examples=["0"])]
    unconfirmed: Annotated[Money, Field(description="What is in blocks and not credited yet.", examples=["0"])]
    missing: Annotated[Money | None, Field(description=MISSING)]
    overpaid: Annotated[Money, Field(description=OVERPAID)] = None  # type: ignore[assignment]
    late: Annotated[Money, Field(description=LATE)] = None  # type: ignore[assignment]
    currency: Slug | None
    symbol: Annotated[str | None, Field(description="The coin's symbol.", examples=["USDT"])]
    network: Annotated[str | None, Field(description="A network slug.", examples=["ethereum"])]
    address: Annotated[str | None, Field(description=PLACE, examples=["0x52908400098527886E0F7030069857D2E4169EE7"])]
    fiat_amount: Annotated[str, Field(description=FIAT, examples=["49.90"])] = None  # type: ignore[assignment]
    fiat_currency: Annotated[str, Field(description="ISO 4217.", examples=["EUR"])] = None  # type: ignore[assignment]
    rate: Annotated[InvoiceRate | None, Field(description="Of the latest choice.")] = None
    locked_until: Annotated[Time | None, Field(description="Until when payments count at it.")] = None
    accept: Annotated[list[AcceptedCoin], Field(description=ACCEPT)] = None  # type: ignore[assignment]
    choices: Annotated[list[InvoiceChoice], Field(description=CHOICES)] = None  # type: ignore[assignment]
    paid_percent: Annotated[str, Field(description=PAID, examples=["33.33"])] = None  # type: ignore[assignment]
    misdirected: Annotated[list[Misdirected], Field(description=MISDIRECTED)] = None  # type: ignore[assignment]
    status: Annotated[str, Field(description=STATUS, examples=["pending"], pattern="^[a-z0-9_-]{1,64}$")]
    payment_uri: Annotated[str, Field(description=URI, examples=[PAYMENT_URI])] = None  # type: ignore[assignment]
    expires_at: Annotated[Time, Field(description="Until when it can be paid in time.", examples=["2026-05-01T13:00:00.000Z"])]
    expires_in: Annotated[int, Field(description="Seconds until then, by the service's clock.", examples=[3540], ge=0)]
    description: Annotated[str, Field(description="What is paid for.", examples=["Two pairs of shoes"])] = None  # type: ignore[assignment]
    redirect_url: Annotated[str, Field(description="Where to send who has paid.", examples=["https://shop.example/thanks"])] = None  # type: ignore[assignment]
    cancel_url: Annotated[str, Field(description=CANCEL, examples=["https://shop.example/basket"])] = None  # type: ignore[assignment]
    confirmations: Annotated[int, Field(description="Blocks on the payment that has the fewest.", examples=[0])]
    required_confirmations: Annotated[int, Field(description="Blocks after which a payment is credited.", examples=[12])]


class Choice(AcceptedCoin):
    """The chosen coin, where to pay to, and what to send."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "coin": "usdt",
                    "network": "ethereum",
                    "address": "0x52908400098527886E0F7030069857D2E4169EE7",
                    "amount": "0.5",
                    "missing": "0.5",
                    "rate": {"fiat": "EUR", "value": "0.9", "at": "2026-05-01T12:00:00.000Z", "source": "kraken"},
                    "lockedUntil": "2026-05-01T12:15:00.000Z",
                    "paymentUri": PAYMENT_URI,
                }
            ]
        }
    )

    address: Annotated[str, Field(description="Where to pay to.", examples=["0x52908400098527886E0F7030069857D2E4169EE7"])]
    amount: Annotated[Money, Field(description="The whole price at `rate`.")]
    missing: Annotated[Money, Field(description="What is still to be paid in this coin: who sends it has paid the price.")]
    rate: Annotated[InvoiceRate, Field(description="The locked rate.")]
    locked_until: Annotated[Time, Field(description="Until when payments count at it.")]
    payment_uri: Annotated[str | None, Field(description=CHOICE_URI, examples=[PAYMENT_URI])]
