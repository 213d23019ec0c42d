"""What API Gateway says by itself: our shapes and the published statuses, on an API as `chalice deploy` leaves it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from chalicelib.api.errors import STATUS
from infra import gateway_answers
from infra.cli import main
from infra.local.aws import LocalAws


@pytest.fixture
def api(aws: LocalAws) -> Iterator[str]:
    gateway = boto3.client("apigateway")
    made = str(gateway.create_rest_api(name="gateway")["id"])
    root = gateway.get_resources(restApiId=made)["items"][0]["id"]
    gateway.put_method(restApiId=made, resourceId=root, httpMethod="GET", authorizationType="NONE")
    function = "arn:aws:lambda:eu-central-1:1:function:gateway-prod"
    uri = f"arn:aws:apigateway:eu-central-1:lambda:path/2015-03-31/functions/{function}/invocations"
    gateway.put_integration(
        restApiId=made, resourceId=root, httpMethod="GET", type="AWS_PROXY", integrationHttpMethod="POST", uri=uri
    )
    yield made
    gateway.delete_rest_api(restApiId=made)


def test_the_command_sets_every_answer_and_publishes_them(
    api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a checkout that has deployed nothing, and from one whose record names an API that is gone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STAGE", "local")  # the command sets it for its process: it is put back at the end
    assert main(["--stage", "prod", "gateway"]) == 0
    folder = tmp_path / ".chalice" / "deployed"
    folder.mkdir(parents=True)
    (folder / "prod.json").write_text(json.dumps({"resources": [{"resource_type": "rest_api", "rest_api_id": "gone"}]}))
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
    assert "0 REST APIs serve stage prod; deploy first\n" in capsys.readouterr().err
