"""Who keeps a network busy, for how long, and which of its ticks run."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.scanning.ticks import (
    DEAD_MS,
    GAP_MS,
    HASTE_MS,
    LINKS_PART,
    NOTED_MS,
    OPEN_MS,
    WAIT_MS,
    Busy,
    TickLease,
    is_late,
    planned,
)
from chalicelib.domain.work import Work, WorkKind, time_order
from chalicelib.usecases.ports.changes import Close, Conflict, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.scanning.ticks import Ticks
from tests.support.memory_store import HandClock, MemoryStore

HOUR = 3_600_000
DAY = 24 * HOUR
MOST = 6 * HOUR
NETWORKS = {network.slug: replace(network, status="active") for network in default_networks("live")}
ETHEREUM, BITCOIN = NETWORKS["ethereum"], NETWORKS["bitcoin"]


class Sent:
    """The port TickQueue: the moments that were asked for."""

    def __init__(self) -> None:
        self.moments: list[tuple[NetworkId, list[int]]] = []
        self.down = False

    def tick(self, network: NetworkId, moments: Sequence[int], now: int) -> None:
        assert moments and all(now < at <= now + 58_000 for at in moments)
        if self.down:
            raise Unavailable("the queue did not answer")
        self.moments.append((network, list(moments)))


class Bench:
    """Ticks on a store in memory, in as many processes as a test wants."""

    def __init__(self, most_ms: int | None = MOST) -> None:
        self.store, self.clock, self.queue, self.most_ms = MemoryStore(), HandClock(20_000 * DAY + HOUR), Sent(), most_ms
        self.here = self.process()

    def process(self) -> Ticks:
        return Ticks(self.store, self.clock, self.queue, self.most_ms)

    def ask(self, network: Network = ETHEREUM, age: int = 0, *, by_link: bool = False) -> None:
        self.here.ask(network, self.clock.now - age, self.clock.now, by_link=by_link)

    def record(self, network: Network = ETHEREUM) -> Busy:
        return self.store.get(Busy, network=network.id) or Busy(network.id)

    def busy(self, network: Network = ETHEREUM) -> bool:
        return self.record(network).until > self.clock.now

    def poll(self, network: Network = ETHEREUM, cursor: Cursor | None = None) -> list[int]:
        """The moments that a poll asks for, from its beginning on."""
        before = len(self.queue.moments)
        self.here.plan(network, self.clock.now, self.clock.now, cursor)
        return [at - self.clock.now for _, moments in self.queue.moments[before:] for at in moments]

    def open(self, kind: WorkKind, order: str, network: Network = ETHEREUM) -> Work:
        work = Work(kind, network.id, order, "x")
        self.store.commit([Open(work)])
        return work


@pytest.fixture
def bench() -> Bench:
    return Bench()


def a_cursor(number: int, network: Network = ETHEREUM) -> Cursor:
    return Cursor(network.id, number, "0x01", 0, number, 0)


def test_who_asks_first_sends_the_ticks_of_the_minute(bench: Bench) -> None:
    bench.ask()
    ((network, moments),) = bench.queue.moments
    assert (network, [at - bench.clock.now for at in moments]) == (ETHEREUM.id, list(range(2_000, 58_001, 2_000)))
    assert bench.record().asked_until == bench.clock.now + WAIT_MS
    for _ in range(3):
        bench.clock.pass_ms(NOTED_MS)
        bench.ask()
        bench.process().ask(ETHEREUM, bench.clock.now, bench.clock.now)
    assert len(bench.queue.moments) == 1, "it is busy: the poll sends them"
    assert bench.poll() == list(range(2_000, 58_001, 2_000))


def test_utxo_networks_have_half_as_many(bench: Bench) -> None:
    bench.ask(BITCOIN)
    assert bench.poll(BITCOIN) == list(range(4_000, 58_001, 4_000))


def test_a_poll_that_took_long_sends_what_is_still_to_come_and_no_more_than_somebody_waits() -> None:
    start = 1_000_000
    assert planned("evm", start, start + 51_000, start + DAY) == [start + at for at in (52_000, 54_000, 56_000, 58_000)]
    assert planned("evm", start, start, start + 5_000) == [start + 2_000, start + 4_000]
    assert planned("evm", start, start, start) == []


def test_an_ask_counts_from_when_somebody_was_asked_to_pay(bench: Bench) -> None:
    bench.ask(age=WAIT_MS - 60_000)
    assert bench.record().asked_until == bench.clock.now + 60_000
    bench.clock.pass_ms(61_000)
    assert (bench.busy(), bench.poll()) == (False, [])
    bench.ask(age=WAIT_MS)
    assert not bench.busy(), "it was half an hour ago"
    bench.ask(age=-DAY)
    assert bench.record().asked_until == bench.clock.now + WAIT_MS, "a clock that is ahead promises no more"


def test_what_is_written_and_read_for_asks_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand pages that ask every second, in three processes, for invoices of every age."""
    reads, writes = 0, 0
    get, commit = bench.store.get, bench.store.commit

    def counted_get(*args: Any, **key: str) -> Any:
        nonlocal reads
        reads += 1
        return get(*args, **key)

    def counted_commit(changes: Any) -> None:
        nonlocal writes
        writes += 1
        commit(changes)

    monkeypatch.setattr(bench.store, "get", counted_get)
    monkeypatch.setattr(bench.store, "commit", counted_commit)
    processes, luck = [bench.process() for _ in range(3)], random.Random(17)
    seconds = 600
    for _ in range(seconds):
        bench.clock.pass_ms(1_000)
        for _ in range(10):
            luck.choice(processes).ask(ETHEREUM, bench.clock.now - luck.randrange(WAIT_MS), bench.clock.now)
    assert 0 < writes <= seconds * 1_000 / NOTED_MS
    assert reads <= 3 * (seconds * 1_000 / NOTED_MS + 1)


