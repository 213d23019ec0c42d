"""The pools that address indexes are taken from: how many are gone, and how far each may go.

An index that was given out is known to the tables alone. When they are lost, or put back to an earlier second, the next process
would give it out again, and with it somebody else's address. So no index at or above a pool's ceiling is ever given out, and the
ceiling is written outside the tables first (`usecases.addresses.index_ceilings`): whoever restores knows below which index
addresses may have been given out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.domain.recovery.addresses import INDEXES

STEP = 50_000
"""By how many indexes a ceiling is raised."""
LEAST_LEFT = 25_000
"""A ceiling is raised when fewer than so many are left below it: 25 minutes of one key that makes addresses as fast as it may."""
ALARM_LEFT = 5_000
"""So few are left only when nobody has raised it for long."""


@dataclass(frozen=True, slots=True)
class IndexPool:
    """One pool's counter row. `count` indexes are gone; the next is `count`, where it is below `ceiling`.

    `ceiling` is None in rows from before there were ceilings: nothing is given out of those. `begins` is the index that this row
    began at, or that a restore reopened it at; `reopened` says when that was done for tables that were put back, in milliseconds
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
        """How many may still be given out."""
        return 0 if self.ceiling is None else max(0, self.ceiling - self.count)

    @property
    def given_out(self) -> int:
        """How many were taken since it began."""
        return self.count - self.begins

    def skipped_to(self, index: int) -> IndexPool:
        """The same pool, which goes on at `index` or above: those below may have been given out."""
        at = max(self.count, index)
        return replace(self, count=at, begins=at)

    def raised(self, recorded: int) -> IndexPool:
        """The same pool with a ceiling one step above everything that is known of it; `recorded`: outside the tables."""
        return replace(self, ceiling=min(max(self.count, self.ceiling or 0, recorded) + STEP, INDEXES))


@dataclass(frozen=True, slots=True)
class Indexes:
    """Indexes `first` to before `end`, taken for good; `left` more may be taken before somebody raises the ceiling."""

    first: int
    end: int
    left: int


def pool_name(realm: str, pool: str) -> str:
    """What the counter row and the parameter of a realm's pool are named by."""
    return f"{realm}:{pool}"
