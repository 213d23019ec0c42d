"""What a merchant received per day, in `GET /balances?receivedDays=`: invoices and plain addresses, releases, reorganisations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.ledger import Balance
from chalicelib.domain.versions import next_version
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack
from tests.support.till import Till

DAY = 86_400
THIEF = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"


@pytest.fixture
def shop(stack: Stack) -> Iterator[Till]:
    with open_shop(stack):
        yield Till(stack)


def received(shop: Shop, days: int = 31, coin: str = "usdt") -> Any:
    (entry,) = [b for b in shop.get("/v1/balances", receivedDays=str(days))["data"] if b["coin"] == coin]
    return entry["received"]


def amounts(shop: Shop, days: int = 31) -> list[str]:
    return [day["amount"] for day in received(shop, days)["days"]]


def test_each_day_has_what_came_in_on_it(shop: Till) -> None:
    shop.credit("10", "usdt")
    plain = shop.address()
    shop.pay(plain, "2.5", "usdt")
    shop.settle()
    (today,) = received(shop)["days"]
    assert (today["amount"], today["amountUSD"]) == ("12.5", 12.5)
    shop.wait(2 * DAY)
    shop.credit("4", "usdt")
    assert amounts(shop) == ["12.5", "4"]
    assert amounts(shop, days=2) == ["4"]
    assert received(shop)["days"][0]["day"] == today["day"] < received(shop)["days"][1]["day"]
    shop.withdraw("5", "usdt")
    assert amounts(shop) == ["12.5", "4"]
    shop.wait(31 * DAY)
    assert amounts(shop) == []


def test_a_reorganisation_takes_it_back_and_the_payment_counts_again(shop: Till) -> None:
    shop.credit("10", "usdt")
    shop.credit("5", "usdt")
    shop.reorg(14)
    shop.turn()
    assert amounts(shop) == ["10"]
    shop.reorg(20, remine=True)
    shop.turn()
    shop.settle()
    assert amounts(shop) == ["10"]


def test_what_is_held_counts_on_the_day_of_its_release(shop: Till) -> None:
    assert shop.operate("POST", "/v1/addresses/grey-list", network=shop.network, address=THIEF).status == 201
    shop.credit("1", "usdt")
    there = shop.address()
    shop.paid_by(THIEF, there, "7", "usdt")
    shop.settle()
    assert amounts(shop) == ["1"]
    shop.wait(DAY)
    assert shop.release(there).status == 200
    assert amounts(shop) == ["1", "7"]
    shop.reorg(13)
    shop.turn()
    assert amounts(shop) == ["1"]


def test_a_balance_of_before_these_figures_begins_with_the_next_payment(shop: Till) -> None:
    shop.credit("10", "usdt")
    store = services().store
    (old,) = [b for b in store.every(Balance) if b.received is not None]
    store.commit([Save(replace(next_version(old), received=None))])
    assert received(shop) == {"since": None, "days": []}
    shop.wait(1)
    shop.credit("3", "usdt")
    assert amounts(shop) == ["3"]
    shop.reorg(26)
    shop.turn()
    assert amounts(shop) == []


def test_only_where_it_is_asked_for(shop: Till) -> None:
    shop.credit("10", "usdt")
    assert all("received" not in entry for entry in shop.get("/v1/balances")["data"])
    for wrong in ("0", "32", "x", ""):
        answer = shop.stack.call("GET", "/v1/balances", shop.key, query={"receivedDays": wrong})
        assert (answer.status, answer.json["error"]["code"]) == (400, "INVALID_PARAMETER")
    unknown = shop.stack.call("GET", "/v1/balances", shop.key, query={"recieved": "1"})
    assert b"receivedDays" in unknown.body
