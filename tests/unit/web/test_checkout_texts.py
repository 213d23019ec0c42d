"""What the checkout's script writes: local times, clocks, and what a search finds."""

from __future__ import annotations

import pytest

from tests.support.javascript import value

pytestmark = pytest.mark.nodes


_IMPORTS = 'import { clock, localTimes, matches } from "checkout/texts.js";'


def test_clocks() -> None:
    assert value(_IMPORTS, "[0, 9, 75, 3599, 3675, 90000].map(clock)") == [
        "00:00",
        "00:09",
        "01:15",
        "59:59",
        "1:01:15",
        "25:00:00",
    ]


def test_a_search_finds_every_word() -> None:
    assert value(
        _IMPORTS, '["", "USDT", " tron  us ", "tron btc", "(.*"].map((query) => matches("usdt usdt tron tron", query))'
    ) == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_times_are_shown_in_the_readers_zone_once() -> None:
    elements = """
const time = (dateTime, form) => ({ dateTime, dataset: { form }, textContent: "2026-05-01 12:30 UTC", title: "" });
const times = [time("2026-05-01T12:30:00.000Z", "moment"), time("2026-05-01T12:30:00.000Z", "clock"), time("evil", "moment")];
process.env.TZ = "Asia/Tokyo";
localTimes({ querySelectorAll: () => times.filter((each) => each.dataset.form) }, "de");
localTimes({ querySelectorAll: () => times.filter((each) => each.dataset.form) }, "de");
"""
    shown = value(_IMPORTS + elements, "times.map((each) => [each.textContent, each.title])")
    utc = "2026-05-01 12:30 UTC"
    assert shown == [["01.05.2026, 21:30", utc], ["21:30", utc], [utc, ""]]
