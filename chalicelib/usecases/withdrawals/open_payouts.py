"""The sum that open payouts of a network need from its hot wallet, without reading them one by one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from chalicelib.domain.ids import NetworkId, asset_parts
from chalicelib.domain.withdrawals.batches import WithdrawalBatch, batch_parts
from chalicelib.domain.withdrawals.payout_line import Taken, taken_by
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.open_work import PAGE, pages_of
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import payout_parts

MOST_ADDED_UP = 100_000
"""Open payouts, and batches, that one look reads: some 12 read units and one call for each 200 payouts."""


def needed_by_payouts(store: Store, network: NetworkId, measure: Callable[[Taken], int], enough: int) -> int | None:
    """The sum of `measure` over all open payouts and over batches whose withdrawals are not stored yet; from `enough` on it may be
    a part of that. None where there is more than can be read in one look, and the part is below `enough`. Raises Unavailable.

    Raises TooNew for a record in a form that only a newer version knows: too much would leave the hot wallet without its sum.
    A withdrawal that waits for an approval is found by its merchant alone and is not counted: once approved, it may wait for
    liquidity.
    """
    total, pages = 0, MOST_ADDED_UP // PAGE
    for number, works in enumerate(islice(pages_of(store, "batch", network), pages + 1)):
        wanted = [dict(zip(("tenant", "id"), batch_parts(work), strict=True)) for work in works]
        groups: list[WithdrawalBatch | None] = store.get_many([(WithdrawalBatch, key) for key in wanted])
        # Members that are made already count twice for a moment: too much rather than too little.
        total += sum(measure(_taken(member)) for group in groups if group is not None for member in group.members())
        if total >= enough or number == pages:
            return total if total >= enough else None
    for number, works in enumerate(islice(pages_of(store, "payout", network), pages + 1)):
        told = [taken_by(work) for work in works]
        total += sum(measure(taken) for taken in told if taken is not None)
        unknown = [payout_parts(work) for work, taken in zip(works, told, strict=True) if taken is None]
        if unknown:
            keys = [(Withdrawal, {"tenant": tenant, "id": id}) for tenant, id in unknown]
            total += sum(measure(_taken(withdrawal)) for withdrawal in store.get_many(keys) if withdrawal is not None)
        if total >= enough or number == pages:
            return total if total >= enough else None
    return total


def _taken(withdrawal: Withdrawal) -> Taken:
    return Taken(asset_parts(withdrawal.asset)[1], withdrawal.amount, withdrawal.priority)
