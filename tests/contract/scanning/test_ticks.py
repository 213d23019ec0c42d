"""Ticks in the whole service: who makes a network busy, what its ticks do, and that nothing rests on them."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.scanning.ticks import DEAD_MS, Busy, TickLease
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from chalicelib.workers import poll, tick
from tests.support.links import make, opened
from tests.support.mempools import SATOSHIS, Coins
from tests.support.shop import Node, Shop, bent_node, open_shop
from tests.support.stack import Stack


@pytest.fixture(autouse=True)
def _on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TICKS", "on")
    wiring.forget()
    yield
    wiring.forget()


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened
        assert audit(services().store) == []


@pytest.fixture
def node(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Node:
    return bent_node(shop, monkeypatch)


def a_message(slug: str = "ethereum", late_ms: int = 0, **other: Any) -> str:
    message = {"version": 1, "realm": "test", "network": slug, "at": services().clock.now_ms() - late_ms}
    return json.dumps(message | other)


def a_tick(shop: Shop, seconds: int = 2, **other: Any) -> None:
    shop.wait(seconds)
    tick.handle(a_message(shop.network, **other))


def cursor(shop: Shop) -> Cursor:
    found = services().store.get(Cursor, network=shop.realm_network().id)
    assert found is not None
    return found


def lease(shop: Shop) -> TickLease | None:
    return services().store.get(TickLease, network=shop.realm_network().id)


def credits(shop: Shop) -> int:
    """Entries that credit a merchant."""
    deposits = {deposit.id for deposit in services().store.every(Deposit) if deposit.tenant is not None}
    return sum(entry.ref["deposit"] in deposits for entry in shop.journal("deposit_credited"))


def busy(slug: str = "ethereum") -> bool:
    found = services().store.get(Busy, network=f"test:{slug}")
    return found is not None and found.until > services().clock.now_ms()


def polled_once(shop: Shop) -> list[dict[str, Any]]:
    """The ticks that a poll asks for; the queue is empty before."""
    shop.stack.drain(only=("tick",), hurry=True)
    shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1)
    return [json.loads(message.body) for message in shop.messages("tick")]


@pytest.mark.parametrize("path", ["", "/status"])
def test_a_page_that_is_looked_at_makes_its_network_busy(shop: Shop, path: str) -> None:
    invoice = shop.invoice()
    assert not busy()
    assert shop.stack.call("GET", f"/pay/{invoice['id']}{path}").status == 200
    assert busy()
    sent = [json.loads(message.body) for message in shop.messages("tick")]
    assert len(sent) == 29 and sent[0].keys() == {"version", "realm", "network", "at"}
    delays = [message.delayed_until - message.sent_timestamp for message in shop.messages("tick")]
    assert [round(delay / 1000) for delay in delays] == list(range(2, 59, 2))
    assert not busy("polygon")


def test_an_invoice_that_waits_for_nothing_makes_none_busy(shop: Shop) -> None:
    invoice = shop.invoice()
    shop.wait(1_801)
    assert shop.stack.call("GET", f"/pay/{invoice['id']}/status").status == 200
    assert not busy(), "it was made half an hour ago"
    paid = shop.invoice()
    shop.pay(paid["address"], "1")
    shop.mine()
    shop.turn()
    assert shop.status(paid) == "completed"
    shop.wait(200)
    assert not busy()
    assert shop.stack.call("GET", f"/pay/{paid['id']}/status").status == 200
    assert not busy()


def test_a_page_of_a_confirming_invoice_keeps_its_network_busy(shop: Shop) -> None:
    """Also where no poll has come for a while that saw its payment."""
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    shop.turn()
    shop.wait(200)
    assert (shop.status(invoice), busy()) == ("confirming", False)
    assert shop.stack.call("GET", f"/pay/{invoice['id']}/status").status == 200
    assert busy()


def test_a_choice_makes_the_network_of_its_coin_busy(shop: Shop) -> None:
    made = shop.post("/v1/invoices", {"fiatAmount": "10", "fiatCurrency": "USD", "accept": [{"coin": "eth"}, {"coin": "trx"}]})
    assert made.status == 201, made.body
    assert shop.stack.call("GET", f"/pay/{made.json['id']}").status == 200
    assert not busy() and not busy("tron"), "nobody has an address to pay to"
    assert shop.stack.call("POST", f"/pay/{made.json['id']}/choice", json={"coin": "trx"}).status == 200
    assert (busy(), busy("tron")) == (False, True)


def test_an_address_makes_its_network_busy_for_half_an_hour(shop: Shop) -> None:
    assert shop.post("/v1/addresses", {"network": "ethereum", "mode": "common"}).status == 201
    assert busy()
    shop.wait(1_801)
    assert not busy()


def test_invoices_of_payment_links_use_their_part_of_the_hours_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUSY_HOURS", "1")
    wiring.forget()
    shop.wait(86_400 - services().clock_of("test").now_ms() // 1000 % 86_400)  # the hours are a day's: it begins
    link = make(shop)["id"]

    def looked_at(invoice: dict[str, Any]) -> bool:
        assert shop.stack.call("GET", f"/pay/{invoice['id']}/status").status == 200
        return busy()

    assert looked_at(opened(shop, link))
    shop.wait(1_801)
    assert not looked_at(opened(shop, link)), "half an hour is half of what there is"
    assert looked_at(shop.invoice())


def test_a_request_does_not_fail_where_ticks_can_not_be_sent(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(*_: Any) -> None:
        raise Unavailable("the queue ticks did not answer")

    monkeypatch.setattr(services().queues, "tick", down)
    assert shop.stack.call("GET", f"/pay/{shop.invoice()['id']}/status").status == 200
    assert busy()
    monkeypatch.undo()
    assert polled_once(shop)


def test_a_payment_is_seen_and_credited_by_ticks_alone(shop: Shop) -> None:
    """As by polls: once, with the same events."""
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    a_tick(shop)
    assert shop.status(invoice) == "confirming"
    shop.mine()
    a_tick(shop)
    shop.stack.drain(only=("relay",))
    assert (shop.status(invoice), shop.available()) == ("completed", "1")
    assert set(shop.told(invoice["id"]).values()) == {1}
    shop.turn()
    assert (shop.available(), credits(shop)) == ("1", 1)


def test_open_payments_keep_a_network_busy_until_they_are_confirmed(shop: Shop) -> None:
    invoice = shop.invoice()
    assert polled_once(shop) == []
    shop.pay(invoice["address"], "1")
    assert len(polled_once(shop)) > 20, "the poll that sees it asks for the rest of its minute"
    shop.mine()
    polled_once(shop)
    shop.wait(121)
    assert polled_once(shop) == []


def test_polls_and_ticks_of_a_minute_settle(shop: Shop) -> None:
    """The messages as SQS brings them, and late: a tick sends none."""
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    assert polled_once(shop)
    count = len(shop.messages("tick"))
    drained = shop.stack.drain(only=("tick",), hurry=True)
    assert (drained.calls["tick"], drained.settled, shop.messages("tick")) == (count, True, [])


@pytest.mark.parametrize("late_ms", [6_000, -9_000])
def test_a_late_tick_does_nothing(shop: Shop, late_ms: int) -> None:
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    a_tick(shop, late_ms=late_ms)
    assert (shop.status(invoice), lease(shop)) == ("pending", None)
    a_tick(shop, late_ms=3_000)
    assert shop.status(invoice) == "confirming"


def test_a_tick_of_another_version_is_dropped(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    a_tick(shop, version=2, at="tomorrow")
    assert "a tick of version 2 is dropped" in caplog.text
    assert lease(shop) is None


@pytest.mark.parametrize("body", ["[]", "{}", '{"version": 1}', '{"version": 1, "realm": "x", "network": "y", "at": 1}', "no"])
def test_what_is_no_message_of_ours_is_a_failure(shop: Shop, body: str) -> None:
    with pytest.raises(ValueError):
        tick.handle(body)


def test_a_network_that_is_not_there_or_not_polled_has_no_ticks(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ({"network": "nowhere"}, {"realm": "live"}):
        shop.wait(2)
        tick.handle(a_message(**other))
    monkeypatch.setattr(tick, "put_back", lambda store, realm: object())
    a_tick(shop)
    assert lease(shop) is None


def test_a_tick_that_died_is_followed_by_another_after_a_minute(shop: Shop, node: Node) -> None:
    """Its block is half recorded, as that of a poll that died."""
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")

    class Dead(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Dead

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chalicelib.usecases.scanning.ticks.Ticks.end", lambda self, lease: None)
        node.bend(blocks=die)
        with pytest.raises(Dead):
            a_tick(shop)
    node.mend()
    a_tick(shop)
    assert shop.status(invoice) == "pending"
    shop.stack.drain(only=("poll_ethereum",), rounds=1)
    assert shop.status(invoice) == "confirming", "the poll asks for no lease"
    shop.mine()
    a_tick(shop, DEAD_MS // 1000)
    assert shop.status(invoice) == "completed"


def test_a_tick_that_failed_leaves_the_next_one_its_turn(shop: Shop, node: Node) -> None:
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")

    def away(*_: Any) -> None:
        raise Unavailable("the node did not answer")

    node.bend(tip=away)
    with pytest.raises(ExceptionGroup):
        a_tick(shop)
    node.mend()
    a_tick(shop)
    assert shop.status(invoice) == "confirming"


def test_a_tick_leaves_reorganisations_halts_and_lagging_nodes_to_the_poll(shop: Shop, node: Node) -> None:
    first, second = shop.invoice(), shop.invoice()
    shop.pay(first["address"], "1")
    a_tick(shop)
    shop.reorg(1)
    shop.pay(second["address"], "1")
    before = cursor(shop)
    a_tick(shop)
    assert cursor(shop) == before, "what the old branch settled is undone first"
    shop.turn()
    assert (shop.status(first), shop.status(second)) == ("pending", "confirming")
    node.bend(tip=lambda real, *_: real - 1)
    before = cursor(shop)
    a_tick(shop)
    assert cursor(shop) == before
    node.mend()


def test_a_backlog_is_the_polls(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services().wiring.scanning, "range_queue", lambda _: services().queues)
    monkeypatch.setattr("chalicelib.usecases.scanning.reorganisations.BATCH_BLOCKS", 5)
    monkeypatch.setattr("chalicelib.usecases.scanning.backlog.FAR", 1)
    before = cursor(shop)
    shop.mine(200)
    a_tick(shop)
    assert cursor(shop) == before
    shop.turn("scan_range")
    shop.mine(1)
    before = cursor(shop)
    a_tick(shop)
    assert cursor(shop).number == before.number + 1


def test_a_tick_beside_a_poll(shop: Shop, node: Node) -> None:
    """Each reads the blocks before the other one has passed them; both detect, one moves the cursor, and the poll goes on there.
    That one was first is no failure."""
    invoices = [shop.invoice() for _ in range(3)]
    for invoice in invoices:
        shop.pay(invoice["address"], "1")
    inside = threading.local()

    def overtaken(real: Any, *_: Any) -> Any:
        if not getattr(inside, "yes", False):
            inside.yes = True
            a_tick(shop)
        return real

    node.bend(blocks=overtaken)
    poll.poll("ethereum")
    node.mend()
    assert {shop.status(invoice) for invoice in invoices} == {"confirming"}
    shop.mine()
    inside.yes = False
    shop.wait(2)
    node.bend(blocks=lambda real, *_: _poll_inside(inside, real))
    tick.handle(a_message())
    node.mend()
    shop.turn()
    assert (shop.available(), credits(shop)) == ("3", 3)
    assert all(set(shop.told(invoice["id"]).values()) == {1} for invoice in invoices)


def _poll_inside(inside: Any, real: Any) -> Any:
    if not inside.yes:
        inside.yes = True
        poll.poll("ethereum")
    return real


def test_a_poll_and_a_tick_at_once(shop: Shop) -> None:
    """In threads, as in two functions, again and again."""
    invoices = [shop.invoice() for _ in range(6)]
    failures: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    for invoice in invoices:
        shop.pay(invoice["address"], "1")
        shop.wait(2)
        body = a_message()
        works = [lambda: poll.poll("ethereum"), lambda body=body: tick.handle(body)]
        threads = [threading.Thread(target=run, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    shop.mine()
    shop.turn()
    assert failures == []
    assert (shop.available(), credits(shop)) == ("6", 6)


def test_a_poll_of_before_ticks_goes_on_beside_them(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends none, notes nothing, and does not begin anew behind a tick that overtook it: the next one does."""
    invoice = shop.invoice()
    monkeypatch.setattr(poll.Poll, "_plan_ticks", lambda self: None)
    monkeypatch.setattr("chalicelib.usecases.scanning.scanner.OVERTAKEN", 0)
    shop.pay(invoice["address"], "1")
    a_tick(shop)
    shop.mine()
    poll.poll("ethereum")
    a_tick(shop)
    shop.turn()
    assert shop.available() == "1" and credits(shop) == 1


def test_a_tick_tells_of_a_payment_that_waits_in_the_mempool(coins: Coins) -> None:
    shop = coins.shop
    invoice = shop.invoice("1", "btc")
    sent = coins.send(invoice["address"], SATOSHIS)
    a_tick(shop)
    assert coins.record(sent).block_number is None
    coins.pool.held.clear()
    a_tick(shop)
    assert coins.record(sent).missing_since is None, "the poll looks for what is gone"
    coins.pool.held[sent.txid] = [sent]
    coins.mine(sent)
    a_tick(shop)
    assert coins.record(sent).block_number is not None
    coins.confirm()
    assert shop.status(invoice) == "completed"
    assert coins.told(coins.id(sent)) == ["transaction.detected", "transaction.confirmed"]


def test_a_mempool_that_can_not_be_read_does_not_stop_the_scan(coins: Coins) -> None:
    shop = coins.shop
    invoice = shop.invoice("1", "btc")
    sent = coins.send(invoice["address"], SATOSHIS)
    coins.mine(sent)
    coins.pool.away = True
    with pytest.raises(ExceptionGroup):
        a_tick(shop)
    assert coins.record(sent).block_number is not None
    coins.pool.away = False
