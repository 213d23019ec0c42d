"""Replacement rules: when a sent payment counts as stuck, how often it may be replaced, and at what fee. Pure; times in
milliseconds.

A payment that no block takes holds up every later one of its wallet (they have later nonces), so waiting is not enough. How it is
replaced must be bounded: a network that stands still would otherwise have us outbid ourselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.withdrawals.withdrawals import MINUTES, Priority, Usurped

BLOCKS: dict[Priority, int] = {"low": 100, "normal": 30, "high": 15, "urgent": 6}
"""Blocks in which a payment of this priority ought to be. Where they take longer than the published confirmation time, that time
counts."""
LEAST_BLOCKS = 3
"""Where blocks are rare, chance alone keeps a payment that pays enough out of one or two."""

MOST_TOGETHER = 5
"""How often a transaction of coins is replaced at the most, whatever is set: all of its attempts are in one item of the store."""


class Signed(Protocol):
    """The signed bytes of a payment or of a move between our own addresses: see `PaymentOrder`."""

    @property
    def created_at(self) -> int: ...

    @property
    def signed_at(self) -> int: ...

    @property
    def fee(self) -> int: ...

    @property
    def earlier(self) -> tuple[Attempt, ...]: ...

    @property
    def usurped(self) -> Usurped | None: ...


class Replaced(Protocol):
    """A payment, a move or a stake, and how often it was replaced."""

    @property
    def earlier(self) -> tuple[Attempt, ...]: ...


@dataclass(frozen=True, slots=True)
class RenewalRules:
    """The bounds of replacement. `least_seconds` is the shortest time after which a payment counts as stuck, `most` how often it
    is replaced, `times` how many times the fee of its first attempt a replacement may cost. `most_expired` counts in place of
    `most` where replaced transactions have expired: they cost nothing, and the payment can arrive in no other way.
    """

    least_seconds: int = 180
    most: int = 5
    most_expired: int = 24
    times: int = 10

    def stuck(self, order: Signed, priority: Priority, since: int, block_seconds: float, now: int) -> bool:
        """Whether its newest attempt, or its last event `since`, has been waiting for a block too long."""
        waited = now - max(order.signed_at or order.created_at, since)
        return waited >= self.patience(priority, block_seconds, len(order.earlier))

    def patience(self, priority: Priority, block_seconds: float, replaced: int = 0) -> int:
        """How long an attempt may wait for a block. Each later attempt waits half as long again, up to eight times."""
        promised = min(BLOCKS[priority] * block_seconds, MINUTES[priority][1] * 60)
        first = round(1000 * max(self.least_seconds, LEAST_BLOCKS * block_seconds, promised))
        longer: int = first * 3**replaced // 2**replaced
        return min(8 * first, longer)

    def exhausted(self, order: Replaced, expires: bool) -> bool:
        """Whether it has been replaced as often as it may be. `expires`: its attempts have no nonce and expire."""
        return len(order.earlier) >= (self.most_expired if expires else self.most)

    def worn_out(self, replaced: int) -> bool:
        """Whether a transaction of UTXOs that was `replaced` so often may not be replaced again."""
        return replaced >= min(self.most, MOST_TOGETHER)

    def affordable(self, order: Signed, fee: int) -> bool:
        """Whether a replacement of `order` may cost `fee`, in units of the native coin, by the fees on record."""
        return self.within(order.earlier[0].fee if order.earlier else order.fee, fee)

    def within(self, first: int, fee: int) -> bool:
        """Whether a replacement may cost `fee` where the first attempt cost `first`, which is the measure."""
        return not first or fee <= first * self.times
