"""Brings functions back to the version before: their code, and then their rights, so that what still runs loses none.

Tables, queues, routes and settings stay as they are, and so does what the newer version stored (`chalicelib/store/newer.py`). What
has to be turned off first stands in CHANGELOG.md. A function that the version before did not have stays as it is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from infra.deployment import versions as kept
from infra.deployment.lock import Lock
from infra.deployment.patience import coded, patiently
from infra.deployment.standing import Function
from infra.deployment.versions import Version, Versions

TRIES = 40
_WAIT_SECONDS = 3.0
_UPDATED = "function_updated_v2"
_BEING_CHANGED = coded("ResourceConflictException")


def preview(functions: Mapping[str, Function], known: Versions, target: Version) -> list[str]:
    """What it will do, a line each."""
    running = sorted({each.version for each in functions.values()})
    lines = [f"functions run {', '.join(running)}", f"back to {target.code} of {target.at}: code and rights; settings stay"]
    if known.goal == target.code:
        lines.append("  the last rollback went there: this ends it")
    lines.append(f"  --to CODE for another version of {kept.listed(known)}")
    if target.runtime and any(_other_runtime(each, target) for each in functions.values()):
        lines.append(f"  for {target.runtime}: each function fails for some seconds, between its code and its runtime")
    lines += [f"  {name} stays: that version does not have it" for name in sorted(functions.keys() - target.rights.keys())]
    return lines + [
        f"  {name} is not there any more: deploy a checkout that has it" for name in sorted(target.rights.keys() - functions.keys())
    ]


def roll_back(
    session: Any, lock: Lock, functions: Mapping[str, Function], target: Version, wait: Callable[[float], None] = time.sleep
) -> list[str]:
    """Bring the functions back one after the other; those that changed. Safe to repeat after a cut, of the last call too: the goal
    is remembered until the next deploy. Raises CanNot where the lock is lost, botocore's ClientError.
    """
    before = kept.fetch(lock.bucket, lock.stage)
    if (before.goal, before.begun) != (target.code, None):
        before = kept.store(lock.bucket, lock.stage, replace(before, goal=target.code, begun=None))
    client, iam, changed = session.client("lambda"), session.client("iam"), []
    for name, rights in sorted(target.rights.items()):
        function = functions.get(name)
        if function is None:
            continue
        lock.demand()
        if function.version != target.code or _other_runtime(function, target):
            _update(client, lock, function, target, wait)
            changed.append(name)
        else:  # a rollback that was cut may have left it being updated, and what still runs needs the newer rights
            client.get_waiter(_UPDATED).wait(FunctionName=name)
        iam.put_role_policy(RoleName=function.role, PolicyName=function.role, PolicyDocument=json.dumps(rights, indent=2))
    kept.forget_after(lock.bucket, lock.stage, before, target)
    return changed


def _other_runtime(function: Function, target: Version) -> bool:
    return target.runtime not in (None, function.platform.runtime)


def _update(client: Any, lock: Lock, function: Function, target: Version, wait: Callable[[float], None]) -> None:
    """Code and processor in one step, and then the runtime: Lambda has no call for all of it. A package of another runtime does not
    start until then, and so does nothing by half.

    https://docs.aws.amazon.com/lambda/latest/api/API_UpdateFunctionCode.html
    https://docs.aws.amazon.com/lambda/latest/api/API_UpdateFunctionConfiguration.html
    """
    code: dict[str, Any] = {"S3Bucket": lock.bucket.name, "S3Key": target.key(lock.stage)}
    if target.architecture:
        code["Architectures"] = [target.architecture]
    _change(client, client.update_function_code, {"FunctionName": function.name, **code}, wait)
    if _other_runtime(function, target):
        _change(client, client.update_function_configuration, {"FunctionName": function.name, "Runtime": target.runtime}, wait)


def _change(client: Any, call: Callable[..., Any], arguments: dict[str, Any], wait: Callable[[float], None]) -> None:
    patiently(partial(call, **arguments), _BEING_CHANGED, partial(wait, _WAIT_SECONDS), TRIES)
    client.get_waiter(_UPDATED).wait(FunctionName=arguments["FunctionName"])
