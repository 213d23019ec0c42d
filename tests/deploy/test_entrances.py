"""What starts a stage's functions: the check says where a cut or a hand has left something else than app.py declares."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from chalice.deploy.swagger import SwaggerGenerator
from moto import mock_aws

from app import app
from infra.deployment import entrances
from infra.deployment.standing import look
from infra.local import repairs
from tests.deploy.made_functions import make_function

STAGE, API, RATES, RULE = "prod", "gateway-prod", "gateway-prod-rates", "gateway-prod-rates-event"
ONE, OTHER = "/v1/invoices", "/v1/webhooks/{id}/deliveries"
ARN = f"arn:aws:lambda:eu-central-1:123456789012:function:{API}"


@pytest.fixture
def account() -> Iterator[None]:
    repairs.install_for_deploying()
    with mock_aws():
        for name in (API, RATES):
            make_function(name, "1")
        yield


@pytest.fixture
def api(account: None) -> str:
    """An API of one of app.py's routes, as a first deploy has published it."""
    gateway = boto3.client("apigateway")
    made = str(gateway.import_rest_api(body=routes(ONE))["id"])
    gateway.create_deployment(restApiId=made, stageName="api")
    allow(API, "apigateway", f"arn:aws:execute-api:eu-central-1:123456789012:{made}/*")
    return made


@pytest.fixture
def rule(account: None) -> None:
    """The rule of one schedule, as a deploy leaves it."""
    events = boto3.client("events")
    arn = events.put_rule(Name=RULE, ScheduleExpression="rate(1 minute)")["RuleArn"]
    aim(f"{ARN}-rates")
    allow(RATES, "events", arn)


def routes(*paths: str) -> bytes:
    """What Chalice sends API Gateway of some of app.py's routes."""
    whole = SwaggerGenerator("eu-central-1", {"api_handler_arn": ARN}).generate_swagger(app)
    return json.dumps(
        {**whole, "info": {**whole["info"], "title": "gateway"}, "paths": {p: whole["paths"][p] for p in paths}}
    ).encode()


def aim(*arns: str) -> None:
    boto3.client("events").put_targets(Rule=RULE, Targets=[{"Id": str(n), "Arn": arn} for n, arn in enumerate(arns, 1)])


def allow(function: str, service: str, source: str) -> None:
    given = {"FunctionName": function, "StatementId": service, "Action": "lambda:InvokeFunction", "SourceArn": source}
    boto3.client("lambda").add_permission(**given, Principal=f"{service}.amazonaws.com")


def of_routes(api: str) -> list[str]:
    return list(entrances.routes(boto3.client("apigateway"), api))


def of_the_rule() -> list[str]:
    return [line for line in entrances.rules(boto3.client("events"), look(boto3, STAGE), STAGE) if RULE in line]


def of_permissions() -> list[str]:
    return list(entrances.permissions(boto3, look(boto3, STAGE), STAGE))


def keep_routes(monkeypatch: pytest.MonkeyPatch, *paths: str) -> None:
    monkeypatch.setattr(app, "routes", {path: app.routes[path] for path in paths})


def test_an_api_that_lags_behind_its_functions(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain `chalice deploy` was cut before PutRestApi, and then once more before CreateDeployment."""
    gateway = boto3.client("apigateway")
    keep_routes(monkeypatch, ONE)
    assert of_routes(api) == []
    monkeypatch.undo()
    keep_routes(monkeypatch, ONE, OTHER)
    lacks = [f"the API does not serve GET {OTHER}, which app.py has"]
    assert of_routes(api) == lacks
    gateway.put_rest_api(restApiId=api, mode="overwrite", body=routes(*app.routes))
    assert of_routes(api) == lacks, "what is not published is not served"
    gateway.create_deployment(restApiId=api, stageName="api")
    assert of_routes(api) == []


def test_routes_that_app_py_has_no_more(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_routes(monkeypatch, OTHER)
    lacks, more = of_routes(api)
    assert f"GET {OTHER}" in lacks
    assert more == f"the API serves GET {ONE}, POST {ONE}, PUT {ONE}, which app.py does not have"


def test_of_many_routes_three_are_named(api: str) -> None:
    (lacks,) = of_routes(api)
    methods = sum(map(len, app.routes.values()))
    assert lacks.count(", ") == 3 and f" and {methods - 3 - 3} more, which app.py has" in lacks


def test_an_api_that_was_never_published_serves_nothing(account: None) -> None:
    """That it has no stage is told with the stage's settings."""
    made = boto3.client("apigateway").import_rest_api(body=routes(ONE))["id"]
    assert of_routes(made) == []


def test_a_rule_of_another_schedule(rule: None) -> None:
    assert of_the_rule() == []
    boto3.client("events").put_rule(Name=RULE, ScheduleExpression="rate(1 day)")
    assert of_the_rule() == [f"the rule {RULE} has the schedule rate(1 day), not rate(1 minute)"]


def test_a_rule_that_starts_another_function(rule: None) -> None:
    """A second target is somebody's own, and does no harm."""
    other = f"{ARN}-housekeeping"
    aim(f"{ARN}-rates", other)
    assert of_the_rule() == []
    aim(other, other)
    assert of_the_rule() == [f"the rule {RULE} starts {other}, and not {RATES}"]


@pytest.mark.parametrize("answer", ["none", "of another API", "of another service", "of another principal", "for one method"])
def test_a_function_that_its_api_may_not_call(api: str, answer: str) -> None:
    """Each request would be answered with 500."""
    assert of_permissions() == []
    functions = boto3.client("lambda")
    functions.remove_permission(FunctionName=API, StatementId="apigateway")
    if answer == "of another API":
        allow(API, "apigateway", "arn:aws:execute-api:eu-central-1:123456789012:another/*")
    if answer == "of another service":
        allow(API, "events", f"arn:aws:execute-api:eu-central-1:123456789012:{api}/*")
    if answer == "of another principal":
        given: dict[str, Any] = {"StatementId": "hand", "Action": "lambda:InvokeFunction", "Principal": "210987654321"}
        functions.add_permission(FunctionName=API, **given)
    if answer == "for one method":
        allow(API, "apigateway", f"arn:aws:execute-api:eu-central-1:123456789012:{api}/GET{ONE}")
    assert of_permissions() == [f"{API} may not be called by its REST API {api}"]


def test_a_function_that_its_rule_may_not_start(rule: None) -> None:
    assert of_permissions() == []
    boto3.client("lambda").remove_permission(FunctionName=RATES, StatementId="events")
    assert of_permissions() == [f"{RATES} may not be started by its rule {RULE}"]
