"""For how long what was given up is looked for in blocks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.given_up_watching import GivenUpWatching

DAY_OF_BLOCKS = 28_800
"""Tron has one in three seconds, and takes no transaction whose expiration is further away than a day."""


def tron() -> Network:
    return next(n for n in default_networks("live") if n.slug == "tron")


class Store:
    def __init__(self) -> None:
        self.states: list[str] = []

    def commit(self, changes: Any) -> None:
        self.states += [change.record.state for change in changes if isinstance(change, Save)]


class Losses:
    def mined(self, ours: Ours, scanned: Scanned) -> None:
        """It was met in no block yet."""


@pytest.mark.parametrize(("behind", "ended"), [(128, []), (DAY_OF_BLOCKS + 127, []), (DAY_OF_BLOCKS + 128, ["over"])])
def test_what_expires_is_looked_for_as_long_as_a_block_may_take_it(behind: int, ended: list[str]) -> None:
    """It lives ten minutes, which are more than 128 blocks, and nobody waits for its end before he gives it up."""
    network, store = tron(), Store()
    nothing: Any = None
    context = NetworkContext(network, nothing, cast(Any, store), nothing, nothing)
    watching = GivenUpWatching(context, cast(Any, Losses()), nothing, nothing, None)
    decision = GivenUp("stk_1", network.id, "stake", "", "me", "why", 0, 1_000, ("01" * 32,))
    stake = cast(Stake, SimpleNamespace(txids=("01" * 32,), nonce=None))
    watching._seen(decision, stake, Scanned(1_000 + behind, 1_000 + behind, {}))
    assert store.states == ended
