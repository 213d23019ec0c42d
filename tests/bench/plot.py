"""A picture of series over growing sizes, as SVG: panels side by side, sizes on a scale of powers of ten."""

from __future__ import annotations

import math
from html import escape

WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 170, 40, 34, 60
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e")

Panels = dict[str, dict[str, dict[int, float]]]
"""Values by panel, line and size."""


def drawn(panels: Panels, unit: str) -> str:
    """The picture's text. Every panel has its own scale from 0; `unit` is said once."""
    most = max(len(lines) for lines in panels.values())
    height = TOP + HEIGHT + 34 + 14 * most
    width = LEFT + len(panels) * (WIDTH + GAP)
    body = [panel(title, lines, LEFT + place * (WIDTH + GAP)) for place, (title, lines) in enumerate(panels.items())]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{LEFT}" y="13" font-weight="bold">{escape(unit)}</text>\n' + "\n".join(body) + "\n</svg>\n"
    )


def panel(title: str, lines: dict[str, dict[int, float]], left: int) -> str:
    """One panel at `left`: its axes, its lines, and their names below."""
    sizes = sorted({size for points in lines.values() for size in points})
    top = max(value for points in lines.values() for value in points.values()) * 1.15 or 1.0
    low, high = (math.log10(max(size, 1)) for size in (sizes[0], sizes[-1]))

    def x(size: int) -> float:
        return left + WIDTH * (math.log10(max(size, 1)) - low) / ((high - low) or 1.0)

    def y(value: float) -> float:
        return TOP + HEIGHT * (1 - value / top)

    parts = [
        f'<text x="{left}" y="{TOP - 6}">{escape(title)}</text>',
        f'<path d="M{left} {TOP}V{TOP + HEIGHT}H{left + WIDTH}" fill="none" stroke="#888"/>',
    ]
    for share in (0.5, 1.0):
        value = top / 1.15 * share
        parts.append(f'<text x="{left - 4}" y="{y(value) + 4:.0f}" text-anchor="end">{value:.3g}</text>')
    for size in sizes:
        parts.append(f'<text x="{x(size):.0f}" y="{TOP + HEIGHT + 14}" text-anchor="middle">{_short(size)}</text>')
    for place, (name, points) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        drawn_points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in sorted(points.items()))
        parts.append(f'<polyline points="{drawn_points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"/>' for s, v in points.items()]
        parts.append(f'<text x="{left}" y="{TOP + HEIGHT + 32 + 14 * place}" fill="{colour}">{escape(name)}</text>')
    return "\n".join(parts)


def _short(size: int) -> str:
    for much, letter in ((1_000_000, "M"), (1_000, "k")):
        if size >= much:
            return f"{size / much:g}{letter}"
    return str(size)
