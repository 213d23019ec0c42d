"""Pools of address indexes: how many are used, and the ceiling of each.

The tables alone know which indexes were given out. After a loss of the tables, or a point-in-time restore, the next process would
give one out again, and with it another merchant's address. So no index at or above a pool's ceiling is ever given out, and the
ceiling is written outside the tables first (`usecases.addresses.index_ceilings`): a restore then knows below which index addresses
may have been given out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

INDEXES = 2**31
"""Address indexes that a pool has (BIP-32 children that are not hardened). A pool whose count is past them gives out nothing."""
STEP = 50_000
"""By how many indexes a ceiling is raised."""
LEAST_LEFT = 25_000
"""A ceiling is raised when fewer than so many are left below it: 25 minutes of one key that makes addresses as fast as it may."""
ALARM_LEFT = 5_000
"""So few are left only when nobody has raised it for long."""


@dataclass(frozen=True, slots=True)
class IndexPool:
    """One pool's counter row. `count` indexes are used; the next is `count`, where it is below `ceiling`.

    `ceiling` is None in rows from before there were ceilings: nothing is given out of those. `begins` is the index that this row
    began at, or that a restore reopened it at; `reopened` says when that was done for restored tables, in milliseconds
    since 1970 (`PaymentSwitch.put_back`), 0 for never. A pool whose count is past all indexes is closed: it is being restored.
    """

    count: int = 0
    ceiling: int | None = None
    begins: int = 0
    reopened: int = 0

    @property
    def closed(self) -> bool:
        return self.count >= INDEXES

    @property
    def left(self) -> int:
        """Indexes that may still be given out."""
        return 0 if self.ceiling is None else max(0, self.ceiling - self.count)

    @property
    def given_out(self) -> int:
        """Indexes given out since the row began."""
        return self.count - self.begins

    def skipped_to(self, index: int) -> IndexPool:
        """The same pool, continued at `index` or above: indexes below it may have been given out."""
        at = max(self.count, index)
        return replace(self, count=at, begins=at)

    def raised(self, recorded: int) -> IndexPool:
        """The same pool with a ceiling one step above all known indexes; `recorded` is the ceiling outside the tables."""
        return replace(self, ceiling=min(max(self.count, self.ceiling or 0, recorded) + STEP, INDEXES))


@dataclass(frozen=True, slots=True)
class Indexes:
    """Indexes `first` to before `end`, taken for good; `left` more may be taken before the ceiling has to be raised."""

    first: int
    end: int
    left: int


def pool_name(realm: str, pool: str) -> str:
    """The name of a pool's counter row and of its parameter."""
    return f"{realm}:{pool}"
