"""A picture of series over growing sizes, as SVG: a panel for each measure, one below the other, and in each a chart for whatever
grows. Sizes are on a scale of powers of ten, values on one from 0.
"""

from __future__ import annotations

import math
from html import escape

WIDTH, HEIGHT, LEFT, TOP, GAP, FOOT = 170, 120, 70, 46, 46, 62
"""Of a chart, in pixels; what is left beside and above it, between two, and below it for its sizes and their name."""
LINE = 16
COLOURS = ("#1f77b4", "#d62728", "#207520", "#7b4fa3")
"""In order; each has a contrast of 4.5 to white."""
THICK = (6.0, 4.0, 2.5, 1.2)
"""The first line is the thickest, so that those above it do not hide it."""
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)

Lines = dict[str, dict[int, float]]
"""Values by line and size."""
Panels = dict[str, dict[str, Lines]]
"""Lines by measure, which is its axis's label, and by what grows, which is the other's; each measure has the same lines."""


def drawn(title: str, description: str, panels: Panels) -> str:
    """The picture's text. `title` and `description` are read to those who do not see it; the title is shown, too."""
    grow = next(iter(panels.values()))
    width = LEFT + len(grow) * (WIDTH + GAP)
    deep = HEIGHT + TOP + FOOT
    body = [_panel(measure, charts, 20 + place * deep) for place, (measure, charts) in enumerate(panels.items())]
    legend = 30 + len(panels) * deep
    body += [_legend(lines, LEFT + place * (WIDTH + GAP), legend) for place, lines in enumerate(grow.values())]
    height = legend + LINE * max(map(len, grow.values()))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="title description" font-family="sans-serif" font-size="12" fill="#222">\n'
        f'<title id="title">{escape(title)}</title>\n<desc id="description">{escape(description)}</desc>\n'
        f'<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="12" y="20" font-size="15" font-weight="bold">{escape(title)}</text>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _panel(measure: str, charts: dict[str, Lines], top: int) -> str:
    middle = top + TOP + HEIGHT // 2
    parts = [
        f'<text x="{LEFT}" y="{top + TOP - 16}" font-size="13" font-weight="bold">{escape(measure)}</text>',
        f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">{escape(measure)}</text>',
    ]
    parts += [_chart(grows, lines, LEFT + place * (WIDTH + GAP), top + TOP) for place, (grows, lines) in enumerate(charts.items())]
    return "\n".join(parts)


def _chart(grows: str, lines: Lines, left: int, top: int) -> str:
    sizes = sorted({size for points in lines.values() for size in points})
    most = above(max(value for points in lines.values() for value in points.values()))
    low, high = (math.log10(max(size, 1)) for size in (sizes[0], sizes[-1]))

    def x(size: int) -> float:
        return left + WIDTH * (math.log10(max(size, 1)) - low) / ((high - low) or 1.0)

    def y(value: float) -> float:
        return top + HEIGHT * (1 - value / most)

    parts = []
    for value in (0.0, most / 2, most):
        parts.append(f'<path d="M{left} {y(value):.1f}h{WIDTH}" stroke="{"#ccc" if value else "#555"}"/>')
        parts.append(f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for size in sizes:
        parts.append(f'<text x="{x(size):.1f}" y="{top + HEIGHT + 17}" text-anchor="middle">{_short(size)}</text>')
    parts.append(f'<text x="{left + WIDTH / 2:.0f}" y="{top + HEIGHT + 36}" text-anchor="middle">{escape(grows)}</text>')
    for place, points in enumerate(lines.values()):
        thick, colour = THICK[place], COLOURS[place]
        through = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in sorted(points.items()))
        parts.append(f'<polyline points="{through}" fill="none" stroke="{colour}" stroke-width="{thick:g}"/>')
        parts += [f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="{1.5 + thick / 2:g}" fill="{colour}"/>' for s, v in points.items()]
    return "\n".join(parts)


def _legend(lines: Lines, left: int, top: int) -> str:
    parts = []
    for place, name in enumerate(lines):
        down = top + LINE * place
        parts.append(f'<path d="M{left} {down - 4}h16" stroke="{COLOURS[place]}" stroke-width="{THICK[place]:g}"/>')
        parts.append(f'<text x="{left + 22}" y="{down}" fill="{COLOURS[place]}">{escape(name)}</text>')
    return "\n".join(parts)


def above(value: float) -> float:
    """The next round number that is not below `value`; 1 for none."""
    if value <= 0:
        return 1.0
    ten = 10.0 ** math.floor(math.log10(value))
    return next(times * ten for times in ROUND if times * ten >= value)


def _short(size: int) -> str:
    for much, letter in ((1_000_000, "M"), (1_000, "k")):
        if size >= much:
            return f"{size / much:g}{letter}"
    return str(size)
