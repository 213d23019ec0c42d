"""Many invoices of one merchant, put into moto's tables directly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from moto.dynamodb.models.dynamo_type import DynamoType, Item

from chalicelib.domain.ids import TenantId, first_id
from chalicelib.domain.invoices.invoices import Invoice
from infra.local.repairs.dynamodb import LOCK, rows_of
from tests.support.edge import Edge

START = 1_767_225_600_000


def fill(edge: Edge, count: int, *, completed: bool = True) -> None:
    """`count` invoices, a second apart, every tenth `completed`: put into moto's rows as they would be after a commit each."""
    store = edge.services.store
    made = Invoice(
        id="inv_", tenant=TenantId(f"{edge.shop}:test"), network="test:ethereum", asset="test:ethereum:eth", address="0x0",
        address_id="addr_0", amount=10**18, created_at=START, expires_at=START,
    )  # type: ignore[arg-type]  # fmt: skip
    shapes = [_attributes(store, replace(made, status=status)) for status in ("pending", "completed")]
    table = _table(store)
    with LOCK:
        for n in range(count):
            at = START + n * 1000
            sk = DynamoType({"S": f"{first_id('inv', at)}{n:016d}"})
            plain = shapes[completed and n % 10 == 0]
            item: Any = Item.__new__(Item)
            item.hash_key, item.range_key = plain["pk"], sk
            item.attrs = dict(plain, sk=sk, id=sk, created_at=DynamoType({"N": str(at)}))
            rows_of(table).store(plain["pk"], sk, item)


def _attributes(store: Any, record: Invoice) -> dict[str, DynamoType]:
    return {name: DynamoType(value) for name, value in store.models.item(record).to_dynamodb_dict().items()}


def _table(store: Any) -> Any:
    from moto.dynamodb.models import dynamodb_backends

    (account,) = dynamodb_backends
    region = store.models.connection.region
    return dynamodb_backends[account][region].tables[store._settings.table("records")]
