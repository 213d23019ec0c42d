"""A message that something may be due at a webhook endpoint."""

from __future__ import annotations

import json

from chalicelib.wiring import services


def handle(body: str) -> None:
    """Send what is due there. A receiver's failure is no failure here: it is recorded, and the next attempt is planned."""
    message = json.loads(body)
    services().turns.take(message["tenant"], message["endpoint"], held="held" in message)
