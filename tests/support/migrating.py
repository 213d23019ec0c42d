"""Stores in the form of a version without rows of blocks, their migration, and what happens beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.domain.chain import DepositBlock, Migrated
from chalicelib.domain.webhooks.leases import SweepCursor
from chalicelib.usecases.ports.changes import Delete
from chalicelib.usecases.recovery.deposit_migration import PROGRESS, DepositMigration, Migration
from chalicelib.wiring import services
from tests.support.cuts import Cutter


def lose_rows() -> None:
    """As an older version leaves its blocks: it keeps no rows of them."""
    store = services().store
    for row in list(store.every(DepositBlock)):
        store.commit([Delete(DepositBlock, {"network": row.network, "number": str(row.number), "hash": row.hash})])


def as_before() -> None:
    """The store as that version left it; nothing was migrated."""
    lose_rows()
    store = services().store
    for note in list(store.every(Migrated)):
        store.commit([Delete(Migrated, {"network": note.network, "name": note.name})])
    if store.get(SweepCursor, id=PROGRESS) is not None:
        store.commit([Delete(SweepCursor, {"id": PROGRESS})])


def migrate(told: list[str], **how: Any) -> Migration:
    """As a deploy does; `told` gets its lines."""
    wired = services()
    networks = [network for realm in ("live", "test") for network in wired.catalogue(realm).networks.values()]
    return DepositMigration(networks, lambda _: None, wired.store, wired.clock).run(told.append, **how)


class Meanwhile(Cutter):
    """In the place of a failure something happens before the call, by others."""

    def happens(self, act: Callable[[], object]) -> None:
        """`act` is what happens, once."""
        self.act = act

    def _fail(self, error: Exception) -> None:
        if self.fired:  # it has happened, and the call has had its effect
            return
        self.fired, self.armed = True, False
        self.act()
        self.armed = True
