"""The nodes that have a vote about the outcome of our transactions: all that have answered lately (money rule 13).

Nothing is decided on the word of some nodes while another is asked in vain, until that has gone on for `node_silence_minutes`. Then
the network goes on without that node, and `finality` says how far. Functions live shortly, so the beginning of a silence is stored:
written when a node stops answering and when it answers again, and at no other time. A node that lags, lies or refuses answers.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.node_silence import Contact, NodeSilence
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.readers import ChainReader, Jury
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)


class NodeVotes:
    """Of one network. `clock` is the machines' clock."""

    def __init__(self, network: Network, reader: ChainReader, store: Store, clock: Clock, minutes: int) -> None:
        self._network, self._reader, self._store, self._clock, self._minutes = network, reader, store, clock, minutes

    def look(self) -> None:
        """Ask the nodes for their tips, and note which of them answer. Once a poll, before anything is decided.

        One that has no vote is asked in any case, however long it is left alone for its failures: its word shall count as soon as
        it is back. So is one that has failed since this was last done: one question more tells whether it is silent.
        Every poll tells of those without a vote. Raises Unavailable, also where no node answers: that is noted, too.
        """
        jury = self._reader
        if not isinstance(jury, Jury):
            return
        try:
            jury.tip()
        finally:
            unsure = self._note(jury)
        if unsure:
            jury.revisit(unsure)
            self._note(jury)
        for health in jury.healths:
            if not health.has_vote:
                log.error(
                    "ALARM %s: node %d has not answered for %d minutes and has no vote: what becomes of what is worth more than "
                    "agreementUsd waits until it answers, or is taken out",
                    *(self._network.id, health.number, self._minutes),
                )

    def know(self) -> None:
        """Take votes as they are stored, for a function that asks nodes and does not poll. Raises Unavailable."""
        if isinstance(self._reader, Jury):
            self._apply(self._reader, self._stored())

    def _stored(self) -> NodeSilence:
        return self._store.get(NodeSilence, network=self._network.id) or NodeSilence(self._network.id)

    def _note(self, jury: Jury) -> list[str]:
        """Store what has changed; the nodes of which it is to be asked how they are."""
        contacts = [Contact(health.name, health.taken()) for health in jury.healths]

        def decide() -> NodeSilence:
            found = self._stored()
            since = found.after(contacts, self._clock.now_ms())
            if since == found.since:
                return found
            changed = replace(next_version(found), since=since)
            self._store.commit([Save(changed)])
            return changed

        stored = until_settled(decide)
        known = stored.since.keys() - self._apply(jury, stored)
        failed = {health.name for health in jury.healths if health.silent}
        return [node for node, answered in contacts if answered is not False and node in failed and node not in known]

    def _apply(self, jury: Jury, found: NodeSilence) -> frozenset[str]:
        out = found.without_vote(self._clock.now_ms(), self._minutes)
        for health in jury.healths:
            health.has_vote = health.name not in out
        return out
