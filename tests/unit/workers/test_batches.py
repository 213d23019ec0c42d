"""Batches of messages: each by itself and at once, what failed is named, and nothing is swallowed."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable

import pytest
from chalice.app import SQSEvent

from chalicelib.domain.ids import Realm
from chalicelib.usecases.base import message_chains
from chalicelib.usecases.base.clock import RealmClock, in_realm
from chalicelib.usecases.base.retries import Failures
from chalicelib.workers import batches
from tests.support.memory_store import HandClock
from tests.support.webhooks import NOW


def event(*bodies: str) -> SQSEvent:
    return SQSEvent({"Records": [{"messageId": f"m{n}", "receiptHandle": "r", "body": b} for n, b in enumerate(bodies)]}, None)


def failing(*bad: str) -> Callable[[str], None]:
    def handle(body: str) -> None:
        if body in bad:
            raise LookupError(f"no luck with {body}")

    return handle


def test_only_what_failed_is_named() -> None:
    assert batches.run(event("a", "b", "c"), failing()) == {"batchItemFailures": []}
    found = batches.run(event("a", "b", "c", "d"), failing("b", "d"))
    assert found == {"batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m3"}]}
    assert batches.run(event(), failing()) == {"batchItemFailures": []}


def test_two_messages_of_the_same_words_are_two(caplog: pytest.LogCaptureFixture) -> None:
    left = ["only once"]
    found = batches.run(event("a", "a"), lambda body: left.pop())
    assert len(found["batchItemFailures"]) == 1


def test_all_that_failed_raises() -> None:
    """Right with and without the mapping's setting: the whole batch comes back, and Lambda counts an error."""
    with pytest.raises(LookupError, match="no luck with a"):
        batches.run(event("a"), failing("a"))
    with pytest.raises(Failures, match="all 2 messages failed") as raised:
        batches.run(event("a", "b"), failing("a", "b"))
    assert [str(each) for each in raised.value.exceptions] == ["no luck with a", "no luck with b"]


UNREADABLE = ["", "{", "null", "[]", "7", '{"id": 7}', '{"id": null}', '{"id": ""}', '{"id": {}}', "\x00", '{"other": "fields"}']


@pytest.mark.parametrize("body", UNREADABLE)
def test_a_body_that_nobody_can_read_is_a_failure(body: str) -> None:
    """A worker that looked for what has no name would find nothing, and take it for done."""
    good = '{"id": "out_1", "more": 1}'
    assert batches.fields(good, "id") == ["out_1"]
    found = batches.run(event(good, body), lambda text: batches.fields(text, "id"))
    assert found == {"batchItemFailures": [{"itemIdentifier": "m1"}]}


@pytest.mark.parametrize("worker", ["relay", "deliver", "scan_range"])
def test_workers_read_what_they_are_told_so(worker: str) -> None:
    """Before they ask for anything: there is no AWS here."""
    handle = importlib.import_module(f"chalicelib.workers.{worker}").handle
    for body in UNREADABLE:
        with pytest.raises(ValueError):
            handle(body)


def test_the_log_says_which_message_failed_and_why(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        batches.run(event("good", "bad\n" + "x" * 5_000), failing("bad\n" + "x" * 5_000))
    (line,) = [record for record in caplog.records if record.name == batches.__name__]
    assert line.getMessage().startswith("message m1 failed and comes back: 'bad\\nxxx")
    assert len(line.getMessage()) < 300 and "\n" not in line.getMessage()
    assert line.exc_info is not None and isinstance(line.exc_info[1], LookupError)


def test_ten_are_handled_at_once() -> None:
    """Each waits until all have begun."""
    together = threading.Barrier(10, timeout=30)
    assert batches.run(event(*map(str, range(10))), lambda body: together.wait()) == {"batchItemFailures": []}


def test_each_message_is_at_work_for_its_own_realm() -> None:
    clock = RealmClock(HandClock(NOW), lambda: 5_000)
    seen: dict[str, list[int]] = {}
    together = threading.Barrier(4, timeout=30)

    def handle(body: str) -> None:
        inherited = clock.now_ms()
        realm: Realm = "test" if "test" in body else "live"
        with in_realm(realm):
            together.wait()
            seen[body] = [inherited, clock.now_ms()]
            together.wait()
        seen[body].append(clock.now_ms())

    with in_realm("test"):
        assert batches.run(event("live 1", "test 1", "live 2", "test 2"), handle) == {"batchItemFailures": []}
        assert clock.now_ms() == NOW + 5_000
    caller = NOW + 5_000
    assert seen == {body: [caller, NOW + (5_000 if "test" in body else 0), caller] for body in seen} and len(seen) == 4


def ahead(*before: str) -> SQSEvent:
    """Messages that say so of their chains; "" says nothing."""
    said = [{"ahead": {"stringValue": number, "dataType": "Number"}} if number else {} for number in before]
    records = [{"messageId": f"m{n}", "receiptHandle": "r", "body": "b", "messageAttributes": one} for n, one in enumerate(said)]
    return SQSEvent({"Records": records}, None)


@pytest.mark.parametrize(
    ("said", "counts"), [(("",), 1), (("4",), 5), (("", "3", "1"), 4), (("x",), message_chains.MOST + 1)], ids=str
)
def test_whatever_a_batch_causes_is_behind_its_longest_chain(said: tuple[str, ...], counts: int) -> None:
    """In all of its threads; and nothing of it is left behind."""
    seen: list[int] = []
    batches.run(ahead(*said), lambda _: seen.append(message_chains.before()))
    assert seen == [counts] * len(said) and message_chains.before() == 0
    batches.one_by_one(ahead(said[0]), lambda _: seen.append(message_chains.before()))
    assert seen[-1] == (counts if len(said) == 1 else 1) and message_chains.before() == 0


def test_the_first_failure_of_a_fifo_queue_ends_the_call() -> None:
    seen: list[str] = []

    def handle(body: str) -> None:
        seen.append(body)
        raise LookupError("no luck")

    with pytest.raises(LookupError):
        batches.one_by_one(event("a", "b"), handle)
    assert seen == ["a"]


def test_the_functions_end_is_not_taken_for_a_failure_of_a_message() -> None:
    class Died(BaseException):
        pass

    def handle(body: str) -> None:
        if body == "b":
            raise Died

    for bodies in (("b",), ("a", "b", "c")):
        with pytest.raises(Died):
            batches.run(event(*bodies), handle)
