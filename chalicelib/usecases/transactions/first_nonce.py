"""The first nonce of an address: later ones are counted here, so that one wrong answer would block the address for ever.

Every node that answers has to say the same. That it is 0 may be one node's word, where others are down: were it wrong, the chain
would refuse what is signed, which blocks nothing for good. More than 0 takes two, where several are configured. A deposit
address that nothing of ours has left begins at 0, since nobody else has its key: where nodes say more, somebody has it, or its
records are lost (the operator's `fill-nonces --accept` says so).
"""

from __future__ import annotations

import logging

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.nonces import demand_known

log = logging.getLogger(__name__)


class NonceUnsure(Unavailable):
    """Nobody knows for sure which nonce an address begins with. Nothing is allotted; asked again later."""


def counter_of(store: Store, network: Network, payer: ChainPayer, address: str, *, unused: bool = False) -> NonceCounter:
    """The counter of an address (public spelling), or the one that it begins with. `unused`: only ours could have used it.

    Raises NonceUnsure, with an alarm; Unavailable.
    """
    counter = store.get(NonceCounter, network=network.id, wallet=address)
    if counter is not None:
        demand_known(network, counter, payer)
        return counter
    first = agreed_nonce(network, payer, address)
    if first and unused:
        log.error("ALARM %s: %s has sent %d transactions, and none of them is ours", network.id, address, first)
        raise NonceUnsure(f"{address} has sent {first} transactions, and none of them is ours")
    if first:
        log.warning("%s: %s begins with the nonce %d, by the word of every node", network.id, address, first)
    return NonceCounter(network.id, address, first, version=0)


def agreed_nonce(network: Network, payer: ChainPayer, address: str) -> int:
    """How many transactions of an address are in blocks, by the word of the nodes. Raises NonceUnsure, Unavailable."""
    told = payer.told_nonces(address)
    answers = [nonce for nonce in told if nonce is not None]
    if len(set(answers)) == 1:
        if answers[0] and len(answers) < min(2, len(told)):
            raise NonceUnsure(f"only one node says how many transactions {address} has sent: {answers[0]}")
        return answers[0]
    words = ", ".join(map(str, answers))
    log.error("ALARM %s: the nodes differ in how many transactions %s has sent: %s", network.id, address, words)
    raise NonceUnsure(f"the nodes differ in how many transactions {address} has sent: {words}")
