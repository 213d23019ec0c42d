"""A payment of last year lies in the archive, and answers as it did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.archive.closings import ClosingPosting
from chalicelib.domain.archive.payments import DAY_MS, SAID_MS
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.refunds.refunds import InvoiceRefunds
from chalicelib.domain.times import iso
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.changes import Delete, Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from chalicelib.workers import archive as worker
from tests.support.archive import AFTER_DAYS, Attic, open_attic
from tests.support.collected_deposits import moves, settings, settle
from tests.support.refunds import ask_refund, refund
from tests.support.shop import PAYEE

SHARED = ("col#", "colopen#", "move#", "own#", "sighting#", "jrn#s", "nonce", "cursor#", "archived#")
"""Records that are no one payment's: the operator's collection with its entries, and how far a network is."""


@pytest.fixture
def attic(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attic]:
    with open_attic(stack, monkeypatch) as found:
        yield found


def deposit_of(attic: Attic, invoice: dict[str, Any]) -> dict[str, Any]:
    (found,) = attic.get(f"/v1/transactions/address/{invoice['address']}")["data"]
    return dict(found)


def archived(attic: Attic, **more: Any) -> dict[str, Any]:
    """An invoice that was completed, and is archived."""
    invoice = attic.completed("500", "usdt", **more)
    attic.a_year_later()
    assert attic.archive() == 1
    return invoice


def is_stub(kind: type, **key: str) -> bool:
    return services().store.get(kind, **key) is not None and not services().store.whole([(kind, key)])[0]


def test_what_is_asked_for_by_name_is_as_it_was(attic: Attic) -> None:
    invoice = attic.completed("500", "usdt", externalId="order-12345678")
    paths = attic.paths(invoice)
    before = attic.answers(paths)
    attic.a_year_later()
    assert attic.archive() == 1
    assert attic.answers(paths) == before
    assert attic.archive() == 0, "it is there once"


def test_less_than_a_kilobyte_stays(attic: Attic) -> None:
    settings(attic, "usdt", collectThreshold="0")
    invoice = attic.completed("500", "usdt", externalId="order-12345678")
    settle(attic, 3)
    deposit, address = deposit_of(attic, invoice), attic.get(f"/v1/addresses/{invoice['address']}")["id"]
    _, block = attic.block_of(deposit["id"])
    attic.out_of_reach()
    attic.a_year_later()
    attic.archive()
    found = attic.bytes_of(invoice["id"], deposit["id"], address, invoice["address"], block)
    # What is left of the coin that paid for the collection lies at the address, and is the operator's.
    left = {place: n for place, n in found.items() if not place[0].startswith(SHARED) and not place[1].endswith(":eth")}
    assert sum(left.values()) < 1024


def test_what_a_collection_leaves_beside_it_is_as_the_page_says(attic: Attic) -> None:
    """Its record, its moves with what each left in journal, blocks and nonces, and the rest of its fee: none of it is archived."""
    settings(attic, "usdt", collectThreshold="0")
    invoice = attic.completed("500", "usdt", externalId="order-12345678")
    settle(attic, 3)
    made = [move for kind in ("topup", "sweep") for move in moves(kind)]
    assert [move.state for move in made] == ["settled", "settled"]
    ids = [invoice["address"], *(move.id for move in made), *(move.owner for move in made), *(str(move.txid) for move in made)]
    deposit, address = deposit_of(attic, invoice), attic.get(f"/v1/addresses/{invoice['address']}")["id"]
    attic.a_year_later()
    attic.archive()
    found = attic.bytes_of(invoice["id"], deposit["id"], address, *ids)
    stays = {place: n for place, n in found.items() if not place[0].startswith("moved#")}  # work that is open until it is deep
    assert sum(stays.values()) == pytest.approx(12_300, rel=0.05)


def test_lists_have_what_is_in_the_tables(attic: Attic) -> None:
    old = attic.completed("500", "usdt")
    summary = attic.get("/v1/invoices/summary")
    attic.a_year_later()
    assert attic.archive() == 1
    attic.in_a_new_process()
    assert attic.get("/v1/invoices/summary") == summary, "sums have all, and cover every day"
    young = attic.completed("0.7", "usdt")
    for order in ("asc", "desc"):
        listed = attic.get("/v1/invoices/getAll", order=order)
        assert [each["id"] for each in listed["data"]] == [young["id"]]
        assert listed["meta"]["pagination"]["total"] == 1
        assert listed["meta"]["pagination"]["covers_from"] == iso(services().clock.now_ms() - AFTER_DAYS * DAY_MS)[:10]
    assert [each["invoiceId"] for each in attic.get("/v1/transactions")["data"]] == [young["id"]]
    assert attic.get("/v1/invoices/summary")["completedInvoices"] == 2
    assert attic.shown(old)["status"] == "completed"


def test_the_payments_of_an_invoice_and_of_a_hash_are_whole(attic: Attic) -> None:
    """The portal shows an invoice's payments by the first, and finds a pasted hash by the second."""
    invoice = attic.completed("500", "usdt")
    before = deposit_of(attic, invoice)
    asked = ({"invoiceId": invoice["id"]}, {"hash": before["hash"]}, {"hash": before["hash"].upper().replace("X", "x")})
    assert [attic.get("/v1/transactions", **each)["data"] for each in asked] == [[before]] * 3
    attic.a_year_later()
    assert attic.archive() == 1
    attic.in_a_new_process()
    for each in asked:
        found = attic.get("/v1/transactions", **each)
        assert found["data"] == [before]
        assert (found["meta"]["pagination"]["total"], "covers_from" in found["meta"]["pagination"]) == (1, False)
    attic.pay(invoice["address"], "20", "usdt")
    attic.mine()
    attic.turn()
    found = attic.get("/v1/transactions", invoiceId=invoice["id"], sort="amount", order="asc", limit="1")
    assert ([each["amount"] for each in found["data"]], found["meta"]["pagination"]["total"]) == (["20"], 2)
    assert attic.get("/v1/transactions", invoiceId=invoice["id"], status="pending")["data"] == []
    for foreign in ("inv_01m89w98jpzmqcz5kwa1fer63t", "inv_", "-", "inv_\U0001f4a9"):
        assert attic.get("/v1/transactions", invoiceId=foreign)["data"] == []


