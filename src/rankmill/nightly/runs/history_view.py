"""What is shown of a history: a row a metric with a sparkline, a row a run, or a picture."""

from collections.abc import Sequence
from typing import Any

from rankmill.errors import plural
from rankmill.io.inert_text import brief
from rankmill.nightly.runs.earlier_runs import HELD, NO_VERDICT
from rankmill.nightly.runs.trends import NAMED, Recorded, Trend, TrendPoint
from rankmill.package import stamp
from rankmill.show import charts
from rankmill.show.charts import SUBJECT, Series
from rankmill.show.marks import Stroke
from rankmill.show.pictures import Key, Panel, Picture, compose
from rankmill.show.tables import Cell, Column, Part, Table, View

_BLOCKS = "▁▂▃▄▅▆▇█"
# So many of the last runs are drawn.
DRAWN = 30

MOST_PANELS = 12
_WIDTH = 660


def sparkline(values: Sequence[float | None]) -> str:
    """Return a line of blocks, from the lowest value to the highest; a blank where there is none.

    Examples
    --------
    >>> sparkline([1, 2, None, 8]), sparkline([5, 5])
    ('▁▂ █', '▄▄')
    """
    known = [value for value in values if value is not None]
    low, high = min(known, default=0), max(known, default=0)

    def block(value: float | None) -> str:
        if value is None:
            return " "
        if low == high:
            return "▄"
        return _BLOCKS[min(7, int(8 * (value - low) / (high - low)))]

    return "".join(map(block, values))


def view_of(found: Recorded, trends: Sequence[Trend], *, runs: bool) -> View:
    """Return what is shown of trends; with `runs` a row for each run, else one for each metric."""

    def tables() -> list[Part]:
        if not trends:
            return [*(_unjudged(found) or [f"the history {found.name} has no runs"])]
        of_all: list[Part] = [_runs(trend) for trend in trends] if runs else [_metrics(trends)]
        notes = [f"{named(one)}: {one.drift}" for one in trends if one.drift and one.drift.flagged]
        notes += dict.fromkeys(one.note for one in trends if one.note)
        notes += [] if runs else dict.fromkeys(filter(None, map(_valueless, trends)))
        return [*of_all, *notes, *_unjudged(found)]

    def screen() -> list[Part]:
        parts = tables()
        apart: list[Part] = []
        for part in parts:
            apart += [part, ""] if isinstance(part, Table) and runs else [part]
        return [*apart, repr(found)]

    return View(screen, tables, lambda: _exact(trends), lambda: _content(found, trends))


def _unjudged(found: Recorded) -> list[str]:
    """Say which runs have no verdict, and why the last of them have none."""
    of = found.unjudged[-NAMED:]
    more = len(found.unjudged) - len(of)
    told = [f"{run.time:%F %H:%M}: {run.verdict}: {run.reason}" for run in of]
    return [*([f"{plural(more, 'earlier run')} without a verdict"] if more > 0 else []), *told]


def _with_value(trend: Trend) -> TrendPoint:
    """Return the newest run that has a value; the newest run if none has."""
    return next((one for one in reversed(trend.points) if one.value is not None), trend.last)


def _valueless(trend: Trend) -> str:
    """Return a note if the newest run has no value, so the row shows an earlier one; else ""."""
    shown = _with_value(trend)
    if shown is trend.last or shown.value is None:
        return ""
    return (
        f"the newest run, of {trend.last.run.time:%F %H:%M}, has no value: the table shows that of "
        f"{shown.run.time:%F %H:%M}"
    )


def named(trend: Trend) -> str:
    """Return how a trend is called: by its metric, and its system if there are several."""
    return trend.metric if trend.system is None else f"{trend.metric} of {trend.system}"


def _metrics(trends: Sequence[Trend]) -> Table:
    columns = [Column("metric"), Column("runs", "count"), Column("trend"), Column("last", "value")]
    columns += [Column("standard error", "error"), Column("change", "difference")]
    columns += [Column("when"), Column("verdict"), Column("drift")]
    rows: list[list[Cell]] = []
    for trend in trends:
        last = _with_value(trend)
        line = sparkline([point.value for point in trend.points[-DRAWN:]])
        moved = f"t {trend.drift.t:+.1f}" if trend.drift and trend.drift.flagged else ""
        rows.append(
            [
                *(named(trend), len(trend.points), line, last.value, last.standard_error),
                *(last.change, f"{last.run.time:%F %H:%M}", last.run.verdict, moved),
            ]
        )
    return Table(columns, rows)


def _runs(trend: Trend) -> Table:
    columns = [Column(named(trend)), Column("value", "value"), Column("standard error", "error")]
    columns += [Column("change", "difference"), Column("queries", "count")]
    columns += [Column("verdict"), Column("tags")]
    rows: list[list[Cell]] = [
        [
            *(f"{run.time:%F %H:%M}", value, error, change, queries, run.verdict),
            ", ".join(f"{key}={text}" for key, text in run.tags.items()),
        ]
        for run, value, error, queries, change in trend.points
    ]
    return Table(columns, rows)


def _exact(trends: Sequence[Trend]) -> Table:
    names = ["run", "time", "system", "metric", "value", "standard_error", "queries", "change"]
    names += ["verdict", "reason"]
    rows: list[list[Cell]] = []
    for trend in trends:
        for point in trend.points:
            told = _told(point) | {"reason": point.run.reason or None}
            told |= {"system": trend.system, "metric": trend.metric}
            rows.append([told[name] for name in names])
    return Table([Column(name) for name in names], rows)


def _told(point: TrendPoint) -> dict[str, Any]:
    """Return what programs are told of a run in a trend."""
    run, numbers = point.run, point._asdict()
    return numbers | {"run": run.id, "time": run.time.isoformat(), "verdict": run.verdict}


def _content(found: Recorded, trends: Sequence[Trend]) -> dict[str, Any]:
    return {
        **stamp(),
        "history": found.name,
        "runs": len(found),
        "without_verdict": [
            {"run": run.id, "time": run.time.isoformat(), "reason": run.reason, "tags": run.tags}
            for run in found.unjudged
        ],
        "trends": [
            {
                "metric": trend.metric,
                "system": trend.system,
                "drift": _drift(trend),
                "note": trend.note or None,
                "points": [_told(point) | {"tags": point.run.tags} for point in trend.points],
            }
            for trend in trends
        ],
    }


def _drift(trend: Trend) -> dict[str, Any] | None:
    if trend.drift is None:
        return None
    t = trend.drift.t
    told: dict[str, Any] = trend.drift._asdict() | {"flagged": trend.drift.flagged}
    # JSON has no infinity: then all earlier values are the mean.
    return told | {"t": t if abs(t) < float("inf") else None}


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
