"""The exact sums of products of the values of two systems: all that the bound of a mean needs."""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from itertools import product
from math import comb
from typing import Any, Self

import numpy as np

from rankmill.analysis.statistics.unseen import Spread, Weights
from rankmill.metrics.aggregates.mean import UNIT, Mean

# The exponents of the value of the baseline, of that of the system, and of the weight.
EXPONENTS = [one for one in product(range(4), repeat=3) if 1 <= sum(one) <= 3]
# Cubes of larger weights, times a number of queries, may not be float64 values.
LARGEST_WEIGHT = 1e90
Exponents = tuple[int, int, int]
THEIRS, MINE, WEIGHT = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def moments_of(
    mine: np.ndarray,
    theirs: np.ndarray | None,
    weights: np.ndarray | None,
    clusters: np.ndarray | None,
) -> "PairMoments | None":
    """Return the moments of queries; None without any of a weight, or of weights that overflow."""
    if clusters is not None:
        return PairMoments.of_clusters(mine, theirs, clusters) if len(mine) else None
    if not len(mine) if weights is None else not 0 < weights.max(initial=0) <= LARGEST_WEIGHT:
        return None
    return PairMoments.of(mine, theirs, weights)


class PairMoments:
    """The sums over units of all products of at most three of: a baseline's value, a value, 1.

    A unit is a query, whose values and whose 1 are times its weight if it has one, or a cluster,
    with the sums of its queries. Sums are integers in units of 2**-1074, so that merging is exact.

    Examples
    --------
    >>> old, new = np.array([1.0, 0.5, 0.0]), np.array([0.5, 0.5, 0.5])
    >>> found = PairMoments.of(new, old).merge(PairMoments.of(new[:2], old[:2]))
    >>> spread = found.spread(1.0)
    >>> round(spread.mean, 12), round(spread.square * 25, 12)
    (-0.1, 0.7)
    """

    def __init__(self, sums: dict[Exponents, int], alone: "PairMoments | None" = None) -> None:
        self.sums = sums
        self.alone = alone  # those of queries, if these are of clusters

    def __repr__(self) -> str:
        return f"PairMoments({self.sums}, {self.alone})"

    @classmethod
    def of(
        cls, mine: np.ndarray, theirs: np.ndarray | None = None, weights: np.ndarray | None = None
    ) -> Self:
        """Return the moments of queries with values from a finite range."""
        ones = np.ones(len(mine)) if weights is None else weights
        of_theirs = np.zeros(0) if theirs is None else theirs * ones
        return cls._of_units(of_theirs, mine * ones, ones)

    @classmethod
    def of_clusters(cls, mine: np.ndarray, theirs: np.ndarray | None, codes: np.ndarray) -> Self:
        """Return the moments of clusters of queries; a query is in the cluster of its code."""
        _, places = np.unique(codes, return_inverse=True)
        order = np.lexsort((mine, places) if theirs is None else (mine, theirs, places))
        starts = np.flatnonzero(np.diff(places[order], prepend=-1))
        # In an order of values, rounding does not depend on the order of queries.
        units = [
            np.zeros(0) if one is None or not len(starts) else np.add.reduceat(one[order], starts)
            for one in (theirs, mine, np.ones(len(mine)))
        ]
        found = cls._of_units(*units)
        found.alone = cls.of(mine, theirs)
        return found

    @classmethod
    def _of_units(cls, theirs: np.ndarray, mine: np.ndarray, weights: np.ndarray) -> Self:
        sums: dict[Exponents, int] = {}
        plain = bool((weights == 1).all())
        for a, b, w in EXPONENTS:
            if a and not len(theirs):
                continue
            if plain and w and (a or b):
                continue
            values = mine**b * weights**w
            sums[a, b, w] = Mean.of(theirs**a * values if a else values).total
        if plain:
            for a, b, w in EXPONENTS:
                same = (a, b, 0) if a or b else WEIGHT
                if w and same in sums:
                    sums[a, b, w] = sums[same]
        return cls(sums)

    def to_row(self) -> dict[str, Any]:
        """Return the sums as strings and numbers, for JSON."""
        sums = {"".join(map(str, key)): str(one) for key, one in self.sums.items()}
        return sums if self.alone is None else sums | {"alone": self.alone.to_row()}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the moments that `to_row` told; errors are of any kind."""
        alone = row.get("alone")
        sums = {(int(k[0]), int(k[1]), int(k[2])): int(v) for k, v in row.items() if k != "alone"}
        return cls(sums, None if alone is None else cls.from_row(alone))

    def merge(self, other: Self) -> Self:
        """Return the moments of the units of both, which are of different queries."""
        alone = None
        if self.alone is not None and other.alone is not None:
            alone = self.alone.merge(other.alone)
        return type(self)({key: one + other.sums[key] for key, one in self.sums.items()}, alone)

    def without(self, other: Self) -> Self | None:
        """Return the moments of the units that are not among others; None if there is none."""
        sums = {key: one - other.sums[key] for key, one in self.sums.items()}
        return type(self)(sums) if sums[WEIGHT] else None

    def of_side(self, side: Exponents) -> Self:
        """Return the moments of one of the two systems alone, `MINE` or `THEIRS`."""
        place = side.index(1)
        kept = {}
        for (a, b, w), one in self.sums.items():
            if not (a, b)[1 - place]:
                kept[0, (a, b)[place], w] = one
        alone = None if self.alone is None else self.alone.of_side(side)
        return type(self)(kept, alone)

    @property
    def weight(self) -> float:
        """The sum of weights: without any, the number of queries."""
        return self.sums[WEIGHT] / (1 << UNIT)

    def spread(self, ratio: float) -> Spread:
        """Return how the values of the system less `ratio` times those of the baseline spread."""
        theirs, mine = self._means
        known: dict[tuple[int, int], float] = {}
        for (a, b, w), one in self._central.items():
            times = comb(a + b, a) * (-ratio) ** a
            known[a + b, w] = known.get((a + b, w), 0.0) + times * one
        square = max(known[2, 0], 0.0)
        weights = None
        if not self.plain:
            weights = Weights(*(known[one] for one in ((1, 1), (0, 2), (2, 1), (1, 2), (0, 3))))
        unit = self._unit(square, ratio)
        return Spread(mine - ratio * theirs, square, known[3, 0], unit, weights)

    @property
    def paired(self) -> bool:
        """Whether they are of the values of a baseline, too."""
        return THEIRS in self.sums

    @property
    def plain(self) -> bool:
        """Whether all units have the weight 1."""
        return self.sums[0, 0, 2] == self.sums[WEIGHT]

    def _unit(self, square: float, ratio: float) -> float:
        """Return the weight of a typical unit as a share of all.

        A typical query has the mean of weights, each weighted by itself. One of clusters counts as
        the design effect says, up to a whole cluster.
        """
        whole = self.sums[0, 0, 2] * (1 << UNIT) / self.sums[WEIGHT] ** 2
        if self.alone is None:
            return whole
        alone = self.alone.spread(ratio)
        if not alone.square:
            return whole
        return min(max(square / alone.square, 1.0) * alone.unit, whole)

    @cached_property
    def _means(self) -> tuple[float, float]:
        total = self.sums[WEIGHT]
        return self.sums.get(THEIRS, 0) / total, self.sums[MINE] / total

    @cached_property
    def _central(self) -> dict[Exponents, float]:
        """The sums of x**a y**b v**w over units.

        x and y are by how much a unit moves the two means, and v is its share of all weights.
        """
        total, found = self.sums[WEIGHT], {}
        for a, b, w in EXPONENTS:
            if a + b + w == 1 or (a and THEIRS not in self.sums) or (w and self.plain):
                continue
            # A factor of x is total × (value of the unit) - sum × (weight of the unit).
            terms = {(0, 0, w): 1}
            for side in [THEIRS] * a + [MINE] * b:
                expanded: Counter[Exponents] = Counter()
                for key, one in terms.items():
                    for letter, times in ((side, total), (WEIGHT, -self.sums[side])):
                        place = key[0] + letter[0], key[1] + letter[1], key[2] + letter[2]
                        expanded[place] += one * times
                terms = expanded
            exact = sum(one * self.sums[key] for key, one in terms.items())
            # In units of 2**-UNIT are each sum and each total that it is divided by.
            found[a, b, w] = (exact << ((a + b + w - 1) * UNIT)) / total ** (2 * (a + b) + w)
        return found