def test_the_day_is_said_before_anything_leaves_the_lists(attic: Attic) -> None:
    invoice = attic.completed("500", "usdt")
    attic.a_year_later()
    for path in ("/v1/invoices/getAll", "/v1/transactions", "/v1/addresses"):
        assert "covers_from" not in attic.get(path)["meta"]["pagination"]
    worker.run()
    attic.in_a_new_process()
    for path in ("/v1/invoices/getAll", "/v1/transactions", "/v1/addresses"):
        found = attic.get(path)
        assert found["meta"]["pagination"]["covers_from"] > invoice["createdAt"][:10]
        assert len(found["data"]) == 1, "nothing has left yet"
    worker.run()
    assert attic.kept() == set()
    attic.wait(SAID_MS // 1000)
    worker.run()
    assert len(attic.kept()) == 1


def test_a_rescan_of_an_archived_payment_credits_nothing(attic: Attic) -> None:
    invoice = archived(attic)
    before = attic.available("usdt")
    block = deposit_of(attic, invoice)["blockNumber"]
    body = {"fromBlock": block, "toBlock": block}
    assert attic.stack.call("POST", "/v1/networks/ethereum/rescan", attic.stack.keys["admin_test"], json=body).status == 201
    attic.turn()
    assert attic.available("usdt") == before
    assert is_stub(Deposit, id=deposit_of(attic, invoice)["id"])


def test_a_late_payment_puts_the_invoice_back(attic: Attic) -> None:
    invoice = archived(attic)
    attic.pay(invoice["address"], "20", "usdt")
    attic.mine()
    attic.turn()
    assert attic.available("usdt") == "520"
    key = {"tenant": attic.tenant(), "id": invoice["id"]}
    assert services().store.whole([(Invoice, key)]) == [True]
    assert len(attic.get(f"/v1/transactions/address/{invoice['address']}")["data"]) == 2
    assert attic.told(invoice["id"])["invoice.late_payment"] == 1
    assert audit(services().store) == []
    attic.a_year_later()
    assert attic.archive() == 1
    assert is_stub(Invoice, **key)
    assert len(attic.get(f"/v1/transactions/address/{invoice['address']}")["data"]) == 2
    found = services().store.get(Invoice, **key)
    assert found is not None
    assert len(found.archives or ()) == 2


def test_an_archived_invoice_is_refunded(attic: Attic) -> None:
    """By what the archive says of it. Nothing that is archived is written by that, and nothing that is written is archived."""
    invoice = archived(attic)
    store, stubs = services().store, attic.kept()
    key = {"tenant": attic.tenant(), "id": invoice["id"]}
    unclaimed = refund(attic, invoice, amount="120")
    made = refund(attic, invoice, address=PAYEE)
    answer = attic.stack.call("DELETE", f"/v1/refunds/{unclaimed['id']}", attic.key)
    assert answer.status == 200, answer.body
    again = refund(attic, invoice, address=PAYEE)
    assert again["amount"] == "120", "what was not claimed is left, and no more"
    assert ask_refund(attic, invoice, address=PAYEE).status == 400, "it is given back once"
    for _ in range(3):
        attic.mine()
        attic.turn()
    assert attic.balance("usdt") == {"available": "0", "frozen": "0", "pending": "0"}
    attic.a_year_later()
    assert attic.archive() == 0
    assert attic.kept() == stubs
    assert is_stub(Invoice, **key)
    found = store.get(InvoiceRefunds, tenant=attic.tenant(), invoice_id=invoice["id"])
    assert found is not None
    assert found.ids == (unclaimed["id"], made["id"], again["id"])
    listed = attic.get(f"/v1/invoices/{invoice['id']}/refunds")
    assert [each["status"] for each in listed] == ["completed", "completed", "cancelled"]
    paid = [each for each in store.every(Withdrawal) if each.tenant == attic.tenant()]
    assert sorted((each.amount, each.status) for each in paid) == [(120_000_000, "confirmed"), (380_000_000, "confirmed")]
    assert attic.shown(invoice)["status"] == "completed"
    assert audit(store) == []


def test_what_is_open_stays(attic: Attic) -> None:
    """Held, refunded but unclaimed, or paid a moment ago: of no use to anybody in the archive."""
    settled = attic.completed("0.1", "usdt")
    claimable = attic.completed("20", "usdt")
    attic.wait((AFTER_DAYS + 2) * 86_400)
    refund(attic, claimable)
    attic.completed("0.3", "usdt")
    attic.archive()
    left = [each["id"] for each in attic.get("/v1/invoices/getAll")["data"]]
    assert claimable["id"] in left
    assert settled["id"] not in left
    assert len(left) == 2


def test_closing_postings_are_proved_by_the_archive(attic: Attic) -> None:
    archived(attic)
    store = services().store
    closings = list(store.every(ClosingPosting))
    assert {(c.source, c.destination, c.units, c.count) for c in closings} == {
        ("outside", "wallet:test:ethereum", 500_000_000, 1),
        ("outside", f"merchant:{attic.tenant()}:available", 500_000_000, 1),
    }
    assert [
        entry for entry in store.every(JournalEntry) if entry.kind == "deposit_credited" and entry.ref["deposit"] in attic.kept()
    ] == []
    store.commit([Save(closings[0].grown(replace(closings[0], units=1, count=0)))])
    (wrong,) = audit(store)
    assert "the archive says" in wrong
    store.commit([Delete(ClosingPosting, closings[0].key)])
    store.commit([Save(replace(closings[0], version=1))])


def test_each_address_of_an_invoice_has_its_own(attic: Attic) -> None:
    """The payer chose another coin, and paid by the first choice."""
    offers = [{"coin": "usdt", "network": "ethereum"}, {"coin": "btc", "network": "bitcoin"}]
    made = attic.post("/v1/invoices", {"fiatAmount": "300", "fiatCurrency": "USD", "accept": offers}).json
    addresses = []
    for offer in offers:
        chosen = attic.stack.call("POST", f"/v1/pay/{made['id']}/choice", json=offer)
        assert chosen.status == 200, chosen.body
        addresses.append(chosen.json["address"])
    attic.pay(addresses[0], "300", "usdt")
    attic.mine()
    attic.turn()

    def listed() -> list[int]:
        return [len(attic.get(f"/v1/transactions/address/{each}")["data"]) for each in addresses]

    assert listed() == [1, 0]
    attic.a_year_later()
    assert attic.archive() == 1
    assert listed() == [1, 0]
