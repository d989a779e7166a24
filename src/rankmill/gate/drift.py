"""Whether the newest runs are far from those before them: a jump of one, or a slope over a week.

Both are tests of a prediction (Hahn and Meeker, Statistical Intervals, 1991, chapter 4): a mean of
new numbers from a normal distribution lies within t s sqrt(1 / new + 1 / earlier) of the mean of
earlier ones. A run counts by its standard error, so that a night of few queries may lie further
away. Seven runs against fourteen hold each day of the week equally often on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from rankmill.compare.distributions import t_quantile

__all__ = ["EARLIER", "LEAST", "RATE", "Drift", "drift"]

RATE = 5e-5
"""How often each test names a run where nothing changed: both together, one run in 10,000."""
EARLIER = 14
"""How many runs others are compared with."""
LEAST = 7
"""How many of them are needed: a week, so that a first weekend is no jump."""
WEEK = 7
# A slope is in the runs just before the week too: leaving some out makes the test sharper.
GAP = 5
# A value this near to 0 or 1, in standard errors, comes from a few hits or misses. Their number is
# skewed, so that some nights of it tell too little of its spread.
FEW = 4

Number = tuple[float, float | None]
"""A value, and its standard error if that is known."""


class Drift(NamedTuple):
    """How far the newest runs are from those before them.

    Attributes
    ----------
    t : float
        The distance in units of its standard error; infinite where all earlier numbers are the same
        and these are not.
    limit : float
        From which |t| on it is named.
    mean : float
        Of the earlier numbers.
    earlier, runs : int
        How many numbers are compared with: 1 after a jump, 7 on a slope.
    """

    t: float
    limit: float
    mean: float
    earlier: int
    runs: int

    @property
    def flagged(self) -> bool:
        """Whether the newest runs are so far away that they are named."""
        return abs(self.t) > self.limit

    def __str__(self) -> str:
        """What is said of runs that are flagged; "" of any others."""
        if not self.flagged:
            return ""
        side = "above" if self.t > 0 else "below"
        if self.runs > 1:
            side = f"the last {self.runs} runs are {side}"
        if math.isinf(self.t):
            return f"{side} the {self.earlier} earlier runs, which all had {self.mean:.6g}"
        return (
            f"{side} the mean {self.mean:.6g} of {self.earlier} earlier runs "
            f"(t {self.t:+.1f}, limit {self.limit:.1f})"
        )


def drift(numbers: Sequence[Number]) -> Drift | None:
    """Return how far the newest numbers are from those before them; None if these are few.

    The newest one is compared with up to 14 before it, and the newest seven with 14 that end up to
    five runs before these. Of both, the distance that is larger beside its limit is returned.

    Parameters
    ----------
    numbers : sequence of (float, float or None)
        The value and standard error of each run, in the order of time.

    Examples
    --------
    >>> nights = [(0.10 + 0.001 * (night % 3), 0.002) for night in range(20)]
    >>> drift(nights).flagged
    False
    >>> print(drift([*nights, (0.11, 0.002)]))
    above the mean 0.100929 of 14 earlier runs (t +10.6, limit 5.9)
    >>> print(drift([*nights, *((0.1015 + 0.0008 * night, 0.002) for night in range(7))]))
    the last 7 runs are above the mean 0.101071 of 14 earlier runs (t +7.4, limit 5.9)
    >>> drift(nights[:7]) is None
    True
    """
    found = [_distance(numbers[-1 - EARLIER : -1], numbers[-1:])]
    gap = min(GAP, len(numbers) - WEEK - EARLIER)
    if gap >= 0:
        end = len(numbers) - WEEK - gap
        found.append(_distance(numbers[end - EARLIER : end], numbers[-WEEK:]))
    known = [one for one in found if one is not None]
    return max(known, key=lambda one: abs(one.t) / one.limit, default=None)


def _distance(earlier: Sequence[Number], new: Sequence[Number]) -> Drift | None:
    if len(earlier) < LEAST:
        return None
    errors = [error for _, error in (*earlier, *new)]
    usual = math.fsum(error or 0.0 for _, error in earlier) / len(earlier)
    told = all(errors)  # neither unknown nor 0
    weights = [(usual / error) ** 2 if told and error else 1.0 for error in errors]
    before, after = weights[: len(earlier)], weights[len(earlier) :]
    mean, now = _mean(earlier, before), _mean(new, after)
    limit = _limit(len(earlier) - 1)
    values = {value for value, _ in earlier}
    if len(values) == 1:
        mean = earlier[0][0]
        spread = 0.0 if usual else max((error or 0.0) for _, error in new)
    else:
        pairs = zip(before, earlier, strict=True)
        squares = math.fsum(weight * (value - mean) ** 2 for weight, (value, _) in pairs)
        spread = math.sqrt(squares / (len(earlier) - 1))
        if min(abs(mean), abs(1 - mean)) < FEW * usual:
            spread = max(spread, usual, *(error or 0.0 for _, error in new))
    distance = now - mean
    error = spread * math.sqrt(1 / math.fsum(after) + 1 / math.fsum(before))
    sure = math.copysign(math.inf, distance) if distance else 0.0
    t = distance / error if error else sure
    return Drift(t, limit, mean, len(earlier), len(new))


def _mean(numbers: Sequence[Number], weights: Sequence[float]) -> float:
    pairs = zip(numbers, weights, strict=True)
    return math.fsum(weight * value for (value, _), weight in pairs) / math.fsum(weights)


@cache
def _limit(freedom: int) -> float:
    return t_quantile(1 - RATE / 2, freedom)
