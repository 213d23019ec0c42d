"""Later events of an object wait for the earlier ones, other objects do not. It costs nothing where nothing waits."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.domain.webhooks.deliveries import Delivery, delivery_for, delivery_work, outlived
from chalicelib.domain.webhooks.endpoints import EventRecord, event_record
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.webhooks.leases import LEASE_MS, Turn
from chalicelib.domain.webhooks.ordering import FREE_AFTER, MOST_BLOCKERS, Blocker, Blockers, object_key
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.webhooks.delivery_attempts import Answer, Deliveries
from chalicelib.usecases.webhooks.leases import Leases
from chalicelib.usecases.webhooks.redelivery import Redelivery
from tests.support.memory_store import Cuts
from tests.support.secrets import PlainSeals
from tests.support.webhooks import NOW, SHOP
from tests.unit.webhooks.line import BAD, HOOK, OK, Line

FULL = os.environ.get("SWEEP") == "full"
DAY = 86_400_000


class Shop(Line):
    """An endpoint that answers each event as a test says, and checks the order of what it gets."""

    def __init__(self, answer: Callable[[str, int], Answer] = lambda object, sequence: OK) -> None:
        super().__init__(0)
        self.answer, self.got = answer, list[tuple[str, int]]()
        self.batches: list[list[tuple[str, int]]] = []
        self.sender.send = self._get  # type: ignore[method-assign]
        self.working(self.store)

    def working(self, store: Any) -> None:
        """Take leases with this store from now on."""
        deliveries = Deliveries(store, self.clock, self.sender, self.queues, lambda: 0.0)
        self.turns = Leases(store, self.queues, self.clock, deliveries, PlainSeals(), self._together)

    def tell(self, object: str, *sequences: int) -> None:
        """Store an event and its delivery, as the relay does."""
        for sequence in sequences:
            self.clock.pass_ms(1)
            id = f"evt_{object}-{sequence}"
            event = event_record(Event(id, SHOP, "invoice.partial", object, sequence, NOW, {"id": object}), "2026-01-02", NOW)
            delivery = delivery_for(event, self.endpoint, self.clock.now)
            self.store.commit([Save(event), Save(delivery), Open(delivery_work(delivery))])

    def run(self, ms: int = 0) -> None:
        """Let time pass, second by second, and do what is due."""
        until = self.clock.now + ms
        while True:
            self.take()
            if self.clock.now >= until:
                return
            self.clock.pass_ms(min(1_000, until - self.clock.now))

    def of(self, object: str) -> list[int]:
        return [sequence for name, sequence in self.got if name == object]

    def _together(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        self.batches.append([])
        return [job() for job in jobs]

    def _get(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        event = self.store.get(EventRecord, tenant=SHOP, id=headers["webhook-id"])
        self._check(event)
        self.got.append((event.object_id, event.sequence))
        self.batches[-1].append((event.object_id, event.sequence))
        return self.answer(event.object_id, event.sequence)

    def _check(self, event: EventRecord) -> None:
        """Whatever of the object is stored and earlier has ended, or failed three times. All else would be the fault looked for."""
        for other in self.store.all(Delivery):
            told = self.store.get(EventRecord, tenant=SHOP, id=other.event_id)
            earlier = told.object_id == event.object_id and told.sequence < event.sequence
            assert not earlier or other.status != "pending" or len(other.attempts) >= FREE_AFTER, (event.id, other)


def fails(*events: tuple[str, int], times: int = 99) -> Callable[[str, int], Answer]:
    """Answers 500 to these events, so often."""
    left = dict.fromkeys(events, times)

    def answer(object: str, sequence: int) -> Answer:
        if not left.get((object, sequence)):
            return OK
        left[object, sequence] -= 1
        return BAD

    return answer


def test_events_of_one_object_that_are_due_together_go_one_after_the_other() -> None:
    shop = Shop()
    shop.tell("inv_a", 1, 2, 3)
    shop.tell("inv_b", 1, 2)
    assert shop.take() == "done"
    assert shop.batches == [[("inv_a", 1), ("inv_b", 1)], [("inv_a", 2), ("inv_b", 2)], [("inv_a", 3)]]
    assert shop.consistent() and shop.turn.blockers is None


def test_the_relay_may_store_them_in_any_order() -> None:
    shop = Shop()
    for sequence in (3, 1, 2):
        shop.tell("inv_a", sequence)
    shop.take()
    assert shop.of("inv_a") == [1, 2, 3]


def test_a_later_event_waits_until_the_earlier_one_is_answered() -> None:
    shop = Shop(fails(("inv_a", 1), times=2))
    shop.tell("inv_a", 1)
    shop.run()
    shop.tell("inv_a", 2, 3)
    shop.tell("inv_b", 1)
    shop.run(4_000)
    assert shop.got == [("inv_a", 1), ("inv_b", 1)]
    waiting = [d for d in shop.deliveries("pending") if d.behind]
    assert [d.event_id for d in waiting] == ["evt_inv_a-2", "evt_inv_a-3"]
    shop.run(DAY // 100)
    assert shop.of("inv_a") == [1, 1, 1, 2, 3]
    assert len(shop.deliveries("delivered")) == 4
    assert shop.consistent() and shop.turn.blockers is None and not shop.store.work


def test_it_waits_for_three_failures_and_no_longer() -> None:
    shop = Shop(fails(("inv_a", 1)))
    shop.tell("inv_a", 1, 2)
    shop.run(36_000)
    assert shop.of("inv_a") == [1, 1, 1, 2]
    assert shop.turn.blockers is None
    shop.tell("inv_a", 3)
    shop.run()
    assert shop.of("inv_a")[-1] == 3, "what failed three times holds up nothing more"
    shop.run(DAY)
    assert shop.of("inv_a").count(1) == 9 and len(shop.deliveries("dead")) == 1 and shop.consistent()


def test_one_blocked_object_of_fifty_holds_up_none_of_the_others() -> None:
    shop = Shop(fails(("inv_00", 1)))
    for sequence in range(1, 5):
        for n in range(50):
            shop.tell(f"inv_{n:02d}", sequence)
    began = shop.clock.now
    shop.take()
    assert shop.clock.now == began
    assert all(shop.of(f"inv_{n:02d}") == [1, 2, 3, 4] for n in range(1, 50))
    assert shop.of("inv_00") == [1]
    shop.run(36_000)
    assert shop.of("inv_00") == [1, 1, 1, 2, 3, 4] and shop.consistent()


def test_a_busy_object_does_not_hide_what_is_due_of_others() -> None:
    """Three hundred events of one balance are due before one of an invoice: it does not wait until they are sent."""
    shop = Shop()
    shop.tell("ethereum:usdt", *range(1, 301))
    shop.tell("inv_a", 1)
    shop.take()
    shop.run(60_000)
    assert shop.of("ethereum:usdt") == list(range(1, 301))
    assert shop.got.index(("inv_a", 1)) < 40
    assert shop.consistent() and shop.turn.blockers is None


def test_an_earlier_event_that_is_stored_late_goes_before_those_that_wait() -> None:
    shop = Shop(fails(("inv_a", 2), times=1))
    shop.tell("inv_a", 2)
    shop.run()
    shop.tell("inv_a", 4)
    shop.run()
    shop.tell("inv_a", 3, 1)
    shop.run(10_000)
    assert shop.of("inv_a") == [2, 1, 2, 3, 4] and shop.consistent()


def test_two_blockers_of_one_object_both_count() -> None:
    shop = Shop(fails(("inv_a", 2), ("inv_a", 1), times=2))
    shop.tell("inv_a", 2)
    shop.run()
    shop.tell("inv_a", 1)
    shop.run()
    shop.tell("inv_a", 3)
    shop.run(120_000)
    assert shop.of("inv_a")[-2:] == [2, 3] and len(shop.deliveries("delivered")) == 3 and shop.consistent()


def test_a_worker_that_dies_leaves_the_order_to_the_next_one() -> None:
    died = False

    def answer(object: str, sequence: int) -> Answer:
        nonlocal died
        if not died:
            died = True
            raise KeyboardInterrupt
        return OK

    shop = Shop(answer)
    shop.tell("inv_a", 1, 2)
    with pytest.raises(KeyboardInterrupt):
        shop.take()
    shop.clock.pass_ms(LEASE_MS)
    shop.take()
    shop.tell("inv_a", 3)
    shop.run(4_000)
    assert shop.of("inv_a") == [1]
    shop.run(10_000)
    assert shop.of("inv_a") == [1, 1, 2, 3] and shop.consistent()


def test_a_worker_that_dies_between_an_outcome_and_its_lease_leaves_what_waits_in_order() -> None:
    """Calls of the store are cut, before and after they took effect, while the first event fails and others wait for it: every call
    with `SWEEP=full`, otherwise every sixth."""
    calls = _story(Cuts())
    assert calls > 30
    for n in range(1, calls + 1, 1 if FULL else 6):
        for after in (False, True):
            _story(Cuts(n, after=after))


def _story(cuts: Cuts) -> int:
    shop = Shop(fails(("inv_a", 1), times=2))
    shop.working(cuts.around(shop.store))
    for act in (
        lambda: shop.tell("inv_a", 1),
        lambda: shop.tell("inv_a", 2, 3),
        lambda: shop.tell("inv_b", 1),
        lambda: shop.clock.pass_ms(5_000),
        lambda: shop.tell("inv_a", 4),
        lambda: shop.clock.pass_ms(30_000),
        lambda: shop.tell("inv_a", 5),
    ):
        act()
        _taken(shop)
    for _ in range(200):
        shop.clock.pass_ms(LEASE_MS)
        _taken(shop)
    assert len(shop.deliveries("delivered")) == 6, shop.deliveries()
    assert shop.consistent() and not shop.store.work and shop.turn.blockers is None
    return cuts.calls


def _taken(shop: Shop) -> None:
    try:
        shop.take()
    except Unavailable:
        shop.take()


@settings(max_examples=60 if FULL else 15, deadline=None)
@given(st.integers(0, 2**32))
def test_random_failures_keep_the_order_and_lose_nothing(seed: int) -> None:
    """Events of some objects come in order, answers are random, workers die, the store fails: `Shop` checks each request."""
    rng, broken = random.Random(seed), True

    def answer(object: str, sequence: int) -> Answer:
        if broken and rng.random() < 0.03:
            raise KeyboardInterrupt
        return BAD if broken and rng.random() < 0.4 else OK

    shop = Shop(answer)
    store = Flaky(shop.store, lambda: broken and rng.random() < 0.02)
    shop.working(store)
    told: defaultdict[str, int] = defaultdict(int)
    told["inv_0"] = 1
    shop.tell("inv_0", 1)
    for _ in range(60):
        for _ in range(rng.randrange(4)):
            object = f"inv_{rng.randrange(4)}"
            told[object] += 1
            shop.tell(object, told[object])
        try:
            shop.take()
        except (Unavailable, KeyboardInterrupt):
            shop.clock.pass_ms(LEASE_MS)
        shop.clock.pass_ms(rng.choice((0, 1_000, 5_000, 40_000)))
    broken = False
    for _ in range(30):
        shop.clock.pass_ms(DAY // 10)
        shop.take()
    ended = shop.deliveries("delivered") + shop.deliveries("dead")
    assert len(ended) == sum(told.values()), shop.deliveries("pending")
    assert shop.consistent() and not shop.deliveries("pending") and shop.turn.blockers is None


class Flaky:
    """A store that fails by chance, before a call took effect or after."""

    def __init__(self, store: Any, fails: Callable[[], bool]) -> None:
        self._store, self._fails = store, fails

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._fails():
                raise Unavailable("before")
            found = method(*args, **kwargs)
            if self._fails():
                raise Unavailable("after")
            return found

        return call


def test_what_a_pause_kept_goes_before_what_comes_after_it() -> None:
    shop = Shop()
    shop.change(paused=True)
    shop.tell("inv_a", *range(1, 16))
    shop.run()
    assert not shop.got and all(d.held for d in shop.deliveries("pending"))
    shop.change(paused=False)
    shop.tell("inv_a", 16)
    shop.take()  # the message of the new event comes before that of the pause's end
    assert shop.of("inv_a") == list(range(1, 17)) and shop.consistent()
    assert shop.turn.drained_at == shop.endpoint.unheld_at
    assert _calls(shop) == _calls(Shop()), "drained once, nothing looks for parked ones again"


def test_what_waits_is_cancelled_with_the_endpoint() -> None:
    shop = Shop(fails(("inv_a", 1)))
    shop.tell("inv_a", 1, 2, 3)
    shop.run()
    shop.tell("inv_a", 4)
    shop.run()
    shop.webhooks.update(SHOP, HOOK, status="disabled")
    shop.run(6_000)
    assert {d.status for d in shop.deliveries()} == {"cancelled"} and len(shop.got) == 1
    assert not [work for work in shop.store.work if work.kind == "delivery"] and shop.turn.blockers is None


def test_a_redelivery_by_hand_does_not_overtake() -> None:
    shop = Shop(fails(("inv_a", 1)))
    redelivery = Redelivery(shop.store, shop.queues, shop.clock, shop.clock)
    shop.tell("inv_a", 1, 2)
    shop.run()
    first, waiting = sorted(shop.deliveries("pending"), key=lambda d: d.event_id)
    assert redelivery.redeliver(SHOP, waiting.id) == waiting, "it goes when its turn comes, and not before"
    shop.run()
    redelivery.redeliver(SHOP, first.id)
    shop.run()
    assert shop.of("inv_a") == [1, 1], "the earlier one itself is sent at once"
    shop.run(36_000)
    assert shop.of("inv_a")[-1] == 2 and shop.consistent()


def test_a_waiting_delivery_that_expired_holds_up_nobody() -> None:
    shop = Shop(fails(("inv_a", 1), times=1))
    shop.tell("inv_a", 1, 2, 3)
    shop.run()
    shop.tell("inv_a", 4)
    shop.run()
    gone = next(d for d in shop.deliveries("pending") if d.event_id == "evt_inv_a-2")
    del shop.store.records[Delivery, SHOP, gone.id]
    shop.run(10_000)
    assert shop.of("inv_a") == [1, 1, 3, 4] and shop.consistent()


def _calls(shop: Shop) -> int:
    """How many calls of the store a delivery costs, alone."""
    cuts = Cuts()
    shop.working(cuts.around(shop.store))
    shop.tell("inv_last", 7)
    shop.take()
    assert ("inv_last", 7) in shop.got
    return cuts.calls


def test_nothing_is_read_or_written_for_the_order_where_nothing_waits() -> None:
    """One query, one read of many, the lease taken, the outcome with the lease given back: as before there was an order."""
    assert _calls(Shop()) == 4
    blocked = Shop(fails(("inv_a", 1)))
    blocked.tell("inv_a", 1, 2)
    blocked.run()
    assert _calls(blocked) == 5, "other objects pay for one that waits that the lease is given back by itself"


def test_a_failure_costs_nothing_more_where_nothing_waits_for_it() -> None:
    counts = []
    for answer in (fails(), fails(("inv_a", 7), times=1)):
        shop, cuts = Shop(answer), Cuts()
        shop.working(cuts.around(shop.store))
        shop.tell("inv_a", 7)
        shop.take()
        counts.append(cuts.calls)
        cuts.calls = 0
        shop.clock.pass_ms(5_000)
        shop.take()
        counts.append(cuts.calls)
    assert counts == [4, 1 + 1, 5, 5]


def test_blockers_are_bounded_and_those_with_followers_stay() -> None:
    blockers = Blockers()
    for n in range(MOST_BLOCKERS + 5):
        blockers = blockers.plus(Blocker(object_key(f"inv_{n}"), 1, f"dlv_{n:026d}"))
    assert blockers.full and len(blockers.all) == MOST_BLOCKERS
    assert len(blockers.plus(Blocker(object_key("inv_x"), 1, "dlv_x", followed=True)).all) == MOST_BLOCKERS + 1
    assert Blockers.stored(blockers.texts) == blockers and Blockers.stored(None).texts is None
    assert sum(len(text) for text in blockers.texts or ()) < 16_000


def test_a_lease_without_blockers_is_stored_as_before() -> None:
    assert Turn(SHOP, HOOK, 1).blockers is None and replace(Turn(SHOP, HOOK, 1), blockers=Blockers().texts).blockers is None


def test_the_row_of_a_waiting_delivery_tells_its_age() -> None:
    shop = Shop()
    shop.tell("inv_a", 1)
    waiting = shop.deliveries()[0].parked_behind("AAAAAAAA000000000000002")
    work = delivery_work(waiting)
    assert not outlived(work, shop.clock.now) and outlived(work, shop.clock.now + 31 * DAY)
    assert work.order > "held~" and "#" not in work.order
