"""The command `mappings`: what it sets after a deployment, what it says of one that went wrong, and that it may be run again."""

from __future__ import annotations

import io
import re
import time
import zipfile
from argparse import Namespace
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import botocore.client
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from chalicelib.settings import VARIABLES
from infra import mappings
from infra.cli import main
from infra.deployment import function_settings, stopping
from infra.deployment.bucket import make_bucket
from infra.local import repairs
from tests.deploy.declared import consumers

STAGE = "prod"
ID = "b4f2c6ae-0000-4000-8000-000000000001"
BATCHES = {"gateway-prod-relay", "gateway-prod-deliver", "gateway-prod-deliver_slow"}


class Deployed:
    """Functions, queues and mappings as a deployment leaves them."""

    def __init__(self) -> None:
        self.functions, self.queues = boto3.client("lambda"), boto3.client("sqs")
        trust = '{"Version": "2012-10-17", "Statement": []}'
        role = boto3.client("iam").create_role(RoleName="any", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("app.py", "")
        for function, queue in consumers(STAGE).items():
            self.queues.create_queue(QueueName=queue, Attributes={"FifoQueue": "true"} if queue.endswith(".fifo") else {})
            self.functions.create_function(
                FunctionName=f"gateway-{STAGE}-{function}",
                Runtime="python3.11",
                Role=role,
                Handler="app",
                Code={"ZipFile": file.getvalue()},
            )
            self.map(function, queue)

    def map(self, function: str, queue: str) -> str:
        url = self.queues.get_queue_url(QueueName=queue)["QueueUrl"]
        arn = self.queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        made = self.functions.create_event_source_mapping(
            FunctionName=f"gateway-{STAGE}-{function}", EventSourceArn=arn, BatchSize=1 if queue.endswith(".fifo") else 10
        )
        return str(made["UUID"])

    def of(self, function: str) -> list[str]:
        listed = self.functions.list_event_source_mappings()["EventSourceMappings"]
        return [m["UUID"] for m in listed if m["FunctionArn"].endswith(f":gateway-{STAGE}-{function}")]

    def states(self) -> set[str]:
        return {each["State"] for each in self.functions.list_event_source_mappings()["EventSourceMappings"]}

    def heeded(self) -> set[str]:
        listed = self.functions.list_event_source_mappings()["EventSourceMappings"]
        return {m["FunctionArn"].rsplit(":", 1)[1] for m in listed if m.get("FunctionResponseTypes") == ["ReportBatchItemFailures"]}


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)  # an operator's shell has none of the tests' settings
    repairs.install_for_deploying()
    with mock_aws():
        yield Deployed()


