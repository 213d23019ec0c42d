"""Removes the demo's data. Works on the stage demo and on tables of its name alone; the function's rights reach no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.settings import APP, Settings
from chalicelib.usecases.ports import Unavailable

WIPED = ("sandbox", "records", "ledger", "payouts", "work", "events", "webhooks", "chain")
"""`tenants` and `custody` stay: keys that were published go on working, and the seed belongs to the addresses."""
_KEPT = ("net#", "coin#", "xpub#", "pool#", "demo#")
"""Of `chain`: the catalogue (put back by the reset), hot wallets, xpubs, index counters (no index twice), the announcement."""
_BATCH = 25


def wipe(client: Any, settings: Settings) -> int:
    """Delete everything that visitors and the seeding made; how many items. Safe to repeat. Raises ValueError off the demo."""
    if settings.stage != "demo":
        raise ValueError(f"the stage {settings.stage} is never wiped")
    removed = 0
    for name in WIPED:
        table = settings.table(name)
        if not table.startswith(f"{APP}-demo-"):
            raise ValueError(f"{table} is no table of the demo")
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


def _stays(item: dict[str, Any]) -> bool:
    """The service's own wallets stay watched; what was given to merchants does not."""
    key: str = item["pk"]["S"]
    if key.startswith("wallet#"):
        return bool(item["sk"]["S"] == "hot")
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
