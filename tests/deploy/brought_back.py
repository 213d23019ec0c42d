"""A merchant's money after both stacks of a stage were deleted by hand and made again: prints its balances as JSON.

Run in a process of its own by test_bringing_back.py: the stage's stacks are gone meanwhile. Resource import is a stand-in of ours
(importing.py).
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import boto3


def main() -> None:
    warnings.simplefilter("ignore")
    from chalicelib.settings import Settings
    from infra.deploy import create_stack, stack_name
    from infra.deployment.key_stack import name_of
    from infra.local.aws import start_aws
    from tests.deploy.importing import stand_in
    from tests.support.shop import Shop
    from tests.support.stack import _forget_services, first_stack

    stand_in()
    shop = Shop(first_stack(start_aws(Settings.from_environment())))
    shop.turn()
    shop.credit("2", "eth")
    found: dict[str, Any] = {"before": shop.get("/v1/balances")}
    formation, dynamodb = boto3.client("cloudformation"), boto3.client("dynamodb")
    for name in (stack_name("local"), name_of("local")):
        formation.delete_stack(StackName=name)
    found["stacks"] = [each["StackName"] for each in formation.describe_stacks()["Stacks"]]
    found["tables"] = dynamodb.list_tables()["TableNames"]
    told: list[str] = []
    create_stack("local", tell=told.append)
    _forget_services()
    found |= {"told": told, "after": shop.get("/v1/balances")}
    shop.turn()
    shop.credit("1", "eth")
    print(json.dumps({**found, "goes on": shop.get("/v1/balances")}))


if __name__ == "__main__":
    main()
