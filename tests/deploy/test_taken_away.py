"""What functions may need is not taken away before they are replaced: an older checkout's template lacks what later ones use.

That a whole deploy keeps to it, cut wherever, is in test_deploy_cuts.py.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from moto import mock_aws

from chalicelib import wiring
from chalicelib.settings import VARIABLES
from infra import deploy
from infra.cli import main
from infra.commands.common import CanNot
from infra.deploy import TEMPLATE, create_stack, end_stack
from infra.deployment import index_steps, key_stack, needs, plan, taken_away, versions
from infra.deployment.bucket import bucket_of
from infra.deployment.lock import Lock, locked
from infra.deployment.stack import Stack
from infra.deployment.template_nodes import compose, of, pairs
from infra.deployment.versions import Version
from infra.local import repairs
from infra.stage_settings import declared
from tests.deploy.importing import stand_in
from tests.deploy.made_functions import make_function

STAGE = "demo"
QUEUE = "TicksQueue"
GONE = "TicksQueue (AWS::SQS::Queue)"

pytestmark = pytest.mark.filterwarnings("ignore:.*not supported by moto's CloudFormation")


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """The stack of this checkout, as it stands."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)  # an operator's shell has none of the tests' settings
    repairs.install()
    stand_in(functools.partial(monkeypatch.setattr, raising=False))
    wiring.forget()  # of another stage's, and another account's
    with mock_aws():
        create_stack(STAGE, tell=lambda line: None)
        yield Stack(boto3.client("cloudformation"), bucket_of(boto3), f"gateway-{STAGE}")
    wiring.forget()


def older(text: str, *names: str, without: Sequence[str] = (QUEUE,)) -> str:
    """The template without some resources, and without some indexes of the records."""
    document = compose(text)
    found = of(document, "Resources")
    found.value = [(key, value) for key, value in found.value if key.value not in without]
    properties = of(of(found, "RecordsTable"), "Properties")
    indexes = of(properties, "GlobalSecondaryIndexes")
    indexes.value = [each for each in indexes.value if of(each, "IndexName").value not in names]
    return str(yaml.serialize(document))


def test_what_an_older_template_takes_away_is_named(stack: Stack) -> None:
    text, dynamodb = TEMPLATE.read_text(), boto3.client("dynamodb")
    assert taken_away.taken_away(stack, dynamodb, text, STAGE) == []
    index = index_steps.wanted(text, STAGE)[f"gateway-{STAGE}-records"][0].name
    said = taken_away.taken_away(stack, dynamodb, older(text, index), STAGE)
    assert said == [GONE, f"index {index} of gateway-{STAGE}-records"]


def use(monkeypatch: pytest.MonkeyPatch, file: Path, text: str) -> None:
    file.write_text(text)
    for module in (deploy, plan, taken_away):
        monkeypatch.setattr(module, "TEMPLATE", file)


def stands(stack: Stack) -> tuple[bool, set[str], set[str]]:
    """Whether the queue is there, the indexes of the records, and the resources of the stack."""
    queues = boto3.client("sqs").list_queues(QueueNamePrefix=f"gateway-{STAGE}-ticks").get("QueueUrls", [])
    table = index_steps.table_of(boto3.client("dynamodb"), f"gateway-{STAGE}-records")
    assert table is not None
    return any(url.endswith("-ticks") for url in queues), {index.name for index in table.indexes}, set(stack.holds())


