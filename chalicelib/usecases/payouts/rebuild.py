"""Rebuilds an order that differs from its withdrawal in more than its bytes, after an operator has looked at it.

By itself the service replaces bytes alone (`payouts`). Where the order's own record differs, either it or the withdrawal was
changed behind our back, and only somebody who asks the merchant can say which.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.ids import NetworkId, asset_parts, network_parts
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import NonceUse, PaymentOrder, Withdrawal
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.utxos import pays_from_coins
from chalicelib.usecases.withdrawals.steps import order_id


def made_anew(store: Store, catalogue: Catalogue, withdrawal: Withdrawal, nonce: int | None = None) -> PaymentOrder:
    """Store the order of `withdrawal` as it says now, without bytes: the next payout builds, compares and signs them.

    Its nonce is the one that was allotted; `nonce`, where it is given, has to be the same. An order that left its bundle (networks
    of coins) joins the next one. Raises LookupError where there is nothing to make anew, above all once anything was signed, or
    while a bundle pays it; Conflict, Unavailable.
    """
    order = store.get(PaymentOrder, id=order_id(withdrawal))
    if order is None or withdrawal.status != "processing" or withdrawal.from_address is None:
        raise LookupError(f"{withdrawal.id} is {withdrawal.status} and has no order that waits for its signature")
    if order.state != "built" or order.was_signed:
        raise LookupError(f"the order of {withdrawal.id} is {order.state}: nothing else may be signed for it")
    network, slug = asset_parts(withdrawal.asset)
    changes: list[Change] = []
    if pays_from_coins(catalogue.networks[network_parts(network)[1]]):
        if holder := _bundle_with(store, network, withdrawal):
            raise LookupError(f"{holder} pays {withdrawal.id}: nothing else may be signed for it, unless it leaves there by itself")
        allotted = -1
        # As of every order that left its bundle: by that it is found again.
        waits = replace(next_version(withdrawal), pending_reason="liquidity")
        changes.append(Save(waits))
    else:
        use = store.get(NonceUse, owner=order.id)
        if use is None or nonce not in (None, use.nonce):
            raise LookupError(f"{order.id} was not allotted the nonce {nonce}, but {None if use is None else use.nonce}")
        allotted = use.nonce
    anew = replace(
        next_version(order),
        network=withdrawal.network,
        wallet=withdrawal.from_address,
        nonce=allotted,
        bundle=None,
        withdrawal_id=withdrawal.id,
        tenant=withdrawal.tenant,
        asset=withdrawal.asset,
        contract=catalogue.coins[network_parts(network)[1], slug].contract,
        recipient=withdrawal.to_address,
        amount=withdrawal.amount,
        unsigned="",
    )
    store.commit([Save(anew), *changes])
    return anew


def _bundle_with(store: Store, network: NetworkId, withdrawal: Withdrawal) -> str | None:
    """The bundle that pays a withdrawal, whatever its order says of it. Raises TooNew for one that can not be read: it may
    pay it."""
    for works in pages_of(store, "bundle", network):
        for bundle in store.get_many([(Bundle, {"id": work.id}) for work in works]):
            if bundle is not None and any((p.tenant, p.withdrawal) == (withdrawal.tenant, withdrawal.id) for p in bundle.payouts):
                return str(bundle.id)
    return None
