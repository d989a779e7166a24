"""The intervals of values, of differences and of relative differences."""

import math

from rankmill.analysis.compare.differences.differences import Estimate
from rankmill.analysis.compare.differences.sums import AnyMean, Sums, SystemColumn
from rankmill.analysis.statistics.bounds import MeanSpread, chance_of_less, least_mean
from rankmill.analysis.statistics.covariate import AdjustedPaired
from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.analysis.statistics.outcome import Tested
from rankmill.analysis.statistics.paired_differences import AnyPaired, Fit
from rankmill.analysis.statistics.ratios import Pair, largest_ratio, least_ratio
from rankmill.analysis.statistics.significance import LEAST_EFFECTIVE, too_few
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
    if not error:
        low, high = open_interval(MeanSpread(value, 0.0, n), parse(metric).spec.bounds, confidence)
        return Estimate(value, error, low, high)
    freedom = freedom_of(queries, n) if freedom is None else freedom
    half = t_quantile((1 + confidence) / 2, freedom) * error
    return Estimate(value, error, value - half, value + half)


def open_interval(
    one: MeanSpread, bounds: tuple[float, float], confidence: float
) -> tuple[float, float] | tuple[None, None]:
    """Return what the range of a metric leaves open of a mean; None for both without a range."""
    if any(map(math.isinf, bounds)):
        return None, None
    tail = (1 - confidence) / 2
    return least_mean(one, bounds[0], tail), -least_mean(one.negative, -bounds[1], tail)


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
    beyond: tuple[float, float] = (0.0, 0.0),
) -> tuple[float | None, float | None]:
    """Return the ends of the interval of (value - base) / base, by Fieller's theorem.

    `errors` are those of the value, of the base and of their difference, and `t` is the quantile of
    Student's t. If no value is below 0 (`positive`), at most all of the base is lost. The value may
    be less and more by what is in `beyond`. An end is None where there is none, and both where the
    base is not above 0.
    """
    mine, theirs, both = errors
    if value is None or not base or base < 0 or mine is None or theirs is None or both is None:
        return None, None
    # Fourth powers of numbers up to 1 are numbers: a ratio is the same in any unit.
    unit = max(abs(value), base, mine, theirs, both)
    ends = (value - beyond[0]) / unit, (value + beyond[1]) / unit
    rest = base / unit, mine / unit, theirs / unit, both / unit
    low = least_ratio(Pair.of_errors(ends[0], *rest), t) - 1
    high = largest_ratio(Pair.of_errors(ends[1], *rest), t) - 1
    low = max(low, -1.0) if positive else low
    return None if math.isinf(low) else low, None if math.isinf(high) else high


def beyond_alike(
    one: MeanSpread, bounds: tuple[float, float], confidence: float
) -> tuple[float, float]:
    """Return by how much less and more a mean may be of values that are all the same."""
    low, high = open_interval(one, bounds, confidence)
    if one.error or low is None or high is None:
        return 0.0, 0.0
    return one.mean - low, high - one.mean


def relative_ends_of(
    column: SystemColumn, base: AnyMean, spec: MetricSpec, confidence: float, alike: Tested | None
) -> tuple[float | None, float | None]:
    """Return the ends of the interval of a relative difference; None where it has none."""
    paired = column.paired
    mine: AnyMean | Fit = column.mean
    theirs: AnyMean | Fit = base
    if isinstance(paired, AdjustedPaired):
        mine, theirs = paired.mine, paired.theirs
    if paired is None or too_few(paired) or paired.standard_error is None:
        return None, None
    value = MeanSpread(mine.mean or 0.0, mine.standard_error or 0.0, paired.effective)
    less, more = beyond_alike(value, spec.bounds, confidence)
    if alike is not None:  # the differences may be others by so much as was not seen
        if alike.low is None or alike.high is None:
            return None, None
        mean = paired.mean or 0.0
        less, more = max(less, mean - alike.low), max(more, alike.high - mean)
    t = t_quantile((1 + confidence) / 2, paired.freedom)
    errors = mine.standard_error, theirs.standard_error, paired.standard_error
    return relative_ends(mine.mean, theirs.mean, errors, t, spec.bounds[0] >= 0, (less, more))


def of_alike(paired: AnyPaired, spec: MetricSpec, confidence: float) -> Tested:
    """Return what the range of the metric says of differences that are all the same.

    p is twice the chance of so many with a mean that is 0 or on the other side. It is None without
    such a range, or for one query, unless there is no difference at all.
    """
    width = spec.bounds[1] - spec.bounds[0]
    one = MeanSpread(paired.mean or 0.0, 0.0, paired.effective)
    low, high = open_interval(one, (-width, width), confidence)
    p = 1.0 if paired.all_zero else None
    if p is None and low is not None and paired.n > 1:
        side = one if one.mean > 0 else one.negative
        p = min(1.0, 2 * chance_of_less(side, -width, 0.0))
    return Tested(p, None, low, high) if p is not None else Tested(None)
