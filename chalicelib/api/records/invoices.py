"""Answers about invoices."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.records.base import HASH, CamelRecord, FiatValue, Metadata, Money, Pagination, Record, Time

Cents = Annotated[str, Field(pattern=r"^-?(0|[1-9][0-9]*)\.[0-9]{2}$", description="US dollars with cents.", examples=["12.50"])]
STATUS = "pending, partial, confirming, completed, expired or cancelled; or what was set by hand."
HOOK = "Its own webhook, without the query of the URL."
HOOK_ID = "That endpoint, whose deliveries `GET /v1/webhooks/{id}/deliveries` lists."
SIGNS = "Signs for its own webhook; shown here and never again."
FIAT = "The price, where it was given in a fiat currency."
RATE = "The rate that the amount was made from; without a fiat price, the one that totals in USD are counted at."
CHECKOUT = "A page to pay on. It begins with PUBLIC_URL where the deployment has one, else with the gateway's own address."
TO_SEND = "Asks a wallet for what is missing: BIP 21, EIP-681, or tron:. Null where nothing more should be sent."
MISSING = "What is still to be paid in time: unconfirmed payments count as paid. Of a completed invoice 0."
OVERPAID = "What was credited beyond the amount: in time, or late where such payments count like the rest."
SHORTFALL = "What a completed invoice was forgiven of the amount."
TOLERANCE = "A shortfall of so many percent of the price is forgiven. Absent where nothing is, as are its neighbours."
MAX_USD = "And no more than so many US dollars."
LATE = "What becomes of late payments: manual, accept or acceptWithinPercent."
LATE_PERCENT = "With acceptWithinPercent: what a late payment may be worth less than the rest."
PLACE = "Where to pay to. Null until the payer has chosen a coin."
ASKED = "Coin units, as a decimal string. Where the payer chooses: the price at the rate of the latest choice, null before any."
ACCEPT = "The coins that the payer may choose from; absent where the invoice names its coin."
CHOICES = "Every coin that the payer chose, or paid in unasked; absent where the invoice names its coin."
PAID = "Where the payer chooses: the credited part of the price in percent, rounded down to two decimals."
MISDIRECTED = "Payments to its address in other coins: the merchant's, and none of the invoice. Absent where there are none."
LOCKED = "Seconds for which a payer's choice has its rate; absent where it was not set: 900."
CANCEL = "Where to send who does not pay."
OPENED = "The payment link that it was opened from."
VALUE = "What it was worth when it was paid; null where there was no fresh rate, absent in events."
PAYMENT_URI = (
    "ethereum:0xdAC17F958D2ee523a2206206994597C13D831ec7@1/transfer"
    "?address=0x52908400098527886E0F7030069857D2E4169EE7&uint256=500000"
)
"""Of EIP-681, for examples: half a USDT on Ethereum."""
Slug = Annotated[str, Field(description="A coin slug.", examples=["usdt"])]


class InvoicePayment(CamelRecord):
    """A payment for the invoice that is in the chain."""

    hash: Annotated[str, Field(description="The transaction's hash on the chain.", examples=[HASH])]
    amount: Money
    confirmations: Annotated[int, Field(description="Blocks on it, its own included, as far as the network needs.", examples=[12])]
    fiat_value: Annotated[FiatValue | None, Field(description=VALUE)] = None
    coin: Annotated[Slug, Field(description="Where the payer chooses: its coin.")] = None  # type: ignore[assignment]
    network: Annotated[str, Field(description="Where the payer chooses: its network.", examples=["tron"])] = None  # type: ignore[assignment]


class InvoiceRate(CamelRecord):
    """What one coin was worth when the invoice was made; it stays what it was."""

    fiat: Annotated[str, Field(description="ISO 4217.", examples=["USD"])]
    value: Annotated[str, Field(description="Units of the fiat currency for one coin.", examples=["3120.55"])]
    at: Time
    source: Annotated[str, Field(description="Who said so.", examples=["kraken"])]


class AcceptedCoin(CamelRecord):
    """A coin that the payer may choose."""

    coin: Slug
    network: Annotated[str, Field(description="A network slug.", examples=["tron"])]


class InvoiceChoice(AcceptedCoin):
    """A coin that the payer chose, or paid in unasked, and what came in it. Amounts in its units."""

    address: Annotated[str, Field(description="Where to pay to.", examples=["0x52908400098527886E0F7030069857D2E4169EE7"])]
    amount: Annotated[Money | None, Field(description="The whole price at `rate`.")]
    received: Annotated[Money, Field(description="What was credited in this coin.", examples=["0"])]
    unconfirmed: Annotated[Money, Field(description="What is seen in this coin and not credited yet.", examples=["0"])]
    rate: Annotated[InvoiceRate | None, Field(description="Its newest rate.")]
    locked_until: Annotated[Time | None, Field(description="Until when payments count at `rate`. Null: nobody chose it.")]


class Misdirected(AcceptedCoin):
    """A payment to the invoice's address in a coin that does not count for it. It is credited to the merchant."""

    amount: Money
    tx_id: Annotated[str, Field(description="The transaction's hash on the chain.", examples=[HASH])]


