"""Which shortages of hot wallets count: those whose payout waits for a move between slots still."""

from __future__ import annotations

from chalicelib.domain.withdrawals.slot_shortages import LASTS_MS, SlotShortage
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.store import Store


def counts(store: Store, short: SlotShortage, now: int) -> bool:
    """Whether it was said lately, and its payout has neither begun nor been cancelled since: what is moved for nobody costs a fee.
    Of a shortage that an older version stored nobody knows the payout: it counts. Raises Unavailable, TooNew."""
    if now - short.at > LASTS_MS:
        return False
    if not short.withdrawal:
        return True
    payout = store.get(Withdrawal, tenant=short.tenant, id=short.withdrawal)
    return payout is not None and (payout.status, payout.pending_reason) == ("pending", "liquidity")
