"""Every call to a real node (anvil), one after the other, fails before or after its effect, or kills the function there: paid
invoices complete, withdrawals are on the chain exactly once, the books are whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from infra.local.nodes import mine
from tests.nodes.sending import send_native, send_token
from tests.nodes.shops import CONFIRMATIONS, HANDLERS, OUT, Shop, arbitrum_shop, hot_wallet
from tests.support.cuts import WAYS, Cutter, Died, How, When, install

pytestmark = [pytest.mark.nodes, pytest.mark.slow]

ETHER = 10**18


@pytest.fixture
def shop(aws: LocalAws) -> Iterator[Shop]:
    """A live merchant on arbitrum."""
    with arbitrum_shop(aws) as made:
        yield made


class NodeCutter(Cutter):
    """Counts and cuts the calls to nodes alone."""

    def around(self, name: str, call: Callable[[], Any], error: Exception) -> Any:
        return super().around(name, call, error) if name.startswith("node ") else call()


def run(shop: Shop, cutter: NodeCutter) -> None:
    """Clocks and queues with the cut in them, blocks on top, and both again."""
    for blocks in (CONFIRMATIONS, 0):
        try:
            with cutter.arm():
                shop.stack.drain(only=HANDLERS, failures="count", hurry=True, rounds=4)
        except Died:
            wiring.forget()
        if blocks:
            mine(shop.node.rpc, blocks)


def recover(shop: Shop, done: Callable[[], bool]) -> None:
    for minute in range(1, 8):
        if done():
            return
        services().clock.shift_ms = minute * 60_000
        shop.stack.drain(only=(*HANDLERS, "housekeeping"), failures="count", hurry=True, rounds=4)
        mine(shop.node.rpc, CONFIRMATIONS)


_IN_A_CHECK = (("error", "before"), ("death", "after"))


@pytest.mark.parametrize(
    ("how", "when"), [pytest.param(*way, id="-".join(way), marks=[pytest.mark.sweep] * (way not in _IN_A_CHECK)) for way in WAYS]
)
def test_any_node_call_may_fail(
    shop: Shop, how: How, when: When, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    cutter = NodeCutter()
    install(cutter, monkeypatch)
    ether = shop.post("/v1/invoices", currency="eth", amount="1", network="arbitrum")
    token = shop.post("/v1/invoices", currency="usdt", amount="30", network="arbitrum")
    send_native(shop.node.rpc, ether["address"], ETHER)
    send_token(shop.node.rpc, shop.usdt, token["address"], 30_000_000)

    def completed() -> bool:
        return all(shop.invoice(made)["status"] == "completed" for made in (ether, token))

    def check_deposits() -> None:
        assert completed()
        assert shop.available() == {"eth": "1", "usdt": "30"}

    points = sweep(shop, cutter, how, when, completed, check_deposits)
    recover(shop, completed)
    before = shop.on_chain(OUT)
    made = [
        shop.post("/v1/withdraws", network="arbitrum", coin=coin, address=OUT, amount=amount)["id"]
        for coin, amount in (("eth", "0.25"), ("usdt", "12.5"))
    ]

    def confirmed() -> bool:
        return all(shop.get(f"/v1/withdrawals/{w}")["data"]["status"] == "confirmed" for w in made)

    def check_payouts() -> None:
        assert confirmed()
        assert shop.available() == {"eth": "0.75", "usdt": "17.5"}
        assert shop.on_chain(OUT) == (before[0] + ETHER // 4, before[1] + 12_500_000)
        assert int(shop.node.rpc.call("eth_getTransactionCount", [hot_wallet(), "latest"]), 16) == 2

    points += sweep(shop, cutter, how, when, confirmed, check_payouts)
    record_property("cut_points", points)


def sweep(shop: Shop, cutter: NodeCutter, how: How, when: When, done: Callable[[], bool], check: Callable[[], None]) -> int:
    """Cut each node call of one path, always from the same state of store and chain; how many were cut."""
    wiring.forget()
    state, chain = shop.stack.snapshot(), shop.node.rpc.call("evm_snapshot")

    def back() -> None:
        nonlocal chain
        shop.stack.restore(state)
        assert shop.node.rpc.call("evm_revert", [chain]) is True
        chain = shop.node.rpc.call("evm_snapshot")

    cutter.set(0, how, when)
    run(shop, cutter)
    recover(shop, done)
    check()
    cuts = chosen(cutter.trace, how, when)
    for at in cuts:
        back()
        cutter.set(at, how, when)
        run(shop, cutter)
        fired, name = cutter.fired, cutter.trace[-1]
        recover(shop, done)
        try:
            assert fired, "the call never came"
            check()
            assert audit(services().store) == []
            shop.stack.drain(only=HANDLERS, failures="count", hurry=True, rounds=4)
            assert [w for w in services().store.every_work() if w.kind not in ("expiry", "settled")] == []
        except AssertionError as error:
            raise AssertionError(f"cut {how} {when} call {at} ({name}): {error}") from error
    back()
    return len(cuts)


def chosen(trace: Sequence[str], how: How, when: When) -> list[int]:
    """Which of the calls are cut, by their numbers from 1.

    Only sending has an effect on a node: a read that fails after its answer is one that fails before it. With SWEEP=full every
    read is cut by an error and by a death before it; without it every 240th by the one, and one between by the other.
    """
    sends = [n for n, name in enumerate(trace, 1) if "eth_sendRawTransaction" in name]
    if when == "after":
        return sends
    reads = [n for n in range(1, len(trace) + 1) if n not in sends]
    if os.environ.get("SWEEP") != "full":
        reads = reads[(0 if how == "error" else 120) :: 240]
    return sorted([*sends, *reads])
