"""How far address indexes may be given out: never past the ceiling, which only housekeeping raises, outside the tables first."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import boto3
import pytest

from chalicelib import wiring
from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.addresses.index_pools import ALARM_LEFT, INDEXES, LEAST_LEFT, STEP, IndexPool
from chalicelib.domain.ids import tenant_id
from chalicelib.store.ceilings import SsmCeilings
from chalicelib.usecases.addresses.addresses import INDEX_RANGE
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.failures import Exhausted, Unavailable
from chalicelib.wiring import services
from chalicelib.workers import housekeeping
from infra import bootstrap
from tests.support.edge import PREPARED, Edge
from tests.support.index_pools import forget, parameter, recorded, row, shrink

POOL = "test:evm"


@pytest.fixture
def edge(aws) -> Iterator[Edge]:
    yield PREPARED.edge(aws)
    wiring.forget()


def make(edge: Edge) -> int:
    return int(edge.call("POST", "/v1/addresses", json={"network": "ethereum"}).status)


def create(edge: Edge) -> Address:
    network = services().catalogue("test").networks["ethereum"]
    return services().addresses.create(tenant_id(edge.shop, "test"), network, None, "common")


def put(before: IndexPool, **changes: int | None) -> None:
    services().store.change_index_pool(POOL, before, replace(before, **changes))  # type: ignore[arg-type]


def keep() -> None:
    services().ceilings.keep("test")


def test_a_stage_begins_with_a_ceiling(edge: Edge) -> None:
    for realm in services().settings.realms:
        for pool in ("evm", "bitcoin", "litecoin", "tron"):
            assert services().store.index_pool(f"{realm}:{pool}") == IndexPool(0, STEP)
            name = f"/gateway-local/pools/{realm}/{pool}"
            assert boto3.client("ssm").get_parameter(Name=name)["Parameter"]["Value"] == str(STEP)


def test_nothing_is_given_out_past_the_ceiling(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    shrink(INDEX_RANGE + 20, "evm")
    taken = services().store.reserve_indexes(POOL, INDEX_RANGE)
    assert (taken.first, taken.end, taken.left) == (0, INDEX_RANGE, 20)
    caplog.clear()
    paths = [create(edge).path for _ in range(20)]
    assert [path.rsplit("/", 1)[1] for path in paths] == [str(index) for index in range(INDEX_RANGE, INDEX_RANGE + 20)]
    assert f"ALARM {POOL} has 0 address indexes left" in caplog.text
    with pytest.raises(Exhausted):
        create(edge)
    assert make(edge) == 500
    keep()
    assert make(edge) == 201
    assert row("evm").count == 3 * INDEX_RANGE  # what was taken above the ceiling is left out
    assert row("evm").ceiling == 2 * INDEX_RANGE + STEP == recorded("evm")


def test_a_row_without_a_ceiling_gives_out_nothing_until_it_has_one(edge: Edge) -> None:
    """Those of before there were ceilings, when the new functions come first; and nobody's row."""
    boto3.resource("dynamodb").Table("gateway-local-chain").put_item(Item={"pk": f"pool#{POOL}", "sk": "-", "n": 120})
    forget("evm")
    assert make(edge) == 500
    assert row("evm") == IndexPool(120)
    keep()
    assert row("evm") == IndexPool(120, 120 + STEP)
    assert recorded("evm") == 120 + STEP
    assert make(edge) == 201
    assert row("evm").count == 120 + INDEX_RANGE


def test_it_is_raised_when_too_few_are_left_and_not_before(edge: Edge) -> None:
    put(row("evm"), count=STEP - LEAST_LEFT)
    keep()
    assert (row("evm").ceiling, recorded("evm")) == (STEP, STEP)
    put(row("evm"), count=STEP - LEAST_LEFT + 1)
    housekeeping.run()
    assert (row("evm").ceiling, recorded("evm")) == (2 * STEP, 2 * STEP)
    assert (row("tron").ceiling, recorded("tron")) == (STEP, STEP)
    keep()
    assert (row("evm").ceiling, recorded("evm")) == (2 * STEP, 2 * STEP)


