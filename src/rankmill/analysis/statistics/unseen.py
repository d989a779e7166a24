"""What one night shows of a mean whose values have a range: the mean with one unseen query.

Doubt about a mean comes from values that were not drawn. So one more query is added, with the
value at the far end of the range, and all get random weights that sum to 1, uniformly: the bound is
the quantile of that weighted mean. For shares it is the bound of Clopper and Pearson, and for many
ordinary values a t interval with Hall's correction for skewness. It was conjectured by Gaffke
(Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable, 2005; Learned-Miller and Thomas, A new confidence interval for the mean of a bounded
random variable, 2019), and is not proven; ``benchmarks/verdicts.py`` holds it to its error rate.

The weighted mean is not drawn: its first three cumulants are known, and a shifted gamma
distribution has the same. Cumulants of independent parts add, so that nights without a query in
common, weights and clusters have the same bound.

The jackknife says nothing of them: what is left out moves a quantile by one step or not at all.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.distributions import gamma_quantile, gamma_tail, normal_tail
from rankmill.metrics.aggregates.distribution import Distribution

# Below this skewness a gamma distribution is the normal one, to the digits that matter here.
LEAST_SKEWNESS = 1e-5
# Ends of a ratio beyond this are told to be unbounded.
LARGEST_RATIO = 1e9
STEPS = 60
# Numbers that are equal in exact arithmetic differ by less than this share.
ROUNDING = 1e-9


class Spread(NamedTuple):
    """A mean of units (queries, or clusters of them), and how its values are spread.

    With z = weight × (value - mean) / sum of weights, `square` is the sum of z**2 and `cube` that
    of z**3. `unit` is the weight of a typical unit as a share of all: 1 / n without weights.
    """

    mean: float
    square: float
    cube: float
    unit: float
    weights: "Weights | None" = None  # of units with unequal weights


class Weights(NamedTuple):
    """The sums over units of products of z and v, the share of a unit in the sum of weights."""

    zv: float
    vv: float
    zzv: float
    zvv: float
    vvv: float


class Cumulants(NamedTuple):
    """The mean, the variance and the third cumulant of a random mean."""

    mean: float
    square: float
    cube: float


class Part(NamedTuple):
    """One of several independent means that add up, each times a factor; with its range."""

    factor: float
    spread: Spread
    low: float
    high: float


def spread_of(
    mean: float, error: float, n: float, bounds: tuple[float, float], third: float | None = None
) -> Spread:
    """Return how n values spread, given the standard error of their mean.

    Without their third central moment, values of which each is at an end of the range have theirs,
    and others are taken to be symmetric.

    Examples
    --------
    >>> spread_of(0.5, 0.1, 25, (0.0, 1.0)).cube
    0.0
    """
    variance = error**2 * (n - 1)
    if third is None:
        ends = are_at_ends(mean, error, n, bounds)
        third = variance * (sum(bounds) - 2 * mean) if ends else 0.0
    return Spread(mean, variance / n, third / n**2, 1 / n)


def are_at_ends(mean: float, error: float, n: float, bounds: tuple[float, float]) -> bool:
    """Return whether all n values of a mean are at the ends of the range, as those of hits are."""
    most = (mean - bounds[0]) * (bounds[1] - mean)
    return math.isfinite(most) and abs(error**2 * (n - 1) - most) <= ROUNDING * most


def with_unseen(one: Spread, end: float) -> Cumulants:
    """Return the cumulants of the mean of the values seen, and of one more at `end`.

    Examples
    --------
    No hit of 100 queries, and the share that may hit all the same, as by Clopper and Pearson:

    >>> none = with_unseen(Spread(0.0, 0.0, 0.0, 1 / 100), 1.0)
    >>> round(largest(none, 0.025), 4)
    0.0363
    """
    total = 1 + one.unit
    mean = (one.mean + one.unit * end) / total
    shift = one.mean - mean
    # z of the unit that was not seen; those of the others are about the new mean.
    apart = one.unit * (end - mean) / total
    equal = Weights(0.0, one.unit, one.unit * one.square, 0.0, one.unit**2)
    zv, vv, zzv, zvv, vvv = one.weights or equal
    square = one.square + 2 * shift * zv + shift**2 * vv
    cube = one.cube + 3 * shift * zzv + 3 * shift**2 * zvv + shift**3 * vvv
    return Cumulants(mean, square / total**2 + apart**2, 2 * (cube / total**3 + apart**3))


def added(parts: Iterable[Part], *, up: bool) -> Cumulants:
    """Return the cumulants of the sum of parts, whose unseen units are all at its upper end.

    Or at the lower end, if not `up`.
    """
    sums = [0.0, 0.0, 0.0]
    for factor, spread, low, high in parts:
        end = high if up == (factor > 0) else low
        for degree, one in enumerate(with_unseen(spread, end)):
            sums[degree] += factor ** (degree + 1) * one
    return Cumulants(*sums)


def chance_above(one: Cumulants, limit: float) -> float:
    """Return the chance of a random mean that is at least `limit`.

    With the unseen query at the upper end, it is the p of the claim that the true mean is below it.
    """
    if not one.square > 0:
        return float(one.mean >= limit)
    error = math.sqrt(one.square)
    skewness, x = one.cube / error**3, (limit - one.mean) / error
    if abs(skewness) < LEAST_SKEWNESS:
        return normal_tail(x)
    return gamma_tail(x, 4 / skewness**2, skewness)


def chance_below(one: Cumulants, limit: float) -> float:
    """Return the chance of a random mean that is `limit` at most."""
    return chance_above(Cumulants(-one.mean, one.square, -one.cube), -limit)


def largest(one: Cumulants, tail: float) -> float:
    """Return what a random mean is above with the chance `tail`."""
    if not one.square > 0:
        return one.mean
    error = math.sqrt(one.square)
    skewness = one.cube / error**3
    if abs(skewness) < LEAST_SKEWNESS:
        skewness = LEAST_SKEWNESS
    return one.mean + error * gamma_quantile(tail, 4 / skewness**2, skewness)


def smallest(one: Cumulants, tail: float) -> float:
    """Return what a random mean is below with the chance `tail`."""
    return -largest(Cumulants(-one.mean, one.square, -one.cube), tail)


def mean_ends(parts: list[Part], tail: float) -> tuple[float, float]:
    """Return the ends of the interval of a sum of means, each wrong with the chance `tail`.

    No end leaves the range.

    Examples
    --------
    Of 1,000 queries, 20 hit with one system and 45 others with another one:

    >>> def rate(hits):
    ...     p = hits / 1000
    ...     return Spread(p, p * (1 - p) / 1e3, p * (1 - p) * (1 - 2 * p) / 1e6, 1e-3)
    >>> parts = [Part(1.0, rate(20), 0.0, 1.0), Part(-1.0, rate(45), 0.0, 1.0)]
    >>> [round(end, 4) for end in mean_ends(parts, 0.025)]
    [-0.0419, -0.0087]
    """
    least = sum(one.factor * (one.low if one.factor > 0 else one.high) for one in parts)
    most = sum(one.factor * (one.high if one.factor > 0 else one.low) for one in parts)
    low = smallest(added(parts, up=False), tail)
    return max(least, low), min(most, largest(added(parts, up=True), tail))


def ratio_ends(
    ends: Callable[[float], tuple[float, float]], start: float, *, negative: bool = False
) -> tuple[float, float]:
    """Return the ends of the interval of a ratio of two means, which are `negative` or not below 0.

    Refuted is a ratio r where the mean of v - r b is shown to be on one side of 0: so nothing is
    divided by a mean that may be 0 itself (Fieller, J. R. Statist. Soc. B 1954). `ends` gives the
    interval of that mean, and `start` is the ratio of the two means. An end is infinite if no ratio
    is too large, or too small.
    """
    low, below = 0.0, min(start, -1e-3) if negative else 0.0
    while negative and ends(below)[0] <= 0 and below > -LARGEST_RATIO:
        below *= 2
    if ends(below)[0] > 0:
        low = _crossing(lambda r: ends(r)[0] > 0, below, start)
    elif negative:
        low = -math.inf
    if ends(LARGEST_RATIO)[1] >= 0:  # b may be 0: then ratios beyond a gap are not refuted either
        return low, math.inf
    above = max(start, 1e-3)
    while ends(above)[1] >= 0:
        above *= 2
    return low, _crossing(lambda r: ends(r)[1] >= 0, start, above)


def _crossing(kept: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return where a condition that holds at `inside` and not at `outside` ends, by bisection."""
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        if middle in (inside, outside):
            break
        inside, outside = (middle, outside) if kept(middle) else (inside, middle)
    return inside


