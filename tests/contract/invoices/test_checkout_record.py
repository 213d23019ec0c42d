"""What the public record tells a payer: payments with their transactions, refunds, late networks, usual fees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.catalogue.explorers import transaction_url
from chalicelib.domain.chain import Cursor, FeeQuote
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.catalogue.conditions import FRESH_SECONDS, LATE_MS, Conditions
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services
from tests.faults.left_to_newer import Left, only
from tests.support.edge import Calls
from tests.support.memory_store import MemoryStore
from tests.support.refunds import ask_refund, claimed, paid_invoice, refund
from tests.support.shop import PAYEE, Shop, open_shop
from tests.support.stack import Stack

HASH = "5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"
OFFERS = [{"coin": "eth", "network": "ethereum"}, {"coin": "usdt", "network": "tron"}]


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("2", "eth")) as opened:
        yield opened


def status(shop: Shop, invoice: dict[str, Any]) -> Any:
    answer = shop.stack.call("GET", f"/v1/pay/{invoice['id']}/status")
    assert answer.status == 200, answer.body
    return answer.json


def halted(network: str) -> None:
    store = services().store
    cursor = store.get(Cursor, network=network)
    assert cursor is not None
    store.commit([Save(replace(next_version(cursor), halted="a fork that is too deep"))])


def test_payments_are_told_with_their_transactions(shop: Shop) -> None:
    invoice = shop.invoice("1")
    first = shop.pay(invoice["address"], "0.4")
    shop.mine(2)
    shop.turn()
    shop.pay(invoice["address"], "0.3")
    shop.turn()
    newest, oldest = status(shop, invoice)["payments"]
    assert (oldest["txId"], oldest["amount"], oldest["coin"], oldest["network"]) == (first["txid"], "0.4", "eth", "ethereum")
    assert (newest["confirmations"], oldest["confirmations"], oldest["requiredConfirmations"]) == (1, 4, 12)
    assert oldest["seenAt"].endswith("Z") and "explorerUrl" not in oldest, "a simulated transaction is in no explorer"
    assert "sender" not in str(newest)


def test_a_payment_in_a_newer_form_is_told_by_its_invoice(shop: Shop) -> None:
    """The payer's page stands: what the invoice says of its payments is enough."""
    invoice = shop.invoice("1")
    txid = shop.pay(invoice["address"], "0.4")["txid"]
    shop.turn()
    left = Left(only(Deposit, lambda one: one.txid == txid), "status")
    left.put("pending")
    left.form(1)
    (payment,) = status(shop, invoice)["payments"]
    assert (payment["txId"], payment["amount"], "seenAt" in payment) == (txid, "0.4", False)
    assert shop.stack.call("GET", f"/v1/pay/{invoice['id']}").status == 200
    left.unform()


