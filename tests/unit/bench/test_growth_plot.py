"""docs/growth.svg shows what the page's table of growth says, for every measure, to those who see it and those who do not."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.bench import growth_plot, page, plot
from tests.bench.bench_growth import Point, rows

SVG = "{http://www.w3.org/2000/svg}"
TABLES = (
    "|invoices|10|1,000,000|\n|---|---|---|\n|list,with its number|3;1/2.5;6.4|4;1/224.5;6.2|\n|read|2;1/1;3|2;1/1;2|\n\n"
    "|pages|0|100|\n|---|---|---|\n|by <cursor>|4;1/1;5.7|2;1/1;3.7|\n"
)


def test_a_table_becomes_a_panel_for_each_measure() -> None:
    found = growth_plot.panels(TABLES)
    assert list(found) == [growth_plot.CALLS, growth_plot.UNITS, growth_plot.CPU]
    assert all(list(charts) == ["invoices", "pages"] for charts in found.values())
    assert found[growth_plot.CALLS]["invoices"]["list, with its number"] == {10: 3.0, 1_000_000: 4.0}
    assert found[growth_plot.UNITS]["invoices"]["list, with its number"] == {10: 3.5, 1_000_000: 225.5}
    assert found[growth_plot.CPU]["pages"]["by <cursor>"] == {0: 5.7, 100: 3.7}
    with pytest.raises(ValueError, match="'7/1;2' is no point"):
        growth_plot.panels("|a|1|\n|---|---|\n|b|7/1;2|")


def test_what_the_bench_prints_is_what_is_drawn() -> None:
    point = Point(3, 1, 2.5, 6.44)
    printed = "\n".join(rows("invoices of a merchant", {"list, with its number": {10: point, 1_000_000: point}})) + "\n"
    found = growth_plot.panels(page.tables(printed + "\nbudget: kept\n"))
    assert found[growth_plot.CPU] == {"invoices of a merchant": {"list, with its number": {10: 6.4, 1_000_000: 6.4}}}


def test_a_picture_has_its_lines_axes_and_words() -> None:
    root = ET.fromstring(growth_plot.drawn(TABLES))  # noqa: S314 (ours)
    assert len(root.findall(f"{SVG}polyline")) == 3 * 3 and len(root.findall(f"{SVG}circle")) == 3 * 6
    said = [text.text for text in root.findall(f"{SVG}text")]
    for measure in (growth_plot.CALLS, growth_plot.UNITS, growth_plot.CPU):
        assert said.count(measure) == 2, "the panel's title, and the label of its axis"
    assert said.count("invoices") == said.count("pages") == 3 and said.count("1M") == 3
    assert said.count("by <cursor>") == 1
    named = root.attrib["aria-labelledby"].split()
    assert root.attrib["role"] == "img"
    assert [each.attrib["id"] for each in root if each.tag in (f"{SVG}title", f"{SVG}desc")] == named
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for circle in root.findall(f"{SVG}circle"):
        assert 0 < float(circle.attrib["cx"]) < width and 0 < float(circle.attrib["cy"]) < height


def test_lines_that_lie_on_each_other_stay_visible() -> None:
    same = {"a": {1: 2.0, 10: 2.0}, "b": {1: 2.0, 10: 2.0}}
    root = ET.fromstring(plot.drawn("t", "d", {"m": {"g": same}}))  # noqa: S314 (ours)
    wide = [float(line.attrib["stroke-width"]) for line in root.findall(f"{SVG}polyline")]
    assert wide == sorted(wide, reverse=True) and wide[0] > wide[1]


def test_scales_end_at_a_round_number() -> None:
    assert [plot.above(value) for value in (0, 0.4, 1, 3, 7.4, 24, 41.4, 445)] == [1, 0.5, 1, 5, 10, 25, 50, 500]


def test_the_picture_of_the_docs_is_that_of_the_page() -> None:
    table = page.between(page.PAGE.read_text(encoding="utf-8"), "growth")
    assert growth_plot.PICTURE.read_text(encoding="utf-8") == growth_plot.drawn(table), "python -m tests.bench.growth_plot"
