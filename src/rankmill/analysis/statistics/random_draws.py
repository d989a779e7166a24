"""Random signs, draws with replacement and permuted rows: the blocks that threads work on."""

from collections.abc import Callable

import numpy as np

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


def flipped_sums(
    paired: Paired, replicates: int, seed: int, threads: int | None = None
) -> np.ndarray:
    """Return the sums of the differences with random signs, one for each replicate."""
    from rankmill.kernels.resampling import flip_sums

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
    from rankmill.kernels.resampling import bootstrap_sums

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
    from rankmill.kernels.resampling import bootstrap_sums

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
    from rankmill.kernels.resampling import permuted_sums

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
