"""What a series of nights shows of a change: paired nights by their running mean, others by a pin.

Paired differences of a night share what the night does to both systems, so that it cancels, and
each night adds to what is known. Without pairs, nights differ by more than the queries that were
drawn: a series is then held to nights that stand still, by how much nights differ from each other.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.distributions import t_quantile

# The running mean is narrowest where the variance is so many times that of the first night.
NARROW_AT = 5
# So many queries that were not seen are supposed in all of the nights. One is too few: measured
# with gains that are so rare that a night has three, it is wrong in 3 % of series and not in 2.5.
UNSEEN = 2
# Nights that are pinned, and the fewest of them; those that are judged together, and how many are.
PINNED, FEWEST, WINDOW, LOOKS = 28, 14, 7, 60
# How much a night is like the one before, as is supposed.
ALIKE = 0.7


class PairedNight(NamedTuple):
    """The mean of the differences of a night from what the limit allows, and how sure it is.

    `up` and `down` are by how much one query that was not seen could move it.
    """

    mean: float
    square: float
    up: float
    down: float
    base: float = 1.0  # the value of the baseline


class Night(NamedTuple):
    """A night that is not paired: its day, value, and the square of its standard error."""

    day: int
    value: float
    square: float


class SeriesMean(NamedTuple):
    """What a series comes to: a mean beyond what the limit allows, with the ends of its interval.

    `nights` is how many it is over, and `base` the value that a share is a share of.
    """

    mean: float
    low: float
    high: float
    nights: int
    base: float


def running_mean(nights: Sequence[PairedNight], confidence: float) -> SeriesMean:
    """Return the mean over paired nights, with an interval that holds on all nights together.

    It is the boundary of a normal mixture (Robbins, Annals of Mathematical Statistics 1970; Howard
    et al., Annals of Statistics 2021), with two unseen queries in all of the nights. However many
    nights are looked at, each end is wrong in (1 - confidence) / 2 of series.

    Examples
    --------
    >>> night = PairedNight(-0.02, 0.005**2, 0.001, 0.001)
    >>> [round(running_mean([night] * n, 0.95).high, 4) for n in (1, 4, 16)]
    [-0.0005, -0.0118, -0.016]
    """
    count, error = len(nights), (1 - confidence) / 2
    total = math.fsum(one.mean for one in nights)
    base = math.fsum(one.base for one in nights) / count
    squares = math.fsum(one.square for one in nights)
    if not any((squares, *(one.up + one.down for one in nights))):
        return SeriesMean(total / count, -math.inf, math.inf, count, base)
    far = -2 * math.log(2 * error)
    ends = []
    for sign, one in ((-1, max(one.down for one in nights)), (1, max(one.up for one in nights))):
        unseen = UNSEEN * one
        variance = squares + unseen**2
        mixed = NARROW_AT * max(nights[0].square, unseen**2) / (far + math.log(far) + 1)
        reach = (variance + mixed) * math.log((variance + mixed) / (mixed * 4 * error**2))
        ends.append((total + sign * (unseen + math.sqrt(max(reach, 0.0)))) / count)
    return SeriesMean(total / count, ends[0], ends[1], count, base)


def against_pin(
    nights: Sequence[Night], ratio: float, limit: float, confidence: float
) -> SeriesMean | None:
    """Return the last nights less `ratio` times the pinned ones, plus `limit`; None of too few.

    The first nights are pinned, and the mean of the last seven is held to theirs. How much nights
    differ comes from nights a week apart, which share their weekday, and is one sampling error at
    least. The error rate is shared by 60 nights.
    """
    pinned = PINNED if len(nights) > PINNED else FEWEST
    if len(nights) <= pinned:
        return None
    before, last = nights[:pinned], nights[pinned:][-WINDOW:]
    far = 7 if pinned == PINNED else 1
    base = math.fsum(one.value for one in before) / pinned
    value = math.fsum(one.value for one in last) / len(last)
    square = math.fsum(one.square for one in last) / len(last)
    between, pairs = _between(nights[:-WINDOW] if far == 7 else before, far)
    between = max(square, between)
    weights = np.array([-1 / pinned] * pinned + [1 / len(last)] * len(last))
    days = np.array([one.day for one in (*before, *last)], float)
    alike = ALIKE ** np.abs(days[:, None] - days)
    variance = square / len(last) + between * float(weights @ alike @ weights)
    variance += ratio**2 * math.fsum(one.square for one in before) / pinned**2
    freedom = max(2.0, pairs / 2 if far == 7 else pairs)
    half = t_quantile(1 - (1 - confidence) / 2 / LOOKS, freedom) * math.sqrt(variance)
    mean = value - ratio * base + limit
    return SeriesMean(mean, mean - half, mean + half, len(last), base)


def _between(nights: Sequence[Night], far: int) -> tuple[float, int]:
    """Return how much nights vary beyond their sampling, from those so many days apart."""
    of_day = {one.day: one for one in nights}
    pairs = [(one, of_day[one.day - far]) for one in nights if one.day - far in of_day]
    if len(pairs) < 2:
        return 0.0, len(pairs)
    apart = np.array([one.value - other.value for one, other in pairs])
    sampled = math.fsum(one.square + other.square for one, other in pairs) / len(pairs)
    return (float(apart.var(ddof=1)) - sampled) / (2 * (1 - ALIKE**far)), len(pairs)
