"""The page's tables are made of what benches print, and what is not understood changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from statistics import fmean

import pytest

from tests.bench import limits, page
from tests.bench.costs import TABLE, Cost, parsed
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
MODEL = (
    "|a payment's|CPU ms|\n|---|---|\n|detection alone|3.9|\n\n"
    "|case|singles|8 groups|first|\n|---|---|---|---|\n|200/s, 100 merchants|9;6|154;152|x|\n|50/s, one merchant|9;6|54;37|x|\n"
)
SENT = (
    "|endpoints x due, answer|CPU ms|at the function's memory/s|\n|---|---|---|\n|1 x 300, 100 ms|2|156|\n|200 x 1, 100 ms|5|54|\n"
)
AWAY = "|function|payments/s|\n|---|---|\n|archive|21|\n"


def known() -> Facts:
    """As the page stands."""
    text = page.PAGE.read_text(encoding="utf-8")
    return limits.facts(*(page.between(text, name) for name in page.LIMITED_BY))


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
    assert "|**" in limits.table(known())


def test_the_narrowest_limit_of_each_volume_is_the_first_bottleneck() -> None:
    facts = Facts(
        {"work": 80.0, "records": 40.0, "events": 18.0},
        network=150.0, merchant=50.0, wallet=6.0, topups=2.0, deliveries=5_000.0, archived=20.0,
    )  # fmt: skip
    rows = limits.limits(facts)
    used = {row.name.partition(":")[0]: row.used(1_000_000) for row in rows}
    assert used["new table `work`"] == pytest.approx(80 * 57.87 / 4_000, rel=1e-3)
    assert used["`evt#<tenant>`"] == pytest.approx(18 * 0.05 * 57.87 / 1_000, rel=1e-3)
    assert used["`expiry#`, `deposit#<network>`"] == pytest.approx(4 * 0.5 * 57.87 / 1_000, rel=1e-3)
    assert used["one hot wallet's withdrawals"] == pytest.approx(limits.WITHDRAWN * 0.5 * 57.87 / 6, rel=1e-3)
    assert used["wallet `topup`, mean"] == pytest.approx(limits.TOPPED_UP * 0.5 * 11.574 / 2, rel=1e-3), "without the peak"
    assert used["collections, mean"] == pytest.approx(500_000 / (200 * 86_400 / (2 * (12 * 12 + 60))))
    assert used["consolidations, mean"] == pytest.approx(500_000 / (20 * 80 * 86_400 / (6 * 600 + 60 + 300)))
    assert used["archive, mean"] == pytest.approx(1_000_000 / 86_400 / 20)
    assert used["deliveries"] == pytest.approx(5 * 57.87 / 5_000, rel=1e-3)
    assert used["requests"] == pytest.approx((2 + limits.CHECKOUT) * 57.87 / 10_000, rel=1e-3)
    assert rows[0].name == "consolidations, mean", "work that can wait is compared by its mean, without the peak"
    assert [row.used(1) for row in rows] == sorted((row.used(1) for row in rows), reverse=True)
    lines = limits.table(facts).splitlines()
    (new,) = [line for line in lines if line.startswith("|new table `work`")]
    assert new.endswith("|116%|||")
    bold = [line for line in lines if "**" in line]
    assert len(bold) == 1 and bold[0].count("**") == 6 and "consolidations" in bold[0]


def test_what_was_measured_is_read_from_the_tables_of_the_page() -> None:
    facts = limits.facts(MODEL, SENT, AWAY)
    assert (facts.network, facts.merchant, facts.archived) == (154.0, 54.0, 21.0)
    assert facts.deliveries == 54 * 100, "so many functions as app.py says"
    for missing in ((MODEL, "", AWAY), (MODEL, SENT, "")):
        with pytest.raises(KeyError):
            limits.facts(*missing)


def test_a_table_is_renewed_before_it_is_read() -> None:
    names = list(page.SECTIONS)
    assert names.index("throughput") < names.index("seconds"), "bench_seconds.py reads CPU and calls of it"
    assert set(page.LIMITED_BY) < set(names) and "limits" not in names, "it comes after all"


def test_a_payers_page_asks_as_often_as_its_script_says() -> None:
    script = limits.SCRIPT.read_text(encoding="utf-8")
    assert "/^(pending|partial|confirming)$/.test(shown.status) ? OPEN : SETTLED" in script, "until it is paid"
    (milliseconds,) = re.findall(r"^const OPEN = (\d+),", script, re.MULTILINE)
    asked, first, anew = limits.OPEN_S / (int(milliseconds) / 1_000), 1, limits.OPEN_S / 12
    files = {"checkout.js", "texts.js", "wallets.js", "evm.js", "found_wallets.js", "tron_link.js", "checkout.css", "icon.svg"}
    assert asked + first + anew == limits.ASKS
    assert limits.ASKS + len(files) == limits.CHECKOUT
    assert limits.stated("const OPEN = 1500, A = 1", r"\bOPEN = (\d+)\b") == 1_500
    for other in ("const CLOSED = 3000", "OPEN = 1; OPEN = 2"):
        with pytest.raises(ValueError):
            limits.stated(other, r"\bOPEN = (\d+)\b")


def test_the_page_says_what_is_computed() -> None:
    """Figures in the text of docs/scale.md, rounded as they are there."""
    text, facts = page.PAGE.read_text(encoding="utf-8"), known()
    costs = parsed(TABLE.read_text(encoding="utf-8"))
    minutes, asked = limits.OPEN_S / 60, limits.ASKS * sum(costs["a payer asks for an invoice's state"].reads.values())
    others = min(limits.collected(one) for one in limits.LIVE.values() if one.family != "utxo" and one.slug != "ethereum")

    def thousands(found: float) -> str:
        return f"{round(found, -3):,.0f}"

    for said in (
        f"open {minutes:g} minutes, {limits.ASKS:g} reads, at most {asked:.0f} read units, ${asked * page.READ:.0f} a million",
        f"(`simulated;1` alone: {sum(limits.paid_invoice(costs).values()):.0f} units, {limits.calls_of_paid_invoice(costs)} calls)",
        f"{thousands(limits.consolidated(limits.LIVE['bitcoin']))} deposits a day on bitcoin",
        f"{thousands(limits.collected(limits.LIVE['ethereum']))} a day on ethereum, {thousands(others)} or more on others",
        f"payouts, {thousands(facts.wallet * limits.DAY)} a day", f"top-ups {thousands(facts.topups * limits.DAY)}:",
    ):  # fmt: skip
        assert said in text.replace("\n", " "), said
    (reached,) = re.findall(r"500 are not reached, but (\d+): `deposit#<network>`", text)
    (paper,) = (row for name, row in limits.rows_of(page.between(text, "throughput")).items() if name.startswith("500/s"))
    assert float(paper["8 functions"].split(";")[0]) == pytest.approx(float(reached), rel=0.1)
    assert paper["first"].startswith("`deposit#`")


def test_a_wallet_pays_as_fast_as_its_calls_come_one_after_the_other() -> None:
    alone = limits.sent_a_second(Cost({}, {}, {}), ())
    busy = limits.sent_a_second(Cost({"GetItem": 100}, {}, {}), ())
    assert 1 / busy - 1 / alone == pytest.approx(100 * limits.READ.mean / 1_000)
    signed = limits.sent_a_second(Cost({"Sign": 1}, {}, {}), ())
    assert 1 / signed - 1 / alone == pytest.approx(limits.SIGN.mean / 1_000)
    asked = limits.sent_a_second(Cost({}, {}, {}), (1, 4))
    assert 1 / asked - 1 / alone == pytest.approx((limits.NODE.slowest(1) + limits.NODE.slowest(4)) / 1_000)


def test_a_paid_invoice_is_its_steps_without_what_a_poll_takes_anyway() -> None:
    def cost(calls: int = 1, **writes: float) -> Cost:
        return Cost({"GetItem": calls}, writes, {})

    costs = {
        "poll: an empty block": cost(30, chain=10.0),
        "create an invoice": cost(records=99.0),
        "create an invoice, with an endpoint": cost(records=16.0, work=6.0),
        "poll: a payment is detected, with an endpoint": cost(36, chain=18.0, work=10.0),
        "poll: a paid invoice's hour is over, with an endpoint": cost(28, chain=4.0),
    }
    assert limits.paid_invoice(costs) == {"records": 16.0, "work": 16.0, "chain": 8.0}
    assert limits.calls_of_paid_invoice(costs) == 1 + 6 + 0


def test_a_round_trip_waits_for_the_slowest_of_its_requests() -> None:
    luck, draws = Random(17), 20_000
    seen = fmean(max(limits.NODE.draw(luck) for _ in range(4)) for _ in range(draws))
    assert limits.NODE.slowest(4) == pytest.approx(seen, rel=0.02)
    assert limits.NODE.slowest(1) == pytest.approx(limits.NODE.mean, rel=0.01)
