"""The lock of a deploy: one holds it, a dead one's is taken over, and who lost it stops. moto heeds If-Match and If-None-Match."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from infra.commands.common import CanNot
from infra.deployment import lock as locks
from infra.deployment.bucket import Bucket, make_bucket
from infra.deployment.lock import DEAD, Lock, locked
from infra.local import repairs

STAGE = "prod"


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    repairs.install()
    with mock_aws():
        yield make_bucket(boto3)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets S3 say that every object is so much older."""
    age = locks._age

    def go(seconds: float) -> None:
        monkeypatch.setattr(locks, "_age", lambda found: age(found) + seconds)

    return go


def no_wait(seconds: float) -> None:
    """Time passes."""


def test_one_holds_it_and_the_other_is_told_who(bucket: Bucket) -> None:
    first, second = Lock(bucket, STAGE), Lock(bucket, STAGE)
    first.take(no_wait)
    with pytest.raises(CanNot, match=r"arn:aws:.* on .* deploys stage prod \(seen \d+ seconds ago\)"):
        second.take(no_wait)
    Lock(bucket, "demo").take(no_wait)
    first.release()
    second.take(no_wait)
    first.release()
    second.demand()
    with pytest.raises(CanNot):
        Lock(bucket, STAGE).take(no_wait)


def test_it_lives_while_it_is_renewed(bucket: Bucket, later: Any) -> None:
    held = Lock(bucket, STAGE)
    held.take(no_wait)
    etags = {held._etag}
    for _ in range(3):
        held.renew()
        etags.add(held._etag)
    assert len(etags) == 4, "an ETag is the content's: the same content could not tell who wrote last"
    later(DEAD - 10)
    with pytest.raises(CanNot, match="deploys stage prod"):
        Lock(bucket, STAGE).take(no_wait)


def test_a_dead_ones_is_taken_over_by_one_and_the_dead_one_stops(bucket: Bucket, later: Any) -> None:
    dead, second, third = (Lock(bucket, STAGE) for _ in range(3))
    dead.take(no_wait)
    later(DEAD + 1)
    second.take(no_wait)
    later(0)
    with pytest.raises(CanNot, match="deploys stage prod"):
        third.take(no_wait)
    dead.renew()
    with pytest.raises(CanNot, match="was taken over by arn:aws"):
        dead.demand()
    dead.release()
    second.renew()
    second.demand()


def test_one_that_a_new_bucket_hides_for_a_while_is_not_lost(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Lock(bucket, STAGE)
    held.take(no_wait)
    before = held._renewed
    with monkeypatch.context() as hidden:
        gone = ClientError({"Error": {"Code": "NoSuchKey", "Message": "hidden"}}, "GetObject")

        def refuse(**_: Any) -> None:
            raise gone

        hidden.setattr(bucket.client, "put_object", refuse)
        hidden.setattr(bucket.client, "get_object", refuse)
        held.renew()
    held.demand()
    assert held._renewed == before, "it does not live longer by that"
    held.renew()
    held.demand()
    assert held._renewed > before


def test_of_two_who_take_it_over_one_succeeds(bucket: Bucket, later: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Lock(bucket, STAGE).take(no_wait)
    later(DEAD + 1)
    quick, slow = Lock(bucket, STAGE), Lock(bucket, STAGE)
    read = slow._read

    def meanwhile() -> Any:
        found = read()
        later(0)
        monkeypatch.setattr(slow, "_read", read)
        assert quick._put(IfMatch=found["etag"])
        return found

    monkeypatch.setattr(slow, "_read", meanwhile)
    with pytest.raises(CanNot, match="deploys stage prod"):
        slow.take(no_wait)
    quick.demand()


def test_an_answer_that_was_lost_is_no_other_holder(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore repeats a request whose answer did not come: the second one finds what the first one wrote."""
    held = Lock(bucket, STAGE)
    call = type(bucket.client)._make_api_call

    def twice(self: Any, operation: str, arguments: Any) -> Any:
        if operation == "PutObject":
            call(self, operation, arguments)
        return call(self, operation, arguments)

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", twice)
    held.take(no_wait)
    held.renew()
    held.demand()


def test_without_renewals_it_stops_before_it_would_be_taken_over(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Lock(bucket, STAGE)
    held.take(no_wait)
    held._renewed -= 241
    with pytest.raises(CanNot, match="could not be renewed for four minutes"):
        held.demand()


def test_it_is_renewed_meanwhile_and_given_back(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed, told = threading.Event(), list[str]()
    renew, failing = Lock.renew, [EndpointConnectionError(endpoint_url="https://s3.invalid")]

    def noticed(self: Lock) -> None:
        if failing:
            raise failing.pop()
        renew(self)
        renewed.set()

    monkeypatch.setattr(Lock, "renew", noticed)
    with locked(bucket, STAGE, told.append, every=0.01) as held:
        assert renewed.wait(10)
        held.demand()
    assert len(told) == 1 and told[0].startswith("the lock was not renewed")
    with pytest.raises(LookupError), locked(bucket, STAGE, told.append):
        raise LookupError("the deploy failed")
    Lock(bucket, STAGE).take(no_wait)


def test_one_that_was_taken_while_the_answer_was_lost_is_given_back(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Lock._put

    def lost(self: Lock, **condition: str) -> bool:
        put(self, **condition)
        self._etag = ""
        raise EndpointConnectionError(endpoint_url="https://s3.invalid")

    with monkeypatch.context() as patch, pytest.raises(EndpointConnectionError):
        patch.setattr(Lock, "_put", lost)
        with locked(bucket, STAGE, print):
            pytest.fail("it is not known to be ours")
    held = Lock(bucket, STAGE)
    held.take(no_wait)
    with pytest.raises(EndpointConnectionError), monkeypatch.context() as patch:
        patch.setattr(Lock, "_put", lambda self, **_: (_ for _ in ()).throw(EndpointConnectionError(endpoint_url="x")))
        with locked(bucket, STAGE, print):
            pytest.fail("it is another's")
    held.renew()
    held.demand()


def test_what_s3_refuses_is_not_swallowed(bucket: Bucket) -> None:
    elsewhere = Bucket(bucket.client, "no-such-bucket", bucket.owner, bucket.region)
    with pytest.raises(ClientError, match="NoSuchBucket"):
        Lock(elsewhere, STAGE).take(no_wait)


def test_age_is_by_the_clock_of_s3() -> None:
    written = datetime(2026, 1, 1, tzinfo=UTC)
    answer = {"HTTPHeaders": {"date": "Thu, 01 Jan 2026 00:06:00 GMT"}}
    assert locks._age({"LastModified": written, "ResponseMetadata": answer}) == 360
    recent = {"LastModified": datetime.now(UTC) - timedelta(seconds=5), "ResponseMetadata": {"HTTPHeaders": {}}}
    assert 4 < locks._age(recent) < 60
