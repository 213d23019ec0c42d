"""Reconciliation: the ledger's balance of our addresses against the chains', and the proof of solvency made of it.

A *place* is one coin at one address of ours; staked coins are a place of their own. Its expected on-chain balance is the ledger's,
plus what is signed and not mined, less what is mined and not settled (`expected`). A run compares all places of one network,
compares those that differ a second time, and adds up what merchants are owed before and after. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from chalicelib.domain.addresses.addresses import Role
from chalicelib.domain.ids import AssetId, NetworkId, Realm, TenantId

EVERY_MS = 24 * 3600 * 1000
"""How long after the last run began the next one does by itself."""
STALE_MS = 2 * EVERY_MS
"""After so long a report proves nothing of now."""
MOST_LISTED = 200
"""Differences that the report itself lists."""
PART = 800
"""Of more, so many are in each further part: about 200 bytes each, and an item has 400 KB."""
MOST_SKIPPED = 50
"""Places that could not be compared and are named; of more there is the number."""
MOST_SUSPECTS = 500
"""Places that wait for a second look. Where more differ, those beyond are believed at once."""
MOST_LOOKS = 5
MOST_PASSES = 3
PARTS = 7
"""A daily run looks at one of so many parts of the emptied addresses: at each of them once a week."""
SECOND_LOOK_MS = 60_000
"""The least time between two comparisons of a place that differs: by then a poll has posted what it had under way."""
STANDS_STILL_MS = 600_000
"""After so long a second look counts although no block came: the chain stands still."""
MOST_TROUBLE_MS = 2 * 3600 * 1000
"""A run whose network could not be read for so long ends, and says that it is not complete."""

Phase = Literal["before", "walk", "again", "after", "done"]


@dataclass(frozen=True, slots=True)
class Place:
    """One coin at one address of ours (storage form); `contract` in storage form, None for the native coin."""

    address: str
    role: Role
    asset: AssetId
    contract: str | None = None
    staked: bool = False

    @property
    def key(self) -> tuple[str, AssetId, bool]:
        return self.address, self.asset, self.staked


@dataclass(frozen=True, slots=True)
class Seen:
    """One comparison of a place, in units. `units` is the ledger's balance there, and `in_flight` its signed outgoing amount.

    `expected` has to be there on the chain, `held` is there, both at the block `block`. `leaving` is in flight, and has left on the
    chain: nobody has it any more, and it is still owed until it is settled.
    """

    place: Place
    units: int
    in_flight: int
    expected: int
    held: int
    leaving: int
    block: int

    @property
    def difference(self) -> int:
        return self.held - self.expected


@dataclass(frozen=True, slots=True)
class Unread:
    """A place that could not be read, and `why`. `lasting`: another attempt would read no more."""

    place: Place
    block: int
    why: str
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A place that was not compared, and `why`."""

    address: str
    role: Role
    asset: AssetId
    staked: bool
    why: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """A place that differed (`difference`), or could not be read (None), and waits for another comparison. `at`, in
    milliseconds since 1970, is the time of the last one."""

    address: str
    role: Role
    asset: AssetId
    staked: bool
    difference: int | None
    block: int
    at: int
    looks: int = 1

    @property
    def key(self) -> tuple[str, AssetId, bool]:
        return self.address, self.asset, self.staked

    def due(self, now: int, block: int) -> bool:
        """Whether another comparison would tell more than the last one."""
        waited = now - self.at
        return waited >= STANDS_STILL_MS or (waited >= SECOND_LOOK_MS and block != self.block)


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where the chain and the ledger do not agree. `first_seen` in milliseconds since 1970, however many runs it lasts."""

    address: str
    role: Role
    asset: AssetId
    staked: bool
    expected: int
    held: int
    block: int
    first_seen: int

    @property
    def key(self) -> tuple[str, AssetId, bool]:
        return self.address, self.asset, self.staked


@dataclass(frozen=True, slots=True)
class CoinSums:
    """Sums of one coin of one network, in units. `ledger` is all that the ledger has here (places, in flight and staked), the
    others as in `Seen`; they leave out `skipped` places, which could not be compared. `owed` is the sum of merchants' positive
    balances; `overdrawn` that of the negative ones. `owed_before` was read before the places were, `owed` after. `swept` reached
    service wallets while the places were read, and may be in the sum of neither end; it is only asked for where assets are short.
    """

    asset: AssetId
    places: int = 0
    ledger: int = 0
    expected: int = 0
    held: int = 0
    leaving: int = 0
    owed_before: int = 0
    owed: int = 0
    overdrawn: int = 0
    skipped: int = 0
    swept: int = 0

    def plus(self, seen: Seen) -> CoinSums:
        return replace(
            self,
            places=self.places + 1,
            ledger=self.ledger + seen.units + seen.in_flight,
            expected=self.expected + seen.expected,
            held=self.held + seen.held,
            leaving=self.leaving + seen.leaving,
        )

    @property
    def liabilities(self) -> int:
        """The units that merchants must be able to withdraw. Both readings count: a payment while places were read is in one of
        the two, and perhaps not in the places."""
        return min(self.owed_before, self.owed)

    @property
    def assets(self) -> int:
        """The units that cover them on the chain, payments included that the chain has and the ledger has not settled."""
        return self.held + self.leaving

    @property
    def short(self) -> bool:
        """Whether what was counted does not cover liabilities."""
        return self.assets < self.liabilities

    @property
    def solvent(self) -> bool | None:
        """Whether assets cover liabilities. None: not what was counted, but some places could not be read, or enough was swept
        while they were."""
        if not self.short:
            return True
        return None if self.skipped or self.assets + self.swept >= self.liabilities else False

    @property
    def operator(self) -> int:
        """The operator's balance by the ledger; negative where fees cost more than the operator has put in."""
        return self.ledger - self.owed + self.overdrawn


