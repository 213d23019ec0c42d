"""Deposits of a simulated shop that are collected: the operator's settings, payments, and polls."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.treasury.moves import Move
from chalicelib.wiring import services
from tests.support.shop import Shop


def settings(shop: Shop, coin: str, **wanted: Any) -> None:
    body = {"coin": coin, "network": shop.network, **wanted}
    answer = shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_test"], json=body)
    assert answer.status == 200, answer.body


def listed(shop: Shop, **query: Any) -> list[Any]:
    answer = shop.stack.call("GET", "/v1/collections", shop.stack.keys["admin_test"], query=query)
    assert answer.status == 200, answer.body
    return list(answer.json["data"])


def only(shop: Shop, **query: Any) -> Any:
    (found,) = listed(shop, **query)
    return found


def pay(shop: Shop, amount: str, coin: str = "usdt", address: str | None = None) -> str:
    """A deposit, credited, and what follows from that; the address."""
    address = address or shop.invoice(amount, coin)["address"]
    shop.pay(address, amount, coin)
    shop.mine()
    go(shop, 2)
    return address


def go(shop: Shop, rounds: int = 1) -> None:
    """The poll and the queues, so often: nobody waits for a round in which nothing happens."""
    only = (f"poll_{shop.network}", "relay", "payout", "collect")
    shop.stack.drain(only=only, hurry=True, rounds=rounds)


def settle(shop: Shop, times: int = 1) -> None:
    """What is signed is final, and what follows from it is sent."""
    for _ in range(times):
        shop.mine()
        go(shop)


def later(shop: Shop, seconds: int) -> None:
    shop.wait(seconds)
    go(shop)


def moves(kind: str) -> list[Move]:
    return sorted((m for m in services().store.every(Move) if m.kind == kind), key=lambda m: m.created_at)
