"""The merchant and its settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import CamelRecord, Money, Record, Time


class Merchant(CamelRecord):
    """The merchant that the key belongs to."""

    id: Annotated[str, Field(description="Names the merchant.", examples=["mch_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    name: Annotated[str, Field(description="What the operator calls it.", examples=["Shop"])]
    plan: Annotated[Literal["standard", "enterprise"], Field(description="Which rate limits its live keys have.")]
    environment: Annotated[Literal["live", "test"], Field(description="What the key sees.")]
    created_at: Time


class MultisigSigner(Record):
    """Somebody whose signature counts."""

    id: Annotated[str, Field(description="What signatures name the signer by.", examples=["alice"])]
    public_key: Annotated[
        str,
        Field(
            description="Ed25519, 32 bytes in hex.", examples=["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"]
        ),
    ]
    role: Annotated[str, Field(description="For people; it decides nothing.", examples=["finance"])]


class MultisigConfig(Record):
    """Who has to sign large withdrawals."""

    enabled: Annotated[bool, Field(description="Whether it counts.", examples=[True])]
    required_signatures: Annotated[int, Field(description="Signatures of different signers that are needed.", examples=[1])]
    total_signers: Annotated[int, Field(description="The number of signers.", examples=[1])]
    threshold_amount: Annotated[
        Money, Field(description="Withdrawals of this much or more need them: in coin units, whichever the coin.", examples=["10"])
    ]
    signers: Annotated[list[MultisigSigner], Field(description="Whose signatures count.")]


class Shop(CamelRecord):
    """What payers see of the shop."""

    name: Annotated[str | None, Field(description="Stands at the top of the pages.", examples=["Shoes & Co"])]
    color: Annotated[str | None, Field(pattern="^#[0-9a-f]{6}$", description="Of buttons and bars.", examples=["#0b6e4f"])]
    logo: Annotated[
        str | None,
        Field(
            description="A PNG in base64, as it was rewritten.",
            examples=["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="],
        ),
    ]
    frame_ancestors: Annotated[
        list[str],
        Field(
            description="Origins whose pages may show the checkout and payment links in a frame.",
            examples=[["https://shop.example"]],
        ),
    ]


class MerchantSettings(Record):
    """What the merchant has decided about its withdrawals, and how payers see its shop."""

    whitelist_enforced: Annotated[bool, Field(description="Withdrawals to addresses outside of the whitelist are refused.")]
    multisig_config: Annotated[MultisigConfig, Field(description="Who has to sign large withdrawals.")]
    refundDailyLimitUSD: Annotated[
        Money,
        Field(
            description="US dollars of refunds and payout links in 24 hours while the whitelist is enforced; 0: none.",
            examples=["500"],
        ),
    ]
    shop: Annotated[Shop, Field(description="What payers see of the shop.")]
    revision: Annotated[int, Field(description="Counts the changes that signers guard; signed changes name it.", examples=[3])]
    updated_at: Annotated[Time | None, Field(description="Null before the first change.")]
