"""Orders the withdrawals that return stray payments, once the poll has credited them to the operator's merchant.

A crash leaves one of these states, and the next poll goes on from it: nothing recorded yet (the rescan is open, or the ordinary
scan finds the payment in its new block), recorded and not credited, credited and no withdrawal, a withdrawal and the obligation
still open. The withdrawal and the note of it on the payment are one transaction, so there is one withdrawal for ever. It is an
ordinary one: approvals, risk, kill switch, liquidity and fees hold it as any other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.errors import ServiceError
from chalicelib.domain.ids import TenantId, asset_parts
from chalicelib.domain.stray_payments import StrayPayment
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.base.creation import Prepared
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.ports.changes import Close, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.facts import Output
from chalicelib.usecases.withdrawals.withdrawals import Withdrawals

log = logging.getLogger(__name__)


class StrayReturns:
    """Orders the returns of one network."""

    def __init__(self, network: Network, store: Store, clock: Clock, withdrawals: Withdrawals) -> None:
        self._network, self._store, self._clock, self._withdrawals = network, store, clock, withdrawals

    def work(self, more: Callable[[], bool]) -> None:
        """Bring every open return forward, until `more` says that the time is over. Raises Unavailable, Failures."""
        with Each(f"{self._network.id}: returned payments") as each:
            for works in pages_of(self._store, "stray", self._network.id):
                for work in works:
                    if not more():
                        return
                    each.take(work.id, partial(self._go_on, work))

    def _go_on(self, work: Work) -> None:
        stray, deposit = self._store.get_many([(StrayPayment, {"id": work.id}), (Deposit, {"id": work.id})])
        if stray is None or stray.owner is None or stray.return_to is None:
            raise LookupError(f"{work.id} is to be returned and is not there")
        demand_known(stray, deposit)
        if stray.withdrawal_id is not None:
            self._store.commit([Close(work)])
            return
        waits = _waits(stray, deposit)
        if waits is not None:
            self._note(stray, waits)
            return
        if deposit is not None and deposit.amount != stray.units:
            # Run again after a reorganisation, a contract may pay another amount: that was not what was decided about.
            self._note(
                stray, f"the chain says {deposit.amount} units by now, and not {stray.units}: withdraw it by hand", alarm=True
            )
            return
        try:
            self._order(stray, stray.owner, stray.return_to)
        except ServiceError as refused:
            # Its money is the operator's merchant's: what is in the way (a limit, the whitelist, a fee) is for the operator.
            self._note(stray, refused.message, alarm=True)
            return
        self._store.commit([Close(work)])

    def _order(self, stray: StrayPayment, owner: TenantId, to: str) -> None:
        realm, slug = self._network.realm, self._network.slug
        deposit = self._store.get(Deposit, id=stray.id)
        if deposit is None:
            raise LookupError(f"{stray.id} was credited and is not there")
        coin = self._store.catalogue(realm).coins[slug, asset_parts(deposit.asset)[1]]
        metadata = {"strayPayment": stray.id, "txid": stray.txid}
        creating = self._withdrawals.creating(owner, coin, Output(to, deposit.amount, "address"), metadata=metadata)

        def prepare() -> Prepared[Withdrawal]:
            prepared, now = creating.prepare(), self._clock.now_ms()
            noted = replace(next_version(stray), withdrawal_id=prepared.made.id, detail=None, updated_at=now)
            return replace(prepared, changes=[*prepared.changes, Save(noted)])

        replace(creating, prepare=prepare).run()

    def _note(self, stray: StrayPayment, waits: str, alarm: bool = False) -> None:
        if stray.detail == waits[:300]:
            return
        if alarm:
            log.error("ALARM %s: the stray payment %s is credited and can not be returned: %s", self._network.id, stray.id, waits)
        noted = replace(next_version(stray), detail=waits[:300], updated_at=self._clock.now_ms())
        self._store.commit([Save(noted)])


def _waits(stray: StrayPayment, deposit: Deposit | None) -> str | None:
    """The reason why its withdrawal has to wait; None for none."""
    if deposit is None or deposit.status == "orphaned":
        return "waits until it is found in the chain"
    if deposit.tenant != stray.owner:
        raise LookupError(f"{stray.id} is to be returned and is recorded for {deposit.tenant}")
    if deposit.status != "confirmed":
        return "waits for its confirmations"
    if deposit.held or deposit.set_aside:
        return "waits for its release: the transaction is held or set aside, its flags say why"
    return None
