"""The sign test, and Wilcoxon's signed rank test (Biometrics Bulletin 1945)."""

import math

import numpy as np

from rankmill.analysis.statistics.distributions import normal_tail, sign_tail
from rankmill.analysis.statistics.outcome import Tested
from rankmill.analysis.statistics.paired_differences import Paired

# Up to here all signs of the ranks are counted: their number, 2**50, is an exact float64.
MOST_EXACT = 50


def sign_test(paired: Paired) -> Tested:
    """Return the two-sided exact binomial test of queries won against lost; ties are dropped.

    p = min(1, 2 P(X <= min(won, lost))) with X binomial of won + lost trials at 1/2. It has no
    interval of the mean. Conover, Practical Nonparametric Statistics, 3rd ed. 1999, 3.4.

    Examples
    --------
    >>> from rankmill.analysis.statistics.paired_differences import paired_of
    >>> sign_test(paired_of(np.array([0.5, 0.2, 0.0, -0.1, 0.3]))).p
    0.625
    """
    if not paired.n:
        return Tested(None)
    tail = sign_tail(min(paired.won, paired.lost), paired.won + paired.lost)
    return Tested(min(1.0, 2 * tail))


def wilcoxon_test(paired: Paired) -> Tested:
    """Return Wilcoxon's two-sided signed rank test with Pratt's zeros and mean ranks of ties.

    Zeros are ranked with all others, and their ranks dropped (Pratt, J. Am. Statist. Assoc. 1959).
    Up to 50 queries, p is exact: it counts the choices of signs, with ties and zeros too. Beyond,
    the normal approximation has the corrections for zeros and ties (Cureton, 1967) and none for
    continuity, as `scipy.stats.wilcoxon(zero_method="pratt")`. It has no interval of the mean.

    Examples
    --------
    >>> from rankmill.analysis.statistics.paired_differences import paired_of
    >>> wilcoxon_test(paired_of(np.array([0.5, 0.2, 0.0, -0.1, 0.3]))).p
    0.25
    """
    n = paired.n
    if not n:
        return Tested(None)
    _, positive, negative = paired.magnitudes
    counts = positive + negative
    if not len(counts):
        return Tested(1.0)
    before = paired.tied + np.cumsum(counts) - counts
    doubled = 2 * before + counts + 1  # twice the mean rank of those that are tied
    won = sum(map(math.prod, zip(doubled.tolist(), positive.tolist(), strict=True)))
    if n <= MOST_EXACT:
        return Tested(_exact(np.repeat(doubled, counts), won))
    zeros = paired.tied
    mean = (n * (n + 1) - zeros * (zeros + 1)) / 4
    ties = sum(count**3 - count for count in counts[counts > 1].tolist())
    scatter = n * (n + 1) * (2 * n + 1) - zeros * (zeros + 1) * (2 * zeros + 1)
    z = (won / 2 - mean) / math.sqrt((2 * scatter - ties) / 48)
    return Tested(min(1.0, 2 * normal_tail(abs(z))))


def _exact(ranks: np.ndarray, won: int) -> float:
    """Return p from the number of choices of signs that come to each sum of positive ranks."""
    ways = np.zeros(int(ranks.sum()) + 1, np.int64)
    ways[0] = 1
    for rank in ranks.tolist():
        ways[rank:] += ways[:-rank].copy()
    tail = min(int(ways[: won + 1].sum()), int(ways[won:].sum()))
    return min(1.0, 2 * tail / (1 << len(ranks)))
