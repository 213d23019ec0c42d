"""A KMS of moto with the keys of a deployment, for the tests of custody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import boto3
from botocore.config import Config
from moto import mock_aws

from chalicelib.settings import Settings
from infra.local.repairs.kms import repair_kms

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "eu-central-1"}


@contextmanager
def kms_of(settings: Settings) -> Iterator[Any]:
    """A KMS client whose account has the aliases `data`, `webhooks`, `hot-live` and `hot-test` of the stage."""
    repair_kms()
    with mock.patch.dict("os.environ", CREDENTIALS), mock_aws():
        kms = boto3.client("kms")
        for name in ("data", "webhooks"):
            key = kms.create_key()["KeyMetadata"]["KeyId"]
            kms.create_alias(AliasName=settings.key_alias(name), TargetKeyId=key)
        for name in ("hot-live", "hot-test"):
            key = kms.create_key(KeySpec="ECC_SECG_P256K1", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
            kms.create_alias(AliasName=settings.key_alias(name), TargetKeyId=key)
        yield kms


def unreachable_kms() -> Any:
    """A real client whose endpoint nobody answers at."""
    config = Config(retries={"max_attempts": 0}, connect_timeout=1)
    return boto3.client(
        "kms",
        region_name="eu-central-1",
        endpoint_url="http://127.0.0.1:9",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=config,
    )
