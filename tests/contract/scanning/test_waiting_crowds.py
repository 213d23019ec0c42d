"""A crowd that is deep enough, and has to wait all the same: for finality, a second node, a rate. No tick asks for it again that
comes a moment later, and whoever comes behind it is shared out at once.

The chain is `tests.support.fake_coins`, the bounds are real.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.scanning.asked_credits import AGAIN_MS, AskedCredits
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.scanning.quorum import LargePayments
from chalicelib.usecases.scanning.sharing import LATE_MS
from chalicelib.wiring import services
from tests.support.bundles import CONFIRMATIONS, Shop
from tests.support.sale import Sale, handle

WAITING, CROWD = 240, 150


def waiting(sale: Sale) -> set[str]:
    return {deposit.id for deposit in services().store.every(Deposit) if deposit.address in sale.addresses}


def confirm(sale: Sale) -> None:
    with in_realm("live"):
        scanner = services().scanner(services().catalogue("live").networks["litecoin"])
        cursor = scanner.keep_up(lambda: True)
        assert cursor is not None
        scanner.confirm(cursor, lambda: True)


def asked(sale: Sale) -> list[str]:
    return [id_ for share in sale.sent for id_ in share.get("deposits", "").split(",")]


def test_what_waits_is_asked_for_once_a_minute_and_who_comes_behind_it_at_once(
    begin: Callable[[], Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    sale = Sale(begin(), monkeypatch, WAITING)
    sale.on_message = handle
    sale.scan()
    sale.rescan()
    old = waiting(sale)
    assert len(old) == WAITING
    sale.shop.chain.mine(CONFIRMATIONS)
    sale.on_message = lambda _: None
    sale.sent.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LargePayments, "may_credit", lambda *_: False)
        for _ in range(10):
            confirm(sale)
        assert len(sale.sent) == 1 and set(asked(sale)) == old, "one merchant's coin is one message"
        sale.sent.clear()
        sale.pay(CROWD)
        sale.scan()
        sale.shop.chain.mine(CONFIRMATIONS)
        sale.sent.clear()
        for _ in range(2):
            confirm(sale)
        assert set(asked(sale)) == waiting(sale) - old and len(asked(sale)) == CROWD
        sale.sent.clear()
        services().clock.shift_ms += AGAIN_MS
        confirm(sale)
        assert set(asked(sale)) == waiting(sale), "a message may be lost"
        late = sale.sent[0]
    services().clock.shift_ms += LATE_MS + 1
    credited: list[Any] = []
    monkeypatch.setattr(Deposits, "confirm_together", lambda *keys: credited.append(keys))
    handle(late)
    assert credited == [], "the poll has come to them by then"
    monkeypatch.undo()
    services().clock.shift_ms += AGAIN_MS
    confirm(sale)
    sale.credited_once()


def test_of_two_that_ask_at_once_one_does(begin: Callable[[], Shop], monkeypatch: pytest.MonkeyPatch) -> None:
    sale = Sale(begin(), monkeypatch, 250)
    sale.on_message = handle
    sale.scan()
    sale.shop.chain.mine(CONFIRMATIONS)
    monkeypatch.setattr(LargePayments, "may_credit", lambda *_: False)
    sale.sent.clear()
    store = services().store
    real, beside = store.get, list[int]()

    def get(kind: type[Any], /, **key: str) -> Any:
        found = real(kind, **key)
        if kind is AskedCredits and not beside:
            beside.append(1)
            confirm(sale)
        return found

    monkeypatch.setattr(store, "get", get)
    confirm(sale)
    assert len(sale.sent) == 1 and beside == [1]
