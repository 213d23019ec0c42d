"""The shop of the bundles, whose deposits are collected."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.domain.ledger import Balance
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services
from chalicelib.wiring.custody import CustodyWiring
from tests.contract.treasury.coin_treasury import DigestKeys, Treasury
from tests.support.bundles import COIN
from tests.support.fake_coins import FakeCoins
from tests.support.stack import Stack
from tests.support.webhooks import a_listener


@pytest.fixture(scope="module")
def collecting(live_litecoin: tuple[Stack, Any, FakeCoins]) -> Iterator[tuple[Stack, Any, Any, FakeCoins]]:
    """The funded shop, whose coin is collected, with nine deposits of half a coin each."""
    stack, (snapshot, at_work), chain = live_litecoin
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CustodyWiring, "deposit_keys", DigestKeys())
        at_work["chain"] = copy.deepcopy(chain)
        stack.restore(snapshot)
        treasury = Treasury(stack, at_work["chain"])
        # Somebody listens: hints come by the outbox, when a test says so.
        (merchant,) = {balance.tenant for balance in services().store.every(Balance)}
        services().store.commit([Save(a_listener(merchant))])
        treasury.settle_for(collectThreshold="1")
        treasury.receive(*[COIN // 2 + n for n in range(9)])
        treasury.hint()
        assert treasury.hints() == 9 and treasury.moves() == []
        treasury.whole()
        yield stack, stack.snapshot(), at_work, copy.deepcopy(at_work["chain"])


@pytest.fixture
def anew(collecting: tuple[Stack, Any, Any, FakeCoins]) -> Callable[[], Treasury]:
    stack, snapshot, at_work, chain = collecting

    def begin() -> Treasury:
        at_work["chain"] = copy.deepcopy(chain)
        stack.restore(snapshot)
        return Treasury(stack, at_work["chain"])

    return begin


@pytest.fixture
def treasury(anew: Callable[[], Treasury]) -> Treasury:
    return anew()
