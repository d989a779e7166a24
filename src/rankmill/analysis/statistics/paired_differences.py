"""The differences between two systems, as a histogram or weighted: all that a paired test needs."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from rankmill.errors import InputError
from rankmill.metrics.aggregates.mean import Mean, WeightedMean
from rankmill.records import record

# Squares of larger values, times a number of queries, may not be float64 values.
LARGEST = 1e140
# Values that are equal in exact numbers differ by less than this share of their mean.
ROUNDING = 1e-9


class Magnitudes(NamedTuple):
    """The distinct absolute values that are not zero, ascending, and how many have each sign."""

    values: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


class Fit(NamedTuple):
    """The constant of a regression, its standard error, and the degrees of freedom."""

    mean: float | None
    standard_error: float | None
    freedom: float


class Differences:
    """The differences of queries, system minus baseline, of which there is a mean."""

    @property
    def centre(self) -> Mean | WeightedMean | Fit:
        """What the mean and its error are taken from."""
        raise NotImplementedError

    @property
    def alone(self) -> "Paired":
        """The differences whose signs say which queries are won, tied and lost."""
        raise NotImplementedError

    @property
    def mean(self) -> float | None:
        """The correctly rounded mean; None without queries."""
        return self.centre.mean

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None below two queries."""
        return self.centre.standard_error

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the standard error."""
        return self.centre.freedom

    @property
    def effective(self) -> float:
        """The number of queries of equal weight that give a mean of the same variance."""
        raise NotImplementedError

    @property
    def alike(self) -> bool:
        """Whether all differences are the same, but for rounding."""
        spread = (self.standard_error or 0.0) * math.sqrt(self.effective)
        return spread <= ROUNDING * abs(self.mean or 0.0)

    @property
    def won(self) -> int:
        """The number of queries on which the system has a larger value than the baseline."""
        return int(self.alone.counts[self.alone.values > 0].sum())

    @property
    def tied(self) -> int:
        """The number of queries without a difference."""
        return int(self.alone.counts[self.alone.values == 0].sum())

    @property
    def lost(self) -> int:
        """The number of queries on which the system has a smaller value than the baseline."""
        return int(self.alone.counts[self.alone.values < 0].sum())


@record(frozen=True, eq=False)
class Paired(Differences):
    """The differences as distinct values, ascending, each with the number of queries that have it.

    Merging is exact, and no number here depends on the order of queries or of merging.

    Examples
    --------
    >>> import numpy as np
    >>> paired = paired_of(np.array([0.5, 0.0, 0.25])).merge(paired_of(np.array([0.5, -0.25])))
    >>> paired.values, paired.counts
    (array([-0.25,  0.  ,  0.25,  0.5 ]), array([1, 1, 1, 2]))
    >>> paired.mean, (paired.won, paired.tied, paired.lost)
    (0.2, (3, 1, 1))
    """

    values: np.ndarray
    counts: np.ndarray

    def merge(self, other: Self) -> "Paired":
        """Return the differences of both, which are of different queries."""
        return merged([self, other])

    @property
    def n(self) -> int:
        """The number of queries."""
        return self._sums.count

    @property
    def effective(self) -> float:
        """The number of queries of equal weight that give a mean of the same variance."""
        return float(self.n)

    @property
    def centre(self) -> Mean | Fit:
        """The exact mean."""
        return self._sums

    @property
    def alone(self) -> "Paired":
        """These differences."""
        return self

    @property
    def all_zero(self) -> bool:
        """Whether there are queries, and none of them has a difference."""
        return len(self.values) == 1 and not self.values[0]

    @cached_property
    def magnitudes(self) -> Magnitudes:
        """The differences that are not zero, by absolute value."""
        kept = self.values != 0
        values, counts = self.values[kept], self.counts[kept]
        sizes, places = np.unique(np.abs(values), return_inverse=True)
        positive, negative = np.zeros((2, len(sizes)), np.int64)
        positive[places[values > 0]] = counts[values > 0]
        negative[places[values < 0]] = counts[values < 0]
        return Magnitudes(sizes, positive, negative)

    @cached_property
    def _sums(self) -> Mean:
        return Mean.of(self.values, self.counts)


def paired_of(differences: np.ndarray) -> Paired:
    """Return the differences of queries; raises InputError if one is NaN or beyond 1e140."""
    given = np.asarray(differences, np.float64)
    wrong = np.flatnonzero(~(np.abs(given) <= LARGEST))
    if len(wrong):
        raise InputError(
            f"the difference of query {wrong[0]} (from 0) is {given[wrong[0]]}; expected a finite "
            f"number up to {LARGEST:g}: give only queries for which both systems have a value"
        )
    return _merged(given + 0.0, np.ones(len(given), np.int64))  # + 0.0 makes 0.0 of -0.0


def merged(parts: Sequence[Paired]) -> Paired:
    """Return the differences of all parts, which are of different queries; there is a part."""
    values = np.concatenate([one.values for one in parts])
    return _merged(values, np.concatenate([one.counts for one in parts]))


def _merged(values: np.ndarray, counts: np.ndarray) -> Paired:
    """Return a histogram from values that repeat."""
    once = len(counts) == 0 or counts.max() == 1
    if once:  # no need to know which count belongs to which value
        values = np.sort(values)
    else:
        order = np.argsort(values, kind="stable")
        values, counts = values[order], counts[order]
    starts = np.flatnonzero(np.concatenate([values[:1] == values[:1], values[1:] != values[:-1]]))
    ends = np.concatenate([starts[1:], [len(values)]])
    totals = ends - starts if once else np.add.reduceat(counts, starts)
    return Paired(values[starts], totals[: len(starts)].astype(np.int64))


@record(frozen=True, eq=False)
class WeightedPaired(Differences):
    """The differences of queries that count with weights.

    `products` are the differences times their weights, whose signs a randomization test flips.
    Queries of weight 0 are left out.
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
    def centre(self) -> WeightedMean:
        """The exact weighted mean."""
        return self.weighted

    @property
    def alone(self) -> Paired:
        """The products, which have the signs of the differences."""
        return self.products

    @property
    def all_zero(self) -> bool:
        """Whether there are queries, and none of them has a difference."""
        return self.products.all_zero


AnyPaired = Paired | WeightedPaired
