"""Renews the tables of docs/scale.md: each stands between `<!-- name -->` and `<!-- / -->`, and comes from what its benches print.

`python -m tests.bench.page` (`make bench`) runs every bench and renews all, `python -m tests.bench.page growth limits` those two.
`limits` is computed from the others and from costs.md (limits.py).
With `growth` its picture is drawn (growth_plot.py). Where a bench fails, or prints what is not understood, its table stays, and
this ends with 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tests.bench import growth_plot, limits

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "scale.md"
BENCH = ROOT / "tests" / "bench"
WRITE, READ = 0.625, 0.125
"""USD a million units: DynamoDB on demand in us-east-1 (docs/scale.md has the source)."""
NUMBER = r"([\d.,]+)"
FIRST = ", first request"
"""How the bench of cold starts names a start that goes on to its first request."""


BROKEN: list[str] = []
"""Benches of this run whose budget was not kept."""


class Unknown(Exception):
    """A bench printed something else than expected."""


def between(text: str, name: str) -> str:
    """What stands between the marks of `name`. Raises Unknown."""
    found = re.search(rf"<!-- {name} -->\n(.*?)\n?<!-- / -->", text, re.DOTALL)
    if found is None:
        raise Unknown(f"the page has no place for {name}")
    return found[1]


def renewed(text: str, name: str, table: str) -> str:
    """The page with another table in the place of `name`. Raises Unknown."""
    between(text, name)
    shape = rf"<!-- {name} -->\n.*?<!-- / -->"
    return re.sub(shape, lambda _: f"<!-- {name} -->\n{table.strip()}\n<!-- / -->", text, count=1, flags=re.DOTALL)


@cache
def printed(bench: str) -> str:
    """What a bench prints; printed here as well. A budget that is not kept fails this run, and its figures are shown all the same.
    Raises Unknown."""
    print(f"== bench_{bench}", flush=True)
    command = [sys.executable, str(BENCH / f"bench_{bench}.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1_200, check=False)
    print(done.stdout, flush=True)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise Unknown(f"bench_{bench} ended with {done.returncode}: {done.stderr[-500:]}")
    if done.returncode:
        BROKEN.append(bench)
    return done.stdout


def table(head: str, rows: Iterator[str]) -> str:
    """A Markdown table, written without blanks: the page has a bound of words. Raises Unknown where there is no row."""
    lines = list(rows)
    if not lines:
        raise Unknown(f"there is nothing for the table {head}")
    return "\n".join([f"|{head}|", "|" + "---|" * (head.count("|") + 1), *(f"|{line}|" for line in lines)])


def tables(told: str) -> str:
    """The tables that a bench prints itself, one below the other. Raises Unknown where there is none."""
    groups = [block for block in re.split(r"(?:^(?!\|).*\n?)+", told, flags=re.MULTILINE) if block.strip()]
    if not groups:
        raise Unknown("there is no table")
    return "\n\n".join(re.sub(r"([,;]) (?=\S)", r"\1", block.strip()) for block in groups)


def requests(told: str) -> str:
    def rows() -> Iterator[str]:
        for name, cpu, botocore, _, calls, _, ratio in re.findall(rf"^(\S.*?) +{' +'.join([NUMBER] * 6)}$", told, re.MULTILINE):
            yield f"{name}|{float(cpu):.1f}|{float(botocore):.1f}|{round(float(calls))}|{float(ratio):.1f}"

    return table("request|CPU ms|of it botocore|AWS calls|to bare botocore", rows())


def paid(told: str) -> str:
    """A paid invoice over its whole life, by DynamoDB's units and calls of AWS."""

    def rows() -> Iterator[str]:
        for name, write, parts, read, calls in re.findall(
            rf"^\|(.+?)\|{NUMBER}\|([^|]+)\|{NUMBER}\|{NUMBER}\|$", told, re.MULTILINE
        ):
            case = name.replace(", no webhooks", ";0").replace(", one endpoint, all events", ";1").replace(" ", "")
            short = ",".join(f"{part.split()[0]}:{float(part.split()[1]):.0f}" for part in parts.split(", "))
            price = float(write) * WRITE + float(read) * READ
            yield f"{case}|{float(write):.0f}|{short}|{float(read):.0f}|{float(calls):.0f}|${price:.0f}"

    return table("paid invoice;endpoints|write units|by table|read units|AWS calls|a million", rows())


def deliveries(told: str) -> str:
    shape = rf"^(\S.* x \S.* ms) +{NUMBER}/s +{NUMBER} +{NUMBER} .* {NUMBER} +{NUMBER} +{NUMBER} +{NUMBER}/s +{NUMBER}/s$"
    found = re.findall(shape, told, re.MULTILINE)
    rows = (f"{one[0]}|{one[2]}|{one[3]}|{one[6]}|{one[4]}|{one[1]}|{one[7]}|{one[8]}" for one in found)
    head = "endpoints x due, answer|CPU ms|of it botocore|AWS calls|to bare calls|measured/s|a core/s|at the function's memory/s"
    return table(head, iter(rows))


