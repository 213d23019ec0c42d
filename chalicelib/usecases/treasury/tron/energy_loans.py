"""Energy of the hot wallet's stake, lent to a deposit address for one sweep and taken back after it (Tron).

A sweep asks `way` how the address gets the energy, and commits `lent` in the transaction of its decision. From then on the
loan has an obligation of its own, until its return is settled: it comes back after any crash, and after a failed sweep. Both
are moves (kinds `delegation`, `undelegation`): stored before they are sent, signed by the function that has the hot wallet's key,
followed, and booked with their fee. No coin moves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import asset_id
from chalicelib.domain.treasury.energy_loans import OVERDUE_MS, Way, loan_work, way
from chalicelib.domain.treasury.moves import Move, MoveKind, Origin, move_id
from chalicelib.domain.work import Work
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.changes import Change, Close, Open
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.delegating import DelegationNode
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.treasury.moves.planning import planned

log = logging.getLogger(__name__)

MOST_MOVES = 8
"""Moves of one owner that are looked for: its sweeps, and returns that were refused."""


class Loans:
    """Of one network. Needs no key."""

    def __init__(self, network: Network, store: Store, clock: Clock, node: DelegationNode) -> None:
        self._network, self._store, self._clock, self._node = network, store, clock, node

    def way(self, wallet: str, address: str, burnt: int, waited_ms: int) -> tuple[Way, int, int]:
        """How `address` gets the energy for a transfer that would burn `burnt` units of the native coin now (`ChainPayer.cost`);
        the stake that gives it, and what lending it costs. Raises Unavailable."""
        there = self._node.lendable(wallet, address, "ENERGY")
        if not there.price or burnt <= 0:
            return "burn", 0, 0
        energy = -(-burnt // there.price)
        return way(there, energy, waited_ms), there.for_(energy), there.costs

    def lent(self, news: News, wallet: str, address: str, stake: int, owner: str, number: int = 1) -> list[Change]:
        """The changes that plan a loan for `owner`: three items, and an outbox row. Planned twice it is a Conflict."""
        native = asset_id(self._network.id, self._network.symbol.lower())
        move = Move.loan(Origin(self._network.id, owner, number, news.at), native, wallet, address, stake)
        return [*planned(news, move), Open(loan_work(move))]

    def take_back(self, more: Callable[[], bool]) -> None:
        """Plan the return of what is not needed any more; close what is back. Raises Unavailable, Failures."""
        with Each(f"{self._network.id}: loans") as each:
            for works in pages_of(self._store, "loan", self._network.id):
                for work in works:
                    if not more():
                        return
                    each.take(work.id, partial(until_settled, partial(self._look, work)))

    def _look(self, work: Work) -> None:
        loan = self._store.get(Move, network=self._network.id, id=work.id)
        if loan is None:
            raise LookupError(f"{work.id} is lent and not there")
        if loan.state in ("dropped", "failed"):
            self._store.commit([Close(work)])  # nothing was lent
            return
        returns = self._moves(loan.id, "undelegation")
        last = returns[-1] if returns else None
        if loan.state != "settled" or (last is not None and not last.at_rest):
            return
        if last is None:
            if self._used(loan):
                self._plan_return(loan, 1)
            return
        if last.state == "settled" or not self._node.lent(loan.source, loan.recipient, "ENERGY"):
            self._store.commit([Close(work)])
        elif len(returns) < MOST_MOVES:
            self._plan_return(loan, len(returns) + 1)
        else:
            log.error("ALARM %s: the stake of loan %s can not be taken back: %s", self._network.id, loan.id, last.reason)

    def _plan_return(self, loan: Move, number: int) -> None:
        news = News(self._clock.now_ms())
        back = Move.loan_return(Origin(self._network.id, loan.id, number, news.at), loan)
        self._store.commit([*planned(news, back), *news.emit()])

    def _used(self, loan: Move) -> bool:
        """Whether the sweep that it was for has come to its end, or never came."""
        sweeps = self._moves(loan.owner, "sweep")
        if any(not sweep.at_rest for sweep in sweeps):
            return False
        swept = any(sweep.created_at >= loan.created_at for sweep in sweeps)
        return swept or self._clock.now_ms() - loan.created_at > OVERDUE_MS

    def _moves(self, owner: str, kind: MoveKind) -> list[Move]:
        """The moves of one kind that `owner` planned, in their order."""
        wanted: list[tuple[type[Any], dict[str, str]]] = [
            (Move, {"network": self._network.id, "id": move_id(owner, kind, number)}) for number in range(MOST_MOVES + 1)
        ]
        return [found for found in self._store.get_many(wanted) if found is not None]
