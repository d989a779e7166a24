"""What queries that were not drawn may hide: bounds of a mean from the range of its values.

A t interval is as short as the values seen are alike. Few queries can be alike by chance, while a
few percent of all have values at the worst end of the range. So the values seen are replaced by
two, the worst one and another, with the same mean and variance: the share of the worst one is a
binomial one, and Clopper and Pearson bound it. Without any spread that is the bound of a share of
which nothing was seen.
"""

import math
from typing import NamedTuple

from rankmill.analysis.statistics.distributions import beta_tail, largest_share

# Values that are equal in exact numbers differ by less than this share of their mean.
ROUNDING = 1e-9


class MeanSpread(NamedTuple):
    """A mean with its standard error, and how many values of equal weight it is over."""

    mean: float
    error: float
    n: float

    @property
    def alike(self) -> bool:
        """Whether the values are the same, but for rounding."""
        return self.error * math.sqrt(max(self.n, 0.0)) <= ROUNDING * abs(self.mean)

    @property
    def negative(self) -> "MeanSpread":
        """The same of the values with the other sign."""
        return self._replace(mean=-self.mean)


class _Two(NamedTuple):
    """The two values that stand for all, the worst one and the other, and how many are worst."""

    worst: float
    other: float
    at_worst: float


def _two(one: MeanSpread, worst: float) -> _Two:
    room = one.mean - worst
    variance = one.error**2 * (one.n - 1)
    return _Two(worst, one.mean + variance / room, one.n * variance / (variance + room**2))


def least_mean(one: MeanSpread, worst: float, tail: float) -> float:
    """Return what a mean is at least, but for the chance `tail`; no value is below `worst`.

    It is minus infinity where the range has no such end.

    Examples
    --------
    40 queries that all win by 0.2, where a query may lose all:

    >>> round(least_mean(MeanSpread(0.2, 0.0, 40), -1.0, 0.025), 4)
    0.0943
    """
    if math.isinf(worst) or one.mean <= worst:
        return worst if one.mean >= worst else -math.inf
    two = _two(one, worst)
    return two.other - (two.other - worst) * largest_share(two.at_worst, one.n, tail)


def chance_of_less(one: MeanSpread, worst: float, limit: float) -> float:
    """Return the chance of such values where the mean is `limit`, or less than it.

    It is the `tail` at which `least_mean` is the limit: the p of the claim that the mean is above.

    Examples
    --------
    >>> round(chance_of_less(MeanSpread(0.2, 0.0, 40), -1.0, 0.0), 6) == round((1 / 1.2) ** 40, 6)
    True
    """
    if limit <= worst:
        return 0.0
    if math.isinf(worst) or one.mean <= limit:
        return 1.0
    two = _two(one, worst)
    share = (two.other - limit) / (two.other - worst)
    return beta_tail(share, two.at_worst + 1, one.n - two.at_worst) if two.at_worst < one.n else 1.0
