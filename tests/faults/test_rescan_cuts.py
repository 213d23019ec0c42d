"""A rescan that dies after each of its writes: what it has to find is credited once, and it ends.

Dying before a write leaves what dying after the one before it leaves: the same runs. Every third write, and the last; with
`SWEEP=full` every one.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.cuts import Cutter, install
from tests.support.stack import Stack
from tests.support.world import NETWORK, OUT, World

NETWORK_ID = NetworkId(f"test:{NETWORK}")
READS = ("Get", "Query", "BatchGet", "TransactGet")


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch) -> Cutter:
    made = Cutter()
    install(made, monkeypatch)
    return made


def missed(stack: Stack, cutter: Cutter, key: str) -> World:
    """A token was paid twice, in two parts of a range, before it became a coin of ours."""
    world = World(stack, cutter)
    made = world.request("POST", "/v1/addresses", {"network": NETWORK}, "address")
    chain = services().simulated(NETWORK_ID)
    for units in (5_000_000, 2_000_000):
        chain.deposit(made.json["address"], OUT, units)
        chain.mine(12)
    world.run()
    services().store.commit([Save(Coin(NETWORK_ID, "late", "LATE", "Late Token", 6, OUT))])
    services().store.forget_catalogue()
    tip = services().store.get(Cursor, network=NETWORK_ID)
    assert tip is not None
    world.memo["tip"], world.memo["admin"] = str(tip.number), key
    return world


def rescan(world: World) -> None:
    world.key = world.memo["admin"]
    body = {"fromBlock": 0, "toBlock": int(world.memo["tip"])}
    made = world.request("POST", f"/v1/networks/{NETWORK}/rescan", body, "rescan")
    assert made.status == 201, made.body
    world.key = world.stack.keys["client_test"]
    world.run()


def finish(world: World) -> None:
    for _ in range(2):
        world.stack.drain(only=(f"poll_{NETWORK}",))
    assert world.available("late") == "7"
    found = [d for d in services().store.every(Deposit) if d.asset == f"{NETWORK_ID}:late"]
    assert sorted((d.amount, d.status) for d in found) == [(2_000_000, "confirmed"), (5_000_000, "confirmed")]
    (done,) = services().store.every(Rescan)
    assert done.status == "completed"
    assert audit(services().store) == []


def test_a_rescan_may_die_at_any_write(
    stack: Stack,
    cutter: Cutter,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr("chalicelib.usecases.scanning.reorganisations.BATCH_BLOCKS", 20)
    monkeypatch.setattr("tests.support.world.HANDLERS", (f"poll_{NETWORK}",))
    world = missed(stack, cutter, stack.keys["admin_test"])
    start, memo = stack.snapshot(), dict(world.memo)
    cutter.set(0, "death", "after")
    rescan(world)
    finish(world)
    cuts = [n for n, name in enumerate(cutter.trace, 1) if not name.startswith(READS)]
    assert len(cuts) > 6
    if os.environ.get("SWEEP") != "full":
        cuts = sorted({*cuts[::3], cuts[-1]})
    for at in cuts:
        stack.restore(start)
        broken = world.again(memo)
        cutter.set(at, "death", "after")
        try:
            rescan(broken)
            finish(broken)
        except AssertionError as error:
            raise AssertionError(f"died after call {at} ({cutter.trace[at - 1]}): {error}") from error
        assert cutter.fired
    record_property("cut_points", len(cuts))
