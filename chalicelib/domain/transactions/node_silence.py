"""Which nodes of a network do not answer, and since when: a node loses its vote by silence alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chalicelib.domain.ids import NetworkId


class Contact(NamedTuple):
    """`node` is its name in what is stored. `answered`: whether it gave an answer of any kind when it was asked lately; None where
    nobody asked it."""

    node: str
    answered: bool | None


@dataclass(frozen=True, slots=True)
class NodeSilence:
    """`since` has, by their names, the nodes of a network that were asked and gave no answer, with the time of the first such
    failure after their last answer, in milliseconds since 1970 on the machines' clock."""

    network: NetworkId
    since: dict[str, int] = field(default_factory=dict)
    version: int = 0

    def after(self, contacts: Sequence[Contact], now_ms: int) -> dict[str, int]:
        """`since` once these contacts, one for each node that is configured, are known. A node that is not configured any more is
        forgotten: it begins anew when it comes back."""
        silent = [node for node, answered in contacts if answered is False or (answered is None and node in self.since)]
        return {node: self.since.get(node, now_ms) for node in sorted(silent)}

    def without_vote(self, now_ms: int, minutes: int) -> frozenset[str]:
        """The nodes that have not answered for so many minutes."""
        return frozenset(node for node, at in self.since.items() if now_ms - at >= minutes * 60_000)
