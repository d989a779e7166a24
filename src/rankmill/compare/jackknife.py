"""The delete-m jackknife for groups of unequal size, for a metric that is no mean over queries."""

import math
from typing import NamedTuple

import numpy as np

from rankmill.compare.distributions import t_quantile, t_tail
from rankmill.compare.outcome import Outcome


class Spread(NamedTuple):
    """A standard error and its degrees of freedom."""

    standard_error: float
    freedom: int


def estimate(whole: float, left_out: np.ndarray, sizes: np.ndarray) -> Spread | None:
    """Return the standard error of a value, from the values without each group of queries.

    With n queries in g groups, m of them in group j, h = n / m, the value v, and v(j) without group
    j, the pseudo-value of the group is p(j) = h v - (h - 1) v(j). The estimate of the jackknife is
    the mean of the p(j), each weighted by m / n, and its variance is the mean over the groups of
    (p(j) - estimate)² / (h - 1). Busing, Meijer & van der Leeden, Delete-m jackknife for unequal m,
    Statistics and Computing 1999.

    Parameters
    ----------
    whole : float
        The value over all queries, or the difference of two systems.
    left_out : numpy.ndarray
        The value or difference without each group.
    sizes : numpy.ndarray
        The number of queries of each group, all of them at least 1.

    Returns
    -------
    Spread or None
        With g - 1 degrees of freedom; None for fewer than two groups.

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
    variance = math.fsum(deviations**2 / (ratios - 1)) / len(sizes)
    return Spread(math.sqrt(variance), len(sizes) - 1)


def jackknife_test(whole: float, spread: Spread | None, confidence: float) -> Outcome:
    """Return the two-sided t test of a difference, and its interval.

    The test is named "t", as t = difference / standard error. If the difference is 0 with each
    group left out, p is 1. If it is the same number otherwise, or there is one group, there is no
    spread to compare with, and p and the interval are None.

    Examples
    --------
    >>> found = jackknife_test(0.02, Spread(0.01, 99), 0.95)
    >>> print(f"{found.p:.4f} {found.low:.4f} {found.high:.4f}")
    0.0482 0.0002 0.0398
    """
    if spread is None or not spread.standard_error:
        p = 1.0 if spread is not None and not whole else None
        ends = (0.0, 0.0) if p else (None, None)
        return Outcome("t", p, *ends)
    low, high = interval(whole, spread, confidence)
    p = min(1.0, 2 * t_tail(abs(whole) / spread.standard_error, spread.freedom))
    return Outcome("t", p, low, high)


def interval(value: float, spread: Spread, confidence: float) -> tuple[float, float]:
    """Return the ends of the t interval of a value.

    Examples
    --------
    >>> low, high = interval(0.5, Spread(0.01, 99), 0.95)
    >>> print(f"{low:.4f} {high:.4f}")
    0.4802 0.5198
    """
    half = t_quantile((1 + confidence) / 2, spread.freedom) * spread.standard_error
    return value - half, value + half
