"""What a test says."""

from typing import NamedTuple


class Tested(NamedTuple):
    """What one test says of a difference; None where it says nothing.

    Attributes
    ----------
    p, corrected_p : float or None
        The p-value, and the one that is corrected over all metrics and systems. Of a margin, what
        is corrected is the larger one of p and of the chance that the range of the metric leaves to
        queries that were not seen.
    low, high : float or None
        The ends of the interval of the difference, which is not corrected.
    direction : int
        1, 0 or -1: the sign of what the test looks at, which is the mean, or for "wilcoxon" the
        sum of ranks, and for "sign" the queries above the baseline less those below. 0 for tests of
        a margin.
    """

    p: float | None
    corrected_p: float | None = None
    low: float | None = None
    high: float | None = None
    direction: int = 0
