"""Where the merchant pays the fee: the real one is debited at the rate of the reservation, the rest comes back.

A reorganisation reverses exactly that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.ledger import Book, JournalEntry, totals
from chalicelib.domain.money import format_units, parse_units
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, PAYEE, Shop, bent_node, open_shop
from tests.support.stack import Stack

OTHER = "0x52908400098527886E0F7030069857D2E4169EE7"
HUNDRED = 100 * 10**6


@pytest.fixture
def shop(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv("WITHDRAWAL_FEE_PAYER", "merchant")
    wiring.forget()
    with open_shop(stack, ("1", "eth"), ("100", "usdt")) as opened:
        yield opened
    wiring.forget()


def real_fee(shop: Shop, patch: pytest.MonkeyPatch, share: float) -> None:
    """What the chain takes is `share` of what was estimated."""

    def receipt(real: Any, *_: Any) -> Any:
        return real if real is None or real.fee is None else replace(real, fee=int(real.fee * share))

    bent_node(shop, patch).bend(receipt=receipt)


def settled(shop: Shop) -> None:
    shop.turn()
    shop.mine()
    shop.turn()


def units(text: str, decimals: int) -> int:
    return parse_units(text, decimals)


def operators(shop: Shop, coin: str) -> int:
    """What is the operator's of a coin, by the journal."""
    return totals(services().store.every(JournalEntry)).get((Book.WHOSE, "operator:test", shop.coin(coin).asset), 0)


@pytest.mark.parametrize(("coin", "decimals", "price"), [("eth", 18, 1), ("usdt", 6, 3000)])
def test_the_real_fee_is_debited_and_the_rest_given_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, coin: str, decimals: int, price: int
) -> None:
    real_fee(shop, monkeypatch, 0.4)
    before, mine = units(shop.available(coin), decimals), operators(shop, coin)
    made = shop.withdraw("0.5", coin)
    reserved = units(shop.withdrawal(made)["fee_charged"], decimals)
    assert units(shop.balance(coin)["frozen"], decimals) == units("0.5", decimals) + reserved
    # The rate moves after the reservation, and changes nothing.
    settled(shop)
    shown = shop.withdrawal(made)
    fee = units(shown["fee"], 18)
    debited = -(-fee * price // 10 ** (18 - decimals))
    assert units(shown["fee_charged"], decimals) == debited < reserved
    paid = units("0.5", decimals) + debited
    assert units(shop.available(coin), decimals) == before - paid
    assert shop.balance(coin)["frozen"] == "0"
    assert operators(shop, coin) - mine == debited - (fee if coin == "eth" else 0)


def test_never_more_than_was_reserved(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    real_fee(shop, monkeypatch, 1.5)
    made = shop.withdraw("10", "usdt")
    reserved = shop.withdrawal(made)["fee_charged"]
    settled(shop)
    shown = shop.withdrawal(made)
    assert (shown["status"], shown["fee_charged"]) == ("confirmed", reserved)
    assert shop.available("usdt") == format_units(90 * 10**6 - units(reserved, 6), 6)


def test_what_failed_on_the_chain_costs_its_real_fee(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    real_fee(shop, monkeypatch, 0.4)
    made = shop.withdraw("10", "usdt")
    shop.post(f"/v1/sandbox/withdrawals/{made}", {"outcome": "fail"})
    settled(shop)
    shown = shop.withdrawal(made)
    debited = -(-units(shown["fee"], 18) * 3000 // 10**12)
    assert (shown["status"], shown["fee_charged"]) == ("failed", format_units(debited, 6))
    assert shop.available("usdt") == format_units(HUNDRED - debited, 6)


@pytest.mark.parametrize("coin", ["eth", "usdt"])
def test_a_reorganisation_reverses_exactly_that(shop: Shop, monkeypatch: pytest.MonkeyPatch, coin: str) -> None:
    real_fee(shop, monkeypatch, 0.4)
    made = shop.withdraw("0.5", coin)
    reserved, frozen = shop.withdrawal(made)["fee_charged"], shop.balance(coin)["frozen"]
    free = shop.available(coin)
    settled(shop)
    once = (shop.withdrawal(made)["fee_charged"], shop.available(coin))
    shop.reorg(CONFIRMATIONS + 2)
    shop.turn()
    assert (shop.withdrawal(made)["status"], shop.withdrawal(made)["fee_charged"]) == ("confirming", reserved)
    assert (shop.available(coin), shop.balance(coin)["frozen"]) == (free, frozen)
    shop.mine()
    shop.turn()
    assert (shop.withdrawal(made)["fee_charged"], shop.available(coin)) == once


def test_the_withdrawals_of_a_batch_are_settled_at_its_rate(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    real_fee(shop, monkeypatch, 0.4)
    outputs = [{"to_address": PAYEE, "amount": "10"}, {"to_address": OTHER, "amount": "20"}]
    body = {"batch_withdrawal": {"network": "ethereum", "coin": "usdt", "outputs": outputs}}
    made = shop.post("/v1/withdrawals", body).json["data"]["withdrawals"]
    settled(shop)
    debited = 0
    for one in made:
        shown = shop.withdrawal(one["id"])
        assert units(shown["fee_charged"], 6) == -(-units(shown["fee"], 18) * 3000 // 10**12) < units(one["fee_charged"], 6)
        debited += units(shown["fee_charged"], 6)
    assert shop.available("usdt") == format_units(70 * 10**6 - debited, 6)
