"""Follows stakes on a real network: receipts alone decide (money rule 8). Part of the poll; needs no key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.staking import StakingNode
from chalicelib.usecases.transactions.accounts.following import Following
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.losses import Losses
from chalicelib.usecases.treasury.tron.stake_booking import StakeBooking
from chalicelib.usecases.treasury.tron.stake_in_flight import StakeInFlight
from chalicelib.usecases.treasury.tron.staking import OPEN_AT_ONCE


class StakeFollowing:
    """Brings the open stakes of one real network to their end."""

    def __init__(self, context: NetworkContext, node: StakingNode, renewals: RenewalRules, finality: Finality) -> None:
        self._context, self._node, self._renewals, self._finality = context, node, renewals, finality
        self._losses = Losses(context.network, context.reader, context.store)
        answers = Answers(context.reader)
        self._following = Following(context.network, context.store, answers, self._losses, finality)
        self._booking = StakeBooking(context, finality, node)

    def work(self, more: Callable[[], bool]) -> None:
        """Raises Unavailable, Failures."""
        network = self._context.network.id
        with Each(f"{network}: stakes") as each:
            each.take("those that are final", partial(self._booking.watch, more))
            scanned: Scanned | None = None
            for work in self._context.store.open_work("stake", network, limit=OPEN_AT_ONCE):
                if not more():
                    return
                scanned = scanned or self._finality.scanned()
                each.take(work.id, partial(until_settled, partial(self._follow, work.id, scanned)))

    def _follow(self, stake_id: str, scanned: Scanned) -> None:
        context = self._context
        stake = context.store.get(Stake, network=context.network.id, id=stake_id)
        if stake is None or stake.status != "pending":
            return
        it = StakeInFlight(context, self._node, self._booking, self._renewals, self._finality, self._losses, stake)
        self._following.look(it, scanned)
