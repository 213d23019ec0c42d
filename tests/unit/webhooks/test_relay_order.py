"""The relay makes deliveries in the order of an object's events, whatever order and however often it is asked for their rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_work
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.webhooks.leases import EARLY_MS
from chalicelib.domain.work import Command, OutboxRow, Work, outbox_id, outbox_work, tags_in
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import Close, Delete, Emit, Save
from chalicelib.usecases.ports.failures import TooNew, Unavailable
from chalicelib.usecases.ports.store import Page
from chalicelib.usecases.webhooks import earlier_rows
from chalicelib.usecases.webhooks.delivery_attempts import Answer
from chalicelib.usecases.webhooks.due_sweep import DueSweep
from chalicelib.usecases.webhooks.earlier_rows import HOLD_MS, MOST, READ, WINDOW_MS
from chalicelib.usecases.webhooks.redelivery import Redelivery, Wanted
from chalicelib.usecases.webhooks.redelivery_run import RedeliveryRun
from chalicelib.usecases.webhooks.relay import Relay, Swept
from tests.support.memory_store import Cuts
from tests.support.webhooks import NOW, OTHER, SHOP, an_endpoint
from tests.unit.webhooks.line import HOOK, OK, Line

Told = tuple[str, int]
MINUTE = 60_000


class Before:
    """Does something right before the n-th call of what it is put around."""

    def __init__(self, at: int, act: Callable[[], Any]) -> None:
        self.at, self.act, self.calls = at, act, 0

    def around(self, target: Any) -> Any:
        before = self

        class Watched:
            def __getattr__(self, name: str) -> Any:
                found = getattr(target, name)

                def call(*args: Any, **kwargs: Any) -> Any:
                    before.calls += 1
                    if before.calls == before.at:
                        before.act()
                    return found(*args, **kwargs)

                return call

        return Watched()


class Counted:
    """The reads of a store: their names, and what they asked for."""

    def __init__(self, target: Any) -> None:
        self._target, self.reads = target, list[str]()

    def __getattr__(self, name: str) -> Any:
        if name in ("open_work", "get_many", "page"):
            self.reads.append(name)
        return getattr(self._target, name)


class Shop(Line):
    """Rows of the outbox, relays, and an endpoint that takes down what it gets."""

    def __init__(self) -> None:
        super().__init__(0)
        self.got: list[Told] = []
        self.numbers: dict[str, int] = {}
        self.waits: list[float] = []
        self.sender.send = self._get  # type: ignore[method-assign]

    def row(
        self,
        *events: Told,
        name: str = "invoice.partial",
        commands: tuple[Command, ...] = (),
        bad: bool = False,
        at: int | None = None,
    ) -> OutboxRow:
        """Commit a row; `bad`: it can not be told. `at` is the time that its machine gave it."""
        news = News(self.clock.now if at is None else at)
        for object, sequence in events:
            news.tell(SHOP, name, object, sequence, {"usd": float("nan") if bad else 1})
        for command in commands:
            news.command(command)
        (change,) = news.emit()
        self.store.commit([change])
        return change.row

    def relay(self, store: Any = None, queues: Any = None) -> Relay:
        """A process that has told nothing yet."""
        return Relay(store or self.store, queues or self.queues, self.clock, self.waits.append)

    def open(self) -> set[Work]:
        return {work for work in self.store.work if work.kind == "outbox"}

    def of(self, object: str) -> list[int]:
        """The numbers of its events as they came first."""
        return list(dict.fromkeys(sequence for name, sequence in self.got if name == object))

    def _get(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        event = self.store.get(EventRecord, tenant=SHOP, id=headers["webhook-id"])
        self.got.append((event.object_id, event.sequence))
        return OK


A1, A2, A3 = ("inv_a", 1), ("inv_a", 2), ("inv_a", 3)


def test_the_later_row_is_told_behind_the_earlier_one() -> None:
    """No message came for the earlier one, or it is late."""
    shop = Shop()
    first, second = shop.row(A1), shop.row(A2)
    assert shop.relay().tell(second.id) is True
    shop.take()
    assert shop.got == [A1, A2] and not shop.open()
    assert shop.relay().tell(first.id) is False


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_a_failure_on_the_earlier_row_at_any_call(after: bool) -> None:
    cut = 0
    while True:
        cut += 1
        shop = Shop()
        first, second = shop.row(A1), shop.row(A2)
        cuts = Cuts(cut, after=after)
        with suppress(Unavailable):
            shop.relay(cuts.around(shop.store), cuts.around(shop.queues)).tell(first.id)
        shop.relay().tell(second.id)
        shop.take()
        assert shop.got == [A1, A2] and shop.consistent(), f"cut {cut}"
        shop.clock.pass_ms(MINUTE)
        shop.relay().sweep()  # work whose row is gone
        assert shop.got == [A1, A2] and not shop.open(), f"cut {cut}"
        if cuts.calls < cut:
            break
    assert cut > 5


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_a_failure_on_either_row_while_the_later_one_is_told(after: bool) -> None:
    """What comes in at any time is in order, and the sweep does the rest."""
    cut = 0
    while True:
        cut += 1
        shop = Shop()
        shop.row(A1)
        second = shop.row(A2)
        cuts = Cuts(cut, after=after)
        with suppress(Unavailable):
            shop.relay(cuts.around(shop.store), cuts.around(shop.queues)).tell(second.id)
        shop.take()
        assert shop.got in ([], [A1], [A1, A2]), f"cut {cut}"
        shop.clock.pass_ms(MINUTE)
        shop.relay().sweep()
        shop.take()
        assert shop.got == [A1, A2] and not shop.open() and shop.consistent(), f"cut {cut}"
        if cuts.calls < cut:
            break
    assert cut > 10


def test_two_relays_at_once() -> None:
    """The later row is told, and sent, while another worker is at any call of the earlier one."""
    at = 0
    while True:
        at += 1
        shop = Shop()
        first, second = shop.row(A1), shop.row(A2)

        def meanwhile(shop: Shop = shop, second: OutboxRow = second) -> None:
            shop.relay().tell(second.id)
            shop.take()

        before = Before(at, meanwhile)
        shop.relay(before.around(shop.store), before.around(shop.queues)).tell(first.id)
        if before.calls < at:
            break
        shop.take()
        assert shop.got == [A1, A2] and not shop.open() and shop.consistent(), f"call {at}"
    assert at > 5


def test_the_earlier_row_is_told_by_another_while_the_later_one_is() -> None:
    at = 0
    while True:
        at += 1
        shop = Shop()
        first, second = shop.row(A1), shop.row(A2)
        before = Before(at, partial(shop.relay().tell, first.id))
        shop.relay(before.around(shop.store), before.around(shop.queues)).tell(second.id)
        if before.calls < at:
            break
        shop.take()
        assert shop.got == [A1, A2] and not shop.open() and shop.consistent(), f"call {at}"
    assert at > 10


def test_a_young_row_that_another_worker_is_at_is_waited_for() -> None:
    shop = Shop()
    first, second = shop.row(A1), shop.row(A2)
    waited: list[float] = []

    def told_meanwhile(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            shop.relay().tell(first.id)

    before = shop.store.commits
    Relay(shop.store, shop.queues, shop.clock, told_meanwhile).tell(second.id)
    assert waited == [0.05, 0.05]
    assert shop.store.commits == before + 1 + 1, "each was told by one worker"
    shop.take()
    assert shop.got == [A1, A2]


def test_an_old_row_is_not_waited_for() -> None:
    shop = Shop()
    shop.row(A1)
    shop.clock.pass_ms(2_000)
    shop.relay().tell(shop.row(A2).id)
    assert shop.waits == []


def test_rows_of_several_objects_are_told_in_an_order_that_fits_all() -> None:
    """The balance's event comes behind those of two invoices, whose first ones have not been told."""
    shop = Shop()
    shop.row(("inv_b", 1))
    shop.row(("inv_a", 1))
    shop.row(("inv_b", 2), ("usdt", 1))
    last = shop.row(("inv_a", 2), ("usdt", 2))
    other = shop.row(("inv_c", 1))
    assert shop.relay().tell(last.id) is True
    shop.take()
    assert shop.of("inv_a") == shop.of("inv_b") == shop.of("usdt") == [1, 2]
    assert shop.open() == {outbox_work(other)}, "what is about none of them is told by its own message"


