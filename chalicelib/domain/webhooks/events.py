"""Events for merchants. An event is stored with the change that it reports, and never altered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.domain.ids import AssetId, TenantId, asset_parts, network_parts
from chalicelib.domain.versions import OF_NEWER

EVENT_NAMES: tuple[str, ...] = (
    "transaction.detected", "transaction.confirmed", "transaction.orphaned",
    "withdrawal.created", "withdrawal.status_changed", "withdrawal.completed",
    "balance.updated",
    "invoice.created", "invoice.partial", "invoice.confirming", "invoice.completed", "invoice.expired",
    "invoice.late_payment", "invoice.reverted", "invoice.cancelled",
    "refund.created", "refund.claimed", "refund.completed", "refund.failed", "refund.expired", "refund.cancelled",
    "payout_link.created", "payout_link.claimed", "payout_link.completed", "payout_link.failed", "payout_link.expired",
    "payout_link.cancelled",
    "webhook.failing", "webhook.disabled",
)  # fmt: skip
"""The last two are about the merchant's own endpoints, and told to the others."""
_MOST_NAMED = 5
"""Unknown names that an error repeats."""


def names_problem(names: object) -> str | None:
    """The reason why `names` are no valid subscription (names of events, or "*"), as a constraint for the caller, with the unknown
    names. None when they are valid.
    """
    allowed = ", ".join(f'"{name}"' for name in ("*", *EVENT_NAMES))
    if not isinstance(names, (list, tuple)) or not names:
        return f"must be a list of at least one of: {allowed}"
    unknown = list(
        dict.fromkeys(
            json.dumps(name, default=str)[:60] for name in names if not isinstance(name, str) or name not in ("*", *EVENT_NAMES)
        )
    )
    if not unknown:
        return None
    more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
    verb = "is not an event" if len(unknown) == 1 else "are not events"
    return f"{', '.join(unknown[:_MOST_NAMED])}{more} {verb}; allowed: {allowed}"


@dataclass(frozen=True, slots=True)
class Event:
    """`data` is the public record as it was at that moment, with `previous_status` where its status changed; `sequence` counts
    the events of `object_id` from 1. Events of one transaction have ids in the order in which they were told.

    `at` is in milliseconds since 1970. `more` are members that only a newer version of the service knows: it told them to the
    receivers, so they are members of the body under their names. What a newer version does not tell has its place elsewhere.
    """

    id: str
    tenant: TenantId
    name: str
    object_id: str
    sequence: int
    at: int
    data: Mapping[str, Any]
    more: Mapping[str, Any] = field(default_factory=dict, metadata=OF_NEWER)


def balance_object(asset: AssetId) -> str:
    """The object id of a merchant's balance events, ``ethereum:usdt``: a balance has no id of its own."""
    network, coin = asset_parts(asset)
    return f"{network_parts(network)[1]}:{coin}"
