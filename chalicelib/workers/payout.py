"""A message to pay a withdrawal, to sign a stake, or to move coins of a service wallet.

A message with `line` names a network: the worker pays the next payout of its payout line. Where several merchants wait, this is
another one than the message was made for. `slot` says which of several hot wallets pays. A message without `line` names the
withdrawal itself; with a `slot`, another hot wallet had too little for it.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from chalicelib.domain.ids import NetworkId, network_parts, tenant_parts
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.wiring import services
from chalicelib.workers.batches import of_newer

log = logging.getLogger(__name__)


def handle(body: str) -> None:
    """Bring the withdrawal as far as its broadcast. Safe to be asked any number of times.

    Whatever goes wrong, the message ends: raising would lock the FIFO group, and with it every payment of the network, for
    the queue's whole visibility timeout. Nothing is lost by that: the withdrawal's work is open, and housekeeping asks again.
    A failure that does not pass by itself is an alarm, every time.
    """
    if of_newer(body):
        return
    message = json.loads(body)
    try:
        _pay(message)
    except (Unavailable, Conflict) as error:
        log.warning("%s is not paid yet: %s", _what(message), error)
    except Exception:
        log.exception("ALARM %s can not be paid as it stands", _what(message))


def _pay(message: dict[str, Any]) -> None:
    wired = services()
    if wired.settings.stage == "demo" and wired.demo_resets.busy():
        return  # its withdrawal is about to go; what is made after it is asked for again
    network = message.get("network") or message.get("line")
    realm = network_parts(NetworkId(network))[0] if network else tenant_parts(message["tenant"])[1]
    if put_back(wired.store, realm) is not None:
        return  # what the wallet has paid is not known; the poll and housekeeping ask again
    if "stake" in message:
        with in_realm(network_parts(message["network"])[0]):
            wired.stake_signing.sign(message["network"], message["stake"])
        return
    if "move" in message:
        with in_realm(network_parts(message["network"])[0]):
            wired.wallet_moves.advance(message["network"], message["move"])
        return
    if "coin_move" in message:
        with in_realm(network_parts(message["network"])[0]):
            wired.wallet_coin_moves.advance(message["network"], message["coin_move"])
        return
    if "line" in message:
        with in_realm(realm):
            _next(NetworkId(message["line"]), message)
        return
    with in_realm(realm):
        handed = "slot" in message
        wired.payouts.pay(message["tenant"], message["id"], int(message.get("slot", "0")), handed=handed)


def _next(network: NetworkId, message: dict[str, str]) -> None:
    """One payout of the line of `network`, if any is ready; `message` names it from then on."""
    from chalicelib.usecases.withdrawals.steps import payout_parts

    line = services().payout_line
    slot = int(message.get("slot", "0"))
    work = line.take(network, slot, int(message.get("slots", "1")))
    if work is None:
        return
    message["tenant"], message["id"] = payout_parts(work)
    try:
        services().payouts.pay(*payout_parts(work), slot)
    except Exception:
        line.leave(work)
        raise
    line.leave(work)


def _what(message: dict[str, str]) -> str:
    return next((message[name] for name in ("stake", "move", "coin_move", "id", "line") if message.get(name)), str(message)[:200])
