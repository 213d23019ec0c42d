"""Reports of how a network's nodes do, written at the end of a poll, once a minute at most: what the operator's page shows.

Nothing is decided by them (votes are `transactions.node_votes`). Two polls at once write one report. URLs and words of nodes are
not stored: a URL may hold a provider's secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.scanning.node_reports import Asked, NetworkReport, NodeReport, NodeState
from chalicelib.domain.versions import version_after
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store

AT_LEAST_MS = 50_000
"""Between two reports. Polls come every minute, some seconds early or late."""


class Observed(Protocol):
    """A node's health, as far as it is reported."""

    @property
    def number(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def rests_for(self) -> float:
        """Seconds for which it is left alone."""
        ...

    tip: int | None
    silent: bool

    def asked(self) -> Asked:
        """What it was asked since this was last called."""
        ...


class NodeReports:
    """Of one network. `clock` is the machines' clock."""

    def __init__(self, network: Network, reader: ChainReader, store: Store, clock: Clock, nodes: Sequence[Observed]) -> None:
        self._network, self._reader, self._store, self._clock, self._nodes = network, reader, store, clock, nodes

    def note(self, tip: int | None) -> NetworkReport | None:
        """Store how the nodes did since the last report. `tip` is the height that this poll has seen; where it has seen none (a
        halted network), the nodes are asked. Returns None where the last report is too young. Raises Unavailable."""
        now = self._clock.now_ms()
        before = self._store.get(NetworkReport, network=self._network.id)
        if before is not None and 0 <= now - before.at < AT_LEAST_MS:
            return None
        height = self._height() if tip is None else tip
        nodes = tuple(self._report(node, before, height, now) for node in self._nodes)
        report = NetworkReport(self._network.id, now, height, nodes, version_after(before))
        try:
            self._store.commit([Save(report)])
        except Conflict:
            return None  # another poll's says the same
        return report

    def _height(self) -> int | None:
        try:
            return self._reader.tip()
        except Unavailable:
            return None

    def _report(self, node: Observed, before: NetworkReport | None, height: int | None, now: int) -> NodeReport:
        asked = node.asked()
        known = None if before is None else before.node(node.name)
        if asked.times == 0:
            state: NodeState = "silent" if node.silent else "resting" if node.rests_for else "unasked"
            return replace(known or NodeReport(node.number, node.name, state), number=node.number, state=state)
        return NodeReport(
            number=node.number,
            name=node.name,
            state=_state(node, asked),
            # The reader of a single node has no other that it could be compared with: what it read is the node's.
            height=node.tip if len(self._nodes) > 1 else height,
            # How fast it refuses says nothing of how fast it answers.
            latency_ms=None if asked.failed == asked.times else round(asked.seconds * 1000 / asked.times),
            trouble=asked.trouble,
            asked_at=now,
        )


def _state(node: Observed, asked: Asked) -> NodeState:
    if node.silent:
        return "silent"
    if node.rests_for:
        return "resting"
    return "failing" if asked.failed else "well"
