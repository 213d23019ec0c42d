"""ISO 8601 timestamps of the interface."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC with milliseconds and Z."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{ms % 1000:03d}Z"
