"""The payer's choice: an invoice with a price in fiat that several coins can pay, and the worth of what came in each.

Worth is units * rate / 10^decimals, a finite decimal: sums of it are kept as text, exact. A payment counts at one rate, decided
when it is first seen and stored with its deposit, so a reorganisation takes away exactly what was added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from chalicelib.domain.ids import AssetId, NetworkId, asset_parts
from chalicelib.domain.invoices.quotes import Quote, exact

MOST_ACCEPTED = 100
"""Coins that an invoice offers."""
MOST_CHOICES = 20
"""Coins that payers of one invoice can choose: each may make an address."""
LOCKS_KEPT = 12
"""Of each choice, the newest: at least three hours of locks of fifteen minutes. A payment that is read later still counts, at the
rate of then."""
LOCK_SECONDS = 900
STAMPED_EARLIER_MS = 60_000
"""How much earlier than a payment its block may say that it was made: it still counts at the lock that began in between."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A coin that the invoice can be paid in."""

    asset: AssetId
    decimals: int


@dataclass(frozen=True, slots=True)
class Lock:
    """A rate that is promised for payments made from `since` up to and with `until`, milliseconds since 1970."""

    quote: Quote
    since: int
    until: int

    def holds(self, at: int) -> bool:
        return self.since <= at <= self.until


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one deposit in the sums of its invoice: units by sum, and the rate that they count at. Without a rate they are
    worth nothing yet."""

    units: Mapping[str, int] = field(default_factory=dict)
    quote: Quote | None = None

    def worth(self, name: str) -> Fraction:
        return Fraction(0) if self.quote is None else self.quote.worth(self.units.get(name, 0))


@dataclass(frozen=True, slots=True)
class Choice:
    """One coin of an invoice: where it is paid to, its rates, and what came in it.

    Choices of one `family` of addresses (`domain.addresses.addresses.family_key`) share the address, which was made for the one
    that `opened` it. `locks` are its promised
    rates, oldest first; none where nobody chose it, and a payment in it came to an address that serves another. `seen` is then the
    rate of its first payment. `units` and `worth` have the sums of its deposits by their names
    (`domain.invoices.invoices.SUMS`), without zeros; worth in the invoice's fiat, as text.
    """

    asset: AssetId
    decimals: int
    family: str
    address: str
    address_id: str | None
    opened: bool = False
    locks: tuple[Lock, ...] = ()
    seen: Quote | None = None
    units: Mapping[str, int] = field(default_factory=dict)
    worth: Mapping[str, str] = field(default_factory=dict)

    @property
    def network(self) -> NetworkId:
        return asset_parts(self.asset)[0]

    @property
    def chosen(self) -> bool:
        return bool(self.locks)

    @property
    def quote(self) -> Quote | None:
        """Its newest rate."""
        return self.locks[-1].quote if self.locks else self.seen

    @property
    def locked_until(self) -> int | None:
        return self.locks[-1].until if self.locks else None

    def is_locked(self, now_ms: int) -> bool:
        return bool(self.locks) and now_ms <= self.locks[-1].until

    def quote_at(self, at: int | None) -> Quote | None:
        """The promised rate for a payment made at `at`; None where no lock holds then."""
        if at is None or not self.locks:
            return None
        held = [lock for lock in self.locks if lock.holds(at)] or [
            lock for lock in self.locks if lock.holds(at + STAMPED_EARLIER_MS)
        ]
        if not held and self.opened and at < self.locks[0].since and len(self.locks) < LOCKS_KEPT:
            # Nobody could pay to it before it was made: the block's time is wrong. Its first lock is still there.
            return self.locks[0].quote
        return held[-1].quote if held else None

    def counted(self, name: str) -> Fraction:
        """The worth of one sum."""
        return Fraction(Decimal(self.worth.get(name, "0")))

    def in_units(self, *names: str) -> int:
        return sum(self.units.get(name, 0) for name in names)

    def locked(self, quote: Quote, now_ms: int, seconds: int) -> Choice:
        """With a new rate, from now on. The lock before it ends where this one begins."""
        since = now_ms if not self.locks else max(now_ms, self.locks[-1].until + 1)
        return replace(self, locks=(*self.locks, Lock(quote, since, now_ms + seconds * 1000))[-LOCKS_KEPT:])

    def moved(self, had: Share, share: Share) -> Choice:
        """With `share` of a deposit in the place of what it `had`."""
        names = {*self.units, *had.units, *share.units}
        units = {name: self.units.get(name, 0) + share.units.get(name, 0) - had.units.get(name, 0) for name in sorted(names)}
        worth = {name: self.counted(name) + share.worth(name) - had.worth(name) for name in sorted(names)}
        return replace(
            self,
            seen=self.seen or share.quote,
            units={name: value for name, value in units.items() if value},
            worth={name: exact(value) for name, value in worth.items() if value},
        )


@dataclass(frozen=True, slots=True)
class PaidIn:
    """The coin of a payment, and its worth as it counts."""

    deposit: str
    asset: AssetId
    worth: str


@dataclass(frozen=True, slots=True)
class Scanned:
    """The networks that are scanned up to and beyond `until`, milliseconds since 1970."""

    until: int
    networks: tuple[NetworkId, ...]


@dataclass(frozen=True, slots=True)
class Choosing:
    """The price in `fiat` (plain decimal), the coins that are accepted, and the choices so far, oldest first.

    `latest` is the coin that was chosen last. `usd` is the worth of one unit of `fiat` in US dollars when the invoice was made,
    None where no rate told. The expiry work lies in `lane`; `scanned` says where it was before. `paid_in` has the coins of the
    payments that the invoice shows.
    """

    fiat: str
    price: str
    accept: tuple[Accepted, ...]
    lane: NetworkId
    choices: tuple[Choice, ...] = ()
    latest: AssetId | None = None
    usd: Quote | None = None
    scanned: Scanned | None = None
    paid_in: tuple[PaidIn, ...] = ()

    @property
    def whole(self) -> Fraction:
        """The whole price."""
        return Fraction(Decimal(self.price))

    @property
    def current(self) -> Choice | None:
        """The choice that was made last."""
        return None if self.latest is None else self.choice(self.latest)

    @property
    def chosen(self) -> tuple[Choice, ...]:
        """The choices that a payer made."""
        return tuple(choice for choice in self.choices if choice.chosen)

    def accepted(self, asset: AssetId) -> Accepted | None:
        return next((one for one in self.accept if one.asset == asset), None)

    def choice(self, asset: AssetId) -> Choice | None:
        return next((choice for choice in self.choices if choice.asset == asset), None)

    def paid(self, deposit: str) -> PaidIn:
        """What a payment that the invoice shows was made in. Raises LookupError for another one."""
        found = next((one for one in self.paid_in if one.deposit == deposit), None)
        if found is None:
            raise LookupError(f"{deposit} is no payment that is shown")
        return found

    def served(self, family: str) -> Choice | None:
        """A choice whose address serves a family."""
        return next((choice for choice in self.choices if choice.family == family), None)

    def total(self, *names: str) -> Fraction:
        """The worth of these sums over all choices, exact."""
        return sum((choice.counted(name) for choice in self.choices for name in names), Fraction(0))

    def with_choice(self, changed: Choice) -> Choosing:
        """With a choice changed or added; a coin that nobody chose and that has nothing is none."""
        known = self.choice(changed.asset) is not None
        choices = [changed if choice.asset == changed.asset else choice for choice in self.choices]
        choices += [] if known else [changed]
        return replace(self, choices=tuple(choice for choice in choices if choice.chosen or choice.units))

    def unscanned(self, until: int) -> list[NetworkId]:
        """The networks of its choices that are not known to be scanned up to `until`."""
        known = self.scanned.networks if self.scanned is not None and self.scanned.until == until else ()
        return [network for network in dict.fromkeys(choice.network for choice in self.choices) if network not in known]

    def in_lane(self, until: int, passed: Iterable[NetworkId], lane: NetworkId) -> Choosing:
        """With its expiry work in another lane, once the networks `passed` are scanned up to `until`."""
        known = self.scanned.networks if self.scanned is not None and self.scanned.until == until else ()
        return replace(self, lane=lane, scanned=Scanned(until, tuple(dict.fromkeys((*known, *passed)))))
