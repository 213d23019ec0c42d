"""A payment is archived between a decision's read and its commit: a stub has the version of its record, and must not be lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.versions import next_version
from chalicelib.usecases.deposits.crediting import DepositCrediting
from chalicelib.usecases.deposits.groups import DepositGroups
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.archive import Attic, open_attic, run_archive


@pytest.fixture
def attic(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attic]:
    with open_attic(stack, monkeypatch) as found:
        yield found


def archive_before(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> list[str]:
    """Archive what is old where `name` of `kind` is called first. Returns the names of the calls so far."""
    real, calls = getattr(kind, name), list[str]()

    def act(*given: Any, **named: Any) -> Any:
        if not calls:
            run_archive()
        calls.append(name)
        return real(*given, **named)

    monkeypatch.setattr(kind, name, act)
    return calls


def paid_address(attic: Attic) -> dict[str, Any]:
    """A payment of last year to an address without an invoice."""
    made = attic.post("/v1/addresses", {"network": attic.network, "coin": "usdt"})
    assert made.status == 201, made.body
    attic.pay(made.json["address"], "5", "usdt")
    attic.mine()
    attic.turn()
    (found,) = attic.get(f"/v1/transactions/address/{made.json['address']}")["data"]
    attic.a_year_later()
    return dict(found)


def test_a_save_of_what_was_read_before_is_refused(attic: Attic) -> None:
    invoice, store = attic.completed("500", "usdt"), services().store
    attic.a_year_later()
    (told,) = attic.get(f"/v1/transactions/address/{invoice['address']}")["data"]
    keys = [(Deposit, {"id": told["id"]}), (Invoice, {"tenant": attic.tenant(), "id": invoice["id"]})]
    before = [store.get(kind, **key) for kind, key in keys]
    assert attic.archive() == 1
    for record, (kind, key) in zip(before, keys, strict=True):
        with pytest.raises(Conflict):
            store.commit([Save(next_version(record))])
        stub = store.get(kind, **key)
        assert stub is not None
        store.commit([Save(next_version(stub))])
        again = store.get(kind, **key)
        assert again is not None
        assert again.archives == stub.archives
        store.commit([Save(next_version(again))])  # it is whole, and names an object
    assert store.whole(keys) == [True, True]
    assert audit(store) == []


def test_a_late_payment_finds_the_archived_one(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    invoice = attic.completed("500", "usdt")
    attic.a_year_later()
    calls = archive_before(monkeypatch, DepositGroups, "_committed")
    attic.pay(invoice["address"], "20", "usdt")
    attic.mine()
    attic.turn()
    assert calls and attic.objects()
    found = services().store.get(Invoice, tenant=attic.tenant(), id=invoice["id"])
    assert found is not None
    assert len(found.archives or ()) == 1
    assert [each["amount"] for each in attic.get(f"/v1/transactions/address/{invoice['address']}")["data"]] == ["20", "500"]
    assert (attic.available("usdt"), audit(services().store)) == ("520", [])


def test_one_that_falls_out_keeps_the_proof_of_its_credit(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody mined for a year."""
    payment = paid_address(attic)
    calls = archive_before(monkeypatch, DepositCrediting, "orphaned")
    attic.reorg(services().reader(attic.realm_network()).tip() - attic.block_of(payment["id"])[0] + 1)
    attic.turn()
    assert calls and attic.objects()
    found = services().store.get(Deposit, id=payment["id"])
    assert found is not None
    assert (found.status, len(found.archives or ())) == ("orphaned", 1)
    assert (attic.available("usdt"), audit(services().store)) == ("0", [])