def signatures(told: str) -> str:
    found = re.findall(rf"^ *(\S.*?) +{NUMBER} +{NUMBER} +{NUMBER}$", told, re.MULTILINE)
    return table("payment|ours|key|second reader", (f"{n}|{float(a):.1f}|{float(b):.2f}|{float(c):.1f}" for n, a, b, c in found))


def cold(told: str) -> str:
    """Starts of functions: until they are ready, and until their first request to AWS."""
    shape = rf"^(\S.*?) +best +{NUMBER} ms +median +{NUMBER} ms +{NUMBER} MB +{NUMBER} x the floor +not compiled +{NUMBER} ms$"
    found = {name: figures for name, *figures in re.findall(shape, told, re.MULTILINE)}

    def rows() -> Iterator[str]:
        for name, (best, _, memory, ratio, plain) in found.items():
            if not name.endswith(FIRST):
                first = found.get(f"{name}{FIRST}", [""])[0]
                yield f"{name}|{best}|{ratio}|{plain}|{first}|{memory}"

    return table("start|CPU ms|floors|not compiled|first request|MB", rows())


def collection(told: str) -> str:
    def rows() -> Iterator[str]:
        found = re.findall(rf"^(.+): (reads|writes|calls) {NUMBER} \((.*)\)$", told, re.MULTILINE)
        for name in dict.fromkeys(name for name, *_ in found):
            of = {kind: (total, parts) for other, kind, total, parts in found if other == name}
            write, read, calls = (float(of[kind][0]) for kind in ("writes", "reads", "calls"))
            yield f"{name}|{write:.0f}|{read:.0f}|{calls:.0f}|${write * WRITE + read * READ:.0f}"

    return table("deposit|write units|read units|AWS calls|a million", rows())


def comparing(told: str) -> str:
    rows = [line.strip("|") for line in told.splitlines() if line.startswith(("|all on ", "|spread over "))]
    return table(
        "10,000,000 addresses|hours of the slowest network; nodes 100 ms, 250 ms|played|USD a day; 100 ms, 250 ms|played",
        iter(rows),
    )


def matching(told: str) -> str:
    shape = rf"^(.+): {NUMBER} movements, {NUMBER} watched: {NUMBER} calls, {NUMBER} keys, .* {NUMBER} ms CPU$"

    def rows() -> Iterator[str]:
        found = re.findall(shape, told, re.MULTILINE)
        for name in dict.fromkeys(one[0] for one in found):
            ours = [one for one in found if one[0] == name]
            yield f"{name}|{ours[0][4]}|{ours[0][3]}|" + "|".join(one[5] for one in ours)

    return table("block|recipients|calls|CPU ms, 1,000 watched|10,000,000", rows())


def seconds(told: str) -> str:
    """Of each network both cases that were simulated as the service works, and its month."""
    before, _, month = told.partition("\nA month")
    cases = [found for found in re.split(r"\n(?=[\d.]+ payments a second)", before) if "as the service does" in found]
    p95: dict[str, list[str]] = {}
    for case in cases:
        for row in (line.strip("|").split("|") for line in case.splitlines() if line.startswith("|")):
            p95.setdefault(row[0], []).append(f"{row[4]};{row[6]}")
    prices = [line.strip("|").split("|") for line in month.splitlines() if line.startswith("|")][2:]
    rows = (
        f"{row[0]}|{'|'.join([*p95.get(row[0], []), '', ''][:2])}|{row[1]};{row[2]}|{row[3]};{row[4]}"
        for row in prices
        if len(row) == 5
    )
    return table("network|p95 s, spread; waits doubled|all on it|USD a month, idle; busy|million node requests, idle; busy", rows)


def latencies(told: str) -> str:
    """What `seconds` assumes: of each source its URL or file, and whether it is an assumption."""

    def rows() -> Iterator[str]:
        waits, _, _ = told.partition(" payments a second")
        for name, p50, p99, source in re.findall(rf"^\|(\w+)\|{NUMBER}\|{NUMBER}\|([^|]+)\|$", waits, re.MULTILINE):
            said = re.findall(r"[\w.]+/[\w./-]*\w", source) + ["assumed"] * ("assumed" in source)
            yield f"{name}|{float(p50):.0f};{float(p99):.0f}|{';'.join(said) or source}"

    return table("wait|p50;p99 ms|source", rows())