def test_who_dies_between_parameter_and_row_leaves_no_index_to_be_given_out_twice(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(row("evm"), count=STEP - 100)

    def dies(*arguments: object) -> None:
        raise Unavailable("cut")

    with monkeypatch.context() as patch:
        patch.setattr(services().store, "change_index_pool", dies)
        with pytest.raises(ExceptionGroup):
            keep()
    assert (row("evm").ceiling, recorded("evm")) == (STEP, 2 * STEP)
    keep()
    # As for a table that was put back: what the parameter allows may have been given out.
    assert row("evm") == IndexPool(2 * STEP, 3 * STEP, 2 * STEP)
    assert recorded("evm") == 3 * STEP


def test_a_table_that_is_behind_the_parameter_never_lowers_it(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    before = row("evm")
    for count in (30_000, 80_000):
        put(row("evm"), count=count)
        keep()
    assert recorded("evm") == 3 * STEP
    put(row("evm"), count=before.count, ceiling=before.ceiling)  # put back to the first minute
    keep()
    assert row("evm") == IndexPool(3 * STEP, 4 * STEP, 3 * STEP)
    assert recorded("evm") == 4 * STEP
    assert f"ALARM {POOL}: its row ends at {STEP}, the recorded ceiling is {3 * STEP}" in caplog.text
    # Made anew, and with the row gone altogether.
    boto3.resource("dynamodb").Table("gateway-local-chain").delete_item(Key={"pk": f"pool#{POOL}", "sk": "-"})
    bootstrap.make_seed(services(), boto3.client("kms"))
    assert row("evm") == IndexPool(4 * STEP, 5 * STEP, 4 * STEP)
    assert recorded("evm") == 5 * STEP


def test_a_writer_that_slept_lowers_nothing_for_long(edge: Edge) -> None:
    """PutParameter has no condition: an older number may come last. The history has the highest one, and the next run writes it."""
    put(row("evm"), count=30_000)
    keep()
    boto3.client("ssm").put_parameter(Name=parameter("evm"), Value=str(STEP), Overwrite=True)
    assert services().ceilings.recorded("test", "evm") == 2 * STEP
    keep()
    assert recorded("evm") == 2 * STEP
    assert row("evm") == IndexPool(30_000, 2 * STEP)
    forget("evm")
    keep()
    assert recorded("evm") == 2 * STEP


def test_two_at_once_raise_it_once(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have read the same; whoever is second finds the row raised."""
    put(row("evm"), count=30_000)
    write = SsmCeilings.write

    def meanwhile(self: SsmCeilings, name: str, ceiling: int) -> None:
        monkeypatch.setattr(SsmCeilings, "write", write)
        services().ceilings.keep("test")
        write(self, name, ceiling)

    monkeypatch.setattr(SsmCeilings, "write", meanwhile)
    keep()
    assert row("evm") == IndexPool(30_000, 2 * STEP)
    assert recorded("evm") == 2 * STEP
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: keep(), range(8)))
    assert row("evm") == IndexPool(30_000, 2 * STEP)


def test_requests_go_on_while_it_is_raised(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    put(row("evm"), count=30_000)
    change = services().store.change_index_pool
    taken = []

    def busy(pool: str, before: IndexPool | None, after: IndexPool) -> None:
        if len(taken) < 3:
            taken.append(services().store.reserve_indexes(pool, INDEX_RANGE).first)
        change(pool, before, after)

    monkeypatch.setattr(services().store, "change_index_pool", busy)
    keep()
    assert taken == [30_000, 30_050, 30_100]
    assert row("evm") == IndexPool(30_150, 2 * STEP)


def test_what_somebody_else_wrote_there_is_no_ceiling(edge: Edge) -> None:
    boto3.client("ssm").put_parameter(Name=parameter("evm"), Value="many", Overwrite=True)
    with pytest.raises(Unavailable, match="is no ceiling"):
        keep()
    with pytest.raises(ExceptionGroup):
        housekeeping.run()


def test_a_closed_pool_and_the_last_index(edge: Edge) -> None:
    put(row("evm"), count=INDEXES)
    keep()
    assert (row("evm").count, recorded("evm")) == (INDEXES, STEP)
    assert make(edge) == 500
    put(row("evm"), count=INDEXES - 10, ceiling=INDEXES - 5)
    keep()
    assert row("evm").ceiling == INDEXES
    last = services().store.reserve_indexes(POOL, INDEX_RANGE)
    assert (last.first, last.end, last.left) == (INDEXES - 10, INDEXES, 0)


def test_the_row_is_changed_only_as_it_was_read(edge: Edge) -> None:
    before = row("evm")
    services().store.reserve_indexes(POOL, 1)
    for stale in (before, replace(before, ceiling=None), None):
        with pytest.raises(Conflict):
            services().store.change_index_pool(POOL, stale, replace(before, ceiling=9))
    assert row("evm") == IndexPool(1, STEP)


def test_the_alarm_comes_before_the_end(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    put(row("evm"), count=STEP - ALARM_LEFT - 2 * INDEX_RANGE)
    make(edge)
    wiring.forget()
    assert "ALARM" not in caplog.text
    make(edge)
    wiring.forget()
    make(edge)
    assert f"ALARM {POOL} has {ALARM_LEFT - INDEX_RANGE} address indexes left" in caplog.text
