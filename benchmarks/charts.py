"""Draw small charts as SVG text: bars for the comparison, lines for the scaling.

The drawings have no background, and they have a style for light mode and one for dark mode, so they
suit a README in both modes. Only the standard library is used: the drawings of the package have
neither bars that go across nor two logarithmic axes, and would have them for benchmarks alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 15px; }
.quiet { fill: #59636e; font-size: 12px; }
.bar { fill: #8c959f; }
.floor { fill: #c9d1d9; }
.ours { fill: #0969da; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.line { stroke: #0969da; stroke-width: 2; fill: none; }
.guide { stroke: #8c959f; stroke-width: 1; stroke-dasharray: 4 4; fill: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .quiet { fill: #9198a1; }
  .bar { fill: #6e7681; }
  .floor { fill: #3d444d; }
  .ours { fill: #4493f8; }
  .grid { stroke: #3d444d; }
  .line { stroke: #4493f8; }
  .guide { stroke: #6e7681; }
}
"""


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(words)}</text>"


def document(width: float, height: float, title: str, marks: Sequence[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            *marks,
            "</svg>\n",
        ]
    )


# ------------------------------------------------------------------ bars


@dataclass(frozen=True)
class Bar:
    """One row of a bar chart: as many values as the chart has columns."""

    name: str
    values: tuple[float, ...]
    captions: tuple[str, ...]
    kind: str = "bar"  # or "ours", "floor"


@dataclass(frozen=True)
class Group:
    """Rows that share a scale, under a heading."""

    heading: str
    bars: tuple[Bar, ...]


NAMES, COLUMN, CAPTION, ROW, HEAD = 190, 290, 90, 24, 30


def bar_chart(title: str, columns: Sequence[str], groups: Sequence[Group]) -> str:
    """Draw horizontal bars from zero, each group and column on its own scale."""
    marks = [text(0, 18, title, "title")]
    y = 18.0
    for group in groups:
        y += HEAD
        marks.append(text(0, y, group.heading, "quiet"))
        marks += [
            text(NAMES + place * COLUMN, y, column, "quiet") for place, column in enumerate(columns)
        ]
        y += 8
        tops = [max(values) for values in zip(*(bar.values for bar in group.bars), strict=True)]
        for bar in group.bars:
            marks.append(text(NAMES - 10, y + 16, bar.name, anchor="end"))
            for place, (value, caption) in enumerate(zip(bar.values, bar.captions, strict=True)):
                x = NAMES + place * COLUMN
                width = max(1.0, (COLUMN - CAPTION) * value / (tops[place] or 1))
                marks.append(
                    f'<rect x="{x}" y="{y + 3:.1f}" width="{width:.1f}" height="{ROW - 6}" rx="2" '
                    f'class="{bar.kind}"/>'
                )
                marks.append(text(x + width + 6, y + 16, caption))
            y += ROW
    return document(NAMES + COLUMN * len(columns), y + 10, title, marks)


# ------------------------------------------------------------------ lines


@dataclass(frozen=True)
class Panel:
    """Points of one quantity against another; both axes are logarithmic."""

    title: str
    points: tuple[tuple[float, float], ...]
    captions: tuple[str, ...]


PANEL, HEIGHT, LEFT, TOP, BOTTOM = 380, 260, 70, 60, 40


def decades(low: float, high: float) -> list[float]:
    """The powers of ten that enclose the range."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def line_chart(title: str, across: str, panels: Sequence[Panel]) -> str:
    """Draw the panels side by side; a dashed line through the first point grows as its rows do."""
    marks = [text(0, 18, title, "title")]
    for place, panel in enumerate(panels):
        marks += panel_marks(panel, place * PANEL, across)
    return document(PANEL * len(panels), HEIGHT + 20, title, marks)


def panel_marks(panel: Panel, start: float, across: str) -> list[str]:
    columns, heights = zip(*panel.points, strict=True)
    grids = decades(min(columns), max(columns)), decades(min(heights), max(heights))
    left, right, bottom = start + LEFT, start + PANEL - 30, HEIGHT - BOTTOM

    def x(value: float) -> float:
        return left + (right - left) * share(value, grids[0])

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * share(value, grids[1])

    marks = [text(left, TOP - 18, panel.title, "quiet")]
    for value in grids[0]:
        marks.append(line([(x(value), TOP), (x(value), bottom)], "grid"))
        marks.append(text(x(value), bottom + 18, short(value), "quiet", "middle"))
    marks.append(text((left + right) / 2, bottom + 36, across, "quiet", "middle"))
    for value in grids[1]:
        marks.append(line([(left, y(value)), (right, y(value))], "grid"))
        marks.append(text(left - 8, y(value) + 4, short(value), "quiet", "end"))
    slope = heights[0] / columns[0]
    end = min(columns[-1], grids[1][-1] / slope)
    guide = [(columns[0], heights[0]), (end, end * slope)]
    marks.append(line([(x(a), y(b)) for a, b in guide], "guide"))
    marks.append(line([(x(a), y(b)) for a, b in panel.points], "line"))
    for (a, b), caption in zip(panel.points, panel.captions, strict=True):
        marks.append(f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="4" class="ours"/>')
        # The line rises, so there is free space below and to the right of a point, and above and to
        # the left of the last point.
        if a == columns[-1]:
            marks.append(text(x(a) - 4, y(b) - 10, caption, "", "end"))
        else:
            marks.append(text(x(a) + 8, y(b) + 14, caption))
    return marks


def share(value: float, grid: Sequence[float]) -> float:
    """How far along a logarithmic axis a value lies, from 0 to 1."""
    return math.log10(value / grid[0]) / math.log10(grid[-1] / grid[0])


def line(points: Sequence[tuple[float, float]], kind: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" class="{kind}"/>'
