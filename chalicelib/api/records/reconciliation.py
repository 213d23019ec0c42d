"""Answers about reconciliations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.records.addresses import Text
from chalicelib.api.records.base import CamelRecord, Money, Time
from chalicelib.api.records.networks import Height, Slug

Coin = Annotated[str, Field(description="The coin's slug.", examples=["usdt"])]
Ledger = Annotated[
    Money, Field(description="What the ledger has here: at all addresses, in flight and staked.", examples=["120.5"])
]
Expected = Annotated[
    Money,
    Field(
        description="What therefore has to be on the chain: with what is signed and not mined, or seen and not credited, and "
        "without what is mined and not settled.",
        examples=["120.5"],
    ),
]
Held = Annotated[Money, Field(description="What is on the chain.", examples=["120.5"])]
Short = Annotated[Money, Field(description="`chain` less `expected`: below zero where coins are missing.", examples=["0"])]
FirstBlock = Annotated[Height | None, Field(description="The lowest block that something was compared at; null where nothing was.")]
LastBlock = Annotated[Height | None, Field(description="The highest one.")]
Why = Annotated[
    str | None,
    Field(description="Why a network could not be read; null where it could.", examples=["no node of live:fantom answers"]),
]


Role = Annotated[
    Literal["user", "hot", "cold", "collector", "topup"],
    Field(description="What the address is for. A wallet that was replaced has the role that it had.", examples=["user"]),
]
Staked = Annotated[bool, Field(description="It is about what the address has staked (Tron).", examples=[False])]


class CoinReport(CamelRecord):
    """One coin on one network."""

    coin: Coin
    places: Annotated[int, Field(description="Addresses that were compared.", examples=[57])]
    ledger: Ledger
    expected: Expected
    chain: Held
    difference: Short
    leaving: Annotated[Money, Field(description="Paid out by the chain and not settled: it is still owed.", examples=["0"])]
    liabilities: Annotated[
        Money,
        Field(
            description="What merchants have, available, frozen and held: of those who have something. One's debt is "
            "no other one's money.",
            examples=["100"],
        ),
    ]
    overdrawn: Annotated[Money, Field(description="What other merchants owe: their balances are below zero.", examples=["0"])]
    operator: Annotated[
        Money,
        Field(
            description="What the ledger leaves for the operator; below zero where fees cost more than the operator has put in.",
            examples=["20.5"],
        ),
    ]
    solvent: Annotated[
        bool | None,
        Field(
            description="Whether the chain holds at least what merchants have (`chain` and `leaving` against `liabilities`); "
            "null where that is not known because not everything could be compared.",
            examples=[True],
        ),
    ]


class Difference(CamelRecord):
    """An address at which the chain and the ledger do not agree."""

    network: Slug
    coin: Coin
    address: Text
    role: Role
    staked: Staked
    expected: Expected
    chain: Held
    difference: Short
    block: Annotated[Height, Field(description="The block that it was last compared at.")]
    first_seen: Time


class SkippedPlace(CamelRecord):
    """A place that could not be compared."""

    coin: Coin
    address: Text
    role: Role
    staked: Staked
    why: Annotated[str, Field(description="Why not.", examples=["it has more than 5000 deposits"])]


class NetworkReport(CamelRecord):
    """The last finished run of a network."""

    network: Slug
    run: Annotated[str, Field(description="The run's id.", examples=["rec_01jf8q4b7n0000000000000000"])]
    started_at: Time
    finished_at: Time
    first_block: FirstBlock
    last_block: LastBlock
    complete: Annotated[
        bool,
        Field(description="It went through all places. Where not, `trouble` says why, and nothing is proven of the rest."),
    ]
    trouble: Why
    places: Annotated[int, Field(description="How many places, a coin at an address each, were compared.", examples=[114])]
    differences: Annotated[int, Field(description="How many of them differ, also of those that are not listed.", examples=[0])]
    parts: Annotated[int, Field(description="In how many parts they are listed (`?network=…&part=…`).", examples=[1])]
    not_compared: Annotated[
        int, Field(description="Places that could not be compared, and are in none of the sums; the rest was.", examples=[0])
    ]
    skipped: Annotated[list[SkippedPlace], Field(description="The first 50 of them.")]
    worst: Annotated[
        list[Difference],
        Field(description="Of each coin the difference that matters most: losses first, service wallets first, then the largest."),
    ]
    solvent: Annotated[
        bool | None,
        Field(description="All of its coins are; null where not everything was compared and that is not known.", examples=[True]),
    ]
    coins: Annotated[list[CoinReport], Field(description="Each coin that something was compared of, or is owed.")]


class Running(CamelRecord):
    """A run that is not finished."""

    network: Slug
    run: Annotated[str, Field(description="The run's id.", examples=["rec_01jf8q4b7n0000000000000000"])]
    started_at: Time
    updated_at: Time
    phase: Annotated[
        Literal["before", "walk", "again", "after"],
        Field(
            description="`before`, `after`: what merchants have is added up; `walk`: all addresses are compared; `again`: "
            "those that differ are looked at once more.",
            examples=["walk"],
        ),
    ]
    places: Annotated[int, Field(description="Compared so far.", examples=[57])]
    suspects: Annotated[int, Field(description="Places that differed once and wait for another look.", examples=[0])]
    differences: Annotated[int, Field(description="Places that differ for sure, so far.", examples=[0])]
    trouble: Why


class Reconciliation(CamelRecord):
    """All networks of the key's realm that were ever compared."""

    solvent: Annotated[
        bool | None, Field(description="Every coin on every network is; null while that is not known of all.", examples=[True])
    ]
    ordered_at: Annotated[Time | None, Field(description="When a run was last ordered; null where never.")]
    networks: Annotated[list[NetworkReport], Field(description="The last finished run of each.")]
    differences: Annotated[list[Difference], Field(description="The first 200 of each network, or the part asked for.")]
    running: Annotated[list[Running], Field(description="Runs that are open.")]


class Ordered(CamelRecord):
    """A run that was ordered."""

    ordered_at: Time
    message: Annotated[str, Field(description="For people: its wording may change.", examples=["every network is compared now"])]
    not_compared: Annotated[list[Slug], Field(description="Networks that can not be: they have no node.", examples=[["zcash"]])]
