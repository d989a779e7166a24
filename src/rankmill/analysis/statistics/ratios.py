"""The interval of a ratio of two means, by Fieller's theorem.

A ratio r of the means of v and b is not refuted if v - r b has a mean that may be 0 by a t test. So
nothing is divided by a mean that may be 0 itself, where an interval from a linear part collapses:
then the interval has no end on that side. Fieller, J. R. Statist. Soc. B 1954; Franz, Ratios: a
short guide to confidence limits and proper use, 2007.
"""

import math
from typing import NamedTuple, Self


class Pair(NamedTuple):
    """Two means, the squares of their standard errors, and the covariance of the two means.

    `base`, which is divided by, is above 0, as is what it estimates.
    """

    value: float
    base: float
    of_value: float
    of_base: float
    covariance: float

    @classmethod
    def of_errors(
        cls, value: float, base: float, error: float, base_error: float, difference_error: float
    ) -> Self:
        """Return the pair given the standard errors of the two means and of their difference."""
        squares = error**2, base_error**2
        return cls(value, base, *squares, (sum(squares) - difference_error**2) / 2)


def least_ratio(one: Pair, t: float) -> float:
    """Return the largest r with all smaller ones refuted; minus infinity where none is.

    `t` is the quantile that the t of the mean of v - r b has to reach.

    Examples
    --------
    >>> least_ratio(Pair(0.9, 1.0, 0.0, 0.0, 0.0), 2.0)
    0.9
    >>> round(least_ratio(Pair(0.9, 1.0, 0.01, 0.01, 0.005), 2.0), 4)
    0.7212
    >>> least_ratio(Pair(0.1, 1.0, 0.01, 1.0, 0.005), 2.0)
    -inf
    """
    square = one.base**2 - t * t * one.of_base
    half = one.value * one.base - t * t * one.covariance
    constant = one.value**2 - t * t * one.of_value
    # Refuted are the r with square r**2 - 2 half r + constant above 0, and of these here the ones
    # at which v - r b is above 0.
    inner = half**2 - square * constant
    if square > 0:
        return (half - math.sqrt(max(0.0, inner))) / square
    if square == 0 or inner <= 0 or one.value - half / square * one.base <= 0:
        return -math.inf
    return (half - math.sqrt(inner)) / square


def largest_ratio(one: Pair, t: float) -> float:
    """Return the smallest r with all larger ones refuted; infinity where none is.

    Examples
    --------
    >>> round(largest_ratio(Pair(0.9, 1.0, 0.01, 0.01, 0.005), 2.0), 4)
    1.1121
    >>> largest_ratio(Pair(0.9, 1.0, 0.01, 1.0, 0.005), 2.0)
    inf
    """
    turned = one._replace(value=-one.value, covariance=-one.covariance)
    return -least_ratio(turned, t)
