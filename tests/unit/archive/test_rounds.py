"""When rounds of the archive begin, and how long a list may say the day of before."""

from __future__ import annotations

from typing import Any, cast

from chalicelib.domain.archive.payments import DAY_MS, SAID_MS, ArchiveRound
from chalicelib.usecases.archive.coverage import Coverage
from chalicelib.usecases.archive.rounds import ArchiveRounds
from chalicelib.usecases.ports.changes import Save
from tests.support.memory_store import HandClock, MemoryStore

AFTER_DAYS = 400


def test_a_round_begins_a_day_after_the_last_one_ended() -> None:
    store, clock = cast("Any", MemoryStore()), HandClock()
    rounds = ArchiveRounds("test", store, cast("Any", None), clock, AFTER_DAYS)

    def work() -> ArchiveRound:
        rounds.work(lambda: True)
        found = store.get(ArchiveRound, realm="test")
        assert isinstance(found, ArchiveRound)
        return found

    said = work()
    assert (said.said_at, said.ended_at) == (clock.now, 0)
    clock.pass_ms(SAID_MS)
    ended = work()
    assert (ended.before, ended.ended_at) == (said.before, clock.now)
    clock.pass_ms(DAY_MS - 1)
    assert work() == ended, "no read of the merchants, and no later day"
    clock.pass_ms(1)
    said = work()
    assert (said.before, said.said_at, said.ended_at) == (ended.before + DAY_MS, clock.now, ended.ended_at)
    clock.pass_ms(SAID_MS)
    assert work().ended_at == clock.now


def test_a_list_says_a_later_day_before_anything_leaves() -> None:
    """Each process asks again within half of the time for which a round waits, and not at each request."""
    store, now = cast("Any", MemoryStore()), [1000.0]
    coverage = Coverage(store, lambda: now[0])
    assert coverage.since_ms("test") == 0
    store.commit([Save(ArchiveRound("test", before=DAY_MS, version=1))])
    now[0] += SAID_MS / 2000 - 1
    assert coverage.since_ms("test") == 0, "it is remembered"
    now[0] += 1
    assert coverage.since_ms("test") == DAY_MS
