"""How a network's nodes did in its last poll: what the operator is shown of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from chalicelib.domain.ids import NetworkId

NodeState = Literal["well", "failing", "resting", "silent", "unasked"]
"""`well`: it answered all that it was asked; `failing`: some of that failed; `resting`: it is left alone for a while after
failures; `silent`: it gave no answer of any kind when it was last asked; `unasked`: it was not asked, since another one answers."""


class Asked(NamedTuple):
    """What a node was asked since the last report: how often, how often in vain, seconds in all, and the last failure in our own
    words (never the node's, nor its URL)."""

    times: int
    failed: int
    seconds: float
    trouble: str | None


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node. `number` is its position in the configuration, `name` tells it apart from others in stored records. `height`,
    `latency_ms` (of a request, on average) and `asked_at` are of the last poll that asked it; `trouble` is its last failure in
    that poll. Times in milliseconds since 1970."""

    number: int
    name: str
    state: NodeState
    height: int | None = None
    latency_ms: int | None = None
    trouble: str | None = None
    asked_at: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkReport:
    """A network's nodes as the poll at `at` (milliseconds since 1970) left them, and the chain's height by then; None where no
    node told it."""

    network: NetworkId
    at: int
    tip: int | None
    nodes: tuple[NodeReport, ...] = ()
    version: int = 1

    def node(self, name: str) -> NodeReport | None:
        """The node of this name, None where there is none."""
        return next((node for node in self.nodes if node.name == name), None)
