"""Answers about service wallets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.addresses import Holding, Slug, Text
from chalicelib.api.records.base import CamelRecord, Money, Time

WalletType = Annotated[
    Literal["hot", "cold", "tokens_collector", "topup"], Field(description="What the wallet is for.", examples=["hot"])
]

Custody = Annotated[
    Literal["native", "envelope", "none"],
    Field(
        description="How the key is kept. `native`: in KMS, which it never leaves. `envelope`: encrypted in the store. `none`: a "
        "cold wallet, whose key is not here.",
        examples=["envelope"],
    ),
]


class ServiceWallet(CamelRecord):
    """A wallet that was registered."""

    address: Text
    private_key: Annotated[
        str,
        Field(
            description="64 hexadecimal digits, where the service generated the key. Shown this once.",
            examples=["0000000000000000000000000000000000000000000000000000000000000001"],
        ),
    ] = None  # type: ignore[assignment]
    network: Slug
    type: WalletType
    custody: Custody


class WalletHolding(Holding):
    """What the ledger has there of a coin, and what the chain was seen to have."""

    on_chain_balance: Annotated[
        Money | None, Field(description="As of `observedAt`. Null where nobody has looked yet, or no node can tell.")
    ]
    waits: Annotated[
        str | None,
        Field(
            description="Why what is to go on from here to the hot or the cold wallet has not gone yet; null where nothing waits. "
            "Shown to keys of the level admin alone.",
            examples=["fee_share: the fee is too large a part of it"],
        ),
    ] = None


class WalletSlot(CamelRecord):
    """One of a network's hot wallets."""

    slot: Annotated[int, Field(description="Its number, from 0.", examples=[0])]
    address: Text
    custody: Custody
    balances: Annotated[list[WalletHolding], Field(description="One entry for each coin of the network.")]


class WalletBalance(CamelRecord):
    """A service wallet of the operator and what the ledger has on it."""

    network: Slug
    wallet_type: WalletType
    address: Text
    custody: Custody
    balances: Annotated[list[WalletHolding], Field(description="One entry for each coin of the network.")]
    observed_at: Annotated[
        Time | None, Field(description="When the chain was looked at: every minute. Null before the first time.")
    ]
    wallets: Annotated[
        list[WalletSlot], Field(description="Of hot wallets: one entry for each slot; `balances` above are their sums.")
    ] = None  # type: ignore[assignment]
