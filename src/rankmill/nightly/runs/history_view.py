"""Trends: a metric over the runs that count the same, and how a history is shown."""

import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.errors import plural
from rankmill.io.inert_text import brief
from rankmill.nightly.runs.folder import HELD, NO_VERDICT
from rankmill.nightly.runs.runs import Run
from rankmill.package import stamp
from rankmill.show import charts
from rankmill.show.charts import SUBJECT, Series
from rankmill.show.marks import Stroke
from rankmill.show.pictures import Key, Panel, Picture, compose
from rankmill.show.tables import Cell, Column, Part, Table, View

# ------------------------------------------------------------------ trends

RATE = 5e-5
"""How often each test names a run where nothing changed: both together, one run in 10,000."""
EARLIER = 14
"""How many runs others are compared with."""
LEAST = 7
"""How many of them are needed: a week, so that a first weekend is no jump."""
WEEK = 7
SLOPE = 12
"""How many runs a slope goes over; with those before them there are three weeks at least."""
# Values are the same if they differ by no more than rounding does.
SAME = 1e-12
# A value this near to 0 or 1, in standard errors, comes from a few hits or misses. Their number is
# skewed, so that some nights of it tell too little of its spread.
FEW = 4
Number = tuple[float, float | None]
"""A value, and its standard error if that is known."""

# So many runs are named where they are left out.
NAMED = 3


class Drift(NamedTuple):
    """How far the newest runs are from those before them.

    Attributes
    ----------
    t : float
        The distance in units of its standard error; infinite where all earlier numbers are the same
        and these are not.
    limit : float
        From which |t| on it is named.
    mean : float
        Of the earlier numbers.
    earlier, runs : int
        How many numbers are compared with, and how many are new: 1 after a jump, 12 on a slope.
    """

    t: float
    limit: float
    mean: float
    earlier: int
    runs: int

    @property
    def flagged(self) -> bool:
        """Whether the newest runs are so far away that they are named."""
        return abs(self.t) > self.limit

    def __str__(self) -> str:
        """What is said of runs that are flagged; "" of any others."""
        if not self.flagged:
            return ""
        side = "above" if self.t > 0 else "below"
        if self.runs > 1:
            rise = "rise" if self.t > 0 else "fall"
            side = f"the last {self.runs} runs {rise} {side}"
        elif math.isinf(self.t):
            return f"{side} the {self.earlier} earlier runs, which all had {self.mean:.6g}"
        return (
            f"{side} the weighted mean {self.mean:.6g} of {self.earlier} earlier runs "
            f"(t {self.t:+.1f}, limit {self.limit:.1f})"
        )


def drift(numbers: Sequence[Number], days: Sequence[int] | None = None) -> Drift | None:
    """Return how far the newest numbers are from those before them; None if these are few.

    The newest one is compared with up to 14 before it, and the newest twelve with up to 14 before
    these. Of both, the distance that is larger beside its limit is returned. `days` are the day of
    each run, as a number; a run a day by default.

    Examples
    --------
    >>> nights = [(0.10 + 0.001 * (night % 3), 0.002) for night in range(20)]
    >>> drift(nights).flagged
    False
    >>> print(drift([*nights, (0.11, 0.002)]))
    above the weighted mean 0.100929 of 14 earlier runs (t +10.6, limit 5.9)
    >>> print(drift([*nights, *((0.1015 + 0.0005 * night, 0.002) for night in range(10))]))
    the last 12 runs rise above the weighted mean 0.101071 of 14 earlier runs (t +10.0, limit 5.3)
    >>> drift(nights[:7]) is None
    True
    """
    found = [_jump(numbers[-1 - EARLIER :])]
    if len(numbers) >= 3 * WEEK:
        some = slice(-EARLIER - SLOPE, None)
        found.append(_slope(numbers[some], (days or range(len(numbers)))[some]))
    known = [one for one in found if one is not None]
    return max(known, key=lambda one: abs(one.t) / one.limit, default=None)


def _jump(numbers: Sequence[Number]) -> Drift | None:
    if len(numbers) <= LEAST:
        return None
    *earlier, new = numbers
    *before, after = _weights([*earlier, new], earlier)
    values = [value for value, _ in earlier]
    mean = _mean(values, before)
    if len(set(values)) == 1:
        mean = values[0]
        spread = 0.0 if _usual(earlier) else new[1] or 0.0
    else:
        off = [value - mean for value in values]
        spread = math.sqrt(_product(before, off, off) / (len(earlier) - 1))
        spread = max(spread, _least_spread(mean, earlier, [new]))
    error = spread * math.sqrt(1 / after + 1 / math.fsum(before))
    return _drift_of(new[0] - mean, error, len(earlier) - 1, mean, len(earlier), 1)


