"""Puts a record into a state, or a form, that only a newer version knows, and takes it back; what tests of such records share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import boto3

from chalicelib.store.schema import where_is
from chalicelib.wiring import services
from infra.local.gateway import Request
from tests.support.world import NETWORK, OUT, SWEEPERS, World

RESTING = "resting"
"""The state of a newer version."""
DAY_MS = 86_400_000


@dataclass
class Left:
    """A record that was put into the state of a newer version, and its item as it was then."""

    record: Any
    field: str
    before: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = where_is(type(self.record))
        self._client = boto3.client("dynamodb", region_name="eu-central-1")
        self._table = services().store.models.table(where.table)
        self._key = {"pk": {"S": where.pk(self.record)}, "sk": {"S": where.sk(self.record)}}
        self.put(RESTING)
        self.before = self.item()

    def put(self, state: str) -> None:
        """As the newer version would save it."""
        self._client.update_item(
            TableName=self._table,
            Key=self._key,
            UpdateExpression="SET #s = :s ADD version :one",
            ExpressionAttributeNames={"#s": self.field},
            ExpressionAttributeValues={":s": {"S": state}, ":one": {"N": "1"}},
        )

    def form(self, number: int) -> None:
        """As a release saves it that demands more of its readers."""
        self._client.update_item(
            TableName=self._table,
            Key=self._key,
            UpdateExpression="SET s = :form",
            ExpressionAttributeValues={":form": {"N": str(number)}},
        )
        self.before = self.item()

    def unform(self) -> None:
        """As that release is at work again, or saves it in the form that was there before."""
        self._client.update_item(TableName=self._table, Key=self._key, UpdateExpression="REMOVE s")

    def item(self) -> dict[str, Any]:
        return dict(self._client.get_item(TableName=self._table, Key=self._key)["Item"])

    def works(self) -> list[str]:
        """The kinds of its open work."""
        return sorted(work.kind for work in services().store.every_work() if self.record.id in work.id.split("|"))


def shown(world: World, path: str) -> Any:
    """What is answered, whose status is in no document of this version."""
    reply = world.stack._gateway.handle(Request("GET", f"/api{path}", [("X-Api-Key", world.key)], b"", "127.0.0.1"))
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def run(world: World, rounds: int = 2) -> None:
    for _ in range(rounds):
        world.later()
        world.stack.drain(only=SWEEPERS, failures="count", hurry=True, rounds=4)


def invoice(world: World, token: str) -> Any:
    made = world.request("POST", "/v1/invoices", {"currency": "eth", "amount": "2", "network": NETWORK}, token)
    assert made.status == 201, made.body
    return made.json


def withdrawal(world: World, token: str, amount: str) -> str:
    made = world.request("POST", "/v1/withdraws", {"network": NETWORK, "coin": "eth", "address": OUT, "amount": amount}, token)
    assert made.status == 201, made.body
    return str(made.json["id"])


def only(kind: type[Any], keep: Callable[[Any], bool] = lambda _: True) -> Any:
    (found,) = filter(keep, services().store.every(kind))
    return found


def sent(world: World) -> int:
    return services().reader(services().catalogue("test").networks[NETWORK]).balance(OUT)
