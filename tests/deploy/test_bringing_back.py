"""What stands outside of its stack comes into it as it is, and nothing that holds money is made anew.

Resource import is a stand-in of ours, as is what a stack keeps and rolls back (importing.py).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.dynamodb.models import dynamodb_backends
from moto.sqs.models import Queue

from infra.commands.common import CanNot
from infra.deploy import TEMPLATE, create_stack
from infra.deployment import check, key_stack, retained
from infra.deployment.bucket import bucket_of, make_bucket
from infra.deployment.plan import plan
from infra.deployment.stack import Stack
from infra.deployment.stack_states import state_of
from infra.local import repairs
from tests.deploy.conftest import ROOT, run_python
from tests.deploy.cut_stacks import older_template
from tests.deploy.importing import stand_in

pytestmark = pytest.mark.filterwarnings("ignore:.*not supported by moto's CloudFormation")
LEDGER = "gateway-prod-ledger"


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    repairs.install()
    stand_in(functools.partial(monkeypatch.setattr, raising=False))
    with mock_aws():
        yield


def stack(name: str = "gateway-prod") -> Stack:
    return Stack(boto3.client("cloudformation"), make_bucket(boto3), name, protected=True)


def delete(*names: str) -> None:
    formation = boto3.client("cloudformation")
    for name in names:
        formation.update_termination_protection(StackName=name, EnableTerminationProtection=False)
        formation.delete_stack(StackName=name)


def table(name: str = LEDGER) -> dict[str, Any]:
    found: dict[str, Any] = boto3.client("dynamodb").describe_table(TableName=name)["Table"]
    return found


def fail_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quota is used up when the first queue is to be made."""
    make, failed = Queue.create_from_cloudformation_json, list[bool]()

    def create(*arguments: Any, **named: Any) -> Any:
        if not failed:
            failed.append(True)
            raise RuntimeError("the quota is used up")
        return make(*arguments, **named)

    monkeypatch.setattr(Queue, "create_from_cloudformation_json", create)


