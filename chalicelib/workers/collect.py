"""A message that coins want to leave a deposit address."""

from __future__ import annotations

import json
import logging

from chalicelib.domain.ids import network_parts
from chalicelib.usecases.changes import Conflict
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.realm_time import in_realm
from chalicelib.wiring import services

log = logging.getLogger(__name__)


def handle(body: str) -> None:
    """Bring the move as far as its broadcast. Safe to be asked any number of times.

    Whatever goes wrong, the message ends, as with payments (`workers/payout.py`): the move's work is open, and the poll asks again.
    """
    message = json.loads(body)
    try:
        wired = services()
        if wired.settings.stage == "demo" and wired.demo_resets.busy():
            return  # its move is about to go; what is made after it is asked for again
        with in_realm(network_parts(message["network"])[0]):
            wired.deposit_moves.advance(message["network"], message["move"])
    except (Unavailable, Conflict) as error:
        log.warning("%s is not sent yet: %s", message["move"], error)
    except Exception:
        log.exception("ALARM %s can not be sent as it stands", message["move"])