def test_a_deploy_takes_away_behind_the_functions(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Safe to repeat, each part and both; the table leaves its stack, and stays. What comes anew comes first."""
    boto3.client("dynamodb").put_item(TableName=f"gateway-{STAGE}-ledger", Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    queue, indexes, held = stands(stack)
    gone, new = sorted(indexes)[:2], sorted(indexes)[2]
    dynamodb, newer = boto3.client("dynamodb"), TEMPLATE.read_text()
    dynamodb.update_table(TableName=f"gateway-{STAGE}-records", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": new}}])
    use(monkeypatch, tmp_path / "template.yaml", older(newer, *gone, without=(QUEUE, "LedgerTable")))
    said = list(plan.plan(boto3, stack.bucket, STAGE))
    named = ", ".join(f"index {index} of gateway-{STAGE}-records" for index in gone)
    assert f"  behind the functions, takes away {GONE}, {named}" in said
    assert "  behind the functions, LedgerTable (AWS::DynamoDB::Table) leaves it, and stays with all that is in it" in said
    assert any(line.startswith("  in 3 updates:") for line in said)
    for _ in range(2):
        create_stack(STAGE, keep=True, tell=lambda line: None)
        assert (queue, stands(stack)) == (True, (True, indexes, held))
    assert len(end_stack(STAGE)) == 4
    assert stands(stack) == (False, indexes - set(gone), held - {QUEUE, "LedgerTable"})
    assert stack.template() == (tmp_path / "template.yaml").read_text() and end_stack(STAGE) == []
    assert len(dynamodb.scan(TableName=f"gateway-{STAGE}-ledger")["Items"]) == 1
    use(monkeypatch, tmp_path / "newer.yaml", newer)
    create_stack(STAGE, keep=True, tell=lambda line: None)
    assert end_stack(STAGE) == [] and stands(stack) == (True, indexes, held)
    assert len(dynamodb.scan(TableName=f"gateway-{STAGE}-ledger")["Items"]) == 1, "brought in again"


def test_one_new_index_may_take_hours_too(stack: Stack) -> None:
    """The usual case, of a table with rows."""

    def hours() -> list[str]:
        return [line.partition(":")[0] for line in plan.plan(boto3, stack.bucket, STAGE) if "may take hours" in line]

    assert hours() == []
    missing = [{"Delete": {"IndexName": min(stands(stack)[1])}}]
    boto3.client("dynamodb").update_table(TableName=f"gateway-{STAGE}-records", GlobalSecondaryIndexUpdates=missing)
    assert hours() == ["  in 1 update"]


@pytest.mark.parametrize("part", ["KeySchema", "Projection"])
def test_an_index_that_is_another_under_its_name_is_refused(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """DynamoDB changes none: it would go before the functions, which query it."""
    text = TEMPLATE.read_text()
    first = index_steps.wanted(text, STAGE)[f"gateway-{STAGE}-records"][0]
    other = {
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in first.keys[:1]],
        "Projection": {"ProjectionType": "KEYS_ONLY" if "ALL" in first.projection else "ALL"},
    }
    document = compose(text)
    indexes = of(of(of(of(document, "Resources"), "RecordsTable"), "Properties"), "GlobalSecondaryIndexes")
    of(indexes.value[0], part).value = compose(json.dumps(other[part])).value
    use(monkeypatch, tmp_path / "template.yaml", str(yaml.serialize(document)))
    before = stands(stack)
    for act in (lambda: plan.plan(boto3, stack.bucket, STAGE), lambda: create_stack(STAGE, keep=True, tell=lambda line: None)):
        with pytest.raises(CanNot, match=rf"the index {first.name} of gateway-{STAGE}-records stands with other keys"):
            act()
    assert (stands(stack), stack.template()) == (before, text)


def test_a_lock_lost_between_two_updates_ends_them(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Filling an index takes hours: whoever took the lock meanwhile may have deployed what the next update takes away."""
    held = Lock(stack.bucket, STAGE)
    held.take()
    newer, (gone, *new) = TEMPLATE.read_text(), sorted(stands(stack)[1])[:3]
    for name in new:
        missing = [{"Delete": {"IndexName": name}}]
        boto3.client("dynamodb").update_table(TableName=f"gateway-{STAGE}-records", GlobalSecondaryIndexUpdates=missing)
    use(monkeypatch, tmp_path / "template.yaml", older(newer, gone))
    lose(held, after=1, patch=monkeypatch)
    with pytest.raises(CanNot, match="was taken over by another"):
        create_stack(STAGE, keep=True, tell=lambda line: None, demand=held.demand)
    before = stack.template()
    with pytest.raises(CanNot, match="was taken over by another"):
        end_stack(STAGE, tell=lambda line: None, demand=held.demand)
    assert stack.template() == before and stands(stack)[0]


def lose(held: Lock, after: int, patch: pytest.MonkeyPatch) -> None:
    """Another takes the lock over once as many updates of stacks were sent."""
    left, update = [after], Stack.update

    def updating(self: Stack, text: str, given: Any) -> None:
        update(self, text, given)
        left[0] -= 1
        if not left[0]:
            content = json.dumps({"who": "another", "token": "else", "count": 1}).encode()
            held.bucket.client.put_object(**held.bucket.whose, Key=held.key, Body=content)
            held.renew()

    patch.setattr(Stack, "update", updating)


def test_a_table_that_would_be_deleted_is_kept(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but its policy keeps a table that leaves its stack, and somebody may have changed that by hand."""
    text = TEMPLATE.read_text()
    careless = text.replace("DeletionPolicy: RetainExceptOnCreate\n", "DeletionPolicy: Delete\n")
    stack.update(careless, {})
    use(monkeypatch, tmp_path / "template.yaml", older(text, without=["LedgerTable"]))
    before = stands(stack)
    with pytest.raises(CanNot, match=r"would delete LedgerTable, .* Nothing was changed"):
        create_stack(STAGE, keep=True, tell=lambda line: None)
    assert (stands(stack), stack.template()) == (before, careless)


@pytest.mark.parametrize("command", ["deploy", "prepare"])
def test_what_goes_is_noted_before_with_the_versions_that_may_need_it(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """No function stands, so that `prepare` takes away, too: of what ran last as well, which the next deploy's rollback finds."""
    text = TEMPLATE.read_text()
    index = index_steps.wanted(text, STAGE)[f"gateway-{STAGE}-records"][0].name
    fewer = older(text, index)
    package, templates = tmp_path / "a.zip", (fewer, text) if command == "prepare" else (fewer, text, fewer)
    for number, template in enumerate(templates):
        package.write_text(str(number))
        versions.keep(stack.bucket, STAGE, package, Version("", "", {}, needs=needs.of_template(template, STAGE)))
    use(monkeypatch, tmp_path / "template.yaml", fewer)
    before = stands(stack)
    with monkeypatch.context() as cut:
        cut.setattr(Stack, "update", lambda *_: (_ for _ in ()).throw(CanNot("cut")))
        if command == "prepare":
            assert main(["--stage", STAGE, "prepare"]) == 1
        else:
            with pytest.raises(CanNot, match="cut"):
                end_stack(STAGE)
    assert stands(stack) == before
    lacking = [list(each.lacks) for each in versions.fetch(stack.bucket, STAGE).known]
    assert lacking == [[], [GONE, f"index {index} of gateway-{STAGE}-records"], []][: len(templates)]


def test_prepare_alone_refuses_it_while_functions_stand(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "template.yaml"
    file.write_text(older(TEMPLATE.read_text()))
    assert QUEUE not in dict(pairs(of(compose(file.read_text()), "Resources")))
    make_function(f"gateway-{STAGE}-tick", "1")
    monkeypatch.setattr(taken_away, "TEMPLATE", file)
    before = stack.holds()
    assert main(["--stage", STAGE, "prepare"]) == 1
    told = capsys.readouterr()
    said = told.err
    assert told.out == f"{stack.bucket.where}\n"
    assert GONE in said and "which functions that stand may need" in said and "Nothing was changed" in said
    backup = tmp_path / "seed.json"
    backup.write_text("{}")
    settings = {"Variables": dict(declared(STAGE))}
    boto3.client("lambda").update_function_configuration(FunctionName=f"gateway-{STAGE}-tick", Environment=settings)
    assert main(["--stage", STAGE, "seed-restore", str(backup)]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == (f"{stack.bucket.where}\n", said), "it replaces prepare"
    assert stack.holds() == before
    monkeypatch.setattr(plan, "TEMPLATE", file)
    assert f"  behind the functions, takes away {GONE}" in list(plan.plan(boto3, stack.bucket, STAGE)), (
        "a deploy may, and says so first"
    )
    boto3.client("lambda").delete_function(FunctionName=f"gateway-{STAGE}-tick")
    taken_away.demand_nothing_taken(boto3, stack.bucket, STAGE)  # nothing runs


@pytest.mark.parametrize(
    ("changed", "lost"),
    [
        (
            ("            Action: kms:ScheduleKeyDeletion", "            Action: kms:CancelKeyDeletion"),
            "kms:ScheduleKeyDeletion of",
        ),
        (
            ("            Action: [kms:Decrypt, kms:GenerateDataKey]", "            Action: [kms:Decrypt]"),
            "kms:GenerateDataKey of Th",
        ),
        (("  TablesKeyAlias:", "  AnotherAlias:"), "TablesKeyAlias (AWS::KMS::Alias)"),
    ],
)
def test_prepare_alone_refuses_keys_that_lose_something(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, changed: tuple[str, str], lost: str
) -> None:
    """What is new in them it takes, as functions come later."""
    text, formation = key_stack.KEYS.read_text(), boto3.client("cloudformation")
    assert changed[0] in text
    file = tmp_path / "keys.yaml"
    file.write_text(text.replace(*changed))
    monkeypatch.setattr(key_stack, "KEYS", file)
    (planned,) = [line for line in plan.plan(boto3, stack.bucket, STAGE) if "before the functions" in line]
    assert lost in planned
    make_function(f"gateway-{STAGE}-tick", "1")
    assert main(["--stage", STAGE, "prepare"]) == 1
    said = capsys.readouterr().err
    assert f"infra/keys.yaml of this checkout takes away {lost}" in said and "Nothing was changed" in said
    assert Stack(formation, stack.bucket, f"gateway-{STAGE}-keys").template() == text
    file.write_text(text.replace("Action: kms:ScheduleKeyDeletion", "Action: [kms:ScheduleKeyDeletion, kms:CancelKeyDeletion]"))
    taken_away.demand_nothing_taken(boto3, stack.bucket, STAGE)


def test_rights_that_keys_narrow_or_deny_are_seen(stack: Stack) -> None:
    """Whatever a statement is called, and however it is written."""
    text = key_stack.KEYS.read_text()
    keys = Stack(boto3.client("cloudformation"), stack.bucket, f"gateway-{STAGE}-keys")
    encrypts = "Action:\n              - kms:Encrypt\n              - kms:GenerateDataKey\n"
    for old, new, lost in (
        ("purpose: deposit-seed", "purpose: none", ["kms:Decrypt of OperatorOpensSeed as it was"]),
        ("${Stage}-deliver_slow", "${Stage}-other", ["kms:Decrypt of DeliverOpens as it was"]),
        (encrypts, "NotAction: kms:Put*\n", ["kms:Encrypt of OperatorEncrypts", "kms:GenerateDataKey of OperatorEncrypts"]),
        ("- Sid: OperatorOpensSeed\n            Effect: Allow", "- Effect: Deny",
         ["kms:Decrypt of OperatorOpensSeed", "kms:Decrypt, by the denial of a statement without Sid,"]),
        ("- Sid: OperatorEncrypts", "- Sid: Encrypting", []),
        (encrypts, "Action: ['kms:Encrypt', \"kms:GenerateDataKey\", kms:Sign]\n", []),
    ):  # fmt: skip
        assert text.count(old) == 1, old
        assert key_stack.taken_away(keys, text.replace(old, new)) == [
            f"{each} in {'WebhooksKey' if 'Deliver' in each else 'DataKey'}" for each in lost
        ]


def test_prepare_alone_refuses_a_checkout_that_does_not_read_what_is_stored(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    versions.begin(stack.bucket, STAGE, ["Invoice 7"])
    assert main(["--stage", STAGE, "prepare"]) == 1
    assert "does not read what Invoice 7 has written" in capsys.readouterr().err


def test_prepare_waits_for_a_deploy(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """Both would update the same stacks."""
    before = stack.template()
    with locked(stack.bucket, STAGE, print):
        assert main(["--stage", STAGE, "prepare"]) == 1
    assert "deploy" in capsys.readouterr().err and stack.template() == before
    assert main(["--stage", STAGE, "prepare"]) == 0
    assert boto3.client("s3").list_objects_v2(Bucket=stack.bucket.name, Prefix="locks/").get("Contents", []) == []