def test_it_sets_what_chalice_can_not_and_may_be_run_again(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--stage", STAGE, "mappings", "--check"]) == 1
    assert deployed.heeded() == set(), "a check changes nothing"
    said = capsys.readouterr().err.splitlines()
    assert {line.split(":")[0] for line in said} == BATCHES and all("ReportBatchItemFailures" in line for line in said)

    assert main(["--stage", STAGE, "mappings"]) == 0
    assert deployed.heeded() == BATCHES
    assert main(["--stage", STAGE, "mappings", "--check"]) == 0
    capsys.readouterr()
    assert main(["--stage", STAGE, "mappings"]) == 0
    assert capsys.readouterr().out.splitlines() == ["all 9 consumers of stage prod get their messages, and what they answer counts"]


def test_a_doubled_mapping_is_set_and_reported(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    """A message that either brings is handled well; but the bounds on what runs at once are doubled, too."""
    more = deployed.map("deliver", "gateway-prod-deliveries")
    assert main(["--stage", STAGE, "mappings"]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("gateway-prod-deliver: 2 mappings of gateway-prod-deliveries") and all(
        i in said for i in deployed.of("deliver")
    )
    found = deployed.functions.get_event_source_mapping(UUID=more)
    assert found["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    deployed.functions.delete_event_source_mapping(UUID=more)
    assert main(["--stage", STAGE, "mappings"]) == 0


def test_what_is_missing_off_or_foreign_is_said(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.functions.delete_event_source_mapping(UUID=deployed.of("payout")[0])
    deployed.functions.update_event_source_mapping(UUID=deployed.of("scan_range")[0], Enabled=False)
    deployed.map("relay", "gateway-prod-scans")
    assert main(["--stage", STAGE, "mappings"]) == 1
    said = capsys.readouterr().err
    assert "gateway-prod-payout: nothing brings it the messages of gateway-prod-payouts.fifo: deploy again" in said
    assert f"gateway-prod-scan_range: the mapping {deployed.of('scan_range')[0]} is Disabled" in said
    assert "gateway-prod-relay: it gets messages of gateway-prod-scans, which app.py does not say" in said
    assert len(said.splitlines()) == 3
    assert deployed.heeded() == BATCHES, "what can be set is set all the same"


def test_another_stages_mappings_are_not_touched(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--stage", "demo", "mappings"]) == 1
    assert deployed.heeded() == set()
    assert len(capsys.readouterr().err.splitlines()) == len(consumers("demo"))


def test_stopping_functions_stops_their_queues_and_starting_starts_both(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    """A function that is stopped turns messages away, and each comes to the dead letters after some turns."""
    for _ in range(2):
        assert main(["--stage", STAGE, "stop-functions"]) == 0
        assert deployed.states() == {"Disabled"}
    assert main(["--stage", STAGE, "mappings"]) == 1
    assert deployed.states() == {"Disabled"} and deployed.heeded() == BATCHES, "what is set for a stopped one leaves it so"
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 9 and all(line.endswith("is Disabled: start-functions has it bring messages again") for line in said)
    for _ in range(2):
        assert main(["--stage", STAGE, "start-functions"]) == 0
        assert deployed.states() == {"Enabled"}
    assert main(["--stage", STAGE, "mappings"]) == 0


def test_functions_stop_before_their_queues_and_start_before_them(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stops brings no payment first; nothing brings a message to a function that is stopped."""
    asked: list[str] = []
    call = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

    def watched(self: Any, operation: str, arguments: Any) -> Any:
        if operation in ("PutFunctionConcurrency", "DeleteFunctionConcurrency", "UpdateEventSourceMapping"):
            asked.append(operation)
        return call(self, operation, arguments)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", watched)
    functions = [f"gateway-{STAGE}-{name}" for name in consumers(STAGE)]
    assert stopping.stop(deployed.functions, functions, wait=lambda _: None) == {}
    assert asked == ["PutFunctionConcurrency"] * 9 + ["UpdateEventSourceMapping"] * 9
    asked.clear()
    stopping.start(deployed.functions, STAGE, functions, wait=lambda _: None)
    assert asked[-9:] == ["UpdateEventSourceMapping"] * 9 and "UpdateEventSourceMapping" not in asked[:-9]


@pytest.mark.parametrize("command", ["stop-functions", "start-functions"])
def test_a_command_that_was_cut_is_ended_by_running_it_again(
    deployed: Deployed, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each call that changes something. What it leaves meanwhile is named by the check."""
    other = {"stop-functions": "start-functions", "start-functions": "stop-functions"}[command]
    call = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]
    left: list[int] = []

    def cut(self: Any, operation: str, arguments: Any) -> Any:
        if left and re.match("(Put|Delete|Update)", operation):
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
        return call(self, operation, arguments)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", cut)
    wanted = "Disabled" if command == "stop-functions" else "Enabled"
    assert main(["--stage", STAGE, "mappings"]) == 0
    for at in (1, 10, 18):
        left.clear()
        assert main(["--stage", STAGE, other]) == 0
        left.append(at)
        with pytest.raises(KeyboardInterrupt):
            main(["--stage", STAGE, command])
        left.clear()
        functions = [f"gateway-{STAGE}-{name}" for name in consumers(STAGE)]
        assert deployed.states() != {wanted}
        assert main(["--stage", STAGE, command]) == 0
        assert deployed.states() == {wanted}
        assert len(function_settings.stopped(deployed.functions, functions)) == (9 if wanted == "Disabled" else 0)


def test_a_deploy_leaves_queues_stopped_those_of_new_mappings_too(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    from infra import deploy, gateway_answers
    from infra.commands import deploying
    from infra.deployment import code, gateway_stage, versions

    def chalice(*given: Any) -> list[dict[str, str]]:
        deployed.functions.delete_event_source_mapping(UUID=deployed.of("relay")[0])
        deployed.map("relay", "gateway-prod-relay")
        behind = given[-1]
        behind()
        return [{"name": "rest_api", "resource_type": "rest_api", "rest_api_id": "a1b2c3"}]

    assert main(["--stage", STAGE, "stop-functions"]) == 0
    monkeypatch.setattr(code, "deploy_code", chalice)
    monkeypatch.setattr(versions, "fetch", lambda *_: versions.Versions())
    for module, name in ((deploying, "prepare_stage"), (deploying, "reopen"), (gateway_answers, "put_answers")):
        monkeypatch.setattr(module, name, lambda *_, **__: 0)
    for module, name in ((gateway_stage, "settle"), (deploy, "end_stack")):
        monkeypatch.setattr(module, name, lambda *_, **__: [])
    lock: Any = SimpleNamespace(demand=lambda: None, bucket=make_bucket(boto3))
    deploying._deploy(Namespace(stage=STAGE), lock, boto3)
    assert deployed.states() == {"Disabled"} and len(deployed.of("relay")) == 1


def test_what_is_set_for_a_stopped_mapping_keeps_it_stopped() -> None:
    client = boto3.client("lambda", region_name="eu-central-1")
    wanted = [mappings.Consumer("gateway-prod-relay", "gateway-prod-relay", True)]
    found = [mappings.Mapping(ID, "gateway-prod-relay", "gateway-prod-relay", "Disabled", False)]
    asked = {"UUID": ID, "FunctionResponseTypes": ["ReportBatchItemFailures"], "Enabled": False}
    with Stubber(client) as stub:
        stub.add_response("update_event_source_mapping", {"UUID": ID, "State": "Updating"}, asked)
        stub.add_response("get_event_source_mapping", {"UUID": ID, "State": "Disabled"}, {"UUID": ID})
        assert mappings.heed(client, wanted, found, lambda _: None) == found
        stub.assert_no_pending_responses()


def test_a_mapping_that_can_not_be_stopped_is_named(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is busy is tried again; the others are stopped."""
    stuck, busy = deployed.of("relay")[0], deployed.of("payout")[0]
    refused = {stuck: 10**6, busy: 2}
    call = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

    def refusing(self: Any, operation: str, arguments: Any) -> Any:
        if operation == "UpdateEventSourceMapping" and refused.get(arguments["UUID"], 0):
            refused[arguments["UUID"]] -= 1
            raise ClientError({"Error": {"Code": "ResourceInUseException", "Message": "busy"}}, operation)
        return call(self, operation, arguments)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", refusing)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(mappings.stop, "__defaults__", (lambda _: None,))
    monkeypatch.setattr(stopping.stop, "__defaults__", (lambda _: None,))
    assert main(["--stage", STAGE, "stop-functions"]) == 1
    assert f"{stuck} is still called" in capsys.readouterr().err
    states = {each["UUID"]: each["State"] for each in deployed.functions.list_event_source_mappings()["EventSourceMappings"]}
    assert states.pop(stuck) == "Enabled" and set(states.values()) == {"Disabled"}


def test_a_mapping_that_is_being_changed_is_waited_for() -> None:
    """moto's are ready at once. On AWS `chalice deploy` has changed them a moment before."""
    client = boto3.client("lambda", region_name="eu-central-1")
    waited: list[float] = []
    wanted = [mappings.Consumer("gateway-prod-relay", "gateway-prod-relay", True)]
    found = [mappings.Mapping(ID, "gateway-prod-relay", "gateway-prod-relay", "Updating", False)]
    asked = {"UUID": ID, "FunctionResponseTypes": ["ReportBatchItemFailures"]}
    with Stubber(client) as stub:

        def tell(*states: str) -> None:
            for state in states:
                stub.add_response("get_event_source_mapping", {"UUID": ID, "State": state}, {"UUID": ID})

        tell("Updating", "Enabled")  # whether it is on is known then
        stub.add_client_error("update_event_source_mapping", "ResourceInUseException", expected_params=asked)
        stub.add_response("update_event_source_mapping", {"UUID": ID, "State": "Updating"}, asked)
        tell("Updating", "Enabled")
        assert mappings.heed(client, wanted, found, waited.append) == found
        stub.assert_no_pending_responses()
        assert len(waited) == 3
        tell("Enabled")
        for _ in range(mappings.TRIES):
            stub.add_client_error("update_event_source_mapping", "ResourceInUseException")
        with pytest.raises(ClientError, match="ResourceInUse"):
            mappings.heed(client, wanted, found, waited.append)
        tell("Enabled")
        stub.add_client_error("update_event_source_mapping", "AccessDeniedException")
        with pytest.raises(ClientError, match="AccessDenied"):
            mappings.heed(client, wanted, found, waited.append)


def test_a_function_with_a_version_in_its_arn_is_known() -> None:
    arn = "arn:aws:lambda:eu-central-1:123456789012:function:gateway-prod-relay"
    for each in (arn, f"{arn}:7"):
        seen: dict[str, Any] = {
            "UUID": "id",
            "FunctionArn": each,
            "EventSourceArn": "arn:aws:sqs:eu-central-1:1:q",
            "State": "Enabled",
        }
        assert mappings._mapping(seen) == mappings.Mapping("id", "gateway-prod-relay", "q", "Enabled", False)