def _slope(numbers: Sequence[Number], days: Sequence[int]) -> Drift | None:
    """Return the slope of a regression, which has a mean for each day of the week too."""
    earlier, new = numbers[:-SLOPE], numbers[-SLOPE:]
    weights = _weights(numbers, earlier)
    mean = _mean([value for value, _ in earlier], weights)
    values = [value - mean for value, _ in numbers]
    line = [max(0.0, run - len(earlier) + 1.0) for run in range(len(numbers))]
    largest = max(map(abs, values))
    # Without the means of weekdays on both sides, the slope of the rest is the same.
    for day in {one % WEEK for one in days}:
        same = [run for run, one in enumerate(days) if one % WEEK == day]
        for of in (values, line):
            middle = _mean([of[run] for run in same], [weights[run] for run in same])
            for run in same:
                of[run] -= middle
    freedom = len(numbers) - len({one % WEEK for one in days}) - 1
    square = _product(weights, line, line)
    if not square or max(map(abs, values)) <= SAME * (abs(mean) + largest):
        return None  # all as a week ago
    slope = _product(weights, line, values) / square
    off = [value - slope * one for value, one in zip(values, line, strict=True)]
    spread = math.sqrt(_product(weights, off, off) / freedom)
    error = max(spread, _least_spread(mean, earlier, new)) / math.sqrt(square)
    return _drift_of(slope, error, freedom, mean, len(earlier), SLOPE)


def _drift_of(
    distance: float, error: float, freedom: int, mean: float, earlier: int, runs: int
) -> Drift:
    sure = math.copysign(math.inf, distance) if distance else 0.0
    return Drift(distance / error if error else sure, _limit(freedom), mean, earlier, runs)


def _weights(numbers: Sequence[Number], earlier: Sequence[Number]) -> list[float]:
    errors = [error for _, error in numbers]
    usual, told = _usual(earlier), all(errors)  # neither unknown nor 0
    return [(usual / error) ** 2 if told and error else 1.0 for error in errors]


def _usual(earlier: Sequence[Number]) -> float:
    return math.fsum(error or 0.0 for _, error in earlier) / len(earlier)


def _least_spread(mean: float, earlier: Sequence[Number], new: Sequence[Number]) -> float:
    """Return the spread that few hits have at least."""
    usual = _usual(earlier)
    few = min(abs(mean), abs(1 - mean)) < FEW * usual
    return max(usual, *(error or 0.0 for _, error in new)) if few else 0.0


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the mean of the first values that have weights."""
    pairs = list(zip(values, weights, strict=False))
    return math.fsum(weight * value for value, weight in pairs) / math.fsum(w for _, w in pairs)


def _product(weights: Sequence[float], one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(w * a * b for w, a, b in zip(weights, one, other, strict=True))


@cache
def _limit(freedom: int) -> float:
    return t_quantile(1 - RATE / 2, freedom)


class TrendPoint(NamedTuple):
    """A run of a trend: what the metric was, and how far it moved since an earlier night."""

    run: Run
    value: float | None
    standard_error: float | None
    queries: int | None
    change: float | None


class Trend(NamedTuple):
    """A metric over the runs that count the same.

    Attributes
    ----------
    metric : str
    system : str or None
    points : list of TrendPoint
        In the order of time; never empty. Runs without a verdict are among them, without a value.
    drift : Drift or None
        How far the last value is from those before it; None if there are too few.
    note : str
        Which runs were left out as they count otherwise; "" if none was.
    """

    metric: str
    system: str | None
    points: list[TrendPoint]
    drift: Drift | None
    note: str = ""

    @property
    def last(self) -> TrendPoint:
        """The newest run."""
        return self.points[-1]


class Recorded(Protocol):
    """What is shown of a history beside its trends."""

    name: str

    @property
    def unjudged(self) -> list[Run]:
        """The runs without a verdict."""

    def __len__(self) -> int:
        """How many runs there are."""


def these(runs: Sequence[Run], why: str) -> str:
    """Return which runs are left out, and why."""
    names = ", ".join(run.id for run in runs[-NAMED:])
    more = f" and {len(runs) - NAMED:,} more" if len(runs) > NAMED else ""
    one = "this run counts" if len(runs) == 1 else f"these {len(runs):,} runs count"
    return f"{one} otherwise ({why}): {names}{more}"


def otherwise(rules: str, asked: str) -> str:
    """Return what differs between two ways to count."""
    one, other = json.loads(rules), json.loads(asked)
    names = [name for name in {**other, **one} if one.get(name) != other.get(name)]
    return ", ".join(f"{name} is {_said(one, name)}, not {_said(other, name)}" for name in names)


def _said(rules: dict[str, Any], name: str) -> str:
    value = rules.get(name)
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


# ------------------------------------------------------------------ what is shown of them

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
