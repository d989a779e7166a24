"""Metrics that are no means over queries: intervals and differences by the jackknife."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rankmill.analysis.compare.differences.differences import Difference, Estimate, pairs_of
from rankmill.analysis.compare.differences.judgement import Judged, relative, relative_ends
from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.analysis.statistics.significance import (
    LEAST_HITS,
    JackknifeError,
    estimate,
    interval_within,
    jackknife_test,
)
from rankmill.engine.left_out import LeftOut
from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.base import Metric
from rankmill.metrics.exposure import OfExposure
from rankmill.metrics.registry import parse
from rankmill.results.result import Result

Values = Mapping[str, float | None]
Without = Mapping[str, LeftOut | str]
"""System -> its values without each group of queries, or why these are not known."""


def pooled_estimates(values: Values, without: Without, confidence: float) -> dict[str, Estimate]:
    """Return the value of each system in one metric, with its interval if there is one."""
    return {name: _estimate(value, without[name], confidence) for name, value in values.items()}


def _estimate(value: float | None, without: LeftOut | str, confidence: float) -> Estimate:
    spread = None if isinstance(without, str) else spread_of(without)
    if value is None or spread is None or isinstance(without, str):
        return Estimate(value)
    if few_hits([without]):
        return Estimate(value, spread.standard_error)
    ends = interval_within(value, spread, without.bounds, confidence)
    return Estimate(value, spread.standard_error, *ends)


def spread_of(one: LeftOut) -> JackknifeError | None:
    """Return the spread of a value, from the values without each group."""
    return estimate(one.whole, one.values, one.sizes)


def few_hits(sides: Iterable[LeftOut]) -> str:
    """Return why there is no interval of gap or of a difference of it, or ""."""
    hits = max((one.hits for one in sides if one.hits is not None), default=LEAST_HITS)
    return f"{hits} hits are too few" if hits < LEAST_HITS else ""


def pooled_difference(
    values: Values,
    without: Without,
    baseline: str,
    system: str,
    confidence: float,
    metric: Metric,
) -> Difference:
    """Return how a system differs from the baseline in one metric; p is not corrected yet.

    The groups hold the same queries for both systems, so that they pair: the difference is
    estimated without each group. The test is "t", whatever tests are asked for.
    """
    base, value, better = values[baseline], values[system], metric.better
    if value is None or base is None:
        return Difference(None, better=better)
    less = value - base
    one, other = without[system], without[baseline]
    plain = Difference(less, relative(less, base), better=better)
    if isinstance(one, str) or isinstance(other, str) or len(one.sizes) != len(other.sizes):
        return plain
    if few_hits([one, other]):
        return plain
    spread = estimate(one.whole - other.whole, one.values - other.values, one.sizes)
    width = max(one.bounds[1], other.bounds[1]) - one.bounds[0]
    found = jackknife_test(less, spread, confidence, (-width, width))
    tests = {"t": found._replace(direction=(less > 0) - (less < 0))}
    ends: tuple[float | None, float | None] = (None, None)
    if spread is not None and spread.standard_error:
        spreads = spread_of(one), spread_of(other)
        errors = [None if each is None else each.standard_error for each in spreads]
        t = t_quantile((1 + confidence) / 2, spread.freedom)
        three = errors[0], errors[1], spread.standard_error
        ends = relative_ends(value, base, three, t, metric.bounds[0] >= 0)
    return replace(
        plain,
        tests=tests,
        low=found.low,
        high=found.high,
        relative_low=ends[0],
        relative_high=ends[1],
    )


class PooledMetrics(NamedTuple):
    """The values and differences of metrics that are not means over queries, and notes on each."""

    values: dict[str, dict[str, Estimate]]
    differences: Judged
    notes: list[str]


def pooled(
    results: Mapping[str, Result],
    without: Mapping[str, Without],
    metrics: Iterable[str],
    baseline: str,
    confidence: float,
    all_pairs: bool = False,
) -> PooledMetrics:
    """Return the values and differences of metrics that are not means over queries.

    `without` holds what `leave_out` found, by metric and system.
    """
    found, told = PooledMetrics({}, {}, []), dict[str, list[str]]()
    for name in metrics:
        of = {system: one.metrics[name] for system, one in results.items()}
        known, metric = without.get(name, {}), parse(name)
        # A system of an earlier run has values of queries alone.
        why = "its predictions are not at hand"
        if metric.quantile is not None:
            why = "it takes the values of all queries at once"
        left = {system: known.get(system, why) for system in of}
        found.values[name] = pooled_estimates(of, left, confidence)
        for base, system in pairs_of(of, baseline):
            if base == baseline or all_pairs:
                one = pooled_difference(of, left, base, system, confidence, metric)
                found.differences[name, system if base == baseline else (base, system)] = one
        how = _how(left)
        if issubclass(aggregate_of(metric), OfExposure):
            how += _lists_told(results)
        told.setdefault(how, []).append(name)
    found.notes.extend(not_means(names, how) for how, names in told.items())
    return found


def not_means(metrics: Sequence[str], how: str) -> str:
    """Return a note on the intervals of metrics that are no means.

    Examples
    --------
    >>> not_means(["gap", "ece"], "its interval is a jackknife")
    'gap, ece are not means over queries: each interval is a jackknife'
    """
    if len(metrics) > 1:
        how = how.replace("its interval", "each interval")
        return f"{', '.join(metrics)} are not means over queries: {how}"
    return f"{metrics[0]} is not a mean over queries: {how}"


def _how(without: Without) -> str:
    """Return how the intervals of a metric came to be, or why there are none."""
    why = next((one for one in without.values() if isinstance(one, str)), "")
    how = f"no interval and no test, because {why}"
    if not why:
        known = {name: one for name, one in without.items() if isinstance(one, LeftOut)}
        groups = next(len(one.sizes) for one in known.values())
        how = f"its interval is a jackknife over {groups} groups of queries"
        if all((one.values == one.whole).all() for one in known.values()):
            why = f"it is the same without any one of {groups} groups of queries"
            return f"no interval and no test, because {why}"
        few = [name for name, one in known.items() if few_hits([one])]
        if few:
            how += f"; there is none for {', '.join(few)}, which has fewer than {LEAST_HITS} hits"
    return how


def _lists_told(results: Mapping[str, Result]) -> str:
    """Return what the number of lists has to do with what they show together."""
    lists = {name: one.audit["queries_predicted"] for name, one in results.items()}
    counts = sorted({*lists.values()})
    each = ", ".join(f"{name} {count:,}" for name, count in lists.items())
    of = f"the systems have other numbers of lists ({each})"
    if len(counts) == 1:
        of = f"it is that of {counts[0]:,} lists"
    return f"; {of}, and more lists show more items"
