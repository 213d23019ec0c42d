"""infra/template.yaml: it is valid, names things as the settings do, and protects what is money."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import boto3
import botocore.client
import pytest
import yaml
from moto import mock_aws

from chalicelib.api import fault_metric
from chalicelib.custody.native import key_policy
from chalicelib.settings import DEAD_DELIVERIES, QUEUES, STAGES, TABLES, Settings
from infra.cli import main
from infra.deploy import TEMPLATE, create_stack, topic_problem
from infra.deployment.key_stack import KEYS
from infra.local import repairs
from tests.deploy.template_text import Loader

MONEY = {"tenants", "records", "ledger", "chain", "payouts", "work", "webhooks", "custody"}
EXPIRING = {"tenants", "records", "events", "webhooks"}


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    """Those of both templates."""
    main, keys = (yaml.load(file.read_text(), Loader=Loader)["Resources"] for file in (TEMPLATE, KEYS))  # noqa: S506 - a SafeLoader
    return {**main, **keys}


def of_type(resources: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    """Resources of a type by their name property, which is given for the stage `prod`."""
    return {
        r["Properties"][name]["Fn::Sub"].replace("${Stage}", "prod"): r for r in resources.values() if r["Type"] == f"AWS::{kind}"
    }


@pytest.fixture
def account() -> Iterator[None]:
    repairs.install()
    with mock_aws():
        yield


def test_make_lint_has_awss_own_checker_look_at_every_template() -> None:
    """cfn-lint knows CloudFormation's published schemas of every resource; moto does not look at most properties."""
    (looked,) = re.findall(r"^LINT := .*cfn-lint (.+)$", (TEMPLATE.parents[1] / "Makefile").read_text(), re.MULTILINE)
    found = {file for pattern in looked.split() for file in TEMPLATE.parents[1].glob(pattern) if "Resources:" in file.read_text()}
    assert {TEMPLATE, KEYS} <= found == set(TEMPLATE.parent.rglob("*.yaml"))


def test_fits_into_one_file(resources: dict[str, Any]) -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"""
    assert len(TEMPLATE.read_bytes()) < 1_000_000
    assert len(resources) < 500


@pytest.mark.filterwarnings("ignore:.*not supported by moto's CloudFormation")
def test_what_is_sent_is_the_file_by_way_of_the_bucket(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []
    call = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

    def watched(self: Any, operation: str, arguments: dict[str, Any]) -> Any:
        if operation in ("CreateStack", "UpdateStack"):
            sent.append(arguments)
        return call(self, operation, arguments)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", watched)
    create_stack("demo")
    create_stack("demo")
    assert ["TemplateBody" in each for each in sent] == [False, False, False]
    files = []
    for url in dict.fromkeys(each["TemplateURL"] for each in sent):
        bucket, _, key = url.removeprefix("https://").partition(".s3.eu-central-1.amazonaws.com/")
        files.append(boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    assert files == [KEYS.read_bytes(), TEMPLATE.read_bytes()]


# The sweep: the names of `demo` are made like those of the two other stages, which stay.
@pytest.mark.parametrize("stage", [pytest.param(stage, marks=[pytest.mark.sweep] * (stage == "demo")) for stage in STAGES])
@pytest.mark.filterwarnings("ignore:.*not supported by moto's CloudFormation")
def test_names_are_those_of_the_settings(account: None, stage: str) -> None:
    settings = Settings(stage=stage)
    create_stack(stage)

    assert set(boto3.client("dynamodb").list_tables()["TableNames"]) == {settings.table(t) for t in TABLES}

    urls = boto3.client("sqs").list_queues()["QueueUrls"]
    dead = [q.replace(".fifo", "-dead.fifo") if q.endswith(".fifo") else f"{q}-dead" for q in QUEUES]
    assert {url.rsplit("/", 1)[1] for url in urls} == {settings.queue(q) for q in (*QUEUES, *dead, DEAD_DELIVERIES)}

    kms = boto3.client("kms")
    ours = [a["AliasName"] for a in kms.list_aliases()["Aliases"] if not a["AliasName"].startswith("alias/aws/")]
    assert set(ours) == {settings.key_alias(key) for key in (*settings.keys, "tables")}
    kinds = {key: kms.describe_key(KeyId=settings.key_alias(key))["KeyMetadata"] for key in settings.keys}
    wanted = {
        "data": ("SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT"),
        "webhooks": ("SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT"),
        "hot-live": ("ECC_SECG_P256K1", "SIGN_VERIFY"),
        "hot-test": ("ECC_SECG_P256K1", "SIGN_VERIFY"),
    }
    if stage == "demo":
        del wanted["hot-live"]
    assert {key: (kind["KeySpec"], kind["KeyUsage"]) for key, kind in kinds.items()} == wanted


@pytest.mark.filterwarnings("ignore:.*not supported by moto's CloudFormation")
def test_may_be_made_again_and_beside_another_stage(account: None) -> None:
    create_stack("prod")
    boto3.client("dynamodb").put_item(TableName="gateway-prod-ledger", Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    create_stack("prod", alarm_topic="arn:aws:sns:eu-central-1:123456789012:alarms")
    create_stack("prod")
    create_stack("demo")
    found = boto3.client("dynamodb").get_item(TableName="gateway-prod-ledger", Key={"pk": {"S": "a"}, "sk": {"S": "b"}})
    assert "Item" in found


@pytest.mark.filterwarnings("ignore:.*not supported by moto's CloudFormation")
def test_the_topic_of_last_time_stays_unless_another_is_given(account: None) -> None:
    def topic() -> str:
        """moto knows no alarms in a template; that each goes to the parameter's topic is looked at below."""
        (stack,) = boto3.client("cloudformation").describe_stacks(StackName="gateway-demo")["Stacks"]
        return {p["ParameterKey"]: p.get("ParameterValue", "") for p in stack["Parameters"]}["AlarmTopic"]

    first, second = (f"arn:aws:sns:eu-central-1:123456789012:{name}" for name in ("first", "second"))
    create_stack("demo", alarm_topic=first)
    assert topic() == first
    create_stack("demo")
    assert topic() == first
    create_stack("demo", alarm_topic=second)
    assert topic() == second
    create_stack("demo", alarm_topic="")
    assert topic() == ""


