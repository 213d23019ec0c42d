"""Many payments that are out, and nodes that take their time: crediting does not wait for them, and all of them have their turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from chalicelib.usecases.changes import Change, Open, Save
from chalicelib.usecases.withdrawal_steps import order_of, sent_work
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, Shop
from tests.support.slow_nodes import slowed
from tests.support.stack import Stack

ANSWER = 0.1
"""Seconds that a node takes for one answer."""
SETTLED_IN = 100
"""Seconds after which what was signed is no longer asked about in every poll, and did not wait too long for a block yet."""


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    opened = Shop(stack)
    opened.turn()
    opened.credit("2")
    opened.wait(30)  # what is signed from now on is younger than the first block with notes, whatever the clocks
    yield opened


def out(shop: Shop, count: int) -> tuple[str, list[str]]:
    """So many payments that were signed and sent, and are in no block: the first's id, and the transactions of all, which are
    copies of the first's."""
    first = shop.withdraw("0.01")
    services().sandbox.outcome(shop.record(first).tenant, first, "stick")
    shop.turn()
    order, withdrawal, store = shop.order(first), shop.record(first), services().store
    assert withdrawal.status == "confirming" and order.txid is not None
    made, changes = [order.txid], list[Change]()
    for n in range(1, count):
        name, txid = f"{withdrawal.id}{n:04d}", f"0x{n:064x}"
        copy = replace(withdrawal, id=name, txid=txid, created_at=withdrawal.created_at + n, version=1)
        theirs = order_of(withdrawal.tenant, name)
        copied = replace(order, id=theirs, withdrawal_id=name, txid=txid, nonce=order.nonce + n, version=1)
        changes += [Save(replace(copy, order_id=theirs)), Save(copied), Open(sent_work(copy))]
        made.append(txid)
    for start in range(0, len(changes), 9):
        store.commit(changes[start : start + 9])
    return first, made


def poll(shop: Shop) -> None:
    shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1)


@pytest.mark.parametrize("count", [0, 500])
@pytest.mark.parametrize("since", [SETTLED_IN, 600])
def test_deposits_are_credited_in_the_same_poll_however_much_is_out(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, count: int, since: int
) -> None:
    """After ten minutes each of them has waited too long for a block."""
    if count:
        out(shop, count)
        shop.wait(since)
    invoice = shop.invoice("1")
    slowness = slowed(shop, monkeypatch, ANSWER)
    shop.pay(invoice["address"], "1")
    poll(shop)
    assert shop.status(invoice) == "confirming"
    shop.mine(CONFIRMATIONS)
    begun = slowness.now
    poll(shop)
    assert shop.status(invoice) == "completed"
    assert slowness.now - begun < 31
