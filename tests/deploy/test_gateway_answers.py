"""What API Gateway says by itself: our shapes and the published statuses, on an API as `chalice deploy` leaves it."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
import pytest

from chalicelib.api.errors import STATUS
from infra import gateway_answers
from infra.cli import main
from infra.local.aws import LocalAws


@pytest.fixture
def api(aws: LocalAws) -> str:
    gateway = boto3.client("apigateway")
    made = str(gateway.create_rest_api(name="gateway")["id"])
    root = gateway.get_resources(restApiId=made)["items"][0]["id"]
    gateway.put_method(restApiId=made, resourceId=root, httpMethod="GET", authorizationType="NONE")
    gateway.put_integration(restApiId=made, resourceId=root, httpMethod="GET", type="MOCK")
    return made


def test_the_command_sets_every_answer_and_publishes_them(
    api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STAGE", "local")  # the command sets it for its process: it is put back at the end
    folder = tmp_path / ".chalice" / "deployed"
    folder.mkdir(parents=True)
    resources = [{"name": "api_handler", "resource_type": "lambda_function"}, {"resource_type": "rest_api", "rest_api_id": api}]
    (folder / "prod.json").write_text(json.dumps({"resources": resources}))
    for _ in range(2):
        assert main(["--stage", "prod", "gateway"]) == 0
    assert api in capsys.readouterr().out
    gateway = boto3.client("apigateway")
    found = {item["responseType"]: item for item in gateway.get_gateway_responses(restApiId=api)["items"]}
    for wanted in gateway_answers.answers():
        stands = found[wanted["responseType"]]
        body = json.loads(stands["responseTemplates"]["application/json"])
        assert str(STATUS[body["error"]["code"]]) == stands["statusCode"]
        assert set(body["error"]) == {"code", "message", "details"}
        assert stands["responseParameters"] == {"gatewayresponse.header.X-Request-Id": "context.requestId"}
    assert found["MISSING_AUTHENTICATION_TOKEN"]["statusCode"] == "404"
    assert [stage["stageName"] for stage in gateway.get_stages(restApiId=api)["item"]] == ["api"]


def test_without_a_deployment_it_says_so(
    aws: LocalAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STAGE", "local")
    assert main(["--stage", "prod", "gateway"]) == 1
    assert "infra.cli --stage prod deploy" in capsys.readouterr().err
