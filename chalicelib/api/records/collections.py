"""Answers about collections."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.records.base import HASH, CamelRecord, Money, Time
from chalicelib.domain.treasury.collections import CollectionState

_MOVE = "mov_3k9x7m2p5q8r1t4v6w0y3z5a7b"


class Collection(CamelRecord):
    """What lies on one deposit address of one coin, on its way to a service wallet."""

    id: Annotated[str, Field(description="Names the collection.", examples=["col_3k9x7m2p5q8r1t4v6w0y3z5a7b"])]
    network: Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
    coin: Annotated[str, Field(description="The coin's slug.", examples=["usdt"])]
    address: Annotated[str, Field(description="The deposit address.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    destination: Annotated[
        str | None,
        Field(description="The service wallet; null before it is known.", examples=["0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"]),
    ]
    amount: Annotated[Money, Field(description="What there is to collect, and what was sent once it is.", examples=["120.5"])]
    status: Annotated[
        CollectionState,
        Field(
            description=(
                "`planned`, `waits_for_approval`, `waiting` (for its `reason`), `topup_sent` and `topup_confirmed` (the coins for "
                "the fee), `sweep_sent`, `parked` (until somebody sends `retry`); at their end are `swept`, `dropped` (there was "
                "nothing to collect any more) and `rejected`."
            ),
            examples=["sweep_sent"],
        ),
    ]
    reason: Annotated[
        str | None,
        Field(
            description=(
                "Waiting: `fee_share` (the fee is too large a part), `no_rate`, `liquidity` (of the hot wallet, for the fee), "
                "`no_wallet`, `other_coin` (of the same address), `energy` (Tron: a day at most), `failed`; on bitcoin and "
                "litecoin also `threshold` (all together are worth too little) and `approvals` (too many wait for an operator). "
                "Parked: `held`, `grey_listed`, `refused`, `reverted`, `failed`, `topups`."
            ),
            examples=["fee_share"],
        ),
    ]
    detail: Annotated[str | None, Field(description="The same in words.", examples=["the address is on the grey list"])]
    fee: Annotated[Money, Field(description="What it was to cost when it was last looked at.", examples=["0.0031"])]
    fee_coin: Annotated[str, Field(description="The network's native coin.", examples=["eth"])]
    topups: Annotated[list[str], Field(description="The moves that brought coins for the fee.", examples=[[_MOVE]])]
    topped_up: Annotated[Money, Field(description="What they brought in all, in `feeCoin`.", examples=["0.0016"])]
    sweeps: Annotated[
        list[str],
        Field(description="The moves that brought, or should have brought, the coins; the last counts.", examples=[[_MOVE]]),
    ]
    hash: Annotated[str | None, Field(description="The transaction that brought them.", examples=[HASH])]
    arrived: Annotated[Money | None, Field(description="What arrived: a token may keep a part.", examples=["120.5"])]
    approved_amount: Annotated[Money | None, Field(description="What an operator agreed to.", examples=["120.5"])]
    decided_by: Annotated[str | None, Field(description="The key's id.", examples=["key_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    decided_at: Time | None
    note: Annotated[str | None, Field(description="What was said with the decision.", examples=["checked by hand"])]
    created_at: Time
    updated_at: Time
    next_look_at: Annotated[Time | None, Field(description="When the service looks again; null where it does not.")]
    ended_at: Time | None
