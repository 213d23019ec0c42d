"""Refunds and links that end: whoever has many of them keeps nobody else waiting."""

from __future__ import annotations

from typing import Any, cast

import pytest

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Work
from chalicelib.usecases.refunds import open_refunds
from chalicelib.usecases.refunds.open_refunds import OpenRefunds

ETHEREUM = NetworkId("test:ethereum")


class Rows:
    """Open work in order, and a clock."""

    def __init__(self, works: list[Work]) -> None:
        self.works = sorted(works, key=lambda work: (work.order, work.id))

    def open_work(self, kind: str, lane: str, *, upto: str | None, after: Work | None, limit: int) -> list[Work]:
        behind = [w for w in self.works if after is None or (w.order, w.id) > (after.order, after.id)]
        return behind[:limit]

    def now_ms(self) -> int:
        return 1_000


def ended(monkeypatch: pytest.MonkeyPatch, works: list[Work], most: int) -> list[str]:
    """What a run takes that has time for so many."""
    rows, taken = Rows(works), list[str]()
    monkeypatch.setattr(OpenRefunds, "_look", lambda self, work: taken.append(work.id))
    OpenRefunds(cast(Any, rows), rows, cast(Any, None), cast(Any, None)).work(ETHEREUM, lambda: len(taken) < most)
    return taken


def due(merchant: str, count: int, since: int) -> list[Work]:
    return [Work("refund", ETHEREUM, f"{since + n:015d}", f"{merchant}|pol_{n}") for n in range(count)]


def test_a_few_of_every_merchant_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_refunds, "SHARE", 3)
    works = [*due("mch_many:test", 500, 0), *due("mch_few:test", 2, 900)]
    taken = ended(monkeypatch, works, 6)
    assert taken[3:5] == ["mch_few:test|pol_0", "mch_few:test|pol_1"]
    everything = ended(monkeypatch, works, 1_000)
    assert (len(everything), set(everything)) == (502, {work.id for work in works})
    assert everything[5:8] == ["mch_many:test|pol_3", "mch_many:test|pol_4", "mch_many:test|pol_5"]


def test_where_few_are_due_each_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    works = [*due("mch_a:test", 3, 0), *due("mch_b:test", 3, 0)]
    taken = ended(monkeypatch, works, 100)
    assert sorted(taken) == sorted(work.id for work in works)
    assert taken[:2] == ["mch_a:test|pol_0", "mch_b:test|pol_0"]
