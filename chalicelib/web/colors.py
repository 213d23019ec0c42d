"""The shop's colour as the pages may use it: always with text that can be read on it, and visible on its ground.

Contrast is that of WCAG 2.2 (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio).
"""

from __future__ import annotations

import re
from functools import lru_cache

_COLOR = re.compile(r"#[0-9a-fA-F]{6}", re.ASCII)
_GROUNDS = {"light": (0xF5, 0xF7, 0xFA), "dark": (0x1D, 0x28, 0x3A)}
"""The grounds that buttons lie on, `--field` of the style sheet; `--card` is further away."""
_SEEN = 3.0
"""The least contrast of a button with its ground (WCAG 1.4.11)."""
_STEPS = 20
Rgb = tuple[int, int, int]


def luminance(color: Rgb) -> float:
    """From 0 (black) to 1 (white)."""
    linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Rgb, other: Rgb) -> float:
    """From 1 (the same) to 21 (black and white)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def rgb(color: str) -> Rgb:
    """``#0b6e4f`` → (11, 110, 79). Raises ValueError for anything else."""
    if not _COLOR.fullmatch(color):
        raise ValueError(f"{color!r} is no colour of the form #rrggbb")
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def seen_on(color: Rgb, ground: Rgb) -> Rgb:
    """The colour, darker or lighter as far as it is needed to be seen on `ground`."""
    target = 0 if luminance(ground) > 0.5 else 255
    for step in range(_STEPS + 1):
        mixed: Rgb = tuple(round(part + (target - part) * step / _STEPS) for part in color)  # type: ignore[assignment]
        if contrast(mixed, ground) >= _SEEN:
            return mixed
    raise AssertionError("black and white are seen on every ground")


def ink_on(color: Rgb) -> str:
    """Black or white, whichever is read better on it: at least 4.5 to 1 on every colour."""
    return "#fff" if contrast(color, (255, 255, 255)) >= contrast(color, (0, 0, 0)) else "#000"


@lru_cache(maxsize=256)
def sheet(color: str) -> str:
    """The style sheet that makes `color` the accent of a page, by day and by night; empty for what is no colour."""
    try:
        wanted = rgb(color)
    except ValueError:
        return ""
    tokens = {name: _tokens(wanted, seen_on(wanted, ground)) for name, ground in _GROUNDS.items()}
    return f":root{{{tokens['light']}}}@media (prefers-color-scheme:dark){{:root{{{tokens['dark']}}}}}"


def _tokens(color: Rgb, edge: Rgb) -> str:
    """The colour as it is, what is written on it, and an edge where it would not be seen on its ground."""
    return f"--accent:{_text(color)};--accent-ink:{ink_on(color)};--accent-edge:{_text(edge)}"


def _text(color: Rgb) -> str:
    return f"#{color[0]:02x}{color[1]:02x}{color[2]:02x}"
