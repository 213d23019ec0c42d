"""Audit rules of payments on the wrong network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.stray_payments import StrayPayment, stray_work
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import Work


def strays_agree(
    strays: Sequence[StrayPayment], deposits: Sequence[Deposit], withdrawals: Sequence[Withdrawal], work: Sequence[Work]
) -> Iterable[str]:
    """Every violation, one sentence each."""
    recorded = {deposit.id: deposit for deposit in deposits}
    ordered = {withdrawal.id: withdrawal for withdrawal in withdrawals}
    found = {w for w in work if w.kind == "stray"}
    returned = {stray_work(stray): stray for stray in strays if stray.status == "return"}
    for leftover in sorted(found - returned.keys(), key=str):
        yield f"stray payment {leftover.id} has open work, and is not returned"
    for wanted, stray in returned.items():
        name = f"stray payment {stray.id}"
        if stray.withdrawal_id is None and wanted not in found:
            yield f"{name} is to be returned, and nobody will order its withdrawal"
        if stray.withdrawal_id is not None:
            withdrawal = ordered.get(stray.withdrawal_id)
            if withdrawal is None or (withdrawal.tenant, withdrawal.to_address) != (stray.owner, stray.return_to):
                yield f"{name} was returned by {stray.withdrawal_id}, which is another's, goes elsewhere, or is not there"
    for stray in strays:
        deposit = recorded.get(stray.id)
        owner = stray.owner if stray.status == "return" else stray.tenant
        if deposit is not None and deposit.status != "orphaned" and deposit.tenant != owner:
            yield f"stray payment {stray.id} is {owner}'s, and is recorded for {deposit.tenant}"
