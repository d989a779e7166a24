"""Metrics at several cutoffs as lines over these, such as precision over recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import table_of
from rankmill.metrics.aggregate import axes_of
from rankmill.metrics.registry import parse
from rankmill.results.curves import curves_of
from rankmill.results.result import Result
from rankmill.results.slices import REACH
from rankmill.results.values_picture import picture_of_values
from rankmill.show.charts import Ends
from rankmill.show.marks import scale_of
from rankmill.show.pictures import Picture, Points, picture_of_lines

AT_CUTOFFS = "a metric at several cutoffs, such as map@1..100, or pr"
DRAWN = f"{AT_CUTOFFS}, or one with a curve, such as auprc or ece"
_POOLED = "precision by recall, all predictions"
_LEVELS = 10  # of recall from a tick to the next, at which a curve of all predictions is drawn


def cuts_of(metrics: Iterable[str]) -> dict[str, dict[float, str]]:
    """Return the metrics that are at several cutoffs: title -> cutoff -> name.

    Examples
    --------
    >>> cuts_of(["map@1", "mrr", "map@5", "iprec@0.5", "iprec@1"])
    {'map': {1: 'map@1', 5: 'map@5'}, 'iprec': {0.5: 'iprec@0.5', 1.0: 'iprec@1'}}
    """
    found: dict[str, dict[float, str]] = {}
    for text in metrics:
        one = parse(text)
        if one.cut is not None:
            at = one.spec.at.name if one.spec.at else ""
            given = ",".join(f"{name}={value:g}" for name, value in one.given if name != at)
            title = one.name + (f"({given})" if given else "")
            title += f":{one.summary}" if one.summary else ""
            found.setdefault(title, {})[one.cut] = text
    return {title: of for title, of in found.items() if len(of) > 1}


def curve_rows(results: Mapping[str, Result]) -> pa.Table:
    """Return all curves as rows: those over cutoffs, and those that metrics are made of."""
    first = next(iter(results.values()))
    rows = [
        {"system": name, "metric": title, "cutoff": float(cut), "value": one.metrics[text],
         "standard_error": one.standard_errors[text]}
        for name, one in results.items()
        for title, of in cuts_of(first.metrics).items()
        for cut, text in sorted(of.items())
    ]  # fmt: skip
    kinds = dict.fromkeys(("system", "metric"), pa.string())
    kinds |= dict.fromkeys(("cutoff", "value", "standard_error"), pa.float64())
    table = table_of(rows, pa.schema(kinds))
    parts = [table if len(results) > 1 else table.drop_columns("system")] if rows else []
    if first.curves:
        parts.append(curves_of({name: one.curves for name, one in results.items()}))
    return pa.concat_tables(parts, promote_options="permissive")


def has_curves(metrics: Iterable[str]) -> bool:
    """Return whether one of these metrics has a curve that can be drawn."""
    return bool(cuts_of(metrics)) or any(axes_of(parse(text)) for text in metrics)


def curve_picture(results: Mapping[str, Result]) -> Picture:
    """Return a picture of the curves that results hold, or else of their values."""
    if not has_curves(next(iter(results.values())).metrics):
        return picture_of_values(results)
    lines, shares = curve_lines(results), _shares(results)
    over = "recall" if set(lines) <= {"iprec", _POOLED} else "cutoff"
    title = f"{'Precision' if over == 'recall' else 'Value'} by {over}" if lines else "Reliability"
    every = (at for of in lines.values() for points in of.values() for _, at in points.values())
    title += ", with 95% intervals" if any(every) else ""
    return picture_of_lines(lines, title, shares)


def curve_lines(results: Mapping[str, Result]) -> dict[str, Mapping[str, Points]]:
    """Return values over cutoffs, and precision over recall: title -> system -> points.

    The intervals of means are `REACH` standard errors, within the range of the metric.
    """
    lines: dict[str, Mapping[str, Points]] = {
        title: {
            name: {cut: _with_ends(one, text) for cut, text in of.items()}
            for name, one in results.items()
        }
        for title, of in cuts_of(next(iter(results.values())).metrics).items()
    }
    for _, points in _points(results, "recall")[:1]:  # all such metrics have the same curve
        lines[_POOLED] = _interpolated(points)
    return lines


def _shares(results: Mapping[str, Result]) -> dict[str, dict[str, Points]]:
    return {
        f"{text}: accuracy by confidence": {
            name: {float(x): (float(y), None) for x, y in zip(*of, strict=True)}
            for name, of in points.items()
        }
        for text, points in _points(results, "mean")
    }


def _points(
    results: Mapping[str, Result], across: str
) -> list[tuple[str, dict[str, tuple[np.ndarray, np.ndarray]]]]:
    """Return the curves over a column of their tables, those that are known: JSON has none."""
    found = []
    for text in next(iter(results.values())).metrics:
        axes = axes_of(parse(text))
        tables = {n: one.curves[text]() for n, one in results.items() if text in one.curves}
        if tables and axes is not None and axes[0] == across:
            found.append((text, {n: (one[axes[0]], one[axes[1]]) for n, one in tables.items()}))
    return found


def _interpolated(points: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, Points]:
    """Return the largest precision at any threshold of at least a recall, at even recalls."""
    most = scale_of([0.0, *(float(recall[-1]) for recall, _ in points.values() if len(recall))])
    count = _LEVELS * (len(most.ticks) - 1)
    levels = np.arange(count + 1) * most.high / count
    found: dict[str, Points] = {}
    for name, (recall, precision) in points.items():
        best = [*np.maximum.accumulate(precision[::-1])[::-1].tolist(), None]
        at = np.searchsorted(recall, levels)
        found[name] = {float(x): (best[i], None) for x, i in zip(levels, at, strict=True)}
    return found


def _with_ends(one: Result, text: str) -> tuple[float | None, Ends]:
    value, error = one.metrics[text], one.standard_errors[text]
    if value is None or not error:
        return value, None
    low, high = parse(text).spec.bounds
    return value, (max(low, value - REACH * error), min(high, value + REACH * error))