class Invoice(CamelRecord):
    """An invoice: a request to be paid, with an address of its own."""

    id: Annotated[str, Field(description="Names the invoice.", examples=["inv_01jc9w3zj8q2m4k6n8r0t2v4x6"])]
    address: Annotated[str | None, Field(description=PLACE, examples=["0x52908400098527886E0F7030069857D2E4169EE7"])]
    amount: Annotated[Money | None, Field(description=ASKED)]
    received: Annotated[Money, Field(description="What has been credited for it, late payments included.", examples=["0"])]
    unconfirmed: Annotated[Money, Field(description="What is in blocks and not credited yet.", examples=["0"])]
    overpaid: Annotated[Money, Field(description=OVERPAID)] = None  # type: ignore[assignment]
    currency: Slug | None
    symbol: Annotated[str | None, Field(description="The coin's symbol.", examples=["USDT"])]
    network: Annotated[str | None, Field(description="A network slug.", examples=["ethereum"])]
    status: Annotated[str, Field(description=STATUS, examples=["pending"], pattern="^[a-z0-9_-]{1,64}$")]
    external_id: Annotated[str, Field(description="The merchant's own id.", examples=["order-7"])] = None  # type: ignore[assignment]
    description: Annotated[str, Field(description="What is paid for.", examples=["Two pairs of shoes"])] = None  # type: ignore[assignment]
    redirect_url: Annotated[str, Field(description="Where to send who has paid.", examples=["https://shop.example/thanks"])] = None  # type: ignore[assignment]
    fiat_amount: Annotated[str, Field(description=FIAT, examples=["49.90"])] = None  # type: ignore[assignment]
    fiat_currency: Annotated[str, Field(description="ISO 4217.", examples=["EUR"])] = None  # type: ignore[assignment]
    rate: Annotated[InvoiceRate | None, Field(description=RATE)] = None
    accept: Annotated[list[AcceptedCoin], Field(description=ACCEPT)] = None  # type: ignore[assignment]
    choices: Annotated[list[InvoiceChoice], Field(description=CHOICES)] = None  # type: ignore[assignment]
    paid_percent: Annotated[str, Field(description=PAID, examples=["33.33"])] = None  # type: ignore[assignment]
    misdirected: Annotated[list[Misdirected], Field(description=MISDIRECTED)] = None  # type: ignore[assignment]
    transactions: Annotated[
        list[InvoicePayment], Field(description="Its newest 50 payments in the chain, newest first.", examples=[[]])
    ]
    payment_uri: Annotated[str | None, Field(description=TO_SEND, examples=[PAYMENT_URI])]
    checkout_url: Annotated[str, Field(description=CHECKOUT, examples=["https://pay.example/api/pay/inv_…"])] = None  # type: ignore[assignment]
    created_at: Annotated[Time, Field(description="When it was made.")]
    expires_at: Annotated[Time, Field(description="Until when it can be paid in time.", examples=["2026-05-01T13:00:00.000Z"])]
    missing: Annotated[Money | None, Field(description=MISSING, examples=["0.5"])]
    cancel_url: Annotated[str, Field(description=CANCEL, examples=["https://shop.example/basket"])] = None  # type: ignore[assignment]
    metadata: Metadata = None  # type: ignore[assignment]
    webhook_url: Annotated[str, Field(description=HOOK, examples=["https://shop.example/hook"])] = None  # type: ignore[assignment]
    webhook_id: Annotated[str, Field(description=HOOK_ID, examples=["whi_01jc9w3zj8q2m4k6n8r0t2v4x6"])] = None  # type: ignore[assignment]
    shortfall: Annotated[Money, Field(description=SHORTFALL, examples=["0.002"])] = None  # type: ignore[assignment]
    tolerance_percent: Annotated[float, Field(description=TOLERANCE, examples=[1])] = None  # type: ignore[assignment]
    tolerance_max_usd: Annotated[float, Field(alias="toleranceMaxUSD", description=MAX_USD, examples=[0.5])] = None  # type: ignore[assignment]
    late_payments: Annotated[str, Field(description=LATE, examples=["accept"])] = None  # type: ignore[assignment]
    late_payments_percent: Annotated[float, Field(description=LATE_PERCENT, examples=[2])] = None  # type: ignore[assignment]
    payment_link_id: Annotated[str, Field(description=OPENED, examples=["plk_01kab7n3q2w8z5r6t4y1v9c0x3"])] = None  # type: ignore[assignment]


