"""The rate of a payment that waits for its block: it is that of its first sight, for a day and no longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import WAITS_IN_TIME_MS
from chalicelib.usecases.scanning import mempool
from tests.support.known_rates import rates_are
from tests.support.mempools import SATOSHIS, Coins

SetRate = Callable[[str | None], None]
HOUR = 3600
LONG = WAITS_IN_TIME_MS // 1000 + HOUR


@pytest.fixture
def set_rate(coins: Coins, monkeypatch: pytest.MonkeyPatch) -> SetRate:
    """Gives a bitcoin a worth in US dollars as of now; None takes it away."""

    def to(value: str | None) -> None:
        rates_are(monkeypatch, *([] if value is None else [("btc", "USD", value)]))

    return to


def choosable(coins: Coins) -> dict[str, Any]:
    """An invoice over 1,000 US dollars, and its address."""
    body = {
        "fiatAmount": "1000", "fiatCurrency": "USD", "expiresIn": 7 * 86_400, "accept": [{"coin": "btc", "network": "bitcoin"}],
    }  # fmt: skip
    made = coins.shop.post("/v1/invoices", body)
    assert made.status == 201, made.body
    chosen = coins.shop.stack.call("POST", f"/v1/pay/{made.json['id']}/choice", json={"coin": "btc"})
    assert chosen.status == 200, chosen.body
    return {"id": made.json["id"], "address": chosen.json["address"]}


@pytest.mark.parametrize(("waits", "paid"), [(HOUR, "100"), (LONG, "50")])
def test_a_payer_who_offers_too_little_holds_no_rate_open(coins: Coins, set_rate: SetRate, waits: int, paid: str) -> None:
    set_rate("10000")
    invoice = choosable(coins)
    sent = coins.send(invoice["address"], SATOSHIS // 10)
    coins.look()
    assert coins.shop.status(invoice) == "confirming"
    coins.shop.wait(waits)
    set_rate("5000")
    coins.mine(sent)
    coins.confirm()
    shown = coins.shop.shown(invoice)
    assert (shown["paidPercent"], shown["status"]) == (paid, "completed" if paid == "100" else "partial")
    assert coins.shop.balance("btc")["available"] == "0.1"


def test_what_was_gone_meanwhile_holds_none_either(coins: Coins, set_rate: SetRate) -> None:
    set_rate("10000")
    invoice = choosable(coins)
    sent = coins.send(invoice["address"], SATOSHIS // 10)
    coins.look()
    coins.pool.held.clear()
    coins.look()
    coins.shop.wait(mempool.GONE_MS // 1000 + 1)
    coins.look()
    assert coins.record(sent).status == "orphaned"
    coins.shop.wait(LONG)
    set_rate("5000")
    coins.mine(sent)
    coins.confirm()
    assert coins.shop.shown(invoice)["paidPercent"] == "50"


def test_without_a_rate_its_block_waits_for_one(coins: Coins, set_rate: SetRate) -> None:
    set_rate("10000")
    invoice = choosable(coins)
    sent = coins.send(invoice["address"], SATOSHIS // 10)
    coins.look()
    coins.shop.wait(LONG)
    set_rate(None)
    coins.mine(sent)
    coins.confirm()
    assert (coins.shop.status(invoice), coins.record(sent).flags) == ("pending", ("unpriced",))
    set_rate("20000")
    coins.look()
    assert coins.shop.status(invoice) == "completed"


@pytest.mark.parametrize(("waits", "status"), [(HOUR, "completed"), (LONG, "expired")])
def test_a_late_payment_is_worth_what_its_time_says(coins: Coins, set_rate: SetRate, waits: int, status: str) -> None:
    set_rate("10000")
    body = {
        "currency": "btc", "network": "bitcoin", "fiatAmount": "1000", "fiatCurrency": "USD", "expiresIn": 1800,
        "latePayments": "acceptWithinPercent", "latePaymentsPercent": 1,
    }  # fmt: skip
    invoice = coins.shop.post("/v1/invoices", body).json
    coins.shop.wait(1801)
    coins.shop.mine(1)
    coins.look()
    set_rate("10000")
    sent = coins.send(invoice["address"], SATOSHIS // 10)
    coins.look()
    assert coins.shop.status(invoice) == "confirming"
    coins.shop.wait(waits)
    set_rate("5000")
    coins.mine(sent)
    coins.confirm()
    assert coins.shop.status(invoice) == status
