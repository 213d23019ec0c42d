"""Answers of the sandbox."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import HASH, CamelRecord, Money, Time

Slug = Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
TxHash = Annotated[str, Field(description="The transaction's hash on the simulated chain.", examples=[HASH])]
Height = Annotated[int, Field(ge=0, description="A block's number.", examples=[120])]


class Deposit(CamelRecord):
    """A payment that was mined."""

    txid: TxHash
    network: Slug
    coin: Annotated[str, Field(description="The coin's slug.", examples=["usdt"])]
    amount: Money
    address: Annotated[str, Field(description="Whom it paid.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    from_: Annotated[
        str, Field(alias="from", description="Whom it seems to come from.", examples=["0x52908400098527886E0F7030069857D2E4169EE7"])
    ]
    block_number: Annotated[Height, Field(description="The block that it is in.")]
    block_hash: Annotated[str, Field(description="That block's hash.", examples=[HASH])]


class Blocks(CamelRecord):
    """Blocks that were mined."""

    network: Slug
    mined: Annotated[int, Field(ge=1, description="How many.", examples=[12])]
    block_number: Annotated[Height, Field(description="The newest block now.")]


class Reorganisation(CamelRecord):
    """Blocks that were replaced by one more than they were."""

    network: Slug
    depth: Annotated[int, Field(ge=1, description="How many blocks were replaced.", examples=[3])]
    from_block: Annotated[Height, Field(description="The lowest block that is another one now.")]
    block_number: Annotated[Height, Field(description="The newest block now.")]
    dropped: Annotated[list[str], Field(description="Hashes of transactions that are in no block any more.", examples=[[HASH]])]
    remined: Annotated[list[str], Field(description="Hashes of those that are in a new block.", examples=[[]])]


class Outcome(CamelRecord):
    """What was decided about a withdrawal."""

    id: Annotated[str, Field(description="The withdrawal.", examples=["wd_01hv5v0q6k3m8n2p4r6t8w0y2a"])]
    outcome: Annotated[Literal["confirm", "fail", "stick"], Field(description="What was decided.")]
    state: Annotated[
        Literal["planned", "waiting", "stuck", "succeeded", "failed"],
        Field(
            description="Of its payment: not signed yet, in the mempool behind an earlier one, kept out of blocks, or in a block "
            "with all its confirmations."
        ),
    ]
    txid: Annotated[str | None, Field(description="Null until the payment is signed.", examples=[HASH])]


class Clock(CamelRecord):
    """The sandbox's time."""

    now: Annotated[Time, Field(description="What time it is in the sandbox now.")]
    advanced: Annotated[
        int, Field(ge=0, description="Seconds by which it is ahead of the real time: all advances together.", examples=[86_400])
    ]


class OwnRate(CamelRecord):
    """A rate of the merchant's sandbox."""

    coin: Annotated[str, Field(description="The coin's slug.", examples=["eth"])]
    fiat: Annotated[str, Field(description="ISO 4217.", examples=["EUR"])]
    value: Annotated[
        str | None, Field(description="Units of the currency for one coin; null where there is none.", examples=["2700"])
    ]
    stale: Annotated[bool, Field(description="Whether it counts as too old, and prices nothing.", examples=[False])]
    own: Annotated[bool, Field(description="Whether the merchant has set it; else it is the usual one.", examples=[True])]
