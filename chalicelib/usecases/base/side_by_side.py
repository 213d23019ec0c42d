"""Steps taken at the same time by a few threads: they wait for the store, and the store does not wait.

The caller's context (a realm's clock) is theirs too. Each step must be whole by itself: nothing is said about their order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from itertools import chain, takewhile
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

AT_ONCE = 8
"""A function of 512 MB has a third of a core: more threads would wait for it, not for the store."""


def side_by_side(steps: Sequence[Callable[[], object]], at_once: int = AT_ONCE) -> None:
    """Take `steps`, at most `at_once` at the same time; a single one in the caller's thread.

    After a failure no further step begins. Raises the first step's failure, in their order, once those under way have ended.
    """
    in_lanes([[step] for step in steps], at_once)


def in_lanes(lanes: Sequence[Sequence[Callable[[], object]]], at_once: int = AT_ONCE) -> None:
    """`side_by_side` for lanes of steps: those of one lane are taken one after the other. Raises the first lane's failure."""
    if len(lanes) < 2:
        for step in chain.from_iterable(lanes):
            step()
        return
    todo = iter(enumerate(lanes))
    failures: dict[int, BaseException] = {}
    lock = threading.Lock()

    def take() -> None:
        while True:
            with lock:
                place, lane = (None, None) if failures else next(todo, (None, None))
            if place is None or lane is None:
                return
            try:
                for step in takewhile(lambda _: not failures, lane):
                    step()
            except BaseException as error:  # noqa: BLE001 - raised where the steps were asked for
                with lock:
                    failures[place] = error

    with ThreadPoolExecutor(min(at_once, len(lanes)), thread_name_prefix="step") as threads:
        for _ in range(min(at_once, len(lanes))):
            threads.submit(copy_context().run, take)
    if failures:
        raise failures[min(failures)]


def ahead(prepare: Callable[[A], B], items: Sequence[A]) -> Iterator[tuple[A, B | None]]:
    """Each of `items`, in their order, with what `prepare` made of it while the caller was busy with the one before; None for the
    first, and where preparing failed: the caller does without. Nothing is prepared after the caller has stopped."""
    if len(items) < 2:
        yield from ((item, None) for item in items)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        begun: Future[B] | None = None
        for place, item in enumerate(items):
            made = None if begun is None or begun.exception() is not None else begun.result()
            begun = thread.submit(copy_context().run, prepare, items[place + 1]) if place + 1 < len(items) else None
            yield item, made


def answers(ask: Callable[[A], B], items: Sequence[A], at_once: int = AT_ONCE) -> list[B]:
    """What `ask` answers for each of `items`, in their order, asked as `side_by_side` takes steps; one at a time in the caller's
    thread. Raises what the first failed one raised."""
    if at_once < 2:
        return [ask(item) for item in items]
    found: dict[int, B] = {}

    def step(place: int, item: A) -> None:
        found[place] = ask(item)

    side_by_side([partial(step, place, item) for place, item in enumerate(items)], at_once)
    return [found[place] for place in range(len(items))]


@contextmanager
def meanwhile(ask: Callable[[], B]) -> Iterator[Callable[[], B]]:
    """Ask in another thread while the block of the `with` statement runs, which ends when that has its answer. The value is a
    function that waits for the answer, and raises what `ask` raised. Where nobody calls it, an answer or an Exception is dropped:
    `ask` changes nothing."""
    with ThreadPoolExecutor(1, thread_name_prefix="meanwhile") as thread:
        begun = thread.submit(copy_context().run, ask)
        try:
            yield begun.result
        finally:
            trouble = begun.exception()
            if trouble is not None and not isinstance(trouble, Exception):
                raise trouble  # the process is to end
