"""What a payout waits for that the hot wallets have together, and none of them by itself: the treasury moves it between them."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.ids import AssetId, NetworkId

LASTS_MS = 10 * 60_000
"""So long a shortage counts after it was said: the payout that waits says it again every two minutes (`RETRY_MS`)."""
FEES = 10
"""A hot wallet without coins for a fee is given so many times the fee, so that not every payment waits for a move."""


@dataclass(frozen=True, slots=True)
class SlotShortage:
    """The hot wallet `wallet` (public spelling), which comes nearest, is to have `units` of `asset` beside its part of the floor.
    The last payout that waited said so, `at` milliseconds since 1970: the `withdrawal` of `tenant`, empty where an older version
    said so. Of several it is the one that needs least."""

    network: NetworkId
    asset: AssetId
    wallet: str
    units: int
    at: int
    tenant: str = ""
    withdrawal: str = ""
    version: int = 1
