"""The merchant and its settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import CamelRecord, Money, Record, Time


class Merchant(CamelRecord):
    """The merchant that the key belongs to."""

    id: Annotated[str, Field(examples=["mch_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    name: Annotated[str, Field(examples=["Shop"])]
    plan: Literal["standard", "enterprise"]
    environment: Annotated[Literal["live", "test"], Field(description="What the key sees.")]
    created_at: Time


class MultisigSigner(Record):
    id: Annotated[str, Field(examples=["alice"])]
    public_key: Annotated[str, Field(description="Ed25519, 32 bytes in hex.")]
    role: str


class MultisigConfig(Record):
    """Who has to sign large withdrawals."""

    enabled: bool
    required_signatures: int
    total_signers: int
    threshold_amount: Annotated[Money, Field(description="In coin units, whichever the coin.")]
    signers: list[MultisigSigner]


class MerchantSettings(Record):
    """What the merchant has decided about its withdrawals."""

    whitelist_enforced: bool
    multisig_config: MultisigConfig
    revision: Annotated[int, Field(description="Counts the changes; signed changes name it.", examples=[3])]
    updated_at: Annotated[Time | None, Field(description="Null before the first change.")]
