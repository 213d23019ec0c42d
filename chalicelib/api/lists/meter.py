"""The cost of reading a list: a request that reads many records counts as several.

A look through 10,000 records is seconds of a function where a page by an index is milliseconds, and both are one request of the
key's windows. So whatever is looked through beyond the first thousand counts: at 1,001 records as seven requests, at 4,001 as 31.
Counted in steps, before the next records are read, so that it costs two calls at most, and requests at the same time can not all
read to the end before the first of them is counted.
"""

from __future__ import annotations

from collections.abc import Callable

FREE = 1_000
"""Records that the request itself pays for."""
PER_REQUEST = 500
STEP = 4
"""Each step pays for so many times what was paid for before."""
KEYS = 4
"""So many keys that are read, or counted without an index, cost as much as a record."""


class Meter:
    """`charge` counts that many requests more, and raises RateLimitExceeded where the key has no room left."""

    def __init__(self, charge: Callable[[int], None]) -> None:
        self._charge = charge
        self._seen, self._paid = 0, FREE * KEYS

    def records(self, number: int) -> None:
        """Count so many records read. Raises RateLimitExceeded, Unavailable."""
        self.keys(number * KEYS)

    def keys(self, number: int) -> None:
        """Count so many keys read. Raises RateLimitExceeded, Unavailable."""
        self._seen += number
        while self._seen > self._paid:
            self._charge((STEP - 1) * self._paid // (PER_REQUEST * KEYS))
            self._paid *= STEP