@pytest.mark.filterwarnings("ignore:.*not supported by moto's CloudFormation")
def test_prod_has_to_have_an_alarm_topic_that_is_one(account: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Without one nobody hears of an alarm, and CloudFormation takes any text for one."""
    topic = boto3.client("sns").create_topic(Name="alarms")["TopicArn"]
    assert topic_problem("prod", topic) is None
    for wanted in (None, ""):
        assert "prod needs --alarm-topic" in str(topic_problem("prod", wanted))
        assert topic_problem("demo", wanted) is None
    for wanted in (f"{topic}s", "alarms", "arn:aws:sqs:eu-central-1:123456789012:alarms"):
        for stage in ("prod", "demo"):
            assert "is no SNS topic" in str(topic_problem(stage, wanted)), wanted
    assert main(["--stage", "prod", "prepare"]) == 1
    assert "prod needs --alarm-topic" in capsys.readouterr().err
    assert boto3.client("dynamodb").list_tables()["TableNames"] == [], "nothing was made"
    create_stack("prod", alarm_topic=topic)
    assert topic_problem("prod", None) is None
    assert "prod needs" in str(topic_problem("prod", ""))


def test_what_moto_has_at_once_is_not_waited_for(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The local stack has five seconds in all."""

    def wait(seconds: float) -> None:
        pytest.fail(f"waits for {seconds} seconds")

    monkeypatch.setattr(time, "sleep", wait)
    create_stack("local")


def test_messages_that_fail_end_in_the_dead_letters(account: None) -> None:
    create_stack("local")
    sqs, settings = boto3.client("sqs"), Settings(stage="local")
    for queue in QUEUES:
        url = sqs.get_queue_url(QueueName=settings.queue(queue))["QueueUrl"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        redrive = json.loads(attributes["RedrivePolicy"])
        base, _, fifo = settings.queue(queue).partition(".")
        assert redrive["deadLetterTargetArn"].rsplit(":", 1)[1] == f"{base}-dead" + (f".{fifo}" if fifo else "")
        assert redrive["maxReceiveCount"] >= 3


def test_given_up_deliveries_are_kept_apart_from_what_functions_failed_on(resources: dict[str, Any]) -> None:
    queue = of_type(resources, "SQS::Queue", "QueueName")[f"gateway-prod-{DEAD_DELIVERIES}"]["Properties"]
    assert queue["MessageRetentionPeriod"] == 14 * 86_400
    assert not [name for name, r in resources.items() if "Alarm" in r["Type"] and "WebhooksGivenUp" in json.dumps(r)]
    redriven = json.dumps([r["Properties"].get("RedrivePolicy") for r in resources.values() if r["Type"] == "AWS::SQS::Queue"])
    assert "WebhooksGivenUp" not in redriven


def test_tables(resources: dict[str, Any]) -> None:
    tables = of_type(resources, "DynamoDB::Table", "TableName")
    for name in TABLES:
        table = tables[f"gateway-prod-{name}"]
        properties = table["Properties"]
        assert [(k["AttributeName"], k["KeyType"]) for k in properties["KeySchema"]] == [("pk", "HASH"), ("sk", "RANGE")]
        assert properties["SSESpecification"]["KMSMasterKeyId"] == {"Ref": "TablesKeyArn"}, name
        only_prod = {"Fn::If": ["Prod", True, False]}
        kept = (
            properties.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled"),
            properties.get("DeletionProtectionEnabled"),
        )
        assert kept == ((only_prod, only_prod) if name in MONEY else (None, None)), name
        assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain"), name
        expires = properties.get("TimeToLiveSpecification")
        assert expires == ({"AttributeName": "ttl", "Enabled": True} if name in EXPIRING else None), name


def test_the_archive_keeps_what_closing_postings_rest_on(resources: dict[str, Any]) -> None:
    """Nobody outside reads an object, and a version stays for ten years in production, whatever is done to its key or the stack."""
    (bucket,) = (r for r in resources.values() if r["Type"] == "AWS::S3::Bucket")
    properties = bucket["Properties"]
    account = "${AWS::AccountId}", "${AWS::Region}"
    assert properties["BucketName"]["Fn::Sub"].replace("${Stage}", "prod") == Settings(stage="prod").archive_bucket(*account)
    assert (bucket["DeletionPolicy"], bucket["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert properties["ObjectLockEnabled"] is True
    (rule,) = properties["ObjectLockConfiguration"]["Rule"].values()
    assert (rule["Mode"], rule["Days"]) == ("GOVERNANCE", {"Fn::If": ["Prod", 3650, 1]})
    assert properties["ObjectLockConfiguration"]["ObjectLockEnabled"] == "Enabled"
    (encryption,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"]["KMSMasterKeyID"] == {"Ref": "TablesKeyArn"}
    assert properties["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    blocked = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    assert properties["PublicAccessBlockConfiguration"] == dict.fromkeys(blocked, True)
    assert "LifecycleConfiguration" not in properties, "nothing of it expires"


def test_what_the_store_indexes_is_there(resources: dict[str, Any]) -> None:
    from chalicelib.store.indexes import INDEXES, indexed_attributes
    from chalicelib.store.schema import RECORDS

    tables = of_type(resources, "DynamoDB::Table", "TableName")
    assert {kind.table for kind in RECORDS.values()} <= set(TABLES)
    declared = {
        (name.rsplit("-", 1)[1], index["IndexName"], *(k["AttributeName"] for k in index["KeySchema"]))
        for name, table in tables.items()
        for index in table["Properties"].get("GlobalSecondaryIndexes", [])
    }
    assert declared == {(index.table, index.name, index.pk, index.sk) for index in INDEXES.values()}
    for name, table in tables.items():
        attributes = {a["AttributeName"] for a in table["Properties"]["AttributeDefinitions"]}
        assert attributes == {"pk", "sk", *indexed_attributes(name.rsplit("-", 1)[1])}
        kept = [index["Projection"] for index in table["Properties"].get("GlobalSecondaryIndexes", [])]
        assert all(projection == {"ProjectionType": "KEYS_ONLY"} for projection in kept)


def test_keys_are_kept_and_bound_to_their_use(resources: dict[str, Any]) -> None:
    keys = {name: r for name, r in resources.items() if r["Type"] == "AWS::KMS::Key"}
    assert set(keys) == {"TablesKey", "DataKey", "WebhooksKey", "HotLiveKey", "HotTestKey"}
    payout = {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/gateway-${Stage}-payout"}
    for name, key in keys.items():
        assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
        using = {}
        for statement in key["Properties"]["KeyPolicy"]["Statement"]:
            actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
            assert "kms:*" not in actions
            assert not any("Disable" in action for action in actions)
            if "kms:ScheduleKeyDeletion" in actions:
                assert statement["Condition"]["ForAnyValue:StringEquals"] == {"aws:CalledVia": "cloudformation.amazonaws.com"}
            using.update({action: statement.get("Condition", {}) for action in actions if "Sign" in action or "Decrypt" in action})
            if statement["Principal"] == {"AWS": "*"} and statement["Effect"] == "Allow":
                assert statement["Condition"]["StringEquals"]["kms:CallerAccount"] == {"Ref": "AWS::AccountId"}
        if name.startswith("Hot"):
            assert set(using) == {"kms:Sign"}
            assert using["kms:Sign"]["ArnEquals"] == {"aws:PrincipalArn": payout}
            assert using["kms:Sign"]["StringEquals"]["kms:MessageType"] == "DIGEST"
        else:
            assert key["Properties"]["EnableKeyRotation"] is True
            assert set(using) == {"kms:Decrypt"}
    opens = [s for s in keys["DataKey"]["Properties"]["KeyPolicy"]["Statement"] if s["Action"] == "kms:Decrypt"]
    assert {s["Condition"]["StringEquals"]["kms:EncryptionContext:purpose"]: "ArnEquals" in s["Condition"] for s in opens} == {
        "deposit-seed": False,
        "wallet-backup": False,
        "wallet-key": True,
    }
    # Of the secrets of webhooks, nobody but who delivers: not the operator either.
    _, _, _, seals, opened = keys["WebhooksKey"]["Properties"]["KeyPolicy"]["Statement"]
    assert (seals["Action"], opened["Action"]) == ("kms:Encrypt", "kms:Decrypt")
    purpose = {"kms:EncryptionContext:purpose": "webhook-secret"}
    assert (seals["Condition"]["StringEquals"], opened["Condition"]["StringEquals"]) == (purpose, purpose)
    roles = [arn["Fn::Sub"].rpartition(":role/")[2] for arn in opened["Condition"]["ArnEquals"]["aws:PrincipalArn"]]
    assert roles == ["gateway-${Stage}-deliver", "gateway-${Stage}-deliver_slow"]


def allows(policy: dict[str, Any], action: str, through: str | None = None) -> bool:
    """Whether a key policy lets a role do `action` to which IAM gives everything, called directly or `through` a service.

    An explicit denial wins, and a statement whose conditions name other things than the service does not count for the role.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
    """
    found = []
    for statement in policy["Statement"]:
        actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        wanted = {name: value for test in statement.get("Condition", {}).values() for name, value in test.items()}
        wanted.pop("kms:CallerAccount", None)
        via = wanted.pop("kms:ViaService", None)
        served = via is None or (through is not None and f"{through}." in str(via))
        if any(fnmatchcase(action, pattern) for pattern in actions) and served and not wanted:
            found.append(statement["Effect"])
    return "Allow" in found and "Deny" not in found


def test_nobody_can_grant_the_use_of_a_key(resources: dict[str, Any]) -> None:
    """A grant works beside the conditions of a key policy: its grantee signs or decrypts, whatever they say.

    https://docs.aws.amazon.com/kms/latest/developerguide/grants.html
    """
    policies = {name: r["Properties"]["KeyPolicy"] for name, r in resources.items() if r["Type"] == "AWS::KMS::Key"}
    policies["a wallet's"] = key_policy(Settings(stage="prod"), "aws", "123456789012")
    for name, policy in policies.items():
        assert not allows(policy, "kms:CreateGrant"), name
        for action in ("kms:CreateAlias", "kms:RevokeGrant", "kms:ListGrants", "kms:PutKeyPolicy"):
            assert allows(policy, action), (name, action)
        # DynamoDB works with a grant of its own, which it makes in the name of who makes the table.
        assert allows(policy, "kms:CreateGrant", through="dynamodb") is (name == "TablesKey"), name


def test_a_message_stays_hidden_six_times_its_functions_timeout(resources: dict[str, Any]) -> None:
    from tests.deploy.declared import consumers, function_settings

    queues = of_type(resources, "SQS::Queue", "QueueName")
    for function, queue in consumers("prod").items():
        assert queues[queue]["Properties"]["VisibilityTimeout"] >= 6 * function_settings("prod", function)["lambda_timeout"]
        assert queues[queue]["Properties"]["SqsManagedSseEnabled"] is True


def test_every_dead_letter_queue_and_function_has_an_alarm(resources: dict[str, Any]) -> None:
    from tests.deploy.declared import function_names

    alarms = [r["Properties"] for r in resources.values() if r["Type"] == "AWS::CloudWatch::Alarm"]
    assert all(alarm["AlarmActions"] == {"Fn::If": ["Told", [{"Ref": "AlarmTopic"}], []]} for alarm in alarms)
    watched = [json.dumps(d["Value"]).replace("${Stage}", "prod") for alarm in alarms for d in alarm.get("Dimensions", [])]
    dead = {json.dumps({"Fn::GetAtt": f"{name}.QueueName"}) for name in resources if name.endswith("DeadQueue")}
    functions = {json.dumps({"Fn::Sub": name}) for name in function_names("prod").values()}
    assert len(dead) == len(QUEUES)
    of_the_api = [json.dumps({"Fn::Sub": "gateway-prod"}), json.dumps({"Ref": "Stage"})]  # Throttles, and its answers
    once_more = functions - {of_the_api[0]}  # silent, or throttled: below
    expected = [*dead, *functions, *once_more, json.dumps({"Fn::Sub": "gateway-prod-demo_reset"}), *of_the_api]
    assert sorted(watched) == sorted(expected)


def test_a_function_that_does_not_run_rings(resources: dict[str, Any]) -> None:
    """Of a schedule, whatever the reason: a stopped function, and a rule that is off, have no metric that counts them."""
    from tests.deploy.declared import consumers, schedules

    alarms = {r["Properties"]["AlarmName"]["Fn::Sub"]: r["Properties"] for r in resources.values() if "Alarm" in r["Type"]}
    how = (
        "Namespace",
        "MetricName",
        "Statistic",
        "Period",
        "EvaluationPeriods",
        "Threshold",
        "ComparisonOperator",
        "TreatMissingData",
    )

    def of(kind: str) -> dict[str, list[Any]]:
        found = {name: alarm for name, alarm in alarms.items() if name.endswith(f"-{kind}") and "-api-" not in name}
        for name, alarm in found.items():
            (watched,) = alarm["Dimensions"]
            assert watched["Value"]["Fn::Sub"].replace("_", "-") == name.removesuffix(f"-{kind}")
        return {d["Value"]["Fn::Sub"].split("-", 2)[2]: [a[key] for key in how] for a in found.values() for d in a["Dimensions"]}

    silent, throttled = of("silent"), of("throttled")
    assert silent.keys() == {name for name in schedules() if name != "demo_reset"}
    assert throttled.keys() == consumers("prod").keys()
    assert all(
        each == ["AWS/Lambda", "Invocations", "Sum", 300, 3, 1, "LessThanThreshold", "breaching"] for each in silent.values()
    )
    turned = ["AWS/Lambda", "Throttles", "Sum", 60, 5, 0, "GreaterThanThreshold", "notBreaching"]
    assert all(each == turned for each in throttled.values())


def test_one_answer_500_of_the_api_rings(
    resources: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarm is on the metric that the line of the log makes, at its first datum; and the function may write its log.

    An answered 500 is no error of the function, and API Gateway's own metric is by the name of the API, which all stages share.
    """
    monkeypatch.setenv("STAGE", "prod")
    fault_metric.count("/v1/coins", "id")
    line = json.loads(capsys.readouterr().out)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    alarms = {r["Properties"]["AlarmName"]["Fn::Sub"]: r for r in resources.values() if r["Type"] == "AWS::CloudWatch::Alarm"}
    alarm = alarms["gateway-${Stage}-api-500"]
    watched = alarm["Properties"]
    assert alarm["Condition"] == "Deployed"
    assert watched["Namespace"] == {"Fn::Sub": directive["Namespace"].replace("prod", "${Stage}")}
    assert directive["Metrics"] == [{"Name": watched["MetricName"], "Unit": "Count"}]
    assert directive["Dimensions"] == [[d["Name"] for d in watched["Dimensions"]]]
    assert [d["Value"] for d in watched["Dimensions"]] == [{"Ref": "Stage"}]
    assert line["stage"] == "prod"
    (written,) = [
        s
        for s in json.loads((TEMPLATE.parents[1] / ".chalice/policy-api-prod.json").read_text())["Statement"]
        if s["Sid"] == "Logs"
    ]
    assert "logs:PutLogEvents" in written["Action"]
    for name in ("api-500", "api-errors", "api-throttled"):
        of_one = alarms[f"gateway-${{Stage}}-{name}"]["Properties"]
        how = [of_one[key] for key in ("Statistic", "Period", "EvaluationPeriods", "Threshold", "ComparisonOperator")]
        assert how == ["Sum", 60, 1, 0, "GreaterThanThreshold"], name


def test_no_alarm_is_on_what_the_stages_share(resources: dict[str, Any]) -> None:
    assert not [name for name, r in resources.items() if "Alarm" in r["Type"] and "ApiGateway" in json.dumps(r)]


def test_every_function_has_a_log_group_that_is_listened_to(resources: dict[str, Any]) -> None:
    from tests.deploy.declared import config, function_names

    # The demo's reset speaks to nobody at night: its alarm counts failures.
    groups = {n: r for n, r in resources.items() if r["Type"] == "AWS::Logs::LogGroup" and n not in ("DemoResetLogs", "AccessLogs")}
    assert resources["DemoResetLogs"]["Condition"] == resources["DemoResetErrorsAlarm"]["Condition"] == "Demo"
    names = {name: r["Properties"]["LogGroupName"]["Fn::Sub"].replace("${Stage}", "prod") for name, r in groups.items()}
    assert sorted(names.values()) == sorted(f"/aws/lambda/{function}" for function in function_names("prod").values())
    assert all(r["Properties"]["RetentionInDays"] == {"Fn::If": ["Prod", 90, 7]} for r in groups.values())
    # Chalice would make the same groups, and fail.
    assert not any("log_retention_in_days" in of_stage for of_stage in [config(), *config()["stages"].values()])

    filters = [r["Properties"] for r in resources.values() if r["Type"] == "AWS::Logs::MetricFilter"]
    assert sorted(f["LogGroupName"]["Ref"] for f in filters) == sorted(groups)
    (pattern,) = {f["FilterPattern"] for f in filters}
    (alarm,) = [r["Properties"] for r in resources.values() if r["Properties"].get("MetricName") == "alarm_lines"]
    for listening in filters:
        (counted,) = listening["MetricTransformations"]
        assert (counted["MetricNamespace"], counted["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
        assert counted["MetricValue"] == "1"
    # A pattern of ?terms matches a line that has any of them.
    terms = [term.removeprefix("?").strip('"') for term in pattern.split()]
    assert all(term.startswith("?") for term in pattern.split())
    assert set(terms) == {"ALARM", "metric=relay_failed", "metric=delivery_lost"}


def test_what_the_code_logs_as_an_alarm_is_what_is_listened_to(resources: dict[str, Any]) -> None:
    """Every `metric=` and ALARM in a log call of ours is in the pattern, at a level that Lambda's logger lets through."""
    pattern = next(r["Properties"]["FilterPattern"] for r in resources.values() if r["Type"] == "AWS::Logs::MetricFilter")
    heard = set()
    for file in (TEMPLATE.parents[1] / "chalicelib").rglob("*.py"):
        for level, text in re.findall(r'log\.(\w+)\(\s*f?"(ALARM|metric=\w+)', file.read_text()):
            assert level in ("warning", "error", "exception"), file
            assert text in pattern, f"{text} in {file}"
            heard.add(text)
    assert heard == {"ALARM", "metric=relay_failed", "metric=delivery_lost"}
