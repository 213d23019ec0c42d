"""Once a minute: what should have happened by now and has not. Finds it in the open work, never in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.realm_time import in_realm
from chalicelib.wiring import services

log = logging.getLogger(__name__)


def run() -> None:
    """Tell old outbox rows, make what batches left behind, ask again for idle payouts and due deliveries.

    One step's failure does not stop the next.
    """
    wired = services()
    if wired.settings.stage == "demo" and wired.demo_resets.busy():
        return
    steps: list[Callable[[], Any]] = [wired.relay.sweep, wired.deliveries.sweep]
    for realm in wired.settings.realms:
        for network in wired.store.catalogue(realm).networks.values():
            if network.status == "active":
                steps.append(partial(_sweep_batches, network.id))
                steps.append(partial(_sweep_payouts, network.id))
    failures: list[Exception] = []
    for step in steps:
        try:
            step()
        except Unavailable as error:
            log.warning("housekeeping: %s", error)
            failures.append(error)
    if failures:
        raise ExceptionGroup("housekeeping", failures)


def _sweep_payouts(network: NetworkId) -> None:
    with in_realm(network_parts(network)[0]):
        services().payout_sweep.sweep(network)


def _sweep_batches(network: NetworkId) -> None:
    with in_realm(network_parts(network)[0]):
        services().expansion.sweep(network)
