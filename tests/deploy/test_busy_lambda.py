"""Chalice's client, ours and our commands where Lambda is busy with the change before, or does not know a new role yet."""

from __future__ import annotations

import functools
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import boto3
import botocore.session
import pytest
from chalice.constants import LAMBDA_TRUST_POLICY
from moto import mock_aws

from infra import mappings
from infra.deployment import mend, rolling_back
from infra.deployment.chalice_client import TRIES, Client
from infra.deployment.standing import QueueMapping
from infra.local import repairs
from infra.mappings import Consumer
from tests.deploy.busy_lambda import make_busy

NAME = "gateway-prod-relay"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """Time passes where somebody waits, botocore's waiters too."""
    passing = Clock()
    repairs.install_for_deploying()
    monkeypatch.setattr("time.sleep", passing.sleep)
    make_busy(lambda: passing.now, functools.partial(monkeypatch.setattr, raising=True))
    with mock_aws():
        yield passing


@pytest.fixture
def client(clock: Clock) -> Client:
    return Client(botocore.session.get_session(), clock.sleep)


@pytest.fixture
def role(clock: Clock) -> str:
    made = boto3.client("iam").create_role(RoleName=NAME, AssumeRolePolicyDocument=json.dumps(LAMBDA_TRUST_POLICY))
    return str(made["Role"]["Arn"])


