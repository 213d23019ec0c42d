"""`prepare` alone takes nothing away that functions may need: an older checkout's template lacks what later ones use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
import yaml
from moto import mock_aws

from chalicelib import wiring
from chalicelib.settings import VARIABLES
from infra.cli import main
from infra.deploy import TEMPLATE, create_stack
from infra.deployment import index_steps, plan, taken_away, versions
from infra.deployment.bucket import bucket_of
from infra.deployment.lock import locked
from infra.deployment.stack import Stack
from infra.deployment.template_nodes import compose, of, pairs
from infra.local import repairs
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
    wiring.forget()  # of another stage's, and another account's
    with mock_aws():
        create_stack(STAGE, tell=lambda line: None)
        yield Stack(boto3.client("cloudformation"), bucket_of(boto3), f"gateway-{STAGE}")
    wiring.forget()


def older(text: str, index: str) -> str:
    """The template without a queue, and without an index of the records."""
    document = compose(text)
    found = of(document, "Resources")
    found.value = [(key, value) for key, value in found.value if key.value != QUEUE]
    properties = of(of(found, "RecordsTable"), "Properties")
    indexes = of(properties, "GlobalSecondaryIndexes")
    indexes.value = [each for each in indexes.value if of(each, "IndexName").value != index]
    return str(yaml.serialize(document))


def test_what_an_older_template_takes_away_is_named(stack: Stack) -> None:
    text, dynamodb = TEMPLATE.read_text(), boto3.client("dynamodb")
    assert taken_away.taken_away(stack, dynamodb, text, STAGE) == []
    index = index_steps.wanted(text, STAGE)[f"gateway-{STAGE}-records"][0].name
    said = taken_away.taken_away(stack, dynamodb, older(text, index), STAGE)
    assert said == [GONE, f"index {index} of gateway-{STAGE}-records"]


def test_prepare_alone_refuses_it_while_functions_stand(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "template.yaml"
    file.write_text(older(TEMPLATE.read_text(), ""))
    assert QUEUE not in dict(pairs(of(compose(file.read_text()), "Resources")))
    make_function(f"gateway-{STAGE}-tick", "1")
    monkeypatch.setattr(taken_away, "TEMPLATE", file)
    before = stack.holds()
    assert main(["--stage", STAGE, "prepare"]) == 1
    said = capsys.readouterr().err
    assert GONE in said and "which functions that stand may need" in said and "Nothing was changed" in said
    assert stack.holds() == before
    monkeypatch.setattr(plan, "TEMPLATE", file)
    assert f"  takes away {GONE}" in list(plan.plan(boto3, stack.bucket, STAGE)), "a deploy may, and says so first"
    boto3.client("lambda").delete_function(FunctionName=f"gateway-{STAGE}-tick")
    taken_away.demand_nothing_taken(boto3, stack.bucket, STAGE)  # nothing runs


def test_prepare_alone_refuses_a_checkout_that_does_not_read_what_is_stored(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    versions.note_written(stack.bucket, STAGE, ["Invoice 7"])
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
