"""Given-up transactions: whether an operator's decision stands, for the code that follows our transactions (money rule 13).

A transaction that a sighting proved to be lost is watched on in the same way, under a record of the same kind: by `LOST`, which is
no operator, so it ends nothing (`watched_on`).

A decision ends nothing by itself. The poll does that, in the way in which it ends what is lost, and asks once more: a transaction
that was met in a block of the chain, or that any node tells of, is not given up. A node that has a vote and does not answer is
waited for.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.given_up import GivenUp, given_up_work
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.ports.changes import Change, Open, Save
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.losses import Losses

log = logging.getLogger(__name__)

WHY = "the operator gave it up: it was in no block"
"""Shown with what was given up."""


LOST = "the service"
"""The name in place of an operator's, where the blocks prove the loss."""


def watched_on(store: Store, watch: GivenUp) -> list[Change]:
    """The changes that have a transaction watched after its loss (`given_up_watching`); none where it is watched already.

    Stored with the end of its record, or before: until then the watch does nothing. Raises Unavailable.
    """
    before = store.get(GivenUp, id=watch.id)
    if before is not None and before.state == "open":
        return []
    new = replace(watch, version=version_after(before))
    return [Save(new), Open(given_up_work(new))]


class GivenUps:
    """Of one network, for one poll."""

    def __init__(self, network: Network, store: Store, losses: Losses, finality: Finality) -> None:
        self._network, self._store, self._losses, self._finality = network, store, losses, finality
        self._open: dict[str, GivenUp] | None = None

    def standing(self, id: str, ours: Ours, scanned: Scanned) -> GivenUp | None:
        """The decision to give up the record `id`, whose transactions are `ours`, where nothing speaks against it now.

        With an alarm, since the caller carries it out. Raises Unavailable.
        """
        decision = self._decisions().get(id)
        if decision is None or decision.by == LOST or scanned.unsure:
            return None
        if self._losses.mined(ours, scanned) is not None or not self._finality.untold(ours.txids):
            return None
        log.error("ALARM %s: %s is given up, as %s decided: %s", self._network.id, id, decision.by, decision.reason)
        return decision

    def decided(self, id: str) -> bool:
        """Whether there is a decision about it that is not carried out, or watched. Raises Unavailable."""
        return id in self._decisions()

    def _decisions(self) -> dict[str, GivenUp]:
        if self._open is None:
            self._open = {decision.id: decision for decision in open_decisions(self._store, self._network)}
        return self._open


def open_decisions(store: Store, network: Network) -> list[GivenUp]:
    """Those whose transactions are not ended yet, or watched. Raises Unavailable."""
    found: list[GivenUp] = []
    for works in pages_of(store, "givenup", network.id):
        each: list[GivenUp | None] = known_of(store, [(GivenUp, {"id": work.id}) for work in works])
        found += [decision for decision in each if decision is not None]
    return found
