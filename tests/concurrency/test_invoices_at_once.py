"""Cancellations and more time against payments and expiries, on a store that lets them meet: each race ends in one story.

With `SWEEP=full` 500 races of a cancellation against a payment, without it a sample.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from threading import Event
from typing import Any

import pytest

from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.wiring import services
from tests.concurrency.conftest import Crowd, at_once
from tests.support.stack import Response, Stack

pytestmark = pytest.mark.nodes

RACES = 500 if os.environ.get("SWEEP") == "full" else 8
AT_ONCE = 25
"""Invoices that are paid in one block."""


def one(crowd: Crowd, method: str, invoice: dict[str, Any], more: str = "", body: Any = None) -> Response:
    key = crowd.keys[ord(invoice["id"][-1]) % len(crowd.keys)]
    return crowd.stack.call(method, f"/v1/invoices/{invoice['id']}{more}", key, json=body)


def told_by(crowd: Crowd) -> dict[str, Counter[str]]:
    """How often each event of each invoice was told."""
    found: dict[str, Counter[str]] = {}
    for event in services().store.every(EventRecord):
        found.setdefault(event.object_id, Counter())[event.name.removeprefix("invoice.")] += 1
    return found


def stored(made: list[dict[str, Any]]) -> dict[str, Invoice]:
    ids = {invoice["id"] for invoice in made}
    return {invoice.id: invoice for invoice in services().store.every(Invoice) if invoice.id in ids}


def open_expiries(made: list[dict[str, Any]]) -> Counter[str]:
    ids = {invoice["id"] for invoice in made}
    found = (work.id.rpartition("|")[2] for work in services().store.every_work() if work.kind == "expiry")
    return Counter(id for id in found if id in ids)


def race(crowd: Crowd, count: int) -> tuple[list[dict[str, Any]], list[Any]]:
    """`count` invoices, half of them paid whole and half in part. Polls find the payments from the first on, and each invoice is
    cancelled meanwhile, from the last on: they meet."""
    made = []
    crowd.wait(60)  # a key may ask a hundred times a minute: of a machine that runs ten races in one it would be too much
    for n in range(count):
        crowd.key = crowd.keys[n % len(crowd.keys)]
        made.append(crowd.invoice("1", "ftm"))
    for n, invoice in enumerate(made):
        crowd.pay(invoice["address"], "1" if n % 2 else "0.4", "ftm")
    begun, ways = Event(), {name: getattr(Deposits, name) for name in ("detect", "detect_together")}

    def seen(name: str, self: Deposits, *given: Any, **named: Any) -> Any:
        begun.set()
        return ways[name](self, *given, **named)

    def cancel(invoice: dict[str, Any]) -> Response:
        begun.wait(30)
        return one(crowd, "DELETE", invoice)

    with pytest.MonkeyPatch.context() as patch:
        for name in ways:
            patch.setattr(Deposits, name, lambda self, *given, name=name, **named: seen(name, self, *given, **named))
        _, _, *answers = at_once([crowd.poll, crowd.poll, *(partial(cancel, invoice) for invoice in reversed(made))], threads=3)
    answers.reverse()
    crowd.poll()
    crowd.mine()
    crowd.poll()
    crowd.poll()
    return made, answers


def test_cancelled_or_paid_and_one_story_either_way(on_dynamodb: Stack) -> None:
    crowd, stories = Crowd(on_dynamodb, "fantom"), Counter[str]()
    crowd.turn()
    paid = 0
    for start in range(0, RACES, AT_ONCE):
        made, answers = race(crowd, min(AT_ONCE, RACES - start))
        crowd.stack.drain(only=("relay",), rounds=2, hurry=True)
        found, told = stored(made), told_by(crowd)
        for n, (invoice, answer) in enumerate(zip(made, answers, strict=True)):
            whole, record, names = n % 2 == 1, found[invoice["id"]], told[invoice["id"]]
            amount = record.amount if whole else record.amount * 4 // 10
            paid += 10 if whole else 4
            assert isinstance(answer, Response) and record.received == amount, (answer, record)
            if record.late:
                story, expected = "cancelled, then paid", (200, "cancelled", {"created": 1, "cancelled": 1, "late_payment": 1})
            elif whole:
                story, expected = "paid, and not cancelled", (400, "completed", {"created": 1, "confirming": 1, "completed": 1})
            else:
                story, expected = "paid in part, then cancelled", (200, "cancelled", {"created": 1, "partial": 1, "cancelled": 1})
            assert (answer.status, record.status, dict(names)) == expected, (story, record)
            stories[story] += 1
        left = {invoice["id"] for invoice, answer in zip(made, answers, strict=True) if answer.status == 400}
        assert open_expiries(made).keys() == left, "an expiry is open for what was not cancelled, and for nothing else"
    assert crowd.available("ftm") == f"{paid / 10:g}"
    assert RACES < 500 or len(stories) == 3, stories


def test_extended_or_expired_and_one_open_expiry_at_most(on_dynamodb: Stack) -> None:
    """Due invoices are expired by two polls while each gets more time twice: open with one expiry, or expired with none."""
    crowd = Crowd(on_dynamodb, "arbitrum")
    crowd.turn()
    for _ in range(8 if RACES == 500 else 1):
        made = [crowd.invoice("1", expiresIn=60) for _ in range(12 if RACES == 500 else 4)]
        crowd.wait(61)
        crowd.mine(1)
        acts: list[Any] = [partial(one, crowd, "POST", i, "/extend", {"expiresIn": 600}) for i in made for _ in range(2)]
        answers = at_once([crowd.poll, *acts, crowd.poll], threads=6)
        assert all(isinstance(answer, Response) and answer.status == 200 for answer in answers[1:-1]), answers
        found = stored(made)
        assert {invoice.status for invoice in found.values()} == {"pending"}
        assert open_expiries(made) == Counter(found.keys())
        crowd.wait(601)
        crowd.mine(1)
        crowd.poll()
        assert {invoice.status for invoice in stored(made).values()} == {"expired"} and open_expiries(made) == Counter()
