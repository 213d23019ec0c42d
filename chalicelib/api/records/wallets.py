"""What answers about service wallets look like."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.addresses import Holding, Slug, Text
from chalicelib.api.records.base import CamelRecord

WalletType = Annotated[Literal["hot", "cold", "tokens_collector"], Field(description="What the wallet is for.", examples=["hot"])]


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


class WalletBalance(CamelRecord):
    """A service wallet of the operator and what the ledger has on it."""

    network: Slug
    wallet_type: WalletType
    address: Text
    balances: Annotated[list[Holding], Field(description="One entry for each coin of the network.")]
