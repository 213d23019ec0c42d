"""infra/deployer.json, the rights of who deploys, and infra/keys-deployer.json, what who makes and changes keys has:
they suffice for what CloudFormation and the commands do, and are no more.

That each call of a whole deploy and of `delete` is among them is in test_deploy_cuts.py.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from infra.deploy import TEMPLATE
from infra.deployment.gateway_stage import ROLE
from infra.deployment.key_stack import KEYS
from tests.deploy.deployer_rights import FILE, OF_KEYS, actions, allows, permits


def types(file: Path) -> list[str]:
    return sorted(set(re.findall(r"^    Type: (AWS::\w+::\w+)$", file.read_text(), re.MULTILINE)))


TYPES, KEY_TYPES = types(TEMPLATE), types(KEYS)
UNUSED: dict[str, dict[str, tuple[str, ...]]] = {
    "AWS::KMS::Key": {"Enabled:": ("kms:DisableKey", "kms:EnableKey")},
    # An alias that leads to another key: nothing could open what the one before has sealed.
    "AWS::KMS::Alias": {"(changed away)": ("kms:UpdateAlias",)},
    "AWS::DynamoDB::Table": {
        "ImportSourceSpecification": ("dynamodb:*Import*", "logs:*", "s3:*", "kms:Encrypt"),
        "KinesisStreamSpecification": (
            "dynamodb:EnableKinesis*",
            "dynamodb:DisableKinesis*",
            "dynamodb:UpdateKinesis*",
            "kinesis:*",
        ),
        "ContributorInsightsSpecification": ("dynamodb:UpdateContributorInsights",),
        "ResourcePolicy": ("dynamodb:PutResourcePolicy", "dynamodb:DeleteResourcePolicy"),
        "Replicas": ("dynamodb:*Replica", "iam:CreateServiceLinkedRole"),
    },
    "AWS::Logs::LogGroup": {
        "DataProtectionPolicy": (
            "logs:PutDataProtectionPolicy",
            "logs:DeleteDataProtectionPolicy",
            "logs:CreateLogDelivery",
            "s3:*",
            "firehose:*",
        ),
        "ResourcePolicyDocument": ("logs:PutResourcePolicy", "logs:DeleteResourcePolicy"),
        "FieldIndexPolicies": ("logs:PutIndexPolicy", "logs:DeleteIndexPolicy"),
        "KmsKeyId:": ("logs:AssociateKmsKey", "logs:DisassociateKmsKey"),
        "DeletionProtectionEnabled: false": ("logs:PutLogGroupDeletionProtection",),
        "BearerTokenAuthentication": ("logs:PutBearerTokenAuthentication",),
    },
    "AWS::S3::Bucket": {
        "AbacStatus": ("s3:PutBucketAbac",),
        "AnalyticsConfigurations": ("s3:*Analytics*",),
        "CorsConfiguration": ("s3:*C[Oo][Rr][Ss]*",),
        "InventoryConfigurations": ("s3:*Inventory*",),
        "MetricsConfigurations": ("s3:*Metrics*",),
        "NotificationConfiguration": ("s3:*Notification",),
        "ReplicationConfiguration": ("s3:*Replication*", "iam:PassRole"),
        "WebsiteConfiguration": ("s3:*Website",),
        "AccelerateConfiguration": ("s3:PutAccelerate*",),
        "LoggingConfiguration": ("s3:PutBucketLogging",),
        "AccessControl": ("s3:*Acl",),
        "IntelligentTieringConfigurations": ("s3:PutIntelligentTiering*",),
        "MetadataTableConfiguration": ("s3:*Metadata*", "s3tables:*"),
        "(changed away)": ("s3:DeleteBucketEncryption", "s3:DeleteBucketLifecycle", "s3:DeleteObject"),
    },
}
"""Rights that a resource's handler asks for where the template has this property, which it has not."""


def handled(type_: str) -> set[str]:
    """What CloudFormation's handlers of a type ask for, as AWS publishes it with each type.

    https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html (handlers)
    """
    handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", type_).schema["handlers"]
    return {each for way in ("create", "read", "update", "delete") for each in handlers[way]["permissions"]}


