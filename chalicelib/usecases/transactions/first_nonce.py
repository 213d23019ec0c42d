"""The first nonce of an address: later ones are counted here, so that one wrong answer would block the address for ever.

Every node that answers has to say the same. That it is 0 may be one node's word, where others are down: were it wrong, the chain
would refuse what is signed, which blocks nothing for good. More than 0 takes two, where several are configured. A deposit
address that nothing of ours has left begins at 0, since nobody else has its key: where nodes say more, somebody has it, or its
records are lost (the operator's `fill-nonces --accept` says so).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.base.side_by_side import meanwhile
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.nonces import demand_known

log = logging.getLogger(__name__)

T = TypeVar("T")


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


def counter_beside(
    store: Store, network: Network, payer: ChainPayer, address: str, ask: Callable[[int], T]
) -> tuple[NonceCounter, Callable[[], T]]:
    """As `counter_of`, and what `ask` tells of the next nonce by the counter; it raises when it is called. Both are asked at the
    same time: the chain's nonce says whether that of the counter may be used at all, and never which one it is."""
    counter = store.get(NonceCounter, network=network.id, wallet=address)
    if counter is None:
        first = counter_of(store, network, payer, address)
        return first, lambda: ask(first.next)
    with meanwhile(lambda: ask(counter.next)) as told:
        demand_known(network, counter, payer)
    return counter, told


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
