"""Brings functions back to the version before: their code, and then their rights, so that what still runs loses none.

Tables, queues, routes and settings stay as they are, and so does what the newer version stored (`chalicelib/store/newer.py`). What
has to be turned off first stands in CHANGELOG.md. A function that the version before did not have stays as it is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from infra.deployment import versions as kept
from infra.deployment.lock import Lock
from infra.deployment.standing import Function
from infra.deployment.versions import Version

TRIES = 40
_WAIT_SECONDS = 3.0


def preview(functions: Mapping[str, Function], target: Version) -> list[str]:
    """What it will do, a line each."""
    running = sorted({each.version for each in functions.values()})
    lines = [f"functions run {', '.join(running)}", f"back to {target.code} of {target.at}: code and rights; settings stay"]
    lines += [f"  {name} stays: that version does not have it" for name in sorted(functions.keys() - target.rights.keys())]
    return lines + [
        f"  {name} is not there any more: deploy a checkout that has it" for name in sorted(target.rights.keys() - functions.keys())
    ]


def roll_back(
    session: Any, lock: Lock, functions: Mapping[str, Function], target: Version, wait: Callable[[float], None] = time.sleep
) -> list[str]:
    """Bring the functions back one after the other; those that changed. Safe to repeat after a cut: the goal is remembered until
    the end. Raises CanNot where the lock is lost, botocore's ClientError.
    """
    before = kept.store(lock.bucket, lock.stage, replace(kept.fetch(lock.bucket, lock.stage), goal=target.code))
    client, iam, changed = session.client("lambda"), session.client("iam"), []
    for name, rights in sorted(target.rights.items()):
        function = functions.get(name)
        if function is None:
            continue
        lock.demand()
        if function.version != target.code:
            _update(client, lock, name, target, wait)
            changed.append(name)
        iam.put_role_policy(RoleName=function.role, PolicyName=function.role, PolicyDocument=json.dumps(rights, indent=2))
    kept.forget_after(lock.bucket, lock.stage, before, target)
    return changed


def _update(client: Any, lock: Lock, name: str, target: Version, wait: Callable[[float], None]) -> None:
    """https://docs.aws.amazon.com/lambda/latest/api/API_UpdateFunctionCode.html"""
    for left in reversed(range(TRIES)):
        try:
            client.update_function_code(FunctionName=name, S3Bucket=lock.bucket.name, S3Key=target.key)
        except client.exceptions.ResourceConflictException:  # it is being changed
            if not left:
                raise
            wait(_WAIT_SECONDS)
        else:
            client.get_waiter("function_updated_v2").wait(FunctionName=name)
            return
