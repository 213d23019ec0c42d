"""A message to scan a range of the backlog."""

from __future__ import annotations

import logging
import time

from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.wiring import services
from chalicelib.workers.batches import fields, of_newer

log = logging.getLogger(__name__)

SECONDS = 30.0
"""How long one call may begin new work; what it has started ends well within the function's 60 seconds."""


def handle(body: str) -> None:
    """Scan the range as far as there is time, and ask for the rest. Safe to be asked any number of times.

    Raises Unavailable where a node or the store did not answer: the message comes again. The poll scans a range that no worker
    gets on with.
    """
    if of_newer(body):
        return
    network_name, name = fields(body, "network", "range")
    network_id = NetworkId(network_name)
    realm, slug = network_parts(network_id)
    wired = services()
    network = wired.store.catalogue(realm).network(slug)
    if network is None or network.status != "active":
        return
    if put_back(wired.store, realm) is not None:
        return  # its record stands, and the poll scans it once it may
    until = time.monotonic() + SECONDS
    try:
        with in_realm(realm):
            done = wired.scanner(network).backlog.work(name, lambda: time.monotonic() < until)
    except Conflict:
        log.info("%s: somebody else is at the range %s, or it is void", network_id, name)
        return
    if not done:
        wired.queues.scan(network_id, name)
