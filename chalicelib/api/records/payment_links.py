"""Payment links, and what opening one answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from chalicelib.api.records.base import CamelRecord, Metadata, Money, Time
from chalicelib.api.records.invoices import Slug

ACCEPT = "The coins that the payer may choose from; absent: every active one that the invoice settings allow."


class OfferedCoin(CamelRecord):
    """A coin that the payer may choose."""

    coin: Slug
    network: Annotated[str, Field(description="A network slug; absent: all that have the coin.", examples=["tron"])] = None  # type: ignore[assignment]


class AmountRange(CamelRecord):
    """The payer names an amount, from `min` up to `max`."""

    min: Annotated[Money, Field(description="The least.", examples=["5"])]
    max: Annotated[Money, Field(description="The most.", examples=["50"])]


class PaymentLink(CamelRecord):
    """A public page that opens an invoice for each visitor who wants to pay."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "plk_01kab7n3q2w8z5r6t4y1v9c0x3",
                    "url": "https://pay.example/api/link/plk_01kab7n3q2w8z5r6t4y1v9c0x3",
                    "status": "active",
                    "name": "Two pairs of shoes",
                    "amount": "0.05",
                    "currency": "eth",
                    "network": "ethereum",
                    "stock": 25,
                    "createdAt": "2026-05-01T12:00:00.000Z",
                    "updatedAt": "2026-05-01T12:00:00.000Z",
                }
            ]
        }
    )

    id: Annotated[str, Field(description="Names the link.", examples=["plk_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    url: Annotated[str, Field(description="Its page.", examples=["https://pay.example/api/link/plk_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    status: Annotated[
        Literal["active", "sold_out", "expired"],
        Field(description="`active`: it can be opened. Nothing is left of its stock, or its time is over.", examples=["active"]),
    ]
    name: Annotated[str, Field(description="What is sold.", examples=["Two pairs of shoes"])]
    description: Annotated[str, Field(description="More about it.", examples=["Size 42, in black"])] = None  # type: ignore[assignment]
    currency: Annotated[Slug, Field(description="Absent where the payer chooses the coin.")] = None  # type: ignore[assignment]
    network: Annotated[str, Field(description="A network slug; absent with it.", examples=["ethereum"])] = None  # type: ignore[assignment]
    accept: Annotated[list[OfferedCoin], Field(description=ACCEPT)] = None  # type: ignore[assignment]
    amount: Annotated[Money | AmountRange, Field(description="In units of `currency`.", examples=["0.05"])] = None  # type: ignore[assignment]
    fiat_amount: Annotated[Money | AmountRange, Field(description="In `fiatCurrency`.", examples=["49.9"])] = None  # type: ignore[assignment]
    fiat_currency: Annotated[str, Field(description="ISO 4217.", examples=["EUR"])] = None  # type: ignore[assignment]
    stock: Annotated[int, Field(description="Pieces that are left; absent: any number.", examples=[25])] = None  # type: ignore[assignment]
    expires_at: Annotated[Time, Field(description="From then on nobody opens it any more.")] = None  # type: ignore[assignment]
    redirect_url: Annotated[str, Field(description="Where to send who has paid.", examples=["https://shop.example/thanks"])] = None  # type: ignore[assignment]
    metadata: Metadata = None  # type: ignore[assignment]
    created_at: Annotated[Time, Field(description="When it was made.")]
    updated_at: Annotated[Time, Field(description="When it was changed last.")]


class OpenedLink(CamelRecord):
    """The visitor's invoice."""

    invoice_id: Annotated[str, Field(description="The invoice.", examples=["inv_01jc9w3zj8q2m4k6n8r0t2v4x6"])]
    checkout_url: Annotated[
        str, Field(description="The page to pay it on.", examples=["https://pay.example/api/pay/inv_01jc9w3zj8q2m4k6n8r0t2v4x6"])
    ]