class NewInvoice(Invoice):
    """An invoice as it was made."""

    webhook_secret: Annotated[str, Field(description=SIGNS, examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])] = None  # type: ignore[assignment]


class InvoiceListMeta(Record):
    """Where this page is."""

    pagination: Pagination


class InvoiceList(Record):
    """A page of invoices."""

    count: Annotated[int, Field(description="How many there are in all.", examples=[1])]
    data: Annotated[list[Invoice], Field(description="Those of this page.")]
    meta: InvoiceListMeta


class InvoiceOverridden(CamelRecord):
    """What was set by hand."""

    message: Annotated[str, Field(description="For people: its wording may change.", examples=["Invoice status updated"])]
    invoice_id: Annotated[str, Field(description="The invoice.", examples=["inv_01jc9w3zj8q2m4k6n8r0t2v4x6"])]
    new_status: Annotated[str, Field(description="The status that was set.", examples=["completed"])]


class InvoiceCurrency(CamelRecord):
    """One coin, over all its networks."""

    currency: Slug
    total_amount: Annotated[Money, Field(description="What was asked for.")]
    total_received: Annotated[Money, Field(description="What was credited.")]


class InvoiceSummary(CamelRecord):
    """What all invoices of the merchant come to."""

    total_invoices: Annotated[int, Field(description="All that were ever made.", examples=[3])]
    total_amount: Annotated[Cents, Field(description="What was asked for, in US dollars at the rate of each invoice.")]
    total_received: Annotated[Cents, Field(description="What was credited, in US dollars at the rate of each invoice.")]
    completed_invoices: Annotated[int, Field(description="Those with the status `completed`.", examples=[2])]
    pending_invoices: Annotated[int, Field(description="Everything that is not final: a status by hand is final.", examples=[1])]
    currencies: Annotated[list[InvoiceCurrency], Field(description="The same by coin, in coin units.")]


class InvoiceSettings(CamelRecord):
    """What new invoices obey."""

    default_expiration_time: Annotated[int, Field(description="Seconds after which an unpaid invoice expires.", examples=[3600])]
    auto_confirm_threshold: Annotated[
        float,
        Field(
            description="Up to this worth in US dollars a payment in a block completes the invoice. Exact; 0: off.", examples=[25]
        ),
    ]
    supported_currencies: Annotated[
        list[Slug], Field(description="Coins that can be asked for; empty: all.", examples=[["btc", "usdt"]])
    ]
    minimum_amounts: Annotated[
        dict[str, Money],
        Field(description="What an invoice asks for at least: by coin slug, in coin units.", examples=[{"btc": "0.0001"}]),
    ]
    tolerance_percent: Annotated[float, Field(description=TOLERANCE, examples=[1])] = None  # type: ignore[assignment]
    tolerance_max_usd: Annotated[float | None, Field(alias="toleranceMaxUSD", description=MAX_USD, examples=[0.5])] = None
    late_payments: Annotated[str, Field(description=LATE, examples=["manual"])] = None  # type: ignore[assignment]
    late_payments_percent: Annotated[float, Field(description=LATE_PERCENT, examples=[0])] = None  # type: ignore[assignment]
    rate_lock_seconds: Annotated[int, Field(description=LOCKED, examples=[900])] = None  # type: ignore[assignment]


class InvoiceSettingsAnswer(Record):
    """The settings as they are."""

    settings: InvoiceSettings


class InvoiceSettingsChanged(InvoiceSettingsAnswer):
    """The settings as they are now."""

    message: Annotated[str, Field(description="For people: its wording may change.", examples=["Invoice settings saved"])]
