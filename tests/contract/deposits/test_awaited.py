"""What a merchant awaits: summed in shards, beside what an earlier version of the service keeps on the balance."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.totals import InvoiceTotals, awaited_key
from chalicelib.domain.ledger import Balance
from chalicelib.domain.versions import next_version
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.usecases.base.awaited_deposits import with_awaited
from chalicelib.usecases.ports.changes import Add, Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.shop import ETHER, Shop, open_shop
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def balances() -> list[Balance]:
    return list(services().store.every(Balance))


def deposits() -> list[Deposit]:
    return list(services().store.every(Deposit))


def of_merchants() -> list[Deposit]:
    return [deposit for deposit in deposits() if deposit.tenant is not None]


def as_earlier(units: int) -> None:
    """Let the pending units of the only merchant stand where an earlier version keeps them."""
    (deposit,) = of_merchants()
    assert deposit.tenant is not None
    stored = services().store.get(Balance, tenant=deposit.tenant, asset=deposit.asset)
    balance = stored or Balance(deposit.tenant, deposit.asset)
    taken = Add(InvoiceTotals, awaited_key(deposit.tenant, deposit), {"awaited": -units})
    services().store.commit([Save(replace(next_version(balance), pending=balance.pending + units)), taken])


def pending_told() -> list[str]:
    """`pending` of each `balance.updated`, in order."""
    events = sorted(services().store.every(EventRecord), key=lambda event: event.id)
    return [json.loads(event.body)["data"]["pending"] for event in events if event.name == "balance.updated"]


def test_a_payment_that_is_seen_writes_no_balance(shop: Shop) -> None:
    invoice, other = shop.invoice("1"), shop.invoice("2")
    shop.pay(invoice["address"], "1")
    shop.pay(other["address"], "2")
    shop.mine(1)
    shop.turn()
    assert balances() == [], "two payments of one merchant meet at no item that has a version"
    assert shop.balance() == {"available": "0", "frozen": "0", "pending": "3"}
    assert audit(services().store) == []
    shop.mine()
    shop.turn()
    assert shop.balance() == {"available": "3", "frozen": "0", "pending": "0"}
    assert pending_told()[-1] == "0"
    assert [balance.pending for balance in balances()] == [0]


def test_events_tell_what_is_still_awaited(shop: Shop) -> None:
    shop.credit("1")
    shop.pay(shop.invoice("5")["address"], "5")
    shop.mine(1)
    shop.turn()
    shop.withdraw("0.25")
    shop.turn()
    assert (shop.balance()["pending"], pending_told()[-1]) == ("5", "5")


def test_what_falls_out_is_awaited_no_more(shop: Shop) -> None:
    shop.pay(shop.invoice("1")["address"], "1")
    shop.mine(1)
    shop.turn()
    assert shop.balance()["pending"] == "1"
    shop.reorg(2)
    shop.turn()
    assert shop.balance()["pending"] == "0"


def test_an_earlier_version_saw_it_and_we_credit_it(shop: Shop) -> None:
    shop.pay(shop.invoice("1")["address"], "1")
    shop.mine(1)
    shop.turn()
    as_earlier(ETHER)
    assert (shop.balance()["pending"], audit(services().store)) == ("1", [])
    shop.mine()
    shop.turn()
    assert shop.balance() == {"available": "1", "frozen": "0", "pending": "0"}
    assert [balance.pending for balance in balances()] == [ETHER], "the shard is as much below zero"
    (balance,) = balances()
    before = Balance(balance.tenant, balance.asset)
    assert with_awaited(services().store, before).pending == 0, "read before it was seen, the shards after it was credited"


def test_we_saw_it_and_an_earlier_version_credits_it(shop: Shop) -> None:
    """It takes the units from the balance, where none were put."""
    shop.pay(shop.invoice("1")["address"], "1")
    shop.mine(1)
    shop.turn()
    shop.mine()
    shop.turn()
    (deposit,) = of_merchants()
    assert deposit.tenant is not None
    (balance,) = balances()
    put_back = Add(InvoiceTotals, awaited_key(deposit.tenant, deposit), {"awaited": ETHER})
    services().store.commit([Save(replace(next_version(balance), pending=-ETHER)), put_back])
    assert (shop.balance()["pending"], audit(services().store)) == ("0", [])
    shop.pay(shop.invoice("2")["address"], "2")
    shop.mine(1)
    shop.turn()
    assert shop.balance()["pending"] == "2"


def test_the_audit_sees_a_sum_that_no_deposit_stands_behind(shop: Shop) -> None:
    shop.credit("1")
    (deposit,) = of_merchants()
    assert deposit.tenant is not None
    more: Any = partial(Add, InvoiceTotals, awaited_key(deposit.tenant, deposit))
    services().store.commit([more({"awaited": 7})])
    (found,) = audit(services().store)
    assert "pending is 7, its pending deposits say 0" in found
    services().store.commit([more({"awaited": -7})])
