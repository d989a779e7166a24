"""A picture of a history: each metric over time, with its intervals and verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from rankmill.io.inert_text import brief
from rankmill.nightly.runs.earlier_runs import HELD, NO_VERDICT
from rankmill.nightly.runs.history_view import named
from rankmill.nightly.runs.trends import Trend, TrendPoint
from rankmill.show import charts
from rankmill.show.charts import SUBJECT, Series
from rankmill.show.marks import Stroke
from rankmill.show.pictures import Key, Panel, Picture, compose

MOST_PANELS = 12
_WIDTH = 660


def plot_trends(trends: Sequence[Trend]) -> Picture:
    """Return a picture with a panel for each trend, below each other."""
    drawn = trends[:MOST_PANELS]
    more = len(trends) - len(drawn)
    title = "Value over time, with 95% intervals"
    title += f"; {more:,} more not drawn" if more else ""
    keys: list[Key] = []
    if any(map(_failed, (point for trend in drawn for point in trend.points))):
        keys = [
            (charts.sample(SUBJECT), "held, or without rules"),
            (charts.sample(SUBJECT, "bad", "down"), "another verdict"),
            ([Stroke([(50, 0), (50, 14)], "bad", 1, "1 3")], NO_VERDICT),
        ]
    return compose([[_panel(one) for one in drawn]] if drawn else [], title, keys, _WIDTH)


def _failed(point: TrendPoint) -> bool:
    return point.run.verdict not in (HELD, None)


def _panel(trend: Trend) -> Panel:
    points = [point for point in trend.points if point.value is not None]
    values = [point.value for point in points]
    halves = [1.96 * (point.standard_error or 0.0) for point in points]
    tones = ["bad" if _failed(point) else "" for point in points]
    series = Series(SUBJECT, values, charts.around(values, halves), tones)
    missing = [point.run.time for point in trend.points if point.run.verdict == NO_VERDICT]
    drawing = charts.over_time([point.run.time for point in points], series, gaps=missing)
    drifted = ": drift" if trend.drift is not None and trend.drift.flagged else ""
    return Panel(f"{brief(named(trend))}{drifted}", drawing)