def test_a_stranger_with_eight_invoices_keeps_no_network_busy_for_longer_than_the_bound(bench: Bench) -> None:
    """He makes new ones for ever, and leaves their pages open."""
    busy = dict.fromkeys(NETWORKS, 0)
    begin = bench.clock.now - HOUR
    bench.clock.now = begin
    while bench.clock.now < begin + 2 * DAY:
        for slug, network in NETWORKS.items():
            bench.ask(network)
            busy[slug] += bench.busy(network)
        bench.clock.pass_ms(60_000)
    assert set(busy.values()) == {2 * MOST // 60_000}, "minutes of two days"


def minutes_of_asks(bench: Bench, hours: int, *, by_link: bool) -> int:
    busy = 0
    for _ in range(hours * 60):
        bench.ask(by_link=by_link)
        busy += bench.busy()
        bench.clock.pass_ms(60_000)
    return busy


def test_a_stranger_at_a_payment_link_leaves_others_their_hours(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """A new invoice whenever the last one is old. Payers whom a key let in have the rest of the day's hours, and both ends are told
    of, once a day."""
    caplog.set_level(logging.WARNING)
    bench.clock.now -= HOUR
    for day in (1, 2):
        assert minutes_of_asks(bench, 10, by_link=True) == MOST // LINKS_PART // 60_000
        assert caplog.text.count("ALARM") == 2 * day - 1
        assert "ALARM live:ethereum: asks alone kept it busy for 3.0 hours today, and do no more (payment links" in caplog.text
        assert minutes_of_asks(bench, 14, by_link=False) == (MOST - MOST // LINKS_PART) // 60_000
        assert caplog.text.count("ALARM") == 2 * day
        assert "for 6.0 hours today, and do no more (nobody" in caplog.text


def test_a_page_of_a_payment_link_that_asks_all_the_time_hides_no_other_payer(bench: Bench) -> None:
    minutes_of_asks(bench, 10, by_link=True)
    for _ in range(3):
        bench.ask(by_link=True)
        bench.clock.pass_ms(NOTED_MS // 4)
    assert not bench.busy()
    bench.ask(by_link=True)
    bench.ask()
    assert bench.busy()


def test_hours_that_are_used_up_on_a_simulated_network_are_no_alarm(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    (simulated,) = (network for network in default_networks("test") if network.slug == "ethereum")
    for _ in range(10 * 60):
        bench.ask(replace(simulated, status="active"))
        bench.clock.pass_ms(60_000)
    assert "do no more" in caplog.text and "ALARM" not in caplog.text


def test_open_payments_use_up_nothing_of_the_bound(bench: Bench) -> None:
    work = bench.open("deposit", f"{100:015d}")
    for _ in range(10 * 60):
        bench.ask()
        assert bench.poll(cursor=a_cursor(100))
        bench.clock.pass_ms(60_000)
    assert bench.record().alone_ms <= WAIT_MS
    bench.store.commit([Close(work)])
    minutes = 0
    while bench.busy():
        bench.ask()
        bench.clock.pass_ms(60_000)
        minutes += 1
    assert minutes == pytest.approx(MOST / 60_000, abs=31)


def test_without_hours_asks_alone_keep_nothing_busy() -> None:
    bench = Bench(0)
    bench.ask()
    assert not bench.busy()
    bench.open("sent", time_order(bench.clock.now))
    assert bench.poll()


def test_where_ticks_are_off_nothing_is_read_or_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(None)

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("the store was asked")

    monkeypatch.setattr(bench.store, "get", refused)
    monkeypatch.setattr(bench.store, "open_work", refused)
    bench.ask()
    bench.here.plan(ETHEREUM, bench.clock.now, bench.clock.now, a_cursor(9))
    assert (bench.here.begin(ETHEREUM.id, bench.clock.now), bench.queue.moments) == (None, [])


@pytest.mark.parametrize(
    ("kind", "order", "network", "waits"),
    [
        ("deposit", f"{1_000:015d}", ETHEREUM, True),
        ("deposit", f"{1_000 - 3 * ETHEREUM.confirmations:015d}", ETHEREUM, True),
        ("deposit", f"{1_000 - 3 * ETHEREUM.confirmations - 1:015d}", ETHEREUM, False),
        ("sent", time_order(20_000 * DAY), ETHEREUM, True),
        ("sent", time_order(19_998 * DAY), ETHEREUM, False),
        ("glimpse", time_order(20_000 * DAY + HOUR // 2 + 1), BITCOIN, True),
        ("glimpse", time_order(19_998 * DAY), BITCOIN, False),
        ("bundle", time_order(20_000 * DAY), BITCOIN, True),
        ("payout", time_order(20_000 * DAY), ETHEREUM, False),
    ],
)
def test_payments_on_their_way_keep_a_network_busy(bench: Bench, kind: Any, order: str, network: Network, waits: bool) -> None:
    bench.open(kind, order, network)
    assert bool(bench.poll(network, a_cursor(1_000, network))) == waits
    assert bench.record(network).open_until == (bench.clock.now + OPEN_MS if waits else 0)
    assert bench.record(network).alone_ms == 0


def polled(bench: Bench, hours: int) -> int:
    """How many minutes have ticks: a poll each minute."""
    minutes = 0
    for _ in range(hours * 60):
        bench.clock.pass_ms(60_000)
        minutes += bool(bench.poll(BITCOIN))
    return minutes


def test_a_payment_that_nobody_mines_counts_as_an_ask_after_half_an_hour(bench: Bench) -> None:
    """It costs its payer nothing until it is mined: of each day it gets six hours and a half, however often it is replaced."""
    work = bench.open("glimpse", time_order(bench.clock.now), BITCOIN)
    assert polled(bench, 1) == 60
    assert 0 < bench.record(BITCOIN).alone_ms <= HOUR
    assert polled(bench, 21) + 60 <= 6 * 60 + 30 + 3
    assert bench.record(BITCOIN).alone_ms == MOST and not bench.busy(BITCOIN)
    assert polled(bench, 2) <= 61, "of which one is in the new day"
    bench.store.commit([Close(work), Open(replace(work, order=time_order(bench.clock.now), id="its replacement"))])
    assert polled(bench, 22) + 61 <= 6 * 60 + 30 + 3


def test_a_young_payment_in_the_mempool_beside_an_old_one_keeps_it_busy_by_itself(bench: Bench) -> None:
    bench.open("glimpse", time_order(bench.clock.now - HOUR), BITCOIN)
    bench.store.commit([Open(Work("glimpse", BITCOIN.id, time_order(bench.clock.now - HOUR // 4), "young"))])
    bench.poll(BITCOIN)
    assert (bench.record(BITCOIN).open_until, bench.record(BITCOIN).alone_ms) == (bench.clock.now + OPEN_MS, 0)


def test_once_it_is_in_a_block_it_counts_as_before(bench: Bench) -> None:
    seen = bench.open("glimpse", time_order(bench.clock.now - 20 * HOUR), BITCOIN)
    bench.poll(BITCOIN, a_cursor(1_000, BITCOIN))
    assert bench.record(BITCOIN).open_until == 0
    bench.store.commit([Close(seen), Open(Work("deposit", BITCOIN.id, f"{1_000:015d}", "x"))])
    bench.poll(BITCOIN, a_cursor(1_000, BITCOIN))
    assert bench.record(BITCOIN).open_until == bench.clock.now + OPEN_MS


def test_what_fails_for_an_ask_fails_no_request(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def conflicts(changes: Any) -> None:
        raise Conflict(None)

    caplog.set_level(logging.WARNING)
    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "commit", conflicts)
        bench.ask()
    assert "it is not noted" in caplog.text and not bench.busy()
    bench.clock.pass_ms(NOTED_MS)
    bench.queue.down = True
    bench.ask()
    assert (bench.busy(), bench.queue.moments) == (True, []), "it died before it had sent them"
    bench.queue.down = False
    assert bench.poll(), "the poll sends them"


def test_a_request_on_a_network_that_is_not_active_keeps_nothing_busy(bench: Bench) -> None:
    bench.ask(replace(ETHEREUM, status="inactive"))
    assert not bench.busy()


def test_two_processes_that_make_a_network_busy_at_once_send_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, get = bench.process(), bench.store.get

    def overtaken(kind: Any, /, **key: str) -> Any:
        found = get(kind, **key)
        monkeypatch.setattr(bench.store, "get", get)
        first.ask(ETHEREUM, bench.clock.now, bench.clock.now)
        return found

    monkeypatch.setattr(bench.store, "get", overtaken)
    bench.ask()
    assert len(bench.queue.moments) == 1


def test_two_polls_at_once_both_note_what_is_open(bench: Bench) -> None:
    bench.open("sent", time_order(bench.clock.now))
    bench.store.commit([Save(replace(Busy(ETHEREUM.id), version=1, asked_until=bench.clock.now + HOUR))])
    bench.poll()
    bench.process().plan(ETHEREUM, bench.clock.now, bench.clock.now, None)
    assert len(bench.queue.moments) == 2, "the lease lets one of each moment run"


def test_a_tick_runs_once_whatever_its_messages_do(bench: Bench) -> None:
    """Doubled, reordered, and of two trains: never two at once, and at most one for each two seconds of the plan."""
    start = bench.clock.now
    moments = [start + at for at in range(2_000, 58_001, 2_000)] + [start + at for at in range(2_700, 58_001, 2_000)]
    luck, arrivals = random.Random(3), []
    for at in [*moments, *moments]:
        arrivals.append((at + luck.randrange(6_000), at))
    ran: list[tuple[int, int]] = []
    running: list[tuple[int, TickLease]] = []
    for now, at in sorted(arrivals):
        bench.clock.now = now
        for end, lease in list(running):
            if end <= now:
                bench.here.end(lease)
                running.remove((end, lease))
        if is_late(at, now):
            continue
        lease_now = bench.process().begin(ETHEREUM.id, at)
        if lease_now is not None:
            assert not running
            ran.append((now, at))
            running.append((now + luck.randrange(100, 2_500), lease_now))
    assert len(ran) > 10
    assert all(later - earlier >= GAP_MS for (_, earlier), (_, later) in itertools.pairwise(ran))
    assert all(later - earlier >= HASTE_MS for (earlier, _), (later, _) in itertools.pairwise(ran))


def test_messages_that_come_a_little_late_cost_no_tick(bench: Bench) -> None:
    start, luck = bench.clock.now, random.Random(5)
    ran = 0
    for at in range(2_000, 58_001, 2_000):
        bench.clock.now = start + at + luck.randrange(GAP_MS - HASTE_MS)
        lease = bench.here.begin(ETHEREUM.id, start + at)
        assert lease is not None
        bench.here.end(lease)
        ran += 1
    assert ran == 29


def test_the_lease_of_a_dead_tick_holds_for_a_minute(bench: Bench) -> None:
    begun = bench.clock.now
    assert bench.here.begin(ETHEREUM.id, begun) is not None
    bench.clock.now = begun + DEAD_MS - 1
    assert bench.here.begin(ETHEREUM.id, bench.clock.now) is None
    bench.clock.now = begun + DEAD_MS
    taken = bench.here.begin(ETHEREUM.id, bench.clock.now)
    assert taken is not None
    bench.here.end(taken)


def test_a_tick_that_was_taken_for_dead_ends_nothing_of_the_next(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    slow = bench.here.begin(ETHEREUM.id, bench.clock.now)
    bench.clock.pass_ms(DEAD_MS)
    assert slow is not None and bench.here.begin(ETHEREUM.id, bench.clock.now) is not None
    bench.here.end(slow)
    assert "another one began" in caplog.text
    bench.clock.pass_ms(GAP_MS)
    assert bench.here.begin(ETHEREUM.id, bench.clock.now) is None, "the second one is at work"


def test_of_two_that_begin_at_once_one_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    other, get, leases = bench.process(), bench.store.get, []

    def overtaken(kind: Any, /, **key: str) -> Any:
        found = get(kind, **key)
        monkeypatch.setattr(bench.store, "get", get)
        leases.append(other.begin(ETHEREUM.id, bench.clock.now))
        return found

    monkeypatch.setattr(bench.store, "get", overtaken)
    leases.append(bench.here.begin(ETHEREUM.id, bench.clock.now))
    assert [lease is None for lease in leases] == [False, True]


def test_a_record_of_before_restore_or_of_another_day_is_read(bench: Bench) -> None:
    """Tables that were set back hold what was said then: nobody waits any more, and nothing is in the future."""
    old = Busy(ETHEREUM.id, bench.clock.now - DAY, bench.clock.now - DAY, 3, MOST, bench.clock.now - DAY, 7)
    asked = old.asked(bench.clock.now + WAIT_MS, bench.clock.now, MOST)
    assert asked is not None and (asked.alone_ms, asked.version) == (WAIT_MS, 8)
