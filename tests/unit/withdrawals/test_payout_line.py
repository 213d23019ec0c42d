"""The line of payouts: whose turn it is, what waits, what a sweep reads, and what a worker that dies leaves."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from chalicelib.domain.ids import MerchantId, TenantId, asset_id, network_id, tenant_id
from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.webhooks.leases import SweepCursor
from chalicelib.domain.withdrawals.payout_line import (
    BEGUN,
    IDLE_MS,
    READY,
    RETRY_MS,
    WAITING,
    PayoutLine,
    aside_order,
    payout_work,
    ready_order,
    taken_by,
    time_in,
    waiting_order,
)  # fmt: skip
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.ports.changes import Close, Open, Save
from chalicelib.usecases.withdrawals.open_payouts import MOST_ADDED_UP, needed_by_payouts
from chalicelib.usecases.withdrawals.payout_line import FEW, MOST_TRIES, Line, in_turns
from chalicelib.usecases.withdrawals.retry_idle import ASKED_AT_ONCE, SECONDS, IdleRetries
from chalicelib.usecases.withdrawals.steps import moved_in_line, payout_parts
from tests.support.memory_store import HandClock, MemoryQueues, MemoryStore

NETWORK = network_id("live", "ethereum")
ETH = asset_id(NETWORK, "eth")


def tenant(name: str) -> TenantId:
    return tenant_id(MerchantId(f"mch_{name}"), "live")


class World:
    def __init__(self) -> None:
        self.store, self.clock, self.queues = MemoryStore(), HandClock(), MemoryQueues()
        self.line = Line(self.store, self.clock)  # type: ignore[arg-type]
        self.numbers: Counter[str] = Counter()
        self.reads: Counter[str] = Counter()

    def order(self, name: str, line: str | None = "ready", **more: Any) -> Withdrawal:
        """One withdrawal of the merchant `name`: ready, or where `line` says."""
        self.numbers[name] += 1
        who, now = tenant(name), self.clock.now
        where = ready_order(who, now) if line == "ready" else line
        made = Withdrawal(f"wd_{name}{self.numbers[name]:05d}", who, NETWORK, ETH, 10**18, "0x1", ETH, now, now, line=where, **more)
        self.store.commit([Save(made), Open(payout_work(made))])
        return made

    def waits(self, name: str, due: int, **more: Any) -> Withdrawal:
        return self.order(name, waiting_order(tenant(name), due), pending_reason="liquidity", **more)

    def now(self, withdrawal: Withdrawal) -> Withdrawal:
        found = self.store.get(Withdrawal, tenant=withdrawal.tenant, id=withdrawal.id)
        assert isinstance(found, Withdrawal)
        return found

    def signed(self, work: Work) -> str:
        """Its payment is signed: the payout is open no more."""
        who, id = payout_parts(work)
        before = self.store.get(Withdrawal, tenant=who, id=id)
        self.store.commit([Save(replace(before, status="broadcasting", version=before.version + 1)), Close(payout_work(before))])
        return id

    def next(self) -> str | None:
        """One turn that goes well."""
        work = self.line.take(NETWORK)
        return None if work is None else self.signed(work)

    def sweep(self, watch: Callable[[], float] = lambda: 0.0) -> int:
        return IdleRetries(self.store, self.queues, self.clock, watch).sweep(NETWORK)  # type: ignore[arg-type]

    def asked(self) -> Counter[str]:
        """How many messages were sent for each merchant since the last look."""
        found = Counter(command.body["tenant"] for command in self.queues.commands)
        self.queues.commands.clear()
        return Counter({name.removeprefix("mch_").removesuffix(":live"): count for name, count in found.items()})

    def count(self) -> Counter[str]:
        """From now on what is read."""
        store, reads = self.store, self.reads
        real_get, real_open = store.get, store.open_work

        def get(kind: type[Any], /, **key: str) -> Any:
            reads["records"] += 1
            return real_get(kind, **key)

        def open_work(*args: Any, **more: Any) -> list[Work]:
            found = real_open(*args, **more)
            reads["queries"] += 1
            reads["rows"] += len(found)
            return found

        store.get, store.open_work = get, open_work  # type: ignore[method-assign]
        return reads


@pytest.fixture
def world() -> World:
    return World()


def test_turns_are_the_merchants_and_each_ones_oldest_first(world: World) -> None:
    sizes = {"a": 25, "b": 1, "c": 3}
    mine: dict[str, list[str]] = defaultdict(list)
    for name, size in sizes.items():
        for _ in range(size):
            world.clock.pass_ms(1)
            mine[name].append(world.order(name).id)
    order = [world.next() for _ in range(29)]
    assert [id[3] for id in order if id] == list("abcacac" + "a" * 22)
    for name in sizes:
        assert [id for id in order if id and id[3] == name] == mine[name]
    assert world.next() is None


def test_a_turn_reads_one_page_whatever_waits(world: World) -> None:
    for name in ("a", "b"):
        for n in range(3_000):
            if n % 3:
                world.order(name)
            else:
                world.waits(name, world.clock.now + RETRY_MS)
    world.next()
    reads = world.count()
    for expected in "baba":
        before = Counter(reads)
        work = world.line.take(NETWORK)
        assert work is not None and payout_parts(work)[1][3] == expected
        assert reads - before == Counter(
            records=2, queries=reads["queries"] - before["queries"], rows=reads["rows"] - before["rows"]
        )
        assert reads["queries"] - before["queries"] <= 2 and reads["rows"] - before["rows"] <= 2 * FEW
        world.signed(work)


@pytest.mark.parametrize("seed", range(30))
def test_in_turns_is_round_robin(seed: int) -> None:
    world, dice = World(), random.Random(seed)
    names = [f"{n:02d}" for n in range(dice.randrange(1, 12))]
    lots: dict[str, list[str]] = {name: [] for name in names}
    for name in names:
        for _ in range(dice.choice([0, 1, 2, FEW - 1, FEW, FEW + 1, 3 * FEW, 230])):
            world.clock.pass_ms(1)
            lots[name].append(world.order(name).id)
            if dice.random() < 0.2:
                world.waits(name, world.clock.now)
    last = dice.choice([*names, "", "05x"])
    behind = [name for name in names if name > last] + [name for name in names if name <= last]
    expected = [lots[name][n] for n in range(300) for name in behind if n < len(lots[name])]
    found = in_turns(world.store, NETWORK, tenant(last) if last else "")  # type: ignore[arg-type]
    most = dice.choice([1, 5, 1_000_000])
    assert [payout_parts(work)[1] for work in islice(found, most)] == expected[:most]


def test_what_does_not_go_on_lets_the_next_of_its_merchant_go_before_it(world: World) -> None:
    first, second = world.order("a"), world.order("a")
    work = world.line.take(NETWORK)
    assert work is not None and payout_parts(work)[1] == first.id
    world.line.leave(work)
    left = payout_work(world.now(first))
    assert time_in(left) == world.clock.now + IDLE_MS and left in world.store.work
    assert world.next() == second.id and world.next() is None
    world.clock.pass_ms(IDLE_MS)
    assert world.sweep() == 1
    assert world.next() == first.id


def test_what_its_worker_died_with_goes_on_first_and_holds_up_others_three_times_at_most(world: World) -> None:
    world.order("a"), world.order("a"), world.order("b")
    first = world.line.take(NETWORK)
    assert first is not None
    for _ in range(MOST_TRIES - 1):
        assert world.line.take(NETWORK) == first
    other = world.line.take(NETWORK)
    assert other is not None and payout_parts(other)[1][3] == "b"
    world.signed(other)
    assert world.next() == "wd_a00002", "and its merchant's next one does not wait for it either"
    assert world.next() is None


def test_what_left_the_line_and_came_back_has_no_turn_before_others(world: World) -> None:
    """It was the last in hand, and nobody died."""
    first = world.order("a")
    work = world.line.take(NETWORK)
    assert work is not None
    world.line.leave(work)
    world.order("b")
    world.clock.pass_ms(IDLE_MS)
    world.sweep()
    assert [world.next(), world.next()] == ["wd_b00001", first.id]


def test_leaving_is_safe_whatever_came_of_it(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Paid, told to wait, or taken by another worker meanwhile: nothing is opened again, and nothing is closed."""
    made = world.order("a")
    work = world.line.take(NETWORK)
    assert work is not None
    waits = replace(made, line=waiting_order(made.tenant, 5), version=2)
    world.store.commit(moved_in_line(made, waits))
    before = set(world.store.work)
    world.line.leave(work)
    assert set(world.store.work) == before and world.now(made) == waits
    world.signed(payout_work(waits))
    world.line.leave(work)
    assert not world.store.work and "ALARM" not in caplog.text


