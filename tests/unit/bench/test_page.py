"""The page's tables are made of what benches print, and what is not understood changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from statistics import fmean

import pytest

from tests.bench import limits, page
from tests.bench.costs import Cost
from tests.bench.limits import Facts

REQUESTS = """                        CPU  botocore     ours  calls    floor  x floor   (milliseconds, medians)
get an invoice         3.54      2.22     1.32   2.02     2.64     1.34
"""
PRINTED: dict[Callable[[str], str], tuple[str, str]] = {
    page.requests: (REQUESTS, "|get an invoice|3.5|2.2|2|1.3|"),
    page.paid: (
        "|simulated, one endpoint, all events|211.0|chain 12.0, work 78.0|55.5|57.0|\n",
        "|simulated;1|211|chain:12,work:78|56|57|$139|",
    ),
    page.collection: (
        "the native coin: reads 53.6 (chain 53.6)\nthe native coin: writes 91.2 (work 91.2)\n"
        "the native coin: calls 41.0 (kms 41.0)\n",
        "|the native coin|91|54|41|$64|",
    ),
    page.cold: (
        "floor                          best   250 ms  median   260 ms   60 MB  1.00 x the floor  not compiled   600 ms\n"
        "deliver                        best   270 ms  median   281 ms   71 MB  1.08 x the floor  not compiled   650 ms\n"
        "deliver, first request         best   310 ms  median   320 ms   73 MB  1.24 x the floor  not compiled   700 ms\n",
        "|deliver|270|1.08|650|310|71|",
    ),
    page.comparing: (
        "a deposit leaves 1139 bytes\n|addresses|hours|played|USD a day|played|\n|---|---|---|---|---|\n"
        "|all on tron|2.9;3.3|3.1;3.7|3.50;3.57|3.61;3.62|\nall on tron: functions waited 4.52 and 2.91 hours for partitions\n",
        "|all on tron|2.9;3.3|3.1;3.7|3.50;3.57|3.61;3.62|",
    ),
    page.matching: (
        "bsc: 9 movements, 1,000 watched: 6 calls, 535 keys, 535 read units, 20.3 ms CPU\n"
        "bsc: 9 movements, 10,000,000 watched: 6 calls, 535 keys, 535 read units, 25.3 ms CPU\n",
        "|bsc|535|6|20.3|25.3|",
    ),
    page.scans: (
        "tron: 300 transactions (562 kB): raw 5.49 ms, reader 8.34 ms, ratio 1.37 (budget 2, aim 1.5)\n",
        "|tron: 300|562|5.49|8.34|1.37|",
    ),
    page.seconds: (
        "\n8.33 payments a second, alone:\n|network|s|n|p50|p95 s|p99|twice|budget|\n|tron|3|25|4.1|6.3|6.9|105.7|5|\n"
        "\n8.33 payments a second, as the service does:\n|tron|3|25|2.2|3.7|4.7|5.8|5|\n"
        "\n50 payments a second, as the service does:\n|tron|3|150|2.7|4.8|5.8|6.8|5|\n"
        "\nA month:\n\n|network|idle|busy|few|many|\n|---|---|---|---|---|\n|tron|1.1|38.3|1.8|4.4|\n",
        "|tron|3.7;5.8|4.8;6.8|1.1;38.3|1.8;4.4|",
    ),
    page.latencies: (
        "|wait|p50 ms|p99 ms|source|\n|---|---|---|---|\n|queue|16|105|eu-west-1, 2022: a.com/sqs|\n"
        "|send|10.4|60|SendMessage; assumed as a write|\n8 payments a second:\n|tron|3|25|2.2|\n",
        "|send|10;60|assumed|",
    ),
    page.measured: (
        "|ethereum|9|9|9|9|9|\nMeasured, NODES=1:\n\n|network|payments|heard|p50 s|p95 s|longest s|\n|---|---|---|---|---|---|\n"
        "|litecoin|40|39|3.01|4.31|5.20|\n",
        "|litecoin|40;39|3.01|4.31|5.20|",
    ),
    page.node_latency: (
        "network, blocks a minute, nodes, seconds an answer, seconds to read a minute\n"
        "arbitrum, 240, 1, 0.1, 5.1 (budget 6)\narbitrum, 240, 1, 0.25, 9.1\narbitrum, 240, 2, 0.1, 5.5\n"
        "arbitrum, 240, 2, 0.25, 12.0 (budget 15)\n"
        "bsc, 133, 1, 0.1, 4.1\nbsc, 133, 1, 0.25, 7.1\nbsc, 133, 2, 0.1, 4.5\nbsc, 133, 2, 0.25, 8.0\n",
        "|bsc|133|4.1|7.1|4.5|8.0|",
    ),
    page.local: (
        "list 20: one client 95 a second, four 99 (1.04 of it, budget 0.95); CPU of the process 9.1 and 9.0 ms an answer\n"
        "at rest: 2.1 % of a core (budget 5)\n",
        "|at rest,% of a core|2.1||",
    ),
    page.deliveries: (
        "1 x 1,000, 0 ms               196/s     2.60      1.20     1.40     1.62     1.60     2.00   1.40    391/s    113/s\n",
        "|1 x 1,000, 0 ms|2.60|1.20|1.40|1.60|196|391|113|",
    ),
    page.signatures: (
        "        milliseconds of CPU     ours      key  second reader\n"
        "            EVM, native coin    0.907    0.064          1.226\n",
        "|EVM, native coin|0.9|0.06|1.2|",
    ),
}
MODEL = "|case|singles|8 groups|first|\n|---|---|---|---|\n|200/s, 100 merchants|9;6|154;152|x|\n|50/s, one merchant|9;6|54;37|x|\n"


def test_tables_that_a_bench_prints_itself_are_taken_as_they_are() -> None:
    told = "said\n\n|a|b|\n|---|---|\n|1, 2; x|2|\n\nmore:\n\n|c|\n|---|\n|3|\nbudget kept\n"
    assert page.tables(told) == "|a|b|\n|---|---|\n|1,2;x|2|\n\n|c|\n|---|\n|3|"
    with pytest.raises(page.Unknown):
        page.tables("no table\n")


@pytest.mark.parametrize("shaped", PRINTED, ids=lambda shaped: shaped.__name__)
def test_what_a_bench_prints_becomes_a_table(shaped: Callable[[str], str]) -> None:
    told, row = PRINTED[shaped]
    lines = shaped(told).splitlines()
    assert lines[-1] == row
    assert len({line.count("|") for line in lines}) == 1
    with pytest.raises(page.Unknown):
        shaped("something else\n")


def test_every_parser_has_what_its_bench_prints() -> None:
    assert {shaped for _, shaped in page.SECTIONS.values()} - set(PRINTED) == {page.tables}


@pytest.mark.parametrize("name", [name for name, (_, shaped) in page.SECTIONS.items() if shaped in PRINTED])
def test_the_page_has_each_table_in_the_shape_that_is_written(name: str) -> None:
    shaped = page.SECTIONS[name][1]
    written = shaped(PRINTED[shaped][0]).splitlines()
    stands = page.between(page.PAGE.read_text(encoding="utf-8"), name).splitlines()
    assert stands[:2] == written[:2]
    assert all(row.count("|") == written[0].count("|") for row in stands)


def test_one_table_is_renewed_and_the_rest_stays() -> None:
    text = "# A\n\n<!-- growth -->\n|old|\n<!-- / -->\n\ntext\n\n<!-- limits -->\n<!-- / -->\n"
    after = page.renewed(text, "growth", "|new|\n|\\1|\n")
    assert after == text.replace("|old|", "|new|\n|\\1|")
    assert page.between(page.renewed(after, "limits", "|more|"), "limits") == "|more|"
    assert page.between(after, "growth") == "|new|\n|\\1|"
    with pytest.raises(page.Unknown):
        page.renewed(text, "requests", "|x|")


def test_every_table_has_its_place_on_the_page_and_its_bench() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    for name, (benches, _) in page.SECTIONS.items():
        assert page.between(text, name)
        assert all((page.BENCH / f"bench_{bench}.py").exists() for bench in benches)
    assert "|**" in limits.table(limits.facts(page.between(text, "throughput")))


def test_the_narrowest_limit_of_each_volume_is_the_first_bottleneck() -> None:
    known = Facts({"work": 80.0, "records": 40.0, "events": 18.0}, network=150.0, merchant=50.0, wallet=6.0, topups=2.0)
    rows = limits.limits(known)
    used = {row.name.partition(":")[0]: row.used(1_000_000) for row in rows}
    assert used["new table `work`"] == pytest.approx(80 * 57.87 / 4_000, rel=1e-3)
    assert used["`evt#<tenant>`"] == pytest.approx(18 * 0.05 * 57.87 / 1_000, rel=1e-3)
    assert used["`expiry#`, `deposit#<network>`"] == pytest.approx(4 * 0.5 * 57.87 / 1_000, rel=1e-3)
    assert used["one hot wallet's withdrawals"] == pytest.approx(limits.WITHDRAWN * 0.5 * 57.87 / 6, rel=1e-3)
    assert used["wallet `topup`, mean"] == pytest.approx(limits.TOPPED_UP * 0.5 * 11.574 / 2, rel=1e-3), "without the peak"
    assert used["collections, mean"] == pytest.approx(500_000 / 41_000) and used["consolidations, mean"] > used["collections, mean"]
    assert used["archive, mean"] == pytest.approx(1_000_000 / 86_400 / limits.ARCHIVED)
    assert rows[0].name == "consolidations, mean", "work that can wait is compared by its mean, without the peak"
    assert [row.used(1) for row in rows] == sorted((row.used(1) for row in rows), reverse=True)
    lines = limits.table(known).splitlines()
    (new,) = [line for line in lines if line.startswith("|new table `work`")]
    assert new.endswith("|116%|||")
    bold = [line for line in lines if "**" in line]
    assert len(bold) == 1 and bold[0].count("**") == 6 and "consolidations" in bold[0]
    assert limits.facts(MODEL).network == 154.0 and limits.facts(MODEL).merchant == 54.0


def test_a_wallet_pays_as_fast_as_its_calls_come_one_after_the_other() -> None:
    alone = limits.sent_a_second(Cost({}, {}, {}), ())
    busy = limits.sent_a_second(Cost({"GetItem": 100}, {}, {}), ())
    assert 1 / busy - 1 / alone == pytest.approx(100 * limits.READ.mean / 1_000)
    signed = limits.sent_a_second(Cost({"Sign": 1}, {}, {}), ())
    assert 1 / signed - 1 / alone == pytest.approx(limits.SIGN.mean / 1_000)
    asked = limits.sent_a_second(Cost({}, {}, {}), (1, 4))
    assert 1 / asked - 1 / alone == pytest.approx((limits.NODE.slowest(1) + limits.NODE.slowest(4)) / 1_000)


def test_a_paid_invoice_is_its_steps_without_what_a_poll_takes_anyway() -> None:
    def cost(**writes: float) -> Cost:
        return Cost({}, writes, {})

    costs = {
        "poll: an empty block": cost(chain=10.0),
        "create an invoice": cost(records=99.0),
        "create an invoice, with an endpoint": cost(records=16.0, work=6.0),
        "poll: a payment is detected, with an endpoint": cost(chain=18.0, work=10.0),
        "poll: a paid invoice's hour is over, with an endpoint": cost(chain=4.0),
    }
    assert limits.paid_invoice(costs) == {"records": 16.0, "work": 16.0, "chain": 8.0}


def test_a_round_trip_waits_for_the_slowest_of_its_requests() -> None:
    luck, draws = Random(17), 20_000
    seen = fmean(max(limits.NODE.draw(luck) for _ in range(4)) for _ in range(draws))
    assert limits.NODE.slowest(4) == pytest.approx(seen, rel=0.02)
    assert limits.NODE.slowest(1) == pytest.approx(limits.NODE.mean, rel=0.01)
