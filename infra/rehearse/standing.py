"""What a deployment brings to functions: the routes of its API, the rules that start functions, the queues that feed them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import boto3

from infra.local.gateway import Context
from infra.local.queues import Consumer, Schedule, Sources, period
from infra.mappings import ANSWERS

Call = Callable[[str, Any], Any]
"""Calls a function by its name with an event; gives its answer, raises what it raises."""


class Api:
    """One REST API as it was published: what `infra/local/gateway.py` asks of an app."""

    def __init__(self, api: str, call: Call) -> None:
        self._call = call
        self.routes: dict[str, dict[str, Any]] = {}
        pages = boto3.client("apigateway").get_paginator("get_resources").paginate(restApiId=api, embed=["methods"])
        for resource in (each for page in pages for each in page["items"]):
            for method, found in resource.get("resourceMethods", {}).items():
                uri = found["methodIntegration"].get("uri") or ""
                if ":function:" in uri:  # a preflight request is answered by the gateway itself
                    function = uri.split(":function:")[1].split("/")[0]
                    self.routes.setdefault(resource["path"], {})[method] = SimpleNamespace(function=function, cors=None)

    def __call__(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        answer: dict[str, Any] = self._call(self.routes[event["resource"]][event["httpMethod"]].function, event)
        return answer


def published(api: str, stage: str) -> str:
    """Which deployment of an API its stage shows; another one may have other routes. Raises botocore's ClientError where there is
    none."""
    return str(boto3.client("apigateway").get_stage(restApiId=api, stageName=stage)["deploymentId"])


def sources(call: Call) -> Sources:
    """Enabled rules with their targets, and enabled mappings with their batches."""
    return Sources(list(_schedules(call)), list(_consumers(call)))


def names(found: Sources) -> tuple[Any, ...]:
    """All that makes sources differ."""
    return (
        tuple((each.name, each.seconds) for each in found.schedules),
        tuple((each.name, each.queue_name, each.batch_size) for each in found.consumers),
    )


def _schedules(call: Call) -> Iterator[Schedule]:
    events = boto3.client("events")
    for page in events.get_paginator("list_rules").paginate():
        for rule in page["Rules"]:
            if rule["State"] != "ENABLED":
                continue
            for target in events.list_targets_by_rule(Rule=rule["Name"])["Targets"]:
                function = target["Arn"].rsplit(":", 1)[1]
                yield Schedule(_short(function), partial(_fired, call, function), period(rule["ScheduleExpression"]))


def _consumers(call: Call) -> Iterator[Consumer]:
    for page in boto3.client("lambda").get_paginator("list_event_source_mappings").paginate():
        for each in page["EventSourceMappings"]:
            if each["State"] == "Enabled":
                function, queue = each["FunctionArn"].split(":")[6], each["EventSourceArn"].rsplit(":", 1)[1]
                heeded = ANSWERS in (each.get("FunctionResponseTypes") or ())
                yield Consumer(_short(function), queue, each["BatchSize"], partial(_fed, call, function, heeded))


def _fired(call: Call, function: str, event: dict[str, Any], context: Any) -> None:
    call(function, event)


def _fed(call: Call, function: str, heeded: bool, event: dict[str, Any], context: Any) -> Any:
    """Without ReportBatchItemFailures Lambda ignores which messages failed, and deletes the batch."""
    answer = call(function, event)
    return answer if heeded else None


def _short(function: str) -> str:
    return function.split("-", 2)[-1]