def test_it_is_small_enough_for_a_managed_policy() -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html: 6,144 characters, white space not counted."""
    assert len(re.sub(r"\s", "", FILE.read_text())) <= 6_144


@pytest.mark.parametrize("type_", KEY_TYPES)
def test_cloudformation_may_do_with_a_key_what_its_template_asks_for(type_: str) -> None:
    unused = UNUSED[type_]
    assert [name for name in unused if name in KEYS.read_text()] == []
    spared = [pattern for patterns in unused.values() for pattern in patterns]
    wanted = {action for action in handled(type_) if action not in spared}
    assert sorted(action for action in wanted if not allows(action, files=(FILE, OF_KEYS))) == []
    assert [action for action in spared if allows(action, files=(FILE, OF_KEYS))] == []


def test_who_deploys_every_day_changes_no_key() -> None:
    """Not even by way of CloudFormation: neither a policy, nor an alias that would lead to another key."""
    assert {"AWS::KMS::Alias", "AWS::KMS::Key"} == set(KEY_TYPES) and not set(KEY_TYPES) & set(TYPES)
    looks = {"kms:DescribeKey", "kms:ListAliases"}
    assert {each for type_ in KEY_TYPES for each in handled(type_) if allows(each)} == looks


KEY, ALIAS = "arn:aws:kms:r:1:key/k", "arn:aws:kms:r:1:alias/gateway-prod-data"
BY_FORMATION = {"aws:CalledVia": ["cloudformation.amazonaws.com"]}
OURS, ANOTHERS = ["alias/gateway-prod-data"], ["alias/payroll"]


@pytest.mark.parametrize(
    ("aliases", "allowed"),
    [
        # Made a moment ago, or rolled back: the alias comes after the key, goes before it, and counts for rights minutes later.
        # https://docs.aws.amazon.com/kms/latest/developerguide/alias-authorization.html
        ([], True),
        (OURS, True),
        (ANOTHERS, False),
        (["alias/aws/s3"], False),
        # An alias of ours gives no right to a key that another's leads to.
        (OURS + ANOTHERS, False),
    ],
)
def test_keys_that_others_have_named_are_out_of_reach(aliases: list[str], allowed: bool) -> None:
    context = {**BY_FORMATION, "kms:ResourceAliases": aliases}
    changing = {action for type_ in KEY_TYPES for action in handled(type_)} - {"kms:CreateKey", "kms:ListKeys", "kms:ListAliases"}
    changing -= {
        "kms:DescribeKey",
        "kms:DisableKey",
        "kms:EnableKey",
        "kms:GetKeyPolicy",
        "kms:ListResourceTags",
        "kms:UpdateAlias",
    }
    assert {"kms:PutKeyPolicy", "kms:ScheduleKeyDeletion", "kms:CreateAlias"} <= changing
    for action in changing:
        assert permits(action, KEY, context, FILE, OF_KEYS) is allowed, action
        assert not permits(action, KEY, {"kms:ResourceAliases": aliases}, FILE, OF_KEYS), "not by hand"


def test_aliases_are_made_and_deleted_under_our_name_alone() -> None:
    for action in ("kms:CreateAlias", "kms:DeleteAlias"):
        assert permits(action, ALIAS, BY_FORMATION, OF_KEYS) and not permits(action, ALIAS, {}, FILE, OF_KEYS)
        assert not permits(action, "arn:aws:kms:r:1:alias/payroll", BY_FORMATION, FILE, OF_KEYS)
    assert permits("kms:CreateKey", "*", BY_FORMATION, OF_KEYS) and not permits("kms:CreateKey", "*", {}, FILE, OF_KEYS)


KIND: dict[str, str | list[str]] = {"kms:KeySpec": "ECC_SECG_P256K1", "kms:KeyUsage": "SIGN_VERIFY"}
TAG: dict[str, str | list[str]] = {"aws:RequestTag/gateway-stage": "prod", "aws:TagKeys": ["gateway-stage", "gateway-wallet"]}
RENEWED: dict[str, str | list[str]] = {
    **KIND, "aws:ResourceTag/gateway-stage": "prod", "kms:ResourceAliases": ["alias/gateway-prod-wallet-live-ethereum-hot-2"]
}  # fmt: skip
MADE: dict[str, str | list[str]] = {**KIND, **TAG, "kms:KeyOrigin": "AWS_KMS", "kms:MultiRegion": "false"}


def test_a_leaked_wallets_key_is_replaced_by_who_makes_keys() -> None:
    """`rotate` and `wallet-keys` where wallets' keys are in KMS (`custody/native.py`): such keys alone are made, tagged, named as
    wallets' and given another policy; none signs by these rights."""
    wallet = "arn:aws:kms:r:1:alias/gateway-prod-wallet-live-ethereum-hot-2"
    for action, arn, context in (
        ("kms:CreateKey", "*", MADE),
        ("kms:TagResource", KEY, TAG),
        ("kms:CreateAlias", KEY, KIND),
        ("kms:CreateAlias", wallet, {}),
        ("kms:GetPublicKey", KEY, KIND),
        ("kms:GetKeyPolicy", KEY, {}),
        ("kms:ListGrants", KEY, {}),
        ("kms:PutKeyPolicy", KEY, RENEWED),
        ("kms:PutKeyPolicy", KEY, {**RENEWED, "kms:BypassPolicyLockoutSafetyCheck": "false"}),
    ):
        assert permits(action, arn, context, OF_KEYS), action
        assert not permits(action, arn, context, FILE), "not by who deploys every day"
    for name in MADE:
        without = {key: value for key, value in MADE.items() if key != name}
        assert name == "aws:TagKeys" or not permits("kms:CreateKey", "*", without, OF_KEYS), name
    assert not permits("kms:TagResource", KEY, {**TAG, "aws:TagKeys": ["gateway-stage", "owner"]}, OF_KEYS)
    for name in RENEWED:
        without = {key: value for key, value in RENEWED.items() if key != name}
        assert not permits("kms:PutKeyPolicy", KEY, without, OF_KEYS), f"of a key that is no wallet's: {name}"
    assert not permits("kms:PutKeyPolicy", KEY, {**RENEWED, "kms:BypassPolicyLockoutSafetyCheck": "true"}, OF_KEYS)
    for named in (ANOTHERS, [*ANOTHERS, "alias/gateway-prod-wallet-x"]):
        others = {**KIND, **TAG, **RENEWED, "kms:ResourceAliases": named}
        for action in ("kms:TagResource", "kms:CreateAlias", "kms:PutKeyPolicy"):
            assert not permits(action, KEY, others, FILE, OF_KEYS), f"{action} on a key that others have named"
    hot = {**RENEWED, "kms:ResourceAliases": ["alias/gateway-prod-hot-live"]}
    assert not permits("kms:PutKeyPolicy", KEY, hot, FILE, OF_KEYS), "the stack's own"
    assert not permits("kms:CreateAlias", KEY, {"kms:KeySpec": "SYMMETRIC_DEFAULT"}, OF_KEYS)
    assert not permits("kms:CreateAlias", ALIAS, KIND, OF_KEYS)
    assert not permits("kms:Sign", KEY, {**KIND, "kms:ResourceAliases": ["alias/gateway-prod-wallet-x"]}, FILE, OF_KEYS)


