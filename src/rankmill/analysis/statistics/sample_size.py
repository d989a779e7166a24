"""How many queries the paired t-test needs to tell a difference."""

import math
from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.distributions import normal_quantile, t_quantile

# The trapezoidal rule over the spread of the standard deviation, in units of 1 / sqrt(2 freedom).
_STEPS = np.arange(-45.0, 14.0, 0.125)


class Needed(NamedTuple):
    """What it takes to tell a system from the next one in the ranking.

    Attributes
    ----------
    better, worse : str
        The two systems; of two with the same rank, the first by name is `better`.
    difference : float or None
        The mean of the paired differences, `better` less `worse`; 0 if both have the same rank.
    deviation, effect : float or None
        The standard deviation of the differences, and the mean over it, which is Cohen's d; None
        where there is none.
    queries : int or None
        The number of queries that the paired t-test needs; None without an effect.
    """

    better: str
    worse: str
    difference: float | None
    deviation: float | None
    effect: float | None
    queries: int | None


def queries_needed(effect: float, confidence: float, power: float) -> int:
    """Return the smallest number of queries at which the test shows a difference often enough.

    `effect` is the mean of the differences over their standard deviation, not 0. The two-sided
    paired t-test at the level 1 - `confidence` is to show it with the probability `power`.

    Examples
    --------
    >>> queries_needed(0.5, 0.95, 0.8), queries_needed(0.01, 0.95, 0.8)
    (34, 78491)
    """
    z = normal_quantile((1 + confidence) / 2), normal_quantile(power)
    low, high = 1, max(2, math.ceil((max(0.0, sum(z)) / effect) ** 2))
    while t_power(effect, high, confidence) < power:
        # The normal approximation falls short by a few queries only.
        low, high = high, high + 2 * max(4, high - low if low > 1 else 1)
    while high - low > 1:
        middle = (low + high) // 2
        if t_power(effect, middle, confidence) < power:
            low = middle
        else:
            high = middle
    return high


def t_power(effect: float, queries: int, confidence: float) -> float:
    """Return the probability that the two-sided paired t-test shows a difference.

    It is two tails of the noncentral t distribution: those of a normal variable with the mean
    sqrt(queries) * effect, beyond the critical value times a spread, averaged over the distribution
    of the spread, which is that of chi / sqrt(freedom).

    Examples
    --------
    >>> round(t_power(0.5, 34, 0.95), 4)
    0.8078
    """
    freedom = queries - 1
    critical = t_quantile((1 + confidence) / 2, freedom)
    logs = _STEPS / math.sqrt(2 * freedom)
    weights = np.exp(freedom * (logs - np.expm1(2 * logs) / 2))
    spreads = critical * np.exp(logs)
    middle = math.sqrt(queries) * effect
    tails = [
        math.erfc((end - middle) / math.sqrt(2)) + math.erfc((end + middle) / math.sqrt(2))
        for end in spreads.tolist()
    ]
    return math.fsum((weights * tails).tolist()) / math.fsum(weights.tolist()) / 2
