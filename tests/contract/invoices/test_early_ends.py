"""An invoice that its credited payments complete waits for no clock; what falls out of the chain in time opens it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.versions import next_version
from chalicelib.usecases.invoices.invoices import expiry_work
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, Shop, open_shop
from tests.support.stack import Stack

HOUR = 3_700
DEEP = CONFIRMATIONS + 2


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def expiries() -> list[str]:
    return sorted(work.id.split("|")[1] for work in services().store.every_work() if work.kind == "expiry")


def stored(invoice: dict[str, Any]) -> Invoice:
    (found,) = (one for one in services().store.every(Invoice) if one.id == invoice["id"])
    return found


def completed(shop: Shop, amount: str = "1", paid: str = "1") -> dict[str, Any]:
    invoice = shop.invoice(amount)
    shop.pay(invoice["address"], paid)
    shop.mine()
    shop.turn()
    assert shop.status(invoice) == "completed"
    return invoice


def test_a_completed_invoice_leaves_nothing_to_the_clock(shop: Shop) -> None:
    invoice = completed(shop)
    told, before = shop.told(invoice["id"]), shop.shown(invoice)
    assert expiries() == []
    shop.wait(HOUR)
    shop.mine(1)
    shop.turn()
    assert (shop.told(invoice["id"]), shop.shown(invoice)) == (told, before)


def test_one_that_is_not_paid_enough_yet_waits(shop: Shop) -> None:
    partial, seen = shop.invoice("2"), shop.invoice("1")
    shop.pay(partial["address"], "1")
    shop.mine()
    shop.pay(seen["address"], "1")
    shop.turn()
    assert (shop.status(partial), shop.status(seen)) == ("partial", "confirming")
    assert expiries() == sorted((partial["id"], seen["id"]))


@pytest.mark.parametrize("again", [False, True], ids=["for good", "and comes again"])
def test_a_payment_that_falls_out_in_time_opens_it_again(shop: Shop, again: bool) -> None:
    invoice = completed(shop)
    shop.reorg(DEEP, remine=again)
    shop.mine(DEEP)
    shop.turn()
    if again:
        assert (shop.status(invoice), expiries()) == ("completed", [])
        return
    assert (shop.status(invoice), expiries()) == ("pending", [invoice["id"]])
    assert shop.told(invoice["id"])["invoice.reverted"] == 1
    shop.wait(HOUR)
    shop.mine(1)
    shop.turn()
    assert (shop.status(invoice), expiries()) == ("expired", [])
    assert shop.told(invoice["id"])["invoice.expired"] == 1


def test_one_that_falls_out_too_late_leaves_it_expired(shop: Shop) -> None:
    invoice = completed(shop)
    shop.wait(HOUR)
    shop.reorg(DEEP)
    shop.mine(DEEP)
    shop.turn()
    assert (shop.status(invoice), expiries()) == ("expired", [])
    assert shop.told(invoice["id"])["invoice.reverted"] == 1


def test_what_another_payment_completes_stays_so(shop: Shop) -> None:
    invoice = shop.invoice("1")
    shop.pay(invoice["address"], "1")
    shop.mine(3)
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    assert (shop.status(invoice), expiries()) == ("completed", [])
    shop.reorg(CONFIRMATIONS + 1)  # the second one alone
    shop.mine(DEEP)
    shop.turn()
    assert (shop.status(invoice), expiries(), stored(invoice).payments[0].confirmed) == ("completed", [], True)
    assert len(stored(invoice).payments) == 1


def test_work_that_is_open_still_is_not_opened_twice(shop: Shop) -> None:
    """As a version leaves it that closes nothing early: completed, and the clock still to come; or a late payment's end."""
    invoice = completed(shop)
    store, found = services().store, stored(invoice)
    store.commit([Save(replace(next_version(found), expired=False)), Open(expiry_work(found))])
    shop.reorg(DEEP)
    shop.mine(DEEP)
    shop.turn()
    assert (shop.status(invoice), expiries()) == ("pending", [invoice["id"]])
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    assert (shop.status(invoice), expiries()) == ("completed", [])
    found = stored(invoice)
    store.commit([Open(expiry_work(found))])
    shop.reorg(DEEP)
    shop.mine(DEEP)
    shop.turn()
    assert (stored(invoice).expired, expiries()) == (True, [invoice["id"]])
    shop.wait(HOUR)
    shop.mine(1)
    shop.turn()
    assert expiries() == []
