"""Steps at the same time: all of them, once, and none after a failure."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

import pytest

from chalicelib.usecases.base.side_by_side import in_lanes, meanwhile, side_by_side

WHERE: ContextVar[str] = ContextVar("where")


def test_one_step_is_taken_here() -> None:
    threads: list[int] = []
    side_by_side([lambda: threads.append(threading.get_ident())])
    side_by_side([])
    assert threads == [threading.get_ident()]


def test_steps_meet_in_the_context_of_the_caller() -> None:
    """Neither gets past the barrier alone."""
    barrier, seen = threading.Barrier(2, timeout=10), list[str]()
    WHERE.set("here")

    def step() -> None:
        barrier.wait()
        seen.append(WHERE.get())

    side_by_side([step, step])
    assert seen == ["here", "here"]


def test_never_more_than_asked_for() -> None:
    lock, now, most, done = threading.Lock(), [0], [0], list[int]()

    def step(number: int) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        done.append(number)
        with lock:
            now[0] -= 1

    side_by_side([partial(step, number) for number in range(200)], at_once=3)
    assert sorted(done) == list(range(200)) and 1 <= most[0] <= 3


def test_a_failure_begins_no_further_step() -> None:
    """The two under way end; of two failures the first step's is raised."""
    barrier, done = threading.Barrier(2, timeout=10), list[str]()

    def fails(name: str) -> None:
        barrier.wait()
        raise LookupError(name)

    more = [partial(done.append, str(number)) for number in range(50)]
    with pytest.raises(LookupError, match="first"):
        side_by_side([partial(fails, "first"), partial(fails, "second"), *more], at_once=2)
    assert len(done) < 50


def test_a_lane_is_taken_in_order_beside_others() -> None:
    """Each waits for the other one's first step; a single lane is taken here."""
    barrier, done = threading.Barrier(2, timeout=10), list[str]()

    def lane(name: str) -> list[Callable[[], object]]:
        return [barrier.wait, *(partial(done.append, f"{name}{n}") for n in range(5))]

    in_lanes([lane("a"), lane("b")])
    assert [[step for step in done if step[0] == name] for name in "ab"] == [[f"{name}{n}" for n in range(5)] for name in "ab"]
    threads = list[int]()
    in_lanes([[lambda: threads.append(threading.get_ident())] * 2])
    assert threads == [threading.get_ident()] * 2


def test_a_failure_ends_the_other_lanes_between_two_steps() -> None:
    barrier, done = threading.Barrier(2, timeout=10), list[str]()

    def fails() -> None:
        barrier.wait()
        raise LookupError("first")

    def waits() -> None:
        barrier.wait()
        threading.Event().wait(0.2)

    with pytest.raises(LookupError, match="first"):
        in_lanes([[fails, partial(done.append, "a")], [waits, partial(done.append, "b")]])
    assert done == []


def test_an_answer_comes_meanwhile_in_the_context_of_the_caller() -> None:
    barrier = threading.Barrier(2, timeout=10)
    WHERE.set("there")

    def ask() -> str:
        barrier.wait()
        return WHERE.get()

    with meanwhile(ask) as told:
        barrier.wait()
    assert [told(), told()] == ["there", "there"]


def test_what_was_asked_meanwhile_fails_where_its_answer_is_wanted() -> None:
    def fails() -> None:
        raise LookupError("asked")

    with meanwhile(fails):
        pass  # nobody wants to know
    with pytest.raises(LookupError, match="asked"), meanwhile(fails) as told:
        told()
    with pytest.raises(KeyError, match="own"), meanwhile(fails):
        raise KeyError("own")


def test_the_end_of_the_process_is_never_dropped() -> None:
    class Ends(BaseException):
        pass

    def ends() -> None:
        raise Ends

    with pytest.raises(Ends), meanwhile(ends):
        pass
    with pytest.raises(Ends), meanwhile(ends):
        raise KeyError("own")
