"""Closing postings: the sums of archived postings, per pair of accounts, coin and month. The ledger's totals are those of the
journal and of these.

A deposit address belongs to one invoice, and a posting of its own for each would keep what the archive is to free. So the closing
postings name the account that all deposit addresses of a network have together; what lay at one address is in the archive, whose
entries the audit adds up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Units
from chalicelib.domain.versions import next_version

Kept = Literal["where", "whose"]
_WALLET = "wallet:"


@dataclass(frozen=True, slots=True)
class ClosingPosting:
    """`units` of `asset` moved from `source` to `destination` in one book, in a `month` (UTC, such as 2025-10): the sum of `count`
    archived postings. It only grows; a payment that comes back from the archive leaves its postings there."""

    book: Kept
    source: str
    destination: str
    asset: AssetId
    month: str
    units: Units = 0
    count: int = 0
    version: int = 0

    @property
    def key(self) -> dict[str, str]:
        """Its key fields in the store."""
        return {"source": self.source, "destination": self.destination, "asset": self.asset, "month": self.month}

    def grown(self, more: ClosingPosting) -> ClosingPosting:
        """This posting with the postings of `more` in it, as the next version."""
        return replace(next_version(self), units=self.units + more.units, count=self.count + more.count)


def month_of(at: int) -> str:
    """The month of a time in milliseconds since 1970, in UTC."""
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m")


def control_account(account: str) -> str:
    """The account under which closing postings name `account`: all deposit addresses of a network are one."""
    return account.rsplit(":", 1)[0] if account.startswith(_WALLET) else account


def closings_of(entries: Iterable[JournalEntry]) -> list[ClosingPosting]:
    """The closing postings of `entries` alone, each of version 0, in the order of their keys."""
    sums: dict[tuple[Kept, str, str, AssetId, str], tuple[int, int]] = {}
    for entry in entries:
        for posting in entry.postings:
            book: Kept = "where" if posting.book.value == "where" else "whose"
            source, destination = control_account(posting.source), control_account(posting.destination)
            key = (book, source, destination, posting.amount.asset, month_of(entry.at))
            units, count = sums.get(key, (0, 0))
            sums[key] = (units + posting.amount.units, count + 1)
    return [ClosingPosting(*key, units=units, count=count) for key, (units, count) in sorted(sums.items())]


def differing(closings: Iterable[ClosingPosting], proof: Iterable[ClosingPosting]) -> Iterable[str]:
    """A sentence for each closing posting that is not what the archive proves. `proof`: `closings_of` all archived entries."""
    said: Mapping[tuple[str, ...], ClosingPosting] = {_place(c): c for c in closings}
    proven: Mapping[tuple[str, ...], ClosingPosting] = {_place(c): c for c in proof}
    for place in sorted({*said, *proven}):
        found, expected = said.get(place), proven.get(place)
        if _figures(found) != _figures(expected):
            yield f"the closing posting {' '.join(place)} has {_figures(found)}, the archive says {_figures(expected)}"


def _place(closing: ClosingPosting) -> tuple[str, ...]:
    return closing.book, closing.source, closing.destination, closing.asset, closing.month


def _figures(closing: ClosingPosting | None) -> tuple[int, int]:
    return (0, 0) if closing is None else (closing.units, closing.count)
