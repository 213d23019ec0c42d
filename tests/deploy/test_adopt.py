"""Chalice's record, shared, and brought in line with what stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from infra.commands.common import CanNot
from infra.deployment import record
from infra.deployment.adopt import adopted
from infra.deployment.bucket import Bucket, make_bucket
from infra.deployment.standing import Function, QueueMapping, Standing
from infra.lambda_platform import Platform
from infra.local import repairs
from tests.deploy.recorded import URL, WHOLE, arn

STAGE = "prod"
QUEUES = {"gateway-prod-relay": "gateway-prod-relay"}


def function(name: str, role: str) -> Function:
    return Function(name, arn(name), role, "checksum", "today", Platform("python3.13", "x86_64"))


def mapping(uuid: str, queue: str = "gateway-prod-relay") -> QueueMapping:
    return QueueMapping(uuid, "gateway-prod-relay", f"arn:aws:sqs:eu-central-1:1:{queue}", "Enabled")


FOUND = Standing(
    {
        "gateway-prod": function("gateway-prod", "gateway-prod-api_handler"),
        "gateway-prod-relay": function("gateway-prod-relay", "gateway-prod-relay"),
    },
    ("gateway-prod-poll_tron-event",),
    (mapping("m1"),),
    ("abc",),
    ("abc", "demos"),
)


class Session:
    """An account whose functions are tagged as Chalice does, but `strangers`; whose roles stand, but `gone`."""

    def __init__(self, strangers: tuple[str, ...] = (), gone: tuple[str, ...] = ()) -> None:
        self.strangers, self.gone = strangers, gone

    def client(self, service: str) -> Any:
        return self

    def list_tags(self, Resource: str) -> dict[str, Any]:
        known = Resource.rsplit(":", 1)[1] not in self.strangers
        return {"Tags": {"aws-chalice": "version=1.32.0:stage=prod:app=gateway"} if known else {}}

    def get_role(self, RoleName: str) -> None:
        if RoleName in self.gone:
            raise ClientError({"Error": {"Code": "NoSuchEntity"}}, "GetRole")  # type: ignore[typeddict-item]


def names(resources: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in resources]


def adopt(recorded: Any, found: Standing = FOUND, session: Any = None) -> list[dict[str, Any]]:
    return adopted(recorded, found, QUEUES, STAGE, session or Session(), URL)


def test_what_stands_is_recorded_where_nothing_was() -> None:
    """A second checkout, or a deploy that was cut before Chalice wrote anything."""
    assert adopt([]) == WHOLE
    assert adopt(WHOLE) == WHOLE


def test_what_is_gone_is_recorded_no_more() -> None:
    """Chalice would delete it again, and fail."""
    old = [{"name": "old_role", "resource_type": "iam_role", "role_arn": "x", "role_name": "gateway-prod-old"}]
    old += [{"name": "old", "resource_type": "lambda_function", "lambda_arn": arn("gateway-prod-old")}]
    old += [{"name": "old-event", "resource_type": "cloudwatch_event", "rule_name": "gateway-prod-old-event"}]
    old += [{"name": "old-sqs-event-source", "resource_type": "sqs_event", "event_uuid": "gone", "queue": "q"}]
    assert adopt([*WHOLE, *old], session=Session(gone=("gateway-prod-old",))) == WHOLE
    assert names(adopt([*WHOLE, *old])) == [*names(WHOLE[:4]), "old_role", *names(WHOLE[4:])], "its role still has to go"


def test_another_accounts_record_says_nothing_of_this_one() -> None:
    other = [{**each, "lambda_arn": each["lambda_arn"].replace(":1:", ":2:")} for each in WHOLE if "lambda_arn" in each]
    assert adopt(other) == WHOLE


def test_a_function_that_only_has_such_a_name_is_left_alone() -> None:
    """Chalice would remove it, since app.py does not name it."""
    found = replace(FOUND, functions={**FOUND.functions, "gateway-prod-mine": function("gateway-prod-mine", "service-role")})
    assert adopt([], found, Session(strangers=("gateway-prod-mine",))) == WHOLE
    assert "mine" in names(adopt([], found))
    assert "mine_role" not in names(adopt([], found)), "nor is a role that is not called after the stage"


def test_of_doubled_mappings_the_recorded_one_of_the_right_queue_stays() -> None:
    def uuid(*mappings: QueueMapping, recorded: Any = ()) -> str:
        (found,) = [e for e in adopt(recorded, replace(FOUND, mappings=mappings)) if e["resource_type"] == "sqs_event"]
        return str(found["event_uuid"])

    assert uuid(mapping("m0"), mapping("m1")) == "m0"
    assert uuid(mapping("m0"), mapping("m1"), recorded=WHOLE) == "m1"
    assert uuid(mapping("m0", "another"), mapping("m2")) == "m2"
    assert uuid(mapping("m1", "another"), mapping("m2"), recorded=WHOLE) == "m2"


def test_two_apis_of_the_stage_are_refused_and_named() -> None:
    with pytest.raises(CanNot) as told:
        adopt(WHOLE, replace(FOUND, apis=("abc", "xyz"), every_api=("abc", "xyz")))
    said = str(told.value)
    assert f"abc ({URL.format('abc')}; the recorded one)" in said and f"xyz ({URL.format('xyz')})" in said


def test_the_recorded_api_stays_whatever_it_calls() -> None:
    """Merchants know its URL. One that is recorded and gone is made anew."""
    assert adopt(WHOLE, replace(FOUND, apis=())) == WHOLE
    assert "rest_api" not in names(adopt(WHOLE, replace(FOUND, apis=(), every_api=("demos",))))
    assert "rest_api" not in names(adopt([], replace(FOUND, apis=())))


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    repairs.install()
    with mock_aws():
        yield make_bucket(boto3)


def test_the_record_is_shared_and_nobody_elses_is_overwritten(bucket: Bucket) -> None:
    assert record.fetch(bucket, STAGE) is None
    first = record.store(bucket, STAGE, WHOLE[:1], None)
    assert record.store(bucket, STAGE, WHOLE[:1], None) == first, "the answer was lost: what stands is ours"
    with pytest.raises(CanNot, match="written by somebody else"):
        record.store(bucket, STAGE, WHOLE, None)
    second = record.store(bucket, STAGE, WHOLE, first)
    with pytest.raises(CanNot, match="written by somebody else"):
        record.store(bucket, STAGE, WHOLE[:2], first)
    assert record.fetch(bucket, STAGE) == record.Record(tuple(WHOLE), second)
    assert record.fetch(bucket, "demo") is None


def test_a_checkouts_record_is_as_chalice_writes_it(tmp_path: Path, bucket: Bucket) -> None:
    from chalice.config import Config

    file = record.file_of(tmp_path, STAGE)
    assert record.read_file(file) is None
    record.write_file(file, WHOLE)
    assert record.read_file(file) == record.Record(tuple(WHOLE))
    found = Config(user_provided_params={"project_dir": str(tmp_path)}).deployed_resources(STAGE)
    assert found.resource_values("rest_api")["rest_api_id"] == "abc"
    file.write_text("{")
    with pytest.raises(CanNot, match=r"prod\.json is no record of Chalice"):
        record.read_file(file)
    bucket.client.put_object(Bucket=bucket.name, Key="deployed/prod.json", Body=b"[]")
    with pytest.raises(CanNot, match=r"s3://.*/deployed/prod\.json is no record"):
        record.fetch(bucket, STAGE)
