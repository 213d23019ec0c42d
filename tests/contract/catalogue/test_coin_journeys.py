"""Coins at work: a token from its contract to a payout, and payments that are less than a coin's minimum."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib.domain.catalogue.rates import ConstantRates, Rate, Rates
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.wiring import services
from tests.support.shop import PAYEE, Shop, as_operator, open_shop
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def test_a_token_is_invoiced_paid_and_paid_out(shop: Shop) -> None:
    """Its address existed before the token did, and the hot wallet has some to pay out."""
    address = shop.post("/v1/addresses", {"network": "ethereum"}).json["address"]
    body = {"network": "ethereum", "symbol": "GLD", "name": "Gold Token", "decimals": 2}
    contract = shop.post("/v1/sandbox/tokens", body).json["data"]["contractAddress"]
    as_operator(shop, "POST", "/v1/coins", network="ethereum", contractAddress=contract)
    invoice = shop.invoice("12.5", "gld")
    shop.pay(invoice["address"], "12.5", "gld")
    paid = shop.post("/v1/sandbox/deposits", {"address": address, "network": "ethereum", "coin": "gld", "amount": "7.25"})
    assert paid.status == 201, paid.body
    shop.mine()
    shop.turn()
    assert shop.status(invoice) == "completed"
    assert shop.available("gld") == "19.75"
    held = {b["coin"]: b["balance"] for b in shop.get(f"/v1/addresses/{address}")["balances"]}
    assert held["gld"] == "7.25"
    withdrawal = shop.withdraw("19.75", "gld")
    shop.turn()
    shop.mine()
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
    assert shop.paid(PAYEE, "gld") == 1975
    assert shop.available("gld") == "0"


def test_a_coin_counts_from_its_registration_on_in_another_process(shop: Shop) -> None:
    """The poller's catalogue was read before, and is not old enough to be read again by itself."""
    body = {"network": "ethereum", "symbol": "GLD", "name": "Gold Token", "decimals": 2}
    contract = shop.post("/v1/sandbox/tokens", body).json["data"]["contractAddress"]
    address = shop.post("/v1/addresses", {"network": "ethereum"}).json["address"]
    store = services().store
    remembered = dict(store._catalogues)
    as_operator(shop, "POST", "/v1/coins", network="ethereum", contractAddress=contract)
    shop.pay(address, "1", "gld")
    shop.mine()
    store._catalogues.update(remembered)
    shop.turn()
    assert shop.available("gld") == "1"


def test_too_little_is_recorded_and_not_credited(shop: Shop) -> None:
    as_operator(shop, "PUT", "/v1/coins", coin="eth", network="ethereum", minDepositAmount="0.01")
    address = shop.post("/v1/addresses", {"network": "ethereum"}).json["address"]
    for amount in ("0.009999999999999999", "0.005"):
        shop.pay(address, amount)
    shop.turn()
    assert shop.balance() == {"available": "0", "frozen": "0", "pending": "0"}
    shop.mine()
    shop.turn()
    assert shop.available() == "0"
    for seen in shop.get("/v1/transactions")["data"]:
        assert (seen["flags"], seen["status"], seen["invoiceId"]) == (["below_minimum"], "confirmed", None)
        assert shop.told(seen["id"]) == {"transaction.detected": 1, "transaction.confirmed": 1}
    shop.pay(address, "0.015")
    shop.mine()
    shop.turn()
    assert shop.available() == "0.015"


def test_too_little_that_falls_out_of_the_chain_and_comes_back(shop: Shop) -> None:
    as_operator(shop, "PUT", "/v1/coins", coin="eth", network="ethereum", minDepositAmount=1)
    address = shop.post("/v1/addresses", {"network": "ethereum"}).json["address"]
    shop.pay(address, "0.5")
    shop.mine()
    shop.turn()
    # The minimum is another one now; what was decided stays decided.
    as_operator(shop, "PUT", "/v1/coins", coin="eth", network="ethereum", minDepositAmount=0)
    shop.reorg(14, remine=True)
    shop.mine()
    shop.turn()
    assert shop.available() == "0"
    (deposit,) = (d for d in services().store.every(Deposit) if d.tenant is not None)
    assert (deposit.status, deposit.flags, deposit.round) == ("confirmed", ("below_minimum",), 1)
    shop.reorg(30)
    shop.turn()
    assert shop.get("/v1/transactions")["data"][0]["status"] == "orphaned"
    assert shop.balance() == {"available": "0", "frozen": "0", "pending": "0"}


def test_a_minimum_in_usd(shop: Shop) -> None:
    as_operator(shop, "PUT", "/v1/coins", coin="eth", network="ethereum", useUsdLimits=True, minDepositAmount=30)
    address = shop.post("/v1/addresses", {"network": "ethereum"}).json["address"]
    shop.pay(address, "0.009999")
    shop.pay(address, "0.01")
    shop.mine()
    shop.turn()
    assert shop.available() == "0.01"


@pytest.mark.parametrize("said", [None, "3", "3000"], ids=["unknown", "a-thousandth", "right"])
def test_no_minimum_by_a_rate_that_somebody_says(shop: Shop, monkeypatch: pytest.MonkeyPatch, said: str | None) -> None:
    """By a rate of a thousandth of what is right, one ether would be less than 30 USD, and the operator's."""
    as_operator(shop, "PUT", "/v1/coins", coin="eth", network="ethereum", useUsdLimits=True, minDepositAmount=30)
    now = services().clock_of("test").now_ms()
    # Constant rates may not know a coin, either.
    rates = ConstantRates({}, lambda: now) if said is None else Rates([Rate("eth", "USD", said, now, "liar")])
    monkeypatch.setattr(services().wiring.parts, "rates", lambda _: rates)
    address = shop.post("/v1/addresses", {"network": "ethereum"}).json["address"]
    shop.pay(address, "1")
    shop.pay(address, "0.001")
    shop.mine()
    shop.turn()
    assert shop.available() == "1.001"
    assert [t["flags"] for t in shop.get("/v1/transactions")["data"]] == [[], []]


def test_what_arrives_of_an_inactive_coin_is_credited(shop: Shop) -> None:
    address = shop.post("/v1/addresses", {"network": "ethereum"}).json["address"]
    as_operator(shop, "PUT", "/v1/coins", coin="usdt", network="ethereum", status="INACTIVE")
    shop.pay(address, "5", "usdt")
    shop.mine()
    shop.turn()
    assert shop.available("usdt") == "5"
    assert shop.ask("1", "usdt").status == 400
