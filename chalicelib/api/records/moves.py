"""Answers about moves between the operator's own wallets and addresses."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.records.base import HASH, CamelRecord, Money, Time
from chalicelib.usecases.treasury.open_moves import MoveStatus, ShownKind


class Move(CamelRecord):
    """A move that is not at its end: coins on their way from one of our addresses to another."""

    id: Annotated[str, Field(description="Names the move.", examples=["mov_3k9x7m2p5q8r1t4v6w0y3z5a7b"])]
    kind: Annotated[
        ShownKind,
        Field(
            description="`topup`: coins for a fee; `sweep`, `consolidation`: from deposit addresses; `distribution`: from the "
            "collector to the hot wallet; `cold`: to the cold wallet; `drain`: out of a wallet that was replaced; `delegation`, "
            "`undelegation`: energy on Tron; `filler`: uses a nonce.",
            examples=["sweep"],
        ),
    ]
    network: Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
    coin: Annotated[str, Field(description="The coin's slug.", examples=["usdt"])]
    amount: Annotated[Money, Field(description="What it moves.", examples=["120.5"])]
    from_: Annotated[
        str | None,
        Field(
            alias="from", description="Null for many deposit addresses.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"]
        ),
    ]
    to: Annotated[str, Field(description="Where it goes.", examples=["0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"])]
    status: Annotated[
        MoveStatus,
        Field(
            description="`planned`: nothing is allotted; `built`: its bytes are fixed; `signed`: the chain may take it any time; "
            "`replacing`: no block takes it, and a dearer one is being signed; `lost`: no block can take it any more, and its "
            "coins are being freed.",
            examples=["signed"],
        ),
    ]
    hash: Annotated[str | None, Field(description="Its newest transaction; null before it is signed.", examples=[HASH])]
    fee: Annotated[Money, Field(description="The most that it can cost, in `feeCoin`.", examples=["0.0031"])]
    fee_coin: Annotated[str, Field(description="The network's native coin.", examples=["eth"])]
    owner: Annotated[
        str,
        Field(description="What planned it: a collection's id, or a name of ours.", examples=["col_3k9x7m2p5q8r1t4v6w0y3z5a7b"]),
    ]
    reason: Annotated[str | None, Field(description="Why it was refused last.", examples=["the node refuses it: fee too low"])]
    created_at: Time
    updated_at: Time
