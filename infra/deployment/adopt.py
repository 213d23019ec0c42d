"""Chalice's record, brought in line with what stands.

Chalice looks functions, roles and rules up by their names. A queue's mapping and the REST API it knows from its record alone:
without an entry it makes a second one, which Lambda refuses (409) and API Gateway gives a new URL. An entry of what is gone fails
as well, when Chalice removes what app.py does not have any more. It writes the record at the end of a deploy that went well, so
after a cut both happen. https://github.com/aws/chalice/issues/2146
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.settings import APP
from infra.commands.common import CanNot
from infra.deployment.record import Resource
from infra.deployment.standing import QueueMapping, Standing, is_made_by_chalice, role_is_there

API = "api_handler"
"""Chalice's name for the function behind the REST API."""
_ROLE, _EVENT, _QUEUE = "_role", "-event", "-sqs-event-source"


def adopted(
    recorded: Sequence[Resource], found: Standing, queues: Mapping[str, str], stage: str, session: Any, url: str
) -> list[Resource]:
    """The record as Chalice is to have it. `queues` says which queue each consumer of app.py has, by Lambda's name of the function;
    `url` is the address of an API, with {} for its id.

    Raises CanNot where two REST APIs serve the stage; botocore's ClientError.
    """
    known = {each["name"]: each for each in recorded}
    functions = {name: each for name, each in found.functions.items() if _is_ours(known, session, stage, each)}
    entries: list[Resource] = []
    for name, function in sorted(functions.items()):
        short = short_name(stage, name)
        if function.role.startswith(f"{APP}-{stage}-"):
            entries.append(_role(f"{short}{_ROLE}", function.role, function.arn))
        entries.append({"name": short, "resource_type": "lambda_function", "lambda_arn": function.arn})
    entries += _roles_left(known, entries, session.client("iam"))
    entries += [
        {"name": rule.removeprefix(f"{APP}-{stage}-"), "resource_type": "cloudwatch_event", "rule_name": rule}
        for rule in found.rules
    ]
    for name in sorted(functions):
        mine = [each for each in found.mappings if each.function == name]
        if mine:
            entries.append(_mapping(kept(mine, queues.get(name), known), functions[name].arn, stage))
    return entries + _api(known, found, stage, url)


def kept(mine: Sequence[QueueMapping], queue: str | None, known: Mapping[str, Resource]) -> QueueMapping:
    """Of a function's mappings, the one that stays: of the right queue, and among those the one that is recorded."""
    recorded = {entry.get("event_uuid") for entry in known.values()}
    return min(mine, key=lambda each: (each.queue != queue, each.uuid not in recorded, each.uuid))


def short_name(stage: str, function: str) -> str:
    """What Chalice calls a function of Lambda."""
    return function.removeprefix(f"{APP}-{stage}").removeprefix("-") or API


def _is_ours(known: Mapping[str, Resource], session: Any, stage: str, function: Any) -> bool:
    """Recorded, or tagged by Chalice: a function that somebody named alike is not taken, since Chalice would remove it."""
    recorded = known.get(short_name(stage, function.name), {}).get("lambda_arn") == function.arn
    return recorded or is_made_by_chalice(session.client("lambda"), stage, function)


def _role(name: str, role: str, arn: str) -> Resource:
    partition, account = arn.split(":")[1], arn.split(":")[4]
    return {"name": name, "resource_type": "iam_role", "role_arn": f"arn:{partition}:iam::{account}:role/{role}", "role_name": role}


def _roles_left(known: Mapping[str, Resource], entries: Sequence[Resource], iam: Any) -> list[Resource]:
    """Recorded roles without a function that still stand."""
    here = {each["name"] for each in entries}
    left = [each for each in known.values() if each["resource_type"] == "iam_role" and each["name"] not in here]
    return [each for each in left if role_is_there(iam, each["role_name"])]


def _mapping(mapping: QueueMapping, arn: str, stage: str) -> Resource:
    return {
        "name": f"{short_name(stage, mapping.function)}{_QUEUE}",
        "resource_type": "sqs_event",
        "queue_arn": mapping.queue_arn,
        "event_uuid": mapping.uuid,
        "queue": mapping.queue,
        "lambda_arn": arn,
    }


def _api(known: Mapping[str, Resource], found: Standing, stage: str, url: str) -> list[Resource]:
    """The API that calls the stage's function; or the recorded one, whatever it calls now: merchants know its URL."""
    recorded = known.get("rest_api", {}).get("rest_api_id")
    apis = found.apis or tuple(api for api in found.every_api if api == recorded)
    demand_one_api(apis, stage, url, recorded)
    return [{"name": "rest_api", "resource_type": "rest_api", "rest_api_id": api, "rest_api_url": url.format(api)} for api in apis]


def demand_one_api(apis: Sequence[str], stage: str, url: str, recorded: str | None = None) -> None:
    """Raises CanNot where more than one of the REST APIs serves the stage; it names all."""
    if len(apis) > 1:
        of_each = ", ".join(f"{api} ({url.format(api)}{'; the recorded one' if api == recorded else ''})" for api in apis)
        raise CanNot(
            f"{len(apis)} REST APIs serve stage {stage}: {of_each}. Merchants use one of them: look at their metrics, delete each"
            " other by aws apigateway delete-rest-api --rest-api-id ID, and run this again"
        )
