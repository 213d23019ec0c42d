"""The counters themselves: exact at once, and bounded in memory whatever addresses and keys come."""

from __future__ import annotations

import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from chalicelib.usecases.merchants.access import SOURCES, source_number, source_of
from chalicelib.usecases.merchants.source_limits import LIMIT, REMEMBERED_MS, SourceLimits

NOON = 1_700_000_000_000 // 60_000 * 60_000
"""The first millisecond of a minute."""


def test_the_window_ends_with_the_minute() -> None:
    limits = SourceLimits()
    assert [limits.keyless("192.0.2.1", NOON + 100 * n) for n in range(LIMIT)] == [None] * LIMIT
    usage = limits.keyless("192.0.2.1", NOON + 59_999)
    assert usage is not None
    assert (usage.window.limit, usage.window.seconds, usage.remaining, usage.reset_at) == (600, 60, 0, NOON // 1000 + 60)
    assert limits.keyless("192.0.2.1", NOON + 60_000) is None


def test_a_refused_request_makes_the_wait_no_longer() -> None:
    limits = SourceLimits()
    for _ in range(10 * LIMIT):
        limits.keyless("192.0.2.1", NOON)
    assert limits.keyless("192.0.2.1", NOON + 60_000) is None


def test_many_at_once_get_exactly_what_there_is() -> None:
    limits = SourceLimits()
    start = threading.Barrier(16)

    def ask(worker: int) -> int:
        start.wait()
        keyless = sum(limits.keyless("192.0.2.1", NOON) is None for _ in range(100))
        looked_up = sum(limits.look_up(f"{worker}-{n}", "192.0.2.1", NOON).exhausted is None for n in range(100))
        return 10_000 * keyless + looked_up

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(ask, range(16))) == 10_000 * LIMIT + LIMIT


def test_a_valid_key_gives_its_look_up_back_once() -> None:
    limits = SourceLimits()
    for n in range(3 * LIMIT):
        look_up = limits.look_up(f"key {n}", "192.0.2.1", NOON)
        assert look_up.exhausted is None
        limits.valid(look_up, NOON)
    again = limits.look_up("key 1", "192.0.2.1", NOON)
    assert not again.counted
    for _ in range(10):
        limits.valid(again, NOON)
    assert sum(limits.look_up(f"unknown {n}", "192.0.2.1", NOON).exhausted is None for n in range(2 * LIMIT)) == LIMIT


def test_a_look_up_of_the_minute_before_takes_nothing_back() -> None:
    limits = SourceLimits()
    late = limits.look_up("key", "192.0.2.1", NOON - 1)
    limits.look_up("unknown", "192.0.2.1", NOON)
    limits.valid(late, NOON)
    assert sum(limits.look_up(f"unknown {n}", "192.0.2.1", NOON).exhausted is None for n in range(LIMIT)) == LIMIT - 1


def test_a_key_is_remembered_for_its_source_and_for_ten_minutes() -> None:
    limits = SourceLimits()
    limits.valid(limits.look_up("key", "192.0.2.1", NOON), NOON)
    assert not limits.look_up("key", "::ffff:192.0.2.1", NOON + REMEMBERED_MS - 1).counted
    assert limits.look_up("key", "192.0.2.2", NOON).counted
    assert limits.look_up("key", "192.0.2.1", NOON + REMEMBERED_MS).counted
    limits.invalid(limits.look_up("key", "192.0.2.1", NOON), NOON)
    assert limits.look_up("key", "192.0.2.1", NOON).counted


def test_the_key_unused_for_longest_is_forgotten() -> None:
    limits = SourceLimits(most_keys=3)
    for name in ("a", "b", "c", "a", "d"):
        limits.valid(limits.look_up(name, "192.0.2.1", NOON), NOON)
    assert [limits.look_up(name, "192.0.2.1", NOON).counted for name in "abcd"] == [False, True, False, False]


@pytest.mark.slow
def test_a_flood_from_many_networks_takes_bounded_memory() -> None:
    """Ten times as many networks of /64 as are told apart, each with a keyless request and a key, a quarter of them valid."""
    limits = SourceLimits(most_sources=500, most_keys=125)
    tracemalloc.start()
    peaks = []
    for n in range(5_000):
        address = f"2001:db8:{n >> 16:x}:{n & 0xFFFF:x}::1"
        limits.keyless(address, NOON)
        look_up = limits.look_up(f"{n:064x}", address, NOON)
        if n % 4 == 0:
            limits.valid(look_up, NOON)
        if n % 500 == 499:
            peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert peaks[-1] < 2 * peaks[0] < 2**19, peaks  # ten times as much if nothing were forgotten; other threads allocate too
    assert limits.keyless("192.0.2.1", NOON) is None, "who comes new is let in"


def test_one_more_source_than_is_told_apart_begins_the_minute_anew() -> None:
    limits = SourceLimits(most_sources=2)
    for _ in range(LIMIT):
        limits.keyless("192.0.2.1", NOON)
    assert limits.keyless("192.0.2.1", NOON) is not None
    assert limits.keyless("192.0.2.2", NOON) is None
    assert limits.keyless("192.0.2.1", NOON) is not None
    assert limits.keyless("192.0.2.3", NOON) is None
    assert limits.keyless("192.0.2.1", NOON) is None


def test_an_address_with_a_zone_is_a_source_like_any_other() -> None:
    assert source_of("fe80::1%eth0") == source_of("fe80::2") != source_of("fe80:0:0:1::1")
    assert 0 <= source_number("fe80::1%eth0", NOON) < SOURCES
