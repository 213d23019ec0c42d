"""Makes the stacks of a stage, and cuts that at AWS calls; each cut is made good by the same again. Prints, as JSON, the cuts,
what they left otherwise than an uncut run, what stands in the end, and what was asked of AWS.

In the account of a scenario: `new` is empty; in `failed` the main stack could not be made, and is ROLLBACK_COMPLETE; of `deleted`
both stacks were deleted by hand; in `moved` the main stack holds the keys, as it did before they had a stack. Run in a process of
its own by test_stack_cuts.py. Import is a stand-in of ours (importing.py).

    python -m tests.deploy.cut_stacks <scenario> <each n-th call> <remainder by n> <after the first of each of these, too>
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
import botocore.client

from infra.commands.common import CanNot
from infra.deploy import TEMPLATE, create_stack, stack_name
from infra.deployment import key_stack
from infra.deployment.key_stack import KEYS
from tests.deploy.cut_deploys import Forks, _empty_account
from tests.support.cuts import Died

STAGE = "prod"
STACKS = (stack_name(STAGE), key_stack.name_of(STAGE))


def older_template() -> str:
    """One template with tables and keys, whose aliases go with it."""
    keys = KEYS.read_text().partition("Resources:\n")[2]
    alias = "Type: AWS::KMS::Alias\n{}    DeletionPolicy: RetainExceptOnCreate\n    UpdateReplacePolicy: Retain\n"
    for condition in ("", "    Condition: HasLive\n"):
        keys = keys.replace(alias.format(condition), alias.partition("{}")[0] + condition)
    whole = TEMPLATE.read_text().replace("!Ref TablesKeyArn", "!GetAtt TablesKey.Arn")
    parameter = whole[whole.index("  TablesKeyArn:\n") : whole.index("\nConditions:\n")]
    whole = whole.replace(parameter, "").replace("Conditions:\n", "Conditions:\n  HasLive: !Not [!Equals [!Ref Stage, demo]]\n")
    return whole.replace("Resources:\n", f"Resources:\n{keys}\n", 1)


def _fail() -> None:
    """A first try, in which no queue can be made."""
    from moto.sqs.models import Queue

    def refused(*_: Any, **__: Any) -> None:
        raise RuntimeError("the quota is used up")

    make = vars(Queue)["create_from_cloudformation_json"]
    Queue.create_from_cloudformation_json = refused  # type: ignore[method-assign]
    try:
        create_stack(STAGE, tell=lambda line: None)
    except CanNot as error:
        if "ROLLBACK_COMPLETE" not in str(error):
            raise
    Queue.create_from_cloudformation_json = make  # type: ignore[method-assign]


def begin(scenario: str) -> None:
    """Bring the account to where a scenario begins."""
    formation, dynamodb = boto3.client("cloudformation"), boto3.client("dynamodb")
    if scenario == "new":
        return
    if scenario == "failed":
        _fail()
        return
    if scenario == "moved":
        from infra.deployment.bucket import make_bucket
        from infra.deployment.stack import Stack

        main = Stack(formation, make_bucket(boto3), stack_name(STAGE), protected=True)
        main.make(older_template(), {"Stage": STAGE, "AlarmTopic": "", "AccessLogDays": "90"})
    else:
        create_stack(STAGE, tell=lambda line: None)
        for name in STACKS:
            formation.update_termination_protection(StackName=name, EnableTerminationProtection=False)
            formation.delete_stack(StackName=name)
        boto3.client("logs").create_log_group(logGroupName=f"/aws/lambda/{stack_name(STAGE)}")  # by a function that still runs
    dynamodb.put_item(TableName=f"gateway-{STAGE}-ledger", Item={"pk": {"S": "a"}, "sk": {"S": "b"}})


def dump() -> dict[str, Any]:
    """All that stands. Keys are named by what they are for: those of a new stage have other ids each time."""
    formation, kms, dynamodb = (boto3.client(service) for service in ("cloudformation", "kms", "dynamodb"))
    every = [kms.describe_key(KeyId=each["KeyId"])["KeyMetadata"] for each in kms.list_keys()["Keys"]]
    alive = {each["KeyId"]: each["Description"] for each in every if each["KeyState"] == "Enabled"}
    whole = {
        "stacks": {each["StackName"]: _stack(formation, each) for each in formation.describe_stacks()["Stacks"]},
        "keys": sorted(alive.values()),
        "aliases": {
            each["AliasName"]: each["TargetKeyId"] for each in kms.list_aliases()["Aliases"] if "gateway" in each["AliasName"]
        },
        "tables": {name: _table(dynamodb, name) for name in dynamodb.list_tables()["TableNames"]},
    }
    text = json.dumps(whole, sort_keys=True, default=str)
    for id_, purpose in alive.items():
        text = text.replace(id_, purpose)
    dumped: dict[str, Any] = json.loads(text)
    return dumped


def _stack(formation: Any, stack: Any) -> dict[str, Any]:
    pages = formation.get_paginator("list_stack_resources").paginate(StackName=stack["StackName"])
    every = [each for page in pages for each in page["StackResourceSummaries"] if each["LogicalResourceId"]]
    return {
        "state": stack["StackStatus"].partition("_")[2],
        "protected": stack["EnableTerminationProtection"],
        "parameters": sorted(stack["Parameters"], key=str),
        "template": str(formation.get_template(StackName=stack["StackName"])["TemplateBody"]),
        "resources": {each["LogicalResourceId"]: _id(each["PhysicalResourceId"]) for each in every},
    }


def _id(physical: str) -> str:
    """moto gives metric filters and alarms, which it does not make, and queues an address."""
    return physical.rsplit("/", 1)[-1]


def _table(dynamodb: Any, name: str) -> dict[str, Any]:
    found = dynamodb.describe_table(TableName=name)["Table"]
    indexes = sorted(each["IndexName"] for each in found.get("GlobalSecondaryIndexes", []))
    return {"protected": found["DeletionProtectionEnabled"], "indexes": indexes, "rows": dynamodb.scan(TableName=name)["Items"]}


def main(scenario: str, every: str, first: str, operations: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    _empty_account()
    begin(scenario)
    forks = Forks(int(every), int(first), set(filter(None, operations.split(","))))
    client: Any = botocore.client.BaseClient
    api_call = client._make_api_call

    def called(self: Any, operation: str, arguments: Any) -> Any:
        if forks.on:
            forks.asked.add((self.meta.service_model.service_name, operation))
        return forks.around(operation, lambda: api_call(self, operation, arguments))

    client._make_api_call = called
    before = dump()
    with TemporaryDirectory() as folder:
        forks.on = True
        with contextlib.suppress(Died, Exception):
            create_stack(STAGE, tell=lambda line: None)
        if forks.cut is not None:
            _go_on(Path(folder) / str(forks.cut))
        forks.on = False
        whole, left = dump(), {}
        for number, name in forks.cuts.items():
            file = Path(folder) / str(number)
            found = json.loads(file.read_text()) if file.exists() else "its process ended"
            if found != whole:
                left[name] = found if isinstance(found, str) else [part for part in whole if found[part] != whole[part]]
    print(
        json.dumps({"before": before, "stands": whole, "left": left, "cuts": [*forks.cuts.values()], "asked": sorted(forks.asked)})
    )


def _go_on(file: Path) -> None:
    try:
        create_stack(STAGE, tell=lambda line: None)
        file.write_text(json.dumps(dump()))
    except Exception as error:  # noqa: BLE001 - it is told as what the operator would see
        file.write_text(json.dumps(repr(error)))
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
