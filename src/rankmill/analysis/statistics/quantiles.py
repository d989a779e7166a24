"""Medians and percentiles of values of queries: their intervals, and those of their differences.

The jackknife says nothing of them: what is left out moves a quantile by one step or not at all.
"""

import math

import numpy as np

from rankmill.analysis.statistics.unseen import Part, Spread, mean_ends
from rankmill.metrics.aggregates.distribution import Distribution

DRAWS = 300
# Beyond so many standard errors of a rank, no quantile of a draw is looked for.
FAR = 8.0
SEED = 20_240_917


def quantile_ends(
    values: np.ndarray,
    share: float,
    bounds: tuple[float, float],
    confidence: float,
    clusters: np.ndarray | None = None,
) -> tuple[float, float]:
    """Return the ends of the interval of a quantile: two of the values, or an end of the range.

    They are where the shares of values below them are, as the bound of a mean says of the share
    below the quantile (Woodruff, J. Am. Stat. Assoc. 1952). Without clusters that is the bound of
    Clopper and Pearson. `clusters` are the codes of those of the queries.

    Examples
    --------
    >>> quantile_ends(np.arange(200.0), 0.5, (0.0, math.inf), 0.95)
    (85.0, 114.0)
    """
    ordered, n = np.sort(values), len(values)
    spread = Spread(
        share, share * (1 - share) / n, share * (1 - share) * (1 - 2 * share) / n**2, 1 / n
    )
    if clusters is not None:
        place = min(int(share * n), n - 1)
        below = (values <= ordered[place]).astype(np.float64)
        z = np.bincount(clusters, below - below.mean()) / n
        sizes = np.bincount(clusters) / n
        # A cluster that was not seen may be below as a whole.
        spread = Spread(share, float((z**2).sum()), float((z**3).sum()), float((sizes**2).sum()))
    low, high = mean_ends([Part(1.0, spread, 0.0, 1.0)], (1 - confidence) / 2)
    first, last = math.ceil(n * low), math.floor(n * high) + 1
    return (
        float(ordered[first - 1]) if first > 0 else bounds[0],
        float(ordered[last - 1]) if last <= n else bounds[1],
    )


def drawn_quantiles(
    sides: tuple[np.ndarray, np.ndarray], summary: str, share: float, clusters: np.ndarray | None
) -> np.ndarray:
    """Return the quantiles of two systems in draws of the queries, or of clusters of them.

    Both have the value of each query, or NaN where it does not count. A draw takes as many as there
    are, each as often as chance has it; the same draws come in every process and version.
    """
    there = [~np.isnan(one) for one in sides]
    near = [_near(one, kept, share, clusters) for one, kept in zip(sides, there, strict=True)]
    # What is far from both quantiles differs in nothing that a draw could show.
    cells, of_cell, sizes = np.unique(
        np.stack([*near, *there], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    # Its stream is frozen, unlike that of a Generator.
    random = np.random.RandomState(SEED)
    found = np.empty((2, DRAWS))
    for draw in range(DRAWS):
        if clusters is None:
            counts = random.multinomial(len(of_cell), sizes / len(of_cell))
        else:
            many = int(clusters.max()) + 1
            times = random.multinomial(many, np.full(many, 1 / many))
            counts = np.bincount(of_cell.ravel(), times[clusters], len(cells)).astype(np.int64)
        for side in range(2):
            kept = counts * cells[:, 2 + side].astype(np.int64)
            one = Distribution(summary, np.empty(0), np.empty(0, np.int64), int(kept.sum()))
            value = one.with_values(cells[:, side], kept).value
            found[side, draw] = math.nan if value is None else value
    return found


def _near(
    values: np.ndarray, there: np.ndarray, share: float, clusters: np.ndarray | None
) -> np.ndarray:
    """Return values of which those far from the quantile are equal; 0 where there is none."""
    ordered = np.sort(values[there])
    n = len(ordered)
    if not n or clusters is not None:
        return np.where(there, values, 0.0)
    reach = FAR * math.sqrt(n * share * (1 - share)) + FAR
    ends = (ordered[min(max(int(share * n + side * reach), 0), n - 1)] for side in (-1, 1))
    return np.where(there, np.clip(values, *ends), 0.0)