def test_a_row_that_no_withdrawal_stands_behind_is_told_and_holds_up_nobody(world: World, caplog: pytest.LogCaptureFixture) -> None:
    made, behind = world.order("a"), world.order("a")
    world.store.records[Withdrawal, made.tenant, made.id] = replace(made, status="confirmed")
    work = world.line.take(NETWORK)
    assert work is not None and payout_parts(work)[1] == made.id
    world.line.leave(work)
    assert "ALARM" in caplog.text and work not in world.store.work
    assert world.next() == behind.id


def test_a_sweep_over_ten_thousand_that_wait_reads_a_few_hundred(world: World) -> None:
    for n in range(10_000):
        world.waits(f"{n % 7}", world.clock.now + RETRY_MS)
    reads = world.count()
    assert world.sweep() == 0
    idle = Counter(reads)
    world.clock.pass_ms(RETRY_MS)
    assert world.sweep() == ASKED_AT_ONCE
    due = reads - idle
    print(f"nothing due: {dict(idle)}; 50 put in line: {dict(due)}")
    assert idle["records"] == 2 and idle["rows"] <= 7 * ASKED_AT_ONCE
    assert due["records"] <= ASKED_AT_ONCE + 2 and due["rows"] <= 7 * ASKED_AT_ONCE and due["queries"] <= 12
    assert max(world.asked().values()) == 8


