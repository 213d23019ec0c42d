"""One record that nobody can work with is an alarm, and holds up nothing beside it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.scanning.rescans import Rescan, rescan_work
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.domain.work import Work
from chalicelib.usecases.base.retries import Each, Failures
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.ports.changes import Close, Conflict, Delete, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.wiring import services
from chalicelib.workers import housekeeping, poll
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def alarms(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR and "ALARM" in record.getMessage()]


def fails(run: Callable[[], object], *kinds: type[Exception]) -> None:
    with pytest.raises(Failures) as caught:
        run()
    assert sorted(type(error).__name__ for error in caught.value.exceptions) == sorted(kind.__name__ for kind in kinds)


def test_an_order_that_is_gone_stops_neither_other_payments_nor_deposits(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.credit("5")
    broken, sound = shop.withdraw("1"), shop.withdraw("1")
    shop.turn()
    order = shop.order(broken)
    services().store.commit([Delete(PaymentOrder, {"id": order.id})])
    invoice = shop.invoice("1")
    shop.pay(invoice["address"], "1")
    shop.mine()
    with pytest.raises(Failures) as failed:
        poll.run("ethereum")
    # Looked at before the scan, and behind it.
    assert {type(error) for error in failed.value.exceptions} == {LookupError}
    assert shop.record(sound).status == "confirmed"
    assert shop.status(invoice) == "completed"
    assert alarms(caplog)
    assert all(broken in alarm for alarm in alarms(caplog))
    assert any(record.exc_info for record in caplog.records if "ALARM" in record.getMessage())
    services().store.commit([Save(replace(order, version=1))])
    shop.turn()
    assert shop.record(broken).status == "confirmed"


def test_a_deposit_and_an_invoice_that_fail_hold_up_nobody(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good, late = shop.invoice("1"), shop.invoice("1"), [shop.invoice("1", expiresIn=1800) for _ in range(2)]
    for invoice in (bad, good):
        shop.pay(invoice["address"], "1")
        shop.turn()
    shop.mine()
    shop.wait(1801)
    shop.mine(1)
    real, first = Deposits.confirm, []
    store, read, read_many = services().store, services().store.get, services().store.get_many

    def confirm(self: Deposits, network: Any, deposit: str, *more: Any) -> Any:
        first[:] = first or [deposit]
        if deposit in first:
            raise KeyError("a record that lacks a field")
        return real(self, network, deposit, *more)

    def get(kind: type[Any], **key: str) -> Any:
        if kind is Invoice and key["id"] == late[0]["id"]:
            raise KeyError("a record that lacks a field")
        return read(kind, **key)

    def get_many(wanted: Sequence[tuple[type[Any], Mapping[str, str]]]) -> Any:
        if any(kind is Invoice and key["id"] == late[0]["id"] for kind, key in wanted):
            raise KeyError("a record that lacks a field")
        return read_many(wanted)

    monkeypatch.setattr(Deposits, "confirm", confirm)
    monkeypatch.setattr(store, "get", get)
    monkeypatch.setattr(store, "get_many", get_many)
    fails(lambda: poll.run("ethereum"), KeyError, KeyError)
    monkeypatch.undo()
    assert sorted(shop.status(invoice) for invoice in (bad, good)) == ["completed", "confirming"]
    assert [shop.status(invoice) for invoice in late] == ["pending", "expired"]
    assert len(alarms(caplog)) == 2
    shop.turn()
    assert shop.status(bad) == "completed"
    assert shop.status(late[0]) == "expired"


def test_a_rescan_that_is_gone_stops_no_other(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.mine(5)
    shop.turn()
    network = shop.realm_network()
    gone = Rescan("rsc_0", network.id, 1, 2, 1, 1)
    services().store.commit([Open(rescan_work(gone))])
    sound = services().rescans.order(network, 1, 3)
    fails(lambda: poll.run("ethereum"), LookupError)
    assert services().rescans.get(network.id, sound.id).done
    assert [alarm for alarm in alarms(caplog) if "rsc_0" in alarm]
    services().store.commit([Close(rescan_work(gone))])


def test_a_batch_that_is_gone_stops_no_housekeeping(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    network = shop.realm_network()
    gone = Work("batch", network.id, f"{1:015d}", "merchant|bat_0")
    services().store.commit([Open(gone)])
    shop.credit("2")
    withdrawal = shop.withdraw("1")
    shop.messages("payout").clear()
    shop.wait(3600)
    fails(housekeeping.run, LookupError)
    assert any("bat_0" in alarm for alarm in alarms(caplog))
    services().store.commit([Close(gone)])
    shop.turn()
    assert shop.record(withdrawal).status in ("confirming", "broadcasting")


def test_two_polls_undo_the_same_settlement(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one reads an order that the first has just put back: it has nothing left to do, and nothing is broken."""
    shop.credit("3")
    withdrawal = shop.withdraw("1")
    shop.turn()
    shop.mine()
    shop.turn()
    assert shop.record(withdrawal).status == "confirmed"
    shop.reorg(14)
    store, read, raced = services().store, services().store.get, []

    def get(kind: type[Any], **key: str) -> Any:
        if kind is PaymentOrder and not raced:
            raced.append(key)
            services().settlement(shop.realm_network()).watch_settled(lambda: True)
        return read(kind, **key)

    monkeypatch.setattr(store, "get", get)
    services().settlement(shop.realm_network()).watch_settled(lambda: True)
    assert raced
    monkeypatch.undo()
    assert shop.record(withdrawal).status == "confirming"
    shop.turn()
    shop.mine()
    shop.turn()
    assert shop.record(withdrawal).status == "confirmed"


def test_what_goes_wrong_is_told_once_and_raised_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    taken: list[str] = []

    def step(name: str, error: Exception | None = None) -> Callable[[], None]:
        def take() -> None:
            taken.append(name)
            if error is not None:
                raise error

        return take

    def inner() -> None:
        with Each("inside") as each:
            each.take("broken", step("c", KeyError("x")))
            each.take("sound", step("d"))

    def outer() -> None:
        with Each("outside") as each:
            each.take("conflict", step("a", Conflict(None)))
            each.take("away", step("b", Unavailable("not now")))
            each.take("several", inner)
            each.take("last", step("e"))

    fails(outer, Unavailable, KeyError)
    assert taken == ["a", "b", "c", "d", "e"]
    assert alarms(caplog) == ["ALARM inside: broken failed and is left out"]
    with Each("nothing") as each:
        each.take("sound", step("f"))
    with pytest.raises(ValueError, match="the loop itself"), Each("the loop") as each:
        each.take("broken", step("g", KeyError("y")))
        raise ValueError("the loop itself")
