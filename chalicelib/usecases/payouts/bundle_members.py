"""Members of a bundle and their urgency, shared by its steps."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.withdrawals.bundles import Bundle, BundledPayout
from chalicelib.domain.withdrawals.withdrawals import FEE_TENTHS, PaymentOrder, Priority, Withdrawal
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import catalogue_views, order_id


def members(store: Store, bundle: Bundle) -> list[tuple[Withdrawal, PaymentOrder]]:
    """The withdrawals of a bundle with their orders, as they are now. Raises LookupError where one is gone, Unavailable, and TooNew
    where one has a form that only a newer version knows: one transaction pays all of them, so they wait for that version together.
    Other bundles go on."""
    withdrawals = store.get_many([(Withdrawal, {"tenant": p.tenant, "id": p.withdrawal}) for p in bundle.payouts])
    if not all(withdrawals):
        raise LookupError(f"a withdrawal of {bundle.id} is gone")
    orders = store.get_many([(PaymentOrder, {"id": order_id(w)}) for w in withdrawals])
    if not all(orders):
        raise LookupError(f"an order of {bundle.id} is gone")
    return list(zip(withdrawals, orders, strict=True))


def most_urgent(priorities: Sequence[Priority]) -> Priority:
    return max(priorities, key=lambda priority: FEE_TENTHS[priority])


def unlike(
    store: Store,
    rules: AddressRules,
    network: Network,
    bundle: Bundle,
    payout: BundledPayout,
    withdrawal: Withdrawal,
    order: PaymentOrder,
) -> list[str]:
    """In what a payment of a bundle, or its order, is not what the withdrawal says. Raises Unavailable."""
    recipient = rules.normalize(network.id, withdrawal.to_address)
    native = catalogue_views(store, withdrawal)[0].native(network.slug).asset
    facts = {
        "bundle": (order.bundle, bundle.id),
        "withdrawal": (order.withdrawal_id, withdrawal.id),
        "merchant": ((order.tenant, payout.tenant), (withdrawal.tenant, withdrawal.tenant)),
        "coin": ((order.asset, withdrawal.asset), (native, native)),
        "network": ((order.network, withdrawal.network), (network.id, network.id)),
        "recipient": ((payout.recipient, rules.normalize(network.id, order.recipient)), (recipient, recipient)),
        "amount": ((payout.amount, order.amount), (withdrawal.amount, withdrawal.amount)),
    }
    return [name for name, (found, approved) in facts.items() if found != approved]
