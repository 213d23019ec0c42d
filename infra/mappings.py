"""The event source mappings between queues and functions, after `chalice deploy`: that each consumer has one, that it is on, and
that Lambda heeds what consumers of batches answer (ReportBatchItemFailures), which Chalice has no word for.

Until that is set, an answer is ignored: Lambda deletes the whole batch, the messages that failed with it. Nothing is lost by that,
since messages only wake somebody up and housekeeping finds what is open; it comes late. Once set it stays: a later deploy changes
batch size and concurrency of the mapping and nothing else. A mapping that is made anew has to be set anew.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
https://docs.aws.amazon.com/lambda/latest/api/API_UpdateEventSourceMapping.html
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.settings import APP, Settings
from infra.deployment.patience import coded, patiently

ANSWERS = "ReportBatchItemFailures"
TRIES = 40
"""A mapping that was changed a moment ago takes no change. Two minutes; it is ready in seconds."""
_WAIT_SECONDS = 3.0
IN_USE = coded("ResourceInUseException")
OFF = ("Disabled", "Disabling")
_BUSY = ("Creating", "Updating", "Enabling")
"""Whether one is on or off behind a change is not told before its end."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer as app.py declares it: Lambda's name, queue, and whether it gets several messages, of which some may fail."""

    function: str
    queue: str
    answers: bool


@dataclass(frozen=True, slots=True)
class Mapping:
    uuid: str
    function: str
    queue: str
    state: str
    answers: bool


def consumers(stage: str) -> list[Consumer]:
    """All consumers of app.py, as they are named in `stage`."""
    from chalice.app import SQSEventConfig

    from app import app

    return [
        Consumer(f"{APP}-{stage}-{source.name}", Settings(stage=stage).queue(_unstaged(str(source.queue))), source.batch_size > 1)
        for source in app.event_sources
        if isinstance(source, SQSEventConfig)
    ]


def standing(client: Any, functions: Sequence[str]) -> list[Mapping]:
    """The mappings of these functions, in the order of their ids."""
    pages = client.get_paginator("list_event_source_mappings").paginate()
    found = [_mapping(each) for page in pages for each in page["EventSourceMappings"]]
    return sorted((each for each in found if each.function in functions), key=lambda each: each.uuid)


def wrong(wanted: Sequence[Consumer], found: Sequence[Mapping]) -> list[str]:
    """What is not as app.py wants it, each in one line; nothing where all is well."""
    said: list[str] = []
    for consumer in wanted:
        mine = [each for each in found if each.function == consumer.function]
        fits = [each for each in mine if each.queue == consumer.queue]
        if not fits:
            said.append(f"{consumer.function}: nothing brings it the messages of {consumer.queue}: deploy again")
        if len(fits) > 1:
            ids = ", ".join(each.uuid for each in fits)
            said.append(
                f"{consumer.function}: {len(fits)} mappings of {consumer.queue} ({ids}): a deploy failed half-way,"
                " and deploy leaves one of them"
            )
        said += [
            f"{each.function}: it gets messages of {each.queue}, which app.py does not say: {each.uuid}"
            for each in mine
            if each not in fits
        ]
        for each in fits:
            if each.state != "Enabled":
                said.append(f"{each.function}: the mapping {each.uuid} is {each.state}{_cure(each.state)}")
            if consumer.answers and not each.answers:
                said.append(f"{each.function}: the mapping {each.uuid} ignores which messages failed ({ANSWERS} is not set)")
    return said


def _cure(state: str) -> str:
    if state in OFF:
        return ": start-functions has it bring messages again"
    return ": Lambda changes it, for seconds; look again" if state in _BUSY else ""


def heed(
    client: Any, wanted: Sequence[Consumer], found: Sequence[Mapping], wait: Callable[[float], None] = time.sleep
) -> list[Mapping]:
    """Set ReportBatchItemFailures where consumers of batches lack it, and wait until each mapping is ready; the changed ones.

    Raises botocore's ClientError where AWS refuses, or a mapping stays busy.
    """
    answering = {(each.function, each.queue) for each in wanted if each.answers}
    changed = [each for each in found if (each.function, each.queue) in answering and not each.answers]
    for each in changed:
        state = _ready(client, each.uuid, wait) if each.state in _BUSY else each.state
        # The API's reference names true as the default of Enabled, and not whether that is of an update, too.
        off = {"Enabled": False} if state in OFF else {}
        _update(client, each.uuid, wait, FunctionResponseTypes=[ANSWERS], **off)
    for each in found:
        if each in changed or each.state in _BUSY:
            _ready(client, each.uuid, wait)
    return changed


def stop(client: Any, functions: Sequence[str], wait: Callable[[float], None] = time.sleep) -> dict[str, str]:
    """Have no queue bring these functions messages: they wait in the queue. The ids of mappings that Lambda refused to stop,
    several times in turn, with what it said.

    https://docs.aws.amazon.com/lambda/latest/api/API_UpdateEventSourceMapping.html (Enabled)
    """
    left = {each.uuid: f"{each.state} for {each.function}" for each in standing(client, functions) if each.state not in OFF}
    for tries in reversed(range(TRIES)):
        left = {uuid: said for uuid in left if (said := _refusal(client, uuid))}
        if not left or not tries:
            break
        wait(_WAIT_SECONDS)
    return left


def start(client: Any, functions: Sequence[str], wait: Callable[[float], None] = time.sleep) -> list[Mapping]:
    """Have queues bring these functions messages again, and wait until they do; the mappings that were stopped.

    Raises botocore's ClientError where Lambda refuses, or a mapping stays busy.
    """
    found = standing(client, functions)
    settled = {each.uuid: _ready(client, each.uuid, wait) if each.state in _BUSY else each.state for each in found}
    changed = [each for each in found if settled[each.uuid] in OFF]
    for each in changed:
        _update(client, each.uuid, wait, Enabled=True)
    for each in changed:
        _ready(client, each.uuid, wait)
    return changed


def _refusal(client: Any, uuid: str) -> str:
    """What Lambda says against stopping a mapping; nothing where it is stopped, or gone."""
    try:
        client.update_event_source_mapping(UUID=uuid, Enabled=False)
    except ClientError as error:
        return "" if error.response["Error"]["Code"] == "ResourceNotFoundException" else str(error)
    return ""


def _update(client: Any, uuid: str, wait: Callable[[float], None], **change: Any) -> None:
    update = partial(client.update_event_source_mapping, UUID=uuid, **change)
    patiently(update, IN_USE, partial(wait, _WAIT_SECONDS), TRIES)


def _ready(client: Any, uuid: str, wait: Callable[[float], None]) -> str:
    """Wait while a change is under way; the state behind it, or that of the last look."""
    for _ in range(TRIES):
        if (state := str(client.get_event_source_mapping(UUID=uuid)["State"])) not in _BUSY:
            break
        wait(_WAIT_SECONDS)
    return state


def _mapping(found: dict[str, Any]) -> Mapping:
    return Mapping(
        found["UUID"],
        # arn:aws:lambda:REGION:ACCOUNT:function:NAME, and a version or an alias where there is one
        found["FunctionArn"].split(":")[6],
        found.get("EventSourceArn", "").rsplit(":", 1)[-1],
        found["State"],
        ANSWERS in (found.get("FunctionResponseTypes") or ()),
    )


def _unstaged(queue: str) -> str:
    """A queue's name in `settings.QUEUES`: app.py may have been imported for another stage."""
    return queue.split("-", 2)[2]
