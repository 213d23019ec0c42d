"""What depositors can do to collections: nothing that costs the hot wallet more than it brings, or keeps others from theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from chalicelib.domain.catalogue.rates import ConstantRates, Rates
from chalicelib.usecases.treasury.collection import fees as collect_fees
from chalicelib.usecases.treasury.collection import run as collect_run
from chalicelib.usecases.treasury.collection.fees import MoveFees
from chalicelib.usecases.treasury.collection.steps import CollectSteps
from tests.support.collected_deposits import go, later, listed, moves, only, pay, settings, settle
from tests.support.rotation import drain, replace_hot
from tests.support.shop import Shop, as_operator, open_shop
from tests.support.treasury import booked


@pytest.fixture
def shop(stack) -> Iterator[Shop]:
    with open_shop(stack) as found:
        yield found


def gold(shop: Shop) -> None:
    """A token that never had a rate."""
    body = {"network": "ethereum", "symbol": "GLD", "name": "Gold Token", "decimals": 2}
    contract = shop.post("/v1/sandbox/tokens", body).json["data"]["contractAddress"]
    as_operator(shop, "POST", "/v1/coins", network="ethereum", contractAddress=contract)


def stands(shop: Shop, **query: Any) -> set[tuple[str, str | None]]:
    return {(one["status"], one["reason"]) for one in listed(shop, limit=100, **query)}


def test_what_only_waits_keeps_nothing_else_from_being_begun(shop, monkeypatch):
    gold(shop)
    settings(shop, "gld", collectThreshold="0")
    settings(shop, "usdt", collectThreshold="100")
    for _ in range(4):
        shop.pay(shop.post("/v1/addresses", {"network": "ethereum"}).json["address"], "0.01", "gld")
    shop.mine()
    go(shop, 3)
    assert stands(shop) == {("waiting", "no_rate")}
    monkeypatch.setattr(collect_run, "MOST_UNDER_WAY", 1)
    monkeypatch.setattr(collect_run, "_TURN", 1)
    addresses = [shop.invoice(amount, "usdt")["address"] for amount in ("150", "1000000", "200")]
    for address, amount in zip(addresses, ("150", "1000000", "200"), strict=True):
        shop.pay(address, amount, "usdt")
    shop.mine()
    shop.wait(960)  # all that waits is due
    raised = CollectSteps.advance

    def advance(steps: CollectSteps, id: str) -> None:
        if id in dust:
            raise RuntimeError("its node does not know it")
        raised(steps, id)

    dust = {one["id"] for one in listed(shop, limit=100)[:2]}
    monkeypatch.setattr(CollectSteps, "advance", advance)
    shop.stack.drain(only=("poll_ethereum", "relay"), hurry=True, rounds=2, failures=None)
    # What is worth most is begun, and nothing else while it is under way.
    assert [one["address"] for one in listed(shop, coin="usdt")] == [addresses[1]]


def test_rates_that_stand_still_make_dust_no_better(shop, monkeypatch):
    settings(shop, "usdt", collectThreshold="1")
    monkeypatch.setattr(ConstantRates, "fresh", lambda *_: None)
    monkeypatch.setattr(Rates, "fresh", lambda *_: None)
    pay(shop, "1")
    assert stands(shop) == {("waiting", "fee_share")}
    known = ConstantRates.get
    monkeypatch.setattr(ConstantRates, "get", lambda *asked: (rate := known(*asked)) and replace(rate, at=0))
    later(shop, 7 * 3600)
    assert stands(shop) == {("waiting", "no_rate")} and moves("topup") == []


def test_a_token_that_never_had_a_rate_is_collected_while_fees_are_low(shop, monkeypatch):
    gold(shop)
    settings(shop, "gld", collectThreshold="100")
    monkeypatch.setitem(collect_fees.UNPRICED_FEE, "evm", Decimal("0.000001"))
    pay(shop, "100", "gld", address=shop.post("/v1/addresses", {"network": "ethereum"}).json["address"])
    assert stands(shop) == {("waiting", "fee_share")}
    monkeypatch.undo()
    later(shop, 7 * 3600)
    assert only(shop)["status"] == "topup_sent"


def test_a_top_up_that_waits_is_not_taken_along_by_native_coins(shop, monkeypatch):
    settings(shop, "usdt", collectThreshold="1")
    settings(shop, "eth", collectThreshold="0")
    real, times = MoveFees.cost, [1]
    monkeypatch.setattr(MoveFees, "cost", lambda self, coin, *more: real(self, coin, *more) * (times[0] if coin.contract else 1))
    address = pay(shop, "200")
    times[0] = 100  # fees rise before the top-up is there
    settle(shop)
    assert stands(shop, coin="usdt") == {("waiting", "fee_share")}
    sent = booked(shop, address, "eth")
    pay(shop, "0.1", "eth", address=address)
    settle(shop)
    assert len(moves("sweep")) == 1 and booked(shop, address, "eth") >= sent > 0
    times[0] = 1
    later(shop, 7 * 3600)
    settle(shop)
    assert stands(shop, coin="usdt") == {("swept", None)} and len(moves("topup")) == 1


def test_dust_of_a_token_without_a_rate_costs_no_top_up_at_a_wallet_that_was_replaced(shop):
    gold(shop)
    settings(shop, "gld", minDepositAmount="10")
    old = shop.hot().address
    replace_hot(shop)
    drain(shop, old)
    shop.pay(old, "9.99", "gld")
    settle(shop, 2)
    assert moves("topup") == []
    shop.pay(old, "0.01", "gld")
    settle(shop, 2)
    assert [move.recipient for move in moves("topup")] == [old]