def test_times_do_not_order_rows_but_numbers_do() -> None:
    """A machine whose clock is half a minute ahead wrote the earlier one."""
    shop = Shop()
    shop.row(A1, at=shop.clock.now + 30_000)
    assert shop.relay().tell(shop.row(A2).id) is True
    shop.take()
    assert shop.got == [A1, A2]


def test_two_events_of_one_row_are_sent_in_order_though_more_is_due_at_once() -> None:
    """Ten deliveries are read at a time: those of one millisecond lie in no order of their own."""
    shop = Shop()
    objects = [f"wd_{n}" for n in range(50)]
    shop.relay().tell(shop.row(*((object, number) for object in objects for number in (1, 2))).id)
    shop.take()
    assert [shop.of(object) for object in objects] == [[1, 2]] * 50


def test_events_told_in_one_millisecond_are_sent_in_order_though_more_is_due_at_once() -> None:
    for n in range(20):
        shop = Shop()
        relay = shop.relay()
        for event in (*((f"inv_{n}{m}", 1) for m in range(9)), (f"wd_{n}", 1), (f"wd_{n}", 2), (f"wd_{n}", 3)):
            relay.tell(shop.row(event).id)
        shop.take()
        assert shop.of(f"wd_{n}") == [1, 2, 3]


def test_the_clock_of_another_relay_may_be_ahead() -> None:
    for n in range(20):
        shop = Shop()
        shop.relay().tell(shop.row(*((f"inv_{n}{m}", 1) for m in range(9)), (f"wd_{n}", 1)).id)
        shop.clock.now -= 30
        shop.relay().tell(shop.row((f"wd_{n}", 2)).id)
        shop.take()
        assert shop.of(f"wd_{n}") == [1, 2]


