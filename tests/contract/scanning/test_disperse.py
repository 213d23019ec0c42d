"""One transaction with many payments of ours: functions share them out like those of many transactions.

The chain is `tests.support.fake_coins`, the bounds are real.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.usecases.base.fairness import MOST_AT_ONCE
from chalicelib.usecases.scanning.sharing import SHARE
from chalicelib.wiring import services
from tests.support.bundles import CONFIRMATIONS, Shop
from tests.support.sale import Sale, handle, names

PAYMENTS = 400


@pytest.fixture
def sale(begin: Callable[[], Shop], monkeypatch: pytest.MonkeyPatch) -> Sale:
    return Sale(begin(), monkeypatch, PAYMENTS, together=True)


def test_shares_of_one_transaction_are_disjoint_and_each_function_stores_its_own(sale: Sale) -> None:
    """Functions come before the poll has stored anything."""
    stored: list[int] = []

    def at_once(share: dict[str, str]) -> None:
        handle(share)
        stored.append(sale.deposits("pending"))

    sale.on_message = at_once
    sale.scan()
    named = [names(share) for share in sale.sent]
    assert max(map(len, named)) == SHARE
    assert sum(map(len, named)) == len({name for share in named for name in share}) == PAYMENTS - SHARE
    assert stored == [sum(map(len, named[: n + 1])) for n in range(len(named))]
    assert sale.deposits("pending") == PAYMENTS
    sale.rescan()
    assert [each.done for each in services().store.every(Rescan)] == [True]
    sale.shop.chain.mine(CONFIRMATIONS)
    sale.scan()
    sale.credited_once()


def test_a_message_that_names_the_transaction_alone_keeps_to_the_fair_share(sale: Sale) -> None:
    """It is from a version that knew no positions."""
    done: list[int] = []

    def before_positions(share: dict[str, str]) -> None:
        if not done:
            handle({**{key: value for key, value in share.items() if key != "positions"}, "txids": share["txids"].split(",")[0]})
            done.append(sale.deposits("pending"))

    sale.on_message = before_positions
    sale.scan()
    assert done == [MOST_AT_ONCE] and sale.deposits("pending") == MOST_AT_ONCE
