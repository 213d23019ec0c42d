"""Nonces: their allotment, and before it whether the chain has transactions of a wallet that the store lacks."""

from __future__ import annotations

import logging
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, NonceUse
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.failures import Unavailable

log = logging.getLogger(__name__)


def demand_known(network: Network, counter: NonceCounter, payer: ChainPayer) -> None:
    """Raises Unavailable where the chain has used a nonce that was never allotted; nothing may be allotted then.

    The tables were put back to an earlier second, and what is about to be paid may be paid; or somebody else has the key. A payment
    with a used nonce could only be taken for lost later, and its money given back although its payee has it.
    """
    used = payer.next_nonce(counter.wallet)
    if used > counter.next:
        log.error(
            "ALARM %s: %s has sent %d transactions that are not known here: nothing is paid from there before after-restore",
            *(network.id, counter.wallet, used - counter.next),
        )
        raise Unavailable(f"the chain is ahead of the nonces of {counter.wallet}")


def allotted(counter: NonceCounter, owner: str) -> list[Change]:
    """The changes that allot the next nonce to an order or a move, `owner` by its id (money rule 6).

    In the transaction that stores its bytes: no nonce is taken without bytes that use it.
    """
    use = NonceUse(owner, counter.network, counter.wallet, counter.next)
    return [Save(replace(next_version(counter), next=counter.next + 1)), Save(use)]
