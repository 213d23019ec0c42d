"""Steps that no merchant asks for: reorganisations, rescans, what clocks do when nothing is due, a replaced wallet, strays."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal

import pytest

from chalicelib.domain.addresses.addresses import RetiredWallet
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.catalogue.rates import Pair, Quote
from chalicelib.usecases.ports.queues import COMPARISON_VERSION
from chalicelib.wiring import services
from chalicelib.wiring.catalogue import CatalogueWiring
from chalicelib.workers import compare
from tests.bench.checkout_steps import addressed, approved, chosen, deadlines, keys, linked, retried
from tests.bench.further_steps import Group, completed
from tests.bench.walk import SETTLED, Walk
from tests.support.rotation import replaced
from tests.support.shop import ETHER, THIRST, Shop
from tests.support.slots import add_slot
from tests.support.treasury import booked, cold, plan

DAY = 86_400
DEPTH = 3


def reorganised(walk: Walk) -> None:
    """The last blocks are replaced, in the lowest of which a payment was: it comes again, and falls out then."""
    invoice = walk.ask("POST", "/invoices", {"currency": walk.coin, "network": walk.network, "amount": walk.amount()})
    walk.pay(invoice["address"], walk.coin, walk.amount())
    walk.mine(DEPTH - 1)
    walk.idle()
    for depth, name, remine, status in ((DEPTH, "comes again", True, "confirming"), (DEPTH + 1, "falls out", False, "pending")):
        walk.ask("POST", "/sandbox/reorg", {"network": walk.network, "depth": depth, "remine": remine})
        walk.poll(f"{depth} blocks are replaced, a payment {name}")
        found = walk.ask("GET", f"/invoices?id={invoice['id']}")
        assert found["status"] == status, found
        walk.idle()
    walk.wait(7_200)
    walk.idle()


def rescanned(walk: Walk) -> None:
    completed(walk)
    network = NetworkId(f"test:{walk.network}")
    cursor = services().store.get(Cursor, network=network)
    assert cursor is not None
    body = {"fromBlock": cursor.number - 20, "toBlock": cursor.number}
    path = f"/networks/{walk.network}/rescan"
    asked = walk.step("order a rescan", lambda: walk.ask("POST", path, body, "admin_test"))
    walk.poll("20 blocks with a payment are scanned again")
    found = walk.step("read a rescan", lambda: walk.ask("GET", f"{path}/{asked['id']}", key="admin_test"))
    assert found["status"] == "completed", found


class Provider:
    """Says that a coin is worth a dollar."""

    name = "steps"

    def quotes(self, wanted: Collection[Pair], now_ms: int) -> list[Quote]:
        return [Quote(coin, fiat, Decimal(1), now_ms) for coin, fiat in wanted]


def clocks(walk: Walk) -> None:
    """What schedules cost when nothing is due, and what rates and a day's comparison do."""
    walk.fire("housekeeping")
    walk.step("housekeeping: nothing is due", lambda: walk.fire("housekeeping"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CatalogueWiring, "rate_providers", [Provider()])
        walk.wait(60)
        walk.step("rates: every coin's rate is new", lambda: walk.fire("rates"))
    walk.step("reconciliation: nothing is due", lambda: walk.fire("reconciliation"))
    walk.wait(DAY)
    walk.step("reconciliation: every network is due", lambda: walk.fire("reconciliation"))
    about = {"version": COMPARISON_VERSION, "realm": "test", "network": walk.network}
    compare.handle(json.dumps(about))  # how many pages it reads depends on the hashes of random addresses: not counted
    walk.step("compare: a network that was compared", lambda: compare.handle(json.dumps(about)))
    walk.fire("compare")


def rotated(walk: Walk) -> None:
    """Another hot wallet in the place of one, which is drained."""
    shop = Shop(walk.stack)
    old = shop.hot().address
    replaced(shop)
    walk.poll("a replaced wallet is found")
    walk.told("a replaced wallet is found")
    walk.step("payout: a replaced wallet is drained", lambda: walk.fire("payout", "collect"))
    walk.mine(walk.confirmations)
    walk.poll("a drain is settled")
    walk.told("a drain is settled")
    for _ in range(4):
        walk.mine(SETTLED // 2)
        walk.idle()
    found = services().store.get(RetiredWallet, network=NetworkId(f"test:{walk.network}"), address=old)
    assert found is not None and found.drained_at is not None, found


def strayed(ethereum: Walk) -> None:
    """A payment on a network that its address does not receive on goes back to its sender."""
    address = ethereum.ask("POST", "/addresses", {"network": "ethereum", "mode": "common"})["address"]
    walk = replace(ethereum, network="polygon", coin="usdt", confirmations=20)
    body = {"address": address, "network": walk.network, "coin": walk.coin, "amount": "5"}
    txid = walk.ask("POST", "/sandbox/deposits", body)["data"]["txid"]
    walk.mine(walk.confirmations)
    walk.idle()
    asked = {"network": walk.network, "txid": txid}
    read = walk.step("read a stray payment", lambda: walk.ask("POST", "/stray-payments", asked, "admin_test"))["data"]
    (payment,) = read["payments"]
    path, to = f"/stray-payments/{payment['id']}/return", {"address": walk.payee}
    walk.step("return a stray payment", lambda: walk.ask("POST", path, to, "admin_test"))
    walk.poll("a stray payment is credited")
    walk.poll("a stray payment is ordered back")
    walk.told("a stray payment is ordered back")
    walk.step("payout: a stray payment", lambda: walk.fire("payout"))
    walk.mine(walk.confirmations)
    walk.poll("a stray payment's return is settled")
    (shown,) = walk.ask("GET", f"/stray-payments?id={payment['id']}", key="admin_test")["data"]
    order = walk.ask("GET", f"/withdrawals/{shown['withdrawalId']}", key="admin_test")["data"]
    assert order["status"] == "confirmed", order
    walk.mine(SETTLED)
    walk.idle()


def slotted(walk: Walk) -> None:
    """A withdrawal that is larger than each hot wallet waits for a move between them."""
    shop = Shop(walk.stack)
    first, second = shop.hot().address, second_hot(shop)
    for wallet in (first, second):
        walk.pay(wallet, walk.coin, "2")
    excess = booked(shop, first, walk.coin) - 2 * ETHER
    if excess > ETHER:
        plan(shop, "cold", walk.coin, first, cold(shop), str(Decimal(excess) / ETHER))
    body = {"currency": walk.coin, "network": walk.network, "amount": "100"}
    walk.pay(walk.ask("POST", "/invoices", body)["address"], walk.coin, "100")
    walk.mine(walk.confirmations)
    walk.idle()
    walk.mine(walk.confirmations)
    walk.idle()
    least, most = sorted(booked(shop, hot.address, walk.coin) for hot in hot_wallets(services().store, shop.realm_network().id))
    asked = shop.withdraw(str(Decimal(most + least // 2) / ETHER))
    walk.fire("relay")
    walk.step("payout: no slot has enough", lambda: walk.fire("payout"))
    walk.poll("a move between slots is planned")
    walk.told("a move between slots is planned")
    walk.step("payout and collect: a move between slots", lambda: walk.fire("payout", "collect"))
    walk.mine(walk.confirmations)
    walk.poll("a move between slots is settled")
    walk.wait(THIRST)
    walk.step("housekeeping: a withdrawal waited for a slot", lambda: walk.fire("housekeeping"))
    walk.idle()
    walk.mine(SETTLED)
    walk.idle()
    assert shop.withdrawal(asked)["status"] == "confirmed", shop.withdrawal(asked)


def second_hot(shop: Shop) -> str:
    """The address of the wallet in slot 1."""
    there = [hot.address for hot in hot_wallets(services().store, shop.realm_network().id) if hot.slot == 1]
    return there[0] if there else add_slot(shop, 1)


def rare(walk: Walk) -> None:
    """What payers, merchants and clocks do beside the main paths."""
    addressed(walk)
    chosen(walk)
    linked(walk)
    deadlines(walk)
    retried(walk)
    keys(walk)
    approved(walk)
    reorganised(walk)
    rescanned(walk)
    clocks(walk)
    strayed(walk)


RARE: tuple[Group, ...] = ((rare, {}), (slotted, {}), (rotated, {}))
"""Of the last two each changes the wallets that the next walk finds, and so has a stack of its own."""