def test_a_clock_that_is_put_back_delays_no_delivery() -> None:
    shop = Shop()
    relay = shop.relay()
    relay.tell(shop.row(A1).id)
    shop.clock.now -= MINUTE
    relay.tell(shop.row(A2).id)
    assert min(one.due_at for one in shop.deliveries()) < shop.clock.now + EARLY_MS


def test_what_a_pause_kept_is_sent_in_order() -> None:
    for n in range(20):
        shop = Shop()
        shop.change(paused=True)
        shop.relay().tell(shop.row(*((f"inv_{n}{m}", 1) for m in range(9)), (f"wd_{n}", 1), (f"wd_{n}", 2)).id)
        shop.take()
        assert shop.got == []
        shop.change(paused=False)
        shop.take(held=True)
        assert shop.of(f"wd_{n}") == [1, 2]


def test_redelivered_events_are_sent_in_order_though_more_is_due_at_once() -> None:
    """Also where a clock that was ahead gave the earlier event the later id."""
    shop = Shop()
    relay = shop.relay()
    objects = [f"inv_{n}" for n in range(30)]
    for number in (1, 2):
        for object in objects:
            relay.tell(shop.row((object, number), at=shop.clock.now + (30_000 if number == 1 and object < "inv_2" else 0)).id)
    shop.take()
    shop.got.clear()
    shop.clock.pass_ms(MINUTE)
    redelivery = Redelivery(shop.store, shop.queues, shop.clock, shop.clock)
    job = redelivery.order(SHOP, HOOK, Wanted(NOW - MINUTE, None, "all"))
    assert RedeliveryRun(shop.store, shop.queues, shop.clock).carry(SHOP, job.id) == "ended"
    shop.take()
    assert [shop.of(object) for object in objects] == [[1, 2]] * 30


