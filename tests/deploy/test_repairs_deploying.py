"""The repairs of moto's API Gateway and of its CloudFormation: that moto still needs each, and that each does what AWS does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.local.repairs.apigateway import openapi_of, repair_apigateway
from infra.local.repairs.cloudformation import repair_cloudformation
from tests.deploy.conftest import ROOT, run_python

_AS_INSTALLED = """
import json
from moto import mock_aws
from infra.local.aws import isolate_environment
isolate_environment()
import boto3
from tests.deploy.test_repairs_deploying import FACTS

faults = []
for fact in FACTS:
    with mock_aws():
        try:
            fact()
        except Exception as error:
            faults.append([fact.__name__, type(error).__name__])
print(json.dumps(faults))
"""

LAMBDA = "arn:aws:apigateway:eu-central-1:lambda:path/2015-03-31/functions/arn:aws:lambda:eu-central-1:1:function:f/invocations"


def swagger() -> dict[str, Any]:
    """What Chalice writes for one route with a parameter and CORS."""
    from chalice import Chalice
    from chalice.deploy.swagger import SwaggerGenerator

    app = Chalice("sample")
    app.route("/things/{id}", methods=["GET", "PUT"], cors=True)(lambda id: {})
    return SwaggerGenerator("eu-central-1", {"api_handler_arn": "arn:aws:lambda:eu-central-1:1:function:f"}).generate_swagger(app)


def imports_swagger() -> None:
    gateway = boto3.client("apigateway")
    api = gateway.import_rest_api(body=json.dumps(swagger()).encode())
    _holds_the_routes(api["id"])


def puts_swagger() -> None:
    gateway = boto3.client("apigateway")
    api = gateway.create_rest_api(name="sample")
    gateway.put_rest_api(restApiId=api["id"], mode="overwrite", body=json.dumps(swagger()).encode())
    _holds_the_routes(api["id"])


def _holds_the_routes(api: str) -> None:
    gateway = boto3.client("apigateway")
    found = {r["path"]: r for r in gateway.get_resources(restApiId=api, embed=["methods"])["items"]}
    assert set(found) == {"/", "/things", "/things/{id}"}
    assert set(found["/things/{id}"]["resourceMethods"]) == {"GET", "PUT", "OPTIONS"}
    got = gateway.get_integration(restApiId=api, resourceId=found["/things/{id}"]["id"], httpMethod="GET")
    assert got["uri"] == LAMBDA
    assert got["type"].upper() == "AWS_PROXY"


def makes_signing_keys() -> None:
    template = {
        "Resources": {
            "Hot": {
                "Type": "AWS::KMS::Key",
                "Properties": {
                    "KeySpec": "ECC_SECG_P256K1",
                    "KeyUsage": "SIGN_VERIFY",
                    "KeyPolicy": {"Version": "2012-10-17", "Statement": []},
                },
            }
        }
    }
    boto3.client("cloudformation").create_stack(StackName="keys", TemplateBody=json.dumps(template))
    kms = boto3.client("kms")
    (key,) = kms.list_keys()["Keys"]
    described = kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]
    assert (described["KeySpec"], described["KeyUsage"]) == ("ECC_SECG_P256K1", "SIGN_VERIFY")
    assert json.loads(kms.get_key_policy(KeyId=key["KeyId"], PolicyName="default")["Policy"])["Version"] == "2012-10-17"


FACTS = (imports_swagger, puts_swagger, makes_signing_keys)


@pytest.fixture
def repaired() -> Iterator[None]:
    repair_apigateway()
    repair_cloudformation()
    with mock_aws():
        yield


@pytest.fixture(scope="module")
def faults() -> dict[str, str]:
    """The facts that moto gets wrong without our repairs, in a process of its own."""
    return dict(json.loads(run_python(ROOT, "-c", _AS_INSTALLED)))


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.__name__)
def test_moto_still_needs_the_repair(faults: dict[str, str], fact: Any) -> None:
    assert fact.__name__ in faults, "moto does this by itself now: drop the repair"


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.__name__)
def test_repaired(repaired: None, fact: Any) -> None:
    fact()


def test_the_translation_is_valid_openapi() -> None:
    from openapi_spec_validator import validate

    translated = openapi_of(swagger())
    # Chalice names the path's parameter in every operation but its own preflight, which the validator minds.
    del translated["paths"]["/things/{id}"]["options"]
    validate(translated)
    method = translated["paths"]["/things/{id}"]["get"]
    assert method["parameters"] == [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    assert method["x-amazon-apigateway-integration"]["uri"] == LAMBDA


def test_openapi_stays_as_it_is() -> None:
    document = {"openapi": "3.0.1", "info": {"title": "t", "version": "1", "description": "d"}, "paths": {}}
    assert openapi_of(document) == document
