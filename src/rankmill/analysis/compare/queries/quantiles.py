"""Medians and percentiles of the values of systems, and how they differ."""

import math
from dataclasses import replace

import numpy as np

from rankmill.analysis.compare.differences.differences import (
    Difference,
    Estimate,
    Settings,
    pairs_of,
)
from rankmill.analysis.compare.differences.intervals import relative
from rankmill.analysis.compare.differences.pooled_differences import PooledMetrics, not_means
from rankmill.analysis.compare.queries.join import Joined
from rankmill.analysis.statistics.outcome import Tested
from rankmill.analysis.statistics.quantiles import DRAWS, drawn_quantiles, quantile_ends
from rankmill.columns.buffers import floats_of
from rankmill.columns.ragged_lists import one_chunk
from rankmill.metrics.base import Metric


def quantiles_of(joined: Joined, settings: Settings) -> PooledMetrics:
    """Return the values and differences of metrics that are medians or percentiles of values."""
    found = PooledMetrics({}, {}, [])
    for metric in joined.asked:
        if metric.quantile is None or metric.text not in joined.results[joined.baseline].metrics:
            continue
        values = {name: _values(joined, name, metric) for name in joined.results}
        found.values[metric.text] = {
            name: _estimate(joined, name, metric, settings.confidence, of)
            for name, of in values.items()
        }
        for base, system in pairs_of(values, joined.baseline):
            if base == joined.baseline or settings.all_pairs:
                place = system if base == joined.baseline else (base, system)
                pair = values[base], values[system]
                of = [joined.results[each].metrics[metric.text] for each in (system, base)]
                one = _difference(of[0], of[1], pair, metric, joined, settings.confidence)
                found.differences[metric.text, place] = one
    if found.values:
        how = f"of {DRAWS} draws of the queries, so that p is at least {2 / (1 + DRAWS):.2g}"
        how = f"its interval is of values by their order, and that of a difference {how}"
        found.notes.append(not_means([*found.values], how))
    return found


def _values(joined: Joined, system: str, metric: Metric) -> np.ndarray:
    """Return the value of each query that counts for any system, NaN where it does not."""
    of_system = floats_of(one_chunk(joined.aligned.tables[system].column(metric.text)))
    rows = joined.aligned.rows[system]
    if rows is None:
        return of_system
    found = np.full(len(joined.aligned.queries), math.nan)
    found[rows] = of_system
    return found


def _estimate(
    joined: Joined, system: str, metric: Metric, confidence: float, values: np.ndarray
) -> Estimate:
    value, there = joined.results[system].metrics[metric.text], ~np.isnan(values)
    clusters = joined.traits.clusters
    # The clusters of queries that do not count for all systems are not known.
    unknown = clusters is not None and (len(clusters) != len(values) or not there.all())
    if value is None or there.sum() < 2 or unknown:
        return Estimate(value)
    share, bounds = metric.quantile or 0.0, metric.spec.bounds
    return Estimate(value, None, *quantile_ends(values[there], share, bounds, confidence, clusters))


def _difference(
    value: float | None,
    base: float | None,
    pair: tuple[np.ndarray, np.ndarray],
    metric: Metric,
    joined: Joined,
    confidence: float,
) -> Difference:
    """Return the difference with the interval that holds the middle of the draws, and their p."""
    if value is None or base is None:
        return Difference(None, better=metric.better)
    less, clusters = value - base, joined.traits.clusters
    plain = Difference(less, relative(less, base), better=metric.better)
    if clusters is not None and joined.aligned.common is not None:
        return plain
    theirs, mine = drawn_quantiles(pair, metric.summary, metric.quantile or 0.0, clusters)
    drawn = mine - theirs
    if np.isnan(drawn).any():
        return plain
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    low, high = np.quantile(drawn, tails).tolist()
    # The observed difference counts as one draw more, on both sides.
    fewer = min((drawn <= 0).sum(), (drawn >= 0).sum())
    p = min(1.0, 2 * (1 + int(fewer)) / (1 + len(drawn)))
    test = Tested(p, None, low, high, (less > 0) - (less < 0))
    ends: tuple[float | None, float | None] = (None, None)
    if theirs.min() > 0:
        first, last = np.quantile(mine / theirs - 1, tails).tolist()
        ends = first, last
    return replace(
        plain, low=low, high=high, relative_low=ends[0], relative_high=ends[1], tests={"t": test}
    )
