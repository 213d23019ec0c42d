"""The shop's colour is always one that can be read on, and seen."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.web.colors import contrast, ink_on, rgb, seen_on, sheet

PARTS = st.integers(0, 255)


@given(st.tuples(PARTS, PARTS, PARTS), st.sampled_from([(0xF5, 0xF7, 0xFA), (0x1D, 0x28, 0x3A)]))
def test_every_color_is_seen_and_read(color: tuple[int, int, int], ground: tuple[int, int, int]) -> None:
    shown = seen_on(color, ground)
    assert contrast(shown, ground) >= 3
    assert contrast(shown, rgb(ink_on(shown).replace("fff", "ffffff").replace("000", "000000"))) >= 4.5
    assert seen_on(shown, ground) == shown


def test_known_contrasts() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast(rgb("#767676"), rgb("#ffffff")) == pytest.approx(4.54, abs=0.01)


def test_a_sheet_has_a_color_by_day_and_by_night() -> None:
    text = sheet("#FFFF00")
    assert len(re.findall(r"--accent:#ffff00;--accent-ink:#000;--accent-edge:#[0-9a-f]{6}\}", text)) == 2
    assert "--accent-edge:#ffff00}}" in text, "by night it is seen as it is"
    for evil in ("", "red", "#fff", "#12345", "#1234567", "#00000g", "#000000;}body{display:none", "#000000\n", "</style>"):
        assert sheet(evil) == "", evil
