"""What a rule about a metric measures: a value, or the drop from a baseline, with its interval."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from rankmill.compare.distributions import t_quantile
from rankmill.compare.jackknife import estimate
from rankmill.compare.sums import Column
from rankmill.gate.baseline import BASELINE, CANDIDATE
from rankmill.metrics.base import Better
from rankmill.metrics.gap_groups import LeftOut


class Measured(NamedTuple):
    """A metric of the system, and of the baseline if there is one.

    Attributes
    ----------
    value, error : float or None
        Of the system, and its standard error.
    queries : int
        How many queries the value is a mean over, or groups of queries for the jackknife.
    base, base_error, base_queries
        The same of the baseline.
    difference_error : float or None
        The standard error of the mean of the paired differences; None if they are not paired.
    """

    value: float | None
    error: float | None
    queries: int
    base: float | None = None
    base_error: float | None = None
    base_queries: int = 0
    difference_error: float | None = None

    @classmethod
    def of(cls, column: Column, queries: int, base: Column | None) -> "Measured":
        """Return what is measured of one slice; `base` is the column of the baseline."""
        n = getattr(column.mean, "positive", queries)
        mine = column.mean.mean, column.mean.standard_error, n
        if base is None or column.paired is None:
            return cls(*mine)
        return cls(*mine, base.mean.mean, base.mean.standard_error, n, column.paired.standard_error)

    @classmethod
    def of_groups(
        cls, value: float | None, base: float | None, without: Mapping[str, LeftOut | str]
    ) -> "Measured":
        """Return what is measured of a metric over all predictions, by the jackknife.

        `without` has the values of the system and perhaps the baseline without each group.
        """
        mine, theirs = without[CANDIDATE], without.get(BASELINE, "")
        if isinstance(mine, str):
            return cls(value, None, 0, base)
        groups = len(mine.sizes)
        found = cls(value, _error(mine), groups, base)
        if isinstance(theirs, str):
            return found
        less = LeftOut(mine.whole - theirs.whole, mine.values - theirs.values, mine.sizes)
        return found._replace(
            base_error=_error(theirs), base_queries=groups, difference_error=_error(less)
        )


def _error(one: LeftOut) -> float | None:
    spread = estimate(*one)
    return None if spread is None else spread.standard_error


class Interval(NamedTuple):
    """A number and the ends of its interval; the ends are None where they are not known."""

    number: float
    low: float | None = None
    high: float | None = None


def value_of(one: Measured, confidence: float | None) -> Interval | None:
    """Return the value with its interval, of Student's t; None without a value."""
    if one.value is None:
        return None
    return _interval(one.value, one.error, one.queries - 1, confidence)


def drop_of(
    one: Measured, confidence: float | None, *, relative: bool, better: Better = "higher"
) -> Interval | None:
    """Return the baseline less the value, or that over the baseline, with its interval.

    Where lower is better, it is the value less the baseline: a drop is a change for the worse.
    The error of the relative drop r = (b - v) / b is that of its linear part, with the covariance
    of b and d = v - b from the variances of all three: Cov(b, d) = (V(v) - V(b) - V(d)) / 2. It is
    None without a value, or if a drop from 0 is to be relative; from 0 there is no drop. A relative
    rise from 0 is infinite.
    """
    v, b = one.value, one.base
    if v is None or b is None:
        return None
    if relative and b <= 0:
        if v == b or (v > b) == (better == "higher"):
            return Interval(0.0, 0.0, 0.0)
        rise = drop_of(one, confidence, relative=False, better=better)
        return _of_nothing(rise) if better == "lower" and rise is not None else None
    if better == "lower":
        return _turned(drop_of(one, confidence, relative=relative))
    scale = b if relative else 1.0
    drop = (b - v) / scale
    if one.error is None or one.base_error is None:
        return Interval(drop)
    of_v, of_b = one.error**2, one.base_error**2
    paired = one.difference_error is not None
    of_d = (one.difference_error or 0.0) ** 2 if paired else of_v + of_b
    freedom = float(one.queries - 1)
    if not paired and of_d:
        freedom = _welch(of_v, one.queries, of_b, one.base_queries)
    variance = of_d
    if relative:
        covariance = (of_v - of_b - of_d) / 2
        variance = (of_d + drop**2 * of_b + 2 * drop * covariance) / b**2
    return _interval(drop, math.sqrt(max(0.0, variance)), freedom, confidence)


def _turned(one: Interval | None) -> Interval | None:
    """Return what a drop is the other way round."""
    if one is None or one.low is None or one.high is None:
        return one if one is None else Interval(0.0 - one.number)
    return Interval(0.0 - one.number, 0.0 - one.high, 0.0 - one.low)


def _of_nothing(rise: Interval) -> Interval:
    """Return a rise from 0 as a share of it; its interval begins at 0 if the rise is not shown."""
    if rise.low is None:
        return Interval(math.inf)
    return Interval(math.inf, math.inf if rise.low > 0 else 0.0, math.inf)


def _welch(one: float, n: int, other: float, m: int) -> float:
    """Return the degrees of freedom of Welch and Satterthwaite for two squared errors."""
    parts = (each**2 / (count - 1) for each, count in ((one, n), (other, m)) if count > 1)
    total = sum(parts)
    return (one + other) ** 2 / total if total else 1e9


def _interval(
    number: float, error: float | None, freedom: float, confidence: float | None
) -> Interval:
    if error is None or confidence is None or freedom < 1:
        return Interval(number)
    # Of very many slices, the confidence of each one is 1 as a double.
    p = min((1 + confidence) / 2, math.nextafter(1, 0))
    half = t_quantile(p, freedom) * error
    return Interval(number, number - half, number + half)
