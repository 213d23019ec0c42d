"""A message to look at a busy network between two minute's polls: scan the blocks behind the cursor, note what waits in the
mempool, confirm. Nothing else: the poll does the rest, and all of this too.

A tick that comes late, twice or beside another one does nothing (`domain/scanning/ticks.py`).
"""

from __future__ import annotations

import json
import logging
from functools import partial

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import NetworkId, network_id, network_parts
from chalicelib.domain.scanning.ticks import VERSION, is_late
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.base.retries import Each
from chalicelib.wiring import services
from chalicelib.workers.deadlines import Deadline

log = logging.getLogger(__name__)

SECONDS = 12.0
"""How long one tick may begin new work; what it has started ends within the function's 30 seconds. A lease is taken for dead after
60."""
SCANNING = 1 / 2
READING = 1 / 2
"""The parts of the time that is left then: for blocks, and for what waits in the mempool. Confirming has the rest."""
LEAST = 2.0
"""Seconds that confirming has, however long the others took."""


def handle(body: str) -> None:
    """Run the tick, if it is in time and no other one runs. Safe to be asked any number of times.

    Raises ValueError for what is no message of ours, Failures where a step failed: the message comes again too late to run.
    """
    wired, wanted = services(), _read(body)
    if wanted is None:
        return
    name, at = wanted
    if is_late(at, wired.clock.now_ms()):
        log.info("%s: a tick came too late", name)
        return
    network = _scanned(name)
    lease = None if network is None else wired.ticks.begin(name, at)
    if network is None or lease is None:
        return
    try:
        with in_realm(network.realm):
            _scan(network)
    finally:
        wired.ticks.end(lease)


def _scanned(name: NetworkId) -> Network | None:
    """The network, if polls scan it now."""
    wired, (realm, slug) = services(), network_parts(name)
    if realm not in wired.settings.realms or (wired.settings.stage == "demo" and wired.demo_resets.busy()):
        return None
    network = wired.store.catalogue(realm).network(slug)
    if network is None or network.status != "active" or put_back(wired.store, realm) is not None:
        return None
    return network


def _read(body: str) -> tuple[NetworkId, int] | None:
    """Network and the planned moment; None for a message of another version."""
    message = json.loads(body)
    if not isinstance(message, dict) or "version" not in message:
        raise ValueError("a tick's message says its version")
    if message["version"] != VERSION:
        log.warning("a tick of version %.20s is dropped: the poll does its work", message["version"])
        return None
    realm, slug, at = message.get("realm"), message.get("network"), message.get("at")
    if realm not in ("live", "test") or not isinstance(slug, str) or not isinstance(at, int):
        raise ValueError("a tick's message names realm, network and time")
    return network_id(realm, slug), at


def _scan(network: Network) -> None:
    wired, whole = services(), Deadline.after(SECONDS)
    scanner, mempool = wired.scanner(network), wired.mempool_scan(network, "tick")
    reached: list[Cursor] = []

    def keep_up() -> Cursor | None:
        cursor = scanner.keep_up(whole.part(SCANNING))
        reached.extend([] if cursor is None else [cursor])
        return cursor

    with Each(f"a tick of {network.id}") as each:
        if mempool is None:
            each.take("scan", keep_up)
        else:
            each.take("scan", partial(mempool.look, keep_up))
            each.take("mempool", partial(mempool.read, whole.part(READING), None))
        for cursor in reached:
            each.take("confirm", partial(scanner.confirm, cursor, whole.at_least(LEAST)))
