"""What Lambda is told of each function beside its code, and Chalice can not say, or takes away at each deploy.

* A function that sends to its own queue is stopped after 16 rounds as a loop, unless that is allowed.
  https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
* A schedule's event that failed, or found no room, is tried again for six hours: each of them comes beside the next minute's.
  https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
* What sees payments and pays keeps some of the account's concurrency for itself, whatever the API and webhooks take. Lambda leaves
  at least 100 to all others. Chalice removes the reserve at each deploy.
  https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from chalicelib.settings import APP
from infra.commands.common import CanNot

LEFT_TO_OTHERS = 100
SHARE = 232
"""Functions at once that the stage wants of the account beside its reserve: relay and deliver a hundred each, the slow ones twenty,
and a dozen schedules that begin in the same second."""
_CIRCLES = ("relay", "deliver", "deliver_slow", "scan_range")
_RESERVED = {"poll": 2, "payout": 8, "collect": 8, "housekeeping": 2}
"""By the name, or its beginning. A poll may still run when the next minute's begins; a message of payouts and collections is a
wallet's or an address's, and nodes have limits."""
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
    except client.exceptions.ResourceNotFoundException:
        asked = {}
    return Set(reserved, circles, asked.get("MaximumRetryAttempts"), asked.get("MaximumEventAgeInSeconds"))


def settle(client: Any, stage: str, functions: Sequence[str]) -> list[str]:
    """Set what differs, also of functions that are stopped; the functions that were changed. Raises botocore's ClientError."""
    changed = []
    for function, wanted in declared(stage).items():
        found = standing(client, function) if function in functions else wanted
        if found == wanted:
            continue
        if found.circles != wanted.circles:
            allowed = "Allow" if wanted.circles else "Terminate"
            client.put_function_recursion_config(FunctionName=function, RecursiveLoop=allowed)
        if (found.retries, found.age_seconds) != (wanted.retries, wanted.age_seconds):
            _put_retries(client, function, wanted)
        if found.reserved != wanted.reserved:
            _put_reserve(client, function, wanted.reserved)
        changed.append(function)
    return changed


def stop(client: Any, functions: Sequence[str]) -> None:
    """Have none of these functions called any more; what runs goes on until its end. Raises botocore's ClientError."""
    for function in functions:
        client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=0)


def stopped(client: Any, functions: Sequence[str]) -> list[str]:
    """Those of these functions that are stopped. Raises botocore's ClientError."""
    return [
        name for name in functions if client.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions") == 0
    ]


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
    """A line about the account's concurrency. Raises CanNot where the stage does not fit in, botocore's ClientError.

    A new account has ten: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    """
    limits, names = client.get_account_settings()["AccountLimit"], declared(stage)
    mine = sum(wanted.reserved or 0 for wanted in names.values())
    others = limits["ConcurrentExecutions"] - limits["UnreservedConcurrentExecutions"] - _kept(client, list(names))
    needed = mine + max(0, others) + max(SHARE, LEFT_TO_OTHERS)
    if limits["ConcurrentExecutions"] < needed:
        raise CanNot(
            f"Lambda runs at most {limits['ConcurrentExecutions']} functions at once in this account and region, and {needed} are "
            f"needed, {mine} of them in reserve for what moves money. Ask for more, and try again when it is granted: {_QUOTA}"
        )
    return f"concurrency: {mine} of {limits['ConcurrentExecutions']} in reserve for polls, payouts, collections and housekeeping"


def _kept(client: Any, functions: Sequence[str]) -> int:
    """What these functions have in reserve now."""
    kept = 0
    for name in functions:
        try:
            kept += _reserved(client, name) or 0
        except client.exceptions.ResourceNotFoundException:
            continue
    return kept


def _reserved(client: Any, function: str) -> int | None:
    found: int | None = client.get_function_concurrency(FunctionName=function).get("ReservedConcurrentExecutions")
    return found


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
    else:
        client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=reserved)
