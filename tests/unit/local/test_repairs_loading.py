"""What botocore finds of services is the same when it looks at less, and so is what moto makes of a key."""

from __future__ import annotations

import boto3
import pytest
from botocore.exceptions import DataNotFoundError, UnknownServiceError
from botocore.loaders import Loader
from moto import mock_aws
from moto.core import utils
from moto.kms.models import kms_backends

from infra.local import repairs
from infra.local.repairs.loading import repair_loading

REGION = "eu-central-1"


def loader() -> Loader:
    repair_loading()
    return Loader()


def test_every_service_that_is_listed_has_a_description() -> None:
    listed = loader().list_available_services("service-2")
    assert len(listed) > 300
    assert [name for name in listed if not loader().determine_latest_version(name, "service-2")] == []


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownServiceError):
        loader().load_service_model("none", "service-2")
    with pytest.raises(DataNotFoundError):
        loader().load_service_model("sts", "waiters-2")
    assert loader().load_service_model("sqs", "service-2")["metadata"]["endpointPrefix"] == "sqs"


def test_regions_are_those_of_the_whole_description() -> None:
    read, version = loader(), loader().determine_latest_version("ec2", "service-2")
    whole, known = read.load_data(f"ec2/{version}/service-2"), read.load_service_model("ec2", "service-2")
    assert whole["metadata"]["endpointPrefix"] == known["metadata"]["endpointPrefix"]
    assert REGION in boto3.Session().get_available_regions("ec2")


def test_moto_shares_its_loader() -> None:
    repair_loading()
    assert utils.create_loader() is utils.create_loader()


def test_a_key_that_encrypts_has_a_key_for_signing_once_somebody_asks() -> None:
    repairs.install()
    with mock_aws():
        client = boto3.client("kms", region_name=REGION, aws_access_key_id="a", aws_secret_access_key="b")
        made = client.create_key()["KeyMetadata"]["KeyId"]
        sealed = client.encrypt(KeyId=made, Plaintext=b"secret")["CiphertextBlob"]
        assert client.decrypt(CiphertextBlob=sealed)["Plaintext"] == b"secret"
        (key,) = (each for backends in kms_backends.values() for each in backends[REGION].keys.values())
        assert vars(key.private_key) == {}
        assert b"PUBLIC" not in key.private_key.public_key() and vars(key.private_key)
