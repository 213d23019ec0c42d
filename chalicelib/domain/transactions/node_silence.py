"""Silent nodes of a network, and the time of their first failure: a node loses its vote by silence alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chalicelib.domain.ids import NetworkId


class Contact(NamedTuple):
    """One node's latest answer. `node` is its name in stored records. `answered`: whether it gave any answer when it was last
    asked; None where it was not asked."""

    node: str
    answered: bool | None


@dataclass(frozen=True, slots=True)
class NodeSilence:
    """The silent nodes of a network: `since` has, by node name, the time of the first failure after the node's last answer, in
    milliseconds since 1970 on the machines' clock."""

    network: NetworkId
    since: dict[str, int] = field(default_factory=dict)
    version: int = 0

    def after(self, contacts: Sequence[Contact], now_ms: int) -> dict[str, int]:
        """`since` after these contacts, one for each configured node. A node that is no longer configured is forgotten: it
        begins anew when it comes back."""
        silent = [node for node, answered in contacts if answered is False or (answered is None and node in self.since)]
        return {node: self.since.get(node, now_ms) for node in sorted(silent)}

    def without_vote(self, now_ms: int, minutes: int) -> frozenset[str]:
        """The nodes that have been silent for so many minutes."""
        return frozenset(node for node, at in self.since.items() if now_ms - at >= minutes * 60_000)
