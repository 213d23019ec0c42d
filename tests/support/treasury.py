"""Moves between our own places, planned by a test as the treasury would, on a shop's network."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from chalicelib.domain.addresses.addresses import Address, Role, Wallet
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.ids import network_parts
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.money import parse_units
from chalicelib.domain.treasury.moves import Move, MoveKind, move_id
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.treasury.moves.planning import planned
from chalicelib.wiring import services
from tests.support.shop import Shop

_numbers = count(1)
COLD = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"  # EIP-55's own example


def register(shop: Shop, role: str, **body: Any) -> str:
    """A service wallet, registered through the API; its address."""
    key = shop.stack.keys["admin_test"]
    sent = {"network": shop.network, "type": role, **body}
    made = shop.stack.call("POST", "/v1/addresses/service-wallets", key, json=sent)
    assert made.status == 201, made.body
    return str(made.json["address"])


def cold(shop: Shop) -> str:
    return register(shop, "cold", address=COLD)


def paid_address(shop: Shop, amount: str, coin: str) -> Address:
    """A deposit address with a credited payment on it."""
    invoice = shop.invoice(amount, coin)
    shop.pay(invoice["address"], amount, coin)
    shop.mine()
    shop.turn()
    return address_of(invoice["address"])


def address_of(text: str) -> Address:
    (found,) = (a for a in services().store.every(Address) if a.address == text)
    return found


def plan(shop: Shop, kind: MoveKind, coin: str, source: Address | str, recipient: str, amount: str, *, bare: bool = False) -> str:
    """Plan a move of `amount` coin units; its id. Nothing of it is done yet."""
    found = shop.coin(coin)
    return plan_units(found, kind, source, recipient, parse_units(amount, found.decimals), bare=bare)


def plan_units(coin: Coin, kind: MoveKind, source: Address | str, recipient: str, amount: int, *, bare: bool = False) -> str:
    """The same, in units of `coin`, on its network."""
    wired, owner = services(), f"test {next(_numbers)}"
    news = News(wired.clock_of(network_parts(coin.network)[0]).now_ms())
    move = Move(
        id=move_id(owner, kind, 1), network=coin.network, kind=kind, asset=coin.asset, contract=coin.contract,
        source=source if isinstance(source, str) else source.address, path=None if isinstance(source, str) else source.path,
        recipient=recipient, amount=amount, owner=owner, created_at=news.at, updated_at=news.at, bare=bare,
    )  # fmt: skip
    wired.store.commit([*planned(news, move), *news.emit()])
    return move.id


def move_of(shop: Shop, id_: str) -> Move:
    found = services().store.get(Move, network=shop.realm_network().id, id=id_)
    assert found is not None
    return found


def altered(shop: Shop, id_: str, **changes: Any) -> None:
    """Somebody has written into the table."""
    before = move_of(shop, id_)
    services().store.commit([Save(replace(before, **changes, version=before.version + 1))])


def wallet(shop: Shop, role: Role) -> Wallet:
    found = services().store.get(Wallet, network=shop.realm_network().id, role=role)
    assert found is not None
    return found


def booked(shop: Shop, address: str, coin: str) -> int:
    """Units that the ledger has at an address."""
    network = shop.realm_network()
    place = services().rules.storage_form(network.slug, address)
    found = services().store.get(WalletBalance, network=network.id, address=place, asset=shop.coin(coin).asset)
    return 0 if found is None else found.units


def same(shop: Shop, address: str, coin: str) -> int:
    """Units at an address, by the ledger and by the chain, which agree."""
    units = booked(shop, address, coin)
    assert units == shop.paid(address, coin)
    return units