@dataclass(frozen=True, slots=True)
class Comparison:
    """Progress of the run over one network. `after` is the place in the table that the phase has reached, empty at its start.

    `first_block` and `last_block` bound the blocks that places were compared at. `found` counts differences, of which the first
    MOST_LISTED are in `differences`; those after them are stored in `parts` parts, but the last, that are in `more`. `worst` has
    one of each coin (`worst_of`). `skipped` names the first of `unread` places that could not be compared. `trouble` says why it
    can not go on now, since `trouble_since`. `part` is the part of the emptied addresses that it looks at; None: every address.
    `kept` is the version that was stored with `part`: an older version of the service writes neither. Times in milliseconds since
    1970.
    """

    network: NetworkId
    run: str
    started_at: int
    updated_at: int
    phase: Phase = "before"
    after: str = ""
    passes: int = 1
    looked: int = 0
    first_block: int | None = None
    last_block: int | None = None
    sums: tuple[CoinSums, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    differences: tuple[Difference, ...] = ()
    found: int = 0
    more: tuple[Difference, ...] = ()
    parts: int = 0
    worst: tuple[Difference, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    unread: int = 0
    trouble: str | None = None
    trouble_since: int | None = None
    part: int | None = None
    kept: int = 0
    version: int = 1

    @property
    def open(self) -> bool:
        return self.phase != "done"

    def owing(self, owed: Mapping[AssetId, tuple[int, int]]) -> Comparison:
        """This run with more merchants' balances: `owed` has, by asset, the sum owed to merchants and the sum that they owe."""
        sums = {each.asset: each for each in self.sums}
        for asset, (positive, negative) in owed.items():
            before = sums.get(asset) or CoinSums(asset)
            if self.phase == "before":
                sums[asset] = replace(before, owed_before=before.owed_before + positive)
            else:
                sums[asset] = replace(before, owed=before.owed + positive, overdrawn=before.overdrawn + negative)
        return replace(self, sums=_ordered(sums.values()))

    def seeing(self, looks: Iterable[Seen | Unread], now: int, known: Mapping[tuple[str, AssetId, bool], int]) -> Comparison:
        """This run after more comparisons of places. A place that agrees is added up. One that differs is a suspect, and a
        difference once two comparisons in a row said the same, or many something else each time. One that can not be read is
        tried as often, and then left out. `known` has the time at which the last run first saw a difference."""
        sums = {each.asset: each for each in self.sums}
        suspects = {each.key: each for each in self.suspects}
        listed, skipped, looked, unread = [*self.differences, *self.more], list(self.skipped), self.looked, self.unread
        before_these, blocks = len(listed), [block for block in (self.first_block, self.last_block) if block is not None]
        for seen in looks:
            place = seen.place
            named = (place.address, place.role, place.asset, place.staked)
            blocks.append(seen.block)
            before = suspects.pop(place.key, None)
            so_far = 1 if before is None else before.looks + 1
            room = so_far < MOST_LOOKS and (before is not None or len(suspects) < MOST_SUSPECTS)
            coin = sums.get(place.asset) or CoinSums(place.asset)
            if isinstance(seen, Unread):
                if room and not seen.lasting:
                    suspects[place.key] = Suspect(*named, None, seen.block, now, so_far)
                    continue
                unread += 1
                skipped += [Skipped(*named, seen.why)] if len(skipped) < MOST_SKIPPED else []
                sums[place.asset] = replace(coin, skipped=coin.skipped + 1)
                continue
            if seen.difference:
                if room and (before is None or before.difference != seen.difference):
                    suspects[place.key] = Suspect(*named, seen.difference, seen.block, now, so_far)
                    continue
                listed.append(Difference(*named, seen.expected, seen.held, seen.block, known.get(place.key, now)))
            looked += 1
            sums[place.asset] = coin.plus(seen)
        return replace(
            self,
            sums=_ordered(sums.values()),
            suspects=tuple(suspects.values()),
            differences=tuple(listed[:MOST_LISTED]),
            more=tuple(listed[MOST_LISTED:]),
            worst=worst_of((*self.worst, *listed[before_these:])),
            found=self.found + len(listed) - before_these,
            skipped=tuple(skipped),
            unread=unread,
            looked=looked,
            first_block=min(blocks, default=None),
            last_block=max(blocks, default=None),
        )

    def parted(self) -> tuple[Comparison, list[tuple[int, tuple[Difference, ...]]]]:
        """This run with no more differences than there is room for, and the full parts, by number (the report itself is the
        first). At the end all of them are full."""
        left, full, number = self.more, [], self.parts + 1
        while len(left) >= PART or (left and not self.open):
            number += 1
            full.append((number, left[:PART]))
            left = left[PART:]
        return replace(self, more=left, parts=number - 1), full

    @property
    def unsure(self) -> bool:
        """Whether some coin looks insolvent while payments or sweeps moved coins during the run: then insolvency is not proven."""
        moved = any(each.owed_before != each.owed for each in self.sums)
        short = [each for each in self.sums if each.short and not each.skipped]
        return self.passes < MOST_PASSES and any(moved or each.solvent is None for each in short)

    def sweeping(self, swept: Mapping[AssetId, int]) -> Comparison:
        """This run with what was swept while it read the places, in units."""
        return replace(self, sums=tuple(replace(each, swept=swept.get(each.asset, 0)) for each in self.sums))

    def over_again(self) -> Comparison:
        """This run from its start. The balances owed now become those owed before."""
        sums = tuple(CoinSums(each.asset, owed_before=each.owed) for each in self.sums)
        return replace(self.begun_anew(), phase="walk", passes=self.passes + 1, sums=sums)

    def begun_anew(self) -> Comparison:
        """This run as it began."""
        started = Comparison(self.network, self.run, self.started_at, self.updated_at, version=self.version)
        return replace(started, part=self.part, kept=self.kept)


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """The last finished run of a network. `complete`: it went through all places; else `trouble` says why not, and nothing is
    proven of the rest. Of `found` differences the first are in `differences`, the others in `parts` parts, and
    `worst` has one of each coin. `unread` places could
    not be compared, such as `skipped`. Times in milliseconds since 1970."""

    network: NetworkId
    run: str
    started_at: int
    finished_at: int
    complete: bool
    looked: int
    first_block: int | None = None
    last_block: int | None = None
    sums: tuple[CoinSums, ...] = ()
    differences: tuple[Difference, ...] = ()
    found: int = 0
    parts: int = 0
    worst: tuple[Difference, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    unread: int = 0
    trouble: str | None = None
    version: int = 1

    def stale(self, now: int) -> bool:
        return now - self.finished_at > STALE_MS

    @property
    def insolvent(self) -> tuple[CoinSums, ...]:
        return tuple(each for each in self.sums if each.solvent is False) if self.complete else ()

    @property
    def clean(self) -> bool:
        return self.complete and not self.found and not self.unread and not self.insolvent

    @property
    def generation(self) -> int:
        """Two reports in a row have parts of different names, so that no reader mixes a report with the parts of the next one."""
        return self.version % 2


@dataclass(frozen=True, slots=True)
class DifferencesPart:
    """Further differences of a report: part `part` (2 and on) of its `generation`. `run` names the run that found them."""

    network: NetworkId
    generation: int
    part: int
    run: str
    differences: tuple[Difference, ...]
    version: int = 1


@dataclass(frozen=True, slots=True)
class ReconciliationOrder:
    """An operator's order to compare every network of a realm now. `at` in milliseconds since 1970; `by` is the key's id, or
    None for the command line."""

    realm: Realm
    at: int
    by: str | None = None
    version: int = 1


@dataclass(frozen=True, slots=True)
class Whole:
    """Reconciliation of a realm: the order, and for each network the progress of its run and its last report."""

    order: ReconciliationOrder | None = None
    running: Sequence[Comparison] = field(default_factory=tuple)
    reports: Sequence[ComparisonReport] = field(default_factory=tuple)
    at: int = 0
    """When it was read, in milliseconds since 1970."""


def run_due(last: Comparison | None, order: ReconciliationOrder | None, now: int) -> bool:
    """Whether a run is open, or one has to begin: a day after the last, or when one was ordered."""
    if last is None or last.open:
        return True
    return now - last.started_at >= EVERY_MS or (order is not None and order.at > last.started_at)


def part_after(last: Comparison | None) -> int | None:
    """The part that the daily run after `last` looks at: the next one, or the same where `last` is not complete. The first run
    looks at every address."""
    if last is None:
        return None
    if last.part is None or last.trouble is None:
        return 0 if last.part is None else (last.part + 1) % PARTS
    return last.part


def worst_of(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """The worst difference of each coin: losses before gains, service wallets before others, then the largest. So many small
    differences can not hide it. Of several coins, the first is told first."""

    def rank(each: Difference) -> tuple[bool, bool, int]:
        missing = each.expected - each.held
        return missing < 0, each.role == "user", -missing

    found: dict[AssetId, Difference] = {}
    for each in sorted(differences, key=rank):
        found.setdefault(each.asset, each)
    return tuple(found.values())


def owed_by(balances: Iterable[tuple[TenantId, AssetId, int]]) -> dict[AssetId, tuple[int, int]]:
    """Sums owed to merchants, and sums that others owe, by asset: a debt of one merchant offsets no balance of another."""
    sums: dict[AssetId, tuple[int, int]] = {}
    for _, asset, units in balances:
        positive, negative = sums.get(asset, (0, 0))
        sums[asset] = (positive + max(0, units), negative + max(0, -units))
    return sums


def _ordered(sums: Iterable[CoinSums]) -> tuple[CoinSums, ...]:
    return tuple(sorted(sums, key=lambda each: each.asset))
