"""The tests of one difference by name, their correction, and the jackknife over groups."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.distributions import normal_tail, t_quantile, t_tail
from rankmill.analysis.statistics.paired_differences import (
    AnyPaired,
    ClusteredPaired,
    Paired,
    WeightedPaired,
)
from rankmill.errors import UsageError
from rankmill.metrics.base import Better
from rankmill.threads import Workers

# ------------------------------------------------------------------ outcomes

Ordered = list[float]


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
        sum of ranks. 0 for tests of a margin.
    """

    p: float | None
    corrected_p: float | None = None
    low: float | None = None
    high: float | None = None
    direction: int = 0


def _holm(ps: Ordered) -> Ordered:
    """Holm (1979): the i-th smallest p times m - i + 1, and never below an earlier one."""
    corrected, largest = [], 0.0
    for i, p in enumerate(ps):
        largest = max(largest, min(1.0, p * (len(ps) - i)))
        corrected.append(largest)
    return corrected


def _bh(ps: Ordered) -> Ordered:
    """Benjamini and Hochberg (1995): the i-th smallest p times m / i, at most any later one."""
    corrected, smallest = [], 1.0
    for i in range(len(ps), 0, -1):
        smallest = min(smallest, ps[i - 1] * len(ps) / i)
        corrected.append(smallest)
    return corrected[::-1]


def _none(ps: Ordered) -> Ordered:
    """No correction."""
    return ps


CORRECTIONS: dict[str, Callable[[Ordered], Ordered]] = {
    "holm": _holm,
    "bh": _bh,
    "none": _none,
}


def correct(ps: Sequence[float | None], method: str = "holm") -> list[float | None]:
    """Return the p corrected for their number; a None stays None and is not counted.

    "holm" bounds the chance of any false finding (Holm, A simple sequentially rejective multiple
    test procedure, Scand. J. Statist. 1979); "bh" bounds the expected share of false ones among the
    findings (Benjamini & Hochberg, J. R. Statist. Soc. B 1995).

    Examples
    --------
    >>> correct([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    order = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    values = CORRECTIONS[method]([p for p, _ in order])
    for (_, place), value in zip(order, values, strict=True):
        corrected[place] = value
    return corrected


# ------------------------------------------------------------------ tests

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


# ------------------------------------------------------------------ the jackknife

# With fewer hits, the groups that hold one are too few to tell how far chance moves gap. Measured.
LEAST_HITS = 10


class JackknifeError(NamedTuple):
    """A standard error and its degrees of freedom, one less than there are groups.

    `effective` is how many groups it is made of: fewer than there are, where few hold the hits.
    """

    standard_error: float
    freedom: int
    effective: float = math.inf


def estimate(whole: float, left_out: np.ndarray, sizes: np.ndarray) -> JackknifeError | None:
    """Return the standard error of a value, from the values without each group of queries.

    With n queries in g groups, m of them in group j, h = n / m, the value v, and v(j) without group
    j, the pseudo-value of the group is p(j) = h v - (h - 1) v(j). The estimate of the jackknife is
    the mean of the p(j), each weighted by m / n, and its variance is the mean over the groups of
    (p(j) - estimate)² / (h - 1). Busing, Meijer & van der Leeden, Delete-m jackknife for unequal m,
    Statistics and Computing 1999.

    `whole` is the value over all queries, or the difference of two systems, `left_out` the same
    without each group, and `sizes` are the queries of each group, at least 1. Fewer than two groups
    have no error.

    Examples
    --------
    The mean of 1, 2, 3 and 6, each in a group of its own: the standard error is that of a mean.

    >>> found = estimate(3.0, np.array([11, 10, 9, 6]) / 3, np.ones(4))
    >>> print(f"{found.standard_error:.4f} {found.freedom}")
    1.0801 3
    """
    if len(sizes) < 2:
        return None
    shares = sizes / sizes.sum()
    ratios = 1 / shares
    # All pseudo-values less the value itself: nothing is lost where they are close to it.
    pseudo = (ratios - 1) * (whole - left_out)
    deviations = pseudo - (shares * pseudo).sum()
    parts = deviations**2 / (ratios - 1)
    total = math.fsum(parts)
    effective = 1 / math.fsum((parts / total) ** 2) if total else math.inf
    return JackknifeError(math.sqrt(total / len(sizes)), len(sizes) - 1, effective)


def jackknife_test(
    whole: float,
    spread: JackknifeError | None,
    confidence: float,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Tested:
    """Return the two-sided t test of a difference, and its interval.

    The test is named "t", as t = difference / standard error. If the difference is 0 with each
    group left out, p is 1. If it is the same number otherwise, or there is one group, p is None.
    Neither has a spread to make an interval of.

    Examples
    --------
    >>> found = jackknife_test(0.02, JackknifeError(0.01, 99), 0.95)
    >>> print(f"{found.p:.4f} {found.low:.4f} {found.high:.4f}")
    0.0482 0.0002 0.0398
    """
    if spread is None or not spread.standard_error:
        return Tested(1.0 if spread is not None and not whole else None)
    low, high = interval(whole, spread, confidence, bounds)
    p = min(1.0, 2 * t_tail(abs(whole) / spread.standard_error, spread.freedom))
    return Tested(p, None, low, high)


def interval_within(
    value: float, spread: JackknifeError, bounds: tuple[float, float], confidence: float
) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of an interval that stays within bounds; None for both without a spread.

    It is the t interval of the logit of the share of the range, turned back, with the effective
    number of groups as degrees of freedom: where hits are few, the error is as uncertain as the
    value. Where the range has no end, or the value is at one, it is the t interval, cut there.

    Examples
    --------
    >>> low, high = interval_within(0.01, JackknifeError(0.005, 99, 12.0), (0.0, 1.0), 0.95)
    >>> print(f"{low:.4f} {high:.4f}")
    0.0033 0.0295
    """
    if not spread.standard_error:
        return None, None
    least, width = bounds[0], bounds[1] - bounds[0]
    share = (value - least) / width
    if math.isinf(width) or not 0 < share < 1:
        return interval(value, spread, confidence, bounds)
    middle = math.log(share / (1 - share))
    freedom = min(float(spread.freedom), spread.effective)
    half = t_quantile((1 + confidence) / 2, freedom) * spread.standard_error / width
    half /= share * (1 - share)
    low, high = (1 / (1 + math.exp(min(700.0, -end))) for end in (middle - half, middle + half))
    return least + width * low, least + width * high


def interval(
    value: float,
    spread: JackknifeError,
    confidence: float,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float]:
    """Return the ends of the t interval of a value, within bounds.

    Examples
    --------
    >>> low, high = interval(0.5, JackknifeError(0.01, 99), 0.95)
    >>> print(f"{low:.4f} {high:.4f}")
    0.4802 0.5198
    """
    half = t_quantile((1 + confidence) / 2, spread.freedom) * spread.standard_error
    return max(bounds[0], value - half), min(bounds[1], value + half)
