"""A message to record or to credit payments of a crowded block, beside the poll."""

from __future__ import annotations

import json
import logging
import time

from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.failures import Halted, Unavailable
from chalicelib.usecases.scanning.sharing import VERSION, Share
from chalicelib.wiring import services
from chalicelib.workers.batches import fields, of_newer

log = logging.getLogger(__name__)

SECONDS = 20.0
"""How long one call may begin new work: the poll has done the rest by then."""


def handle(body: str) -> None:
    """Record or credit what the message names, as the poll would. Safe to be asked any number of times, and never: the poll does
    what is missing, so nothing here is tried again. A message of another version is dropped. Raises ValueError for one that nobody
    can read."""
    if of_newer(body, VERSION):
        return
    _, network_name = fields(body, "version", "network")
    network_id = NetworkId(network_name)
    realm, slug = network_parts(network_id)
    share = Share.read(network_id, json.loads(body))
    wired = services()
    network = wired.store.catalogue(realm).network(slug)
    if network is None or network.status != "active" or put_back(wired.store, realm) is not None:
        return
    until = time.monotonic() + SECONDS
    try:
        with in_realm(realm):
            wired.scanner(network).help(share, lambda: time.monotonic() < until)
    except (Conflict, Unavailable, Halted, Failures) as error:
        log.info("%s: a share is left to the poll: %s", network_id, error)
