"""How many invoices one caller may open from one link: a stranger makes no rows and addresses without end."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

MOST_OPENED = 100
"""Invoices in an hour, for each caller on each link."""
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class LinkOpenings:
    """The count of one caller on one link in one hour since 1970. `ttl`, in seconds since 1970, removes it when the hour is long
    over. Counted up and down by itself, never saved."""

    link: str
    caller: str
    hour: str
    opened: int = 0
    ttl: int = 0


def caller_of(link: str, source: str) -> str:
    """The name that a caller is counted under: nobody reads addresses in it, and on two links it is two names."""
    return hashlib.sha256(f"{link} {source}".encode()).hexdigest()[:32]