def test_an_index_that_shows_the_later_delivery_first_changes_nothing() -> None:
    """The schedule finds endpoints by an eventually consistent index; what is sent is read from the table."""
    shop = Shop()
    relay = shop.relay()
    relay.tell(shop.row(A1).id)
    relay.tell(shop.row(A2).id)
    shop.queues.wakes.clear()
    shop.clock.pass_ms(2 * MINUTE)
    (late,) = [
        delivery_work(d) for d in shop.store.all(Delivery) if shop.store.get(EventRecord, tenant=SHOP, id=d.event_id).sequence == 2
    ]

    class Lagging:
        def __getattr__(self, name: str) -> Any:
            return getattr(shop.store, name)

        def work_by_time(self, *args: Any, **kwargs: Any) -> Page[Work]:
            found = shop.store.work_by_time(*args, **kwargs)
            return Page([work for work in found.items if work == late], found.next)

    assert DueSweep(Lagging(), shop.queues, shop.clock).run() == 1
    shop.follow()
    assert shop.got == [A1, A2]


def test_a_row_that_can_not_be_told_holds_up_later_ones_of_its_object_for_ten_minutes(caplog: pytest.LogCaptureFixture) -> None:
    shop = Shop()
    pay = Command("payouts", "live:ethereum", {"id": "wd_1"})
    bad, later, other = shop.row(A1, bad=True), shop.row(A2, commands=(pay,)), shop.row(("inv_b", 1))
    relay = shop.relay()
    shop.clock.pass_ms(MINUTE)
    assert relay.sweep() == Swept(told=1, failed=2)
    assert shop.queues.commands == [pay], "no payment waits for an event"
    shop.clock.pass_ms(HOLD_MS - 1)
    assert relay.sweep() == Swept(told=0, failed=2)
    assert "holds up later events no more" not in caplog.text
    shop.clock.pass_ms(1)
    assert relay.sweep() == Swept(told=1, failed=1)
    assert f"metric=relay_failed outbox row {bad.id} could not be told and holds up later events no more" in caplog.text
    shop.take()
    assert shop.got == [("inv_b", 1), A2] and shop.open() == {outbox_work(bad)}
    assert relay.tell(shop.row(A3).id) is True, "it is behind the second one"
    assert {later.id, other.id}.isdisjoint(row.id for row in shop.store.all(OutboxRow))


class InNewerForm:
    """The store with a row in a form that only a newer version knows."""

    def __init__(self, store: Any, row: OutboxRow) -> None:
        self._store, self.left = store, {row.id}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, kind: type[Any], /, **key: str) -> Any:
        if kind is OutboxRow and key["id"] in self.left:
            raise TooNew("the OutboxRow has the form 1")
        return self._store.get(kind, **key)

    def get_many(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], /) -> list[Any]:
        return [self.get(kind, **key) for kind, key in wanted]


def test_a_row_in_a_newer_form_holds_up_later_ones_of_its_object_for_ten_minutes() -> None:
    shop = Shop()
    pay = Command("payouts", "live:ethereum", {"id": "wd_1"})
    newer, later = shop.row(A1), shop.row(A2, commands=(pay,))
    shop.row(("inv_b", 1))
    store = InNewerForm(shop.store, newer)
    relay = shop.relay(store)
    shop.clock.pass_ms(MINUTE)
    assert relay.sweep() == Swept(told=1, failed=2)
    assert shop.queues.commands == [pay], "no payment waits for an event"
    with pytest.raises(TooNew):
        relay.tell(later.id)
    shop.clock.pass_ms(HOLD_MS)
    assert relay.sweep() == Swept(told=1, failed=1)
    shop.take()
    assert shop.got == [("inv_b", 1), A2] and shop.open() == {outbox_work(newer)}
    store.left.clear()
    assert relay.sweep() == Swept(told=1, failed=0)
    shop.take()
    assert shop.got == [("inv_b", 1), A2, A1], "late, and not lost"


def test_a_row_that_was_open_for_a_day_holds_up_nothing_in_whatever_process() -> None:
    shop = Shop()
    bad = shop.row(A1, bad=True)
    shop.clock.pass_ms(WINDOW_MS)
    later = shop.row(A2)
    with pytest.raises(ValueError, match="JSON compliant"):
        shop.relay().tell(later.id)
    shop.clock.pass_ms(1)
    assert shop.relay().tell(later.id) is True
    assert shop.open() == {outbox_work(bad)}


