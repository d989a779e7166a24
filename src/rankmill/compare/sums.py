"""What the queries of a comparison, or of one slice of them, add up to: exact, and mergeable."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from rankmill.compare.paired import Paired, merged, paired_of
from rankmill.metrics.mean import Mean
from rankmill.metrics.weighted import WeightedMean

AnyMean = Mean | WeightedMean
Values = Mapping[str, Mapping[str, np.ndarray]]
"""Metric -> system -> the value of each query."""


@dataclass(frozen=True, eq=False)
class WeightedPaired:
    """The differences of queries that count with weights.

    Attributes
    ----------
    weighted : WeightedMean
        Of the differences.
    products : Paired
        The differences times their weights, whose signs a randomization test flips. Queries of
        weight 0 are left out.
    """

    weighted: WeightedMean
    products: Paired

    @property
    def n(self) -> int:
        """The number of queries with a weight above 0."""
        return self.weighted.positive

    @property
    def effective(self) -> float:
        """The number of queries of equal weight that give a mean of the same variance."""
        return self.weighted.effective or 0.0

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the standard error."""
        return self.weighted.freedom

    @property
    def mean(self) -> float | None:
        """The correctly rounded weighted mean; None without queries."""
        return self.weighted.mean

    @property
    def standard_error(self) -> float | None:
        """The standard error of the weighted mean; None below two queries."""
        return self.weighted.standard_error

    @property
    def cohen_d(self) -> float | None:
        """The mean over the standard error, over the root of the effective number of queries."""
        error = self.standard_error
        if self.mean is None or not error or not self.effective:
            return None
        return self.mean / error / math.sqrt(self.effective)

    @property
    def all_zero(self) -> bool:
        """Whether there are queries, and none of them has a difference."""
        return self.products.all_zero

    @property
    def won(self) -> int:
        """The number of queries on which the system has a larger value than the baseline."""
        return self.products.won

    @property
    def tied(self) -> int:
        """The number of queries without a difference."""
        return self.products.tied

    @property
    def lost(self) -> int:
        """The number of queries on which the system has a smaller value than the baseline."""
        return self.products.lost


AnyPaired = Paired | WeightedPaired


class Column(NamedTuple):
    """A metric and a system: the mean of its values, and its differences from the baseline."""

    mean: AnyMean
    paired: AnyPaired | None


def joined(parts: Sequence[Column]) -> Column:
    """Return the column of the queries of all parts; there is a part."""
    mean: Any = parts[0].mean
    for one in parts[1:]:
        mean = mean.merge(one.mean)
    pairs = [one.paired for one in parts]
    plain = [one for one in pairs if isinstance(one, Paired)]
    weighted = [one for one in pairs if isinstance(one, WeightedPaired)]
    if plain:
        return Column(mean, merged(plain))
    if not weighted:
        return Column(mean, None)
    of_all: Any = weighted[0].weighted
    for each in weighted[1:]:
        of_all = of_all.merge(each.weighted)
    return Column(mean, WeightedPaired(of_all, merged([one.products for one in weighted])))


@dataclass(frozen=True, eq=False)
class Sums:
    """What some queries add up to.

    Attributes
    ----------
    queries : int
    columns : dict of str to dict of str to Column
        Metric -> system. The baseline has no differences.
    rows : dict of str to ndarray
        Metric -> the values of each query (row) in all systems (columns), if Tukey's test needs
        them; the order of rows says nothing.
    """

    queries: int
    columns: Mapping[str, Mapping[str, Column]]
    rows: Mapping[str, np.ndarray]

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
            {name: np.concatenate([one, other.rows[name]]) for name, one in self.rows.items()},
        )

    @property
    def effective(self) -> float | None:
        """The effective number of queries of the weights; None without weights."""
        for of in self.columns.values():
            for one in of.values():
                return one.mean.effective if isinstance(one.mean, WeightedMean) else None
        return None


def column_of(values: np.ndarray, base: np.ndarray | None, weights: np.ndarray | None) -> Column:
    """Return what the values of a metric and a system add up to; `base` are the baseline's."""
    mean: AnyMean = Mean.of(values) if weights is None else WeightedMean.of(values, weights)
    if base is None:
        return Column(mean, None)
    differences = values - base
    if weights is None:
        return Column(mean, paired_of(differences))
    counted = weights > 0
    products = paired_of((differences * weights)[counted])
    return Column(mean, WeightedPaired(WeightedMean.of(differences, weights), products))


def columns_of_slices(
    values: np.ndarray,
    base: np.ndarray | None,
    weights: np.ndarray | None,
    order: np.ndarray,
    ends: Sequence[int],
) -> list[Column]:
    """Return what each slice adds up to; slice i holds the queries order[ends[i - 1]:ends[i]]."""
    values = values[order]
    base = None if base is None else base[order]
    weights = None if weights is None else weights[order]
    found, start = [], 0
    for end in ends:
        one = slice(start, end)
        found.append(
            column_of(
                values[one],
                None if base is None else base[one],
                None if weights is None else weights[one],
            )
        )
        start = end
    return found
