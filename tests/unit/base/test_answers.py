"""Many are asked at the same time, and each answer is whose it is."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from chalicelib.usecases.base.side_by_side import ahead, answers

_WHOSE: ContextVar[str] = ContextVar("whose", default="nobody's")


def test_answers_come_in_order_and_so_many_are_asked_at_once() -> None:
    """Each waits until four are there: fewer at a time would wait for ever."""
    together = threading.Barrier(4, timeout=20)

    def ask(number: int) -> tuple[int, str]:
        together.wait()
        return number, _WHOSE.get()

    token = _WHOSE.set("mine")
    try:
        assert answers(ask, range(8), 4) == [(number, "mine") for number in range(8)]
    finally:
        _WHOSE.reset(token)


@pytest.mark.parametrize("most", [1, 3])
def test_a_failure_is_raised(most: int) -> None:
    def ask(number: int) -> int:
        if number == 2:
            raise LookupError("two")
        return number

    with pytest.raises(LookupError, match="two"):
        answers(ask, [1, 2, 3], most)
    assert answers(ask, [], most) == []


def test_one_at_a_time_starts_no_thread() -> None:
    here = threading.current_thread()
    assert answers(lambda _: threading.current_thread(), [1, 2], 1) == [here, here]


def test_the_next_one_is_prepared_while_the_caller_has_the_one_before() -> None:
    begun = [threading.Event() for _ in range(3)]

    def prepare(number: int) -> str:
        begun[number].set()
        if number == 1:
            raise LookupError("one")
        return f"{number} of {_WHOSE.get()}"

    token, seen = _WHOSE.set("mine"), []
    try:
        for number, made in ahead(prepare, range(3)):
            assert number == 2 or begun[number + 1].wait(timeout=20)
            seen.append((number, made))
    finally:
        _WHOSE.reset(token)
    assert seen == [(0, None), (1, None), (2, "2 of mine")] and not begun[0].is_set()
    for _ in ahead(prepare, [2, 0, 1]):
        break
    assert begun[0].is_set(), "it was begun with the first"
    assert list(ahead(prepare, [5])) == [(5, None)]
