"""The repairs of moto's API Gateway, CloudFormation, S3 and Lambda: moto still needs each, and each does what AWS does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from infra.local.repairs.apigateway import openapi_of, repair_apigateway
from infra.local.repairs.cloudformation import repair_cloudformation
from infra.local.repairs.functions import repair_functions
from infra.local.repairs.s3 import repair_s3
from tests.deploy.conftest import ROOT, run_python
from tests.deploy.moto_facts import FACTS, LAMBDA, swagger

_AS_INSTALLED = """
import json
from moto import mock_aws
from infra.local.aws import isolate_environment, share_loader
from infra.local.repairs.loading import repair_loading
from infra.local.repairs.speed import repair_speed
# These save time alone.
isolate_environment(), share_loader(), repair_loading(), repair_speed()
import boto3
from tests.deploy.moto_facts import FACTS

faults = []
for fact in FACTS:
    with mock_aws():
        try:
            fact()
        except Exception as error:
            faults.append([fact.__name__, type(error).__name__])
print(json.dumps(faults))
"""


@pytest.fixture
def repaired() -> Iterator[None]:
    repair_apigateway()
    repair_cloudformation()
    repair_s3()
    repair_functions()
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
