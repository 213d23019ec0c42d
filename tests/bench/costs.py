"""The table of what steps cost, `costs.md` beside this file: how it is written, read and compared (steps.py measures)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.bench.accounting import Account

TABLE = Path(__file__).with_name("costs.md")
RENEW = ".venv/bin/python -m tests.bench.steps"
HEAD = """What each step costs, on a simulated ethereum unless it says otherwise: `python -m tests.bench.steps` writes this table.

|step|request|calls|write units|read units|which calls|writes|reads|
|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Cost:
    """Calls of AWS by name; units by table; routes of the API that are asked."""

    calls: dict[str, int]
    writes: dict[str, float]
    reads: dict[str, float]
    asked: tuple[str, ...] = ()

    @classmethod
    def of(cls, account: Account, asked: Iterable[str] = ()) -> Cost:
        calls = Counter(name for _, name, sent in account.sent if "-sandbox" not in str(sent))
        writes, reads = (
            {table.rsplit("-", 1)[1]: float(count) for table, count in units.items() if "sandbox" not in table}
            for units in (account.writes, account.reads)
        )
        return cls(dict(calls), writes, reads, tuple(asked))

    def less(self, other: Cost) -> Cost:
        """The rest, where `other` is a part of it."""
        calls, writes, reads = (
            {key: count - part.get(key, 0) for key, count in whole.items() if count != part.get(key, 0)}
            for whole, part in ((self.calls, other.calls), (self.writes, other.writes), (self.reads, other.reads))
        )
        return Cost({key: int(count) for key, count in calls.items()}, writes, reads, self.asked)

    def row(self, name: str) -> str:
        parts = (self.calls, self.writes, self.reads)
        totals = "|".join(f"{sum(part.values()):g}" for part in parts)
        named = "|".join(", ".join(f"{key} {part[key]:g}" for key in sorted(part) if part[key]) for part in parts)
        return f"|{name}|{', '.join(self.asked)}|{totals}|{named}|"


def shown(costs: dict[str, Cost]) -> str:
    """The table, as it stands in `TABLE`."""
    return HEAD + "".join(cost.row(name) + "\n" for name, cost in costs.items())


def parsed(text: str) -> dict[str, Cost]:
    """The costs that a table shows."""
    found = {}
    for line in text.removeprefix(HEAD).splitlines():
        name, asked, _, _, _, *parts = line[1:-1].split("|")
        calls, writes, reads = ({key: float(n) for key, n in (one.rsplit(" ", 1) for one in p.split(", ") if one)} for p in parts)
        requests = tuple(one for one in asked.split(", ") if one)
        found[name] = Cost({key: int(n) for key, n in calls.items()}, writes, reads, requests)
    return found


def differences(before: dict[str, Cost], now: dict[str, Cost]) -> list[str]:
    """A line for each step that costs otherwise: what, by how much, and where."""
    lines = [f"{name}: no such step any more" for name in before if name not in now]
    for name, cost in now.items():
        if name not in before:
            lines.append(f"{name}: a new step")
            continue
        if before[name].asked != cost.asked:
            lines.append(f"{name}: asks {cost.asked}, no more {before[name].asked}")
        for what, old, new in (
            ("calls", before[name].calls, cost.calls),
            ("write units", before[name].writes, cost.writes),
            ("read units", before[name].reads, cost.reads),
        ):
            parts = [f"{k} {old.get(k, 0):g} → {new.get(k, 0):g}" for k in sorted({*old, *new}) if old.get(k, 0) != new.get(k, 0)]
            if parts:
                had, has = sum(old.values()), sum(new.values())
                word = "DEARER" if has > had else "cheaper" if has < had else "otherwise"
                lines.append(f"{name}: {what} {had:g} → {has:g}, {word} ({', '.join(parts)})")
    return lines