# ------------------------------------------------------------------ quantiles

DRAWS = 300
# Beyond so many standard errors of a rank, no quantile of a draw is looked for.
FAR = 8.0
SEED = 20_240_917


def quantile_ends(
    values: np.ndarray,
    share: float,
    bounds: tuple[float, float],
    confidence: float,
    clusters: np.ndarray | None = None,
) -> tuple[float, float]:
    """Return the ends of the interval of a quantile: two of the values, or an end of the range.

    They are where the shares of values below them are, as the bound of a mean says of the share
    below the quantile (Woodruff, J. Am. Stat. Assoc. 1952). Without clusters that is the bound of
    Clopper and Pearson. `clusters` are the codes of those of the queries.

    Examples
    --------
    >>> quantile_ends(np.arange(200.0), 0.5, (0.0, math.inf), 0.95)
    (85.0, 114.0)
    """
    ordered, n = np.sort(values), len(values)
    spread = Spread(
        share, share * (1 - share) / n, share * (1 - share) * (1 - 2 * share) / n**2, 1 / n
    )
    if clusters is not None:
        place = min(int(share * n), n - 1)
        below = (values <= ordered[place]).astype(np.float64)
        z = np.bincount(clusters, below - below.mean()) / n
        sizes = np.bincount(clusters) / n
        # A cluster that was not seen may be below as a whole.
        spread = Spread(share, float((z**2).sum()), float((z**3).sum()), float((sizes**2).sum()))
    low, high = mean_ends([Part(1.0, spread, 0.0, 1.0)], (1 - confidence) / 2)
    first, last = math.ceil(n * low), math.floor(n * high) + 1
    return (
        float(ordered[first - 1]) if first > 0 else bounds[0],
        float(ordered[last - 1]) if last <= n else bounds[1],
    )


