"""The sandbox's clock: it moves what belongs to the test realm, and nothing else."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any

import pytest

from chalicelib.domain.chain import SandboxClock
from chalicelib.domain.work import OutboxRow
from chalicelib.usecases.base.clock import RealmClock, in_realm
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.sandbox.clock import MOST_AT_ONCE, MOST_IN_ALL, SandboxTime
from chalicelib.wiring import forget, services
from infra.local.queues import consumers
from tests.support.sandbox import lab_of
from tests.support.shop import Shop

DAY = 86_400


@pytest.fixture
def shop(stack) -> Shop:
    return Shop(stack)


def advance(shop: Shop, seconds: Any, **headers: str) -> Any:
    return shop.post("/v1/sandbox/clock", {"advance": seconds}, **headers)


def seconds_of(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()


def test_time_passes_for_the_test_realm_alone(shop):
    before = seconds_of(shop.invoice()["createdAt"])
    moved = advance(shop, DAY)
    assert (moved.status, set(moved.json["data"]), moved.json["data"]["advanced"]) == (201, {"now", "advanced"}, DAY)
    assert before + DAY <= seconds_of(moved.json["data"]["now"]) < before + DAY + 60
    assert before + DAY <= seconds_of(shop.invoice()["createdAt"]) < before + DAY + 60
    # The envelope's own time, and the window of the rate limit, are the machine's.
    assert seconds_of(moved.json["meta"]["timestamp"]) < before + 60
    assert int(moved.headers["x-ratelimit-reset"]) < before + DAY
    wired = services()
    assert wired.clock_of("live").now_ms() - wired.clock.now_ms() < 60_000
    machine = wired.clock.now_ms()
    assert wired.clock_of("test").now_ms() - machine >= DAY * 1000
    again = advance(shop, 60)
    assert again.json["data"]["advanced"] == DAY + 60
    forget()
    machine = services().clock.now_ms()
    assert services().clock_of("test").now_ms() - machine >= (DAY + 60) * 1000


def test_every_chain_has_one_block_of_the_new_time_and_no_more(shop):
    wired = services()
    networks = [n for n in wired.catalogue("test").networks.values() if n.status == "active"]
    before = {n.slug: wired.reader(n).tip() for n in networks}
    advance(shop, 30 * DAY)
    assert {n.slug: wired.reader(n).tip() for n in networks} == {slug: tip + 1 for slug, tip in before.items()}
    ethereum = shop.realm_network()
    (block,) = wired.reader(ethereum).blocks(before["ethereum"] + 1, before["ethereum"] + 1, ())
    assert block.time >= wired.clock.now_ms() + 30 * DAY * 1000 - 60_000


def test_a_poll_makes_up_for_an_advance_that_died(shop):
    shop.turn()
    tip = services().reader(shop.realm_network()).tip()
    services().sandbox_time.advance(DAY)  # and nothing after it
    assert services().reader(shop.realm_network()).tip() == tip
    shop.turn()
    assert services().reader(shop.realm_network()).tip() == tip + 1
    shop.turn()
    assert services().reader(shop.realm_network()).tip() == tip + 1


def test_two_advances_at_once_add_up_and_one_key_counts_once(shop):
    threads = [threading.Thread(target=advance, args=(shop, n)) for n in (10, 200, 3_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first = advance(shop, 40_000, **{"Idempotency-Key": "a"})
    assert first.json["data"]["advanced"] == 43_210
    second = advance(shop, 40_000, **{"Idempotency-Key": "a"})
    assert (second.body, second.headers["idempotency-replayed"]) == (first.body, "true")
    assert advance(shop, 1).json["data"]["advanced"] == 43_211


def test_what_can_not_be_advanced(shop):
    for wrong in (0, -1, MOST_AT_ONCE + 1, 1.5, "60", None, True):
        assert advance(shop, wrong).json["error"]["code"] == "INVALID_PARAMETER", wrong
    live = shop.stack.call("POST", "/v1/sandbox/clock", shop.stack.keys["client_live"], json={"advance": 1})
    assert (live.status, live.json["error"]["code"]) == (403, "INSUFFICIENT_PERMISSIONS")
    store = services().store
    store.commit([Save(SandboxClock("test", (MOST_IN_ALL - 10) * 1000))])
    refused = advance(shop, 11)
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert advance(shop, 10).status == 201


def test_a_demos_clock_is_moved_by_a_week_at_most(stack):
    time = SandboxTime(services().store, 7 * DAY)
    time.advance(7 * DAY)
    with pytest.raises(Exception, match="0 are left"):
        time.advance(1)


def test_what_was_told_in_the_sandboxs_time_is_delivered_in_ours(shop):
    """An outbox row whose message was lost is found though its time has not come yet; retries are planned on real time."""
    advance(shop, DAY)
    hook = shop.post("/v1/webhooks", {"url": "http://127.0.0.1:8099/hook", "events": ["*"]})
    assert hook.status == 201, hook.body
    shop.invoice()
    relay = shop.messages("relay")
    assert relay
    consumer = next(c for c in consumers(shop.stack.app) if c.name == "relay")
    consumer.queue()._messages.clear()
    assert list(services().store.every(OutboxRow))
    shop.stack.drain(only=("housekeeping",), rounds=1)
    assert not list(services().store.every(OutboxRow))
    (due,) = [work for work in services().store.every_work() if work.kind == "delivery"]
    assert abs(int(due.order) - services().clock.now_ms()) < 60_000
    assert audit(services().store) == []


def test_a_clock_serves_the_realm_at_work():
    class Machine:
        def now_ms(self) -> int:
            return 1_000

    clock = RealmClock(Machine(), lambda: 500)
    assert clock.now_ms() == 1_000
    with in_realm("test"):
        assert clock.now_ms() == 1_500
        with in_realm("live"):
            assert clock.now_ms() == 1_000
        assert clock.now_ms() == 1_500
    assert RealmClock(Machine(), lambda: 500, "test").now_ms() == 1_500


def test_blocks_of_themselves_come_with_real_time_alone():
    with lab_of("ethereum", 2.0) as lab:
        ahead = [0]
        lab.chain.reads._ahead = lab.reader._reads._ahead = lambda: ahead[0]
        lab.chain.open()
        lab.clock.pass_seconds(20)
        assert lab.reader.tip() == 10
        ahead[0] = DAY * 1000
        assert lab.reader.tip() == 10
        lab.clock.pass_seconds(4)
        assert lab.reader.tip() == 12  # still the old time's, until a block of the new one is there
        assert lab.chain.catch_up() == 13
        assert lab.chain.catch_up() == 13
        blocks = lab.reader.blocks(10, 13, ())
        assert blocks[2].time - blocks[1].time == 2_000
        assert blocks[3].time == lab.clock.now + DAY * 1000
        lab.clock.pass_seconds(6)
        assert lab.reader.tip() == 16
        assert lab.reader.blocks(16, 16, ())[0].time == lab.clock.now + DAY * 1000
        ahead[0] = 0  # a process that has not heard of it
        assert lab.reader.tip() == 16
        assert lab.chain.mine(1) == 17
        assert lab.reader.blocks(17, 17, ())[0].time == lab.clock.now + DAY * 1000
