"""The end of a transaction whose nonce somebody else has used for good: alarmed, watched on, and its nonces passed over.

A sighting alone says that the nonce is used, and is a row that may have been altered: the nodes have to count it as used, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, PaymentOrder
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.given_up import watched_on
from chalicelib.usecases.transactions.losses import Losses, has_nonces
from chalicelib.usecases.transactions.rivals import by_whom

log = logging.getLogger(__name__)

NONCE_USED = "another transaction used the nonce of its own: it can not be mined any more"


class Losing:
    """Lost nonces of one network, for one poll."""

    def __init__(self, context: NetworkContext, losses: Losses, told_nonces: Callable[[str], Sequence[int | None]]) -> None:
        """`told_nonces` as `ChainPayer.told_nonces`."""
        self._network, self._reader, self._store, self._rules = context.network, context.reader, context.store, context.rules
        self._losses, self._told_nonces = losses, told_nonces

    def begin(self, record: PaymentOrder | Move, wallet: str, watch: GivenUp, scanned: Scanned) -> bool:
        """Prepare the loss of `record`; False while it has to wait. The caller then ends the record, in a transaction of its own.

        Nonces that were not allotted and are used as well are passed over first: whatever is built from then on leaves no hole. Who
        dies between these transactions begins anew. Nonces that a reorganisation may give back are waited for. What is lost is
        watched on, by `watch`. `wallet` as the counter of its nonces spells it. Raises Conflict, Unavailable.
        """
        if not self._counted(record, wallet):
            return False
        counter = self._store.get(NonceCounter, network=self._network.id, wallet=wallet)
        if counter is not None:
            used = self._losses.used(form_of(self._rules, self._network, wallet), counter.next, scanned)
            if used is None:
                return False
            if used > counter.next:
                self._store.commit([Save(counter.caught_up(used))])
        log.error(
            "ALARM %s: %s can never be mined, its nonce %d was used by %s",
            *(self._network.id, record.id, record.nonce, by_whom(self._store, self._reader, self._network, record)),
        )
        if watching := watched_on(self._store, watch):
            self._store.commit(watching)  # by itself: what gives the money back may fill a transaction
        return True

    def _counted(self, record: PaymentOrder | Move, wallet: str) -> bool:
        """Whether every node that answers has a transaction with its nonce, where there are nonces; with an alarm."""
        if not has_nonces(self._network):
            return True
        told = [count for count in self._told_nonces(wallet) if count is not None]
        if told and min(told) > (record.nonce or 0):
            return True
        log.error(
            "ALARM %s: %s is lost by what was scanned, and a node has no transaction with its nonce %d",
            *(self._network.id, record.id, record.nonce),
        )
        return False
