"""The played day of comparing balances: schedules, partitions, nodes and the work that the paper has, all of it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from chalicelib.workers.compare import COMPARING, SECONDS
from tests.bench.bench_comparing import (
    ADDRESSES,
    CASES,
    COINS,
    EVM,
    Measured,
    day,
    emptied_steps,
    holding_steps,
    played,
    round_steps,
)
from tests.bench.comparing_model import PAGE_BYTES, PARTITION_READS, READ_UNIT, SCHEDULE_S, Day, Job, Step, Tables
from tests.bench.latencies import Latency

M = Measured(1139, 4.0, 1775, 4.0, 25e-6, 4e-6, 0.6e-3)
SIZES = {"chain": 40.0 * 1024**3, "ledger": 1.0}
MIDDLING = Latency(100, 400, "a node")


def day_of(seed: int = 1) -> Day:
    luck = Random(seed)
    return Day(Tables(luck, SIZES), MIDDLING, luck)


def slow(count: int, seconds: float = 10.0) -> Iterator[Step]:
    return iter([Step("chain", 0.0, n / count, pages=0, waits=seconds) for n in range(count)])


def test_readers_meet_at_a_partition_and_not_beside_it() -> None:
    tables = day_of().tables
    units = PAGE_BYTES / READ_UNIT / 2
    many = 100
    for _ in range(many):
        tables.page(0.0, "chain", 0.1, PAGE_BYTES)
    waits = sum(n * units / PARTITION_READS for n in range(many))
    assert tables.held_up == pytest.approx(waits)
    tables.page(0.0, "chain", 0.9, PAGE_BYTES)
    tables.page(0.0, "ledger", 0.1, PAGE_BYTES)
    assert tables.held_up == pytest.approx(waits)


def test_a_function_works_its_part_of_each_period() -> None:
    alone, both = (Job(name, slow(60), iter(())) for name in "ab")
    both.round = slow(12)
    for job in (alone, both):
        day_of().play([job])
        assert job.ended // SCHEDULE_S == job.calls - 1, "one call in each period"
    # Steps of ten seconds begin within 240 s, and within 180 s where a round has the rest.
    assert alone.calls == pytest.approx(60 / (SECONDS / 10), abs=1)
    assert both.calls == pytest.approx(60 / (COMPARING * SECONDS / 10), abs=1)
    assert alone.worked == pytest.approx(600, rel=0.05) and both.worked == pytest.approx(720, rel=0.05)


def test_requests_to_a_node_are_side_by_side() -> None:
    here = day_of()
    ask = Step("chain", 0.0, 0.0, nodes=200)
    one, ten = here.asked(ask), here.asked(Step("chain", 0.0, 0.0, nodes=200, together=10))
    assert one == pytest.approx(200 * MIDDLING.mean / 1_000, rel=0.15)
    assert ten == pytest.approx(one / 10, rel=0.3)
    assert here.asked(Step("chain", 0.0, 0.0, nodes=200, least=2.0)) == pytest.approx(400, rel=0.02)
    assert here.asked(Step("chain", 0.0, 0.0)) == 0


@pytest.mark.parametrize("network", ["ethereum", "tron", "bitcoin"])
def test_the_steps_go_through_everything_once(network: str) -> None:
    steps = {"emptied": list(emptied_steps(network, ADDRESSES, M)), "holding": list(holding_steps(network, ADDRESSES, M))}
    assert sum(step.bytes for step in steps["emptied"]) == pytest.approx(ADDRESSES * M.chain_bytes / 7)
    assert sum(step.bytes for step in steps["holding"]) == pytest.approx(ADDRESSES * M.ledger_bytes)
    rounds = list(round_steps(network, ADDRESSES, M))
    assert sum(step.bytes for step in rounds) == pytest.approx(ADDRESSES * M.chain_bytes if network in EVM else 0)
    assert all(0 <= step.place < 1 for step in [*steps["emptied"], *steps["holding"], *rounds])


def test_the_played_day_costs_about_what_the_paper_says() -> None:
    spread = CASES["all on tron"]
    hours, usd, _ = played(spread, M, 0.1)
    works = [day(network, spread.get(network, 0.0), M, 0.1) for network in COINS]
    assert usd == pytest.approx(sum(work.usd for work in works), rel=0.15)
    assert max(work.seconds for work in works) / 3600 < hours < 4