def test_everybody_who_waits_has_a_turn_before_anybody_has_it_again(world: World) -> None:
    many = [world.waits("a", world.clock.now) for _ in range(3 * ASKED_AT_ONCE)]
    world.waits("b", world.clock.now)
    assert world.sweep() == ASKED_AT_ONCE and world.asked() == {"a": ASKED_AT_ONCE - 1, "b": 1}
    seen: Counter[str] = Counter()
    for _ in range(4):
        while (work := world.line.take(NETWORK)) is not None:
            seen[payout_parts(work)[1]] += 1
            before = world.store.get(Withdrawal, tenant=payout_parts(work)[0], id=payout_parts(work)[1])
            later = waiting_order(before.tenant, world.clock.now + RETRY_MS)
            world.store.commit(moved_in_line(before, replace(before, line=later, version=before.version + 1)))
        world.sweep()
    assert {seen[each.id] for each in many} == {1}


def test_a_sweep_keeps_its_place_among_many_merchants(world: World) -> None:
    for n in range(3 * ASKED_AT_ONCE):
        for _ in range(2):
            world.waits(f"{n:03d}", world.clock.now)
    served: Counter[str] = Counter()
    for _ in range(3):
        assert world.sweep() == ASKED_AT_ONCE
        served += world.asked()
    assert set(served.values()) == {1} and len(served) == 3 * ASKED_AT_ONCE


def test_a_sweep_ends_in_its_time_and_goes_on_there(world: World) -> None:
    for n in range(30):
        world.waits(f"{n:03d}", world.clock.now)
    seconds = iter(float(n) for n in range(1_000))
    assert world.sweep(lambda: next(seconds) * SECONDS / 5) == 5
    assert set(world.asked()) == {f"{n:03d}" for n in range(5)}
    cursor = world.store.get(SweepCursor, id=f"payouts|{NETWORK}")
    assert cursor.places == (tenant("004"), "")
    world.sweep(lambda: next(seconds) * SECONDS / 5)
    assert set(world.asked()) == {f"{n:03d}" for n in range(5, 10)}


def test_what_is_in_line_and_whose_message_was_lost_is_asked_for(world: World) -> None:
    for _ in range(3):
        world.order("a")
    assert world.sweep() == 0
    world.clock.pass_ms(IDLE_MS)
    world.order("b")
    assert world.sweep() == 3
    world.queues.commands.clear()


def test_what_was_open_before_there_was_a_line_is_put_in_it(world: World) -> None:
    old = [world.order("a", None, pending_reason="liquidity"), world.order("b", None, status="processing")]
    assert [work.order for work in map(payout_work, old)] == [f"{each.created_at:015d}" for each in old]
    assert world.next() is None
    assert world.sweep() == 1
    assert (world.next(), world.next()) == (old[0].id, None)
    world.queues.commands.clear()
    world.clock.pass_ms(IDLE_MS)
    assert world.sweep() == 1, "what was begun is asked for by name"
    assert [command.body for command in world.queues.commands] == [{"tenant": old[1].tenant, "id": old[1].id}]


