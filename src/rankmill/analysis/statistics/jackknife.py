"""The delete-m jackknife for groups of unequal size, for metrics of all predictions."""

import math
from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.distributions import t_quantile, t_tail
from rankmill.analysis.statistics.outcome import Tested

# With fewer hits, the groups that hold one are too few to tell how far chance moves gap. Measured.
LEAST_HITS = 10


class JackknifeError(NamedTuple):
    """A standard error and its degrees of freedom, one less than there are groups.

    `effective` is how many groups it is made of: fewer than there are, where few hold the hits.
    """

    standard_error: float
    freedom: int
    effective: float = math.inf


def estimate(whole: float, left_out: np.ndarray, sizes: np.ndarray) -> JackknifeError | None:
    """Return the standard error of a value, from the values without each group of queries.

    With n queries in g groups, m of them in group j, h = n / m, the value v, and v(j) without group
    j, the pseudo-value of the group is p(j) = h v - (h - 1) v(j). The estimate of the jackknife is
    the mean of the p(j), each weighted by m / n, and its variance is the mean over the groups of
    (p(j) - estimate)² / (h - 1). Busing, Meijer & van der Leeden, Delete-m jackknife for unequal m,
    Statistics and Computing 1999.

    `whole` is the value over all queries, or the difference of two systems, `left_out` the same
    without each group, and `sizes` are the queries of each group, at least 1. Fewer than two groups
    have no error.

    Examples
    --------
    The mean of 1, 2, 3 and 6, each in a group of its own: the standard error is that of a mean.

    >>> found = estimate(3.0, np.array([11, 10, 9, 6]) / 3, np.ones(4))
    >>> print(f"{found.standard_error:.4f} {found.freedom}")
    1.0801 3
    """
    if len(sizes) < 2:
        return None
    shares = sizes / sizes.sum()
    ratios = 1 / shares
    # All pseudo-values less the value itself: nothing is lost where they are close to it.
    pseudo = (ratios - 1) * (whole - left_out)
    deviations = pseudo - (shares * pseudo).sum()
    parts = deviations**2 / (ratios - 1)
    total = math.fsum(parts)
    effective = 1 / math.fsum((parts / total) ** 2) if total else math.inf
    return JackknifeError(math.sqrt(total / len(sizes)), len(sizes) - 1, effective)


def jackknife_test(
    whole: float,
    spread: JackknifeError | None,
    confidence: float,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Tested:
    """Return the two-sided t test of a difference, and its interval.

    The test is named "t", as t = difference / standard error. If the difference is 0 with each
    group left out, p is 1. If it is the same number otherwise, or there is one group, p is None.
    Neither has a spread to make an interval of.

    Examples
    --------
    >>> found = jackknife_test(0.02, JackknifeError(0.01, 99), 0.95)
    >>> print(f"{found.p:.4f} {found.low:.4f} {found.high:.4f}")
    0.0482 0.0002 0.0398
    """
    if spread is None or not spread.standard_error:
        return Tested(1.0 if spread is not None and not whole else None)
    low, high = interval(whole, spread, confidence, bounds)
    p = min(1.0, 2 * t_tail(abs(whole) / spread.standard_error, spread.freedom))
    return Tested(p, None, low, high)


def interval_within(
    value: float, spread: JackknifeError, bounds: tuple[float, float], confidence: float
) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of an interval that stays within bounds; None for both without a spread.

    It is the t interval of the logit of the share of the range, turned back, with the effective
    number of groups as degrees of freedom: where hits are few, the error is as uncertain as the
    value. Where the range has no end, or the value is at one, it is the t interval, cut there.

    Examples
    --------
    >>> low, high = interval_within(0.01, JackknifeError(0.005, 99, 12.0), (0.0, 1.0), 0.95)
    >>> print(f"{low:.4f} {high:.4f}")
    0.0033 0.0295
    """
    if not spread.standard_error:
        return None, None
    least, width = bounds[0], bounds[1] - bounds[0]
    share = (value - least) / width
    if math.isinf(width) or not 0 < share < 1:
        return interval(value, spread, confidence, bounds)
    middle = math.log(share / (1 - share))
    freedom = min(float(spread.freedom), spread.effective)
    half = t_quantile((1 + confidence) / 2, freedom) * spread.standard_error / width
    half /= share * (1 - share)
    low, high = (1 / (1 + math.exp(min(700.0, -end))) for end in (middle - half, middle + half))
    return least + width * low, least + width * high


def interval(
    value: float,
    spread: JackknifeError,
    confidence: float,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float]:
    """Return the ends of the t interval of a value, within bounds.

    Examples
    --------
    >>> low, high = interval(0.5, JackknifeError(0.01, 99), 0.95)
    >>> print(f"{low:.4f} {high:.4f}")
    0.4802 0.5198
    """
    half = t_quantile((1 + confidence) / 2, spread.freedom) * spread.standard_error
    return max(bounds[0], value - half), min(bounds[1], value + half)
