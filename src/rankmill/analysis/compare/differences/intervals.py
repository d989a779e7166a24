"""The intervals of values, of differences and of relative differences."""

import math
from collections.abc import Callable

from rankmill.analysis.compare.differences.differences import Estimate
from rankmill.analysis.compare.differences.sums import AnyMean, Sums, SystemColumn
from rankmill.analysis.statistics.covariate import Adjusted
from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.analysis.statistics.outcome import Tested
from rankmill.analysis.statistics.paired_differences import Fit, Paired
from rankmill.analysis.statistics.significance import LEAST_EFFECTIVE, too_few
from rankmill.analysis.statistics.unseen import (
    Part,
    Spread,
    are_at_ends,
    chance_above,
    chance_below,
    mean_ends,
    ratio_ends,
    spread_of,
    with_unseen,
)
from rankmill.metrics.aggregates.mean import WeightedMean, freedom_of
from rankmill.metrics.base import MetricSpec
from rankmill.metrics.registry import parse


def interval_of(
    metric: str,
    value: float | None,
    error: float | None,
    queries: int,
    confidence: float = 0.95,
    effective: float | None = None,
    freedom: float | None = None,
) -> Estimate:
    """Return a mean over queries with its interval, given its standard error.

    `effective` is the effective number of queries of their weights, or of clusters, if they have
    some. `freedom` are the degrees of freedom, if they are not what weights leave.
    """
    if value is None or error is None or queries < 2:
        return Estimate(value)
    n = queries if effective is None else effective
    if effective is not None and n < LEAST_EFFECTIVE:
        return Estimate(value, error)
    bounds = parse(metric).spec.bounds
    if not error or are_at_ends(value, error, n, bounds):
        ends = bound_of(spread_of(value, error, n, bounds), bounds, confidence)
        return Estimate(value, error, *ends)
    freedom = freedom_of(queries, n) if freedom is None else freedom
    half = t_quantile((1 + confidence) / 2, freedom) * error
    return Estimate(value, error, max(bounds[0], value - half), min(bounds[1], value + half))


def bound_of(
    one: Spread, bounds: tuple[float, float], confidence: float
) -> tuple[float, float] | tuple[None, None]:
    """Return the bound of a mean from its range; None for both without a range."""
    if any(map(math.isinf, bounds)):
        return None, None
    return mean_ends([Part(1.0, one, *bounds)], (1 - confidence) / 2)


def estimates(sums: Sums, confidence: float) -> dict[str, dict[str, Estimate]]:
    """Return the value of each metric and system."""

    def estimate(metric: str, mean: AnyMean) -> Estimate:
        queries, effective = sums.queries, None
        if isinstance(mean, WeightedMean):
            queries, effective = mean.positive, mean.effective
        told = mean.mean, mean.standard_error, queries, confidence, effective, mean.freedom
        return interval_of(metric, *told)

    return {
        metric: {name: estimate(metric, one.mean) for name, one in of.items()}
        for metric, of in sums.columns.items()
    }


def relative(difference: float | None, base: float | None) -> float | None:
    """Return a difference over the value of the baseline; None where that is 0 or unknown."""
    return None if difference is None or not base else difference / base


