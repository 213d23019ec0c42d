"""A message that a webhook delivery is due."""

from __future__ import annotations

import json

from chalicelib.wiring import services


def handle(body: str) -> None:
    """Attempt the delivery. A receiver's failure is no failure here: it is recorded, and the next attempt is planned."""
    message = json.loads(body)
    services().deliveries.attempt(message["tenant"], message["id"])
