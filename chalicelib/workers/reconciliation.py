"""Reconciliation, every five minutes: go on with open runs, and begin due ones. Networks round robin."""

from __future__ import annotations

import logging
import time
from functools import partial

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.reconciliation.reports import comparable
from chalicelib.wiring import services

log = logging.getLogger(__name__)

SECONDS = 200.0
"""How long one run of the function may begin new steps, all networks together; each ends well within its 300 seconds."""
DAY_MS, HOUR_MS = 24 * 3600 * 1000, 3600 * 1000


def run() -> None:
    """Go on with the run of each network. One network's failure does not keep the others from being compared. Raises `Failures`
    at the end."""
    wired = services()
    if wired.settings.stage == "demo" and wired.demo_resets.busy():
        return
    until = time.monotonic() + SECONDS
    networks = [
        network
        for realm in wired.settings.realms
        for network in wired.store.catalogue(realm).networks.values()
        # Out of service, its coins are still ours; one that was never in service has none.
        if network.status == "active" or (comparable(network) and wired.store.get(Cursor, network=network.id) is not None)
    ]
    with Each("reconciliation") as each:
        for left, network in zip(range(len(networks), 0, -1), networks, strict=True):
            # The time that one network leaves of its share is the others'.
            each.take(network.id, partial(_compare, network, time.monotonic() + (until - time.monotonic()) / left))
        each.take("old reports", _tell_stale)


def _compare(network: Network, until: float) -> None:
    with in_realm(network.realm):
        run = services().reconciliation_run(network)
        if run.begin():
            run.work(lambda: time.monotonic() < until)


def _tell_stale() -> None:
    """Of what was compared once and is not any more, for an hour each day."""
    wired = services()
    for realm in wired.settings.realms:
        whole = wired.reconciliations.read(wired.store.catalogue(realm))
        for report in whole.reports:
            if report.stale(whole.at) and (whole.at - report.finished_at) % DAY_MS < HOUR_MS:
                days = (whole.at - report.finished_at) // DAY_MS
                log.error("ALARM %s: reconciliation was finished %d days ago: nothing is proven since", report.network, days)
