"""Tests that resample: sign flips, and the bootstrap with percentile and BCa intervals.

Random signs, draws with replacement and permuted rows come in blocks that threads work on.
"""

import math
from collections.abc import Callable

import numpy as np

from rankmill.analysis.statistics.clusters import ClusteredPaired
from rankmill.analysis.statistics.distributions import normal_quantile, normal_tail
from rankmill.analysis.statistics.outcome import Tested
from rankmill.analysis.statistics.paired_differences import Paired
from rankmill.threads import Workers

# A value that fewer queries have is resampled query by query, which is then quicker. Measured.
FLIPPED_TOGETHER = 16
DRAWN_TOGETHER = 96
WORD = 64
CHUNK = 1024
# Replicates of one call of a kernel: few enough for the cache, many enough to share the tables.
BLOCK = 512
Kernel = Callable[..., None]

# Up to here all choices of signs are tried.
MOST_ENUMERATED = 12
# Sums that are equal in exact numbers differ by rounding; this share of the sum of all magnitudes
# is far above rounding, and far below the spread of the sums.
ROUNDING = 1e-13
AnyDrawn = Paired | ClusteredPaired
"""What the bootstrap draws from: queries, or whole clusters of them."""


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
    return _sums(flip_sums, (few, sizes[~alone], counts[~alone]), (replicates,), seed, threads)


def bootstrap_means(
    paired: Paired, replicates: int, seed: int, threads: int | None = None
) -> np.ndarray:
    """Return the means of as many differences drawn with replacement, one for each replicate."""
    from rankmill.kernels.resamples import bootstrap_sums

    alone = paired.counts < DRAWN_TOGETHER
    few = np.repeat(paired.values[alone], paired.counts[alone])
    sizes = _chunks(len(few))
    # The most frequent first: then few draws are left, and their binomial numbers are small.
    order = np.argsort(-paired.counts[~alone], kind="stable")
    many, counts = paired.values[~alone][order], paired.counts[~alone][order]
    arrays = many, counts, few, sizes
    return _sums(bootstrap_sums, arrays, (replicates,), seed, threads) / paired.n


def cluster_means(
    sums: np.ndarray, sizes: np.ndarray, replicates: int, seed: int, threads: int | None = None
) -> np.ndarray:
    """Return the means of as many clusters drawn with replacement, given their sums and sizes."""
    from rankmill.kernels.resamples import bootstrap_sums

    none, chunks = np.zeros(0), _chunks(len(sums))
    # Random words do not depend on values: the same clusters are drawn twice.
    total, queries = (
        _sums(
            bootstrap_sums, (none, none.astype(np.int64), few, chunks), (replicates,), seed, threads
        )
        for few in (sums, sizes.astype(np.float64))
    )
    means: np.ndarray = total / queries
    return means


