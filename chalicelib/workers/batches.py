"""A batch of messages from a queue: each is handled by itself, and only what failed comes back.

The answer counts where the queue's mapping has ReportBatchItemFailures: Lambda deletes the messages that are not named, and the
queue shows the named ones again when their visibility timeout is over. Chalice can not set that: `infra/mappings.py`
does, after the deployment.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

from chalice.app import SQSRecord

from chalicelib.usecases.base import message_chains
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.failures import TooNew

log = logging.getLogger(__name__)

AT_ONCE = 10
_SHOWN = 200
"""Characters of a message in the log: ours are shorter, and hold ids alone."""

Answer = dict[str, list[dict[str, str]]]


def run(records: Iterable[SQSRecord], handle: Callable[[str], object]) -> Answer:
    """Give each message's body to `handle`, at most `AT_ONCE` at a time in threads, and answer which of them failed.

    They are handled at once because they wait: for the store, and for other machines. Each has a copy of the caller's context
    variables, so none sees on whose behalf another is at work. All have ended when this returns: a function that Lambda freezes
    leaves nothing half-way.

    A message about a record that only a newer version of the service understands ends: all messages are hints, and the schedules
    find the work, that version's too. In the dead letters it would help nobody.

    Whatever is wrong with a message is its failure, a body that nobody can read included: nobody may lose it, and so it ends in
    the dead letters. Each failure is logged. Raises when every message failed, which means the same to SQS with and without the
    mapping's setting, and counts as an error of the function: the failure itself where there was one message, else `Failures`.
    """
    batch = list(records)
    with message_chains.brought_by(_number(batch)):
        return _answer(batch, handle)


def one_by_one(records: Iterable[SQSRecord], handle: Callable[[str], object]) -> None:
    """As `run`, for consumers of FIFO queues: one message after the other, and the first failure ends it."""
    for record in records:
        with message_chains.brought_by(_number([record])):
            handle(record.body)


def _number(batch: Sequence[SQSRecord]) -> int:
    """The longest of the messages' chains, each with its message. One that nobody can read counts as long as they get."""
    found = [
        record.to_dict().get("messageAttributes", {}).get(message_chains.AHEAD, {}).get("stringValue", "0") for record in batch
    ]
    return 1 + max((int(ahead) if ahead.isdecimal() else message_chains.MOST for ahead in found), default=0)


def _answer(batch: list[SQSRecord], handle: Callable[[str], object]) -> Answer:
    if len(batch) == 1:
        results = [_outcome(batch[0], handle)]
    else:
        with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="message") as threads:
            running = [threads.submit(copy_context().run, partial(_outcome, record, handle)) for record in batch]
            results = [each.result() for each in running]
    failures = [error for error in results if error is not None]
    if failures and len(failures) == len(batch):
        raise failures[0] if len(failures) == 1 else Failures(f"all {len(batch)} messages failed", failures)
    return {"batchItemFailures": _named(batch, results)}


def of_newer(body: str, known: str | int | None = None) -> bool:
    """Whether a message is of a kind that only another version of the service knows: it says a version, and not `known`. It is
    dropped, and logged: the schedules find what it asks for. A message with a new member alone is none. Raises ValueError."""
    message = json.loads(body)
    if not isinstance(message, dict) or message.get("version", known) == known:
        return False
    log.warning("a message of another version is dropped: %.*r", _SHOWN, body)
    return True


def fields(body: str, *names: str) -> list[str]:
    """The named text fields of a message. Raises ValueError where one is missing: an unreadable message must not pass for done."""
    message = json.loads(body)
    values = [message.get(name) for name in names] if isinstance(message, dict) else []
    found = [value for value in values if isinstance(value, str) and value]
    if len(found) != len(names):
        raise ValueError(f"a message needs the fields {', '.join(names)}")
    return found


def _outcome(record: SQSRecord, handle: Callable[[str], object]) -> Exception | None:
    """The failure of a message. Any other BaseException ends the function, as it would without threads."""
    try:
        handle(record.body)
    except Exception as error:
        if _left_to_newer(error):
            log.warning("message %s is left to the schedules: %s", _id(record), error)
            return None
        log.exception("message %s failed and comes back: %.*r", _id(record), _SHOWN, record.body)
        return error
    return None


def _left_to_newer(error: Exception) -> bool:
    """Whether nothing else is wrong. The alarm was told where the record was read."""
    if isinstance(error, Failures):
        return all(map(_left_to_newer, error.exceptions))
    return isinstance(error, TooNew)


def _named(batch: Sequence[SQSRecord], results: Sequence[Exception | None]) -> list[dict[str, str]]:
    return [{"itemIdentifier": _id(record)} for record, error in zip(batch, results, strict=True) if error is not None]


def _id(record: SQSRecord) -> str:
    found: str = record.to_dict()["messageId"]
    return found
