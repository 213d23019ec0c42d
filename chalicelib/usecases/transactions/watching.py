"""Watches the blocks that settled payments, stakes and moves, as deep as a reorganisation is followed.

The obligation's `order` is the block's height, and its id ends with the block's hash. What fell out is undone before the scan goes
on (`undo_fallen`), what no reorganisation reaches is let go when there is time (`let_rest`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.work import Work, WorkKind
from chalicelib.usecases.base.open_work import is_open, pages_of
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Finality, Scanned


def demand_over(store: Store, work: Work) -> None:
    """For a watch whose record says otherwise: nothing where another poll has ended the watch between two reads.

    Raises LookupError where it is open all the same, Unavailable.
    """
    if is_open(store, work):
        raise LookupError(f"{work.id} is watched as {work.kind} and is not")


class Watch:
    """Over what is watched under `kind` on one network, for one poll; `what` names it in the log. `undo` what fell out of the
    chain, `rest` what no reorganisation reaches."""

    def __init__(
        self,
        kind: WorkKind,
        what: str,
        network: Network,
        reader: ChainReader,
        store: Store,
        finality: Finality,
        undo: Callable[[Work], None],
        rest: Callable[[Work], None],
    ) -> None:
        self._kind, self._what, self._network = kind, what, network
        self._reader, self._store, self._finality = reader, store, finality
        self._undo, self._rest = undo, rest

    def undo_fallen(self, more: Callable[[], bool]) -> None:
        """Undo what fell out of the chain. One question to the node, where nothing did.

        Stops when `more` says that the time is over. Raises Unavailable, Failures.
        """
        self._go(more, deep=False)

    def let_rest(self, more: Callable[[], bool]) -> None:
        """End the watch over what no reorganisation reaches, once the chain is asked for its block. Stops and raises as above."""
        self._go(more, deep=True)

    def _go(self, more: Callable[[], bool], deep: bool) -> None:
        scanned: Scanned | None = None
        answers = Answers(self._reader)
        with Each(f"{self._network.id}: {self._what}") as each:
            for works in pages_of(self._store, self._kind, self._network.id):
                scanned = scanned or self._finality.scanned()
                for work in works:
                    if self._is_deep(work, scanned) != deep:
                        continue
                    if not more():
                        return
                    each.take(work.id, partial(self._look, work, scanned, answers))

    def _is_deep(self, work: Work, scanned: Scanned) -> bool:
        return int(work.order) <= scanned.height - self._network.reorg_depth

    def _look(self, work: Work, scanned: Scanned, answers: Answers) -> None:
        found = answers.hash_at(int(work.order), scanned)
        if found is None:
            return  # the node is behind, or a shorter branch has won for a moment
        if found != work.id.rsplit("|", 1)[1]:
            until_settled(partial(self._undo, work))
        elif self._is_deep(work, scanned):
            until_settled(partial(self._rest, work))
