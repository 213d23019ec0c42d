"""The model of DynamoDB in tests/bench: what it refuses, what it bounds, and that it loses nothing."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from chalicelib.domain.invoices.totals import SHARDS
from chalicelib.usecases.deposits.groups import MOST
from tests.bench.bench_seconds import WORK, How, measured
from tests.bench.bench_throughput import FAN, ROOT, index_rows, shape_of
from tests.bench.dynamo_model import PARTITION_WRITES, Dynamo, Job, Plan, Play, Shape, messages_of
from tests.bench.latencies import COMMIT_MS

SHAPE = Shape(own=(("records", ""), ("work", "")), shared=("ledger",), reads=3, cpu_ms=5.0, cpu_more_ms=2.0)
ONE = {"records": 1.0, "ledger": 1.0}
EIGHT = Plan(threads=8, memory=1_769)


def test_transactions_that_meet_at_an_item_are_refused_and_others_are_not() -> None:
    store = Dynamo(Random(1), 1.0)
    took, done = store.commit(0.0, [("records", "a")], {}, ONE)
    assert done and took > 0
    assert store.commit(took / 2, [("records", "a"), ("records", "b")], {}, ONE)[1] is False
    assert store.commit(took / 2, [("records", "c")], {}, ONE)[1] is True
    assert store.commit(took * 2, [("records", "a")], {}, ONE)[1] is True


def test_a_version_that_has_moved_on_is_refused() -> None:
    store = Dynamo(Random(1), 1.0)
    item = ("ledger", "balance")
    assert store.commit(0.0, [item], {item: 0}, ONE)[1]
    assert not store.commit(9.0, [item], {item: 0}, ONE)[1]
    assert store.commit(9.0, [item], {item: 1}, ONE)[1]


def test_a_partition_gives_its_units_a_second_and_no_more() -> None:
    store = Dynamo(Random(1), 1.0, partitions=1)
    waits = [store.commit(0.0, [("records", str(n))], {}, {"records": 100.0})[0] for n in range(50)]
    assert waits[-1] >= 49 * 100.0 / PARTITION_WRITES > waits[0]


@pytest.mark.parametrize("plan", [Plan(), EIGHT, replace(EIGHT, bound=80, ordered=True), replace(EIGHT, functions=3, fan_out=True)])
def test_every_payment_is_committed_once(plan: Plan) -> None:
    outcome = Play(SHAPE, plan, (30, 5, 1)).run()
    assert outcome.payments == 36
    groups = 3 + 1 + 1 if plan.bound else 36
    assert outcome.commits == groups


def test_one_merchant_is_bound_by_its_balance_and_groups_help_it() -> None:
    alone, several = Play(SHAPE, EIGHT, (240,)).run(), Play(SHAPE, EIGHT, (12,) * 20).run()
    assert alone.conflicts > several.conflicts and alone.rate < several.rate
    assert alone.rate < 1_000 / COMMIT_MS
    grouped = Play(SHAPE, replace(EIGHT, bound=80, ordered=True), (240,)).run()
    assert grouped.conflicts == 0 and grouped.rate > 2 * alone.rate
    assert Play(SHAPE, replace(EIGHT, slower=2.0), (240,)).run().rate < alone.rate


def test_groups_that_meet_at_a_check_go_on_without_it() -> None:
    checks = replace(SHAPE, shared=(), checked=("tenants",))
    met = Play(checks, replace(EIGHT, bound=80), (240,)).run()
    assert met.conflicts > 0 and met.commits == 20, "side by side, and each is a group all the same"
    for ordered in (checks, replace(checks, shared=("ledger",))):
        lane = Play(ordered, replace(EIGHT, bound=80, ordered=True), (240,)).run()
        assert lane.conflicts == 0 and lane.rate < met.rate


def test_functions_record_a_share_each_of_one_merchant_and_credit_all_in_one() -> None:
    plan = replace(EIGHT, functions=4, bound=80, ordered=True, share=60)
    recorded, credited = (Play(shape, plan, (240,)).run() for shape in (replace(SHAPE, shared=()), SHAPE))
    assert recorded.commits == credited.commits == 20
    assert recorded.seconds < credited.seconds / 2


def test_an_index_whose_partition_is_full_holds_its_table_up() -> None:
    warmed = replace(EIGHT, threads=16, functions=8, partitions=50)
    plain = replace(SHAPE, shared=())
    lists = replace(plain, indexed=(("records.timeline", "tx# of a merchant", 20.0),))
    free, held = (Play(shape, warmed, (200,)).run() for shape in (plain, lists))
    assert held.rate < PARTITION_WRITES / 20 * 1.1 < free.rate and held.hottest_key[0] == "records.timeline tx# of a merchant"


def test_the_next_group_is_read_while_one_is_committed() -> None:
    plan = replace(EIGHT, bound=80, ordered=True)
    lane, apart = Play(SHAPE, plan, (240,)).run(), Play(SHAPE, plan, (12,)).run()
    assert lane.seconds < 0.9 * 20 * apart.seconds and lane.commits == 20 and lane.conflicts == 0


def test_a_message_cuts_no_lane() -> None:
    lanes = [(Job(owner, tuple(range(12))),) * groups for owner, groups in enumerate((1, 2, 3, 9, 1))]
    sizes = [[sum(len(job.payments) for job in lane) for lane in message] for message in messages_of(lanes, 60)]
    assert sizes == [[12, 24], [36], [108], [12]]
    assert [len(message) for message in messages_of(lanes, 0)] == [1] * 5


def test_a_function_takes_one_message_after_the_other() -> None:
    plan = replace(EIGHT, bound=80, ordered=True, share=60)
    one, two = (Play(SHAPE, replace(plan, functions=functions), (48,) * 8).run() for functions in (1, 2))
    assert one.payments == two.payments == 384 and one.seconds > 1.7 * two.seconds


def test_the_model_has_as_many_functions_as_are_deployed() -> None:
    declared = r'sqs_message\(queue=_settings\.queue\("record"\), batch_size=1, maximum_concurrency=(\d+)\)'
    assert re.findall(declared, (ROOT / "app.py").read_text(encoding="utf-8")) == [str(FAN)]


def test_a_simulated_payment_takes_what_the_page_says() -> None:
    alone, calls, _ = measured("detection alone")
    together, _, items = measured("detection in groups")
    work = WORK["payment"]
    assert (work.cpu, work.reads + work.transactions + work.sends) == (alone, round(calls))
    assert work.cpu * (1 + (MOST - 1) * How(1, MOST).in_group) / MOST == pytest.approx(together)
    assert len(items) == 3


def test_a_shape_is_read_off_transactions() -> None:
    def part(kind: str, table: str, key: str, sort: str = "-", **more: str) -> dict[str, object]:
        return {kind: {"TableName": f"x-local-{table}", "Key": {"pk": {"S": key}, "sk": {"S": sort}}, **more}}

    sent = [
        [
            part("Update", "records", f"tx#{n}", ConditionExpression="v"),
            part("Update", "ledger", "bal#shop", ConditionExpression="v"),
            part("Update", "records", f"sum#shop#{n % 2}"),
            part("ConditionCheck", "chain", "block#1"),
        ]
        for n in range(4)
    ]
    for n, transaction in enumerate(sent):
        transaction.append(part("Put", "work", "deposit#test:ethereum", sort=str(n)))
        transaction.append(part("Put", "events", "evt#mch_1:test", sort=str(n)))
    written = {"x-local-records": 24.0, "x-local-ledger": 8.0, "x-local-chain": 8.0, "x-local-work": 16.0, "x-local-events": 12.0}
    shape = shape_of(sent, 4, written, 6.0, 8.0)
    assert shape.own == (("events", "evt# of a merchant"), ("records", ""), ("work", "deposit#"))
    assert (shape.shared, shape.added) == (("ledger",), (("records", SHARDS),))
    assert (shape.reads, shape.cpu_ms, shape.cpu_more_ms) == (5, 8.0, 4.0)
    assert shape.units == {"records": 3.0, "ledger": 2.0, "chain": 2.0, "work": 4.0, "events": 3.0}


def test_index_rows_are_read_off_an_account() -> None:
    table = "x-local-records"
    moved = {(table, "timeline", "tx#mch_1:test"): 8, **{(table, "tx_by_hash", f"tx#0x{n}"): 2 for n in range(4)}}
    rows = index_rows(Counter(moved), 4)
    assert rows == (("records.timeline", "tx# of a merchant", 2.0), ("records.tx_by_hash", "", 2.0))


def test_items_of_one_partition_key_lie_in_one_partition() -> None:
    """However many partitions a table has: a network's open deposits, a merchant's events."""
    apart, networks = (replace(SHAPE, own=(("records", ""), ("work", key)), shared=()) for key in ("", "deposit#"))
    warmed = replace(EIGHT, threads=16, functions=8, partitions=50)
    free, bound = (Play(shape, warmed, (50,) * 40).run() for shape in (apart, networks))
    assert bound.rate < PARTITION_WRITES / 2 * 1.05 < free.rate
    key, units = bound.hottest_key
    assert key == "deposit#" and 0.9 * PARTITION_WRITES < units < 1.05 * PARTITION_WRITES and free.hottest_key == ("", 0.0)
    merchants = Play(replace(SHAPE, own=(("events", "evt# of a merchant"),), shared=()), warmed, (50,) * 40).run()
    assert merchants.rate > bound.rate and merchants.hottest_key[0] == "evt# of a merchant"
