"""What Lambda is told of each function beside its code, and Chalice can not say.

* A function that sends to its own queue is stopped after 16 rounds as a loop, unless that is allowed.
  https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
* A schedule's event that failed, or found no room, is tried again for six hours: each of them comes beside the next minute's.
  https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
* What sees payments and pays keeps some of the account's concurrency for itself, whatever the API and webhooks take. Lambda leaves
  at least 100 to all others.
  https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from chalicelib.settings import APP
from infra.commands.common import CanNot

LEFT_TO_OTHERS = 100
API = 100
"""Requests at once. The API has no reserve: it would be a bound."""
_CIRCLES = ("relay", "deliver", "deliver_slow", "scan_range")
_RESERVED = {"payout": 20, "collect": 8, "poll": 2, "housekeeping": 2}
"""By the name, or its beginning, in the order in which functions are stopped. A poll may still run when the next minute's begins. A
reserve is a bound, too: what a queue brings at once (`maximum_concurrency` in app.py) is no more, or Lambda turns messages away,
which counts as a failure of theirs. https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
"""
_TRIES, _WAIT_SECONDS = 5, 2.0
_QUOTA = "aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000"


class Set(NamedTuple):
    """Of one function. `reserved`: None is no reserve. `circles`: whether it may call itself by its queue. `retries` and
    `age_seconds`: of a schedule's event, both None where Lambda's own count (2, six hours)."""

    reserved: int | None
    circles: bool
    retries: int | None
    age_seconds: int | None


def declared(stage: str) -> dict[str, Set]:
    """By Lambda's names of the functions."""
    from chalice.app import ScheduledEventConfig

    from app import app

    wanted = {f"{APP}-{stage}": Set(None, False, None, None)}
    for source in app.event_sources:
        alone = (0, 60) if isinstance(source, ScheduledEventConfig) else (None, None)
        wanted[f"{APP}-{stage}-{source.name}"] = Set(_reserve(source.name), source.name in _CIRCLES, *alone)
    return wanted


def standing(client: Any, function: str) -> Set:
    """`client` is Lambda's. Raises botocore's ClientError."""
    reserved = _reserved(client, function)
    circles = client.get_function_recursion_config(FunctionName=function)["RecursiveLoop"] == "Allow"
    try:
        asked = client.get_function_event_invoke_config(FunctionName=function)
    except ClientError as error:
        if _code(error) != "ResourceNotFoundException":
            raise
        asked = {}
    return Set(reserved, circles, asked.get("MaximumRetryAttempts"), asked.get("MaximumEventAgeInSeconds"))


def settle(client: Any, stage: str, functions: Sequence[str], *, start: bool = False) -> list[str]:
    """Set what differs; the functions that were changed. What is stopped stays so, or is started, the API last. Without room for a
    reserve its function is called without one. Raises botocore's ClientError."""
    changed = []
    for function, wanted in reversed(declared(stage).items()):
        found = standing(client, function) if function in functions else wanted
        if found == wanted:
            continue
        if found.circles != wanted.circles:
            allowed = "Allow" if wanted.circles else "Terminate"
            client.put_function_recursion_config(FunctionName=function, RecursiveLoop=allowed)
        if (found.retries, found.age_seconds) != (wanted.retries, wanted.age_seconds):
            _put_retries(client, function, wanted)
        if found.reserved != wanted.reserved and (start or found.reserved != 0):
            _put_reserve(client, function, wanted.reserved)
        changed.append(function)
    return changed


def stop(client: Any, functions: Sequence[str], wait: Callable[[float], None] = time.sleep) -> dict[str, str]:
    """Have none of these functions called any more, first of all those that pay; what runs goes on until its end. Those that Lambda
    refused to stop, several times in turn, with what it said."""
    left = dict.fromkeys(sorted(functions, key=_urgency), "")
    for tries in reversed(range(_TRIES)):
        left = {name: said for name in left if (said := _refusal(client, name))}
        if not left or not tries:
            break
        wait(_WAIT_SECONDS)
    return left


def _urgency(function: str) -> int:
    """First what pays, then what sees payments, last of all the others."""
    name = function.rsplit("-", 1)[-1]
    return next((place for place, beginning in enumerate(_RESERVED) if name.startswith(beginning)), len(_RESERVED))


