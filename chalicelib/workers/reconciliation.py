"""Every five minutes: go on with the runs that compare the ledger with the chains; begin those that are due. Networks in turn."""

from __future__ import annotations

import time
from functools import partial

from chalicelib.domain.catalogue import Network
from chalicelib.usecases.realm_time import in_realm
from chalicelib.usecases.trying import Each
from chalicelib.wiring import services

SECONDS = 200.0
"""How long one run of the function may begin new steps, all networks together; each ends well within its 300 seconds."""


def run() -> None:
    """One network's failure does not keep the others from being compared. Raises `Failures` at the end."""
    wired = services()
    if wired.settings.stage == "demo" and wired.demo_resets.busy():
        return
    until = time.monotonic() + SECONDS
    networks = [
        network
        for realm in wired.settings.realms
        for network in wired.store.catalogue(realm).networks.values()
        if network.status == "active"
    ]
    with Each("reconciliation") as each:
        for left, network in zip(range(len(networks), 0, -1), networks, strict=True):
            # What one network leaves of its share is the others'.
            each.take(network.id, partial(_compare, network, time.monotonic() + (until - time.monotonic()) / left))


def _compare(network: Network, until: float) -> None:
    with in_realm(network.realm):
        run = services().reconciliation_run(network)
        if run.begin():
            run.work(lambda: time.monotonic() < until)
