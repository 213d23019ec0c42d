"""Collections: the balance of one coin at one deposit address on its way to a service wallet, on account networks.

A collection plans moves (`domain/treasury/moves.py`) and follows them. Each decision is a function of the current ledger, settings
and fees: none is remembered, so none can go stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from typing import Literal, get_args

from chalicelib.domain.ids import AssetId, NetworkId, Realm, TenantId, asset_parts, derived_id, network_parts
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.work import Work, time_order

CollectionState = Literal[
    "planned", "waits_for_approval", "waiting", "topup_sent", "topup_confirmed", "sweep_sent", "parked", "swept", "dropped",
    "rejected",
]  # fmt: skip
"""`planned`: nothing is sent; `waits_for_approval`: for an operator; `waiting`: for what `reason` says, and looked at again;
`topup_sent`: native coins for the fee are on their way to the address, `topup_confirmed`: they are there; `sweep_sent`: the coins
are on their way; `parked`: it failed for good or must not go on, until an operator says so; `swept`: it is done; `dropped`: there
is nothing (any more) that should be collected; `rejected`: an operator said no."""
Ending = Literal["swept", "dropped", "rejected"]
STATES: tuple[str, ...] = get_args(CollectionState)
WaitReason = Literal["fee_share", "no_rate", "liquidity", "no_wallet", "other_coin", "energy", "failed", "threshold", "approvals"]
"""`fee_share`: the fee is too large a part of what would be moved; `no_rate`: a threshold is in USD, or the fee's share can not be
told, and there is no fresh rate; `liquidity`: the hot wallet can not pay the top-up; `no_wallet`: no wallet to collect to;
`other_coin`: another coin of the address is moved with the native coins there; `energy`:
(Tron) the hot wallet's stake has used up its energy, and has it again within a day; `failed`: a step failed, and is tried again.
On networks of coins also `threshold`: all together are worth too little; `approvals`: too many wait for an operator."""
ParkReason = Literal["held", "grey_listed", "refused", "reverted", "failed", "topups"]
"""`held`: money from the grey list is there; `grey_listed`: the address itself is on it; `refused`: the node says that the sweep
would fail (frozen by the token's issuer, a paused token); `reverted`: it did, on the chain; `failed`: tried too often;
`topups`: as many top-ups as there may be were not enough."""
ENDED: frozenset[str] = frozenset(get_args(Ending))
IN_MOTION: frozenset[str] = frozenset({"topup_sent", "topup_confirmed", "sweep_sent"})
LOOKED_AT: frozenset[str] = frozenset(STATES) - ENDED - {"parked"}
"""States with an obligation."""

MOST_TRIES = 5
MOST_TOPUPS = 3
"""In a row: with no sweep planned between them. On Tron activating an address and lending it energy are two."""
MARGIN_PERCENT = 25
"""What a top-up has beyond the fee of now, for fees that rise before it is there."""
FIRST_WAIT_MS = 60_000
LONGEST_WAIT_MS: Mapping[str, int] = {"fee_share": 6 * 3_600_000, "other_coin": 60_000, "energy": 3_600_000}
LONGEST_MS = 15 * 60_000

_EXACT = Context(prec=120)


@dataclass(frozen=True, slots=True)
class Collection:
    """`amount` in units of `asset`: what the address had to collect when it was last looked at, and what was sent once it is.
    `address` in its public spelling, with the merchant whose it is and its derivation path. Times in milliseconds since 1970.

    `topups` and `sweeps` are ids of moves, `topped_up` the units of the native coin that the top-ups were in all; `topups_since`
    counts those that arrived since a sweep was planned or an operator said to try again, loans among them. `look_at` is when
    it is next looked at; `waits` counts looks in a row that found nothing to go on with, `tries` failures. `fee` is what top-up and
    sweep were to cost at the last look, in units of the native coin. `approved` is the amount that an operator agreed to: no more
    is sent. `again`: more came while it was under way.
    """

    id: str
    network: NetworkId
    asset: AssetId
    address: str
    path: str
    owner: TenantId
    amount: int
    created_at: int
    updated_at: int
    look_at: int
    state: CollectionState = "planned"
    reason: str | None = None
    detail: str | None = None
    destination: str | None = None
    fee: int = 0
    topups: tuple[str, ...] = ()
    topped_up: int = 0
    topups_since: int = 0
    sweeps: tuple[str, ...] = ()
    waits: int = 0
    tries: int = 0
    approved: int | None = None
    decided_by: str | None = None
    decided_at: int | None = None
    note: str | None = None
    again: bool = False
    txid: str | None = None
    arrived: int | None = None
    ended_at: int | None = None
    version: int = 1

    @property
    def realm(self) -> Realm:
        return network_parts(self.network)[0]

    @property
    def coin(self) -> str:
        return asset_parts(self.asset)[1]

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class Collecting:
    """Open collections of an address (storage form) of a network, by coin: one each. `number` counts all that it ever had."""

    network: NetworkId
    address: str
    open: dict[str, str] = field(default_factory=dict)
    number: int = 0
    version: int = 0

    def begun(self, slug: str) -> tuple[str, Collecting]:
        """The id of the next collection of a coin, and this record with that collection open."""
        number = self.number + 1
        id = derived_id("col", self.network, self.address, slug, str(number))
        return id, replace(next_version(self), open={**self.open, slug: id}, number=number)

    def without(self, slug: str) -> Collecting:
        """This record once the coin's collection is settled."""
        rest = {name: id for name, id in self.open.items() if name != slug}
        return replace(next_version(self), open=rest)

    def past(self, collection: str) -> Collecting:
        """This record once that collection is settled: a coin has several at the hot wallet of a UTXO network."""
        rest = {name: id for name, id in self.open.items() if id != collection}
        return replace(next_version(self), open=rest)


def collection_work(collection: Collection) -> Work:
    """Open work: look at a collection again, sorted by its due time; ahead of all waiting ones once it is in flight."""
    return Work("collection", collection.network, time_order(0 if pressing(collection) else collection.look_at), collection.id)


def pressing(collection: Collection) -> bool:
    """Whether it continues at its next look: it waits for nothing that only time brings."""
    return collection.state == "planned" or collection.state in IN_MOTION


def waited(before: Collection, reason: WaitReason, detail: str | None, now: int) -> Collection:
    """`before`, which can not continue: looked at again after a minute, then ever more rarely while the reason stays the same."""
    waits = before.waits + 1 if before.reason == reason else 1
    longest = LONGEST_WAIT_MS.get(reason, LONGEST_MS)
    pause = min(FIRST_WAIT_MS * 2 ** min(waits - 1, 20), longest)
    said = None if detail is None else detail[:300]
    return replace(before, state="waiting", reason=reason, detail=said, waits=waits, look_at=now + pause)


def went_on(before: Collection, state: CollectionState, now: int) -> Collection:
    """`before` in its next state, without a reason to wait."""
    return replace(before, state=state, reason=None, detail=None, waits=0, look_at=now)


def ended(before: Collection, state: Ending, now: int) -> Collection:
    """`before` settled, in its next version."""
    after = replace(before, state=state, reason=None, detail=None, again=False, ended_at=now)
    return replace(after, updated_at=now, version=version_after(before))


def topup_units(cost: int, there: int) -> int:
    """The top-up that an address with `there` needs to pay `cost`; both in units of the native coin. 0: none."""
    if there >= cost:
        return 0
    return cost + -(-cost * MARGIN_PERCENT // 100) - there


def fee_share_exceeds(percent: int, fee: Decimal | int, value: Decimal | int) -> bool:
    """Whether `fee` is more than `percent` of `value` (the same unit). 0 per cent: any fee may be paid."""
    return percent > 0 and _EXACT.multiply(fee, Decimal(100)) > _EXACT.multiply(value, Decimal(percent))


def worth(units: int, decimals: int, rate: Decimal) -> Decimal:
    """The exact value of `units` of a coin at `rate`."""
    return _EXACT.multiply(_EXACT.scaleb(Decimal(units), -decimals), rate)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of one coin at a service wallet (`address` in storage form): moves between service wallets, one lot at a time.
    `number` counts the moves that it ever planned, `moves` are those of the last lot until they are settled.

    `topups` counts top-ups since the last lot that went out, `tries` lots in a row that came to nothing; before `look_at`
    (milliseconds since 1970) nothing is tried again. `low`: the wallet is below its floor, and that has been said. `reason`: what
    it waits for.
    """

    network: NetworkId
    address: str
    asset: AssetId
    number: int = 0
    moves: tuple[str, ...] = ()
    topups: int = 0
    tries: int = 0
    look_at: int = 0
    low: bool = False
    reason: str | None = None
    version: int = 0

    @property
    def id(self) -> str:
        """Its id as the owner of its moves."""
        return f"{self.address}|{asset_parts(self.asset)[1]}"


def hot_part(units: int, percent: str | None) -> int:
    """The hot wallet's part of `units`: `percent` of it (a plain decimal), rounded down; all of it where none is set."""
    if percent is None:
        return units
    return int(_EXACT.divide_int(_EXACT.multiply(Decimal(units), Decimal(percent)), Decimal(100)))
