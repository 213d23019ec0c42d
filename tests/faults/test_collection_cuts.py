"""Every call to AWS on the way of a collection with its top-up, and of what the collector shares out, fails or kills the function
there. Whatever was cut: when clocks and queues have run again, everything arrived, was moved once, and the books are whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pytest

from chalicelib import wiring
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.work import OutboxRow
from chalicelib.store.queues import SqsQueues
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.cuts import WAYS, Cutter, Died, How, When, install
from tests.support.reconciling import suspected
from tests.support.shop import Shop, open_shop
from tests.support.treasury import cold, register, same
from tests.support.webhooks import a_listener

USDT = 10**6
HANDLERS = ("poll_ethereum", "relay", "payout", "collect")
READS = ("Get", "Query", "BatchGet", "TransactGet")
MINUTES = 16
"""How long recovery may take: what failed or waits is looked at again after a minute, then ever more rarely."""


@pytest.fixture
def shop(stack) -> Iterator[Shop]:
    """With a deposit that waits to be collected, and wallets to collect to."""
    with open_shop(stack) as found:
        admin = stack.keys["admin_test"]
        body = {"coin": "usdt", "network": "ethereum", "collectThreshold": "0", "collectPercentageHot": 40}
        assert stack.call("PUT", "/v1/coins", admin, json=body).status == 200
        yield found


def run(shop: Shop, cutter: Cutter) -> None:
    """Clocks and queues as often as it takes when nothing fails, with the cut in it."""
    for blocks in (12, 12, 12, 12, 0):
        try:
            with cutter.arm():
                shop.stack.drain(only=HANDLERS, failures="count", hurry=True, rounds=2)
        except Died:
            wiring.forget()
        if blocks:
            shop.mine(blocks)


def done() -> bool:
    kinds = [m.kind for m in services().store.every(Move) if m.state == "settled"]
    return sorted(kinds) == ["cold", "distribution", "sweep", "topup", "topup"]


def at_rest() -> bool:
    """Whether nothing is left to do but what only time ends."""
    return {w.kind for w in services().store.every_work()} <= {"expiry", "moved"}


def check(shop: Shop, address: str, collector: str, far: str, before: int) -> None:
    assert [c.state for c in services().store.every(Collection)] == ["swept"]
    assert done()
    assert same(shop, address, "usdt") == same(shop, collector, "usdt") == 0
    assert same(shop, far, "usdt") == 600 * USDT
    assert same(shop, shop.hot().address, "usdt") == before + 400 * USDT
    assert shop.available("usdt") == "1000"
    assert audit(services().store) == []
    assert at_rest(), sorted({w.kind for w in services().store.every_work()})
    assert suspected(shop) == []


def test_a_lost_message_is_told_after_everything_arrived(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """No money waits for the row, so all moves settle at once; then the sweep tells it."""
    collector, far = register(shop, "collector"), cold(shop)
    before = same(shop, shop.hot().address, "usdt")
    address = shop.invoice("1000", "usdt")["address"]
    (invoice,) = services().store.every(Invoice)
    services().store.commit([Save(a_listener(invoice.tenant))])
    shop.pay(address, "1000", "usdt")
    shop.mine()
    kicked: list[str] = []
    kick = SqsQueues.kick

    def lost(self: SqsQueues, outbox_id: str, group: str | None = None) -> None:
        kicked.append(outbox_id)
        if len(kicked) > 1:  # the first row, transaction.detected, has no message
            kick(self, outbox_id, group)

    monkeypatch.setattr(SqsQueues, "kick", lost)
    run(shop, Cutter())
    assert done()
    assert services().store.get(OutboxRow, id=kicked[0]) is not None
    assert not at_rest()
    recover(shop)
    check(shop, address, collector, far, before)


@pytest.mark.slow
def test_any_call_may_fail(shop: Shop, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]) -> None:
    cutter = Cutter()
    install(cutter, monkeypatch)
    collector, far = register(shop, "collector"), cold(shop)
    before = same(shop, shop.hot().address, "usdt")
    address = shop.invoice("1000", "usdt")["address"]
    shop.pay(address, "1000", "usdt")
    shop.mine()
    start = shop.stack.snapshot()
    cutter.set(0, "error", "before")
    run(shop, cutter)
    check(shop, address, collector, far, before)
    cuts = [(how, when, at) for how, when in WAYS for at in chosen(cutter.trace, how, when)]
    for how, when, at in cuts:
        shop.stack.restore(start)
        cutter.set(at, how, when)
        run(shop, cutter)
        fired, name = cutter.fired, cutter.trace[at - 1] if len(cutter.trace) >= at else "nothing"
        recover(shop)
        try:
            assert fired, "the call never came"
            check(shop, address, collector, far, before)
        except AssertionError as error:
            raise AssertionError(f"cut {how} {when} call {at} ({name}): {error}") from error
    record_property("cut_points", len(cuts))


def recover(shop: Shop) -> None:
    """Minutes pass until everything arrived and was told. A row of the outbox whose message was lost keeps no coin from moving,
    and the sweep takes no message for lost before 15 seconds: the clock has to go on for it alone."""
    for _ in range(1, MINUTES):
        if done() and at_rest():
            break
        services().clock.shift_ms += 60_000
        shop.stack.drain(only=(*HANDLERS, "housekeeping"), failures="count", hurry=True, rounds=2)
        shop.mine()
    shop.stack.drain(only=(*HANDLERS, "housekeeping"), failures="count", hurry=True)


def chosen(trace: Sequence[str], how: How, when: When) -> list[int]:
    """Which calls are cut, by their numbers from 1. With SWEEP=full every write, and every read by an error before it; without it
    one write in each way, another one for each."""
    writes = [n for n, name in enumerate(trace, 1) if not name.startswith(READS)]
    if os.environ.get("SWEEP") == "full":
        return list(range(1, len(trace) + 1)) if (how, when) == ("error", "before") else writes
    return [writes[len(writes) * (2 * WAYS.index((how, when)) + 1) // (2 * len(WAYS))]]
