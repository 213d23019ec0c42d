"""What the pages have an operator type to AWS's own command line, done line by line, in the page's order, on moto.

Not played, since moto knows nothing of it: quotas, warm throughput. What moto does otherwise than AWS is said where it is met.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID

from infra.deploy import TEMPLATE
from tests.deploy.documented_aws import ROOT, asked, assigned, run, section, typed

DOCS = TEMPLATE.parents[1] / "docs"
ACCOUNT = DEFAULT_ACCOUNT_ID
TABLE = "gateway-prod-ledger"
EMPTY_STACK = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield


def make_table(name: str) -> Any:
    """As the template makes it, as far as the commands meet it, with an entry; of prod alone they are protected."""
    client = boto3.client("dynamodb")
    keys = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    types = [{"AttributeName": each["AttributeName"], "AttributeType": "S"} for each in keys]
    client.create_table(
        TableName=name,
        KeySchema=keys,
        AttributeDefinitions=types,
        BillingMode="PAY_PER_REQUEST",
        DeletionProtectionEnabled=name.startswith("gateway-prod-"),
    )
    on = {"PointInTimeRecoveryEnabled": True}
    client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=on)
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "sk": {"S": "b"}, "units": {"N": "12"}})
    return client


def test_a_damaged_table_is_put_back() -> None:
    text = section(DOCS / "runbooks.md", "## A table was damaged")
    given, lines = assigned(text), typed(text)
    assert given["$T"] == TABLE and given["$SSE"].startswith("Enabled=true,") and len(lines) >= 9
    client = make_table(TABLE)
    entries = client.scan(TableName=TABLE)["Items"]
    backups: dict[str, str] = {}
    for line in lines:
        if "delete-table" in line:
            client.put_item(TableName=TABLE, Item={"pk": {"S": "damaged"}, "sk": {"S": "b"}})
            assert len(backups) == 2, "what is deleted has a backup, and so has what replaces it"
        answer = run(line, {**given, "ARN_OF_BACK": backups.get("ledger-back", "")})
        if " restore-table-" in line:
            # As on AWS, a restored table has no protection; moto leaves its key out too, which the command names.
            assert not answer["TableDescription"].get("DeletionProtectionEnabled")
            override = asked(line.replace("$SSE", given["$SSE"])).arguments["SSESpecificationOverride"]
            assert override == {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "alias/gateway-prod-tables"}
        if "BackupDetails" in answer:
            backups[answer["BackupDetails"]["BackupName"]] = answer["BackupDetails"]["BackupArn"]
    assert client.scan(TableName=TABLE)["Items"] == entries
    assert client.describe_table(TableName=TABLE)["Table"]["DeletionProtectionEnabled"] is True
    recovery = client.describe_continuous_backups(TableName=TABLE)["ContinuousBackupsDescription"]
    assert recovery["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    live = client.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
    assert live == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}


def test_a_demo_stage_is_removed_to_the_last_key() -> None:
    lines = typed(section(DOCS / "runbooks.md", "## Remove a demo stage"))
    stacks, kms, ssm = boto3.client("cloudformation"), boto3.client("kms"), boto3.client("ssm")
    for stack in ("gateway-demo", "gateway-demo-keys"):
        stacks.create_stack(StackName=stack, TemplateBody=EMPTY_STACK)
    client = make_table("gateway-demo-ledger")
    key, alias = kms.create_key()["KeyMetadata"]["KeyId"], "alias/gateway-demo-data"
    kms.create_alias(AliasName=alias, TargetKeyId=key)
    secrets, secret = boto3.client("secretsmanager"), "gateway-demo-node-alchemy"
    secrets.create_secret(Name=secret, SecretString="password-of-a-node")
    ssm.put_parameter(Name="/gateway-demo/pools/live/evm", Value="1", Type="String")
    where = {"LocationConstraint": "eu-central-1"}
    boto3.client("s3").create_bucket(Bucket="gateway-demo-archive", CreateBucketConfiguration=where)
    names = {
        "TABLE": "gateway-demo-ledger", "KEY": key, "ALIAS": alias, "NAME": "/gateway-demo/pools/live/evm", "SECRET": secret,
        "ARCHIVE": "gateway-demo-archive",
    }  # fmt: skip
    for line in lines:
        # The policy's name is `default` where none is given; moto knows no policy without a name.
        # https://docs.aws.amazon.com/kms/latest/APIReference/API_PutKeyPolicy.html
        named = " --policy-name default" if "put-key-policy" in line else ""
        run(line + named, {**names, "123456789012": ACCOUNT})
    assert stacks.describe_stacks()["Stacks"] == []
    assert client.list_tables()["TableNames"] == []
    assert kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] == "PendingDeletion"
    assert not [each for each in kms.list_aliases()["Aliases"] if each["AliasName"] == alias]
    assert "DeletedDate" in secrets.describe_secret(SecretId=secret)
    assert "arn:aws:iam::" + ACCOUNT in kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"]
    assert ssm.describe_parameters()["Parameters"] == []
    assert boto3.client("s3").list_buckets()["Buckets"] == []


def test_the_two_roles_can_be_made_and_have_their_policies() -> None:
    lines = [line for line in typed(section(DOCS / "deploying.md", "## What is needed")) if line.startswith("aws iam ")]
    assert len(lines) == 7
    for line in lines:
        run(line, {"DEPLOYER": "deployer", "KEYS": "keys", "123456789012": ACCOUNT})
    iam = boto3.client("iam")

    def held(role: str) -> set[str]:
        return {each["PolicyName"] for each in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]}

    assert (held("deployer"), held("keys")) == ({"gateway-deployer"}, {"gateway-deployer", "gateway-keys"})
    for name, file in (("gateway-deployer", "deployer"), ("gateway-keys", "keys-deployer")):
        arn = f"arn:aws:iam::{ACCOUNT}:policy/{name}"
        document = iam.get_policy_version(PolicyArn=arn, VersionId="v1")["PolicyVersion"]["Document"]
        assert document == json.loads((ROOT / "infra" / f"{file}.json").read_text())


def test_the_topic_of_alarms_gets_what_an_alarm_says() -> None:
    subscribe, check = section(DOCS / "deploying.md", "## First live invoice"), section(DOCS / "deploying.md", "## Is it right?")
    for line in typed(subscribe):
        run(line, {"123456789012": ACCOUNT})
    (topic,) = boto3.client("sns").list_topics()["Topics"]
    (mail,) = boto3.client("sns").list_subscriptions_by_topic(TopicArn=topic["TopicArn"])["Subscriptions"]
    assert mail["Protocol"] == "email"
    alarms = boto3.client("cloudwatch")
    alarms.put_metric_alarm(
        AlarmName="gateway-prod-log", MetricName="alarms", Namespace="gateway", Statistic="Sum", Period=60, EvaluationPeriods=1,
        Threshold=1, ComparisonOperator="GreaterThanOrEqualToThreshold", AlarmActions=[topic["TopicArn"]],
    )  # fmt: skip
    (line,) = typed(check)
    run(line, {})
    (alarm,) = alarms.describe_alarms(AlarmNames=["gateway-prod-log"])["MetricAlarms"]
    assert (alarm["StateValue"], alarm["AlarmActions"]) == ("ALARM", [topic["TopicArn"]])


@pytest.mark.parametrize(
    ("command", "given", "wrong"),
    [
        ("aws sqs purge-queue --queue-url QUEUE", {}, "what is QueueUrl"),
        ("aws dynamodb delete-table --table $T", {"$T": TABLE}, "has no --table"),
        ("aws dynamodb update-time-to-live --table-name t --time-to-live-specification Enabled=true", {}, "AttributeName"),
    ],
)
def test_what_can_not_be_run_is_refused(command: str, given: dict[str, str], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        run(command, given)
