"""The tests of one difference, by name; equivalence and non-inferiority beside them."""

import math

import numpy as np

from rankmill.analysis.statistics.clusters import ClusteredPaired
from rankmill.analysis.statistics.distributions import normal_tail, t_quantile, t_tail
from rankmill.analysis.statistics.outcome import Tested
from rankmill.analysis.statistics.paired_differences import AnyPaired, Paired, WeightedPaired
from rankmill.errors import UsageError
from rankmill.metrics.base import Better
from rankmill.threads import Workers

# Up to here all signs of the ranks are counted: their number, 2**50, is an exact float64.
MOST_EXACT = 50

TESTS = ("t", "randomization", "wilcoxon")
"""The names of the tests, as on the command line."""
DEPENDENT = ("t", "randomization")
"""The tests that take queries with weights or in clusters."""
REPLICATES = 10_000
# Of the randomization test: up to so many differences all choices of signs are tried.
MOST_ENUMERATED = 12
# Sums that are equal in exact numbers differ by rounding; this share of the sum of all magnitudes
# is far above rounding, and far below the spread of the sums.
ROUNDING = 1e-13
# A value that fewer queries have is resampled query by query, which is then quicker. Measured.
FLIPPED_TOGETHER = 16
WORD = 64
# Replicates of one call of the kernel: few enough for the cache, many enough to share the tables.
BLOCK = 512
# With fewer effective queries or clusters, Student's t does not keep its promise. Measured.
LEAST_EFFECTIVE = 10


def randomization_test(
    paired: Paired, replicates: int, seed: int, threads: int | None = None
) -> Tested:
    """Return the two-sided sign-flip randomization test of the mean.

    p = (1 + number of |mean with random signs| >= |mean|) / (1 + replicates); with up to 12
    differences that are not zero, all choices of signs are tried and p is their share. It gives no
    interval. Smucker, Allan & Carterette, A comparison of statistical significance tests for
    information retrieval evaluation, CIKM 2007.

    Examples
    --------
    >>> from rankmill.analysis.statistics.paired_differences import paired_of
    >>> randomization_test(paired_of(np.array([0.5, 0.2, 0.0, -0.1, 0.3])), 100, 0).p
    0.25
    """
    if not paired.n:
        return Tested(None)
    sizes, positive, negative = paired.magnitudes
    counts = positive + negative
    observed = abs(math.fsum((sizes * (positive - negative)).tolist()))
    limit = observed - ROUNDING * math.fsum((sizes * counts).tolist())
    if counts.sum() > MOST_ENUMERATED:
        found = np.abs(flipped_sums(paired, replicates, seed, threads)) >= limit
        p = (1 + int(found.sum())) / (1 + replicates)
    else:
        sums = np.zeros(1)
        for size in np.repeat(sizes, counts).tolist():
            sums = np.concatenate([sums - size, sums + size])
        p = float(np.mean(np.abs(sums) >= limit))
    return Tested(p)


def flipped_sums(
    paired: Paired, replicates: int, seed: int, threads: int | None = None
) -> np.ndarray:
    """Return the sums of the differences with random signs, one for each replicate."""
    from rankmill.kernels.resamples import flip_sums

    sizes, positive, negative = paired.magnitudes
    counts = positive + negative
    alone = counts < FLIPPED_TOGETHER
    few = np.repeat(sizes[alone], counts[alone])
    few = np.concatenate([few, np.zeros(-len(few) % WORD)])
    out = np.empty(replicates)
    word = np.uint64(seed % 2**64)

    def work(first: int) -> None:
        flip_sums(word, first, few, sizes[~alone], counts[~alone], out[first : first + BLOCK])

    with Workers(threads) as workers:
        for _ in workers.map(work, range(0, replicates, BLOCK)):
            pass
    return out


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
    (`rankmill.metrics.aggregates.mean.freedom_of`); of too few queries there is no test.
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

    `confidence` is that of the interval. The randomization test takes so many random `replicates`,
    whose random numbers begin at `seed`; the number of threads changes no bit. Raises UsageError if
    the test does not take weights or clusters that there are.

    Examples
    --------
    >>> from rankmill.analysis.statistics.paired_differences import paired_of
    >>> run_test("wilcoxon", paired_of(np.ones(6)))
    Tested(p=0.03125, corrected_p=None, low=None, high=None, direction=0)
    """
    if isinstance(paired, ClusteredPaired):
        check_clustered(name)
        if paired.n < LEAST_EFFECTIVE:
            return Tested(None)
    elif isinstance(paired, WeightedPaired):
        check_weighted(name)
    if name == "t":
        return t_test(paired, confidence)
    # The mean of random signs is weighted as the mean is.
    alone = paired.products if isinstance(paired, WeightedPaired) else paired
    if name == "wilcoxon":
        return wilcoxon_test(alone)
    return randomization_test(alone, replicates, seed, threads)


def check_weighted(name: str) -> None:
    """Raise UsageError if a test does not take weights."""
    if name not in DEPENDENT:
        raise UsageError(
            f"test {name!r} does not take weights; expected {' or '.join(DEPENDENT)}, or no weight"
        )


def check_clustered(name: str) -> None:
    """Raise UsageError if a test does not take queries in clusters."""
    if name not in DEPENDENT:
        raise UsageError(
            f"test {name!r} assumes independent queries and takes no clusters; expected "
            f"{' or '.join(DEPENDENT)}, or no cluster"
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