def package(content: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("app.py", content)
    return file.getvalue()


def make(client: Client, role: str) -> None:
    client.create_function(NAME, role, package("1"), "python3.13", "app.app", timeout=3)  # type: ignore[arg-type]


def told() -> tuple[str, str]:
    found = boto3.client("lambda").get_function_configuration(FunctionName=NAME)
    return found["State"], found["LastUpdateStatus"]


def test_a_new_role_is_waited_for_and_the_function_until_it_is_active(client: Client, role: str) -> None:
    make(client, role)
    assert told() == ("Active", "Successful")


@pytest.mark.parametrize("change", ["code", "configuration"])
def test_a_change_behind_one_whose_answer_was_lost(client: Client, role: str, change: str) -> None:
    """Of a cut, or of a connection that broke: Lambda is at it still."""
    make(client, role)
    functions = boto3.client("lambda")
    if change == "code":
        functions.update_function_code(FunctionName=NAME, ZipFile=package("2"))
    else:
        functions.update_function_configuration(FunctionName=NAME, Timeout=9)
    assert told() == ("Active", "InProgress")
    client.update_function(NAME, package("3"), timeout=5)  # type: ignore[arg-type]
    assert told() == ("Active", "Successful")
    assert functions.get_function_configuration(FunctionName=NAME)["Timeout"] == 5


def test_botocores_own_repetition_of_a_configuration_is_refused_first(
    client: Client, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer was lost between code and configuration, so that it is sent twice, at once."""
    make(client, role)
    functions, sent = client._client("lambda"), list[str]()
    once = functions.update_function_configuration

    def twice(**given: Any) -> Any:
        sent.append("")
        if len(sent) == 1:
            once(**given)
        return once(**given)

    monkeypatch.setattr(functions, "update_function_configuration", twice)
    client.update_function(NAME, package("2"), timeout=7)  # type: ignore[arg-type]
    assert told() == ("Active", "Successful") and len(sent) == 2


def test_it_does_not_wait_for_ever(client: Client, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(client, role)
    monkeypatch.setattr(client, "_sleep", lambda _: None)
    boto3.client("lambda").update_function_configuration(FunctionName=NAME, Timeout=9)
    with pytest.raises(Exception, match="ResourceConflictException"):
        client._do_update_function_config(NAME, {"Timeout": 5})
    assert TRIES * client.DELAY_TIME == 120


def test_a_rollback_waits_between_code_and_runtime(client: Client, role: str, clock: Clock) -> None:
    make(client, role)
    functions = boto3.client("lambda")
    functions.update_function_code(FunctionName=NAME, ZipFile=package("2"))
    for call, given in (
        (functions.update_function_code, {"ZipFile": package("1")}),
        (functions.update_function_configuration, {"Runtime": "python3.11"}),
    ):
        rolling_back._change(functions, call, {"FunctionName": NAME, **given}, clock.sleep)
        assert told() == ("Active", "Successful")


@pytest.fixture
def mapping(client: Client, role: str) -> str:
    """Of a queue, just made; its id."""
    make(client, role)
    sqs = boto3.client("sqs")
    queue = sqs.create_queue(QueueName=NAME)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return str(client.create_lambda_event_source(arn, NAME, 10))


def state(mapping: str) -> str:
    return str(boto3.client("lambda").get_event_source_mapping(UUID=mapping)["State"])


@pytest.mark.parametrize("stopped", [True, False])
def test_a_stopped_mapping_that_was_just_updated_is_known_as_stopped(
    client: Client, mapping: str, clock: Clock, stopped: bool
) -> None:
    """As a deploy of a stopped stage leaves it: Lambda says Updating, and what it is behind that only then."""
    functions, heeded = client._client("lambda"), list[dict[str, Any]]()
    if stopped:
        assert mappings.stop(functions, [NAME], clock.sleep) == {}
    client.update_lambda_event_source(mapping, 5)
    assert state(mapping) == "Updating"

    def note(params: dict[str, Any], **_: Any) -> None:
        heeded.append(params)

    functions.meta.events.register("provide-client-params.lambda.UpdateEventSourceMapping", note)
    mappings.heed(functions, [Consumer(NAME, NAME, True)], mappings.standing(functions, [NAME]), clock.sleep)
    assert {each.get("Enabled") for each in heeded} == {False if stopped else None}
    client.update_lambda_event_source(mapping, 4)
    assert state(mapping) == "Updating"
    assert [each.uuid for each in mappings.start(functions, [NAME], clock.sleep)] == [mapping] * stopped
    clock.sleep(60)
    assert state(mapping) == "Enabled"


def test_a_deploy_waits_for_mappings_that_chalice_has_just_made(client: Client, mapping: str, clock: Clock) -> None:
    """Those that it sets nothing of, too: the check behind it would call them wrong."""
    functions, wanted = boto3.client("lambda"), [Consumer(NAME, NAME, False)]
    found = mappings.standing(functions, [NAME])
    (said,) = mappings.wrong(wanted, found)
    assert said == f"{NAME}: the mapping {mapping} is Creating: Lambda changes it, for seconds; look again"
    assert mappings.heed(functions, wanted, found, clock.sleep) == []
    assert mappings.wrong(wanted, mappings.standing(functions, [NAME])) == []


def test_mappings_are_changed_and_deleted_once_they_are_ready(client: Client, mapping: str, clock: Clock) -> None:
    """By Chalice, which reads AWS's words, and by ours."""
    functions, uuid = boto3.client("lambda"), mapping
    arn = functions.get_event_source_mapping(UUID=uuid)["EventSourceArn"]
    assert state(uuid) == "Creating"
    client.update_lambda_event_source(uuid, 5)
    wanted = [Consumer(NAME, NAME, True)]
    (changed,) = mappings.heed(functions, wanted, mappings.standing(functions, [NAME]), clock.sleep)
    found = functions.get_event_source_mapping(UUID=uuid)
    assert (changed.uuid, found["State"], found["BatchSize"]) == (uuid, "Enabled", 5)
    functions.update_event_source_mapping(UUID=uuid, BatchSize=4)
    assert mappings.stop(functions, [NAME], clock.sleep) == {}
    assert state(uuid) == "Disabling"
    assert [each.uuid for each in mappings.start(functions, [NAME], clock.sleep)] == [uuid]
    functions.update_event_source_mapping(UUID=uuid, BatchSize=3)
    mend.take_away(functions, [QueueMapping(uuid, NAME, arn, "Updating")], clock.sleep)
    uuid = str(client.create_lambda_event_source(arn, NAME, 10))
    client.remove_lambda_event_source(uuid)
    assert mappings.standing(functions, [NAME]) == []
