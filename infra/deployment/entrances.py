"""What starts a stage's functions, compared with app.py: the API's routes, the rules, and who may call which function.

Chalice sets all of it, functions first and the API last: a cut between leaves new code behind old routes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from chalicelib.settings import APP
from infra.deployment.standing import Function, Standing
from infra.gateway_answers import API_STAGE

_NAMED = 3


def routes(gateway: Any, api: str) -> Iterator[str]:
    """Where what the API serves is not what app.py has, a line each. Raises botocore's ClientError.

    A stage serves a deployment, which is the API as it was when that was made: what was put since is not served.
    https://docs.aws.amazon.com/apigateway/latest/api/API_GetDeployment.html (apiSummary)
    """
    from app import app

    try:
        deployment = gateway.get_stage(restApiId=api, stageName=API_STAGE)["deploymentId"]
    except gateway.exceptions.NotFoundException:
        return  # told by `gateway_stage.wrong`
    summary = gateway.get_deployment(restApiId=api, deploymentId=deployment, embed=["apisummary"]).get("apiSummary", {})
    served = {(path, method) for path, methods in summary.items() for method in methods}
    declared = {(path, method) for path, methods in app.routes.items() for method in methods}
    if lacking := declared - served:
        yield f"the API does not serve {_words(lacking)}, which app.py has"
    if surplus := served - declared:
        yield f"the API serves {_words(surplus)}, which app.py does not have"


def rules(client: Any, found: Standing, stage: str) -> Iterator[str]:
    """What is wrong with the rules that start functions by the clock, a line each. Raises botocore's ClientError."""
    for own, schedule in _schedules().items():
        rule, function = _rule_of(stage, own), f"{APP}-{stage}-{own}"
        if rule not in found.rules:
            yield f"nothing starts {function}: there is no rule {rule}"
            continue
        stands = client.describe_rule(Name=rule)
        if stands["State"] != "ENABLED":
            yield f"the rule {rule} is not enabled"
        if (other := stands.get("ScheduleExpression")) != schedule:
            yield f"the rule {rule} has the schedule {other}, not {schedule}"
        targets = [each["Arn"] for each in client.list_targets_by_rule(Rule=rule)["Targets"]]
        if not targets:
            yield f"the rule {rule} starts nothing"
        elif not any(arn.endswith(f":function:{function}") for arn in targets):
            yield f"the rule {rule} starts {', '.join(sorted(set(targets)))}, and not {function}"


def permissions(session: Any, found: Standing, stage: str) -> Iterator[str]:
    """Which functions the API or a rule that stands may not call, a line each. Raises botocore's ClientError.

    Each has a statement of its own in the function's policy, as Chalice makes it.
    https://docs.aws.amazon.com/lambda/latest/dg/access-control-resource-based.html
    """
    client, events = session.client("lambda"), session.client("events")
    if len(found.apis) == 1 and (function := found.functions.get(f"{APP}-{stage}")):
        partition, _, region, account = function.arn.split(":")[1:5]
        source = f"arn:{partition}:execute-api:{region}:{account}:{found.apis[0]}/*"
        if not _may_call(client, function, "apigateway", source):
            yield f"{function.name} may not be called by its REST API {found.apis[0]}"
    for own in _schedules():
        rule, started = _rule_of(stage, own), found.functions.get(f"{APP}-{stage}-{own}")
        if started is None or rule not in found.rules:
            continue  # told by `rules`, or where functions are looked at
        if not _may_call(client, started, "events", events.describe_rule(Name=rule)["Arn"]):
            yield f"{started.name} may not be started by its rule {rule}"


def _may_call(client: Any, function: Function, service: str, source: str) -> bool:
    """https://docs.aws.amazon.com/lambda/latest/api/API_GetPolicy.html"""
    try:
        statements = json.loads(client.get_policy(FunctionName=function.name)["Policy"])["Statement"]
    except client.exceptions.ResourceNotFoundException:
        return False
    return any(_allows(each, service, source) for each in statements)


def _allows(statement: dict[str, Any], service: str, source: str) -> bool:
    principal, condition = statement.get("Principal"), statement.get("Condition", {})
    return (
        (statement.get("Effect"), statement.get("Action")) == ("Allow", "lambda:InvokeFunction")
        and isinstance(principal, dict)
        and str(principal.get("Service", "")).startswith(f"{service}.amazonaws.com")
        and condition.get("ArnLike", {}).get("AWS:SourceArn") == source
    )


def _schedules() -> dict[str, str]:
    """The schedules of app.py by their functions' own names, as EventBridge says them."""
    from chalice.app import ScheduledEventConfig, ScheduleExpression

    from app import app

    every = [each for each in app.event_sources if isinstance(each, ScheduledEventConfig)]
    said = {each.name: each.schedule_expression for each in every}
    return {name: each.to_string() if isinstance(each, ScheduleExpression) else str(each) for name, each in said.items()}


def _rule_of(stage: str, own: str) -> str:
    return f"{APP}-{stage}-{own}-event"


def _words(routes: set[tuple[str, str]]) -> str:
    """The first of them by name, and how many more."""
    named = [f"{method} {path}" for path, method in sorted(routes)]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"{', '.join(named[:_NAMED])}{more}"
