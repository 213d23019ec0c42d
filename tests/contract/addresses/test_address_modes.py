"""The modes of addresses, sentence by sentence of the published table, on every network; and the deployment's mode, changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Mode
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER, Coin
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.shop import Shop
from tests.support.stack import Stack

EVM = ["ethereum", "bsc", "polygon", "arbitrum", "fantom"]
LATE = {"evm": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "tron": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"}


def make(shop: Shop, status: int = 201, **body: Any) -> Any:
    made = shop.post("/v1/addresses", {"network": shop.network, **body})
    assert made.status == status, made.body
    return made.json


def shown(shop: Shop, address: Any) -> dict[tuple[str, str], str]:
    """What the address has a balance record of, and how much."""
    return {(b["network"], b["coin"]): b["balance"] for b in shop.get(f"/v1/addresses/{address['id']}")["balances"]}


@pytest.mark.parametrize("slug", NETWORK_ORDER)
def test_what_each_mode_means(stack: Stack, monkeypatch: pytest.MonkeyPatch, slug: str) -> None:
    shop = Shop(stack, network=slug)
    network = shop.realm_network()
    evm = network.family == "evm"
    native, *tokens = (coin.slug for coin in services().catalogue("test").coins_of(slug))
    slugs = {name: [(name, c.slug) for c in services().catalogue("test").coins_of(name)] for name in NETWORK_ORDER}

    # single: its coin is needed; each address is one coin's on one network, with a balance of that coin alone.
    assert make(shop, 400, mode="single")["error"]["details"][0]["field"] == "coin"
    made_for = [native, *tokens[:1]]
    singles = [make(shop, mode="single", coin=coin) for coin in made_for]
    assert len({each["address"] for each in singles}) == len(singles)
    assert [list(shown(shop, each)) for each in singles] == [[(slug, coin)] for coin in made_for]
    # common: one address for all coins of its network.
    common = make(shop, mode="common")
    assert set(shown(shop, common)) == set(slugs[slug])
    assert (common["mode"], common["affectedNetworks"]) == ("common", [slug])
    # cross: one for the EVM networks, with all that they have; elsewhere there is none.
    addresses = [*singles, common]
    if evm:
        cross = make(shop, mode="cross")
        assert (cross["mode"], cross["affectedNetworks"]) == ("cross", EVM)
        assert set(shown(shop, cross)) == {pair for name in EVM for pair in slugs[name]}
        addresses.append(cross)
    else:
        assert make(shop, 400, mode="cross")["error"]["code"] == "VALIDATION_ERROR"

    # A coin that comes later has its record by itself, where the address is for all coins.
    later = []
    if network.family in LATE:
        services().store.commit([Save(Coin(network.id, "late", "LATE", "Late Token", 6, LATE[network.family]))])
        services().store.forget_catalogue()
        later = ["late"]
    # The deployment's mode becomes another: it is what an address gets that names none, and nothing else.
    modes: tuple[Mode, ...] = ("single", "cross", "common")
    for mode in modes:
        monkeypatch.setattr(services(), "settings", replace(services().settings, addresses_mode=mode))
        fresh = make(shop, coin=native)
        assert fresh["mode"] == ("common" if mode == "cross" and not evm else mode)
    assert [each["mode"] for each in addresses] == [shop.get(f"/v1/addresses/{a['id']}")["mode"] for a in addresses]
    for each in addresses[len(singles) :]:
        assert {pair for pair in shown(shop, each) if pair[0] == slug} == {*slugs[slug], *((slug, name) for name in later)}
    assert [list(shown(shop, each)) for each in singles] == [[(slug, coin)] for coin in made_for]

    # Whatever its mode, what arrives in any coin is the merchant's: no coin is lost for the address that it came to.
    coins = [native, *tokens[:1], *later]
    paid = [(each, coin) for each in (singles[0], addresses[-1]) for coin in coins]
    for each, coin in paid:
        shop.pay(each["address"], "2", coin)
    scanned(shop)
    assert {coin: shop.available(coin) for coin in coins} == dict.fromkeys(coins, "4")
    assert shown(shop, singles[0]) == {(slug, native): "2"}
    listed = shop.get(f"/v1/transactions/address/{singles[0]['address']}")["data"]
    assert {row["coin"] for row in listed} == set(coins)
    assert {coin for (_, coin), units in shown(shop, addresses[-1]).items() if units == "2"} == set(coins)
    assert audit(services().store) == []


def scanned(*shops: Shop) -> None:
    """What was paid is in deep blocks, and the polls have seen it twice: found, then credited."""
    for shop in shops:
        shop.mine(shop.realm_network().confirmations)
    polls = tuple(f"poll_{shop.network}" for shop in shops)
    for _ in range(2):
        shops[0].stack.drain(only=polls, rounds=1)


def test_a_cross_address_receives_on_every_network(stack: Stack) -> None:
    """On networks too that were not the one it was asked for."""
    shop = Shop(stack)
    made = make(shop, mode="cross")
    others = [Shop(stack, network=slug) for slug in EVM]
    for other in others:
        other.pay(made["address"], "3", other.realm_network().symbol.lower())
    scanned(*others)
    assert [other.available(other.realm_network().symbol.lower()) for other in others] == ["3"] * 5
    assert sorted(units for units in shown(shop, made).values() if units != "0") == ["3"] * 5
