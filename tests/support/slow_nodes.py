"""A node that takes its time: every question moves a simulated clock, and is counted. The poll's deadlines go by that clock."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.wiring import services
from chalicelib.workers import deadlines
from tests.support.shop import Shop


@dataclass
class Slowness:
    """`seconds` that each question takes; `now` is the simulated monotonic clock, `asked` how often each question was asked,
    `receipts` those of which transactions."""

    seconds: float
    now: float = 1_000.0
    asked: Counter[str] = field(default_factory=Counter)
    receipts: list[str] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def spend(self, question: str) -> None:
        self.now += self.seconds
        self.asked[question] += 1


class SlowNode:
    """A reader or payer of which each method call is a question."""

    def __init__(self, real: Any, slowness: Slowness) -> None:
        self._real, self._slowness = real, slowness

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found) or name in LOCAL:
            return found

        def ask(*arguments: Any, **named: Any) -> Any:
            self._slowness.spend(name)
            if name == "receipt":
                self._slowness.receipts.append(arguments[0])
            return found(*arguments, **named)

        return ask


LOCAL = ("explain", "lifetime", "expiry", "digest", "assemble")
"""Methods of payers that no node is asked for."""


def slowed(shop: Shop, patch: pytest.MonkeyPatch, seconds: float) -> Slowness:
    """Let the node of the shop's network take so long for every answer."""
    wired, slowness, network = services(), Slowness(seconds), shop.realm_network()
    for name in ("reader", "payer"):
        old = getattr(wired, name)
        node = SlowNode(old(network), slowness)
        patch.setattr(wired.wiring.chains, name, lambda asked, node=node, old=old: node if asked.id == network.id else old(asked))
    patch.setattr(deadlines, "time", SimpleNamespace(monotonic=slowness.monotonic))
    return slowness
