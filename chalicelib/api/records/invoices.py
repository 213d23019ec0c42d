"""What answers about invoices look like."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.records.base import CamelRecord, Money, Pagination, Record, Time

Cents = Annotated[str, Field(pattern=r"^-?(0|[1-9][0-9]*)\.[0-9]{2}$", description="US dollars with cents.", examples=["12.50"])]
STATUS = "pending, partial, confirming, completed, expired or cancelled; or what was set by hand."
FIAT = "The price, where it was given in a fiat currency."
RATE = "The rate that the amount was made from; without a fiat price, the one that totals in USD are counted at."
CHECKOUT = "A page to pay on, where the deployment has one."
Slug = Annotated[str, Field(description="A coin slug.", examples=["usdt"])]


class InvoicePayment(CamelRecord):
    """A payment for the invoice that is in the chain."""

    hash: Annotated[str, Field(description="The transaction's hash on the chain.", examples=["0x5c50…"])]
    amount: Money
    confirmations: Annotated[int, Field(description="Blocks on it, its own included.", examples=[12])]


class InvoiceRate(CamelRecord):
    """What one coin was worth when the invoice was made; it stays what it was."""

    fiat: Annotated[str, Field(description="ISO 4217.", examples=["USD"])]
    value: Annotated[str, Field(description="Units of the fiat currency for one coin.", examples=["3120.55"])]
    at: Time
    source: Annotated[str, Field(description="Who said so.", examples=["kraken"])]


class Invoice(CamelRecord):
    """An invoice: a request to be paid, with an address of its own."""

    id: Annotated[str, Field(examples=["inv_01jc9w3zj8q2m4k6n8r0t2v4x6"])]
    address: Annotated[str, Field(description="Where to pay to.", examples=["0x52908400098527886E0F7030069857D2E4169EE7"])]
    amount: Money
    received: Annotated[Money, Field(description="What has been credited for it, late payments included.")]
    unconfirmed: Annotated[Money, Field(description="What is in blocks and not credited yet.")]
    overpaid: Annotated[Money, Field(description="What was credited in time beyond the amount.")] = None  # type: ignore[assignment]
    currency: Slug
    symbol: Annotated[str, Field(examples=["USDT"])]
    network: Annotated[str, Field(description="A network slug.", examples=["ethereum"])]
    status: Annotated[str, Field(description=STATUS, examples=["pending"], pattern="^[a-z0-9_-]{1,64}$")]
    external_id: Annotated[str, Field(description="The merchant's own id.", examples=["order-7"])] = None  # type: ignore[assignment]
    description: Annotated[str, Field(examples=["Two pairs of shoes"])] = None  # type: ignore[assignment]
    redirect_url: Annotated[str, Field(examples=["https://shop.example/thanks"])] = None  # type: ignore[assignment]
    fiat_amount: Annotated[str, Field(description=FIAT, examples=["49.90"])] = None  # type: ignore[assignment]
    fiat_currency: Annotated[str, Field(description="ISO 4217.", examples=["EUR"])] = None  # type: ignore[assignment]
    rate: Annotated[InvoiceRate, Field(description=RATE)] = None  # type: ignore[assignment]
    transactions: Annotated[list[InvoicePayment], Field(description="Its newest 50 payments in the chain, newest first.")]
    payment_uri: Annotated[str, Field(description="BIP 21, EIP-681, or tron:.", examples=["bitcoin:bc1q…?amount=0.5"])]
    checkout_url: Annotated[str, Field(description=CHECKOUT, examples=["https://pay.example/api/pay/inv_…"])] = None  # type: ignore[assignment]
    created_at: Time
    expires_at: Time


class InvoiceListMeta(Record):
    """Where this page is."""

    pagination: Pagination


class InvoiceList(Record):
    """A page of invoices."""

    count: Annotated[int, Field(description="How many there are in all.", examples=[1])]
    data: list[Invoice]
    meta: InvoiceListMeta


class InvoiceOverridden(CamelRecord):
    """What was set by hand."""

    message: str
    invoice_id: str
    new_status: Annotated[str, Field(examples=["completed"])]


class InvoiceCurrency(CamelRecord):
    """One coin, over all its networks."""

    currency: Slug
    total_amount: Money
    total_received: Money


class InvoiceSummary(CamelRecord):
    """What all invoices of the merchant come to."""

    total_invoices: int
    total_amount: Cents
    total_received: Cents
    completed_invoices: int
    pending_invoices: Annotated[int, Field(description="Everything that is not final: a status by hand is final.")]
    currencies: list[InvoiceCurrency]


class InvoiceSettings(CamelRecord):
    """What new invoices obey."""

    default_expiration_time: Annotated[int, Field(description="Seconds.", examples=[3600])]
    auto_confirm_threshold: Annotated[float, Field(description="US dollars, exact; 0: off.", examples=[25])]
    supported_currencies: Annotated[list[Slug], Field(description="Empty: all.")]
    minimum_amounts: Annotated[dict[str, Money], Field(description="By coin slug, in coin units.", examples=[{"btc": "0.0001"}])]


class InvoiceSettingsAnswer(Record):
    """The settings as they are."""

    settings: InvoiceSettings


class InvoiceSettingsChanged(InvoiceSettingsAnswer):
    """The settings as they are now."""

    message: str
