"""The bucket for deployments: templates on their way to CloudFormation, Chalice's record of each stage, and the lock of a deploy.

One for each account and region. Names of buckets are shared by all accounts of the world, so somebody else may have taken ours:
every call names the owner, and S3 refuses the call where the bucket is another's.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.settings import APP
from infra.commands.common import CanNot
from infra.deployment.patience import coded, patiently

TAGS = {"application": APP, "purpose": "deployments"}
_NOT_BLOCKED = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
_TRIES = 10
_WAIT_SECONDS = 3.0
_COMING = coded("OperationAborted", "NoSuchBucket")
"""Another call to it is under way, or the new bucket is not known everywhere yet."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The bucket, as an account's operator works with it. `client` is a client of S3."""

    client: Any
    name: str
    owner: str
    region: str
    caller: str = "somebody"
    """Who works with it, as others are told."""

    @property
    def whose(self) -> dict[str, str]:
        """The arguments that every call has."""
        return {"Bucket": self.name, "ExpectedBucketOwner": self.owner}

    @property
    def where(self) -> str:
        """Account, region and caller: the line that a command begins with."""
        return f"account {self.owner}, region {self.region}, as {self.caller}"

    def url(self, key: str) -> str:
        """Where CloudFormation finds an object."""
        suffix = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
        return f"https://{self.name}.s3.{self.region}.{suffix}/{key}"


def bucket_of(session: Any) -> Bucket:
    """The bucket of this account and region, made or not. `session` is boto3 or a session of it. Raises botocore's ClientError."""
    client = session.client("s3")
    region, me = client.meta.region_name, session.client("sts").get_caller_identity()
    caller = f"{me['Arn']} on {platform.node()}"
    return Bucket(client, f"{APP}-deployments-{me['Account']}-{region}", me["Account"], region, caller)


def make_bucket(session: Any, wait: Callable[[float], None] = time.sleep) -> Bucket:
    """Make the bucket where it is missing, and set what it has to have. Safe to repeat, and after a cut.

    Raises CanNot where the name is another account's; botocore's ClientError.
    """
    bucket = bucket_of(session)
    patiently(partial(_make, bucket), _COMING, partial(wait, _WAIT_SECONDS), _TRIES)
    return bucket


def _make(bucket: Bucket) -> None:
    if not _exists(bucket):
        _create(bucket)
    _set_up(bucket)


def _exists(bucket: Bucket) -> bool:
    """Answers of HEAD have no body: the code is the status.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html
    """
    try:
        bucket.client.head_bucket(**bucket.whose)
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        if status == 404:
            return False
        if status in (301, 403):
            raise CanNot(
                f"the bucket {bucket.name} is another account's, or you have no right to it (s3:ListBucket): nothing is deployed"
                " through it. Give yourself the right; where the name was taken, AWS support has to free it"
            ) from error
        raise
    return True


def _create(bucket: Bucket) -> None:
    """us-east-1 is the default and no value of LocationConstraint. A bucket that is ours already is refused, and in us-east-1 given
    again; another's is BucketAlreadyExists.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html
    """
    where = {} if bucket.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": bucket.region}}
    try:
        bucket.client.create_bucket(Bucket=bucket.name, **where)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "BucketAlreadyExists":
            raise CanNot(f"the name {bucket.name} is taken by another account: AWS support has to free it") from error
        if code != "BucketAlreadyOwnedByYou":
            raise


def _set_up(bucket: Bucket) -> None:
    """What a bucket keeps is set each time: a cut leaves none that is open or forgets.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/security-best-practices.html
    """
    s3, whose = bucket.client, bucket.whose
    s3.put_public_access_block(**whose, PublicAccessBlockConfiguration=dict.fromkeys(_NOT_BLOCKED, True))
    # An object written while this spreads may be hidden for some minutes: templates are asked for again, the lock is renewed later.
    # https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketVersioning.html
    s3.put_bucket_versioning(**whose, VersioningConfiguration={"Status": "Enabled"})
    encrypted = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    s3.put_bucket_encryption(**whose, ServerSideEncryptionConfiguration={"Rules": [encrypted]})
    s3.put_bucket_policy(**whose, Policy=json.dumps(_policy(bucket)))
    s3.put_bucket_tagging(**whose, Tagging={"TagSet": [{"Key": key, "Value": value} for key, value in TAGS.items()]})
    s3.put_bucket_lifecycle_configuration(**whose, LifecycleConfiguration={"Rules": [_kept("locks/", 1), _kept("", 365)]})


def _policy(bucket: Bucket) -> dict[str, Any]:
    """Nobody speaks to it but by TLS. https://docs.aws.amazon.com/AmazonS3/latest/userguide/example-bucket-policies.html"""
    partition = "aws-cn" if bucket.region.startswith("cn-") else "aws-us-gov" if bucket.region.startswith("us-gov-") else "aws"
    arn = f"arn:{partition}:s3:::{bucket.name}"
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "OnlyTls",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": [arn, f"{arn}/*"],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ],
    }


def _kept(prefix: str, days: int) -> dict[str, Any]:
    """A rule by which versions that were overwritten go after some days; a lock is overwritten each minute."""
    return {
        "ID": f"old-{prefix.strip('/') or 'all'}",
        "Status": "Enabled",
        "Filter": {"Prefix": prefix},
        "NoncurrentVersionExpiration": {"NoncurrentDays": days},
    }