def test_a_first_deploy_that_fails_is_run_again(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_once(monkeypatch)
    formation = boto3.client("cloudformation")
    with pytest.raises(CanNot, match="gateway-prod is ROLLBACK_COMPLETE: gateway-prod: the quota is used up"):
        create_stack("prod")
    assert boto3.client("dynamodb").list_tables()["TableNames"] == []
    with pytest.raises(ClientError, match="is in ROLLBACK_COMPLETE state and can not be updated"):
        formation.update_stack(StackName="gateway-prod", TemplateBody="Resources: {}")
    keys = key_stack.aliases(boto3.client("kms"))
    create_stack("prod")
    assert state_of(formation, "gateway-prod") == "UPDATE_COMPLETE" and table()["DeletionProtectionEnabled"] is True
    assert key_stack.aliases(boto3.client("kms")) == keys, "those of the first try"


def test_tables_that_are_protected_from_the_start_could_not_be_rolled_back(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_once(monkeypatch)
    with pytest.raises(CanNot, match="gateway-prod is ROLLBACK_FAILED"):
        stack().make(TEMPLATE.read_text(), {"Stage": "prod", "TablesKeyArn": "arn"})


def test_a_cut_between_making_and_protecting_is_told_and_healed(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as cut:
        cut.setattr(Stack, "update", lambda *_: pytest.fail("cut"))
        with pytest.raises(pytest.fail.Exception):
            create_stack("prod")
    assert table()["DeletionProtectionEnabled"] is False
    (said,) = [line for line in check.check(boto3, bucket_of(boto3), "prod").wrong if "protected" in line]
    assert said.startswith("not protected from deletion: gateway-prod-tenants, ") and said.count("gateway-prod-") == 8
    create_stack("prod")
    assert retained.unprotected(boto3.client("dynamodb"), TEMPLATE.read_text(), "prod") == []
    assert not [line for line in check.check(boto3, bucket_of(boto3), "prod").wrong if "protected" in line or "stack" in line]


def test_no_key_leaves_a_stack_that_would_delete_its_alias(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """CloudFormation may take an update that changes policies alone for none."""
    stack().make(older_template(), {"Stage": "prod", "AlarmTopic": "", "AccessLogDays": "90"})
    keys, inside = key_stack.aliases(boto3.client("kms")), stack().holds()
    monkeypatch.setattr(Stack, "update", lambda *_: None)
    with pytest.raises(CanNot, match=r"would delete TablesKeyAlias, .*nothing was let go"):
        create_stack("prod")
    assert key_stack.aliases(boto3.client("kms")) == keys and stack().holds() == inside


def test_keys_of_the_main_stack_move_once(account: None) -> None:
    """Under their logical ids, while aliases lead to them; no table is touched."""
    stack().make(older_template(), {"Stage": "prod", "AlarmTopic": "", "AccessLogDays": "90"})
    keys, before, ids = key_stack.aliases(boto3.client("kms")), table(), stack().holds()
    assert any(
        line.endswith("takes 10 keys and aliases, as they are, from the main stack")
        for line in plan(boto3, bucket_of(boto3), "prod")
    )
    told: list[str] = []
    create_stack("prod", tell=told.append)
    assert told == [
        "keys leave the stack gateway-prod, and stay",
        "the stack gateway-prod-keys takes 10 keys and aliases that stand already",
    ]
    moved = stack("gateway-prod-keys").holds()
    assert moved == {logical: each for logical, each in ids.items() if "KMS" in each}
    assert stack().holds() == {logical: each for logical, each in ids.items() if "KMS" not in each}
    assert key_stack.aliases(boto3.client("kms")) == keys and table() == before
    told.clear()
    create_stack("prod", tell=told.append)
    assert told == []


def test_what_a_deleted_stack_kept_comes_back_as_it_is(account: None) -> None:
    """An index that the template has and the table has not is made afterwards: an import makes nothing."""
    create_stack("prod")
    dynamodb = boto3.client("dynamodb")
    dynamodb.put_item(TableName=LEDGER, Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    before, records = table(), table("gateway-prod-records")
    delete("gateway-prod", "gateway-prod-keys")
    index = records["GlobalSecondaryIndexes"][0]["IndexName"]
    dynamodb.update_table(TableName="gateway-prod-records", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": index}}])
    lines = plan(boto3, bucket_of(boto3), "prod")
    assert "stack gateway-prod-keys (new): takes 10 keys and aliases, as they are, from outside of any stack" in lines
    assert "stack gateway-prod (new): takes 10 tables, 1 buckets that stand already, as they are" in lines
    create_stack("prod", tell=lambda line: None)
    assert {**table(), "ItemCount": 0} == {**before, "ItemCount": 0} and dynamodb.scan(TableName=LEDGER)["Count"] == 1
    names = sorted(each["IndexName"] for each in table("gateway-prod-records")["GlobalSecondaryIndexes"])
    assert names == sorted(each["IndexName"] for each in records["GlobalSecondaryIndexes"])
    assert stack().template() == TEMPLATE.read_text()


def test_of_a_log_group_that_a_function_made_again_the_retention_is_set_afterwards(
    account: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A template that says 90 days of a group that is kept for ever would never change it."""
    create_stack("prod")
    delete("gateway-prod")
    boto3.client("logs").create_log_group(logGroupName="/aws/lambda/gateway-prod-relay")
    boto3.client("logs").create_log_group(logGroupName="/aws/lambda/gateway-prod-demo_reset")  # which prod has not
    sent: list[tuple[str, Any]] = []
    monkeypatch.setattr(Stack, "bring_in", lambda self, text, given, found: sent.append((text, found)))
    given = {"Stage": "prod", "TablesKeyArn": key_stack.arn_of(boto3.client("kms"), "prod")}
    assert retained.bring_back(boto3, stack(), TEMPLATE.read_text(), "prod", given, lambda line: None)
    ((text, found),) = sent
    assert found["RelayLogs"].identifier == {"LogGroupName": "/aws/lambda/gateway-prod-relay"} and "DemoResetLogs" not in found
    relay = text[text.index("  RelayLogs:") :].split("\n  ", 1)
    assert "RetentionInDays" not in relay[1].split("Type: AWS::Logs::MetricFilter")[0]


def test_where_money_stands_no_key_is_made(account: None) -> None:
    create_stack("prod")
    delete("gateway-prod", "gateway-prod-keys")
    boto3.client("kms").delete_alias(AliasName="alias/gateway-prod-data")
    keys = len(boto3.client("kms").list_keys()["Keys"])
    with pytest.raises(CanNot, match="gateway-prod-tenants stands, and alias/gateway-prod-data leads to no key"):
        create_stack("prod")
    assert len(boto3.client("kms").list_keys()["Keys"]) == keys
    assert state_of(boto3.client("cloudformation"), "gateway-prod") is None


def test_a_key_that_is_being_deleted_is_not_taken(account: None) -> None:
    """As in the days after a stage was removed: a new one under its name would have keys that die."""
    create_stack("demo")
    delete("gateway-demo", "gateway-demo-keys")
    kms, name = boto3.client("kms"), "alias/gateway-demo-data"
    for table in boto3.client("dynamodb").list_tables()["TableNames"]:
        boto3.client("dynamodb").delete_table(TableName=table)
    old = key_stack.aliases(kms)
    kms.schedule_key_deletion(KeyId=old[name])
    with pytest.raises(CanNot, match=f"the key of {name} is PendingDeletion.* cancel-key-deletion --key-id {old[name]}"):
        create_stack("demo", tell=lambda line: None)
    assert state_of(boto3.client("cloudformation"), "gateway-demo-keys") is None and key_stack.aliases(kms) == old
    kms.delete_alias(AliasName=name)
    create_stack("demo", tell=lambda line: None)
    new = key_stack.aliases(kms)
    assert new[name] != old[name] and {**new, name: ""} == {**old, name: ""}, "the others are taken as they are"


def test_a_table_keeps_to_its_key(account: None) -> None:
    create_stack("prod")
    delete("gateway-prod")
    found = dynamodb_backends["123456789012"]["eu-central-1"].tables[LEDGER]
    found.sse_specification = {"Enabled": True, "KMSMasterKeyId": "arn:aws:kms:eu-central-1:123456789012:key/another"}
    with pytest.raises(CanNot, match=f"{LEDGER} is encrypted with arn:aws:kms:eu-central-1:123456789012:key/another"):
        create_stack("prod")
    assert state_of(boto3.client("cloudformation"), "gateway-prod") is None


# test_deploy deletes both stacks, too, and compares the tables.
@pytest.mark.sweep
def test_a_merchant_has_the_same_money_when_all_stacks_were_deleted() -> None:
    environment = {"STAGE": "local", "WEBHOOKS_ALLOW_PRIVATE": "true", "SANDBOX_BLOCK_SECONDS": "0"}
    found = json.loads(run_python(ROOT, "-m", "tests.deploy.brought_back", **environment))
    assert found["stacks"] == [] and len(found["tables"]) == 10 and len(found["told"]) == 2
    before, after, later = ([(e["coin"], e["balance"]) for e in found[when]["data"]] for when in ("before", "after", "goes on"))
    assert before == after == [("eth", "2")] and later == [("eth", "3")], "and is paid as before"
