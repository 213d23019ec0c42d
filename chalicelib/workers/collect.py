"""A message to collect coins from deposit addresses."""

from __future__ import annotations

import json
import logging

from chalicelib.domain.ids import network_parts
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.wiring import services
from chalicelib.workers.batches import of_newer

log = logging.getLogger(__name__)


def handle(body: str) -> None:
    """Bring the move as far as its broadcast. Safe to be asked any number of times.

    Whatever goes wrong, the message ends, as with payments (`workers/payout.py`): the move's work is open, and the poll asks again.
    """
    if of_newer(body):
        return
    message = json.loads(body)
    try:
        wired = services()
        if wired.settings.stage == "demo" and wired.demo_resets.busy():
            return  # its move is about to go; what is made after it is asked for again
        if put_back(wired.store, network_parts(message["network"])[0]) is not None:
            return  # what is at the address is not known; the poll asks again
        with in_realm(network_parts(message["network"])[0]):
            if "coin_move" in message:
                wired.deposit_coin_moves.advance(message["network"], message["coin_move"])
            else:
                wired.deposit_moves.advance(message["network"], message["move"])
    except (Unavailable, Conflict) as error:
        log.warning("%s is not sent yet: %s", _what(message), error)
    except Exception:
        log.exception("ALARM %s can not be sent as it stands", _what(message))


def _what(message: dict[str, str]) -> str:
    return next((message[name] for name in ("coin_move", "move") if message.get(name)), str(message)[:200])
