"""An obligation that is opened by itself may be open already, by a newer version of the service, which added to it."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from chalicelib.domain.work import Work
from chalicelib.store.schema import work_key
from chalicelib.usecases.webhooks.lookouts import lookout_work
from chalicelib.wiring import services
from tests.support.stack import Stack

LOOKOUT = lookout_work("test:mch_1|we_1", 1_800_000_000_000)


def item(stack: Stack, work: Work) -> dict[str, Any]:
    """As DynamoDB has it."""
    pk, sk = work_key(work)
    table = stack.aws.settings.table("work")
    found = boto3.client("dynamodb").get_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": sk}})
    return dict(found["Item"])


@pytest.mark.parametrize("mark", [{"S": "next"}, {"M": {"by": {"S": "next"}}}], ids=["text", "map"])
def test_what_a_newer_version_added_to_it_stays(stack: Stack, mark: dict[str, Any]) -> None:
    services().store.open(LOOKOUT)
    opened = item(stack, LOOKOUT)
    boto3.client("dynamodb").update_item(
        TableName=stack.aws.settings.table("work"),
        Key={name: opened[name] for name in ("pk", "sk")},
        UpdateExpression="SET mark = :mark",
        ExpressionAttributeValues={":mark": mark},
    )
    services().store.open(LOOKOUT)
    assert item(stack, LOOKOUT) == {**opened, "mark": mark}
    assert LOOKOUT in services().store.every_work()


def test_one_that_was_closed_is_open_again(stack: Stack) -> None:
    services().store.open(LOOKOUT)
    services().store.close(LOOKOUT)
    services().store.open(LOOKOUT)
    assert LOOKOUT in services().store.every_work()
