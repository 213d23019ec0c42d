"""Reconciliation, every five minutes: each network that is due is compared by a function of its own (`compare`)."""

from __future__ import annotations

import logging
from functools import partial

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.reconciliation.reports import comparable
from chalicelib.wiring import services
from chalicelib.workers.compare import goes_round

log = logging.getLogger(__name__)

DAY_MS, HOUR_MS = 24 * 3600 * 1000, 3600 * 1000


def run() -> None:
    """Ask for each network to be compared whose run is open or due, or which has a round. One network's failure does not keep the
    others from being compared. Raises `Failures` at the end."""
    wired = services()
    if wired.settings.stage == "demo" and wired.demo_resets.busy():
        return
    with Each("reconciliation") as each:
        for realm in wired.settings.realms:
            networks = [network for network in wired.store.catalogue(realm).networks.values() if _comparable(network)]
            due = wired.reconciliations.due(realm, networks)
            for network in networks:
                if goes_round(network) or network in due:
                    each.take(network.id, partial(wired.queues.compare, network.id))
        each.take("old reports", _tell_stale)


def _comparable(network: Network) -> bool:
    """Out of service, its coins are still ours; one that was never in service has none."""
    if network.status == "active":
        return True
    return comparable(network) and services().store.get(Cursor, network=network.id) is not None


def _tell_stale() -> None:
    """Of what was compared once and is not any more, for an hour each day."""
    wired = services()
    for realm in wired.settings.realms:
        whole = wired.reconciliations.read(wired.store.catalogue(realm))
        for report in whole.reports:
            if report.stale(whole.at) and (whole.at - report.finished_at) % DAY_MS < HOUR_MS:
                days = (whole.at - report.finished_at) // DAY_MS
                log.error("ALARM %s: reconciliation was finished %d days ago: nothing is proven since", report.network, days)
