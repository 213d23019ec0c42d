"""The archive's function dies, or is failed, at each of its calls; others are at work on the payment meanwhile; S3 lies.

Whatever happens, the row is there or a stub with a proved object, never neither; the books are whole; the next run ends it. The
note of the highest block, the object, its proof and the payment's transaction fail in all four ways; with `SWEEP=full` every call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import botocore.client
import botocore.exceptions
import pytest

from chalicelib.domain.chain import BlockDeposits, DepositBlock
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import TenantId
from chalicelib.store.archive import Archived
from chalicelib.usecases.archive import archiving
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.archive import NotKept
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.archive import Attic, open_attic, run_archive
from tests.support.cuts import WAYS, Cutter, Died, install

WRITES = ("PutItem", "UpdateItem", "TransactWriteItems")
Old = tuple[Attic, dict[str, Any], dict[str, bytes]]


@pytest.fixture
def old(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Old]:
    """A payment of last year, and what is answered about it."""
    with open_attic(stack, monkeypatch) as attic:
        invoice = attic.completed("500", "usdt", externalId="order-7")
        answers = attic.answers(attic.paths(invoice))
        attic.out_of_reach()
        attic.a_year_later()
        yield attic, invoice, answers


def block_rows(attic: Attic) -> list[Any]:
    """What is left of the lists of blocks that have archived deposits."""
    store, kept = services().store, attic.kept()
    blocks = {deposit.block[1] for deposit in store.every(Deposit) if deposit.id in kept}
    return [row for kind in (BlockDeposits, DepositBlock) for row in store.every(kind) if row.hash in blocks]  # type: ignore[attr-defined]


def proved(attic: Attic, answers: dict[str, bytes]) -> None:
    assert attic.answers(list(answers)) == answers
    assert audit(services().store) == []


def test_a_run_that_is_cut_anywhere_is_ended_by_the_next(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    attic, _, answers = old
    cut_anywhere(attic, answers, monkeypatch)


@pytest.fixture
def alone(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Old]:
    """The same for a payment to an address without an invoice."""
    with open_attic(stack, monkeypatch) as attic:
        made = attic.post("/v1/addresses", {"network": attic.network, "coin": "usdt"}).json
        attic.pay(made["address"], "5", "usdt")
        attic.mine()
        attic.turn()
        (deposit,) = attic.get(f"/v1/transactions/address/{made['address']}")["data"]
        attic.out_of_reach()
        attic.a_year_later()
        yield attic, deposit, attic.answers([f"/v1/transactions/{deposit['id']}", f"/v1/transactions/{deposit['hash']}"])


def test_a_payment_without_an_invoice_is_archived_once_wherever_it_is_cut(alone: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    attic, _, answers = alone
    cut_anywhere(attic, answers, monkeypatch)


def test_two_workers_close_its_posting_once(alone: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    attic, deposit, answers = alone
    (found,) = (each for each in services().store.every(Deposit) if each.id == deposit["id"])
    assert found.tenant is not None
    tenant, cutoff = found.tenant, services().clock.now_ms() - 86_400_000
    in_between(monkeypatch, lambda: services().archiving.archive_deposit(tenant, deposit["id"], cutoff))
    assert services().archiving.archive_deposit(tenant, deposit["id"], cutoff) == "waits", "the other one was first"
    assert len(attic.objects()) == 1, "both wrote the same"
    proved(attic, answers)


def test_a_run_over_several_is_ended_by_the_next_wherever_it_is_cut(stack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups: dying between their transactions leaves the second one whole, with an object that nothing names."""
    monkeypatch.setattr(archiving, "MOST_ITEMS", 18)
    with open_attic(stack, monkeypatch) as attic:
        invoices = [attic.completed("5", "usdt", externalId=f"order-{n}") for n in range(3)]
        attic.out_of_reach()
        answers = attic.answers([f"/v1/invoices/{invoice['id']}" for invoice in invoices])
        attic.a_year_later()
        cut_anywhere(attic, answers, monkeypatch, payments=3, between=slice(5, 7))
        assert len({d.archives for d in services().store.every(Deposit) if d.id in attic.kept()}) == 2


def cut_anywhere(
    attic: Attic, answers: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, payments: int = 1, between: slice = slice(4)
) -> None:
    """`between` names some of: each object and its proof; for each group the note of the highest block, and the transaction."""
    cutter = Cutter()
    install(cutter, monkeypatch)
    begun, shift = attic.stack.snapshot(), services().clock.shift_ms

    cutter.set(0, "error", "before")
    with cutter.arm():
        run_archive()
    objects = [n for n, name in enumerate(cutter.trace, 1) if name in ("PutObject", "GetObject")]
    written = [n for n, name in enumerate(cutter.trace, 1) if n > objects[-1] and name in WRITES]
    places = [*objects, *written][between]
    if os.environ.get("SWEEP") == "full":
        places = list(range(1, len(cutter.trace) + 1))
    for place in places:
        for how, when in WAYS:
            attic.stack.restore(begun)
            services().clock.shift_ms = shift
            cutter.set(place, how, when)
            try:
                with cutter.arm():
                    run_archive()
            except (Died, Unavailable, Failures):
                attic.in_a_new_process()
            assert cutter.fired
            proved(attic, answers)
            run_archive()
            assert len(attic.kept()) == payments, (place, how, when)
            assert block_rows(attic) == []
            proved(attic, answers)


