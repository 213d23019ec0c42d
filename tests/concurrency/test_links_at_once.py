"""Payment links that many open at once, on a store that lets them meet: no piece is sold twice, and almost nobody is turned away
for anything but the stock."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from threading import Lock
from time import sleep
from typing import Any

import pytest

from chalicelib.domain.payment_links.openings import MOST_OPENED
from chalicelib.store import commit, unheard
from chalicelib.wiring import services
from tests.concurrency.conftest import Crowd, at_once
from tests.support.links import assert_whole, invoices_of, left, make, one, opened, visit
from tests.support.stack import Response, Stack

pytestmark = pytest.mark.nodes

FULL = os.environ.get("SWEEP") == "full"
VISITORS = 200 if FULL else 30
OPENED = MOST_OPENED if FULL else 15


def statuses(answers: list[Any]) -> Counter[Any]:
    return Counter(answer.status if isinstance(answer, Response) else repr(answer) for answer in answers)


def visitors(crowd: Crowd, link: str, count: int = VISITORS) -> list[partial[Response]]:
    return [partial(visit, crowd, link, f"198.51.{n // 250}.{n % 250}") for n in range(count)]


def link_of(crowd: Crowd, **terms: Any) -> str:
    crowd.turn()
    coin = services().catalogue("test").native(crowd.network)
    made: str = make(crowd, currency=coin.slug, network=crowd.network, **terms)["id"]
    return made


@pytest.mark.parametrize("stock", [20, pytest.param(3, marks=pytest.mark.sweep)])
def test_many_visitors_and_a_few_pieces(on_dynamodb: Stack, stock: int) -> None:
    crowd = Crowd(on_dynamodb, "polygon")
    link = link_of(crowd, stock=stock)
    assert statuses(at_once(visitors(crowd, link))) == {201: stock, 400: VISITORS - stock}
    assert left(crowd, link) == 0 and assert_whole(link, stock) == {"pending": stock}


def test_a_piece_for_everybody(on_dynamodb: Stack) -> None:
    """Down to the last one: who finds a shard empty looks in another."""
    crowd = Crowd(on_dynamodb, "bsc")
    link = link_of(crowd, stock=30)
    assert statuses(at_once(visitors(crowd, link, 30))) == {201: 30}
    assert left(crowd, link) == 0 and assert_whole(link, 30) == {"pending": 30}


class Clashes:
    """What DynamoDB does and DynamoDB Local does not: of two transactions on one item at the same time the second is cancelled
    (TransactionConflict). Each lasts ten milliseconds."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count, self._busy, self._lock = 0, set[str](), Lock()
        real = commit._Plan.run

        def run(plan: Any) -> None:
            made = plan.transaction
            requests = [*made._condition_check_items, *made._delete_items, *made._put_items, *made._update_items]
            keys = {repr((each["TableName"], each.get("Key") or _key(each["Item"]))) for each in requests}
            with self._lock:
                if met := self._busy & keys:
                    self.count += 1
                    raise commit.Busy if plan.direct is None or any("tally#" not in key for key in met) else unheard.Heard(1)
                self._busy |= keys
            try:
                sleep(0.01)
                real(plan)
            finally:
                with self._lock:
                    self._busy -= keys

        patch.setattr(commit._Plan, "run", run)


def _key(item: Any) -> Any:
    return {name: item[name] for name in ("pk", "sk")}


def test_clashes_turn_nobody_away(on_dynamodb: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd(on_dynamodb, "ethereum")
    stock = VISITORS // 2
    link = link_of(crowd, stock=stock)
    clashes = Clashes(monkeypatch)
    assert statuses(at_once(visitors(crowd, link, stock + 20), threads=stock + 20)) == {201: stock, 400: 20}
    assert clashes.count > stock // 5 and assert_whole(link, stock) == {"pending": stock}


def test_one_caller_opens_so_many_and_no_more(on_dynamodb: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chalicelib.usecases.payment_links.opening.MOST_OPENED", OPENED)
    crowd = Crowd(on_dynamodb, "arbitrum")
    link = link_of(crowd)
    answers = at_once([partial(visit, crowd, link) for _ in range(OPENED + 10)])
    assert statuses(answers) == {201: OPENED, 429: 10}


def test_pieces_come_back_while_others_take_them(on_dynamodb: Stack) -> None:
    """Invoices are cancelled and expire while the stock is changed and visitors come: the sum holds at every end."""
    crowd = Crowd(on_dynamodb, "fantom")
    link, stock = link_of(crowd, stock=12), 12
    first = [opened(crowd, link, f"203.0.113.{n}") for n in range(12)]
    cancel = [partial(crowd.stack.call, "DELETE", f"/v1/invoices/{i['id']}", crowd.key) for i in first[:6] for _ in range(2)]
    answers = at_once([act for pair in zip(cancel, visitors(crowd, link, 12), strict=True) for act in pair])
    assert statuses(answers[::2]) == {200: 12} and statuses(answers[1::2]).keys() <= {201, 400}
    found = assert_whole(link, stock)
    assert found["cancelled"] == 6
    crowd.wait(86_400)
    crowd.mine(1)
    at_once([partial(one, crowd, "PUT", link, stock=30), crowd.poll, *visitors(crowd, link, 10), crowd.poll])
    crowd.mine(1)
    crowd.poll()
    held = sum(invoice.piece is not None for invoice in invoices_of(link))
    found = assert_whole(link, left(crowd, link) + held)
    assert found["cancelled"] == 6 and found.keys() <= {"cancelled", "expired", "pending"} and found["pending"] == held
    # Set to 30 while up to 12 came back and up to 10 were taken.
    assert 20 <= left(crowd, link) <= 42
