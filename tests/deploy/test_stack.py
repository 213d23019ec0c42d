"""What CloudFormation is sent of a stack, and what becomes of its answers: the documented calls, where moto might be lenient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from infra.commands.common import CanNot
from infra.deployment.bucket import make_bucket
from infra.deployment.stack import Existing, Stack
from infra.deployment.stack_states import CHANGE_SET
from infra.local import repairs

TEXT = """
Parameters: {Stage: {Type: String}, AlarmTopic: {Type: String, Default: ""}}
Resources:
  Ledger: {Type: "AWS::DynamoDB::Table", DeletionPolicy: Retain, Properties: {TableName: !Sub "gateway-${Stage}-ledger"}}
  Queue: {Type: "AWS::SQS::Queue"}
"""
GIVEN = {"Stage": "demo", "AlarmTopic": None}
PARAMETERS = [{"ParameterKey": "Stage", "ParameterValue": "demo"}, {"ParameterKey": "AlarmTopic", "ParameterValue": "arn"}]
Made = Callable[..., tuple[Stack, list[dict[str, Any]], list[float]]]


def described(status: str = "UPDATE_COMPLETE", **more: Any) -> tuple[str, dict[str, Any]]:
    stack = {"StackName": "gateway-demo", "CreationTime": datetime(2026, 1, 1), "StackStatus": status, "Parameters": PARAMETERS}
    return "describe_stacks", {"Stacks": [{**stack, **more}]}


@pytest.fixture
def made() -> Iterator[Made]:
    """Makes a stack whose CloudFormation answers as it is told, in this order; with what was sent, and how long it was waited."""
    repairs.install()
    with mock_aws():
        bucket, stubbers = make_bucket(boto3), list[Stubber]()

        def make(*answers: tuple[str, str | dict[str, Any]]) -> tuple[Stack, list[dict[str, Any]], list[float]]:
            formation: Any = boto3.client("cloudformation", region_name="eu-central-1")
            stubber, sent, waited = Stubber(formation), list[dict[str, Any]](), list[float]()
            for operation, answer in answers:
                if isinstance(answer, str):
                    stubber.add_client_error(operation, "ValidationError", answer)
                else:
                    stubber.add_response(operation, answer)
            stubber.activate()
            stubbers.append(stubber)
            for operation in ("CreateStack", "UpdateStack", "CreateChangeSet"):
                formation.meta.events.register(
                    f"provide-client-params.cloudformation.{operation}", lambda params, **_: sent.append(params)
                )
            return Stack(formation, bucket, "gateway-demo", waited.append, protected=True), sent, waited

        yield make
        for stubber in stubbers:
            stubber.assert_no_pending_responses()


def test_a_parameter_that_is_not_given_keeps_its_value(made: Made) -> None:
    stack, sent, _ = made(described(), ("update_stack", "No updates are to be performed."))
    stack.update(TEXT, GIVEN)
    assert sent[0]["Parameters"] == [
        {"ParameterKey": "Stage", "ParameterValue": "demo"},
        {"ParameterKey": "AlarmTopic", "UsePreviousValue": True},
    ]


def test_a_new_stack_has_no_value_to_keep(made: Made) -> None:
    stack, sent, _ = made(("create_stack", {}), described("CREATE_COMPLETE"))
    stack.make(TEXT, GIVEN)
    assert sent[0]["Parameters"][1] == {"ParameterKey": "AlarmTopic", "ParameterValue": ""}
    assert sent[0]["EnableTerminationProtection"] is True


def test_a_template_that_is_not_found_yet_is_sent_again(made: Made) -> None:
    """The bucket was made a moment ago."""
    said = ("update_stack", "S3 error: The specified key does not exist.")
    stack, _, waited = made(described(), said, said, ("update_stack", "No updates are to be performed."))
    stack.update(TEXT, GIVEN)
    assert len(waited) == 2


@pytest.mark.parametrize("operation", ["update_stack", "create_stack"])
def test_a_refusal_is_not_swallowed(made: Made, operation: str) -> None:
    answers = [described()] if operation == "update_stack" else []
    stack, _, _ = made(*answers, (operation, "Template error: the resource is wrong"))
    with pytest.raises(ClientError, match="the resource is wrong"):
        (stack.update if operation == "update_stack" else stack.make)(TEXT, GIVEN)


IMPORTED = {"Ledger": Existing("AWS::DynamoDB::Table", {"TableName": "gateway-demo-ledger"})}
NONE = ("describe_stacks", "Stack with id gateway-demo does not exist")


def test_an_import_names_what_it_brings_and_holds_nothing_else(made: Made) -> None:
    stack, sent, waited = made(
        NONE,
        ("create_change_set", {}),
        ("describe_change_set", {"Status": "CREATE_IN_PROGRESS"}),
        ("describe_change_set", {"Status": "CREATE_COMPLETE"}),
        ("execute_change_set", {}),
        described("IMPORT_IN_PROGRESS"),
        described("IMPORT_COMPLETE"),
    )
    stack.bring_in(TEXT, GIVEN, IMPORTED)
    assert len(waited) == 2
    assert (sent[0]["ChangeSetName"], sent[0]["ChangeSetType"]) == (CHANGE_SET, "IMPORT")
    (resource,) = sent[0]["ResourcesToImport"]
    identifier = {"TableName": "gateway-demo-ledger"}
    assert resource == {"ResourceType": "AWS::DynamoDB::Table", "LogicalResourceId": "Ledger", "ResourceIdentifier": identifier}
    body = stack.bucket.client.get_object(Bucket=stack.bucket.name, Key=sent[0]["TemplateURL"].split("amazonaws.com/")[1])[
        "Body"
    ].read()
    assert b"gateway-${Stage}-ledger" in body and b"Queue" not in body


def test_what_cloudformation_does_not_take_is_told(made: Made) -> None:
    failed = {"Status": "FAILED", "StatusReason": "gateway-demo-ledger is in the stack another"}
    stack, _, _ = made(NONE, ("create_change_set", {}), ("describe_change_set", failed))
    with pytest.raises(CanNot, match="gateway-demo does not take what stands already: gateway-demo-ledger is in the stack another"):
        stack.bring_in(TEXT, GIVEN, IMPORTED)


def test_an_import_that_was_rolled_back_is_told(made: Made) -> None:
    stack, _, _ = made(
        NONE,
        ("create_change_set", {}),
        ("describe_change_set", {"Status": "CREATE_COMPLETE"}),
        ("execute_change_set", {}),
        described("IMPORT_ROLLBACK_COMPLETE"),
        ("describe_stack_events", {"StackEvents": []}),
    )
    with pytest.raises(CanNot, match="IMPORT_ROLLBACK_COMPLETE"):
        stack.bring_in(TEXT, GIVEN, IMPORTED)


def test_protection_is_asked_for_where_it_is_missing(made: Made) -> None:
    stack, _, _ = made(described(EnableTerminationProtection=True))
    stack.protect()
    stack, _, _ = made(described(EnableTerminationProtection=False), ("update_termination_protection", {}))
    stack.protect()
