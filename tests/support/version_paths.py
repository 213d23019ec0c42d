"""Paths of money that two versions go side by side beside those of the fault sweeps: a refund, a collection, the archive."""

from __future__ import annotations

import importlib
from typing import Any

from chalicelib.domain.archive.payments import SAID_MS, ArchiveRound
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.refunds.refunds import Refund
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.changes import Delete
from chalicelib.wiring import services
from tests.support import versions
from tests.support.archive import AFTER_DAYS
from tests.support.cuts import Died
from tests.support.paths import CONFIRMATIONS, ETHER, Step, be_paid, funded
from tests.support.world import NETWORK, OUT, World

DAY_MS = 86_400_000
MINUTES = 16
"""How long a collection may take: what failed is looked at again after a minute, then ever more rarely."""
COLLECTING = {"collectable", "collection", "move"}
"""The kinds of work of a collection."""


def give_back(world: World) -> None:
    """A quarter ether to an address, as far as the broadcast."""
    body = {"mode": "same", "amount": "0.25", "address": OUT}
    made = world.request("POST", f"/v1/invoices/{world.memo['invoice']}/refunds", body, "refund")
    assert made.status == 201, made.body
    world.run()
    world.sweep()
    world.settle_payouts()
    assert paid_back() == ETHER // 4


def confirm_refund(world: World) -> None:
    world.mine(CONFIRMATIONS)
    world.run()
    world.settle()
    assert [(w.status, w.amount) for w in services().store.every(Withdrawal)] == [("confirmed", ETHER // 4)]
    assert [refund.status for refund in services().store.every(Refund)] == ["claimed"]
    assert (world.available("eth"), paid_back()) == ("1.75", ETHER // 4)


def paid_back() -> int:
    return services().reader(services().catalogue("test").networks[NETWORK]).balance(OUT)


def ask_to_collect(world: World) -> None:
    """The operator has USDT collected; 500 of it are paid in, and no block takes what collects it yet."""
    admin = world.stack.keys["admin_test"]
    asked: dict[str, Any] = {"coin": "usdt", "network": NETWORK, "collectThreshold": "0"}
    assert world.stack.call("PUT", "/v1/coins", admin, json=asked).status == 200
    world.reborn()  # a function goes by its catalogue for 30 seconds, and payments that it credits then are found by the comparison
    body = {"currency": "usdt", "amount": "500", "network": NETWORK}
    made = world.request("POST", "/v1/invoices", body, "collected")
    world.pay_in(made.json["address"], "usdt", 500_000_000)
    world.mine(CONFIRMATIONS)
    world.run()
    world.later()
    world.run()


def collect(world: World) -> None:
    """Blocks and a minute at a time, until nothing is left to collect. Each move is made once."""
    for _ in range(MINUTES):
        world.mine(CONFIRMATIONS)
        world.run()
        world.settle_payouts()
        if {found.state for found in services().store.every(Collection)} == {"swept"}:
            break
        world.sweep()
    assert {found.state for found in services().store.every(Collection)} == {"swept"}
    swept = [move.units for move in services().store.every(Move) if (move.kind, move.state) == ("sweep", "settled")]
    assert sum(swept) == sum(found.arrived for found in services().store.every(Collection))
    assert 500_000_000 in swept
    assert [move.state for move in services().store.every(Move) if move.kind == "topup"] == ["settled"] * len(swept)
    assert not {work.kind for work in services().store.every_work()} & COLLECTING


def a_year_later(world: World) -> None:
    world.shift += (AFTER_DAYS + 2) * DAY_MS
    services().clock.shift_ms = world.shift
    world.mine(1)
    world.run()


def archive(world: World) -> None:
    """Whole rounds, begun and ended by the archive's function; then both versions read what lies there. What fails in one is
    archived by that of the next day."""
    services().store.commit([Delete(ArchiveRound, {"realm": "test"})])
    for pause in (SAID_MS, SAID_MS, DAY_MS, SAID_MS, SAID_MS, DAY_MS):
        try:
            with world.cutter.arm():
                world.stack.drain(only=("archive",), failures="count", rounds=1)
        except Died:
            world.reborn()
        world.shift += pause
        services().clock.shift_ms = world.shift
    store = services().store
    kept = [d.id for d in store.every(Deposit) if not store.whole([(Deposit, {"id": d.id})])[0]]
    assert len(kept) == 1
    assert (world.invoice()["status"], world.available("eth")) == ("completed", "2")


def read_by_next(version: versions.Version, world: World) -> Any:
    """The invoice as the next version reads it."""
    (found,) = (one for one in services().store.every(Invoice) if one.id == world.memo["invoice"])
    with version.active():
        kind = importlib.import_module("chalicelib.domain.invoices.invoices").Invoice
        return importlib.import_module("chalicelib.wiring").services().store.get(kind, tenant=found.tenant, id=found.id)


MORE_PATHS: dict[str, tuple[Step, ...]] = {
    "refund": (give_back, confirm_refund),
    "collection": (ask_to_collect, collect),
    "archive": (a_year_later, archive),
}
MORE_BEFORE: dict[str, Step] = {"refund": be_paid, "collection": funded, "archive": be_paid}
