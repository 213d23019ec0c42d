"""Commands in a region or an account in which the stage does not stand, or not alone: IAM is of the whole account."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError
from click.testing import CliRunner
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID

from chalicelib import wiring
from chalicelib.settings import VARIABLES
from infra import chalice
from infra.cli import main
from infra.commands.common import CanNot
from infra.deployment import code, record, taking_down
from infra.deployment.bucket import make_bucket
from infra.deployment.lock import Lock, locked
from infra.deployment.plan import plan
from infra.local import repairs
from infra.stage_settings import declared
from tests.deploy.conftest import copy_project
from tests.deploy.made_functions import make_function

STAGE = "prod"
HOME, AWAY = "eu-central-1", "eu-west-1"
NAMES = "gateway-prod-payout", "gateway-prod-relay"
OURS = {"aws-chalice": f"version=1.32.0:stage={STAGE}:app=gateway"}
Go = Callable[[str], None]


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Iterator[Go]:
    """Work in another region from now on."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    repairs.install_for_deploying()

    def to(region: str) -> None:
        monkeypatch.setenv("AWS_REGION", region)
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
        boto3.setup_default_session(region_name=region)

    with mock_aws():
        to(HOME)
        yield to
    monkeypatch.undo()
    boto3.setup_default_session()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout, from which the commands deploy."""
    made = copy_project(tmp_path)
    monkeypatch.setattr(code, "PROJECT", made)
    return made


def stand() -> list[dict[str, Any]]:
    """Have the stage's functions, with their roles, and the bucket for deployments; Chalice's record of them."""
    make_bucket(boto3)
    for name in NAMES:
        make_function(name, "1", **OURS)
    return recorded(boto3.client("lambda").meta.region_name)


def recorded(region: str, account: str = DEFAULT_ACCOUNT_ID) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in NAMES:
        short, role = name.removeprefix("gateway-prod-"), {"role_name": name, "role_arn": f"arn:aws:iam::{account}:role/{name}"}
        found.append({"name": f"{short}_role", "resource_type": "iam_role", **role})
        arn = f"arn:aws:lambda:{region}:{account}:function:{name}"
        found.append({"name": short, "resource_type": "lambda_function", "lambda_arn": arn})
    return found


def roles() -> set[str]:
    return {each["RoleName"] for each in boto3.client("iam").list_roles()["Roles"]}


def buckets() -> list[str]:
    return [each["Name"] for each in boto3.client("s3").list_buckets()["Buckets"]]


def functions() -> set[str]:
    return {each["FunctionName"] for each in boto3.client("lambda").list_functions()["Functions"]}


def test_delete_in_another_region_takes_no_role(go: Go, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """This checkout has the record of the right one."""
    record.write_file(record.file_of(project, STAGE), stand())
    go(AWAY)
    assert main(["--stage", STAGE, "delete", "--yes"]) == 1
    assert set(NAMES) <= roles()
    said = capsys.readouterr()
    assert said.err.startswith(f"stage prod does not stand in account {DEFAULT_ACCOUNT_ID}, region {AWAY}: it stands in {HOME}.")
    assert [each["Name"] for each in boto3.client("s3").list_buckets()["Buckets"]] == [bucket_name(HOME)], "and makes no bucket"


def bucket_name(region: str) -> str:
    return f"gateway-deployments-{DEFAULT_ACCOUNT_ID}-{region}"


@pytest.mark.parametrize(("region", "account"), [(AWAY, DEFAULT_ACCOUNT_ID), (HOME, "999999999999")])
def test_a_checkouts_record_of_another_place_says_nothing_of_roles(go: Go, project: Path, region: str, account: str) -> None:
    bucket = make_bucket(boto3)
    for name in NAMES:
        boto3.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    record.write_file(record.file_of(project, STAGE), recorded(region, account))
    assert code.adopt(boto3, bucket, STAGE, project) == (None, [])
    record.write_file(record.file_of(project, STAGE), recorded(HOME))
    assert [each["role_name"] for each in code.adopt(boto3, bucket, STAGE, project)[1]] == [*NAMES], "its own does"


def test_a_cut_delete_ends_what_it_began_where_nothing_but_roles_is_left(
    go: Go, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a stage that plain Chalice deployed: no record is shared until then."""
    record.write_file(record.file_of(project, STAGE), stand())

    def cut(*_: Any, **__: Any) -> None:
        for name in NAMES:
            boto3.client("lambda").delete_function(FunctionName=name)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(taking_down, "chalice", cut)
        main(["--stage", STAGE, "delete", "--yes"])
    record.file_of(project, STAGE).unlink()  # another checkout ends it
    assert set(NAMES) <= roles()
    assert main(["--stage", STAGE, "delete", "--yes"]) == 0
    assert not set(NAMES) & roles()
    assert main(["--stage", STAGE, "delete", "--yes"]) == 0, "as after a cut of the very last call"