def _refusal(client: Any, function: str) -> str:
    """What Lambda says against stopping a function; nothing where it is stopped, or gone."""
    try:
        client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=0)
    except ClientError as error:
        return "" if _code(error) == "ResourceNotFoundException" else str(error)
    return ""


def stopped(client: Any, functions: Sequence[str]) -> list[str]:
    """Those of these functions that are stopped. Raises botocore's ClientError."""
    return [name for name in functions if _reserved(client, name) == 0]


def wrong(client: Any, stage: str, functions: Sequence[str]) -> Iterator[str]:
    """In what each function differs, a line for it. Raises botocore's ClientError."""
    for function, wanted in declared(stage).items():
        found = standing(client, function) if function in functions else wanted
        if found.reserved == 0:
            yield f"{function} is stopped: start-functions has it called again"
        elif found != wanted:
            yield f"{function}: {', '.join(_parts(found, wanted))}"


def _parts(found: Set, wanted: Set) -> Iterator[str]:
    if found.reserved != wanted.reserved:
        yield f"it has a reserve of {found.reserved or 'nothing'}, not of {wanted.reserved or 'nothing'}"
    if found.circles != wanted.circles:
        yield "Lambda stops it after 16 rounds" if wanted.circles else "it may call itself without end"
    if (found.retries, found.age_seconds) != (wanted.retries, wanted.age_seconds):
        yield "events of its schedule are tried again" if wanted.retries == 0 else "events are tried otherwise than declared"


def demand_room(client: Any, stage: str) -> str:
    """A line about the account's concurrency. Raises CanNot where the reserve does not fit in, botocore's ClientError.

    A new account has ten: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    """
    limits, names = client.get_account_settings()["AccountLimit"], declared(stage)
    mine, limit = sum(wanted.reserved or 0 for wanted in names.values()), limits["ConcurrentExecutions"]
    others = max(0, limit - limits["UnreservedConcurrentExecutions"] - sum(_reserved(client, name) or 0 for name in names))
    if limit < mine + others + LEFT_TO_OTHERS:
        raise CanNot(
            f"Lambda runs at most {limit} functions at once in this account and region, and {mine + others + LEFT_TO_OTHERS} are "
            f"needed, {mine} of them in reserve for what moves money. Ask for more, and try again when it is granted: {_QUOTA}"
        )
    said = f"concurrency: {mine} of {limit} in reserve for polls, payouts, collections and housekeeping"
    wanted = mine + others + share(stage)
    return said if limit >= wanted else f"{said}; the API may be short of it below {wanted}: {_QUOTA}"


def share(stage: str) -> int:
    """Functions at once that the stage may have running beside its reserve: what queues bring, schedules, and requests."""
    from chalice.app import SQSEventConfig

    from app import app

    free = [source for source in app.event_sources if declared(stage)[f"{APP}-{stage}-{source.name}"].reserved is None]
    return API + sum((source.maximum_concurrency or 0) if isinstance(source, SQSEventConfig) else 1 for source in free)


def _reserved(client: Any, function: str) -> int | None:
    """None for a function that is not there, too."""
    try:
        found: int | None = client.get_function_concurrency(FunctionName=function).get("ReservedConcurrentExecutions")
    except ClientError as error:
        if _code(error) != "ResourceNotFoundException":
            raise
        return None
    return found


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]


def _reserve(name: str) -> int | None:
    return next((count for beginning, count in _RESERVED.items() if name.startswith(beginning)), None)


def _put_retries(client: Any, function: str, wanted: Set) -> None:
    if wanted.retries is None or wanted.age_seconds is None:
        client.delete_function_event_invoke_config(FunctionName=function)
        return
    client.put_function_event_invoke_config(
        FunctionName=function, MaximumRetryAttempts=wanted.retries, MaximumEventAgeInSeconds=wanted.age_seconds
    )


def _put_reserve(client: Any, function: str, reserved: int | None) -> None:
    if reserved is None:
        client.delete_function_concurrency(FunctionName=function)
        return
    try:
        client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=reserved)
    except ClientError as error:
        if _code(error) != "InvalidParameterValueException":
            raise
        client.delete_function_concurrency(FunctionName=function)
