"""The answers of infra/checkov.md are true of the templates."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from infra.deploy import TEMPLATE
from infra.deployment.key_stack import KEYS
from infra.lambda_platform import RUNTIMES
from tests.deploy.template_text import Loader

PAGE = TEMPLATE.with_name("checkov.md")
FILES = [TEMPLATE, KEYS, *sorted((TEMPLATE.parent / "platform").glob("*.yaml"))]
LOSABLE = {"EventsTable", "SandboxTable"}


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    every = [yaml.load(file.read_text(), Loader=Loader)["Resources"] for file in FILES]  # noqa: S506 - a SafeLoader
    found = {name: each for resources in every for name, each in resources.items()}
    assert len(found) == sum(map(len, every))
    return found


def of(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    found = {name: each["Properties"] for name, each in resources.items() if each["Type"] == f"AWS::{kind}"}
    assert found
    return found


def test_every_answer_is_held_here() -> None:
    answered = re.findall(r"^\| (CKV_\w+) \| [^|]+ \| [^|]{20,} \|$", PAGE.read_text(), re.MULTILINE)
    assert answered == [f"CKV_AWS_{number}" for number in (18, 27, 28, 33, 158, 192)]


def test_every_template_is_looked_at() -> None:
    (command,) = re.findall(r"^\S+/checkov .* -f (.+)$", PAGE.read_text(), re.MULTILINE)
    root = TEMPLATE.parents[1]
    named = {file for pattern in command.split() for file in root.glob(pattern)}
    assert named == set(FILES) == {*(root / "infra").rglob("*.yaml")}


def test_18_the_archive_is_locked_versioned_and_closed(resources: dict[str, Any]) -> None:
    ((name, bucket),) = of(resources, "S3::Bucket").items()
    assert name == "ArchiveBucket" and bucket["ObjectLockEnabled"] is True
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"} and set(
        bucket["PublicAccessBlockConfiguration"].values()
    ) == {True}


def test_27_queues_are_encrypted_with_their_services_key(resources: dict[str, Any]) -> None:
    assert {each.get("SqsManagedSseEnabled") for each in of(resources, "SQS::Queue").values()} == {True}


def test_28_where_money_is_real_tables_can_be_put_back(resources: dict[str, Any]) -> None:
    tables = of(resources, "DynamoDB::Table")
    wanted = {"PointInTimeRecoveryEnabled": {"Fn::If": ["Prod", True, False]}}
    assert {name for name, each in tables.items() if each.get("PointInTimeRecoverySpecification") != wanted} == LOSABLE


def test_33_who_is_anybody_is_of_this_account_and_comes_by_a_service(resources: dict[str, Any]) -> None:
    allowed = [
        s for each in of(resources, "KMS::Key").values() for s in each["KeyPolicy"]["Statement"] if s["Principal"] == {"AWS": "*"}
    ]
    conditions = [each["Condition"]["StringEquals"] for each in allowed if each["Effect"] == "Allow"]
    assert len(conditions) == 2
    for each in conditions:
        assert each["kms:CallerAccount"] == {"Ref": "AWS::AccountId"} and each["kms:ViaService"]


def test_158_log_groups_have_no_key_of_ours(resources: dict[str, Any]) -> None:
    assert not [name for name, each in of(resources, "Logs::LogGroup").items() if "KmsKeyId" in each]


def test_192_what_is_behind_the_firewall_is_python(resources: dict[str, Any]) -> None:
    (firewall,) = of(resources, "WAFv2::WebACL").values()
    assert [list(rule["Statement"]) for rule in firewall["Rules"]] == [["RateBasedStatement"]]
    assert all(runtime.startswith("python") for runtime in RUNTIMES)
