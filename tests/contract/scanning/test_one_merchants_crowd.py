"""A block with more payments to one merchant, in one coin, than the scan records of it: functions record the others beside it,
and none waits for the poll's rescan. Whatever becomes of the messages, each is credited once.

The chain is `tests.support.fake_coins`. The first test has the real bounds; in the others few payments are a crowd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.chain import Cursor
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.usecases.scanning import scanner as scan
from chalicelib.usecases.scanning import sharing
from chalicelib.wiring import services
from tests.support.bundles import CONFIRMATIONS, NETWORK, Shop
from tests.support.sale import Sale, handle, names

PAYMENTS = 450
FEW, AT_ONCE, SHARE = 54, 24, 8


def test_all_of_it_is_recorded_and_credited_without_a_rescan(begin: Callable[[], Shop], monkeypatch: pytest.MonkeyPatch) -> None:
    sale = Sale(begin(), monkeypatch, PAYMENTS)
    sale.on_message = handle
    cursor = sale.scan()
    assert cursor.number == sale.shop.chain.tip()
    assert sale.deposits("pending") == PAYMENTS
    named = [names(share) for share in sale.sent]
    assert max(map(len, named)) == sharing.SHARE, "no function has more than the others"
    assert len({name for share in named for name in share}) == sum(map(len, named)), "and none has what another one has"
    assert sum(map(len, named)) == PAYMENTS - sharing.SHARE, "the poll's own is the first share"
    sale.shop.chain.mine(CONFIRMATIONS)
    sale.scan()
    sale.credited_once()


@pytest.fixture
def sale(begin: Callable[[], Shop], monkeypatch: pytest.MonkeyPatch) -> Sale:
    monkeypatch.setattr(scan, "MOST_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(sharing, "FROM", 2 * SHARE)
    monkeypatch.setattr(sharing, "SHARE", SHARE)
    return Sale(begin(), monkeypatch, FEW)


def test_what_lost_messages_leave_the_rescan_finds(sale: Sale) -> None:
    """And asks for it once more: a rescan is shared out as well."""
    assert sale.scan().number == sale.shop.chain.tip()
    assert sale.deposits("pending") == AT_ONCE
    sale.sent.clear()
    sale.rescan()
    assert sale.deposits("pending") == FEW
    named = [name for share in sale.sent for name in names(share)]
    assert FEW - AT_ONCE - SHARE <= len(named) == len(set(named)) < FEW - AT_ONCE, "the poll's own is the first share"
    (ordered,) = services().store.every(Rescan)
    assert ordered.done
    for share in sale.sent:
        handle(share)
    sale.shop.chain.mine(CONFIRMATIONS)
    sale.scan()
    sale.credited_once()


def test_messages_come_behind_the_cursor_and_twice(sale: Sale) -> None:
    """The block is passed by then. The rescan finds nothing that is left, and asks for nothing."""
    sale.scan()
    late = list(sale.sent)
    for share in [*late, *late]:
        handle(share)
    assert sale.deposits("pending") == FEW
    sale.sent.clear()
    sale.rescan()
    assert sale.sent == [] and [each.done for each in services().store.every(Rescan)] == [True]
    sale.shop.chain.mine(CONFIRMATIONS)
    sale.scan()
    sale.credited_once()


def test_a_message_of_a_block_that_the_cursor_does_not_stand_on(sale: Sale) -> None:
    """Its payments are nowhere by then, and no epoch tells: a node that still has the block must not bring them in."""
    sale.scan()
    chain, store = sale.shop.chain, services().store
    cursor = store.get(Cursor, network=NETWORK)
    assert cursor is not None
    other = replace(cursor, hash="ee" * 32, recent={**cursor.recent, str(cursor.number): "ee" * 32})
    real = store.get

    def get(kind: type[Any], /, **key: str) -> Any:
        return other if kind is Cursor else real(kind, **key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "get", get)
        for share in sale.sent:
            handle(share)
    assert sale.deposits("pending") == AT_ONCE
    chain.drop(1)
    chain.forget()
    chain.mine(2)
    sale.scan()
    for share in sale.sent:
        handle(share)
    sale.rescan()
    assert sale.deposits("pending") == sale.deposits("confirmed") == 0
    sale.shop.whole()
