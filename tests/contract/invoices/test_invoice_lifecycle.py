"""What a chain does to invoices beside the plain way: trust before credit, lateness judged anew, and sums that stay exact."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import watched_key
from chalicelib.domain.chain import Block, Cursor, Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.money import parse_units
from chalicelib.usecases.deposits.deposits import Deposits, Scanned
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services
from tests.support.shop import ETHER, Shop, open_shop
from tests.support.stack import Stack

SETTINGS = "/v1/invoices/configureSettings"


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def put(shop: Shop, path: str, body: Any) -> None:
    answer = shop.stack.call("PUT", path, shop.key, json=body)
    assert answer.status == 201, answer.body


def summary(shop: Shop) -> tuple[int, str, str, int, int]:
    found = shop.get("/v1/invoices/summary")
    names = ("totalInvoices", "totalAmount", "totalReceived", "completedInvoices", "pendingInvoices")
    return tuple(found[name] for name in names)  # type: ignore[return-value]


def trusting(shop: Shop, usd: str = "3000") -> dict[str, Any]:
    """An invoice over 1 ETH (3,000 USD in the sandbox) where that much is trusted."""
    put(shop, SETTINGS, {"settings": {"autoConfirmThreshold": usd}})
    return shop.invoice()


def test_payments_are_shown_with_their_confirmations(shop: Shop) -> None:
    invoice = shop.invoice()
    assert invoice["transactions"] == []
    first = shop.pay(invoice["address"], "0.25")
    shop.turn()
    worth = {"currency": "USD", "source": "fixed"}
    shown = {"hash": first["txid"], "amount": "0.25", "fiatValue": {"amount": "750.00", **worth}}
    assert shop.shown(invoice)["transactions"] == [shown | {"confirmations": 1}]
    second = shop.pay(invoice["address"], "0.75")
    shop.mine(2)
    shop.turn()
    wanted = [
        {"hash": second["txid"], "amount": "0.75", "confirmations": 3, "fiatValue": {"amount": "2250.00", **worth}},
        shown | {"confirmations": 4},
    ]
    (listed,) = shop.get("/v1/invoices/getAll")["data"]
    assert shop.shown(invoice)["transactions"] == listed["transactions"] == wanted
    shop.mine(20)
    shop.turn()
    assert [payment["confirmations"] for payment in shop.shown(invoice)["transactions"]] == [12, 12]  # enough
    shop.reorg(25)
    shop.turn()
    assert shop.shown(invoice)["transactions"] == []


def test_a_list_of_paid_invoices_costs_one_read_more(shop: Shop) -> None:
    for _ in range(3):
        shop.pay(shop.invoice()["address"], "1")
    shop.turn()
    made: list[str] = []
    client = services().store.models.connection.client
    client.meta.events.register("before-call", lambda model, **_: made.append(model.name), unique_id="count")
    shown = shop.get("/v1/invoices/getAll")["data"]
    client.meta.events.unregister("before-call", unique_id="count")
    assert [len(invoice["transactions"]) for invoice in shown] == [1, 1, 1]
    assert made == ["UpdateItem", "Query", "BatchGetItem"]


def test_a_small_invoice_is_completed_before_it_is_credited(shop: Shop) -> None:
    invoice = trusting(shop)
    shop.pay(invoice["address"], "1")
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shown["unconfirmed"]) == ("completed", "0", "1")
    assert shop.balance() == {"available": "0", "frozen": "0", "pending": "1"}
    assert summary(shop) == (1, "3000.00", "0.00", 1, 0)
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available()) == ("completed", "1", "1")
    assert summary(shop) == (1, "3000.00", "3000.00", 1, 0)
    assert shop.told(invoice["id"]) == {"invoice.created": 1, "invoice.completed": 1}


def test_a_part_of_a_small_invoice_completes_nothing(shop: Shop) -> None:
    invoice = trusting(shop)
    shop.pay(invoice["address"], "0.999999999999999999")
    shop.turn()
    assert shop.status(invoice) == "partial"
    shop.pay(invoice["address"], "0.000000000000000001")
    shop.turn()
    assert shop.status(invoice) == "completed"


@pytest.mark.parametrize("usd", ["2999.99", "0"])
def test_a_cent_over_the_threshold_waits(shop: Shop, usd: str) -> None:
    invoice = trusting(shop, usd)
    put(shop, SETTINGS, {"settings": {"autoConfirmThreshold": "1000000"}})
    shop.pay(invoice["address"], "1")
    shop.turn()
    assert shop.status(invoice) == "confirming"


def test_trust_that_the_chain_takes_back(shop: Shop) -> None:
    invoice = trusting(shop)
    shop.pay(invoice["address"], "1")
    shop.turn()
    shop.reorg(1)
    shop.turn()
    assert (shop.status(invoice), summary(shop)) == ("pending", (1, "3000.00", "0.00", 0, 1))
    assert shop.balance() == {"available": "0", "frozen": "0", "pending": "0"}
    assert shop.told(invoice["id"]) == {"invoice.created": 1, "invoice.completed": 1, "invoice.reverted": 1}
    shop.pay(invoice["address"], "1")
    shop.turn()
    assert shop.status(invoice) == "completed"


def test_trust_that_is_taken_back_after_the_time(shop: Shop) -> None:
    put(shop, SETTINGS, {"settings": {"autoConfirmThreshold": "3000"}})
    invoice = shop.invoice(expiresIn=60)
    shop.pay(invoice["address"], "1")
    shop.turn()
    shop.wait(61)
    shop.turn()
    assert shop.status(invoice) == "completed"
    shop.reorg(1)
    shop.turn()
    assert shop.status(invoice) == "expired"
    assert shop.told(invoice["id"]) == {"invoice.created": 1, "invoice.completed": 1, "invoice.reverted": 1}


def test_a_payment_that_is_mined_again_after_the_time_is_late(shop: Shop) -> None:
    invoice = shop.invoice(expiresIn=60)
    shop.pay(invoice["address"], "1")
    shop.turn()
    assert shop.status(invoice) == "confirming"
    shop.wait(61)
    shop.reorg(1, remine=True)
    shop.turn()
    assert shop.status(invoice) == "expired"
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available()) == ("expired", "1", "1")
    assert shop.told(invoice["id"])["invoice.late_payment"] == 1


def moved(shop: Shop, invoice: dict[str, Any], time: int) -> Deposit:
    """A scan that meets the invoice's only payment in another block, before anybody said that the old one is gone: the one that
    stored it had died before it passed the block."""
    store, network = services().store, shop.realm_network()
    (deposit,) = (d for d in store.every(Deposit) if d.invoice_id == invoice["id"])
    cursor = store.get(Cursor, network=network.id)
    assert cursor is not None
    recent = {number: hash_ for number, hash_ in cursor.recent.items() if number != str(deposit.block_number)}
    store.commit([Save(replace(cursor, recent=recent, version=cursor.version + 1))])
    form = services().rules.storage_form(network.slug, deposit.address)
    sender = services().rules.storage_form(network.slug, deposit.sender)
    (watched,) = store.get_many([watched_key(network, form)])
    block = Block(deposit.block_number + 1, f"0x{time:064x}", deposit.block_hash, time)
    transfer = Transfer(deposit.txid, deposit.position, None, sender, form, deposit.amount)
    deposits = Deposits(store, services().rules, services().clock)
    deposits.detect(network, shop.coin("eth"), Scanned(block, cursor.epoch), transfer, watched)
    found = store.get(Deposit, id=deposit.id)
    assert found is not None
    return found


def test_a_payment_found_in_another_block_is_judged_by_that_ones_time(shop: Shop) -> None:
    invoice = shop.invoice(expiresIn=60)
    shop.pay(invoice["address"], "1")
    shop.turn()
    (record,) = services().store.every(Invoice)
    assert moved(shop, invoice, record.expires_at + 1).late
    assert shop.status(invoice) == "expired"
    assert not moved(shop, invoice, record.expires_at).late
    shop.stack.drain(only=("relay",))
    assert shop.status(invoice) == "confirming"
    assert shop.told(invoice["id"]) == {
        "invoice.created": 1, "invoice.confirming": 2, "invoice.expired": 1, "invoice.late_payment": 1,
    }  # fmt: skip


def test_exactly_the_rest_in_three_parts(shop: Shop) -> None:
    invoice = shop.invoice("1", "usdt")
    for part, status in (("0.333333", "partial"), ("0.333333", "partial"), ("0.333334", "confirming")):
        shop.pay(invoice["address"], part, "usdt")
        shop.turn()
        assert shop.status(invoice) == status
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], "overpaid" in shown) == ("completed", "1", False)
    assert summary(shop) == (1, "1.00", "1.00", 1, 0)


def test_a_payment_that_falls_out_leaves_what_the_others_give(shop: Shop) -> None:
    invoice = shop.invoice()
    shop.pay(invoice["address"], "0.5")
    shop.mine(1)
    shop.pay(invoice["address"], "0.5")
    shop.turn()
    assert shop.status(invoice) == "confirming"
    shop.reorg(1)
    shop.turn()
    assert shop.status(invoice) == "partial"
    shop.mine()
    shop.turn()
    assert (shop.status(invoice), shop.shown(invoice)["received"]) == ("partial", "0.5")


def test_cancelled_by_hand_and_paid_all_the_same(shop: Shop) -> None:
    invoice = shop.invoice()
    put(shop, "/v1/invoices", {"invoiceId": invoice["id"], "status": "cancelled"})
    assert summary(shop) == (1, "3000.00", "0.00", 0, 0)
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], len(shown["transactions"])) == ("cancelled", "1", 1)
    assert summary(shop) == (1, "3000.00", "3000.00", 0, 0)


def test_two_statuses_by_hand_at_once(shop: Shop) -> None:
    invoice = shop.invoice()
    words = [f"word-{n}" for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda word: put(shop, "/v1/invoices", {"invoiceId": invoice["id"], "status": word}), words))
    (record,) = services().store.every(Invoice)
    assert (record.status in words, record.version) == (True, 9)
    assert summary(shop) == (1, "3000.00", "0.00", 0, 0)


def test_payments_late_and_too_much_are_received(shop: Shop) -> None:
    over, late = shop.invoice(), shop.invoice(expiresIn=60)
    shop.pay(over["address"], "1.5")
    shop.wait(61)
    shop.pay(late["address"], "0.1")
    shop.mine()
    shop.turn()
    assert summary(shop) == (2, "6000.00", "4800.00", 1, 0)
    shop.reorg(30)
    shop.turn()
    assert summary(shop) == (2, "6000.00", "0.00", 0, 1)


def test_the_summary_is_exact_while_everything_happens_at_once(shop: Shop) -> None:
    """10 invoices are paid and credited, 5 of them set by hand, and 40 more are made, all at the same time."""
    paid = [shop.invoice("0.01") for _ in range(10)]
    for invoice in paid:
        shop.pay(invoice["address"], "0.01")
    shop.mine()

    def happen(n: int) -> None:
        if n == 0:
            shop.stack.drain(only=("poll_ethereum",), hurry=True)
        elif n <= 40:
            shop.invoice("2" if n % 2 else "0.000001", "eth" if n % 3 else "usdt")
        else:
            put(shop, "/v1/invoices", {"invoiceId": paid[n - 41]["id"], "status": "on-hold"})

    with ThreadPoolExecutor(46) as pool:
        list(pool.map(happen, range(46)))
    asked = [2 * 10**6 if n % 2 else 1 for n in range(1, 41)]
    found = shop.get("/v1/invoices/summary")
    records = list(services().store.every(Invoice))
    assert len(records) == found["totalInvoices"] == 50
    assert found["totalReceived"] == "300.00"
    cents = sum(record.usd.cents(record.amount) for record in records if record.usd is not None)
    assert found["totalAmount"] == f"{cents // 100}.{cents % 100:02d}"
    assert (found["completedInvoices"], found["pendingInvoices"]) == (5, 40)
    eth = sum(units for n, units in enumerate(asked, 1) if n % 3) * 10**12 + ETHER // 10
    (of_eth,) = (entry for entry in found["currencies"] if entry["currency"] == "eth")
    assert parse_units(of_eth["totalAmount"], 18) == eth
    assert of_eth["totalReceived"] == "0.1"
