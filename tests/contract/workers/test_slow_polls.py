"""Polls in which one step takes all the time: what credits, and what ends a watch, has its turn in each of them all the same."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.usecases.treasury.collection.run import CollectRun
from chalicelib.wiring import services
from chalicelib.workers import deadlines
from tests.support.mempools import CONFIRMATIONS, SATOSHIS, Coins
from tests.support.shop import Shop
from tests.support.slow_nodes import Slowness
from tests.support.stack import Stack

SLOW = 21.0
"""Seconds: more than all that crediting has."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slowness:
    made = Slowness(0.0)
    monkeypatch.setattr(deadlines, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def slowed(slow: Slowness, function: Callable[..., Any]) -> Callable[..., Any]:
    def late(*args: Any, **named: Any) -> Any:
        slow.now += SLOW
        return function(*args, **named)

    return late


def test_a_mempool_that_is_told_slowly_holds_up_no_crediting(coins: Coins, slow: Slowness, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = coins.shop
    monkeypatch.setattr(coins.pool, "waiting", slowed(slow, coins.pool.waiting))
    invoice = shop.invoice("1", "btc")
    coins.mine(coins.send(invoice["address"], SATOSHIS))
    coins.look()
    shop.mine(CONFIRMATIONS)
    coins.look()
    assert shop.status(invoice) == "completed"


def test_blocks_that_are_told_slowly_hold_up_no_crediting(stack: Stack, slow: Slowness, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(stack)
    shop.turn()
    invoice = shop.invoice("1")
    shop.pay(invoice["address"], "1")
    poll = f"poll_{shop.network}"
    shop.stack.drain(only=(poll,), rounds=1)
    wired, network = services(), shop.realm_network()
    node, others = wired.reader(network), wired.reader

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return slowed(slow, node.blocks) if name == "blocks" else getattr(node, name)

    monkeypatch.setattr(wired.wiring.chains, "reader", lambda n: Slow() if n.id == network.id else others(n))
    shop.mine(20)
    shop.stack.drain(only=(poll,), rounds=1)
    assert shop.status(invoice) == "completed"


def test_collecting_without_end_keeps_no_settled_payment_watched(
    stack: Stack, slow: Slowness, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(stack)
    shop.turn()
    shop.credit("2")
    network = shop.realm_network()

    def work(self: CollectRun, more: Callable[[], bool]) -> None:
        while more():
            slow.now += 0.1

    monkeypatch.setattr(CollectRun, "work", work)
    withdrawal = shop.withdraw("0.01")
    for _ in range(6):
        shop.turn()
        shop.mine(5)
    assert shop.record(withdrawal).status == "confirmed"
    assert services().store.open_work("settled", network.id) != []
    shop.mine(network.reorg_depth + 20)
    shop.wait(60)
    shop.turn()
    assert services().store.open_work("settled", network.id) == []