def measured(told: str) -> str:
    _, _, of_stack = told.partition("Measured, ")
    found = re.findall(rf"^\|(\w+)\|{NUMBER}\|{NUMBER}\|{NUMBER}\|{NUMBER}\|{NUMBER}\|$", of_stack, re.MULTILINE)
    rows = (f"{slug}|{sent};{heard}|{p50}|{p95}|{longest}" for slug, sent, heard, p50, p95, longest in found)
    return table("network|sent;heard|p50|p95|longest", rows)


def node_latency(told: str) -> str:
    """Seconds to read a minute, by how many nodes answer how fast."""
    found = re.findall(rf"^(\w+), {NUMBER}, {NUMBER}, {NUMBER}, {NUMBER}(?: \(budget {NUMBER}\))?$", told, re.MULTILINE)
    by: dict[str, list[str]] = {}
    heads = [f"{nodes}x{1000 * float(answer):.0f}ms" for slug, _, nodes, answer, *_ in found if slug == found[0][0]]
    for slug, blocks, _, _, took, budget in found:
        by.setdefault(f"{slug}|{blocks}", []).append(took + (f";{budget}" if budget else ""))
    return table("|".join(["network|blocks", *heads]), (f"{name}|{'|'.join(took)}" for name, took in by.items()))


def local(told: str) -> str:
    """Reads of the local stack, and what it takes at rest."""
    found = re.findall(rf"^(.+): one client {NUMBER} a second, four {NUMBER} \(", told, re.MULTILINE)
    rest = re.findall(rf"^at rest: {NUMBER} % of a core", told, re.MULTILINE)
    rows = [*(f"{name},a second|{one}|{four}" for name, one, four in found), *(f"at rest,% of a core|{share}|" for share in rest)]
    return table("`make run`|one client|four", iter(rows))


def scans(told: str) -> str:
    shape = rf"^(.+?) \({NUMBER} kB\): raw {NUMBER} ms, reader {NUMBER} ms, ratio {NUMBER}"
    found = re.findall(shape, told, re.MULTILINE)
    rows = (f"{re.sub(' (transactions|logs)', '', one[0])}|{'|'.join(one[1:])}" for one in found)
    return table("block: transactions, logs|kB|raw ms|reader ms|ratio", rows)


Section = tuple[tuple[str, ...], Callable[[str], str]]
SECTIONS: dict[str, Section] = {
    "requests": (("requests",), requests),
    "comparing": (("comparing",), comparing),
    "paid": (("invoice",), paid),
    "deliveries": (("deliveries",), deliveries),
    "signatures": (("signatures",), signatures),
    "matching": (("matching",), matching),
    "scans": (("scan_evm", "scan_tron", "scan_utxo"), scans),
    "cold": (("cold_start",), cold),
    "collection": (("collection",), collection),
    "throughput": (("throughput",), tables),  # before `seconds`, which reads it
    "seconds": (("seconds",), seconds),
    "latencies": (("seconds",), latencies),
    "measured": (("measured",), measured),
    "nodes": (("node_latency",), node_latency),
    "local": (("local_reads",), local),
    "archive": (("archive",), tables),
    "growth": (("growth",), tables),
}
"""Benches whose output, one after the other, makes the table, and how."""
LIMITED_BY = ("throughput", "deliveries", "archive")
"""The tables that `limits` is computed from."""


def section(name: str) -> str:
    """The table `name`. Raises Unknown."""
    if name == "limits":
        text = PAGE.read_text(encoding="utf-8")
        return limits.table(limits.facts(*(between(text, of) for of in LIMITED_BY)))
    benches, shaped = SECTIONS[name]
    return shaped("\n".join(printed(bench) for bench in benches))


def main() -> int:
    names, failed = sys.argv[1:] or [*SECTIONS, "limits"], []
    for name in names:
        try:
            made = section(name)
            text = renewed(PAGE.read_text(encoding="utf-8"), name, made)
            if name == "growth":
                growth_plot.PICTURE.write_text(growth_plot.drawn(between(text, name)), encoding="utf-8")
            PAGE.write_text(text, encoding="utf-8")
        except (Unknown, ValueError, LookupError, subprocess.TimeoutExpired) as error:
            failed.append(f"{name} is not renewed: {error}")
    if not sys.argv[1:]:  # all that there is: the others have no table
        shown = {bench for benches, _ in SECTIONS.values() for bench in benches}
        for bench in sorted(path.stem.removeprefix("bench_") for path in BENCH.glob("bench_*.py")):
            try:
                if bench not in shown:
                    printed(bench)
            except (Unknown, subprocess.TimeoutExpired) as error:
                failed.append(str(error))
    print("\n".join([*failed, *(f"bench_{bench}: its budget is not kept" for bench in BROKEN)]) or "every budget is kept")
    return 1 if failed or BROKEN else 0


if __name__ == "__main__":
    sys.exit(main())
