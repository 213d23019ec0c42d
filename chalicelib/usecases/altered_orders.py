"""An order that differs from its withdrawal in more than its bytes: an operator has looked, and has it made anew.

By itself the service replaces bytes alone (`payouts`). Where the order's own record differs, either it or the withdrawal was
changed behind our back, and only somebody who asks the merchant can say which.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.catalogue import Catalogue
from chalicelib.domain.ids import asset_parts, network_parts
from chalicelib.domain.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.changes import Save
from chalicelib.usecases.payouts import order_id
from chalicelib.usecases.ports.store import Store


def made_anew(store: Store, catalogue: Catalogue, withdrawal: Withdrawal, nonce: int | None = None) -> PaymentOrder:
    """Store the order of `withdrawal` as it says now, without bytes: the next payout builds, compares and signs them.

    `nonce` is the one that was allotted, where the order was changed in that, too. Raises LookupError where there is nothing to
    make anew, above all once anything was signed; Conflict.
    """
    order = store.get(PaymentOrder, id=order_id(withdrawal))
    if order is None or withdrawal.status != "processing" or withdrawal.from_address is None:
        raise LookupError(f"{withdrawal.id} is {withdrawal.status} and has no order that waits for its signature")
    if order.state != "built" or order.raw is not None or order.bundle is not None:
        raise LookupError(f"the order of {withdrawal.id} is {order.state}: nothing else may be signed for it")
    network, slug = asset_parts(withdrawal.asset)
    anew = replace(
        order,
        network=withdrawal.network,
        wallet=withdrawal.from_address,
        nonce=order.nonce if nonce is None else nonce,
        withdrawal_id=withdrawal.id,
        tenant=withdrawal.tenant,
        asset=withdrawal.asset,
        contract=catalogue.coins[network_parts(network)[1], slug].contract,
        recipient=withdrawal.to_address,
        amount=withdrawal.amount,
        unsigned="",
        version=order.version + 1,
    )
    store.commit([Save(anew)])
    return anew
