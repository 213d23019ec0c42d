"""The owner of a payment to one of our addresses, on a network where an operator has returned a payment to it.

The returned payment is the operator's merchant's for ever, whatever becomes of the address. Every other payment is the address's
merchant's where the address is watched, and nobody's elsewhere.

Why nothing slips through between the two: the transaction that decides to return a payment notes the network on the watched row,
by the row's version, and only while the address is not watched there. Watching it later is a later version of the same row. So a
scan that finds the address watched there finds the decision too, which was committed before.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.stray_payments import StrayPayment
from chalicelib.usecases.ports.store import Store


def owner_of(store: Store, network: Network, watched: Watched, deposit: str) -> Watched | None:
    """The owner (`watched`) of the payment with the id `deposit`; None where it has none. Read only where a payment to this
    address was ever returned on this network. Raises Unavailable."""
    if network.slug in watched.returned:
        stray = store.get(StrayPayment, id=deposit)
        if stray is not None and stray.status == "return" and stray.owner is not None:
            return replace(watched, tenant=stray.owner, address_id=None, invoice_id=None)
    return watched if network.slug in watched.networks else None
