"""Members of a bundle and their urgency, shared by its steps."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import FEE_TENTHS, PaymentOrder, Priority, Withdrawal
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import order_id


def members(store: Store, bundle: Bundle) -> list[tuple[Withdrawal, PaymentOrder]]:
    """The withdrawals of a bundle with their orders, as they are now. Raises LookupError where one is gone, Unavailable."""
    withdrawals = store.get_many([(Withdrawal, {"tenant": p.tenant, "id": p.withdrawal}) for p in bundle.payouts])
    if not all(withdrawals):
        raise LookupError(f"a withdrawal of {bundle.id} is gone")
    orders = store.get_many([(PaymentOrder, {"id": order_id(w)}) for w in withdrawals])
    if not all(orders):
        raise LookupError(f"an order of {bundle.id} is gone")
    return list(zip(withdrawals, orders, strict=True))


def most_urgent(priorities: Sequence[Priority]) -> Priority:
    return max(priorities, key=lambda priority: FEE_TENTHS[priority])
