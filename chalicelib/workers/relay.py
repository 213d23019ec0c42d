"""A message that an outbox row wants to be told."""

from __future__ import annotations

from chalicelib.wiring import services
from chalicelib.workers.batches import fields


def handle(body: str) -> None:
    """Tell the row. Raises what stops it; the queue brings the message again, and the sweep finds the row anyway."""
    (row,) = fields(body, "id")
    services().relay.tell(row)
