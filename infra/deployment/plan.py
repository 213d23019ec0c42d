"""What a deploy will do, a line for each part, told before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chalicelib.settings import APP
from infra import lambda_platform, mappings
from infra.deploy import TEMPLATE, stack_name
from infra.deployment import code, elsewhere, gateway_stage, key_stack, retained, standing, stopping
from infra.deployment.bucket import Bucket
from infra.deployment.code import api_url
from infra.deployment.mend import too_many
from infra.deployment.stack import Stack
from infra.deployment.standing import Standing
from infra.deployment.taken_away import Way, let_go, taken_away

_NEW = (None, "ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS")


def plan(session: Any, bucket: Bucket, stage: str) -> list[str]:
    """The lines. Changes nothing. Raises CanNot where the stack can not be brought to its template, or the stage stands in another
    region; botocore's ClientError."""
    found = standing.look(session, stage)
    parts = (
        iter([bucket.where]),
        _elsewhere(session, bucket, stage, found),
        _keys(session, bucket, stage),
        _stack(session, bucket, stage),
        _functions(found, stage),
        _stopped(session.client("lambda"), bucket, stage, found),
        _api(found, bucket),
        gateway_stage.plan(session, stage),
        _queues(found, stage),
        iter(["then: what API Gateway answers by itself, records of older versions, a check of all that stands"]),
    )
    return [line for part in parts for line in part]


def _elsewhere(session: Any, bucket: Bucket, stage: str, found: Standing) -> Iterator[str]:
    # A region that does not answer now may answer under the lock, where the plan has to be the same.
    if other := elsewhere.demand_no_other(session, bucket, stage, found.functions).stands:
        yield f"  its roles are also those of stage {stage} in {', '.join(other)}"


def _keys(session: Any, bucket: Bucket, stage: str) -> Iterator[str]:
    keys, main = (Stack(session.client("cloudformation"), bucket, n) for n in (key_stack.name_of(stage), stack_name(stage)))
    state = keys.state()
    lacking = key_stack.outside(session.client("kms"), stage, keys.holds())
    if lacking:
        place = "from the main stack" if key_stack.held(main) else "from outside of any stack"
        yield f"stack {keys.name} ({state or 'new'}): takes {len(lacking)} keys and aliases, as they are, {place}"
    elif state in _NEW:
        yield f"stack {keys.name}: new, with all keys"
    elif keys.template().strip() != key_stack.KEYS.read_text().strip():
        yield f"stack {keys.name} ({state}): brought to infra/{key_stack.KEYS.name}, by the rights of {key_stack.RIGHTS}"
    if gone := key_stack.taken_away(keys, key_stack.KEYS.read_text()):
        yield f"  before the functions, takes away {', '.join(gone)}"


def _stack(session: Any, bucket: Bucket, stage: str) -> Iterator[str]:
    name, dynamodb = stack_name(stage), session.client("dynamodb")
    main = Stack(session.client("cloudformation"), bucket, name)
    state, text = main.state(), TEMPLATE.read_text()
    outside = retained.look(session, text, stage, main.holds(), bucket)
    if outside.found:
        yield f"stack {name} ({state or 'new'}): takes {retained.words(outside)} that stand already, as they are"
    if state in _NEW:
        after = "" if state is None else ", once the one that could not be made is gone"
        yield f"stack {name}: new, with tables, queues, logs and alarms{after}"
        return
    yield f"stack {name} ({state}): brought to infra/{TEMPLATE.name}"
    if gone := taken_away(main, dynamodb, text, stage):
        yield f"  behind the functions, takes away {', '.join(gone)}"
    if left := let_go(main, text):
        yield f"  behind the functions, {', '.join(left)} leaves it, and stays with all that is in it"
    way = Way(main, dynamodb, text, stage)
    updates = way.count()
    if way.indexes():
        yield f"  in {updates} update{'s' * (updates > 1)}: one index of a table is made or removed in each, which may take hours"


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


def _stopped(client: Any, bucket: Bucket, stage: str, found: Standing) -> Iterator[str]:
    known = code.recorded_functions(bucket, stage, code.PROJECT)
    stopped, whole = stopping.to_stay(client, sorted(found.functions), known)
    again = "start-functions has them called again"
    if whole:
        yield f"  all {len(stopped)} are stopped, and stay so, with their queues; new ones, too: {again}"
    elif stopped:
        count = f"{len(stopped)} of {len(found.functions)}"
        yield f"  {count} are stopped, and stay so, with their queues: {again}: {', '.join(stopped)}"


def _api(found: Standing, bucket: Bucket) -> Iterator[str]:
    known = ", ".join(api_url(bucket).format(api) for api in found.apis)
    yield f"API: {known}" if known else f"API: the recorded one of {APP}, or a new one with a new URL"


def _queues(found: Standing, stage: str) -> Iterator[str]:
    for each in too_many(mappings.consumers(stage), found, ()):
        yield f"mapping {each.uuid} of {each.queue} and {each.function}: one too many, removed"
