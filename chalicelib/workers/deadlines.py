"""The deadline until which a part of a run may begin new work."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """Called, it says whether there is time left: what use cases know as `more`. `until` in seconds of the monotonic clock."""

    until: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    def __call__(self) -> bool:
        return time.monotonic() < self.until

    def before(self, seconds: float) -> Deadline:
        """A deadline that ends so many seconds earlier."""
        return Deadline(self.until - seconds)

    def at_least(self, seconds: float) -> Deadline:
        """A deadline that ends no sooner than so many seconds from now, however late it was."""
        return Deadline(max(self.until, time.monotonic() + seconds))

    def part(self, share: float) -> Deadline:
        """A deadline with the share, 0 to 1, of the time that is left now."""
        now = time.monotonic()
        return Deadline(now + max(0.0, self.until - now) * share)
