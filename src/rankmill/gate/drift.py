"""Whether the newest of several numbers is far from those before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

__all__ = ["LAST", "LEAST", "LIMIT", "Drift", "drift"]

# Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993): a normal distribution has its
# quartiles at 0.6745 standard deviations, and |z| above 3.5 names an outlier.
QUARTILE = 0.6745
LIMIT = 3.5
# A normal distribution's mean absolute deviation is its standard deviation over this.
OF_MEAN = 1.253314
# How many earlier numbers are looked at, and how many are needed to say anything.
LAST = 14
LEAST = 5


class Drift(NamedTuple):
    """How far a number is from those before it.

    Attributes
    ----------
    z : float
        The robust z; infinite where all earlier numbers are the same and this one is another.
    median : float
        Of the earlier numbers.
    earlier : int
        How many these are.
    """

    z: float
    median: float
    earlier: int

    @property
    def flagged(self) -> bool:
        """Whether the number is so far away that it is named."""
        return abs(self.z) > LIMIT

    def __str__(self) -> str:
        """What is said of a number that is flagged; "" of any other."""
        if not self.flagged:
            return ""
        side = "above" if self.z > 0 else "below"
        if math.isinf(self.z):
            return f"{side} the {self.earlier} runs before, which all had {self.median:.6g}"
        return (
            f"far {side} the median {self.median:.6g} of the {self.earlier} runs before "
            f"(robust z {self.z:+.1f})"
        )


def drift(values: Sequence[float], last: int = LAST) -> Drift | None:
    """Return how far the last number is from the `last` ones before it; None if these are few.

    The distance is 0.6745 (x - median) / MAD, where MAD is the median of the distances from the
    median. If more than half of the numbers are the same, the MAD is 0 and the mean of these
    distances takes its place, as Iglewicz and Hoaglin advise.

    Examples
    --------
    >>> drift([0.10, 0.11, 0.09, 0.10, 0.12, 0.08, 0.30])
    Drift(z=13.49, median=0.1, earlier=6)
    >>> print(drift([0.10, 0.11, 0.09, 0.10, 0.12, 0.08, 0.30]))
    far above the median 0.1 of the 6 runs before (robust z +13.5)
    >>> drift([0.1, 0.1, 0.3]) is None
    True
    """
    if len(values) <= LEAST:
        return None
    *earlier, newest = values[-last - 1 :]
    middle = median(earlier)
    distances = [abs(value - middle) for value in earlier]
    distance, spread = newest - middle, median(distances) / QUARTILE
    if spread == 0:
        spread = OF_MEAN * fmean(distances)
    if spread == 0:
        z = math.copysign(math.inf, distance) if distance else 0.0
    else:
        z = round(distance / spread, 10)
    return Drift(z, middle, len(earlier))