def in_between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """`act` happens once, after a payment was read and before its transaction."""
    keep, acted = Archived.keep, []

    def kept(self: Archived, records: Any) -> str:
        name = keep(self, records)
        if not acted:
            acted.append(True)
            act()
        return name

    monkeypatch.setattr(Archived, "keep", kept)


def test_a_payment_that_comes_in_between_is_counted(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    attic, invoice, _ = old

    def pay() -> None:
        attic.pay(invoice["address"], "20", "usdt")
        attic.mine()
        attic.turn()

    in_between(monkeypatch, pay)
    run_archive()
    assert attic.kept() == set(), "it is not a year old any more"
    assert attic.available("usdt") == "520"
    assert attic.told(invoice["id"])["invoice.late_payment"] == 1
    assert audit(services().store) == []


def test_two_workers_close_a_posting_once(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    attic, invoice, answers = old
    tenant, cutoff = TenantId(attic.tenant()), services().clock.now_ms() - 86_400_000
    in_between(monkeypatch, lambda: services().archiving.archive(tenant, invoice["id"], cutoff))
    assert services().archiving.archive(tenant, invoice["id"], cutoff) == "waits", "the other one was first"
    assert len(attic.objects()) == 1, "both wrote the same"
    proved(attic, answers)


def test_a_rescan_in_between_credits_nothing_and_lists_nothing(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has read the block's list before that leaves, or looks for it behind that."""
    attic, _, answers = old
    (block,) = {d.block[0] for d in services().store.every(Deposit) if d.tenant is not None}

    def rescan() -> None:
        body = {"fromBlock": block, "toBlock": block}
        assert attic.stack.call("POST", "/v1/networks/ethereum/rescan", attic.stack.keys["admin_test"], json=body).status == 201
        attic.turn()

    in_between(monkeypatch, rescan)
    run_archive()
    assert len(attic.kept()) == 1
    rescan()
    assert attic.available("usdt") == "500"
    assert block_rows(attic) == []
    proved(attic, answers)


@pytest.mark.parametrize("lie", [b"", b"{}"])
def test_what_is_read_back_otherwise_archives_nothing(old: Old, monkeypatch: pytest.MonkeyPatch, lie: bytes) -> None:
    attic, _, answers = old
    with monkeypatch.context() as patch:
        patch.setattr(Archived, "_read", lambda self, name: lie)
        with pytest.raises(Failures) as failed:
            run_archive()
    assert failed.value.subgroup(NotKept) is not None
    assert attic.kept() == set()
    proved(attic, answers)


def test_an_altered_or_lost_object_is_an_alarm_and_no_answer(
    old: Old, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attic, invoice, answers = old
    run_archive()
    (key,) = attic.objects()
    place = {"Bucket": services().settings.archive_bucket("123456789012", services().region), "Key": key}
    whole = boto3.client("s3").get_object(**place)["Body"].read()
    boto3.client("s3").put_object(**place, Body=whole.replace(b"500000000", b"900000000"))
    attic.in_a_new_process()
    assert attic.stack.call("GET", f"/v1/invoices/{invoice['id']}", attic.key).status == 500
    assert "of the archive was altered" in caplog.text
    boto3.client("s3").delete_object(**place)
    attic.in_a_new_process()
    assert attic.stack.call("GET", f"/v1/invoices/{invoice['id']}", attic.key).status == 500
    assert "of the archive is gone" in caplog.text
    boto3.client("s3").put_object(**place, Body=whole)
    attic.in_a_new_process()
    proved(attic, answers)


def test_while_s3_does_not_answer_nobody_decides_about_an_archived_payment(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rescan stays open, and credits what it meets neither again nor otherwise."""
    attic, invoice, _ = old
    run_archive()
    api_call = botocore.client.BaseClient._make_api_call

    def without_s3(self: Any, operation: str, arguments: Any) -> Any:
        if operation == "GetObject":
            raise botocore.exceptions.EndpointConnectionError(endpoint_url="https://aws.invalid")
        return api_call(self, operation, arguments)

    with monkeypatch.context() as patch:
        patch.setattr(botocore.client.BaseClient, "_make_api_call", without_s3)
        attic.in_a_new_process()
        attic.pay(invoice["address"], "20", "usdt")
        attic.mine()
        attic.turn(failures="count")
        assert attic.available("usdt") == "500", "a late payment waits, since its invoice can not be read"
    attic.turn()
    assert attic.available("usdt") == "520"
    assert audit(services().store) == []
