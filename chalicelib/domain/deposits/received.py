"""What a merchant received per day of one coin: day figures kept inside its balance, which each credit stores anyway.

A deposit is received when its money can be used (`received_at`). Its units are added in the transaction that credits it, and taken
back in the transaction that reverses it. So the figures of the days since `since` are always the sum of the deposits received since
then. Deposits of before `since` count in none: they were credited before these figures were kept, or their day has been dropped.

The figures are one binary value, or a balance would take two write units: `since`, then units and cents of each day from the day of
`since` on, every number in base 128 with the lowest digits first and a high bit on all but the last byte (LEB128).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from chalicelib.domain.deposits.deposits import Deposit

DAY_MS = 86_400_000
DAYS_KEPT = 31
MOST_BYTES = 600
"""So that a balance with them stays below 1 KB, one write unit. 31 days of a coin with 18 decimals take 400 to 500; where amounts
are far larger, fewer days are kept."""


@dataclass(frozen=True, slots=True)
class Day:
    """`cents` of a US dollar, at the rates at which its deposits were credited; 0 where none was known then."""

    units: int = 0
    cents: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    """The figures of the days from the one of `since` (milliseconds since 1970), without gaps."""

    since: int
    days: tuple[Day, ...] = ()

    def by_day(self) -> Iterator[tuple[int, Day]]:
        """Days, counted since 1970 in UTC, with their figures."""
        return enumerate(self.days, self.since // DAY_MS)

    def with_day(self, place: int, day: Day) -> Received:
        """With another figure at `place`, and nothing on the days up to it."""
        days = [*self.days, *(Day() for _ in range(place + 1 - len(self.days)))]
        days[place] = day
        return replace(self, days=tuple(days))


def received_at(deposit: Deposit) -> int | None:
    """When a deposit's money came to be the merchant's to use; None where it is not. In milliseconds since 1970."""
    if deposit.tenant is None or deposit.confirmed_at is None or not deposit.credited or deposit.below_minimum:
        return None
    return max(deposit.confirmed_at, deposit.released_at or 0, deposit.admitted_at or 0)


def credited(stored: bytes | None, at: int, units: int, cents: int) -> bytes:
    """The figures with a deposit that is received at `at`, worth `cents`. The first one says since when they are kept."""
    known = Received(at) if stored is None else decoded(stored)
    if at < known.since:
        return encoded(known)
    known = _without_first(known, at // DAY_MS - known.since // DAY_MS - DAYS_KEPT + 1)
    place = at // DAY_MS - known.since // DAY_MS
    before = known.days[place] if place < len(known.days) else Day()
    return _bounded(known.with_day(place, Day(before.units + units, before.cents + cents)))


def taken_back(stored: bytes | None, at: int | None, units: int) -> bytes | None:
    """The figures without a deposit that was received at `at`, where they count it.

    Its part of the day's cents is its part of the day's units: a coin's rates of one day are near enough, and nothing more has to
    be stored with a deposit.
    """
    if stored is None or at is None:
        return stored
    known = decoded(stored)
    place = at // DAY_MS - known.since // DAY_MS
    if at < known.since or place >= len(known.days):
        return stored
    day = known.days[place]
    # Never less than nothing: the form has no sign. A day that had less never counted the deposit.
    left = max(0, day.units - units)
    return encoded(known.with_day(place, Day(left, day.cents * left // day.units if day.units else 0)))


def encoded(received: Received) -> bytes:
    """As it is stored."""
    numbers = [received.since, *(number for day in received.days for number in (day.units, day.cents))]
    return b"".join(_leb128(number) for number in numbers)


def decoded(stored: bytes) -> Received:
    """The opposite of `encoded`. Raises ValueError for what is none."""
    numbers = list(_numbers(stored))
    if len(numbers) % 2 == 0:
        raise ValueError("a day without its cents")
    return Received(numbers[0], tuple(Day(*pair) for pair in zip(numbers[1::2], numbers[2::2], strict=True)))


def _bounded(received: Received) -> bytes:
    """The last days alone, where all are too long."""
    stored = encoded(received)
    while len(stored) > MOST_BYTES:
        received = _without_first(received, 1)
        stored = encoded(received)
    return stored


def _without_first(received: Received, count: int) -> Received:
    """Without the first `count` days: the figures are kept since the end of the last of them."""
    if count <= 0:
        return received
    return Received((received.since // DAY_MS + count) * DAY_MS, received.days[count:])


def _leb128(number: int) -> bytes:
    if number < 0:
        raise ValueError("a figure has no sign")
    digits = bytearray()
    while True:
        number, digit = number >> 7, number & 0x7F
        digits.append(digit | (0x80 if number else 0))
        if not number:
            return bytes(digits)


def _numbers(stored: Iterable[int]) -> Iterator[int]:
    number = shift = 0
    for byte in stored:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield number
            number = shift = 0
    if shift:
        raise ValueError("ends within a number")
