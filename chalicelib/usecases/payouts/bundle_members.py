"""What the steps of a bundle share: its obligation, its members, and how addresses in it are compared."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import FEE_TENTHS, PaymentOrder, Priority, Withdrawal
from chalicelib.domain.work import Work, time_order
from chalicelib.usecases.payouts.account_payouts import order_id
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.coins import Output
from chalicelib.usecases.ports.store import Store


def bundle_work(bundle: Bundle) -> Work:
    """The obligation to bring a bundle to its end, which is when no reorganisation reaches its transaction any more."""
    return Work("bundle", bundle.network, time_order(bundle.created_at), bundle.id)


def members(store: Store, bundle: Bundle) -> list[tuple[Withdrawal, PaymentOrder]]:
    """The withdrawals of a bundle with their orders, as they are now. Raises LookupError where one is gone, Unavailable."""
    withdrawals = store.get_many([(Withdrawal, {"tenant": p.tenant, "id": p.withdrawal}) for p in bundle.payouts])
    if not all(withdrawals):
        raise LookupError(f"a withdrawal of {bundle.id} is gone")
    orders = store.get_many([(PaymentOrder, {"id": order_id(w)}) for w in withdrawals])
    if not all(orders):
        raise LookupError(f"an order of {bundle.id} is gone")
    return list(zip(withdrawals, orders, strict=True))


def same_place(rules: AddressRules, network: Network, one: str, other: str) -> bool:
    """Whether two spellings are one address."""
    return rules.storage_form(network.slug, one) == rules.storage_form(network.slug, other)


def spelled(rules: AddressRules, network: Network, outputs: Sequence[Output]) -> list[tuple[str, int]]:
    """Recipients in their public spelling, with amounts, as `Bundle` compares them."""
    return [(rules.normalize(network.id, output.address), output.amount) for output in outputs]


def most_urgent(priorities: Sequence[Priority]) -> Priority:
    return max(priorities, key=lambda priority: FEE_TENTHS[priority])