def test_commands_read_the_archive_and_nodes_passwords() -> None:
    archive, secret = (
        "arn:aws:s3:::gateway-prod-archive-1-r/a",
        "arn:aws:secretsmanager:r:1:secret:gateway-prod-node-alchemy-a1B2c3",
    )
    assert permits("s3:GetObject", archive, {}, FILE) and not permits("s3:DeleteObject", archive, {}, FILE, OF_KEYS)
    assert permits("secretsmanager:GetSecretValue", secret, {}, FILE)
    assert not permits("secretsmanager:GetSecretValue", secret.replace("gateway", "payroll"), {}, FILE, OF_KEYS)
    assert permits("secretsmanager:PutSecretValue", secret, {}, OF_KEYS)
    assert not permits("secretsmanager:PutSecretValue", secret, {}, FILE)


def test_grants_are_dynamodbs() -> None:
    """A grant would let its grantee use a key whatever its policy says. https://docs.aws.amazon.com/kms/latest/developerguide/grants.html"""
    for action in ("kms:CreateGrant", "kms:RevokeGrant", "kms:Decrypt"):
        by = {"aws:CalledVia": [*BY_FORMATION["aws:CalledVia"], "dynamodb.amazonaws.com"]}
        assert permits(action, KEY, {**by, "kms:ViaService": "dynamodb.eu-central-1.amazonaws.com"}, FILE)
        assert not permits(action, KEY, BY_FORMATION, FILE) and not permits(action, KEY, {}, FILE)