def test_a_row_that_was_removed_holds_up_nothing() -> None:
    shop = Shop()
    gone, later = shop.row(A1), shop.row(A2)
    shop.store.commit([Close(outbox_work(gone)), Delete(OutboxRow, {"id": gone.id})])
    assert shop.relay().tell(later.id) is True
    shop.take()
    assert shop.got == [A2]


def test_a_row_that_its_place_may_not_hold_holds_up_nothing() -> None:
    """What sends webhooks may write rows of notices: it can not keep a merchant's events back with them."""
    shop = Shop()
    event = Event("evt_0", SHOP, "invoice.completed", "inv_a", 1, shop.clock.now, {})
    forged = OutboxRow(outbox_id("note_1", [event]), shop.clock.now, (event,))
    shop.store.commit([Emit(forged)])
    assert tags_in(forged.id)
    assert shop.relay().tell(shop.row(A2).id) is True
    assert shop.open() == {outbox_work(forged)} and shop.store.get(EventRecord, tenant=SHOP, id="evt_0") is None


def test_more_rows_than_one_message_tells_are_told_by_several() -> None:
    shop = Shop()
    rows = [shop.row(("usdt", n)) for n in range(1, READ + MOST + 2)]
    assert shop.relay().tell(rows[-1].id) is False
    assert [len(shop.store.all(Delivery)), len(shop.open())] == [MOST, READ + 1]
    assert shop.relay().tell(rows[-1].id) is False
    assert shop.relay().tell(rows[-1].id) is True
    while len(shop.got) < len(rows):
        shop.take()
        shop.clock.pass_ms(MINUTE)
    assert shop.of("usdt") == list(range(1, len(rows) + 1)) and not shop.open()


def test_where_more_rows_are_open_than_are_looked_at_none_waits_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(earlier_rows, "LOOK", 20)
    shop = Shop()
    for n in range(20):
        shop.row((f"inv_{n}", 1), bad=True)
    shop.row(A1, at=shop.clock.now + 1)
    assert shop.relay().tell(shop.row(A2, at=shop.clock.now + 2).id) is True
    assert "over 20 outbox rows are open" in caplog.text


def test_nothing_is_read_for_a_first_event_nor_behind_one_that_this_process_told() -> None:
    shop = Shop()
    shop.row(("inv_other", 1))
    store = Counted(shop.store)
    relay = shop.relay(store)
    for number in (1, 2, 3):
        assert relay.tell(shop.row(("inv_a", number), ("usdt", number)).id) is True
    assert store.reads == ["page"] * 3, "the endpoints"
    assert shop.waits == []


def test_nothing_is_asked_where_no_endpoint_is_told_and_that_proves_nothing_of_earlier_rows() -> None:
    shop = Shop()
    shop.change(events=("invoice.completed",))
    shop.row(A1, name="invoice.completed")
    store = Counted(shop.store)
    relay = shop.relay(store)
    relay.tell(shop.row(A2).id)
    assert store.reads == ["page"] and not shop.deliveries()
    relay.tell(shop.row(A3, name="invoice.completed").id)
    shop.take()
    assert shop.got == [A1, A3]


def test_another_process_asks_once_and_reads_no_row_of_other_objects() -> None:
    shop = Shop()
    shop.relay().tell(shop.row(A1).id)
    for n in range(30):
        shop.row((f"inv_{n}", 1))
    store = Counted(shop.store)
    assert shop.relay(store).tell(shop.row(A2, ("usdt", 7)).id) is True
    assert store.reads == ["page", "open_work"]


