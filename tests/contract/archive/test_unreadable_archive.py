"""Somebody pays archived invoices whose object can not be read: only these payments wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.wiring import services
from tests.support.archive import Attic, open_attic


@pytest.fixture
def attic(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attic]:
    with open_attic(stack, monkeypatch) as found:
        yield found


def test_the_network_goes_on_and_a_rescan_records_them_once_it_can_be_read(attic: Attic, caplog: pytest.LogCaptureFixture) -> None:
    archived = [attic.completed("5", "usdt") for _ in range(2)]
    attic.a_year_later()
    assert attic.archive() == 1, "they go together"
    attic.in_a_new_process()
    s3, bucket = boto3.client("s3"), services().settings.archive_bucket("123456789012", services().region)
    kept = {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in attic.objects()}
    for key in kept:
        s3.delete_object(Bucket=bucket, Key=key)
    other = attic.invoice("2", "eth")
    for invoice in archived:
        attic.pay(invoice["address"], "1", "usdt")
    attic.pay(other["address"], "2", "eth")
    attic.mine(1)
    attic.stack.drain(only=("poll_ethereum", "relay"), failures="count", hurry=True)
    attic.mine(20)
    attic.stack.drain(only=("poll_ethereum", "relay"), failures="count", hurry=True)
    cursor = services().store.get(Cursor, network=attic.realm_network().id)
    assert cursor is not None and cursor.number == services().reader(attic.realm_network()).tip()
    assert attic.status(other) == "completed" and "can not be stored and is left to a rescan" in caplog.text

    for key, content in kept.items():
        s3.put_object(Bucket=bucket, Key=key, Body=content)
    attic.in_a_new_process()
    attic.turn()
    attic.mine(20)
    attic.turn()
    paid = [d for d in services().store.every(Deposit) if d.status == "confirmed" and d.invoice_id in {i["id"] for i in archived}]
    assert len(paid) == 2 * len(archived), "each once"
