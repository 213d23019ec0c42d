"""The status of a refund or a payout link: once its withdrawal is stored, it follows the withdrawal's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

StoredStatus = Literal["awaiting_claim", "ordered", "claimed", "failed", "expired", "cancelled"]
"""`ordered`: its address is known and its withdrawal not stored yet. `claimed`: its withdrawal is stored, and says the rest."""
Status = Literal["awaiting_claim", "pending", "processing", "completed", "failed", "expired", "cancelled"]
GIVEN_BACK: frozenset[str] = frozenset({"failed", "expired", "cancelled"})
"""After these the money is available to the merchant again."""
_OF_WITHDRAWAL: Mapping[str, Status] = {
    "pending": "pending",
    "processing": "processing",
    "broadcasting": "processing",
    "confirming": "processing",
    "confirmed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


def status_of(stored: StoredStatus, withdrawal_status: str | None) -> Status:
    """The status as it is shown. `withdrawal_status` is that of the withdrawal that pays it, None where that is not stored, or can
    not be read. What only a newer version reads is `processing`: by that nothing is given back, and nothing can be cancelled."""
    if stored == "claimed":
        return _OF_WITHDRAWAL.get(withdrawal_status or "", "processing")
    return "pending" if stored == "ordered" else stored


def ending(withdrawal_status: str) -> Status | None:
    """The end that a withdrawal's new status is for what it pays; None where it is none."""
    status = _OF_WITHDRAWAL[withdrawal_status]
    return status if status in ("completed", "failed", "cancelled") else None
