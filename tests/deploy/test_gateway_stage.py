"""The API's stage: how many requests it lets through, its access log, and the account's role for logs, which may be another's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.apigateway.exceptions import BadRequestException
from moto.apigateway.models import APIGatewayBackend

from infra.commands.common import CanNot
from infra.deploy import TEMPLATE
from infra.deployment import gateway_stage, platform_settings
from infra.deployment.bucket import Bucket, bucket_of
from infra.deployment.platform_settings import Platform, of_stage
from infra.local import repairs
from tests.deploy.moto_facts import swagger
from tests.deploy.template_text import Loader

STAGE = "prod"
OTHERS = "arn:aws:iam::123456789012:role/of-another-team"


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    repairs.install_for_deploying()
    with mock_aws():
        yield bucket_of(boto3)


@pytest.fixture
def api(bucket: Bucket) -> str:
    """An API as Chalice leaves it: published, with no settings."""
    gateway = boto3.client("apigateway")
    made = str(gateway.import_rest_api(body=json.dumps(swagger()).encode())["id"])
    gateway.create_deployment(restApiId=made, stageName="api")
    return made


def settle(bucket: Bucket, api: str) -> list[str]:
    return gateway_stage.settle(boto3, bucket, STAGE, api, wait=lambda _: None)


def wrong(bucket: Bucket, api: str) -> list[str]:
    return list(gateway_stage.wrong(boto3, bucket, STAGE, api))


def set_for_the_stage(monkeypatch: pytest.MonkeyPatch, **platform: Any) -> None:
    wanted = Platform(**platform)
    monkeypatch.setattr(gateway_stage, "of_stage", lambda stage: wanted)


def test_a_stage_gets_its_bounds_and_its_log_once(bucket: Bucket, api: str) -> None:
    gateway = boto3.client("apigateway")
    assert [line.split(" requests a second")[0] for line in wrong(bucket, api)] == [
        "the API lets as many as the account may", "API Gateway of this account and region has no role to write logs by",
        "the API has another access log than /aws/apigateway/gateway-prod",
    ]  # fmt: skip
    said = settle(bucket, api)
    assert "gateway-access-log" in said[0] and "500 requests a second, 200 at once, an access log of 90 days" in said[1]
    stage = gateway.get_stage(restApiId=api, stageName="api")
    bounds = stage["methodSettings"]["*/*"]
    assert (bounds["throttlingRateLimit"], bounds["throttlingBurstLimit"]) == (500, 200)
    log = "arn:aws:logs:eu-central-1:123456789012:log-group:/aws/apigateway/gateway-prod"
    assert stage["accessLogSettings"]["destinationArn"] == log
    assert wrong(bucket, api) == []
    deployments = gateway.get_deployments(restApiId=api)["items"]
    assert len(deployments) == 2 and stage["deploymentId"] in {each["id"] for each in deployments}, "published with its settings"
    assert settle(bucket, api) == []
    gateway.create_deployment(restApiId=api, stageName="api")  # as each deploy does
    assert wrong(bucket, api) == [] and settle(bucket, api) == []


def test_what_a_line_of_the_access_log_has(bucket: Bucket, api: str) -> None:
    """Nothing that a caller sent but his choice of an id: no path, query, header, key. A claim link's token is in the path."""
    settle(bucket, api)
    text = boto3.client("apigateway").get_stage(restApiId=api, stageName="api")["accessLogSettings"]["format"]
    assert "\n" not in text and all(json.loads(text).values())
    assert set(re.findall(r"\$context\.([\w.]+)", text)) == {
        "requestId", "extendedRequestId", "requestTimeEpoch", "httpMethod", "resourcePath", "status", "error.responseType",
        "responseLatency", "identity.sourceIp", "integration.status", "integrationErrorMessage",
    }  # fmt: skip
    assert len(text) < 3_000, "what UpdateStage takes"


def test_the_accounts_role_is_never_overwritten(bucket: Bucket, api: str) -> None:
    gateway = boto3.client("apigateway")
    gateway.update_account(patchOperations=[{"op": "replace", "path": "/cloudwatchRoleArn", "value": OTHERS}])
    assert not any("role" in line for line in gateway_stage.plan(boto3, STAGE))
    (said,) = settle(bucket, api)
    assert "role" not in said and wrong(bucket, api) == []
    assert gateway.get_account()["cloudwatchRoleArn"] == OTHERS
    with pytest.raises(boto3.client("iam").exceptions.NoSuchEntityException):
        boto3.client("iam").get_role(RoleName=gateway_stage.ROLE)


def test_a_role_is_made_for_an_account_that_has_none(bucket: Bucket, api: str) -> None:
    iam, gateway = boto3.client("iam"), boto3.client("apigateway")
    assert "it gets the role gateway-access-log" in "".join(gateway_stage.plan(boto3, STAGE))
    iam.create_role(RoleName=gateway_stage.ROLE, AssumeRolePolicyDocument="{}")  # a deploy was cut behind it
    settle(bucket, api)
    role = iam.get_role(RoleName=gateway_stage.ROLE)["Role"]
    assert gateway.get_account()["cloudwatchRoleArn"] == role["Arn"]
    (policy,) = iam.list_role_policies(RoleName=gateway_stage.ROLE)["PolicyNames"]
    (allowed,) = iam.get_role_policy(RoleName=gateway_stage.ROLE, PolicyName=policy)["PolicyDocument"]["Statement"]
    assert "logs:PutLogEvents" in allowed["Action"] and all(each.startswith("logs:") for each in allowed["Action"])