def drawn_quantiles(
    sides: tuple[np.ndarray, np.ndarray], summary: str, share: float, clusters: np.ndarray | None
) -> np.ndarray:
    """Return the quantiles of two systems in draws of the queries, or of clusters of them.

    Both have the value of each query, or NaN where it does not count. A draw takes as many as there
    are, each as often as chance has it; the same draws come in every process and version.
    """
    there = [~np.isnan(one) for one in sides]
    near = [_near(one, kept, share, clusters) for one, kept in zip(sides, there, strict=True)]
    if np.sort(near[0]).tobytes() > np.sort(near[1]).tobytes():  # swapped, they draw the same
        return drawn_quantiles((sides[1], sides[0]), summary, share, clusters)[::-1]
    # What is far from both quantiles differs in nothing that a draw could show.
    cells, of_cell, sizes = np.unique(
        np.stack([*near, *there], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    # Its stream is frozen, unlike that of a Generator.
    random = np.random.RandomState(SEED)
    found = np.empty((2, DRAWS))
    for draw in range(DRAWS):
        if clusters is None:
            counts = random.multinomial(len(of_cell), sizes / len(of_cell))
        else:
            many = int(clusters.max()) + 1
            times = random.multinomial(many, np.full(many, 1 / many))
            counts = np.bincount(of_cell.ravel(), times[clusters], len(cells)).astype(np.int64)
        for side in range(2):
            kept = counts * cells[:, 2 + side].astype(np.int64)
            one = Distribution(summary, np.empty(0), np.empty(0, np.int64), int(kept.sum()))
            value = one.with_values(cells[:, side], kept).value
            found[side, draw] = math.nan if value is None else value
    return found


def _near(
    values: np.ndarray, there: np.ndarray, share: float, clusters: np.ndarray | None
) -> np.ndarray:
    """Return values of which those far from the quantile are equal; 0 where there is none."""
    ordered = np.sort(values[there])
    n = len(ordered)
    if not n or clusters is not None:
        return np.where(there, values, 0.0)
    reach = FAR * math.sqrt(n * share * (1 - share)) + FAR
    ends = (ordered[min(max(int(share * n + side * reach), 0), n - 1)] for side in (-1, 1))
    return np.where(there, np.clip(values, *ends), 0.0)
