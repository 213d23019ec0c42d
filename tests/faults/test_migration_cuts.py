"""A migration dies at any call and goes on behind the last page that it had done. What runs beside it: test_migration_beside.py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.chain import DepositBlock, Migrated
from chalicelib.domain.webhooks.leases import SweepCursor
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.recovery import deposit_migration
from chalicelib.usecases.recovery.deposit_migration import OLD_CALLS, PROGRESS
from chalicelib.wiring import services
from tests.support.cuts import Cutter, Died, When, install
from tests.support.migrating import as_before, lose_rows, migrate
from tests.support.shop import Shop
from tests.support.stack import Stack

EACH = 1 if os.environ.get("SWEEP") == "full" else 5
"""One in so many calls is cut."""


@pytest.fixture
def shop(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Deposits in five blocks, as a version left them that had no rows of blocks."""
    shop = Shop(stack)
    for _ in range(5):
        shop.pay(shop.invoice("1")["address"], "1")
        shop.mine(1)
    shop.turn()
    as_before()
    monkeypatch.setattr(deposit_migration, "PAGE", 4)
    yield shop


def made() -> tuple[set[Any], set[Any]]:
    store = services().store
    blocks = {(each.network, each.number, each.hash) for each in store.every(DepositBlock)}
    return blocks, {(each.network, each.name) for each in store.every(Migrated)}


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.sweep)])
def test_it_goes_on_after_a_cut_at_any_call(shop: Shop, when: When, monkeypatch: pytest.MonkeyPatch) -> None:
    cutter = Cutter()
    install(cutter, monkeypatch)
    token = shop.stack.snapshot()
    whole: list[str] = []
    found = migrate(whole)
    wanted = made()
    assert found.blocks == len(wanted[0]) > 5
    assert len(whole) > 5
    at = 0
    while True:
        at += EACH
        shop.stack.restore(token)
        cutter.set(at, "death", when)
        told: list[str] = []
        try:
            with cutter.arm():
                migrate(told)
        except Died:
            pass  # a fresh process begins
        if not cutter.fired:
            break
        stored = services().store.get(SweepCursor, id=PROGRESS)
        again: list[str] = []
        migrate(again)
        assert made() == wanted
        if stored is not None and stored.places[0]:
            assert "goes on behind" in again[0]
            assert len(told) + len(again) <= len(whole) + 2, "only the page of the cut is done twice"
        cursor = services().store.get(SweepCursor, id=PROGRESS)
        assert cursor is not None and cursor.places == ("", "0", "{}", "done"), "the next deploy does not run it"
    assert at > 20


def test_it_is_run_once_until_an_older_version_has_run(shop: Shop) -> None:
    store, waited = services().store, list[float]()
    wanted = migrate([]).blocks
    lose_rows()
    told: list[str] = []
    again = migrate(told)
    assert (again.ran, again.blocks, told) == (False, 0, [])
    assert migrate([], again=True).blocks == wanted
    lose_rows()
    for _ in range(2):
        deposit_migration.reopen(store)

    def cut(seconds: float) -> None:
        raise Died

    with pytest.raises(Died):
        migrate([], wait=cut)
    assert migrate([], wait=waited.append).blocks == wanted, "a run that was cut while it waited waits again"
    assert waited == [OLD_CALLS]
    assert not migrate([]).ran

    class Meanwhile(list[str]):
        """A run that goes on beside a rollback and the deploy behind it."""

        def append(self, line: str) -> None:
            super().append(line)
            deposit_migration.reopen(store)

    told = Meanwhile()
    with pytest.raises(Conflict):
        migrate(told, again=True)
    assert len(told) == 1
    assert migrate([], wait=waited.append).ran


def test_what_is_left_is_told_and_not_tried_at_each_deploy(stack: Stack) -> None:
    """The places of a row that an older checkout stored are three."""
    store = services().store
    store.commit([Save(SweepCursor(PROGRESS, ("", "0", '{"live:bsc": 3}'), version=1))])
    first = migrate([])
    assert (first.ran, dict(first.left)) == (True, {"live:bsc": 3})
    second = migrate([])
    assert (second.ran, dict(second.left)) == (False, {"live:bsc": 3})
    third = migrate([], again=True)
    assert (third.ran, dict(third.left)) == (True, {})
