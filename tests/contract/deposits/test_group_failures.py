"""A group that can not be stored as one: its members are stored one by one, and nobody else's payments wait for them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.chain import Cursor, Transfer
from chalicelib.usecases.deposits.groups import DepositGroups
from chalicelib.wiring import services
from tests.support.collected_deposits import settings
from tests.support.shop import Shop, bent_node, with_also
from tests.support.stack import Stack

HOOK = {"url": "http://127.0.0.1:8099/hook", "events": ["*"]}
WORDY = 12


@pytest.fixture
def shop(stack: Stack) -> Shop:
    shop = Shop(stack)
    shop.turn()
    return shop


def paid_in_one_block(shop: Shop, patch: pytest.MonkeyPatch, addresses: list[str], coins: int) -> None:
    """Each address gets so many USDT by a transaction of its own, all of them in the newest block."""
    node = bent_node(shop, patch)
    shop.mine(1)
    reader, coin = services().reader(shop.realm_network()), shop.coin("usdt")
    (block,) = reader.blocks(reader.tip(), reader.tip(), {})
    assert coin.contract is not None
    contract, units, hashes = coin.contract.lower(), coins * 10**coin.decimals, random.Random(7)
    with_also(
        node,
        [
            Transfer(f"0x{hashes.randbytes(32).hex()}", f"log:{n}", contract, "0x" + "0c" * 20, address.lower(), units)
            for n, address in enumerate(addresses)
        ],
        block.hash,
    )


def polls(shop: Shop, times: int = 3) -> None:
    for _ in range(times):
        shop.mine(15)
        shop.turn()


def wordy(number: int) -> dict[str, Any]:
    """An invoice as long as the interface lets it be, in characters that JSON writes in twelve."""
    letters = random.Random(number)

    def text(length: int) -> str:
        return "".join(chr(letters.randrange(0x20000, 0x2A6D0)) for _ in range(length))

    link = "https://a.example/" + text(1980)
    return {
        "description": text(1000),
        "redirectUrl": link,
        "cancelUrl": link,
        "metadata": {"a": text(1000)},
        "externalId": text(255),
    }


@pytest.mark.parametrize("listens", [True, False])
def test_an_address_that_is_paid_twice_in_a_block_is_credited_twice(
    shop: Shop, listens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ask for one look at the address, which is one item."""
    settings(shop, "usdt", collectThreshold="1000000")
    if listens:
        assert shop.post("/v1/webhooks", HOOK).status == 201
    address = shop.post("/v1/addresses", {"network": "ethereum"}).json["address"]
    paid_in_one_block(shop, monkeypatch, [address, address], 25)
    polls(shop)
    assert shop.available("usdt") == "50"


@pytest.mark.parametrize("listens", [True, False])
def test_events_of_a_group_that_are_more_than_an_item_takes_keep_nobody_waiting(
    shop: Shop, listens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item of DynamoDB has at most 400 KB, and the events of twelve wordy invoices a megabyte."""
    models = services().store.models
    monkeypatch.setattr(models, "_settings", replace(models._settings, packed_records=False))
    if listens:
        assert shop.post("/v1/webhooks", HOOK).status == 201
    invoices = [shop.invoice("1", "usdt", **wordy(number)) for number in range(WORDY)]
    other = shop.invoice("2", "eth")
    paid_in_one_block(shop, monkeypatch, [invoice["address"] for invoice in invoices], 1)
    shop.pay(other["address"], "2", "eth")
    polls(shop)
    cursor = services().store.get(Cursor, network=shop.realm_network().id)
    assert cursor is not None and cursor.number == services().reader(shop.realm_network()).tip()
    assert shop.status(other) == "completed"
    assert {shop.status(invoice) for invoice in invoices} == {"completed"} and shop.available("usdt") == f"{WORDY}"


@pytest.mark.parametrize("fails", ["detect", "confirm"])
def test_a_group_that_fails_for_any_reason_is_taken_one_by_one(
    shop: Shop, fails: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise TypeError("a fault of ours")

    monkeypatch.setattr(DepositGroups, fails, broken)
    invoices = [shop.invoice("1", "usdt") for _ in range(3)]
    paid_in_one_block(shop, monkeypatch, [invoice["address"] for invoice in invoices], 1)
    shop.mine(15)
    shop.turn(failures="count")
    assert {shop.status(invoice) for invoice in invoices} == {"completed"}
    assert "a fault of ours" in caplog.text, "and it is told"