def test_each_service_is_passed_its_own_roles() -> None:
    log, function = "arn:aws:iam::1:role/gateway-access-log", "arn:aws:iam::1:role/gateway-prod-payout"
    assert ROLE in log
    for role, service, allowed in (
        (log, "apigateway.amazonaws.com", True),
        (function, "lambda.amazonaws.com", True),
        (function, "apigateway.amazonaws.com", False),
        (function, "ec2.amazonaws.com", False),
        ("arn:aws:iam::1:role/admin", "lambda.amazonaws.com", False),
    ):
        assert permits("iam:PassRole", role, {"iam:PassedToService": service}, FILE) is allowed, (role, service)


@pytest.mark.parametrize("type_", TYPES)
def test_cloudformation_may_do_with_it_what_the_template_asks_for(type_: str) -> None:
    unused = UNUSED.get(type_, {})
    assert [name for name in unused if name in TEMPLATE.read_text()] == []
    spared = [pattern for patterns in unused.values() for pattern in patterns]
    wanted = {action for action in handled(type_) if not any(fnmatchcase(action, pattern) for pattern in spared)}
    assert len(wanted) >= 2
    assert sorted(action for action in wanted if not allows(action)) == []


def test_every_right_is_one_that_something_needs() -> None:
    """Of CloudFormation's part; the commands' part is compared with their calls where a deploy is cut."""
    asked = {action for type_ in (*TYPES, *KEY_TYPES) for action in handled(type_)}
    found = [
        each for file in (FILE, OF_KEYS) for each in json.loads(file.read_text())["Statement"] if "CalledVia" in json.dumps(each)
    ]
    assert len(found) == 6
    for statement in found:
        given = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        assert [a for a in given if not any(fnmatchcase(each, a) for each in asked)] == []


def test_it_is_about_nothing_but_ours() -> None:
    """What names no resource only looks, or has a condition. API Gateway's account, with the role for logs, has no name."""
    for statement in [each for file in (FILE, OF_KEYS) for each in json.loads(file.read_text())["Statement"]]:
        resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        wide = [each for each in resources if "gateway-" not in each and "restapis" not in each and not each.endswith("::/account")]
        if wide and "Condition" not in statement:
            assert all(re.match(r"\w+:(Get|List|Describe|RequestServiceQ)", action) for action in statement["Action"]), statement[
                "Sid"
            ]


@pytest.mark.parametrize("action", ["dynamodb:DeleteTable", "kms:ScheduleKeyDeletion", "s3:DeleteBucket", "sqs:DeleteQueue"])
def test_what_holds_money_is_taken_away_by_the_stack_alone(action: str) -> None:
    found: list[Any] = [s for file in (FILE, OF_KEYS) for s in json.loads(file.read_text())["Statement"] if action in s["Action"]]
    assert len(found) == 1
    assert found[0]["Condition"]["ForAnyValue:StringEquals"] == {"aws:CalledVia": "cloudformation.amazonaws.com"}


def test_an_api_call_is_known_by_the_right_that_it_needs() -> None:
    assert actions("s3", "HeadBucket") == {"s3:ListBucket"}
    assert actions("apigateway", "ImportRestApi") == {"apigateway:POST"}
    assert actions("apigateway", "UpdateAccount") == {"apigateway:PATCH", "iam:PassRole"}
    assert actions("lambda", "CreateFunction") == {"lambda:CreateFunction", "iam:PassRole"}
    assert not allows("iam:AttachRolePolicy") and not allows("lambda:InvokeFunction") and allows("s3:GetBucketTagging")


@pytest.mark.parametrize(
    "action",
    [
        *("cloudformation:ContinueUpdateRollback", "cloudformation:UpdateTerminationProtection", "cloudformation:DeleteStack"),
        "servicequotas:RequestServiceQuotaIncrease",
    ],
)
def test_what_our_own_messages_advise_is_allowed(action: str) -> None:
    assert allows(action, directly=True)
