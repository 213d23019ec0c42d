"""Round robin over transactions in flight: due ones first, beside them a round over the rest. Those not reached come first next
time.

A run has some seconds, and a node may take a tenth of one for each answer. So nothing is asked about in every poll without a reason
(`domain.transactions.rounds`), and a run that is cut short stores where: the next one goes on there, in a process of its own.
Every other look at what is due is at the next merchant's first, so that one of whom hundreds are due holds up no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.rounds import BEGINNING, AskingRound, place_of, turned
from chalicelib.domain.versions import version_after
from chalicelib.domain.work import Work, WorkKind
from chalicelib.usecases.base.fairness import in_turn
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)

_STORED_EACH = 50
"""Looks after which the place is stored: a crash loses no more."""


class Asking:
    """Open work of one kind on one network."""

    def __init__(self, network: Network, store: Store, clock: Clock, kind: WorkKind) -> None:
        self._network, self._store, self._clock, self._kind = network, store, clock, kind

    def take(self, due: list[Work], quiet: list[Work], more: Callable[[], bool], look: Callable[[Work], object]) -> int:
        """Look at all that is `due`, and in turn with it at what is left of the round over `quiet`; at how many. Both sorted by
        place. Stops when `more` says that the time is over. `look` must not raise. Raises Unavailable."""
        if not due and not quiet:
            return 0
        known = self._store.get(AskingRound, network=self._network.id, kind=self._kind)
        known = known or AskingRound(self._network.id, self._kind)
        at = known.at(self._clock.now_ms()) if quiet else known
        left = [work for work in quiet if at.after is not None and place_of(work) > at.after]
        ends, looked = replace(at, cut=BEGINNING, after=None), 0
        for work, moves in _in_turn(turned(due, at.cut), left):
            if not more():
                ends = at
                break
            look(work)
            looked += 1
            if moves == "cut":
                at = replace(at, cut=place_of(work))
            elif moves == "after":
                at = replace(at, after=place_of(work))
            if looked % _STORED_EACH == 0:
                known = self._stored(known, at)
        self._stored(known, ends)
        return looked

    def _stored(self, known: AskingRound, at: AskingRound) -> AskingRound:
        after = replace(at, version=known.version)
        if after == known:
            return known
        after = replace(after, version=version_after(known))
        try:
            self._store.commit([Save(after)])
        except Conflict:
            log.info("%s: another poll asks about %s, too", self._network.id, self._kind)
        return after


def _in_turn(due: list[Work], quiet: list[Work]) -> Iterator[tuple[Work, str]]:
    """One of each, as long as there are both, and the field that keeps its place; none where it was taken before its place."""
    for one, other in zip_longest(_by_merchants(due), quiet):
        if one is not None:
            yield one
        if other is not None:
            yield other, "after"


def _by_merchants(due: list[Work]) -> Iterator[tuple[Work, str]]:
    """The next by place, and the next merchant's first, one after the other: by place nobody's starves."""
    taken: set[Work] = set()
    for pair in zip(due, in_turn(due, _owner), strict=True):
        for work, moves in zip(pair, ("cut", ""), strict=True):
            if work not in taken:
                taken.add(work)
                yield work, moves


def _owner(work: Work) -> str:
    """A payment's tenant; another transaction, of which we are the owner, is by itself."""
    return work.id.split("|")[0]
