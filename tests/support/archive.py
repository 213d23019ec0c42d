"""A shop whose old payments go to the archive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest

from chalicelib import wiring
from chalicelib.domain.archive.payments import SAID_MS, ArchiveRound
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.usecases.ports.changes import Delete
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from chalicelib.workers import archive as worker
from tests.support.shop import Shop
from tests.support.stack import Stack

AFTER_DAYS = 400
_OF_REQUEST = re.compile(rb'"(request_id|timestamp)":"[^"]*"')


class Attic(Shop):
    def completed(self, amount: str = "1", coin: str = "usdt", **more: Any) -> dict[str, Any]:
        """A completed invoice."""
        invoice = self.invoice(amount, coin, **more)
        self.pay(invoice["address"], amount, coin)
        self.mine()
        self.turn()
        assert self.status(invoice) == "completed"
        return invoice

    def a_year_later(self) -> None:
        """At the beginning of a day: what lists cover is said anew as a day ends, and nothing leaves for a while."""
        self.wait((AFTER_DAYS + 3) * 86_400 - services().clock.now_ms() // 1000 % 86_400)
        self.mine(1)  # a chain that stands still expires nothing
        self.turn()

    def out_of_reach(self) -> None:
        """No reorganisation that is followed goes back as far as what was paid until now."""
        self.mine(self.realm_network().reorg_depth + 2)
        self.turn()

    def block_of(self, deposit_id: str) -> tuple[int, str]:
        """Number and hash of a deposit's block."""
        found = services().store.get(Deposit, id=deposit_id)
        assert found is not None
        return found.block

    def in_a_new_process(self) -> None:
        """Nothing is remembered but the time."""
        shift = services().clock.shift_ms
        wiring.forget()
        services().clock.shift_ms = shift

    def archive(self) -> int:
        """Whole rounds of the archive; how many objects they have written."""
        before = len(self.objects())
        run_archive()
        assert audit(services().store) == []
        return len(self.objects()) - before

    def tenant(self) -> str:
        (found,) = {each.tenant for each in services().store.every(Invoice)}
        return str(found)

    def kept(self) -> set[str]:
        """The ids of archived deposits."""
        return {d.id for d in services().store.every(Deposit) if not services().store.whole([(Deposit, {"id": d.id})])[0]}

    def objects(self) -> list[str]:
        bucket = services().settings.archive_bucket("123456789012", services().region)
        found = boto3.client("s3").list_objects_v2(Bucket=bucket)
        return [each["Key"] for each in found.get("Contents", [])]

    def paths(self, invoice: dict[str, Any]) -> list[str]:
        """Everything that names one invoice, which has one payment."""
        (deposit,) = self.get(f"/v1/transactions/address/{invoice['address']}")["data"]
        return [
            f"/v1/invoices?id={invoice['id']}",
            f"/v1/invoices/{invoice['id']}",
            f"/v1/invoices/getByExternalId?externalId={invoice['externalId']}",
            f"/v1/transactions/{deposit['id']}",
            f"/v1/transactions/{deposit['hash']}",
            f"/v1/transactions/address/{invoice['address']}",
            f"/v1/addresses/{invoice['address']}/transactions",
            f"/v1/addresses/{invoice['address']}",
            f"/v1/addresses/{self.get('/v1/addresses/' + invoice['address'])['id']}",
            f"/v1/invoices/{invoice['id']}/refunds",
        ]

    def answers(self, paths: list[str]) -> dict[str, bytes]:
        """What the merchant is answered, to the byte, but for what tells one request from the next."""
        found = {path: self.stack.call("GET", path, self.key) for path in paths}
        assert {path: answer.status for path, answer in found.items() if answer.status != 200} == {}
        return {path: _OF_REQUEST.sub(b"", answer.body) for path, answer in found.items()}

    def bytes_of(self, *names: str) -> dict[tuple[str, str], int]:
        """The bytes of every item that has one of the names in it, and that no TTL removes."""
        found = {}
        for table in ("records", "ledger", "chain", "payouts", "work"):
            for page in boto3.client("dynamodb").get_paginator("scan").paginate(TableName=services().settings.table(table)):
                for item in page["Items"]:
                    text = str(item).lower()
                    if "ttl" not in item and any(name.lower() in text for name in names):
                        found[item["pk"]["S"], item["sk"]["S"]] = _size(item)
        return found


def run_archive() -> None:
    """Begin a round, and end it: what lists cover was said long enough ago."""
    services().store.commit([Delete(ArchiveRound, {"realm": "test"})])
    worker.run()
    services().clock.shift_ms += SAID_MS
    worker.run()


def _size(item: dict[str, Any]) -> int:
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html"""
    size = 0
    for name, value in item.items():
        ((kind, content),) = value.items()
        size += len(name) + (len(content.encode()) if kind == "S" else 1 if kind in ("BOOL", "NULL") else len(content) // 2 + 1)
    return size


@contextmanager
def open_attic(stack: Stack, patch: pytest.MonkeyPatch) -> Iterator[Attic]:
    patch.setenv("ARCHIVE_AFTER_DAYS", str(AFTER_DAYS))
    wiring.forget()
    attic = Attic(stack)
    attic.turn()
    yield attic
    assert audit(services().store) == []
