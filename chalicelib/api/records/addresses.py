"""Answers about addresses and their balances."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel

from chalicelib.api.records.base import CamelRecord, Metadata, Money, Time, Usd

Slug = Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
Text = Annotated[
    str, Field(description="In the network's public spelling.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])
]
AddressId = Annotated[
    str, Field(description="Ours; paths take it in the place of the address.", examples=["addr_01hv5v0q6k3m8n2p4r6t8w0y2a"])
]


class Holding(CamelRecord):
    """What lies on an address of one coin: what was credited there, and has not left it."""

    coin: Annotated[str, Field(description="The coin's slug.", examples=["usdt"])]
    symbol: Annotated[str, Field(description="The coin's symbol.", examples=["USDT"])]
    network: Slug
    balance: Money
    balance_usd: Annotated[Usd | None, Field(alias="balanceUSD", description="Null where no fresh rate is known.")]
    contract_address: Annotated[
        str | None, Field(description="Null for the network's own coin.", examples=["0xdAC17F958D2ee523a2206206994597C13D831ec7"])
    ]


class HoldingInDetail(Holding):
    """The same in parts. `balance` = `confirmed` = `frozen` + `available`; `unconfirmed` comes on top of it."""

    confirmed: Annotated[Money, Field(description="Credited after the network's confirmations.")]
    unconfirmed: Annotated[Money, Field(description="Seen in blocks that are not deep enough yet.", examples=["0"])]
    frozen: Annotated[Money, Field(description="On hold: it came from the grey list and is not released.", examples=["0"])]
    available: Annotated[
        Money, Field(description="Not on hold. Withdrawals are paid from the merchant's balance (`GET /v1/balances`).")
    ]


class Address(CamelRecord):
    """An address, and what lies on it."""

    id: AddressId
    address: Text
    network: Slug
    coin: Annotated[str, Field(description="Where the address was made for one coin.", examples=["usdt"])] = None  # type: ignore[assignment]
    type: Annotated[
        Literal["user", "hot", "cold", "collector", "topup"],
        Field(description="`user`: a deposit address. The others are service wallets of the operator."),
    ]
    mode: Annotated[
        Literal["single", "common", "cross"],
        Field(
            description="`single`: for one coin. `common`: for all coins of the network. `cross`: the same on all EVM networks.",
            examples=["common"],
        ),
    ]
    label: Annotated[str, Field(description="What the merchant calls it.", examples=["Till 3"])] = None  # type: ignore[assignment]
    metadata: Metadata = None  # type: ignore[assignment]
    affected_networks: Annotated[list[str], Field(description="Where it receives.", examples=[["ethereum"]])]
    archived: Annotated[Literal[True], Field(description="Hidden from lists; what arrives still counts.")] = None  # type: ignore[assignment]
    balances: Annotated[list[Holding], Field(description="One entry for each coin that it is for.")]
    created_at: Time


class AddressRead(Address):
    """An address with the worth of all that lies on it."""

    total_balance_usd: Annotated[
        Usd | None, Field(alias="totalBalanceUSD", description="Null where the worth of a part of it is not known.")
    ]


class Balances(CamelRecord):
    """Everything that lies on an address, in parts."""

    id: AddressId
    address: Text
    network: Slug
    balances: Annotated[list[HoldingInDetail], Field(description="One entry for each coin that it is for.")]
    total_balance_usd: Annotated[
        Usd | None, Field(alias="totalBalanceUSD", description="Null where the worth of a part of it is not known.")
    ]


class Validation(CamelRecord):
    """Whether a text is an address. `reason` says why it is none; the fields that it has none of are null."""

    valid: Annotated[bool, Field(description="Whether it is an address of the network.", examples=[True])]
    address: Annotated[str, Field(description="As it was sent.", examples=["0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"])]
    network: Slug
    normalized: Annotated[
        str | None, Field(description="The public spelling of it.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])
    ]
    type: Annotated[
        Literal["evm", "tron", "p2pkh", "p2sh", "p2wpkh", "p2wsh", "p2tr"] | None,
        Field(description="The kind of address.", examples=["evm"]),
    ]
    reason: Annotated[
        str | None,
        Field(description="Why it is none; null for an address.", examples=[None, "must be 0x and 40 hexadecimal digits"]),
    ]


class Validations(CamelRecord):
    """Whether several texts are addresses."""

    network: Slug
    results: Annotated[list[Validation], Field(description="One for each text, in their order.")]


class Validated(RootModel[Validation | Validations]):
    """One result, or several: as was asked for."""
