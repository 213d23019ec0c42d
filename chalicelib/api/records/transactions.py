"""Answers about transactions: deposits, transactions of withdrawals, stakes, and moves of the operator's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.addresses import Slug
from chalicelib.api.records.base import HASH, CamelRecord, FiatValue, Money, Time

Flag = Literal["grey_listed", "held", "native_twin", "below_minimum", "set_aside", "replaceable", "unpriced"]
FLAGS = (
    "`grey_listed`: it came from an address of the grey list. `held`: it is credited and waits for the operator's release. "
    "`native_twin`: its transaction brought the same amount of the network's own coin and of a token: perhaps one payment under "
    "two names, of which one is held. "
    "`below_minimum`: less than the coin's `minDepositAmount`, and for no open invoice; it is recorded, and not credited "
    "unless the operator releases it, which takes the flag away. "
    "`set_aside`: what has been received of the coin would come to more than 10^37 units with it (of a merchant, an invoice or an "
    "address), which is no real payment; it is recorded, and in no balance and no invoice unless the operator releases it, which "
    "takes the flag away. "
    "`replaceable`: it is in no block yet, and says itself that another transaction may take its place (BIP-125). "
    "`unpriced`: it pays an invoice whose payer chose the coin, and counts there once there is a fresh rate."
)


VALUE = (
    "What it was worth when it was paid, for the merchant's accounts: of a deposit when it was first seen (a coin that its payer "
    "chose: at the rate at which it counts), of a withdrawal when it was first confirmed. In the currency of its invoice's price, "
    "else in US dollars. Null where there was no fresh rate, where it was found hours after it was paid, and for what the operator "
    "moves; absent in events."
)


class Transaction(CamelRecord):
    """One movement on a chain, to the merchant or from it, or a stake of the operator. Where a hash has several, each is a
    transaction of its own. A stake, and a move between the operator's own places (`topup`, `collection`), is shown in its block
    once it is final there."""

    id: Annotated[
        str,
        Field(
            description="`tx_…` of a deposit, `txw_…` of a withdrawal, `txs_…` of a stake, `txm_…` of a move, `txc_…` of one on "
            "live bitcoin or litecoin.",
            examples=["tx_3k9x7m2p5q8r1t4v6w0y3z5a7b"],
        ),
    ]
    hash: Annotated[str, Field(description="The transaction's hash on the chain.", examples=[HASH])]
    network: Slug
    coin: Annotated[str, Field(description="The coin's slug.", examples=["usdt"])]
    symbol: Annotated[str, Field(description="The coin's symbol.", examples=["USDT"])]
    contract_address: Annotated[
        str | None, Field(description="Null for the network's own coin.", examples=["0xdAC17F958D2ee523a2206206994597C13D831ec7"])
    ]
    type: Annotated[
        Literal["deposit", "withdrawal", "collection", "topup", "stake"],
        Field(
            description="A payment to an address of the merchant, one by the service, or TRX that the operator staked. `topup` and "
            "`collection`: what the operator moves between its own places, shown to keys of the level admin alone.",
            examples=["deposit"],
        ),
    ]
    merchant_id: Annotated[
        str,
        Field(description="Whose it is: for admin keys, with `releasable=true`.", examples=["mch_01jd2w3x4y5z6a7b8c9d0e1f2g"]),
    ] = None  # type: ignore[assignment]
    address: Annotated[
        str, Field(description="The address that received it.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])
    ]
    from_: Annotated[
        str | None,
        Field(
            alias="from",
            description="Null for a withdrawal whose wallet is not chosen yet.",
            examples=["0x52908400098527886E0F7030069857D2E4169EE7"],
        ),
    ]
    to: Annotated[str, Field(description="The same as `address`.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    amount: Money
    fee: Annotated[
        Money | None,
        Field(
            description="What the network takes, in its own coin; null for a deposit, whose fee was paid by whoever sent it.",
            examples=[None, "0.00042"],
        ),
    ]
    status: Annotated[
        Literal["pending", "confirmed", "failed", "orphaned"],
        Field(description="`orphaned`: a reorganisation took it out of the chain.", examples=["confirmed"]),
    ]
    confirmations: Annotated[
        int, Field(ge=0, description="Blocks on it, its own included, up to `requiredConfirmations`.", examples=[12])
    ]
    required_confirmations: Annotated[int, Field(ge=1, description="Confirmations after which it is credited.", examples=[12])]
    block_number: Annotated[int | None, Field(ge=0, description="Null while it is in no block.", examples=[120])]
    block_hash: Annotated[str | None, Field(description="Null while it is in no block.", examples=[HASH])]
    invoice_id: Annotated[str | None, Field(description="The invoice that it paid.", examples=["inv_01jc9w3zj8q2m4k6n8r0t2v4x6"])]
    withdrawal_id: Annotated[
        str | None, Field(description="The withdrawal that it pays.", examples=[None, "wd_01kab7n3q2w8z5r6t4y1v9c0x3"])
    ]
    flags: Annotated[list[Flag], Field(description=FLAGS, examples=[[]])]
    created_at: Annotated[Time, Field(description="When it was first seen; of a withdrawal or a stake, when that was asked for.")]
    confirmed_at: Annotated[Time | None, Field(description="When it had its confirmations; null before.")]
    fiat_value: Annotated[FiatValue | None, Field(description=VALUE)] = None
