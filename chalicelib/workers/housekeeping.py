"""Housekeeping, once a minute: overdue work, found in the open work and never in memory."""

from __future__ import annotations

from functools import partial

from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.retries import Each
from chalicelib.wiring import services


def run() -> None:
    """Tell old outbox rows, store the withdrawals that batches still lack, ask again for idle payouts, due deliveries and jobs
    of redelivery, raise the ceilings of the index pools.

    One step's failure does not stop the next. Raises `Failures` at the end.
    """
    wired = services()
    if wired.settings.stage == "demo" and wired.demo_resets.busy():
        return
    with Each("housekeeping") as each:
        each.take("outbox", wired.relay.sweep)
        each.take("deliveries", wired.delivery_sweep.run)
        each.take("redeliveries", wired.redelivery_run.sweep)
        for realm in wired.settings.realms:
            each.take(f"index pools of {realm}", partial(wired.ceilings.keep, realm))
            for network in wired.store.catalogue(realm).networks.values():
                if network.status == "active":
                    each.take(f"batches of {network.id}", partial(_sweep_batches, network.id))
                    each.take(f"payouts of {network.id}", partial(_sweep_payouts, network.id))


def _sweep_payouts(network: NetworkId) -> None:
    realm = network_parts(network)[0]
    with in_realm(realm):
        services().payout_sweep.sweep(network, services().store.catalogue(realm).payout_slots(network))


def _sweep_batches(network: NetworkId) -> None:
    with in_realm(network_parts(network)[0]):
        services().batch_maker.sweep(network)
