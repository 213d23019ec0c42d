"""A message to compare a network: its reconciliation goes on, and on live EVM networks the round over its addresses.

How far both are lies in their records, which are saved by version: of two functions at once one counts, and a message that is lost
is sent again by the next schedule. Neither sends a message.
"""

from __future__ import annotations

import time
from functools import partial

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.ports.queues import COMPARISON_VERSION
from chalicelib.wiring import services
from chalicelib.workers.batches import fields, of_newer

SECONDS = 240.0
"""How long one call may begin new steps; each ends well within the function's 300 seconds. The schedule asks every 300, too."""
COMPARING = 3 / 4
"""The part of it that the reconciliation may take where there is a round as well."""


def handle(body: str) -> None:
    """Go on as far as there is time. Safe to be asked any number of times, also late. Raises Failures."""
    if of_newer(body, COMPARISON_VERSION):
        return
    realm, slug = fields(body, "realm", "network")
    wired = services()
    if realm not in wired.settings.realms or (wired.settings.stage == "demo" and wired.demo_resets.busy()):
        return
    network = wired.store.catalogue("live" if realm == "live" else "test").network(slug)
    if network is None:
        return
    start = time.monotonic()
    until, rounds = start + SECONDS, goes_round(network)
    comparing = start + COMPARING * SECONDS if rounds else until
    with in_realm(network.realm), Each(f"{network.id}: comparison") as each:
        each.take("reconciliation", partial(_compare, network, comparing))
        if rounds:
            each.take("round", lambda: wired.balance_booker(network).go_on(lambda: time.monotonic() < until))


def goes_round(network: Network) -> bool:
    """Whether balances of a network's addresses tell payments that no block tells."""
    return network.family == "evm" and not network.simulated and network.status == "active"


def _compare(network: Network, until: float) -> None:
    run = services().reconciliation_run(network)
    if run.begin():
        run.work(lambda: time.monotonic() < until)