def test_delete_of_a_stage_in_two_regions_leaves_the_roles_of_both(
    go: Go, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand()
    go(AWAY)
    stand()
    assert main(["--stage", STAGE, "delete", "--yes"]) == 0
    assert functions() == set() and set(NAMES) <= roles()
    said = capsys.readouterr().out
    assert f"stay: 2 roles, also of stage prod in {HOME}" in said and f"kept: 2 roles, also of stage prod in {HOME}" in said
    go(HOME)
    assert functions() == set(NAMES)
    assert main(["--stage", STAGE, "delete", "--yes"]) == 0
    assert not set(NAMES) & roles(), "nobody else has them now"


def test_no_second_region_is_deployed_to(go: Go, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand()
    go(AWAY)
    topic = boto3.client("sns").create_topic(Name="alarms")["TopicArn"]
    assert main(["--stage", STAGE, "deploy", "--yes", "--alarm-topic", topic]) == 1
    assert main(["--stage", STAGE, "prepare", "--alarm-topic", topic]) == 1
    said = capsys.readouterr().err
    assert said.count(f"stage prod stands in {HOME}, and not in account {DEFAULT_ACCOUNT_ID}, region {AWAY}") == 2
    assert buckets() == [bucket_name(HOME)]
    with pytest.raises(CanNot, match=f"stands in {HOME}"), code.recording(boto3, make_bucket(boto3), Lock(None, STAGE), project):  # type: ignore[arg-type]
        pytest.fail("python -m infra.chalice deploy began")
    bucket = make_bucket(boto3)
    make_function(NAMES[0], "1", **OURS)
    assert plan(boto3, bucket, STAGE)[:2] == [bucket.where, f"  its roles are also those of stage prod in {HOME}"]


class HalfAway:
    """A session for which Lambda of other regions is out of reach."""

    def client(self, service: str, region_name: str = HOME, config: Config | None = None) -> Any:
        if service != "lambda" or region_name == HOME:
            return boto3.client(service)
        return boto3.client("lambda", endpoint_url="http://127.0.0.1:9", config=config)


def test_a_region_that_does_not_answer_keeps_nobody_from_deploying(go: Go) -> None:
    """It may answer under the lock, where the plan has to be the same."""
    go(AWAY)
    make_bucket(boto3)
    go(HOME)
    bucket = make_bucket(boto3)
    assert plan(HalfAway(), bucket, STAGE) == plan(boto3, bucket, STAGE)


def test_a_region_that_does_not_answer_keeps_the_roles_and_says_how_they_go(go: Go, project: Path) -> None:
    go(AWAY)
    make_bucket(boto3)
    go(HOME)
    stand()
    bucket, said = make_bucket(boto3), list[str]()
    boto3.client("s3").create_bucket(Bucket=f"{bucket.name}-logs", CreateBucketConfiguration={"LocationConstraint": bucket.region})
    with locked(bucket, STAGE, said.append) as lock:
        taking_down.take_down(HalfAway(), bucket, lock, said.append, project)
    assert functions() == set() and set(NAMES) <= roles()
    kept = f"kept: 2 roles, also of stage prod perhaps in {AWAY}, which does not answer (EndpointConnectionError)"
    assert said[said.index(kept) + 1].startswith("if it does not stand there")
    commands = [each for line in said[said.index(kept) + 2 :] for each in line.strip().split("; ")]
    assert len(commands) == 4 and all(each.startswith("aws iam delete-role") for each in commands)
    assert {name for name in NAMES if any(f"--role-name {name}" in each for each in commands)} == set(NAMES)


def stacks(*names: str) -> None:
    for name in names:
        template = {"Resources": {"T": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": f"{name}-own"}}}}
        boto3.client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))


@pytest.mark.parametrize("missing", [("gateway-prod-keys",), ("gateway-prod-keys", "gateway-prod")])
def test_delete_says_what_is_kept_where_a_stack_is_missing(
    go: Go, project: Path, missing: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a stage from before the keys had a stack, or whose stack somebody deleted: tables and keys stayed."""
    stand()
    stacks(*{"gateway-prod", "gateway-prod-keys"}.difference(missing))
    key = boto3.client("kms").create_key()["KeyMetadata"]["KeyId"]
    boto3.client("kms").create_alias(AliasName="alias/gateway-prod-tables", TargetKeyId=key)
    boto3.client("dynamodb").create_table(
        TableName="gateway-prod-ledger",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    assert main(["--stage", STAGE, "delete", "--yes"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.startswith("there is no")] == [f"there is no stack {name}" for name in missing]
    assert ("kept: 1 queues" in said) is (len(missing) == 1)
    assert "kept: table gateway-prod-ledger, in no stack; deploy brings it in again" in said
    assert f"kept: key {key}, in no stack; deploy brings it in again" in said
    assert functions() == set()


@pytest.mark.parametrize("command", ["stop-functions", "start-functions"])
def test_where_no_function_stands_none_is_said_to_be_stopped(go: Go, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    stand()
    go(AWAY)
    assert main(["--stage", STAGE, command]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"stage prod does not stand in account {DEFAULT_ACCOUNT_ID}, region {AWAY}: it stands in {HOME}.")


def test_commands_that_change_functions_begin_with_the_place(go: Go, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand()
    where = make_bucket(boto3).where
    for command in ("stop-functions", "start-functions"):
        main(["--stage", STAGE, command])
        assert capsys.readouterr().out.splitlines()[0] == where
    assert main(["--stage", STAGE, "stop-functions"]) == 0


def test_without_a_bucket_no_lock_is_said_to_stay(go: Go, capsys: pytest.CaptureFixture[str]) -> None:
    for name in NAMES:
        make_function(name, "1", **OURS)
    assert main(["--stage", STAGE, "stop-functions"]) == 0
    said = capsys.readouterr()
    assert "lock" not in said.out + said.err and "2 functions of stage prod are stopped" in said.out


def test_a_command_that_needs_the_store_says_that_the_stage_is_not_here(go: Go, capsys: pytest.CaptureFixture[str]) -> None:
    stand()
    go(AWAY)
    wiring.forget()
    assert main(["--stage", STAGE, "merchant", "Shop"]) == 1
    said = capsys.readouterr().err
    wiring.forget()
    assert said.startswith(f"stage prod does not stand in account {DEFAULT_ACCOUNT_ID}, region {AWAY}: it stands in {HOME}.")


def test_a_table_that_is_missing_where_the_stage_stands_is_another_matter(go: Go, capsys: pytest.CaptureFixture[str]) -> None:
    make_function(NAMES[0], "1", **OURS)
    settings = {"Variables": dict(declared(STAGE))}
    boto3.client("lambda").update_function_configuration(FunctionName=NAMES[0], Environment=settings)
    wiring.forget()
    assert main(["--stage", STAGE, "merchant", "Shop"]) == 1
    said = capsys.readouterr().err
    wiring.forget()
    assert said.startswith("the store did not answer") and "resource not found" in said


@pytest.mark.parametrize("why", ["no credentials", "expired ones"])
def test_chalice_by_hand_says_in_a_line_that_aws_refuses(why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chalice import cli

    if why == "no credentials":
        for name in [each for each in os.environ if each.startswith("AWS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    else:
        monkeypatch.setattr(BaseClient, "_make_api_call", expired)
    monkeypatch.setenv("AWS_DEFAULT_REGION", HOME)
    monkeypatch.setattr(cli.deploy, "callback", cli.deploy.callback)  # put back behind the test
    chalice.go_on_with_what_stands()
    done = CliRunner().invoke(cli.deploy, ["--stage", STAGE], obj={"project_dir": str(tmp_path)})
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit)
    assert done.output.startswith("Error: ") and done.output.count("\n") == 1
    assert ("Unable to locate credentials" if why == "no credentials" else "ExpiredToken") in done.output


def expired(self: Any, operation: str, arguments: Any) -> Any:
    raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "The security token is expired"}}, operation)
