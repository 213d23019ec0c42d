"""One outgoing transaction of each kind on simulated account networks, as far as it waits for clocks and queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from infra.cli import main
from tests.support.rotation import replaced
from tests.support.shop import Shop, decide
from tests.support.slots import add_slot, fund
from tests.support.stack import Stack
from tests.support.treasury import cold, paid_address, plan, register


@dataclass
class Scene:
    """The places that money may be at, and one thing that is about to happen."""

    shop: Shop
    collector: str = ""
    far: str = ""
    bare: Any = None
    fed: Any = None
    """Deposit addresses with tokens, without and with coins for their fee."""
    rounds: int = 2

    def plan(self, kind: Any, coin: str, source: Any, to: str, amount: str) -> None:
        plan(self.shop, kind, coin, source, to, amount)

    def begun(self, kind: str) -> Scene:
        """A copy in which one of `KINDS` waits for clocks and queues. Stakes are on tron."""
        other = replace(self)
        if kind == "stake":
            other.shop = Shop(self.shop.stack, network="tron")
            other.shop.turn()
        KINDS[kind](other)
        return other


def payout(scene: Scene) -> None:
    scene.shop.withdraw("0.25")
    scene.shop.withdraw("5", "usdt")


def slot_payout(scene: Scene) -> None:
    """Of three slots, so that whichever of them is asked for, some payment is another's than the first's."""
    shop = scene.shop
    for slot in (1, 2):
        address = add_slot(shop, slot)
        fund(shop, address, "1", "eth")
        fund(shop, address, "10", "usdt")
    payout(scene)


def topup(scene: Scene) -> None:
    scene.plan("topup", "eth", scene.shop.hot().address, scene.bare.address, "0.01")


def sweep(scene: Scene) -> None:
    scene.plan("sweep", "usdt", scene.fed, scene.collector, "5")


def distribution(scene: Scene) -> None:
    scene.plan("distribution", "usdt", scene.collector, scene.shop.hot().address, "3")


def cold_move(scene: Scene) -> None:
    scene.plan("cold", "eth", scene.shop.hot().address, scene.far, "1")


def drain(scene: Scene) -> None:
    """Tokens, then what is left for fees: planned by the poll, which is cut as well."""
    replaced(scene.shop, "collector")
    scene.rounds = 3


def filler(scene: Scene) -> None:
    """On the nonce of a payment that no block takes."""
    stuck = scene.shop.withdraw("0.25")
    decide(scene.shop, stuck, "stick")
    scene.shop.turn()
    words = ["--stage", "local", "fill-nonces", "--realm", "test", "--network", "ethereum", "--over", stuck, "--reason", "stuck"]
    assert main(words) == 0


def stake(scene: Scene) -> None:
    body = {"amount": "1000", "resource": "ENERGY"}
    answer = scene.shop.stack.call("POST", "/v1/networks/tron/stake", scene.shop.stack.keys["admin_test"], json=body)
    assert answer.status == 201


KINDS: dict[str, Callable[[Scene], None]] = {
    each.__name__: each for each in (payout, slot_payout, topup, sweep, distribution, cold_move, drain, filler, stake)
}


def opened(stack: Stack, *credits: tuple[str, str]) -> Scene:
    """On ethereum, with something at every place."""
    shop = Shop(stack)
    shop.open(*(credits or (("1", "eth"),)))
    scene = Scene(shop, register(shop, "collector"), cold(shop))
    scene.bare, scene.fed = (paid_address(shop, "5", "usdt") for _ in range(2))
    plan(shop, "topup", "eth", shop.hot().address, scene.fed.address, "0.01")
    for amount, coin in (("3", "usdt"), ("0.01", "eth")):
        shop.pay(scene.collector, amount, coin)
    shop.turn()
    shop.mine()
    shop.turn()
    return scene