def test_what_was_begun_moves_once_and_to_the_end(world: World) -> None:
    """Whoever reads the lane page by page meets it, whenever it moves."""
    made = world.order("a")
    work = world.line.take(NETWORK)
    assert work is not None
    begun = replace(made, status="processing", version=2)
    world.store.commit([Save(begun)])
    world.line.leave(work)
    left = payout_work(world.now(made))
    assert left.order.startswith(BEGUN) and READY < WAITING < BEGUN and left in world.store.work
    assert world.next() is None, "it is no turn of its merchant's"
    waits = replace(world.now(made), pending_reason="liquidity")
    assert aside_order(waits, world.clock.now + RETRY_MS) == left.order
    assert world.sweep() == 0
    world.clock.pass_ms(IDLE_MS)
    for _ in range(3):
        assert world.sweep() == 1
        assert payout_work(world.now(made)) == left
    assert {tuple(command.body) for command in world.queues.commands} == {("tenant", "id")}


def test_what_was_begun_out_of_turn_goes_to_the_end_too(world: World) -> None:
    made = world.waits("a", world.clock.now)
    world.store.commit([Save(replace(made, status="processing", pending_reason=None, version=2))])
    world.sweep()
    assert payout_work(world.now(made)).order.startswith(BEGUN)


@pytest.mark.parametrize("merchants", [1, 3 * ASKED_AT_ONCE])
def test_many_that_were_begun_are_asked_for_page_by_page(world: World, merchants: int) -> None:
    for n in range(3 * ASKED_AT_ONCE):
        made = world.order(f"{n % merchants:03d}", status="processing")
        aside = replace(made, line=aside_order(made, 0), version=2)
        world.store.commit(moved_in_line(made, aside))
    world.clock.pass_ms(IDLE_MS)
    for _ in range(3):
        assert world.sweep() == ASKED_AT_ONCE
    assert len({command.body["id"] for command in world.queues.commands}) == 3 * ASKED_AT_ONCE


def test_merchants_whose_time_has_not_come_delay_nobody(world: World) -> None:
    for n in range(3 * ASKED_AT_ONCE):
        world.waits(f"{n:03d}", world.clock.now + RETRY_MS)
    due = world.waits("999", world.clock.now)
    assert world.sweep() == 1 and world.queues.commands[0].body["id"] == due.id


def test_nothing_is_asked_for_while_payments_are_stopped(world: World) -> None:
    world.waits("a", 0)
    stopped = PaymentSwitch("live", True, "a drill", 1, "key", version=1)
    world.store.commit([Save(stopped)])
    assert world.sweep() == 0
    world.store.commit([Save(replace(stopped, stopped=False, version=2))])
    assert world.sweep() == 1


def test_what_open_payouts_take_is_added_up_without_reading_them(world: World) -> None:
    for _ in range(1_000):
        world.order("a", priority="urgent")
    world.order("b", None)
    (one,) = {taken_by(payout_work(w)) for w in world.store.all(Withdrawal) if w.line is not None}
    assert one is not None and (one.slug, one.units, one.fee(10)) == ("eth", 10**18, 20)
    reads = world.count()
    store: Any = world.store
    assert needed_by_payouts(store, NETWORK, lambda taken: taken.units, 10**30) == 1_001 * 10**18
    assert reads["records"] == 1
    # Enough is enough: one page.
    before = reads["queries"]
    found = needed_by_payouts(store, NETWORK, lambda taken: taken.units, 150 * 10**18)
    assert found is not None and 150 * 10**18 <= found < 1_001 * 10**18
    assert reads["queries"] - before == 2


def test_more_than_can_be_added_up_is_no_number(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from chalicelib.usecases.withdrawals import open_payouts

    assert MOST_ADDED_UP >= 100_000
    monkeypatch.setattr(open_payouts, "MOST_ADDED_UP", 400)
    for _ in range(700):
        world.order("a")
    store: Any = world.store
    assert needed_by_payouts(store, NETWORK, lambda taken: taken.units, 10**30) is None
    assert needed_by_payouts(store, NETWORK, lambda taken: taken.units, 10**18) == 200 * 10**18


def test_two_workers_take_two_turns(world: World) -> None:
    """The second finds the first one's payment in hand, which does no harm: both go on with the same bytes."""
    world.order("a"), world.order("b")
    first, again = world.line.take(NETWORK), world.line.take(NETWORK)
    assert first == again
    assert world.store.get(PayoutLine, network=NETWORK).tries == 2
