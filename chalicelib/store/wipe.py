"""Removes the demo's data. Works on the stage demo and on tables of its name alone; the function's rights reach no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.domain.demo import OPERATOR, SHOP
from chalicelib.domain.ids import tenant_id
from chalicelib.settings import APP, Settings
from chalicelib.usecases.ports.failures import Unavailable

WIPED = ("sandbox", "records", "ledger", "payouts", "work", "events", "webhooks", "chain")
"""`tenants` and `custody` stay: keys that were published go on working, and the seed belongs to the addresses. Of `tenants` only
the numbers of webhooks go, with the webhooks: nobody could register any more where they are counted and not there. The keys of
imported wallets stay in `custody`: a second import finds them there (`usecases/wallets/service_wallets.py`)."""
_KEPT = ("net#", "coin#", "xpub#", "pool#", "demo#")
"""Of `chain`: the catalogue (put back by the reset), hot wallets, xpubs, index counters (no index twice), the announcement."""
_BATCH = 25


def wipe(client: Any, settings: Settings) -> int:
    """Delete all data of visitors and of the seeding; returns the number of items. Safe to repeat. Raises ValueError off the
    demo."""
    if settings.stage != "demo":
        raise ValueError(f"the stage {settings.stage} is never wiped")
    removed = 0
    for name in WIPED:
        table = settings.table(name)
        if not table.startswith(f"{APP}-demo-"):
            raise ValueError(f"{table} is no table of the demo")
        if name == "webhooks":
            removed += _forget_numbers(client, settings, table)
        keys = []
        for item in _items(client, table):
            if name == "chain" and _stays(item):
                continue
            keys.append({"pk": item["pk"], "sk": item["sk"]})
            if len(keys) == _BATCH:
                removed += _delete(client, table, keys)
                keys = []
        removed += _delete(client, table, keys)
    return removed


def _forget_numbers(client: Any, settings: Settings, webhooks: str) -> int:
    """Before the webhooks go: a wipe that dies in between finds whose they are again."""
    owners = {f"tally#{tenant_id(merchant, 'test')}" for merchant in (SHOP, OPERATOR)}
    for item in _items(client, webhooks):
        kind, _, owner = item["pk"]["S"].partition("#")
        if kind == "hook":
            owners.add(f"tally#{owner}")
    for pk in sorted(owners):
        try:
            client.delete_item(TableName=settings.table("tenants"), Key={"pk": {"S": pk}, "sk": {"S": "webhooks"}})
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the tenants did not answer") from error
    return len(owners)


def _stays(item: dict[str, Any]) -> bool:
    """The service's own wallets stay watched; what was given to merchants does not."""
    key: str = item["pk"]["S"]
    if key.startswith("wallet#"):
        return bool(item["sk"]["S"].partition("#")[0] == "hot")
    return key.startswith(_KEPT) or (key.startswith("watch#") and bool(item.get("role") == {"S": "hot"}))


def _items(client: Any, table: str) -> Iterator[dict[str, Any]]:
    request: dict[str, Any] = {
        "TableName": table,
        "ConsistentRead": True,
        "ProjectionExpression": "pk, sk, #role",
        "ExpressionAttributeNames": {"#role": "role"},
    }
    while True:
        try:
            answer = client.scan(**request)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"{table} did not answer") from error
        yield from answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _delete(client: Any, table: str, keys: list[dict[str, Any]]) -> int:
    left = {table: [{"DeleteRequest": {"Key": key}} for key in keys]} if keys else {}
    while left:
        try:
            left = client.batch_write_item(RequestItems=left).get("UnprocessedItems") or {}
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"{table} did not answer") from error
    return len(keys)
