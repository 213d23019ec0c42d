"""docs/growth.svg: the table `growth` of docs/scale.md as three panels. `python -m tests.bench.growth_plot` draws what stands
there; page.py does it whenever that table is renewed.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.bench import plot

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "growth.svg"
TITLE = "What an operation costs as data grows"
DESCRIPTION = (
    "Calls of AWS, request units of DynamoDB and milliseconds of CPU, for growing numbers of invoices, pages, open work, endpoints "
    "and watched addresses. The figures are the table's beside this picture. Lines are flat, but of lists that tell their number."
)
CALLS, UNITS, CPU = "AWS calls", "request units, write + read", "CPU, ms"
POINT = re.compile(r"([\d.]+);([\d.]+)/([\d.]+);([\d.]+)")
"""Calls;write/read units;CPU ms."""


def panels(tables: str) -> plot.Panels:
    """The tables' figures by panel. Raises ValueError where a field is something else."""
    found: plot.Panels = {CALLS: {}, UNITS: {}, CPU: {}}
    for table in tables.strip().split("\n\n"):
        head, _, *rows = (line.strip("|").split("|") for line in table.splitlines())
        grows, *sizes = head
        for name, *fields in rows:
            for size, field in zip(sizes, fields, strict=True):
                point = POINT.fullmatch(field)
                if point is None:
                    raise ValueError(f"{grows}, {name}, {size}: {field!r} is no point of growth")
                calls, write, read, cpu = map(float, point.groups())
                for measure, value in ((CALLS, calls), (UNITS, write + read), (CPU, cpu)):
                    lines = found[measure].setdefault(grows, {})
                    lines.setdefault(name.replace(",", ", "), {})[int(size.replace(",", ""))] = value
    return found


def drawn(tables: str) -> str:
    """The picture's text. Raises ValueError."""
    return plot.drawn(TITLE, DESCRIPTION, panels(tables))


def main() -> None:
    from tests.bench.page import PAGE, between

    PICTURE.write_text(drawn(between(PAGE.read_text(encoding="utf-8"), "growth")), encoding="utf-8")


if __name__ == "__main__":
    main()
