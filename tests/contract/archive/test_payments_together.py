"""Payments of one merchant go to the archive together, and are read apart; what one of them meets keeps no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.store.archive import Archived
from chalicelib.store.schema import key_of
from chalicelib.usecases.archive import archiving
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.changes import MOST_ITEMS, Stub
from chalicelib.usecases.ports.failures import Unavailable, Unstorable
from chalicelib.wiring import services
from tests.support.archive import Attic, open_attic, run_archive

MANY = 14


@pytest.fixture
def attic(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attic]:
    with open_attic(stack, monkeypatch) as found:
        yield found


def old(attic: Attic, count: int = MANY) -> list[dict[str, Any]]:
    made = [attic.invoice("5", "usdt", externalId=f"order-{n}") for n in range(count)]
    for invoice in made:
        attic.pay(invoice["address"], "5", "usdt")
    attic.mine()
    attic.turn()
    attic.out_of_reach()
    attic.a_year_later()
    return made


def test_as_many_as_a_transaction_takes_are_one_object(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    made = old(attic)
    paths = [path for invoice in made[:3] for path in attic.paths(invoice)]
    before = attic.answers(paths)
    sent: list[Any] = []
    commit = services().store.commit
    with monkeypatch.context() as patch:
        patch.setattr(services().store, "commit", lambda changes: [sent.append(changes), commit(changes)])
        assert attic.archive() == 2
    whole = [changes for changes in sent if any(isinstance(change, Stub) for change in changes)]
    assert len(whole) == 2
    assert max(map(len, whole)) in range(MOST_ITEMS - 15, MOST_ITEMS + 1)
    assert len(attic.kept()) == MANY
    attic.in_a_new_process()
    assert attic.answers(paths) == before, "each has its own deposit, and no other's"


def test_what_happens_to_one_keeps_no_other(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A late payment between the reading and the transaction. The others of its group go one by one."""
    made = old(attic, 3)
    keep, acted = Archived.keep, list[bool]()

    def kept(self: Archived, records: Any) -> str:
        name = keep(self, records)
        if not acted:
            acted.append(True)
            attic.pay(made[1]["address"], "2", "usdt")
            attic.mine()
            attic.turn()
        return name

    with monkeypatch.context() as patch:
        patch.setattr(Archived, "keep", kept)
        run_archive()
    store, tenant = services().store, attic.tenant()
    whole = store.whole([(Invoice, {"tenant": tenant, "id": invoice["id"]}) for invoice in made])
    assert whole == [False, True, False]
    assert attic.available("usdt") == "17"
    assert attic.told(made[1]["id"])["invoice.late_payment"] == 1


def test_two_rounds_at_once_close_each_posting_once(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    made = old(attic, 4)
    keep, acted = Archived.keep, list[bool]()
    cutoff, tenant = services().clock.now_ms() - 86_400_000, attic.tenant()

    def kept(self: Archived, records: Any) -> str:
        name = keep(self, records)
        if not acted:
            acted.append(True)
            for invoice in made[:2]:
                assert services().archiving.archive(tenant, invoice["id"], cutoff) == "archived"  # type: ignore[arg-type]
        return name

    with monkeypatch.context() as patch:
        patch.setattr(Archived, "keep", kept)
        run_archive()
    assert len(attic.kept()) == 4
    assert len({d.archives for d in services().store.every(Deposit) if d.id in attic.kept()}) == 4, "each by itself in the end"


def test_an_object_that_is_not_written_keeps_its_payments_alone(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    old(attic)
    keep, failed = Archived.keep, list[bool]()

    def kept(self: Archived, records: Any) -> str:
        if not failed:
            failed.append(True)
            raise Unavailable("the archive did not take an object")
        return keep(self, records)

    with monkeypatch.context() as patch, pytest.raises(Failures):
        patch.setattr(Archived, "keep", kept)
        run_archive()
    assert 0 < len(attic.kept()) < MANY
    run_archive()
    assert len(attic.kept()) == MANY


def test_small_transactions_make_more_groups(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "MOST_ITEMS", 18)
    old(attic, 6)
    assert attic.archive() == 3
    assert len(attic.kept()) == 6


def test_one_in_a_state_of_a_newer_version_keeps_no_other(attic: Attic) -> None:
    made = old(attic, 3)
    one = next(d for d in services().store.every(Deposit) if d.invoice_id == made[1]["id"])
    pk, sk = key_of(Deposit, {"id": one.id})
    client, table = boto3.client("dynamodb"), services().settings.table("records")
    whole = client.get_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": sk}})["Item"]
    client.put_item(TableName=table, Item={**whole, "status": {"S": "reviewed"}})
    attic.in_a_new_process()
    run_archive()
    assert len(attic.kept()) == 2
    client.put_item(TableName=table, Item=whole)
    attic.in_a_new_process()


def test_one_that_can_not_be_stored_keeps_no_other(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    made = old(attic, 3)
    commit = services().store.commit

    def refusing(changes: Any) -> None:
        if any(isinstance(c, Stub) and isinstance(c.record, Invoice) and c.record.id == made[1]["id"] for c in changes):
            raise Unstorable("it is too large")
        commit(changes)

    monkeypatch.setattr(services().store, "commit", refusing)
    with pytest.raises(Failures):
        run_archive()
    assert len(attic.kept()) == 2
