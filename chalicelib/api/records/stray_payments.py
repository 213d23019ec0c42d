"""Answers about payments on the wrong network."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.base import HASH, CamelRecord, Money, Time
from chalicelib.api.records.networks import Height, Slug
from chalicelib.domain.stray_payments import StrayStatus

_ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


class StrayPayment(CamelRecord):
    """One movement to a deposit address of ours: on a network where nobody watches it, or in a token nobody has registered."""

    id: Annotated[
        str, Field(description="Names it: that of the transaction that it would be.", examples=["tx_3k9x7m2p5q8r1t4v6w0y3z5a7b"])
    ]
    status: Annotated[
        StrayStatus,
        Field(
            description=(
                "`open`: nothing is decided; `recorded`: the service has it as a transaction without anybody's decision; "
                "`credit`: it is the merchant's, in the ordinary way; `return`: it is the operator's merchant's, who sends it back."
            ),
            examples=["open"],
        ),
    ]
    network: Slug
    txid: Annotated[str, Field(description="The transaction's hash.", examples=[HASH])]
    position: Annotated[
        str,
        Field(description="Which movement of it: `native`, `log:<n>` of its block, `trace:<recipient>:<n>`.", examples=["log:3"]),
    ]
    address: Annotated[str, Field(description="The deposit address.", examples=[_ADDRESS])]
    from_: Annotated[str, Field(alias="from", description="Who paid.", examples=["0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"])]
    merchant_id: Annotated[str, Field(description="Whose address it is.", examples=["mch_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    coin: Annotated[str | None, Field(description="The coin's slug; null for a token that is not registered.", examples=["usdt"])]
    symbol: Annotated[str | None, Field(description="The coin's symbol.", examples=["USDT"])]
    contract_address: Annotated[
        str | None, Field(description="The token's contract; null for the native coin.", examples=[_ADDRESS])
    ]
    amount: Annotated[Money | None, Field(description="In coin units; null where the coin is not known.", examples=["120.5"])]
    units: Annotated[str, Field(pattern=r"^[1-9][0-9]*$", description="The same in its smallest units.", examples=["120500000"])]
    block_number: Height
    block_hash: Annotated[str, Field(description="The block's hash.", examples=[HASH])]
    confirmations: Annotated[int, Field(ge=0, description="Blocks from its own on, as far as the chain is known.", examples=[30])]
    required_confirmations: Annotated[int, Field(ge=1, description="What a decision needs.", examples=[20])]
    transaction_id: Annotated[
        str | None, Field(description="The transaction that the service has of it.", examples=["tx_3k9x7m2p5q8r1t4v6w0y3z5a7b"])
    ]
    transaction_status: Annotated[
        Literal["pending", "confirmed", "orphaned"] | None, Field(description="How far that is.", examples=["confirmed"])
    ]
    return_to: Annotated[str | None, Field(description="Where it is sent back to.", examples=[_ADDRESS])]
    withdrawal_id: Annotated[
        str | None,
        Field(description="The operator's merchant's withdrawal that does it.", examples=["wd_01kab7n3q2w8z5r6t4y1v9c0x3"]),
    ]
    detail: Annotated[
        str | None, Field(description="Why its withdrawal is not ordered yet.", examples=["waits for its confirmations"])
    ]
    decided_by: Annotated[str | None, Field(description="The key's id.", examples=["key_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    decided_at: Time | None
    created_at: Time
    updated_at: Time


class Read(CamelRecord):
    """What one transaction brought to deposit addresses of ours."""

    network: Slug
    txid: Annotated[str, Field(description="The transaction's hash.", examples=[HASH])]
    block_number: Height
    internal_transfers: Annotated[
        Literal["read", "unknown"],
        Field(
            description="Whether what contracts sent inside of it was read: `unknown` where the nodes do not trace.",
            examples=["read"],
        ),
    ]
    payments: Annotated[list[StrayPayment], Field(description="One for each movement; never empty.")]