def relative_ends(
    value: float | None,
    base: float | None,
    errors: tuple[float | None, float | None, float | None],
    t: float,
    positive: bool,
    alike: Callable[[float, float, float], tuple[float, float]] | None = None,
) -> tuple[float | None, float | None]:
    """Return the ends of the interval of (value - base) / base, by Fieller's theorem.

    `errors` are those of the value, of the base and of their difference, and `t` is the quantile of
    Student's t. If no value is below 0 (`positive`), at most all of the base is lost. An end is
    None where there is none, and both where the base is not above 0. Of values that are all the
    same, `alike` gives the interval that their range leaves open: of a mean of values less a ratio
    times those of the baseline, its error, and that ratio.
    """
    mine, theirs, both = errors
    if value is None or not base or base < 0 or mine is None or theirs is None or both is None:
        return None, None
    of_value, of_base = (mine / base) ** 2, (theirs / base) ** 2
    covariance = (of_value + of_base - (both / base) ** 2) / 2
    start = value / base

    def ends(ratio: float) -> tuple[float, float]:
        square = of_value + ratio**2 * of_base - 2 * ratio * covariance
        error = math.sqrt(max(square, 0.0))
        low, high = start - ratio - t * error, start - ratio + t * error
        if alike is None:
            return low, high
        least, most = alike((start - ratio) * base, error * base, ratio)
        return min(low, least), max(high, most)

    low, high = ratio_ends(ends, start)
    if not low and not positive:
        return None, None if math.isinf(high) else high - 1
    return low - 1, None if math.isinf(high) else high - 1


def relative_ends_of(
    column: SystemColumn, base: AnyMean, spec: MetricSpec, confidence: float
) -> tuple[float | None, float | None]:
    """Return the ends of the interval of a relative difference; None where it has none."""
    paired = column.paired
    mine: AnyMean | Fit = column.mean
    theirs: AnyMean | Fit = base
    if isinstance(paired, Adjusted):
        mine, theirs = paired.mine, paired.theirs
    if paired is None or too_few(paired) or paired.standard_error is None:
        return None, None
    t = t_quantile((1 + confidence) / 2, paired.freedom)
    errors = mine.standard_error, theirs.standard_error, paired.standard_error
    (low, high), n = spec.bounds, paired.effective

    def alike(mean: float, error: float, ratio: float) -> tuple[float, float]:
        ends = low - ratio * high, high - ratio * low
        one = Part(1.0, Spread(mean, error**2 * (n - 1) / n, 0.0, 1 / n), *ends)
        return mean_ends([one], (1 - confidence) / 2)

    flat = (not mine.standard_error or paired.alike) and not math.isinf(high - low)
    return relative_ends(mine.mean, theirs.mean, errors, t, low >= 0, alike if flat else None)


def spread_of_pairs(column: SystemColumn) -> Spread:
    """Return how differences spread; those that a covariate adjusts, as if symmetric."""
    paired = column.paired
    assert paired is not None  # as it is no column of the baseline
    mean, n, moments = paired.mean or 0.0, max(paired.effective, 1.0), column.moments
    adjusted = isinstance(paired, Adjusted)
    if isinstance(paired, Paired) and not adjusted:
        z = (paired.values - mean) / n
        square, cube = (math.fsum((paired.counts * z**power).tolist()) for power in (2, 3))
        return Spread(mean, square, cube, 1 / n)
    if moments is not None and moments.paired and not adjusted:
        return moments.spread(1.0)
    square = (paired.standard_error or 0.0) ** 2 * (n - 1) / n
    return Spread(mean, square, 0.0, 1 / n)


def of_alike(column: SystemColumn, spec: MetricSpec, confidence: float) -> Tested:
    """Return what the range of the metric says of differences that are all the same.

    p is twice the chance of so many with a mean that is 0 or on the other side. It is None without
    such a range, or for one query, unless there is no difference at all.
    """
    width = spec.bounds[1] - spec.bounds[0]
    one, paired = spread_of_pairs(column)._replace(square=0.0, cube=0.0), column.paired
    assert paired is not None
    low, high = bound_of(one, (-width, width), confidence)
    p = 1.0 if paired.all_zero else None
    if p is None and low is not None and paired.n > 1:
        p = min(1.0, 2 * chance_of(one, width, 0.0))
    return Tested(p, None, low, high) if p is not None else Tested(None)


def chance_of(one: Spread, width: float, limit: float) -> float:
    """Return the p of the claim that a mean of differences is beyond the limit, where it seems so.

    Of a mean above the limit it is the claim that the true one is, and of one below the same.
    """
    if one.mean > limit:
        return chance_below(with_unseen(one, -width), limit)
    return chance_above(with_unseen(one, width), limit)
