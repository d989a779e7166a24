"""What the queries of a comparison, or of one slice of them, add up to: exact, and mergeable."""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from rankmill.analysis.statistics.clusters import ClusteredMean, ClusteredPaired, of_clusters
from rankmill.analysis.statistics.moments import PairMoments, moments_of
from rankmill.analysis.statistics.paired_differences import (
    AnyPaired,
    Paired,
    WeightedPaired,
    merged,
    paired_of,
)
from rankmill.metrics.aggregates.mean import Mean, WeightedMean
from rankmill.records import record

AnyMean = Mean | WeightedMean
Moments = Literal["none", "system", "pairs"]
"""Whose moments are added up: of no values, of those of a system, or also of pairs."""
NO_MOMENTS: Moments = "none"
OF_SYSTEM: Moments = "system"
OF_PAIRS: Moments = "pairs"


class SystemColumn(NamedTuple):
    """A metric and a system: the mean of its values, and its differences from the baseline.

    `moments` are those of its values, and of those of the baseline beside them, where the bound of
    a mean was asked for.
    """

    mean: AnyMean
    paired: AnyPaired | None
    moments: PairMoments | None = None


def joined(parts: Sequence[SystemColumn]) -> SystemColumn:
    """Return the column of the queries of all parts; there is a part."""
    mean: Any = parts[0].mean
    for one in parts[1:]:
        mean = mean.merge(one.mean)
    known = [one.moments for one in parts if one.moments is not None]
    # Parts of no query have none, and those of states of 0.9.
    full = known and all(one.moments is not None or one.mean.mean is None for one in parts)
    moments = reduce(PairMoments.merge, known) if full else None
    pairs = [one.paired for one in parts]
    plain = [one for one in pairs if isinstance(one, Paired)]
    weighted = [one for one in pairs if isinstance(one, WeightedPaired)]
    if plain:
        return SystemColumn(mean, merged(plain), moments)
    if not weighted:
        return SystemColumn(mean, None, moments)
    of_all: Any = weighted[0].weighted
    for each in weighted[1:]:
        of_all = of_all.merge(each.weighted)
    paired = WeightedPaired(of_all, merged([one.products for one in weighted]))
    return SystemColumn(mean, paired, moments)


@record(frozen=True, eq=False)
class Sums:
    """What some queries add up to."""

    queries: int
    columns: Mapping[str, Mapping[str, SystemColumn]]  # by metric and system

    def merge(self, other: Self) -> "Sums":
        """Return what the queries of both add up to; they have no query in common."""
        return Sums(
            self.queries + other.queries,
            {
                metric: {
                    name: joined([one, other.columns[metric][name]]) for name, one in of.items()
                }
                for metric, of in self.columns.items()
            },
        )

    @property
    def effective(self) -> float | None:
        """The effective number of queries of the weights; None without weights."""
        mean = self._mean
        weighted = isinstance(mean, WeightedMean) and not isinstance(mean, ClusteredMean)
        return mean.effective if weighted else None

    @property
    def clusters(self) -> ClusteredMean | None:
        """A mean over the clusters of queries, which has their number; None without clusters."""
        return self._mean if isinstance(self._mean, ClusteredMean) else None

    @property
    def _mean(self) -> Any:
        return next((one.mean for of in self.columns.values() for one in of.values()), None)


def column_of(
    values: np.ndarray,
    base: np.ndarray | None,
    weights: np.ndarray | None,
    clusters: np.ndarray | None = None,
    *,
    moments: Moments = NO_MOMENTS,
) -> SystemColumn:
    """Return what the values of a metric and a system add up to; `base` are the baseline's.

    `clusters` are codes of the clusters of queries, which have no weights then. With `moments`, the
    values have a finite range.
    """
    found = None
    if moments != NO_MOMENTS:
        beside = base if moments == OF_PAIRS else None
        found = moments_of(values, beside, weights, clusters)
    if clusters is not None:
        paired = None if base is None else ClusteredPaired.of(values - base, clusters)
        return SystemColumn(of_clusters(values, clusters).mean, paired, found)
    mean: AnyMean = Mean.of(values) if weights is None else WeightedMean.of(values, weights)
    if base is None:
        return SystemColumn(mean, None, found)
    differences = values - base
    if weights is None:
        return SystemColumn(mean, paired_of(differences), found)
    counted = weights > 0
    products = paired_of((differences * weights)[counted])
    weighted = WeightedMean.of(differences, weights)
    return SystemColumn(mean, WeightedPaired(weighted, products), found)


def columns_of_slices(
    values: np.ndarray,
    base: np.ndarray | None,
    weights: np.ndarray | None,
    clusters: np.ndarray | None,
    order: np.ndarray,
    ends: Sequence[int],
    *,
    moments: Moments = NO_MOMENTS,
) -> list[SystemColumn]:
    """Return what each slice adds up to; slice i holds the queries order[ends[i - 1]:ends[i]]."""
    more = [None if one is None else one[order] for one in (base, weights, clusters)]
    values = values[order]
    return [
        column_of(
            values[start:end],
            *(None if one is None else one[start:end] for one in more),
            moments=moments,
        )
        for start, end in pairwise((0, *ends))
    ]
