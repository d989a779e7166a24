"""Pictures of a comparison: intervals of differences, how those of queries spread, and slices."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from rankmill.analysis.compare.differences.comparison_state import Sums
from rankmill.analysis.compare.differences.differences import (
    BETTER,
    EQUAL,
    HIGHER,
    LOWER,
    NON_INFERIOR,
    NOT_SHOWN,
    WORSE,
    Difference,
    Settings,
    Slice,
)
from rankmill.analysis.compare.view.tables import slice_text
from rankmill.analysis.statistics.paired_differences import Paired
from rankmill.io.inert_text import brief
from rankmill.semantics.metric_names import side_text
from rankmill.show import charts
from rankmill.show.charts import CLASSES, ROW, Dot, Series
from rankmill.show.marks import Drawing, Text, scale_of, scale_of_counts, tick_texts
from rankmill.show.pictures import Key, Panel, Picture, compose

MOST_ROWS = 40
"""The most intervals in a panel."""

REACH = 10
"""Intervals of slices are drawn so many times as far as that of all queries."""

# The most characters of a name.
_LONGEST, _SHORT = 36, 20
_BINS = 40
# Shape and filling tell the verdicts apart, colour only helps.
MARKERS = {
    BETTER: ("good", "up"),
    WORSE: ("bad", "down"),
    EQUAL: ("even", "square"),
    NON_INFERIOR: ("even", "up"),
    HIGHER: ("even hollow", "up"),
    LOWER: ("even hollow", "down"),
    NOT_SHOWN: ("even hollow", "circle"),
    "not tested": ("even hollow", "diamond"),
}
"""The tone and the shape of each verdict."""

_Rows: TypeAlias = Sequence[tuple[str, Difference]]


def plot_comparison(
    baseline: str,
    whole: Slice,
    slices: Sequence[Slice],
    settings: Settings,
    sums: Sums | None,
) -> Picture:
    """Return a picture with a column of panels for each metric.

    `sums` are those of all queries, if they are known; with weights they have no differences of
    queries, so that none are drawn.
    """
    columns = columns_of(whole, slices, settings, sums)
    every = [whole, *slices]
    differences = [one for each in every for of in each.differences.values() for one in of.values()]
    level = f"{100 * settings.confidence:.6g}%"
    title = f"Difference from {brief(baseline, 28)}, with {level} intervals"
    title += " (of slices for all together)" if slices and settings.correction != "none" else ""
    return compose(columns, title, _verdicts(differences))


def columns_of(
    whole: Slice, slices: Sequence[Slice], settings: Settings, sums: Sums | None
) -> list[list[Panel]]:
    """Return the panels of each metric: of all queries, of their differences, of each cut."""
    ways = list(dict.fromkeys(one.by for one in slices))
    found = {} if sums is None else sums.columns
    spreads = {
        metric: {name: one.paired for name, one in of.items() if isinstance(one.paired, Paired)}
        for metric, of in found.items()
    }
    columns = []
    for metric, of in whole.differences.items():
        left_out, rows = _system_rows(of)
        side = side_text(next(iter(of.values())).better) if of else ""
        title = f"{brief(metric, _LONGEST)}{side}{left_out}"
        panels = [_forest(title, rows, settings.margin)]
        if any(spreads.values()):
            panels.append(_spread(spreads.get(metric, {})))
        for by in ways:
            of_way = [one for one in slices if one.by == by and metric in one.differences]
            left_out, rows = _slice_rows(metric, of_way)
            title = f"by {brief(', '.join(by), _LONGEST)} (queries){left_out}"
            panels.append(_forest(title, rows, settings.margin, reach_of(of.values())))
        columns.append(panels)
    return columns


# ------------------------------------------------------------------ intervals


def _forest(title: str, rows: _Rows, margin: float | None, reach: float = math.inf) -> Panel:
    dots = [dot_of(one) for _, one in rows]
    names = [(ROW * (place + 0.5), name) for place, (name, _) in enumerate(rows)]
    return Panel(title, charts.forest(dots, margin, reach), names)


def reach_of(whole: Iterable[Difference], *, relative: bool = False) -> float:
    """Return how far intervals of slices are drawn, given the differences of all queries.

    Those of two queries may be a thousand times as wide, and nothing else could be seen.
    """
    pairs = [one.relative_interval if relative else (one.low, one.high) for one in whole]
    ends = [abs(end) for pair in pairs if pair for end in pair if end is not None]
    known = [end for end in ends if math.isfinite(end)]
    return REACH * max(known) if any(known) else math.inf


def _system_rows(of: Mapping[str, Difference]) -> tuple[str, _Rows]:
    """The differences of all queries, and what is not drawn of them."""
    rows = [(brief(name, _LONGEST), one) for name, one in of.items()][:MOST_ROWS]
    more = len(of) - len(rows)
    return (f"; {more:,} more systems not drawn" if more else ""), rows


def _slice_rows(metric: str, of_way: Sequence[Slice]) -> tuple[str, _Rows]:
    """The differences in slices, and what is not drawn of them: slices of the fewest queries."""
    systems = max((len(one.differences[metric]) for one in of_way), default=1)
    most = max(MOST_ROWS // systems, 1)
    largest = sorted(range(len(of_way)), key=lambda i: -of_way[i].queries)[:most]
    kept = [of_way[i] for i in sorted(largest)]
    rows = []
    for one in kept:
        value = slice_text(one).partition(" = ")[2]
        for name, difference in one.differences[metric].items():
            label = brief(value, 24)
            label += "" if systems == 1 else f" · {brief(name, _SHORT)}"
            rows.append((f"{label} ({one.queries:,})", difference))
    more = len(of_way) - len(kept)
    return (f"; {more:,} smaller not drawn" if more else ""), rows[:MOST_ROWS]


def dot_of(one: Difference) -> Dot:
    """Return a difference as it is drawn."""
    return Dot(one.value, one.low, one.high, "s0", *MARKERS[_word(one)])


def _word(one: Difference) -> str:
    return one.verdict or "not tested"


def _verdicts(differences: Iterable[Difference]) -> list[Key]:
    """The legend of the markers that are drawn."""
    seen = {_word(one) for one in differences if one.value is not None}
    return [(charts.sample("s0", *look), w) for w, look in MARKERS.items() if w in seen]


# ------------------------------------------------------------------ distributions


def _spread(of: Mapping[str, Paired]) -> Panel:
    """Return how many queries differ by how much; those that tie are told, as most often do."""
    title = _spread_title(of)
    drawn = dict(zip(of, CLASSES, strict=False))
    keys = [
        (charts.sample(look), f"{brief(name, _SHORT)}: {of[name].tied:,} tie")
        for name, look in drawn.items()
    ]
    sizes = [np.abs(of[name].values).max(initial=0.0) for name in drawn]
    if not of:
        return Panel(title, Drawing(0, ()))
    if not any(sizes):
        return Panel(title, Drawing(ROW, [Text(0, 14, "no query differs")]))
    axis = scale_of([max(sizes), -max(sizes)], most=8)
    edges = np.linspace(axis.low, axis.high, _BINS + 1)
    edges[_BINS // 2] = 0.0  # a bin holds queries above the baseline or queries below it
    series = []
    for name, look in drawn.items():
        apart = of[name].values != 0
        counts, _ = np.histogram(of[name].values[apart], edges, weights=of[name].counts[apart])
        series.append(Series(look, [float(one) or None for one in counts]))
    most = max(count for one in series for count in one.values if count is not None)
    texts = tick_texts(axis, signed=True)
    every = 1 if len(texts) < 6 else 2
    below = [(_BINS * axis.share(tick), text) for tick, text in zip(axis.ticks, texts, strict=True)]
    zero = axis.ticks.index(0)
    drawing = charts.bars(series, below[zero % every :: every], "", "", scale=scale_of_counts(most))
    return Panel(title, drawing, (), keys if len(keys) > 1 else ())


def _spread_title(of: Mapping[str, Paired]) -> str:
    if not of:
        return "no mean over queries"
    if len(of) > len(CLASSES):
        return f"queries; first {len(CLASSES)} of {len(of)} systems"
    if len(of) > 1:
        return "queries, without those that tie"
    ((_, paired),) = of.items()
    share = f" ({paired.tied / paired.n:.1%})" if paired.n else ""
    return f"queries; {paired.tied:,}{share} tie, not drawn"
