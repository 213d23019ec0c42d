"""The demo deployment: the owner of its published keys, and the time of its last reset."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.ids import MerchantId, derived_id

OPERATOR = MerchantId(derived_id("mch", "demo", "operator"))
SHOP = MerchantId(derived_id("mch", "demo", "shop"))
"""The merchant whose data visitors find. Its id is always the same, so that keys and data fit together after every reset."""

LIMITS = {"rate_limit": 60, "daily_limit": 5_000}
"""Requests a minute and a day that a published key may make, all its users together."""

EVERY_MS = 24 * 3_600_000
LEASE_MS = 16 * 60_000
"""How long a reset may take, with room: a Lambda ends after 15 minutes at the latest. One that is older has died."""


@dataclass(frozen=True, slots=True)
class DemoState:
    """One record. `started_at` is set while a reset is at work; times in milliseconds since 1970."""

    id: str
    started_at: int | None = None
    finished_at: int | None = None
    version: int = 1

    def due(self, now_ms: int) -> bool:
        """Whether a reset is due: a day after the last one, or where a crash cut one short."""
        if self.started_at is not None:
            return now_ms - self.started_at >= LEASE_MS
        return self.finished_at is None or now_ms - self.finished_at >= EVERY_MS
