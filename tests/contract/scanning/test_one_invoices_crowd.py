"""Many payments to one invoice in one block: they are recorded one after the other, and others' beside them.

The chain is `tests.support.fake_coins`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.usecases.base import retries
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.scanning import recording, sharing
from chalicelib.wiring import services
from chalicelib.workers import poll
from tests.support.bundles import COIN, CONFIRMATIONS, Shop
from tests.support.sale import names

DUST, OTHERS = 40, 5
UNITS = COIN // 1000


class Invoices:
    """One invoice that is paid often, and others that are paid twice each, in one block."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        made = [shop.post("/v1/invoices", currency="ltc", amount="1", network="litecoin") for _ in range(1 + OTHERS)]
        self.crowded, self.others = made[0], [invoice["address"] for invoice in made[1:]]
        for address in [self.crowded["address"]] * DUST + self.others * 2:
            shop.chain.pay(address, UNITS)
        shop.chain.mine()

    def scan(self) -> int:
        with in_realm("live"):
            return services().scanner(services().catalogue("live").networks["litecoin"]).poll(lambda: True).number

    def rescan(self) -> None:
        with in_realm("live"):
            poll._rescan(services().catalogue("live").networks["litecoin"], lambda: True)

    def recorded(self, *addresses: str) -> int:
        return sum(deposit.address in addresses for deposit in services().store.every(Deposit))


@pytest.fixture
def invoices(begin: Callable[[], Shop]) -> Invoices:
    return Invoices(begin())


def test_no_two_workers_are_at_one_invoice(invoices: Invoices, monkeypatch: pytest.MonkeyPatch) -> None:
    store, lock, tried, lost = services().store, Lock(), list[Any](), list[Conflict]()
    commit, busy, most = store.commit, [0], [0]

    def slow(changes: Any) -> None:
        mine = any(isinstance(change, Save) and type(change.record) is Deposit for change in changes)
        with lock:
            busy[0] += mine
            most[0] = max(most[0], busy[0])
            tried.extend(changes[:1] if mine else ())
        time.sleep(0.01)  # a transaction's way there and back: others decide meanwhile
        try:
            commit(changes)
        except Conflict as conflict:
            lost.append(conflict)
            raise
        finally:
            with lock:
                busy[0] -= mine

    monkeypatch.setattr(store, "commit", slow)
    assert invoices.scan() == invoices.shop.chain.tip()
    assert invoices.recorded(invoices.crowded["address"]) == DUST and invoices.recorded(*invoices.others) == 2 * OTHERS
    assert lost == [] and len(tried) == DUST, (
        "the others' first payments go with the first of the crowd, their second with its second"
    )
    monkeypatch.undo()
    invoices.shop.chain.mine(CONFIRMATIONS)
    invoices.scan()
    invoices.shop.whole()


def test_other_invoices_are_recorded_side_by_side(invoices: Invoices, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = recording.in_lanes

    def counted(lanes: Any) -> None:
        assert all(len(lane) == 1 for lane in lanes), "a payment by itself is a lane of its own"
        sizes.append(len(lanes))
        real(lanes)

    monkeypatch.setattr(recording, "in_lanes", counted)
    monkeypatch.setattr(recording, "grouped", lambda members, *_: [[member] for member in members])
    invoices.scan()
    assert sizes == [1 + OTHERS, 1 + OTHERS, *[1] * (DUST - 2)]


def test_functions_are_asked_for_other_invoices_alone(invoices: Invoices, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crowd has more than a share: whoever got some of it would meet the poll there, for each payment."""
    monkeypatch.setattr(sharing, "FROM", 8)
    monkeypatch.setattr(sharing, "SHARE", 4)
    sent: list[dict[str, str]] = []
    monkeypatch.setattr(services().queues, "record", sent.append)
    invoices.scan()
    by_name = {(deposit.txid, deposit.position): deposit.address for deposit in services().store.every(Deposit)}
    asked = [[by_name[name] for name in names(share)] for share in sent]
    behind = invoices.others[2:]
    assert all(len(share) <= 4 for share in asked)
    assert sorted(address for share in asked for address in share) == sorted([*behind, *behind]), "whole, without the poll's own"


def held_up(invoices: Invoices, patch: pytest.MonkeyPatch) -> None:
    """Somebody else is always first at the crowded invoice."""
    store = services().store
    commit = store.commit

    def refused(changes: Any) -> None:
        for change in changes:
            if isinstance(change, Save) and isinstance(change.record, Invoice) and change.record.id == invoices.crowded["id"]:
                raise Conflict(change)
        commit(changes)

    patch.setattr(store, "commit", refused)
    patch.setattr(retries, "TRIES", 2)
    patch.setattr(retries.time, "sleep", lambda _: None)


def test_an_invoice_that_others_change_all_the_time_holds_up_nobody(invoices: Invoices) -> None:
    with pytest.MonkeyPatch.context() as patch:
        held_up(invoices, patch)
        assert invoices.scan() == invoices.shop.chain.tip(), "the block is passed"
        assert invoices.recorded(invoices.crowded["address"]) == 0 and invoices.recorded(*invoices.others) == 2 * OTHERS
        (ordered,) = services().store.every(Rescan)
        assert not ordered.done
        invoices.rescan()
        (ordered,) = services().store.every(Rescan)
        assert not ordered.done, "who looks again does not pass what is missing"
    invoices.rescan()
    assert invoices.recorded(invoices.crowded["address"]) == DUST
    assert [each.done for each in services().store.every(Rescan)] == [True]
    invoices.shop.chain.mine(CONFIRMATIONS)
    invoices.scan()
    invoices.shop.whole()
