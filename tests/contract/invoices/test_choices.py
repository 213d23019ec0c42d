"""An invoice whose payer chooses the coin: created, chosen, paid in several coins, quoted anew."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.wiring import services
from tests.support.edge import Calls
from tests.support.shop import Shop, open_shop
from tests.support.stack import Response, Stack

OFFERS = [{"coin": "eth", "network": "ethereum"}, {"coin": "usdt", "network": "ethereum"}, {"coin": "btc", "network": "bitcoin"}]


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def choosable(shop: Shop, price: str = "300", fiat: str = "USD", **more: Any) -> dict[str, Any]:
    made = shop.post("/v1/invoices", {"fiatAmount": price, "fiatCurrency": fiat, "accept": OFFERS, **more})
    assert made.status == 201, made.body
    return dict(made.json)


def choose(shop: Shop, invoice: dict[str, Any], coin: str, network: str | None = "ethereum") -> Response:
    body = {"coin": coin} if network is None else {"coin": coin, "network": network}
    return shop.stack.call("POST", f"/v1/pay/{invoice['id']}/choice", json=body)


def chosen(shop: Shop, invoice: dict[str, Any], coin: str, network: str | None = "ethereum") -> dict[str, Any]:
    answer = choose(shop, invoice, coin, network)
    assert answer.status == 200, answer.body
    return dict(answer.json)


def refused(answer: Response) -> dict[str, Any]:
    assert answer.status == 400, answer.body
    found: dict[str, Any] = answer.json["error"]
    return found


def advance(shop: Shop, seconds: int) -> None:
    assert shop.post("/v1/sandbox/clock", {"advance": seconds}).status == 201


def test_before_a_choice_there_is_no_address(shop: Shop) -> None:
    before = len(list(services().store.every(Address)))
    invoice = choosable(shop, externalId="order-1")
    for name in ("currency", "symbol", "network", "address", "amount", "missing", "paymentUri", "rate"):
        assert invoice[name] is None, name
    assert (invoice["fiatAmount"], invoice["fiatCurrency"], invoice["received"], invoice["status"]) == (
        "300",
        "USD",
        "0",
        "pending",
    )
    assert (invoice["accept"], invoice["choices"], invoice["paidPercent"]) == (OFFERS, [], "0")
    assert shop.shown(invoice) == invoice
    assert shop.get("/v1/invoices/getAll")["data"] == [invoice]
    assert shop.get("/v1/invoices/getAll", currency="eth")["data"] == []
    assert len(list(services().store.every(Address))) == before
    assert shop.get("/v1/invoices/summary")["totalAmount"] == "300.00"
    status = shop.stack.call("GET", f"/v1/pay/{invoice['id']}/status")
    offered = [{"coin": each["coin"], "network": each["network"]} for each in status.json["accept"]]
    assert (status.status, offered, status.json["address"]) == (200, OFFERS, None)


def test_a_choice_makes_an_address_and_locks_a_rate(shop: Shop) -> None:
    invoice = choosable(shop)
    first = chosen(shop, invoice, "eth")
    assert (first["coin"], first["network"], first["amount"], first["missing"]) == ("eth", "ethereum", "0.1", "0.1")
    assert first["rate"]["value"] == "3000" and first["paymentUri"].endswith(f"?value={10**17}")
    shown = shop.shown(invoice)
    for name in ("address", "network", "amount", "missing", "paymentUri", "rate"):
        assert shown[name] == first[name], name
    assert shown["currency"] == "eth"
    (choice,) = shown["choices"]
    assert choice == {
        "coin": "eth", "network": "ethereum", "address": first["address"], "amount": "0.1", "received": "0", "unconfirmed": "0",
        "rate": first["rate"], "lockedUntil": first["lockedUntil"],
    }  # fmt: skip
    assert chosen(shop, invoice, "ETH", "Ethereum") == first
    assert chosen(shop, invoice, "eth", None) == first
    assert services().store.get(Invoice, tenant=_tenant(shop, invoice), id=invoice["id"]).version == 2  # type: ignore[union-attr]
    # The EVM choices share the address; another family has its own.
    usdt, btc = chosen(shop, invoice, "usdt"), chosen(shop, invoice, "btc", "bitcoin")
    assert usdt["address"] == first["address"] != btc["address"]
    assert (usdt["amount"], btc["amount"]) == ("300", "0.005")
    assert len([a for a in services().store.every(Address) if a.invoice_id == invoice["id"]]) == 2
    assert [choice["coin"] for choice in shop.shown(invoice)["choices"]] == ["eth", "usdt", "btc"]
    assert shop.shown(invoice)["currency"] == "btc"
    assert chosen(shop, invoice, "eth") == first
    assert shop.shown(invoice)["currency"] == "eth"
    summary = shop.get("/v1/invoices/summary")
    assert (summary["totalInvoices"], summary["totalAmount"]) == (1, "300.00")
    assert [c for c in summary["currencies"] if c["totalAmount"] != "0"] == [
        {"currency": "eth", "totalAmount": "0.1", "totalReceived": "0"}
    ]


def _tenant(shop: Shop, invoice: dict[str, Any]) -> Any:
    (found,) = [one for one in services().store.every(Invoice) if one.id == invoice["id"]]
    return found.tenant


def test_two_coins_pay_together_exactly(shop: Shop) -> None:
    invoice = choosable(shop, "100")
    eth = chosen(shop, invoice, "eth")
    assert eth["amount"] == "0.03333334"
    shop.pay(eth["address"], "0.01")
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["unconfirmed"], shown["missing"], shown["paidPercent"]) == ("partial", "0.01", "0.02333334", "0")
    assert shown["transactions"][0]["coin"] == "eth"
    rest = chosen(shop, invoice, "usdt")
    assert (rest["amount"], rest["missing"]) == ("100", "70")
    assert rest["paymentUri"].endswith("uint256=70000000")
    shop.pay(rest["address"], "69.999999", "usdt")
    shop.turn()
    assert shop.status(invoice) == "partial"
    assert shop.shown(invoice)["missing"] == "0.000001"
    shop.pay(rest["address"], "0.000001", "usdt")
    shop.turn()
    assert shop.status(invoice) == "confirming"
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["missing"], shown["paidPercent"], shown["paymentUri"]) == ("completed", "0", "100", None)
    assert (shown["received"], "overpaid" in shown) == ("100", False)
    assert {c["coin"]: c["received"] for c in shown["choices"]} == {"eth": "0.01", "usdt": "70"}
    assert shop.told(invoice["id"]) == {
        "invoice.created": 1, "invoice.partial": 1, "invoice.confirming": 1, "invoice.completed": 1,
    }  # fmt: skip
    assert (shop.available("eth"), shop.available("usdt")) == ("0.01", "70")
    summary = shop.get("/v1/invoices/summary")
    assert (summary["totalReceived"], summary["completedInvoices"]) == ("100.00", 1)


def test_overpaid_in_the_latest_coin(shop: Shop) -> None:
    invoice = choosable(shop, "100")
    shop.pay(chosen(shop, invoice, "eth")["address"], "0.04")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["overpaid"], shown["paidPercent"]) == ("completed", "0.00666666", "120")


def test_a_coin_that_nobody_chose_counts_and_another_is_misdirected(shop: Shop) -> None:
    invoice = choosable(shop)
    address = chosen(shop, invoice, "eth")["address"]
    shop.pay(address, "300", "usdt")
    wrong = services().catalogue("test").coins["ethereum", "dai"]
    sent = services().sandbox.deposit(wrong.network, address, wrong, 5 * 10**18)
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["unconfirmed"]) == ("confirming", "0.1")
    assert shown["misdirected"] == [{"coin": "dai", "network": "ethereum", "amount": "5", "txId": sent["txid"]}]
    usdt = shown["choices"][1]
    assert (usdt["coin"], usdt["unconfirmed"], usdt["lockedUntil"], usdt["amount"]) == ("usdt", "300", None, "300")
    shop.reorg(3)
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], [c["coin"] for c in shown["choices"]], "misdirected" in shown) == ("pending", ["eth"], False)


def test_a_reorganisation_takes_back_what_was_added(shop: Shop) -> None:
    invoice = choosable(shop, "100")
    eth, usdt = chosen(shop, invoice, "eth"), chosen(shop, invoice, "usdt")
    shop.pay(eth["address"], "0.01")
    shop.mine(1)
    shop.pay(usdt["address"], "70", "usdt")
    shop.mine()
    shop.turn()
    assert shop.status(invoice) == "completed"
    shop.reorg(20)
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["missing"], shown["paidPercent"], shown["transactions"]) == ("pending", "100", "0", [])
    assert shop.told(invoice["id"])["invoice.reverted"] == 2


def test_a_lock_that_ended_is_quoted_anew_at_a_look(shop: Shop) -> None:
    invoice = choosable(shop)
    first = chosen(shop, invoice, "eth")
    advance(shop, 901)
    shown = shop.shown(invoice)
    assert shown["choices"][0]["lockedUntil"] > first["lockedUntil"]
    assert shown["choices"][0]["address"] == first["address"]
    stored = services().store.get(Invoice, tenant=_tenant(shop, invoice), id=invoice["id"])
    assert stored is not None and stored.choosing is not None and len(stored.choosing.choices[0].locks) == 2
    assert shop.shown(invoice) == shown, "a look while it is locked writes nothing"
    again = services().store.get(Invoice, tenant=_tenant(shop, invoice), id=invoice["id"])
    assert again is not None and again.version == stored.version
    advance(shop, 901)
    status = shop.stack.call("GET", f"/v1/pay/{invoice['id']}/status").json
    assert status["lockedUntil"] > shown["choices"][0]["lockedUntil"]


def test_fifty_at_once_make_one_address(shop: Shop) -> None:
    invoice = choosable(shop)
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: choose(shop, invoice, "eth"), range(50)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert len([a for a in services().store.every(Address) if a.invoice_id == invoice["id"]]) == 1


def test_what_can_not_be_chosen(shop: Shop) -> None:
    plain = shop.invoice()
    assert "names its coin" in refused(choose(shop, plain, "eth"))["message"]
    assert choose(shop, {"id": "inv_" + "0" * 26}, "eth").status == 404
    assert choose(shop, {"id": "x"}, "eth").status == 404
    invoice = choosable(shop)
    assert refused(choose(shop, invoice, "dai"))["code"] == "VALIDATION_ERROR"
    assert refused(choose(shop, invoice, "eth", "arbitrum"))["code"] == "VALIDATION_ERROR"
    assert refused(choose(shop, invoice, "<script>"))["code"] == "INVALID_PARAMETER"
    assert refused(choose(shop, invoice, "eth", "mars"))["code"] == "INVALID_PARAMETER"
    shop.stack.call("PUT", "/v1/invoices/configureSettings", shop.key, {"settings": {"minimumAmounts": {"btc": "1"}}})
    words = refused(choose(shop, invoice, "btc", "bitcoin"))["message"]
    assert "choose another coin" in words and "minimumAmounts" not in words, "a stranger is not told what is set"
    advance(shop, 3601)
    assert "its time has passed" in refused(choose(shop, invoice, "eth"))["message"]
    shop.turn()
    assert shop.status(invoice) == "expired"
    assert "expired" in refused(choose(shop, invoice, "eth"))["message"]


def test_twenty_different_choices_and_no_more(shop: Shop) -> None:
    pairs = [
        {"coin": coin.slug, "network": network}
        for network in services().catalogue("test").networks
        for coin in services().catalogue("test").coins_of(network)
    ]
    assert len(pairs) > 20
    invoice = choosable(shop, "3000000", accept=pairs)
    answers = [choose(shop, invoice, pair["coin"], pair["network"]) for pair in pairs[:21]]
    assert [answer.status for answer in answers] == [200] * 20 + [429]
    assert answers[-1].json["error"]["code"] == "RATE_LIMIT_EXCEEDED"
    assert 0 < int(answers[-1].headers["retry-after"]) <= 3600
    assert choose(shop, invoice, pairs[0]["coin"], pairs[0]["network"]).status == 200
    assert len([a for a in services().store.every(Address) if a.invoice_id == invoice["id"]]) == 3


def test_creating_one(shop: Shop) -> None:
    def problems(**body: Any) -> list[str]:
        answer = shop.post("/v1/invoices", body)
        assert answer.status == 400, answer.body
        return [part.split(":")[0] for part in answer.json["details"].split("; ")]

    fiat = {"fiatAmount": "10", "fiatCurrency": "EUR"}
    assert problems(amount="1") == ["currency"]
    assert problems(**fiat, currency="eth", accept=OFFERS) == ["accept"]
    assert problems(**fiat, network="tron") == ["network"]
    assert problems(**fiat, accept=[]) == ["accept"]
    assert problems(**fiat, accept=[{"coin": "eth", "network": "tron"}]) == ["accept.0.network"]
    assert problems(**fiat, accept=[{"coin": "nope"}]) == ["accept.0.coin"]
    unknown = shop.post("/v1/invoices", {**fiat, "accept": [{"coin": "eth", "chain": "ethereum"}]}).json["details"]
    assert unknown == "accept.0.chain: is not known; known are: coin, network"
    made = shop.post("/v1/invoices", {**fiat, "accept": [{"coin": "USDT", "network": "Tron"}, {"coin": "usdt"}]}).json
    assert [one["network"] for one in made["accept"]] == ["tron", "ethereum", "bsc", "polygon", "arbitrum"]
    everything = shop.post("/v1/invoices", fiat).json["accept"]
    assert {"coin": "btc", "network": "bitcoin"} in everything and len(everything) > 20
    shop.stack.call("PUT", "/v1/invoices/configureSettings", shop.key, {"settings": {"supportedCurrencies": ["ltc"]}})
    assert shop.post("/v1/invoices", fiat).json["accept"] == [{"coin": "ltc", "network": "litecoin"}]
    answer = shop.post("/v1/invoices", {**fiat, "accept": OFFERS})
    assert (answer.status, answer.json["code"]) == (400, "VALIDATION_ERROR")


def test_the_same_request_again_is_the_same_invoice(shop: Shop) -> None:
    body = {"fiatAmount": "10", "fiatCurrency": "GBP", "accept": OFFERS}
    first = shop.post("/v1/invoices", body, **{"Idempotency-Key": "k1"})
    again = shop.post("/v1/invoices", body, **{"Idempotency-Key": "k1"})
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (201, first.body, "true")
    assert Decimal(first.json["fiatAmount"]) == 10


def test_what_a_choice_costs(shop: Shop) -> None:
    """A repeated choice writes nothing; another coin of the same family makes no address."""
    chosen(shop, choosable(shop), "eth")
    invoice, calls = choosable(shop), Calls()
    calls.attach(services().store.models.connection.client)
    chosen(shop, invoice, "eth")
    # The sandbox alone reads a merchant's own rates.
    assert calls.made == ["Query", "BatchGetItem", "GetItem", "TransactWriteItems"]
    calls.made.clear()
    chosen(shop, invoice, "eth")
    assert calls.made == ["Query", "BatchGetItem"]
    calls.made.clear()
    chosen(shop, invoice, "usdt")
    assert calls.made[:2] == ["Query", "BatchGetItem"] and calls.made[-1] == "TransactWriteItems"
    calls.made.clear()
    shop.shown(invoice)
    assert calls.made == ["UpdateItem", "GetItem"], "a look at a locked rate is a read"


def test_nothing_is_chosen_for_one_that_is_paid(shop: Shop) -> None:
    invoice = choosable(shop)
    shop.pay(chosen(shop, invoice, "eth")["address"], "0.1")
    shop.mine()
    shop.turn()
    assert shop.status(invoice) == "completed"
    problem = refused(choose(shop, invoice, "usdt"))
    assert problem["code"] == "VALIDATION_ERROR" and "this invoice is completed" in problem["message"]
