"""The tests of one difference, by name; equivalence, non-inferiority and Tukey beside them."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rankmill.analysis.statistics.bootstrap import (
    bca_test,
    bootstrap_test,
    permuted_column_sums,
    randomization_test,
)
from rankmill.analysis.statistics.clusters import ClusteredPaired
from rankmill.analysis.statistics.distributions import normal_tail, sign_tail, t_quantile, t_tail
from rankmill.analysis.statistics.outcome import Tested
from rankmill.analysis.statistics.paired_differences import (
    LARGEST,
    AnyPaired,
    Paired,
    WeightedPaired,
)
from rankmill.errors import InputError, UsageError
from rankmill.metrics.base import Better

# Up to here all signs of the ranks are counted: their number, 2**50, is an exact float64.
MOST_EXACT = 50

REPLICATES = 10_000
# A share of the largest range of the sums that rounding does not reach.
ROUNDING = 1e-13
# With fewer effective queries or clusters, Student's t does not keep its promise. Measured.
LEAST_EFFECTIVE = 10


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


def t_test(paired: AnyPaired, confidence: float = 0.95) -> Tested:
    """Return the two-sided paired t test, and the interval of the mean.

    t = mean / (s / sqrt(n)) with n - 1 degrees of freedom, of which weights leave fewer
    (`rankmill.metrics.aggregates.weighted_mean.freedom_of`); of too few queries there is no test.
    Urbano, Lima & Hanjalic, Statistical significance testing in information retrieval, SIGIR 2019,
    find it the most reliable. If all differences are zero, p is 1. If they are the same number
    otherwise, t has no spread to compare with, and p and the interval are None (SciPy's p would be
    0, even for two queries).

    Examples
    --------
    >>> from rankmill.analysis.statistics.paired_differences import paired_of
    >>> found = t_test(paired_of(np.array([0.5, 0.2, 0.0, -0.1, 0.3])))
    >>> print(f"{found.p:.4f} {found.low:.4f} {found.high:.4f}")
    0.1671 -0.1164 0.4764
    """
    if paired.all_zero:
        return Tested(1.0, None, 0.0, 0.0)
    mean, error = paired.mean, paired.standard_error
    if mean is None or not error or too_few(paired):
        return Tested(None)
    half = t_quantile((1 + confidence) / 2, paired.freedom) * error
    p = min(1.0, 2 * t_tail(abs(mean) / error, paired.freedom))
    return Tested(p, None, mean - half, mean + half)


def too_few(paired: AnyPaired) -> bool:
    """Return whether weights or clusters leave too few effective ones for a t test."""
    return isinstance(paired, WeightedPaired) and paired.effective < LEAST_EFFECTIVE


class TestSettings(NamedTuple):
    """What a caller asks of a test."""

    confidence: float
    replicates: int
    seed: int
    threads: int | None


TESTS: dict[str, Callable[[Any, TestSettings], Tested]] = {
    "t": lambda paired, asked: t_test(paired, asked.confidence),
    "randomization": lambda paired, asked: randomization_test(paired, *asked[1:]),
    "bootstrap": lambda paired, asked: bootstrap_test(paired, *asked),
    "bca": lambda paired, asked: bca_test(paired, *asked),
    "wilcoxon": lambda paired, asked: wilcoxon_test(paired),
    "sign": lambda paired, asked: sign_test(paired),
}
"""Name on the command line -> a test of a `Paired`; those that resample take clusters too."""

# The tests that take weights, and those that take queries in clusters.
WEIGHTED = ("t", "randomization")
RESAMPLED = ("bootstrap", "bca")
CLUSTERED = (*WEIGHTED, *RESAMPLED)
TUKEY = "tukey"
"""The name of the test that takes all systems at once, which is `tukey`."""


def run_test(
    name: str,
    paired: AnyPaired,
    *,
    confidence: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
    threads: int | None = None,
) -> Tested:
    """Return what a test of `TESTS` says of the differences of queries.

    `confidence` is that of the interval. Tests that resample take so many random `replicates`,
    whose random numbers begin at `seed`; the number of threads changes no bit. Raises UsageError if
    the test does not take weights or clusters that there are.

    Examples
    --------
    >>> from rankmill.analysis.statistics.paired_differences import paired_of
    >>> run_test("sign", paired_of(np.ones(6)))
    Tested(p=0.03125, corrected_p=None, low=None, high=None, direction=0)
    """
    asked = TestSettings(confidence, replicates, seed, threads)
    if isinstance(paired, ClusteredPaired):
        check_clustered(name)
        if paired.n < LEAST_EFFECTIVE or (name in RESAMPLED and too_few(paired)):
            return Tested(None)
    elif isinstance(paired, WeightedPaired):
        check_weighted(name)
    if isinstance(paired, WeightedPaired) and name == "randomization":
        paired = paired.products  # the mean of random signs is weighted as the mean is
    return TESTS[name](paired, asked)


def check_weighted(name: str) -> None:
    """Raise UsageError if a test does not take weights."""
    if name not in WEIGHTED:
        raise UsageError(
            f"test {name!r} does not take weights; expected {' or '.join(WEIGHTED)}, or no weight"
        )


def check_clustered(name: str) -> None:
    """Raise UsageError if a test does not take queries in clusters."""
    if name not in CLUSTERED:
        raise UsageError(
            f"test {name!r} assumes independent queries and takes no clusters; expected one of "
            f"{', '.join(CLUSTERED)}, or no cluster"
        )


def equivalence(paired: AnyPaired, margin: float, confidence: float = 0.95) -> Tested:
    """Return the two one-sided t tests of a mean difference within ± margin.

    p is the larger of P(T > (mean + margin) / error) and P(T > (margin - mean) / error). It is at
    most 1 - confidence exactly if the interval returned, of confidence 2 × confidence - 1, is
    within ± margin. Without a spread of the differences both are None. Schuirmann, J.
    Pharmacokinet. Biopharm. 1987.

    Examples
    --------
    >>> from rankmill.analysis.statistics.paired_differences import paired_of
    >>> found = equivalence(paired_of(np.array([0.01, -0.01, 0.0, 0.01])), 0.02)
    >>> print(f"{found.p:.4f} {found.low:.4f} {found.high:.4f}")
    0.0177 -0.0088 0.0138
    """
    above, below = _one_sided(paired, margin, confidence)
    if above.p is None or below.p is None:
        return above
    return above._replace(p=max(above.p, below.p))


def noninferiority(
    paired: AnyPaired,
    margin: float,
    confidence: float = 0.95,
    better: Better = "higher",
) -> Tested:
    """Return the one-sided t test that the system is worse by less than the margin.

    p = P(T > (mean + margin) / error). `low` is the lower bound of the mean with this confidence,
    and `high` is None: the interval is open above. Schuirmann, J. Pharmacokinet. Biopharm. 1987.
    Where lower is better, p = P(T > (margin - mean) / error), and the interval is open below.

    Examples
    --------
    >>> from rankmill.analysis.statistics.paired_differences import paired_of
    >>> found = noninferiority(paired_of(np.array([0.01, -0.01, 0.0, 0.01])), 0.02)
    >>> print(f"{found.p:.4f} {found.low:.4f} {found.high}")
    0.0091 -0.0088 None
    """
    above, below = _one_sided(paired, margin, confidence)
    if better == "lower":
        return below._replace(low=None)
    return above._replace(high=None)


def _one_sided(paired: AnyPaired, margin: float, confidence: float) -> tuple[Tested, Tested]:
    """Return the tests that the mean is above - margin, and below + margin."""
    mean, error = paired.mean, paired.standard_error
    if mean is None or not error or too_few(paired):
        return (Tested(None),) * 2
    half = t_quantile(confidence, paired.freedom) * error
    above, below = (t_tail((margin + one) / error, paired.freedom) for one in (mean, -mean))
    ends = mean - half, mean + half
    return Tested(above, None, *ends), Tested(below, None, *ends)


def tukey(
    values: np.ndarray,
    replicates: int = REPLICATES,
    seed: int = 0,
    threads: int | None = None,
) -> dict[tuple[int, int], float | None]:
    """Return p for each pair of systems by the randomized version of Tukey's HSD.

    Each replicate permutes the systems of every query. p = (1 + number of replicates whose largest
    minus smallest mean is at least the difference of the pair) / (1 + replicates). So p is already
    corrected for all pairs. Carterette, Multiple testing in statistical analysis of systems-based
    information retrieval experiments, ACM TOIS 2012. The order of queries and systems changes
    nothing.

    `values` has a row for each query and a column for each system; the pairs are columns i < j, and
    p is None without queries. Raises InputError if a value is NaN, infinite or beyond 1e140.

    Examples
    --------
    >>> values = np.array([[0.0, 0.1, 0.9]] * 8)
    >>> tukey(values, replicates=999)[0, 2]
    0.001
    """
    given = np.asarray(values, np.float64)
    if not (np.abs(given) <= LARGEST).all():
        raise InputError(
            f"a value of a query is not a finite number up to {LARGEST:g}: give only queries for "
            "which all systems have a value"
        )
    queries, systems = given.shape
    pairs = [(i, j) for i in range(systems) for j in range(i + 1, systems)]
    if not queries:
        return dict.fromkeys(pairs)
    sums = [math.fsum(given[:, i].tolist()) for i in range(systems)]
    permuted = permuted_column_sums(_rows_that_differ(given), replicates, seed, threads)
    ranges = permuted.max(axis=1) - permuted.min(axis=1)
    ranges += ROUNDING * math.fsum(np.ptp(given, axis=1).tolist())
    found = {(i, j): int((ranges >= abs(sums[i] - sums[j])).sum()) for i, j in pairs}
    return {pair: (1 + count) / (1 + replicates) for pair, count in found.items()}


def _rows_that_differ(values: np.ndarray) -> np.ndarray:
    """Return the rows with different values, each sorted, without its smallest, in one order."""
    rows = np.sort(values, axis=1)
    rows = rows[rows[:, 0] != rows[:, -1]] + 0.0
    rows = rows - rows[:, :1]
    return np.ascontiguousarray(rows[np.lexsort(rows.T)])
