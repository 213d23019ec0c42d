"""What a deploy will do, a line for each part, told before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chalicelib.settings import APP
from infra import lambda_platform, mappings
from infra.deploy import TEMPLATE, stack_name
from infra.deployment import code, function_settings, index_steps, standing
from infra.deployment.bucket import Bucket
from infra.deployment.code import api_url
from infra.deployment.mend import too_many
from infra.deployment.stack_states import state_of
from infra.deployment.standing import Standing


def plan(session: Any, bucket: Bucket, stage: str) -> list[str]:
    """The lines. Changes nothing. Raises botocore's ClientError."""
    found = standing.look(session, stage)
    parts = (
        iter([f"account {bucket.owner}, region {bucket.region}, as {bucket.caller}"]),
        _stack(session, stage),
        _functions(found, stage),
        _stopped(session.client("lambda"), found),
        _api(found, bucket),
        _queues(found, stage),
        iter(["then: what API Gateway answers by itself, records of older versions, a check of all that stands"]),
    )
    return [line for part in parts for line in part]


def _stack(session: Any, stage: str) -> Iterator[str]:
    name, dynamodb = stack_name(stage), session.client("dynamodb")
    state = state_of(session.client("cloudformation"), name)
    if state in (None, "ROLLBACK_COMPLETE"):
        after = "" if state is None else ", once the one that could not be made is gone"
        yield f"stack {name}: new, with tables, queues, keys, logs and alarms{after}"
        return
    yield f"stack {name} ({state}): brought to infra/{TEMPLATE.name}"
    found = index_steps.steps(TEMPLATE.read_text(), stage, lambda table: index_steps.table_of(dynamodb, table))
    if len(found) > 1:
        yield f"  in {len(found)} updates: one index of a table is made or removed in each, which may take hours"


def _functions(found: Standing, stage: str) -> Iterator[str]:
    wanted = standing.declared(stage)
    new, gone = [n for n in wanted if n not in found.functions], [n for n in found.functions if n not in wanted]
    yield f"functions: {len(new)} new, {len(wanted) - len(new)} updated, one after the other"
    platform = lambda_platform.declared(code.PROJECT, stage)
    if others := {each.platform for name, each in found.functions.items() if name in wanted} - {platform}:
        before = ", ".join(sorted(" and ".join(each) for each in others))
        yield f"  from {before} to {' and '.join(platform)}: each fails for some seconds, between its code and its runtime"
    if gone:
        yield f"  removed where Chalice made them: {', '.join(sorted(gone))}"


def _stopped(client: Any, found: Standing) -> Iterator[str]:
    if stopped := function_settings.stopped(client, sorted(found.functions)):
        yield f"  {len(stopped)} are stopped, and stay so: start-functions has them called again"


def _api(found: Standing, bucket: Bucket) -> Iterator[str]:
    known = ", ".join(api_url(bucket).format(api) for api in found.apis)
    yield f"API: {known}" if known else f"API: the recorded one of {APP}, or a new one with a new URL"


def _queues(found: Standing, stage: str) -> Iterator[str]:
    for each in too_many(mappings.consumers(stage), found, ()):
        yield f"mapping {each.uuid} of {each.queue} and {each.function}: one too many, removed"
