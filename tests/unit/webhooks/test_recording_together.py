"""What a receiver took of a batch is recorded in one transaction, and a failure of any kind on the way loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chalicelib.domain.webhooks.deliveries import Delivery, delivery_work
from chalicelib.domain.webhooks.leases import BATCH, LEASE_MS
from chalicelib.usecases.ports.changes import Close, Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable
from tests.unit.webhooks.line import BAD, OK, Line


class Died(BaseException):
    """The function's process is gone."""


def commits(line: Line, meanwhile: Callable[[Sequence[Any]], None] = lambda _: None) -> list[int]:
    """How many deliveries each transaction saves, of those that save any. `meanwhile` comes before each."""
    found: list[int] = []
    real = line.store.commit

    def commit(changes: Sequence[Any]) -> None:
        saved = sum(isinstance(change, Save) and isinstance(change.record, Delivery) for change in changes)
        if saved:
            found.append(saved)
            meanwhile(changes)
        real(changes)

    line.store.commit = commit  # type: ignore[method-assign]
    return found


def test_a_batch_is_recorded_in_one_transaction() -> None:
    line = Line(BATCH + 3)
    saved = commits(line)
    assert line.take() == "done"
    assert saved == [BATCH, 3] and len(line.deliveries("delivered")) == BATCH + 3
    assert all(len(one.attempts) == 1 and one.finished_at for one in line.deliveries())
    assert line.consistent() and line.turn.failures == 0


def test_a_failure_is_recorded_at_once_and_by_itself() -> None:
    line = Line(3, OK, BAD, OK)
    saved = commits(line)
    assert line.take() == "done"
    assert saved == [1, 2]
    assert (len(line.deliveries("delivered")), len(line.deliveries("pending"))) == (2, 1)
    assert line.consistent() and line.turn.failures == 0, "one of them succeeded"


def test_later_attempts_are_recorded_one_by_one() -> None:
    line = Line(2, BAD, BAD, OK)
    line.take()
    line.clock.pass_ms(6_000)
    saved = commits(line)
    assert line.take() == "done"
    assert saved == [1, 1] and len(line.deliveries("delivered")) == 2


def test_a_function_that_dies_in_a_batch_has_each_sent_twice_and_no_more_often() -> None:
    """Also where it dies again and again on the same one."""
    line = Line(4)
    real, killer = line.sender.send, line.deliveries()[-1].event_id

    def send(url: str, headers: Any, body: bytes) -> Any:
        answer = real(url, headers, body)
        if headers["webhook-id"] == killer:
            raise Died
        return answer

    line.sender.send = send  # type: ignore[method-assign]
    for _ in range(40):
        try:
            line.take()
        except Died:
            assert line.consistent(), "what is not recorded is open"
        line.clock.pass_ms(LEASE_MS + 61_000)
        line.sweep.run()
    others = [id for id in line.sender.sent if id != killer]
    assert sorted(set(others)) == sorted(d.event_id for d in line.deliveries() if d.event_id != killer)
    assert max(others.count(id) for id in others) == 2
    assert {d.status for d in line.deliveries() if d.event_id != killer} == {"delivered"}


def test_where_another_worker_settled_one_the_others_are_recorded_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    line = Line(3)
    other = line.deliveries()[1]
    done = False

    def meanwhile(changes: Sequence[Any]) -> None:
        nonlocal done
        if not done:
            done = True
            cancelled = other.cancelled("tested", line.clock.now)
            line.store.commit([Save(cancelled), Close(delivery_work(other))])

    saved = commits(line, meanwhile)
    assert line.take() == "done"
    assert saved == [3, 1, 3, 1, 1, 1], "with the lease, the other worker's, without the lease, and each by itself"
    assert sorted(d.status for d in line.deliveries()) == ["cancelled", "delivered", "delivered"]
    assert "was settled by another worker" in caplog.text and line.consistent()


@pytest.mark.parametrize("error", [Unavailable("cut"), Conflict(None)], ids=["no answer", "busy"])
@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_where_it_is_not_known_whether_they_are_recorded_nothing_is_lost(error: Exception, after: bool) -> None:
    line = Line(3)
    real, cut = line.store.commit, 0

    def commit(changes: Sequence[Any]) -> None:
        nonlocal cut
        if sum(isinstance(change, Close) for change in changes) == 3 and not cut:
            cut += 1
            if after:
                real(changes)
            raise error
        real(changes)

    line.store.commit = commit  # type: ignore[method-assign]
    if isinstance(error, Unavailable):
        with pytest.raises(Unavailable):
            line.take()
    else:
        line.take()
    assert line.consistent()
    line.clock.pass_ms(LEASE_MS + 61_000)
    for _ in range(3):
        line.take()
        line.clock.pass_ms(LEASE_MS + 61_000)
    assert len(line.deliveries("delivered")) == 3 and line.consistent() and cut == 1
    twice = isinstance(error, Unavailable) and not after
    assert len(line.sender.sent) == (6 if twice else 3)
