"""A message that an outbox row wants to be told."""

from __future__ import annotations

import json

from chalicelib.wiring import services


def handle(body: str) -> None:
    """Tell the row. Raises what stops it; the queue brings the message again, and the sweep finds the row anyway."""
    services().relay.tell(json.loads(body)["id"])
