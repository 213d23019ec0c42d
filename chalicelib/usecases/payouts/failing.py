"""The failure of a withdrawal before anything was signed for it: its money is available again."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.changes import Change
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.fee_budget import corrected
from chalicelib.usecases.withdrawals.steps import catalogue_views, given_back, purse_of


def failed(store: Store, rates_of: RatesOf, before: Withdrawal, why: str, now: int) -> tuple[Withdrawal, list[Change]]:
    """The whole transaction, and the withdrawal after it. Raises Unavailable."""
    if before.status == "processing":
        before = replace(before, order_id=None)  # between bundles: its order names no bundle that pays it, and never will
    _, views = catalogue_views(store, before, rates_of, now)
    uncounted = corrected(store, rates_of, before, None, now)
    after, changes = given_back(store, views, uncounted.withdrawal, "failed", why[:300], purse_of(store, before), now)
    return after, [*changes, *uncounted.changes]
