"""Answers for the payment page."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from chalicelib.api.records.base import HASH, CamelRecord, Money, Time
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


EXPLORER = "The transaction in the network's public explorer; absent where there is none."
FEE = "What the network usually takes for such a payment, in the invoice's fiat, rounded up; absent where it is not known now."
SECONDS = "Seconds from the payment's block until it is credited, at the network's usual pace."
WAY = "`address`: to one that the shop named. `link`: by a claim link, which the shop gives its customer; it is never shown here."
Delay = Literal["halted", "behind"]


class PayableCoin(AcceptedCoin):
    """A coin that the payer may choose, and what to expect of it."""

    symbol: Annotated[str, Field(description="The coin's symbol.", examples=["USDT"])]
    usual_seconds: Annotated[int, Field(description=SECONDS, examples=[60])]
    usual_fee: Annotated[str, Field(description=FEE, examples=["0.42"])] = None  # type: ignore[assignment]
    delay: Annotated[
        Delay, Field(description="Why it can not be chosen now, or takes longer; absent: neither.", examples=["behind"])
    ] = None  # type: ignore[assignment]


class CheckoutPayment(AcceptedCoin):
    """A payment that was seen."""

    tx_id: Annotated[str, Field(description="The transaction's hash on the chain.", examples=[HASH])]
    symbol: Annotated[str, Field(description="The coin's symbol.", examples=["USDT"])]
    amount: Money
    confirmations: Annotated[int, Field(description="Blocks on it, its own included, as far as they are needed.", examples=[3])]
    required_confirmations: Annotated[int, Field(description="Blocks after which it is credited.", examples=[12])]
    explorer_url: Annotated[str, Field(description=EXPLORER, examples=[f"https://etherscan.io/tx/{HASH}"])] = None  # type: ignore[assignment]
    seen_at: Annotated[Time, Field(description="When it was first seen.")] = None  # type: ignore[assignment]


class CheckoutRefund(AcceptedCoin):
    """Money of this invoice that is given back."""

    status: Annotated[
        Literal["awaiting_claim", "pending", "processing", "completed", "failed", "expired", "cancelled"],
        Field(description="After the last three the money is with the shop again.", examples=["awaiting_claim"]),
    ]
    by: Annotated[Literal["address", "link"], Field(description=WAY, examples=["link"])]
    symbol: Annotated[str, Field(description="The coin's symbol.", examples=["USDT"])]
    amount: Money
    sent_by: Annotated[
        str, Field(description="How the shop sends the link, in its own words.", examples=["E-mail to j…@example.com"])
    ] = None  # type: ignore[assignment]
    created_at: Annotated[Time, Field(description="When it was made.")]
    expires_at: Annotated[Time, Field(description="Until when the link can be used.")] = None  # type: ignore[assignment]
    tx_id: Annotated[str, Field(description="The transaction's hash, once it was sent.", examples=[HASH])] = None  # type: ignore[assignment]
    explorer_url: Annotated[str, Field(description=EXPLORER, examples=[f"https://etherscan.io/tx/{HASH}"])] = None  # type: ignore[assignment]


class NetworkDelay(CamelRecord):
    """A network whose payments are seen or credited later than usual."""

    network: Annotated[str, Field(description="A network slug.", examples=["ethereum"])]
    delay: Annotated[
        Delay, Field(description="`halted` until an operator has looked at it; `behind` its chain.", examples=["behind"])
    ]


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
    locked_in: Annotated[int, Field(description="Seconds until then; absent where no rate was locked.", examples=[840], ge=0)] = (
        None  # type: ignore[assignment]
    )
    accept: Annotated[list[PayableCoin], Field(description=ACCEPT)] = None  # type: ignore[assignment]
    choices: Annotated[list[InvoiceChoice], Field(description=CHOICES)] = None  # type: ignore[assignment]
    paid_percent: Annotated[str, Field(description=PAID, examples=["33.33"])] = None  # type: ignore[assignment]
    misdirected: Annotated[list[Misdirected], Field(description=MISDIRECTED)] = None  # type: ignore[assignment]
    status: Annotated[str, Field(description=STATUS, examples=["pending"], pattern="^[a-z0-9_-]{1,64}$")]
    payment_uri: Annotated[str, Field(description=URI, examples=[PAYMENT_URI])] = None  # type: ignore[assignment]
    created_at: Annotated[Time, Field(description="When it was made.")]
    expires_at: Annotated[Time, Field(description="Until when it can be paid in time.", examples=["2026-05-01T13:00:00.000Z"])]
    expires_in: Annotated[int, Field(description="Seconds until then, by the service's clock.", examples=[3540], ge=0)]
    description: Annotated[str, Field(description="What is paid for.", examples=["Two pairs of shoes"])] = None  # type: ignore[assignment]
    redirect_url: Annotated[str, Field(description="Where to send who has paid.", examples=["https://shop.example/thanks"])] = None  # type: ignore[assignment]
    cancel_url: Annotated[str, Field(description=CANCEL, examples=["https://shop.example/basket"])] = None  # type: ignore[assignment]
    confirmations: Annotated[int, Field(description="Blocks on the payment that has the fewest.", examples=[0])]
    required_confirmations: Annotated[int, Field(description="Blocks after which a payment is credited.", examples=[12])]
    usual_seconds: Annotated[int, Field(description=SECONDS, examples=[144])]
    payments: Annotated[list[CheckoutPayment], Field(description="The newest 20 payments, newest first.")]
    refunds: Annotated[list[CheckoutRefund], Field(description="The newest 20 refunds, newest first.")]
    delays: Annotated[list[NetworkDelay], Field(description="Networks that it waits for, and that are late.")]


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


class PayerTransaction(CamelRecord):
    """An unsigned transaction for the payer's wallet."""

    transaction: Annotated[
        dict[str, Any],
        Field(
            description="As Tron's nodes build it: `txID`, `raw_data`, `raw_data_hex`, `visible`.",
            examples=[{"visible": False, "txID": HASH.removeprefix("0x"), "raw_data": {}, "raw_data_hex": "0a02"}],
        ),
    ]
    expires_at: Annotated[Time, Field(description="Until when the network takes it.")]


class SentTransaction(CamelRecord):
    """A transaction that the network has."""

    tx_id: Annotated[str, Field(description="Its id on the chain.", examples=[HASH.removeprefix("0x")])]
    explorer_url: Annotated[
        str, Field(description=EXPLORER, examples=[f"https://tronscan.org/#/transaction/{HASH.removeprefix('0x')}"])
    ] = None  # type: ignore[assignment]