def _chunks(count: int) -> np.ndarray:
    """Return sizes that add up to a number, each a power of two up to `CHUNK`."""
    powers = [CHUNK >> i for i in range(1, 11) if count % CHUNK & (CHUNK >> i)]
    return np.array([CHUNK] * (count // CHUNK) + powers, np.int64)


def permuted_column_sums(
    rows: np.ndarray, replicates: int, seed: int, threads: int | None = None
) -> np.ndarray:
    """Return the sums of the columns after each row is permuted: a row for each replicate."""
    from rankmill.kernels.resamples import permuted_sums

    return _sums(permuted_sums, (rows,), (replicates, rows.shape[1]), seed, threads)


def _sums(
    kernel: Kernel,
    arrays: tuple[np.ndarray, ...],
    shape: tuple[int, ...],
    seed: int,
    threads: int | None,
) -> np.ndarray:
    out = np.empty(shape)
    word = np.uint64(seed % 2**64)

    def work(first: int) -> None:
        kernel(word, first, *arrays, out[first : first + BLOCK])

    with Workers(threads) as workers:
        for _ in workers.map(work, range(0, len(out), BLOCK)):
            pass
    return out


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


def bootstrap_test(
    paired: AnyDrawn, confidence: float, replicates: int, seed: int, threads: int | None = None
) -> Tested:
    """Return the percentile interval of the mean, and the p of the bootstrap shifted to no mean.

    p = (1 + number of |resampled mean - mean| >= |mean|) / (1 + replicates), as Smucker et al.
    (CIKM 2007) shift it; the interval is that of Efron & Tibshirani, An Introduction to the
    Bootstrap, 1993, chapter 13. Of queries in clusters whole clusters are drawn. Without a spread
    of the differences both are None, except that p is 1 if all are zero.
    """
    if not paired.standard_error:
        return _degenerate(paired)
    one, sign = _one_way_round(paired)
    mean = one.mean or 0.0
    means = _means(one, replicates, seed, threads)
    found = np.abs(means - mean) >= abs(mean) - _rounding(one)
    ends = _quantiles(means, (1 - confidence) / 2, (1 + confidence) / 2)
    p = (1 + int(found.sum())) / (1 + replicates)
    return Tested(p, None, *_turned(ends, sign))


def bca_test(
    paired: AnyDrawn, confidence: float, replicates: int, seed: int, threads: int | None = None
) -> Tested:
    """Return the bias-corrected and accelerated interval of the mean, and the p that inverts it.

    The ends are the quantiles P(Z < b + (b + z) / (1 - a (b + z))) of the resampled means, with
    b = the quantile of the share of them below the mean, and the acceleration of the jackknife,
    a = S(d - mean)**3 / (6 (S(d - mean)**2)**1.5); p is 1 - the largest confidence at which the
    interval does not hold 0, and at least 1 / (1 + replicates). Efron & Tibshirani, An Introduction
    to the Bootstrap, 1993, 14.3.
    """
    if not paired.standard_error:
        return _degenerate(paired)
    one, sign = _one_way_round(paired)
    mean = one.mean or 0.0
    means = np.sort(_means(one, replicates, seed, threads))
    bias = normal_quantile(_share_below(means, mean, _rounding(one)))
    acceleration = _acceleration(one)

    def moved(share: float) -> float:
        return normal_tail(-bias - _bent(bias + normal_quantile(share), acceleration))

    def side(share: float) -> float:
        """Return the share of which `moved` makes this one."""
        if not 0 < share < 1:
            return share
        return normal_tail(bias - _bent(normal_quantile(share) - bias, -acceleration))

    ends = _quantiles(means, moved((1 - confidence) / 2), moved((1 + confidence) / 2))
    # The largest share with a quantile of 0 or less, and the smallest with one of 0 or more.
    least, most = _shares_at_zero(means, _rounding(one))
    p = max(1 / (1 + replicates), min(1.0, 2 * min(side(most), 1 - side(least))))
    return Tested(p, None, *_turned(ends, sign))


def _means(one: AnyDrawn, replicates: int, seed: int, threads: int | None) -> np.ndarray:
    if isinstance(one, ClusteredPaired):
        return cluster_means(one.sums, one.sizes, replicates, seed, threads)
    return bootstrap_means(one, replicates, seed, threads)


def _acceleration(one: AnyDrawn) -> float:
    """Return that of the jackknife, which leaves out a query or a cluster at a time."""
    if isinstance(one, ClusteredPaired):
        scaled = one.jackknife / max(float(np.abs(one.jackknife).max()), 1e-300)
        cubes, squares = (math.fsum((scaled**power).tolist()) for power in (3, 2))
        return float(cubes / (6 * squares**1.5))
    # In units of the standard deviation: the squares then add up to n - 1, at any scale.
    deviations = (one.values - (one.mean or 0.0)) / math.sqrt(one.variance or 1.0)
    cubes = math.fsum((deviations**3 * one.counts).tolist())
    return float(cubes / (6 * (one.n - 1) ** 1.5))


def _one_way_round(paired: AnyDrawn) -> tuple[AnyDrawn, int]:
    """Return the differences in the way round that two systems have whichever is the baseline.

    The same random numbers then draw from both ways round, and their intervals mirror. With them is
    1, -1 if they are turned round, or 0 if they are the same in both ways.
    """
    other = paired.negative
    mean = paired.mean or 0.0
    sign = (mean > 0) - (mean < 0)
    if not sign:
        ways = [one.key for one in (paired, other)]
        sign = (ways[0] > ways[1]) - (ways[0] < ways[1])
    return (other, -1) if sign < 0 else (paired, sign)


def _turned(ends: tuple[float, float], sign: int) -> tuple[float, float]:
    """Return the ends for the way round that was asked for."""
    if not sign:
        half = (ends[1] - ends[0]) / 2
        return -half, half
    return ends if sign > 0 else (0.0 - ends[1], 0.0 - ends[0])


def _shares_at_zero(means: np.ndarray, rounding: float) -> tuple[float, float]:
    """Return the smallest and the largest share whose quantile of ascending means is 0.

    Between two means a quantile is on the line between them, as `numpy.quantile` has it.
    """
    below = int(np.searchsorted(means, -rounding, side="left"))
    to = int(np.searchsorted(means, rounding, side="right"))
    last = len(means) - 1
    if below < to:
        return below / last, (to - 1) / last
    if not 0 < below <= last:
        return (0.0, 0.0) if below == 0 else (1.0, 1.0)
    step = -means[below - 1] / (means[below] - means[below - 1])
    share = float((below - 1 + step) / last)
    return share, share


def _bent(z: float, acceleration: float) -> float:
    """Return z / (1 - acceleration z), and an infinity from where this turns round."""
    slope = 1 - acceleration * z
    return z / slope if slope > 0 else math.copysign(math.inf, z)


def _degenerate(paired: AnyDrawn) -> Tested:
    """Return what the bootstrap says of differences without a spread."""
    return Tested(1.0, None, 0.0, 0.0) if paired.all_zero else Tested(None)


def _rounding(paired: AnyDrawn) -> float:
    """How far two means may differ that are equal in exact numbers."""
    if isinstance(paired, ClusteredPaired):
        sums, queries = np.abs(paired.sums).tolist(), int(paired.sizes.sum())
        return ROUNDING * math.fsum(sums) / queries
    return ROUNDING * math.fsum((np.abs(paired.values) * paired.counts).tolist()) / paired.n


def _share_below(means: np.ndarray, value: float, rounding: float) -> float:
    """Return the share of the means below a value, with half of those that are equal to it.

    At least half a mean is on either side, so that the share has a quantile.
    """
    below = int((means < value - rounding).sum())
    to = int((means <= value + rounding).sum())
    return min(max(below + to, 1), 2 * len(means) - 1) / (2 * len(means))


def _quantiles(means: np.ndarray, low: float, high: float) -> tuple[float, float]:
    ends = np.quantile(means, [low, high])
    return float(ends[0]), float(ends[1])