def test_a_row_of_several_merchants_is_told_at_once() -> None:
    """None is written: their rows lie in lanes of their own."""
    shop = Shop()
    shop.store.commit([Save(an_endpoint("wh_other", tenant=OTHER))])
    events = tuple(Event(f"evt_{n}", of, "invoice.partial", "inv_a", 2, shop.clock.now, {}) for n, of in enumerate((SHOP, OTHER)))
    row = OutboxRow(outbox_id("out_1", events), shop.clock.now, events)
    assert row.id == "out_1"
    shop.store.commit([Emit(row)])
    store = Counted(shop.store)
    assert shop.relay(store).tell("out_1") is True
    assert "open_work" not in store.reads


def test_a_process_remembers_so_many_objects_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier_rows, "REMEMBERED", 2)
    shop = Shop()
    store = Counted(shop.store)
    relay = shop.relay(store)
    for object in ("inv_a", "inv_b", "inv_c"):
        relay.tell(shop.row((object, 1)).id)
    for object, asked in (("inv_c", 0), ("inv_b", 0), ("inv_a", 1)):
        store.reads.clear()
        assert relay.tell(shop.row((object, 2)).id) is True
        assert store.reads.count("open_work") == asked, object


@pytest.mark.parametrize("seed", range(150))
def test_histories_of_failing_relays_side_by_side(seed: int) -> None:
    """Rows of several objects, told by three processes in any order, at once, and with failures; deliveries are sent meanwhile."""
    shop, rng = Shop(), random.Random(seed)
    objects = [f"inv_{n}" for n in range(rng.randint(1, 4))]
    numbers = dict.fromkeys(objects, 0)
    rows: list[OutboxRow] = []
    relays = [shop.relay() for _ in range(3)]

    def commit() -> None:
        events = []
        for object in rng.sample(objects, rng.randint(1, len(objects))):
            for _ in range(rng.randint(1, 2)):
                numbers[object] += 1
                events.append((object, numbers[object]))
        rows.append(shop.row(*events, at=shop.clock.now + rng.randint(-1_000, 1_000)))

    def tell(depth: int = 0) -> None:
        if not rows:
            return
        relay = rng.choice(relays)
        row, store = rng.choice(rows), shop.store
        faults: Sequence[Any] = rng.choice([(), (Cuts(rng.randint(1, 12), after=rng.random() < 0.5),)])
        if depth < 2 and rng.random() < 0.5:
            act = rng.choice([take, commit, partial(tell, depth + 1)])
            faults = (*faults, Before(rng.randint(1, 8), act))
        for fault in faults:
            store = fault.around(store)
        relay._store = relay._earlier._store = relay._listeners._store = store
        with suppress(Unavailable):
            relay.tell(row.id)
        relay._store = relay._earlier._store = relay._listeners._store = shop.store

    def take() -> None:
        shop.take()

    for _ in range(40):
        rng.choice([commit, tell, tell, take])()
        shop.clock.pass_ms(rng.choice([0, 0, 1, 100, 3_000]))
    shop.clock.pass_ms(MINUTE)
    assert shop.relay().sweep().failed == 0
    for _ in range(10):
        shop.take()
        shop.clock.pass_ms(MINUTE)
    assert not shop.open() and shop.consistent() and not shop.deliveries("pending")
    for object in objects:
        assert shop.of(object) == list(range(1, numbers[object] + 1)), object


def test_ids_of_rows_name_the_lane_of_their_merchant_and_their_objects() -> None:
    events = [Event("evt_1", SHOP, "invoice.partial", of, 1, 0, {}) for of in ("inv_a", "inv_b", "inv_a")]
    id = outbox_id("out_1", events)
    assert len(tags_in(id)) == 2 and tags_in(outbox_id("out_2", events[:1])) < tags_in(id)
    assert outbox_work(OutboxRow(id, 0, tuple(events))).lane == outbox_work(OutboxRow(outbox_id("out_2", events[:1]), 0, ())).lane
    foreign = Event("evt_2", TenantId("mch_2:live"), "invoice.partial", "inv_a", 1, 0, {})
    assert tags_in(outbox_id("out_3", [foreign])).isdisjoint(tags_in(id)), "an object's id is one of its merchant's"
    assert outbox_id("out_4", []) == "out_4" and not tags_in("out_4")
