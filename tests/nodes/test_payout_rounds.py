"""How often a payout waits for the node: each wait is a round trip, and a hot wallet's payouts stand in line for all of them
(docs/scale.md, "First bottlenecks")."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

import pytest

from chalicelib.chains.rpc import JsonRpc
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.bench.limits import NODE_ROUNDS, TOKEN_ROUNDS
from tests.nodes.sending import send_native, send_token
from tests.nodes.shops import ETHER, Shop

pytestmark = pytest.mark.nodes

ANSWER = 0.1
"""Seconds that each answer takes here, so that requests which are under way together are seen to be."""


@dataclass
class Rounds:
    """The requests to a node: what each one asks, and when it began and ended. A batch is one request."""

    asked: list[tuple[float, float, tuple[str, ...]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def timed(self, methods: tuple[str, ...], ask: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            time.sleep(ANSWER)
            return ask()
        finally:
            with self.lock:
                self.asked.append((began, time.monotonic(), methods))

    @property
    def serial(self) -> int:
        """The most requests of which each began after the one before had ended."""
        count, until = 0, 0.0
        for began, ended, _ in sorted(self.asked, key=lambda each: each[1]):
            if began >= until:
                count, until = count + 1, ended
        return count

    @property
    def methods(self) -> Counter[str]:
        return Counter(method for _, _, methods in self.asked for method in methods)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rounds]:
    rounds, call, batch = Rounds(), JsonRpc.call, JsonRpc.batch
    with monkeypatch.context() as patch:
        patch.setattr(JsonRpc, "call", lambda self, m, p=(): rounds.timed((m,), lambda: call(self, m, p)))
        patch.setattr(JsonRpc, "batch", lambda self, r: rounds.timed(tuple(m for m, _ in r), lambda: batch(self, r)))
        yield rounds


def paid(shop: Shop, monkeypatch: pytest.MonkeyPatch, coin: str, amount: str) -> Rounds:
    """Pays out, from the command in its queue to the broadcast; what it asked of the node."""
    made = shop.post("/v1/withdraws", network="arbitrum", coin=coin, address="0x" + token_hex(20), amount=amount)
    shop.stack.drain(only=("relay",))
    with counted(monkeypatch) as rounds:
        shop.stack.drain(only=("payout",))
    assert shop.get(f"/v1/withdrawals/{made['id']}")["data"]["status"] == "confirming"
    return rounds


def fewest(shop: Shop, monkeypatch: pytest.MonkeyPatch, coin: str, amounts: tuple[str, ...], rounds: int) -> Rounds:
    """Of some payouts the one that waits least: a thread that a busy machine lets wait can only add to them."""
    found = []
    for amount in amounts:
        found.append(paid(shop, monkeypatch, coin, amount))
        if found[-1].serial <= rounds:
            break
    return min(found, key=lambda each: each.serial)


def test_a_payout_waits_a_few_times_for_the_node(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """To addresses that nobody has used, which tokens take most gas for. Each fact is asked as often as before: when a payout
    begins, when its bytes are built, and right before they are signed."""
    ether = shop.post("/v1/invoices", currency="eth", amount="1", network="arbitrum")
    token = shop.post("/v1/invoices", currency="usdt", amount="30", network="arbitrum")
    send_native(shop.node.rpc, ether["address"], ETHER)
    send_token(shop.node.rpc, shop.usdt, token["address"], 30_000_000)
    shop.confirm()
    paid(shop, monkeypatch, "eth", "0.1")  # the wallet's first nonce is asked of every node before anything else
    native = fewest(shop, monkeypatch, "eth", ("0.11", "0.12", "0.13"), len(NODE_ROUNDS))
    tokens = fewest(shop, monkeypatch, "usdt", ("5", "6", "7"), TOKEN_ROUNDS)
    assert (native.serial, tokens.serial) == (len(NODE_ROUNDS), TOKEN_ROUNDS)
    assert len(native.asked) == sum(NODE_ROUNDS)
    facts = {"eth_chainId": 3, "eth_getBlockByNumber": 3, "eth_maxPriorityFeePerGas": 3, "eth_getTransactionCount": 2}
    sent = {"eth_sendRawTransaction": 1, "eth_getBalance": 4, "eth_getCode": 4}
    assert native.methods == {**facts, **sent, "eth_estimateGas": 3}
    # Of a token each of the two plans calls twice, without a price and with one; five estimates are of a plain payment.
    assert tokens.methods == {**facts, **sent, "eth_estimateGas": 3 + 5, "eth_call": 1 + 4}
    shop.confirm()
    assert audit(services().store) == []
