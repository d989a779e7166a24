"""A picture of a history: each metric over time, with its standard errors and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rankmill.compare.drawing import (
    BLUE,
    GREY,
    VERMILION,
    check_matplotlib,
    name_text,
    settle,
    style,
)
from rankmill.gate.earlier import HELD, NO_VERDICT
from rankmill.gate.history_view import named
from rankmill.gate.trends import Point, Trend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 12
_WIDTH, _HEIGHT, _AROUND = 7.0, 1.6, 0.8  # inches: of a panel, of titles and the legend
_HELD = {"marker": "o", "markersize": 3, "color": BLUE}
_OTHER = {"marker": "v", "markersize": 6, "color": VERMILION}
_NONE = {"color": VERMILION, "linewidth": 0.8, "linestyle": ":"}


def plot_trends(trends: Sequence[Trend]) -> Figure:
    """Return a figure with a panel for each trend, below each other.

    Raises
    ------
    UsageError
        If matplotlib is not installed.
    """
    check_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    drawn = trends[:MOST_PANELS]
    more = len(trends) - len(drawn)
    with style():
        size = _WIDTH, _AROUND + _HEIGHT * max(len(drawn), 1)
        figure = Figure(figsize=size, layout="constrained")
        title = "Value over time, ± one standard error"
        title += f"; {more:,} more not drawn" if more else ""
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        first = None
        for place, trend in enumerate(drawn):
            axes = figure.add_subplot(len(drawn), 1, place + 1, sharex=first)
            first = first or axes
            _draw(trend, axes)
        if any(map(_failed, (point for trend in drawn for point in trend.points))):
            legend = [
                Line2D([], [], linestyle="none", label="held, or without rules", **_HELD),
                Line2D([], [], linestyle="none", label="another verdict", **_OTHER),
                Line2D([], [], label=NO_VERDICT, **_NONE),
            ]
            figure.legend(handles=legend, loc="outside lower left", ncols=3)
        settle(figure)
    return figure


def _failed(point: Point) -> bool:
    return point.run.verdict not in (HELD, None)


def _draw(trend: Trend, axes: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

    points = [(point, point.value) for point in trend.points if point.value is not None]
    times = [float(date2num(point.run.time)) for point, _ in points]
    axes.plot(times, [value for _, value in points], color=BLUE, linewidth=0.8, zorder=2)
    for time, (point, value) in zip(times, points, strict=True):
        axes.plot([time], [value], linestyle="none", **(_OTHER if _failed(point) else _HELD))
    errors = [point.standard_error or 0.0 for point, _ in points]
    ends = [(value - e, value + e) for (_, value), e in zip(points, errors, strict=True)]
    axes.vlines(times, [low for low, _ in ends], [high for _, high in ends], color=GREY, lw=0.8)
    for point in trend.points:
        if point.run.verdict == NO_VERDICT:
            axes.axvline(float(date2num(point.run.time)), **_NONE)
    locator = AutoDateLocator(maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    drifted = ": drift" if trend.drift is not None and trend.drift.flagged else ""
    axes.set_title(f"{name_text(named(trend))}{drifted}")