def test_a_role_that_somebody_sets_meanwhile_stays(bucket: Bucket, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["", OTHERS])
    monkeypatch.setattr(gateway_stage, "_role", lambda _: next(answers, OTHERS))
    monkeypatch.setattr(APIGatewayBackend, "update_account", lambda *_: pytest.fail("overwritten"))
    settle(bucket, api)


def test_a_new_role_is_waited_for(bucket: Bucket, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """IAM tells it to everybody within seconds."""
    refusals, waited, update = iter(range(2)), list[float](), APIGatewayBackend.update_account

    def updated(self: APIGatewayBackend, patch_operations: Any) -> Any:
        if next(refusals, None) is not None:
            raise BadRequestException("The role ARN does not have required permissions configured.")
        return update(self, patch_operations)

    monkeypatch.setattr(APIGatewayBackend, "update_account", updated)
    gateway_stage.settle(boto3, bucket, STAGE, api, wait=waited.append)
    assert waited == [10.0, 10.0] and wrong(bucket, api) == []


def test_a_role_that_never_works_is_said_and_left(bucket: Bucket, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise BadRequestException("CloudWatch Logs role ARN must be set in account settings to enable logging")

    gateway = boto3.client("apigateway")
    gateway.update_account(patchOperations=[{"op": "replace", "path": "/cloudwatchRoleArn", "value": OTHERS}])
    monkeypatch.setattr(APIGatewayBackend, "update_stage", refused)
    with pytest.raises(CanNot, match=r"never overwritten here: mend it, or set platform\.access_log to false"):
        settle(bucket, api)
    assert gateway.get_account()["cloudwatchRoleArn"] == OTHERS


def test_another_refusal_is_no_matter_of_patience(bucket: Bucket, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise BadRequestException("Invalid patch path")

    monkeypatch.setattr(APIGatewayBackend, "update_stage", refused)
    with pytest.raises(ClientError, match="Invalid patch path"):
        gateway_stage.settle(boto3, bucket, STAGE, api, wait=lambda _: pytest.fail("it waits"))


def test_an_operators_settings_count(bucket: Bucket, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(bucket, api)
    set_for_the_stage(monkeypatch, throttle_rate=50, throttle_burst=20, access_log=False)
    assert wrong(bucket, api) == [
        "the API lets 500 and 200 requests a second and at once through, not 50 and 20", "the API has an access log",
    ]  # fmt: skip
    settle(bucket, api)
    stage = boto3.client("apigateway").get_stage(restApiId=api, stageName="api")
    assert stage["methodSettings"]["*/*"]["throttlingRateLimit"] == 50 and not stage.get("accessLogSettings")
    assert wrong(bucket, api) == []


def test_without_an_access_log_no_role_is_set(bucket: Bucket, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_for_the_stage(monkeypatch, access_log=False)
    settle(bucket, api)
    assert wrong(bucket, api) == [] and not boto3.client("apigateway").get_account().get("cloudwatchRoleArn")
    assert boto3.client("iam").list_roles()["Roles"] == []


def test_an_api_without_a_stage_is_said(bucket: Bucket) -> None:
    made = boto3.client("apigateway").create_rest_api(name="gateway")["id"]
    assert wrong(bucket, made) == [f"the API {made} is not published: it has no stage api"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.json"


def test_settings_of_a_stage_come_before_those_of_all(config: Path) -> None:
    config.write_text(json.dumps({"platform": {"throttle_rate": 9, "access_log_days": 30}, "stages": {"prod": {}}}))
    assert of_stage("prod", config) == Platform(9, 200, True, 30)
    config.write_text(json.dumps({"platform": {"throttle_rate": 9}, "stages": {"prod": {"platform": {"throttle_rate": 8}}}}))
    assert of_stage("prod", config) == Platform(8, 200, True, 90) and of_stage("demo", config) == Platform(9, 200, True, 7)
    assert of_stage("prod") == Platform()


@pytest.mark.parametrize(
    ("platform", "said"),
    [
        ({"throttle_rates": 5}, "knows no throttle_rates: throttle_rate, throttle_burst"),
        ({"throttle_rate": 0}, "platform.throttle_rate in config.json is 0, and has to be 1 to 10000"),
        ({"throttle_rate": "500"}, 'is "500", and has to be'),
        ({"throttle_burst": True}, "platform.throttle_burst in config.json is true"),
        ({"access_log": 1}, "platform.access_log in config.json is 1, and has to be true or false"),
        ({"access_log_days": 31}, "platform.access_log_days in config.json is 31, and has to be one of 1, 3"),
        (["throttle_rate"], "can not be read"),
    ],
)
def test_a_setting_that_is_none_is_named(config: Path, platform: Any, said: str) -> None:
    config.write_text(json.dumps({"platform": platform}))
    with pytest.raises(CanNot, match=re.escape(said)):
        of_stage("prod", config)


def test_the_log_is_the_templates_and_is_kept_as_long_as_cloudwatch_can() -> None:
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

    logs = yaml.load(TEMPLATE.read_text(), Loader=Loader)["Resources"]["AccessLogs"]["Properties"]  # noqa: S506 - a SafeLoader
    assert logs["LogGroupName"]["Fn::Sub"].replace("${Stage}", STAGE) == gateway_stage.log_group(STAGE)
    assert logs["RetentionInDays"] == {"Ref": "AccessLogDays"}
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("eu-central-1", "AWS::Logs::LogGroup").schema
    assert list(platform_settings.LOG_DAYS) == schema["properties"]["RetentionInDays"]["enum"]


def test_chalice_passes_over_what_is_not_its(config: Path) -> None:
    from chalice.config import Config

    loaded = json.loads(platform_settings.CONFIG.read_text()) | {"platform": {"throttle_rate": 1}}
    assert Config(chalice_stage="prod", config_from_disk=loaded).environment_variables["STAGE"] == "prod"
