"""The bucket for deployments: what it is like, that it may be made again, and that another account's is not used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from infra.commands.common import CanNot
from infra.deployment.bucket import Bucket, bucket_of, make_bucket
from infra.local import repairs


@pytest.fixture
def account() -> Iterator[None]:
    repairs.install()
    with mock_aws():
        yield


@pytest.mark.parametrize("region", ["eu-central-1", "us-east-1"])
def test_it_is_shut_versioned_encrypted_and_speaks_tls_only(account: None, region: str) -> None:
    """us-east-1 is no value of LocationConstraint, and a bucket there may be made twice."""
    session = boto3.Session(region_name=region)
    made = make_bucket(session)
    assert make_bucket(session).name == made.name == f"gateway-deployments-123456789012-{region}"
    s3 = session.client("s3")
    assert set(s3.get_public_access_block(Bucket=made.name)["PublicAccessBlockConfiguration"].values()) == {True}
    assert s3.get_bucket_versioning(Bucket=made.name)["Status"] == "Enabled"
    (rule,) = s3.get_bucket_encryption(Bucket=made.name)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    (statement,) = json.loads(s3.get_bucket_policy(Bucket=made.name)["Policy"])["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    tags = s3.get_bucket_tagging(Bucket=made.name)["TagSet"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"application": "gateway", "purpose": "deployments"}
    old = s3.get_bucket_lifecycle_configuration(Bucket=made.name)["Rules"]
    assert {r["Filter"]["Prefix"]: r["NoncurrentVersionExpiration"]["NoncurrentDays"] for r in old} == {"locks/": 1, "": 365}


def test_what_a_cut_left_open_is_shut(account: None) -> None:
    name = bucket_of(boto3).name
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    make_bucket(boto3)
    assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"


class _Session:
    def __init__(self) -> None:
        self.s3 = boto3.client("s3", region_name="eu-central-1")
        self.stub = Stubber(self.s3)
        self.stub.activate()

    def client(self, service: str) -> Any:
        return self.s3 if service == "s3" else boto3.client(service)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([("head_bucket", "403", 403)], "is another account's, or you have no right to it"),
        ([("head_bucket", "404", 404), ("create_bucket", "BucketAlreadyExists", 409)], "is taken by another account"),
    ],
)
def test_another_accounts_bucket_is_refused(account: None, answers: list[Any], said: str) -> None:
    """Buckets' names are shared by the whole world, and somebody may have taken ours before us."""
    session = _Session()
    for operation, code, status in answers:
        session.stub.add_client_error(operation, code, http_status_code=status)
    with pytest.raises(CanNot, match=said):
        make_bucket(session)


def test_every_call_names_the_owner(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, Any]] = []
    call = type(boto3.client("s3"))._make_api_call

    def watched(self: Any, operation: str, arguments: dict[str, Any]) -> Any:
        if self.meta.service_model.service_name == "s3":
            seen.append((operation, arguments.get("ExpectedBucketOwner")))
        return call(self, operation, arguments)

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", watched)
    make_bucket(boto3)
    assert {operation for operation, owner in seen if owner != "123456789012"} == {"CreateBucket"}


def test_a_bucket_that_is_being_made_is_waited_for(account: None) -> None:
    session, waited = _Session(), list[float]()
    session.stub.add_client_error("head_bucket", "404", http_status_code=404)
    session.stub.add_client_error("create_bucket", "OperationAborted", http_status_code=409)
    session.stub.add_response("head_bucket", {})
    session.stub.add_client_error("put_public_access_block", "NoSuchBucket", http_status_code=404)
    session.stub.add_response("head_bucket", {})
    session.stub.add_client_error("put_public_access_block", "AccessDenied", http_status_code=403)
    with pytest.raises(ClientError, match="AccessDenied"):
        make_bucket(session, waited.append)
    assert len(waited) == 2


def test_the_url_is_the_regions() -> None:
    assert Bucket(None, "b", "1", "eu-central-1").url("a/b.yaml") == "https://b.s3.eu-central-1.amazonaws.com/a/b.yaml"
    assert Bucket(None, "b", "1", "cn-north-1").url("a").endswith(".amazonaws.com.cn/a")
