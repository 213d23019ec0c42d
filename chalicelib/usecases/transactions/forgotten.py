"""Attempts whose bytes a point-in-time restore has forgotten: the blocks have to prove what their signed bytes can not any more.

A record that was altered can claim the same of any transaction: that its own has failed, or that another one paid. Nothing is
booked by such a claim (money rules 5 and 13).
"""

from __future__ import annotations

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.sightings import Ours, Sighting, met
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import NonceUse, PaymentOrder
from chalicelib.usecases.base.address_forms import same_place
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.marks import traces_of


def unlike_met(
    network: Network, rules: AddressRules, store: Store, record: PaymentOrder | Move, sender: str, attempt: Attempt
) -> list[str]:
    """In what `record`, which `sender` pays, is not what the blocks say of `attempt`; nothing where its bytes are known.

    The scanner met it with the record's nonce (on Tron: it met it), in any branch of the chain, and no other nonce was allotted.
    Raises Unavailable.
    """
    if not attempt.forgotten:
        return []
    subjects = traces_of(network, rules, record).subjects
    sightings: list[Sighting | None] = store.get_many([(Sighting, {"network": network.id, "subject": each}) for each in subjects])
    own, _ = met(Ours((attempt.txid,), subjects), sightings)
    use = store.get(NonceUse, owner=record.id)
    allotted = use is None or (use.nonce == record.nonce and same_place(rules, network, use.wallet, sender))
    return [*([] if own else ["forgotten id"]), *([] if allotted else ["allotted nonce"])]