def test_refunds_are_told_without_link_and_address(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    by_link = refund(shop, invoice, amount="0.1", reason="Out of stock", sentBy="E-mail to <j>")
    assert by_link["sentBy"] == "E-mail to <j>"
    refund(shop, invoice, amount="0.2", address=PAYEE)
    shown = status(shop, invoice)
    direct, linked = shown["refunds"]
    assert (direct["by"], direct["amount"], direct["symbol"], "expiresAt" in direct) == ("address", "0.2", "ETH", False)
    assert (linked["by"], linked["status"], linked["expiresAt"]) == ("link", "awaiting_claim", by_link["expiresAt"])
    assert linked["sentBy"] == "E-mail to <j>" and "sentBy" not in direct
    token = by_link["claimUrl"].rpartition("/")[2]
    page = shop.stack.call("GET", f"/v1/pay/{invoice['id']}").body.decode()
    assert "E-mail to &lt;j&gt;" in page
    for secret in (token, PAYEE, "Out of stock", "/claim/"):
        assert secret not in str(shown) and secret not in page, secret
    assert claimed(shop, by_link, PAYEE).status == 200
    for _ in range(2):
        shop.turn()
        shop.mine()
    shop.turn()
    for each in status(shop, invoice)["refunds"]:
        assert each["status"] == "completed" and each["txId"].startswith("0x")


def test_a_way_is_told_of_links_alone(shop: Shop) -> None:
    answer = ask_refund(shop, paid_invoice(shop), mode="same", amount="0.1", address=PAYEE, sentBy="e-mail")
    assert answer.status == 400 and "sentBy" in answer.body.decode()


def test_reads_of_a_refunded_invoice(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    status(shop, invoice)
    calls = Calls()
    calls.attach(services().store.models.connection.client)
    status(shop, invoice)
    assert calls.made == ["Query", "BatchGetItem", "BatchGetItem"]
    refund(shop, invoice, amount="0.1")
    calls.made.clear()
    status(shop, invoice)
    assert calls.made == ["Query", "BatchGetItem", "BatchGetItem", "BatchGetItem"]


def test_a_halted_network_is_told_while_something_is_awaited(shop: Shop) -> None:
    invoice = shop.invoice("1")
    halted("test:ethereum")
    assert status(shop, invoice)["delays"] == [{"network": "ethereum", "delay": "halted"}]
    assert shop.stack.call("DELETE", f"/v1/invoices/{invoice['id']}", shop.key).status == 200
    assert status(shop, invoice)["delays"] == []


def test_what_a_choice_usually_costs_and_takes(shop: Shop) -> None:
    store = services().store
    now = services().clock_of("test").now_ms()
    known = store.get(FeeQuote, network="test:ethereum")
    store.commit([Save(FeeQuote("test:ethereum", {"eth": 10**14}, now, {}, version_after(known)))])
    made = shop.post("/v1/invoices", {"fiatAmount": "49.90", "fiatCurrency": "EUR", "accept": OFFERS}).json
    shown = status(shop, made)
    ether, dollars = shown["accept"]
    rate = services().rates("test").fresh("eth", now, "EUR")
    assert rate is not None
    assert float(ether["usualFee"]) == pytest.approx(float(rate.value) / 10_000, abs=0.01)
    assert (ether["usualSeconds"], dollars["usualSeconds"], dollars["symbol"]) == (144, 57, "USDT")
    assert "lockedIn" not in shown
    assert shop.stack.call("POST", f"/v1/pay/{made['id']}/choice", json=OFFERS[0]).status == 200
    assert 890 <= status(shop, made)["lockedIn"] <= 900


def network(slug: str) -> Network:
    (found,) = (one for one in default_networks("live") if one.slug == slug)
    return replace(found, status="active")


def cursor(slug: str, **more: Any) -> Cursor:
    made = Cursor(f"live:{slug}", 100, "0x", 0, 100, 10**12)
    return replace(made, **more)


@pytest.mark.parametrize(
    ("slug", "more", "delay"),
    [
        ("ethereum", {}, None),
        ("ethereum", {"halted": "lies"}, "halted"),
        ("ethereum", {"updated_at": 10**12 - LATE_MS - 1}, "behind"),
        ("ethereum", {"tip": 100 + 51}, "behind"),
        ("bitcoin", {"updated_at": 10**12 - LATE_MS - 1}, None),
        ("bitcoin", {"tip": 102}, None),
    ],
)
def test_a_network_is_late(slug: str, more: dict[str, Any], delay: str | None) -> None:
    store, clock = MemoryStore(), [0.0]
    store.records[Cursor, f"live:{slug}"] = cursor(slug, **more)
    conditions = Conditions(store, lambda: clock[0])
    assert conditions.of([network(slug)], 10**12)[f"live:{slug}"].delay == delay
    store.records[Cursor, f"live:{slug}"] = cursor(slug, halted="now")
    clock[0] += FRESH_SECONDS
    assert conditions.of([network(slug)], 10**12)[f"live:{slug}"].delay == delay, "for half a minute"
    clock[0] += 1
    assert conditions.of([network(slug)], 10**12)[f"live:{slug}"].delay == "halted"
    assert conditions.of([replace(network("tron"), status="inactive")], 0)["live:tron"].delay == "halted"


def test_links_into_explorers() -> None:
    assert transaction_url(network("ethereum"), f"0x{HASH}") == f"https://etherscan.io/tx/0x{HASH}"
    assert transaction_url(network("bitcoin"), HASH) == f"https://mempool.space/tx/{HASH}"
    assert transaction_url(network("tron"), HASH) == f"https://tronscan.org/#/transaction/{HASH}"
    for base in ("javascript:alert(1)", "https://", "https://[", "data:text/html,x", "https://x.example/?a=", None):
        assert transaction_url(replace(network("ethereum"), explorer_url=base), HASH) is None, base
    for txid in ("", "..", f"{HASH}/../x", f"{HASH}?x", HASH[:-1], '"><script>'):
        assert transaction_url(network("ethereum"), txid) is None, txid
    assert transaction_url(replace(network("ethereum"), simulated=True), HASH) is None
