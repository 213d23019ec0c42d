"""Withdrawals that nobody is working on: asked for again. Needs no key, so that the clock may do it."""

from __future__ import annotations

from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.withdrawals import Withdrawal
from chalicelib.usecases.crowds import in_turn
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.sweeping import pages_of
from chalicelib.usecases.switch import stopped
from chalicelib.usecases.withdrawal_steps import payout_command, payout_parts

IDLE_SECONDS = 30
"""A withdrawal that stood still this long is asked for again."""
LIQUIDITY_SECONDS = 120
"""The same for one that waits for liquidity, for lower fees, or for its merchant's balance to be no longer negative."""
ASKED_AT_ONCE = 50


class PayoutSweep:
    """Finds withdrawals that nobody is working on, and asks for them again. Needs no key."""

    def __init__(self, store: Store, queues: Queues, clock: Clock) -> None:
        self._store, self._queues, self._clock = store, queues, clock

    def sweep(self, network: NetworkId) -> int:
        """Queue again what has stood still, a bounded number a time: the longest of each merchant first, then the next of each, so
        that one who lets thousands wait keeps no other waiting; how many. Raises Unavailable.

        What waits for money is tried less often: each try moves its `updated_at`, so that all have their turn. What waits because
        payments were stopped is asked for as soon as they go on, oldest first; while they are stopped nothing is.
        """
        if stopped(self._store, network_parts(network)[0]):
            return 0
        now = self._clock.now_ms()
        idle: list[Withdrawal] = []
        for works in pages_of(self._store, "payout", network):
            wanted = [(Withdrawal, dict(zip(("tenant", "id"), payout_parts(work), strict=True))) for work in works]
            idle += [w for w in self._store.get_many(wanted) if w is not None and _stood_still(w, now)]
        idle.sort(key=lambda w: w.created_at if w.pending_reason == "halted" else w.updated_at)
        for withdrawal in in_turn(idle, lambda w: w.tenant)[:ASKED_AT_ONCE]:
            self._queues.send(payout_command(withdrawal))
        return min(len(idle), ASKED_AT_ONCE)


def _stood_still(withdrawal: Withdrawal, now: int) -> bool:
    if withdrawal.status not in ("pending", "processing") or withdrawal.waits_for_approval:
        return False
    if withdrawal.pending_reason == "halted":
        return True
    seconds = LIQUIDITY_SECONDS if withdrawal.pending_reason in ("liquidity", "risk", "fees") else IDLE_SECONDS
    return now - withdrawal.updated_at >= seconds * 1000
