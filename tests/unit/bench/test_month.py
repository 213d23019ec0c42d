"""What a month of polls and ticks costs by bench_seconds.py is made of what is deployed, and of steps that were counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from tests.bench import bench_seconds
from tests.bench.costs import TABLE, parsed
from tests.bench.limits import rows_of
from tests.bench.page import PAGE, between

CONFIG = Path(__file__).resolve().parents[3] / ".chalice" / "config.json"
NETWORKS = default_networks("live")


def test_functions_have_the_memory_that_they_are_deployed_with() -> None:
    declared = {name: one["lambda_memory_size"] for name, one in json.loads(CONFIG.read_text())["lambda_functions"].items()}
    assert {declared[f"poll_{network.slug}"] for network in NETWORKS} == {bench_seconds.MEMORY["poll"]}
    assert {name: declared[name] for name in ("tick", "relay", "deliver")} | {
        "poll": declared["poll_ethereum"]
    } == bench_seconds.MEMORY


def test_a_poll_of_both_realms_is_what_its_steps_cost() -> None:
    costs = parsed(TABLE.read_text(encoding="utf-8"))
    simulated, live = (costs[step] for step in ("poll: nothing is new", "poll: nothing is new, live"))
    assert not simulated.writes and not live.writes, "its calls are priced as reads"
    assert sum(simulated.reads.values()) + sum(live.reads.values()) == bench_seconds.POLL_UNITS
    assert sum(simulated.calls.values()) + sum(live.calls.values()) == bench_seconds.POLL.reads


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.slug)
def test_the_page_has_the_price_of_a_month(network: Network) -> None:
    row = rows_of(between(PAGE.read_text(encoding="utf-8"), "seconds"))[network.slug]
    told = [float(price) for price in row["USD a month, idle; busy"].split(";")]
    now = [bench_seconds.month(network, busy)[0] for busy in (False, True)]
    assert told == pytest.approx(now, rel=0.05, abs=0.06), "python -m tests.bench.page seconds"
