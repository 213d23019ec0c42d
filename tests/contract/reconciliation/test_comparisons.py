"""The schedule asks for each network that is due, and a function compares one: whatever becomes of the messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.ids import NetworkId, network_id
from chalicelib.domain.reconciliation import EVERY_MS, Comparison, ComparisonReport
from chalicelib.domain.scanning.internal_transfers import ReconcileRound
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.queues import COMPARISON_VERSION
from chalicelib.usecases.scanning.internal_transfers import DAY_MS, InternalTransfers
from chalicelib.wiring import services
from chalicelib.wiring.reconciliation import ReconciliationWiring
from chalicelib.workers import compare
from chalicelib.workers import reconciliation as worker
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

SLUGS = ("bitcoin", "ethereum", "tron", "bsc", "polygon", "arbitrum", "fantom", "litecoin")
TEST = {network_id("test", slug) for slug in SLUGS}


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as made:
        yield made


@pytest.fixture
def asked(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> list[NetworkId]:
    """The networks that the schedule has asked for: the messages are lost."""
    found: list[NetworkId] = []
    monkeypatch.setattr(services().queues, "compare", found.append)
    return found


def message(slug: str, **other: Any) -> str:
    return json.dumps({"version": COMPARISON_VERSION, "realm": "test", "network": slug, **other})


def reports() -> dict[str, ComparisonReport]:
    return {report.network: report for report in services().store.every(ComparisonReport)}


def test_the_schedule_asks_until_a_network_is_compared_and_a_day_later_again(shop: Shop, asked: list[NetworkId]) -> None:
    worker.run()
    worker.run()
    assert sorted(asked) == sorted([*TEST, *TEST]), "what is lost is asked for again"
    compare.handle(message("ethereum"))
    assert set(reports()) == {"test:ethereum"} and reports()["test:ethereum"].clean
    asked.clear()
    worker.run()
    assert set(asked) == TEST - {"test:ethereum"}
    services().reconciliations.order("test", None)
    asked.clear()
    worker.run()
    assert set(asked) == TEST
    for slug in SLUGS:
        compare.handle(message(slug))
    asked.clear()
    worker.run()
    assert asked == []
    shop.wait(EVERY_MS // 1000 + 1)
    worker.run()
    assert set(asked) == TEST


def test_a_message_that_comes_twice_or_late_does_nothing(shop: Shop, asked: list[NetworkId]) -> None:
    compare.handle(message("ethereum"))
    before = services().store.get(Comparison, network="test:ethereum")
    compare.handle(message("ethereum"))
    assert services().store.get(Comparison, network="test:ethereum") == before and len(reports()) == 1


def test_a_message_of_another_version_is_dropped(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    compare.handle(message("ethereum", version=COMPARISON_VERSION + 1))
    compare.handle(message("dogecoin"))
    compare.handle(message("ethereum", realm="demo"))
    assert reports() == {} and caplog.text.count("a message of another version is dropped") == 1
    with pytest.raises(ValueError, match="a message needs"):
        compare.handle(json.dumps({"version": COMPARISON_VERSION}))


def test_a_queue_that_fails_for_one_network_keeps_no_other_waiting(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[NetworkId] = []

    def asks(network: NetworkId) -> None:
        if network == "test:tron":
            raise Unavailable("the queue did not answer")
        found.append(network)

    monkeypatch.setattr(services().queues, "compare", asks)
    with pytest.raises(Failures):
        worker.run()
    assert set(found) == TEST - {network_id("test", "tron")}


def test_the_messages_reach_the_function(shop: Shop) -> None:
    done = shop.stack.drain(only=("reconciliation", "compare"), rounds=2)
    assert done.calls["compare"] == len(TEST) and set(reports()) == TEST
    assert all(report.clean for report in reports().values())


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [(True, {"run": compare.SECONDS * compare.COMPARING, "round": compare.SECONDS}), (False, {"run": compare.SECONDS})],
)
def test_both_have_their_part_of_the_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, rounds: bool, expected: dict[str, float]
) -> None:
    """A run that takes days does not keep the round from going on; where there is no round, the run has all."""
    moments: dict[str, float] = {}

    class Timed:
        def begin(self) -> bool:
            return True

        def work(self, more: Callable[[], bool]) -> None:
            moments["run"] = latest(more)

        def go_on(self, more: Callable[[], bool]) -> None:
            moments["round"] = latest(more)

    def latest(more: Callable[[], bool]) -> float:
        clock[0] = 0.0
        while more():
            clock[0] += 10
        ended, clock[0] = clock[0], 0.0
        return ended

    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr(ReconciliationWiring, "reconciliation_run", lambda self, network: Timed())
    monkeypatch.setattr(services(), "balance_booker", lambda network: Timed())
    monkeypatch.setattr(compare, "goes_round", lambda network: rounds)
    compare.handle(message("ethereum"))
    assert moments == expected


# The round


class Stored:
    def __init__(self) -> None:
        self.place: ReconcileRound | None = None

    def get(self, kind: type, **key: str) -> ReconcileRound | None:
        return self.place


class Steps(InternalTransfers):
    """Rounds of `steps` steps, each of which takes a minute."""

    def __init__(self, steps: int) -> None:
        self.steps, self.taken, self.now = steps, 0, 0
        self.stored = Stored()
        for name, part in {"_store": self.stored, "_clock": self, "_network": type("N", (), {"id": "live:ethereum"})}.items():
            setattr(self, name, part)

    def now_ms(self) -> int:
        return self.now

    def go_round(self, more: Callable[[], bool]) -> int:
        self.taken += 1
        self.now += 60_000
        place = self.stored.place or ReconcileRound(NetworkId("live:ethereum"), self.now - 60_000, version=0)
        began = place.began_at if place.after else self.now - 60_000
        at = int(place.after or 0) + 1
        place = replace(place, after=f"{at}", began_at=began, version=place.version + 1)
        if at == self.steps:
            place = replace(place, after="", took=self.now - began, began_at=self.now)
        self.stored.place = place
        return 1


def test_a_round_goes_on_to_its_end_and_rests_six_times_as_long() -> None:
    round_ = Steps(5)
    allowed = iter([True, True, False])
    assert round_.go_on(lambda: next(allowed)) == 2, "as far as there is time"
    assert round_.go_on(lambda: True) == 3
    assert round_.stored.place is not None and round_.stored.place.took == 5 * 60_000
    round_.now += 6 * 5 * 60_000 - 1
    assert round_.go_on(lambda: True) == 0
    round_.now += 1
    assert round_.go_on(lambda: True) == 5
    long = Steps(5 * 60)
    assert long.go_on(lambda: True) == 300
    long.now += DAY_MS
    assert long.go_on(lambda: True) == 300, "a day at the most"


def test_a_step_that_is_not_possible_now_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that does not answer, or a rescan that has to end first."""
    round_ = Steps(5)
    allowed = iter([True, False])
    round_.go_on(lambda: next(allowed))
    waits: list[int] = []
    monkeypatch.setattr(round_, "go_round", lambda more: waits.append(1) or 0)
    assert round_.go_on(lambda: True) == 0 and len(waits) == 1
