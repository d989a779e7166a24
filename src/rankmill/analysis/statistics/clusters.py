"""Queries that come in clusters, such as the sessions of a user, which are not independent.

The mean is that of all queries. Its error comes from the sums of the clusters, which are exact: it
is the cluster-robust one of the regression on a constant, with the correction G / (G - 1). Its
degrees of freedom are G - 1 for clusters of one size, and fewer where a few large ones decide.
Liang & Zeger, Biometrika 1986; Cameron & Miller, A practitioner's guide to cluster-robust
inference, J. Human Resources 2015.
"""

from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.paired_differences import Paired, WeightedPaired, paired_of
from rankmill.metrics.aggregates.mean import UNIT, WeightedMean
from rankmill.records import record

# Sums of so many bits of float64 values are exact in float64, for up to 2**27 queries.
LIMB = 26
MASK = (1 << LIMB) - 1
MANTISSA = 53


class ClusteredMean(WeightedMean):
    """The mean of clusters, each with its mean as value and its number of queries as weight.

    Examples
    --------
    >>> codes = np.array([0, 0, 1, 2, 2])
    >>> one = of_clusters(np.array([1.0, 0.5, 0.0, 1.0, 1.0]), codes).mean
    >>> one.mean, round(one.standard_error, 4), round(one.freedom, 2)
    (0.7, 0.2272, 1.55)
    """


class Clusters(NamedTuple):
    """The mean of values, and the sum of each cluster."""

    mean: ClusteredMean
    sums: np.ndarray


@record(frozen=True, eq=False)
class ClusteredPaired(WeightedPaired):
    """The differences of queries that come in clusters; `products` are the sums of clusters."""

    queries: Paired

    @classmethod
    def of(cls, differences: np.ndarray, codes: np.ndarray) -> "ClusteredPaired":
        """Return the differences of queries, each in the cluster of its code."""
        queries = paired_of(differences)
        mean, sums = of_clusters(differences, codes)
        return cls(mean, paired_of(sums), queries)

    @property
    def alone(self) -> Paired:
        """The differences of queries, and not those of clusters."""
        return self.queries


def of_clusters(values: np.ndarray, codes: np.ndarray) -> Clusters:
    """Return the mean of finite float64 values, each in the cluster of its code; all are exact."""
    there, places = np.unique(codes, return_inverse=True)
    sizes = np.bincount(places, minlength=len(there))
    sums, unit = _exact_sums(values, places, len(there))
    counts = sizes.tolist()
    pairs = list(zip(counts, sums, strict=True))
    mean = ClusteredMean(
        positive=len(counts),
        w=sum(counts) << UNIT,
        ww=sum(n * n for n in counts) << (2 * UNIT),
        wv=sum(sums) << (2 * UNIT + unit),
        wwv=sum(n * one for n, one in pairs) << (3 * UNIT + unit),
        wwvv=sum(one * one for one in sums) << (4 * UNIT + 2 * unit),
    )
    return Clusters(mean, np.array([_rounded(one, unit) for one in sums], np.float64))


def _exact_sums(values: np.ndarray, places: np.ndarray, count: int) -> tuple[list[int], int]:
    """Return the exact sum of the values at each place, in units of 2**unit, and the unit."""
    parts, exponents = np.frexp(values)
    mantissas = np.ldexp(np.abs(parts), MANTISSA).astype(np.int64)
    some = mantissas > 0
    if not some.any():
        return [0] * count, 0
    unit = int(exponents[some].min()) - MANTISSA
    shifts = np.where(some, exponents - MANTISSA - unit, 0)
    signs = np.sign(values)
    found = np.zeros(count, object)
    for first in range(0, int(shifts.max()) + MANTISSA, LIMB):
        up, down = np.clip(shifts - first, 0, LIMB), np.clip(first - shifts, 0, MANTISSA + 1)
        limb = ((mantissas >> down) & (MASK >> up)) << up
        sums = np.bincount(places, limb * signs, count).astype(np.int64)
        found = found + sums.astype(object) * (1 << first)
    return [int(one) for one in found], unit


def _rounded(number: int, unit: int) -> float:
    """Return number * 2**unit, correctly rounded."""
    return number / (1 << -unit) if unit < 0 else float(number << unit)
