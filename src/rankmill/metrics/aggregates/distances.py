"""Means over lists of how far items are from each other, and from what their query had before.

By their groups, such as genres, or by their vectors.
"""

import math
from typing import ClassVar

import numpy as np

from rankmill.columns.elementary import log2
from rankmill.columns.lists import take_spans
from rankmill.kernels import catalogue as item_kernels
from rankmill.kernels import vectors
from rankmill.matching.catalogue import KnownItems
from rankmill.metrics.aggregate import ListWalk, Needs, ScoredBlock
from rankmill.metrics.aggregates.list_means import ListMean, counted_once
from rankmill.metrics.base import Columns
from rankmill.metrics.needs import FeatureRows, GroupRows, Repeats, TrainingRows, given, units_of

# How much of the shares that a query had is mixed into those of its list, as Steck has it.
ALPHA = 0.01
# Ratios are multiplied by it before their logarithm is taken, so that they are above 1.
SCALE = 38


class Miscalibration(ListMean):
    """How far the groups that a list shows are from those that its query had."""

    needs: ClassVar[Needs] = (TrainingRows, GroupRows, Repeats)

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems, *_: float) -> np.ndarray:
        """Return the Kullback-Leibler divergence of each list, in nats."""
        groups, offsets = given(catalogue.groups), scored.lists.offsets
        starts, ends = _spans(scored, catalogue)
        of_query = starts, ends, given(catalogue.training).rows_in(catalogue)
        sizes = np.minimum(ends - starts, groups.most_items) * groups.largest
        room = int(np.minimum(sizes, len(groups.names)).sum())
        last, shares, ratios = np.empty(len(offsets) - 1, np.int64), np.empty(room), np.empty(room)
        of_items = offsets, scored.needs[GroupRows], scored.needs[Repeats], k
        how = *groups.arrays, len(groups.names), ALPHA
        item_kernels.compare_shares(*of_query, *of_items, *how, last, shares, ratios)
        count = int(last[-1]) if len(last) else 0
        logs = log2(ratios[:count] * 2.0**SCALE) - SCALE
        sizes = np.diff(last, prepend=0)
        of_terms = np.repeat(np.arange(len(sizes)), sizes)
        sums = np.bincount(of_terms, shares[:count] * logs * math.log(2), len(sizes))
        return np.where(sizes > 0, sums, np.nan)

    @staticmethod
    def walk(scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return the shares of each group, before and in the list, and what they add."""
        groups, training = given(catalogue.groups), given(catalogue.training)
        before = units_of(_of_the_query(training.rows_in(catalogue), scored, catalogue), groups)
        now = units_of(scored.needs[GroupRows][:k][counted_once(scored)[:k]], groups)
        some = np.flatnonzero(before + now)
        p, q = (one[some] / max(1, one.sum()) for one in (before, now))
        terms = np.zeros(len(some))
        if before.any() and now.any():
            had = p > 0
            ratios = p[had] / ((1 - ALPHA) * q[had] + ALPHA * p[had])
            terms[had] = p[had] * (log2(ratios * 2.0**SCALE) - SCALE) * math.log(2)
        names = np.array([groups.names[code] for code in some.tolist()], np.str_)
        columns = {"group": names, "before": p, "in_list": q, "term": terms}
        return ListWalk(columns, of_items=False)


class _ByGroups:
    """The Jaccard distance of the groups of items, which their rows in the catalogue have."""

    rows, kernels = GroupRows, item_kernels

    def __init__(self, catalogue: KnownItems) -> None:
        self._catalogue, self._groups = catalogue, given(catalogue.groups)
        self.how = *self._groups.arrays[:2], self._groups.largest

    def had(self) -> np.ndarray:
        return given(self._catalogue.training).rows_in(self._catalogue)

    def is_there(self, rows: np.ndarray) -> np.ndarray:
        return np.array([len(codes) > 0 for codes in self._codes(rows)], np.bool_)

    def columns(self, rows: np.ndarray) -> Columns:
        names = self._groups.names
        named = [", ".join(names[one] for one in codes) for codes in self._codes(rows)]
        return {"groups": np.array(named, np.str_)}

    def distances(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        sides = [[set(codes.tolist()) for codes in self._codes(one)] for one in (rows, others)]
        far = [[1 - len(a & b) / len(a | b) for b in sides[1]] for a in sides[0]]
        return np.array(far).reshape(len(rows), len(others))

    def _codes(self, rows: np.ndarray) -> list[np.ndarray]:
        offsets, codes = self._groups.offsets.tolist(), self._groups.codes
        return [codes[offsets[i] : offsets[i + 1]] if i >= 0 else codes[:0] for i in rows.tolist()]


class _ByVectors:
    """1 - the cosine of the vectors of items, which have rows of their own."""

    rows, kernels = FeatureRows, vectors

    def __init__(self, catalogue: KnownItems) -> None:
        self._catalogue, self._features = catalogue, given(catalogue.features)
        self.how = self._features.units, self._features.scale

    def had(self) -> np.ndarray:
        return self._features.had(given(self._catalogue.training).index)

    def is_there(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows >= 0)

    def columns(self, rows: np.ndarray) -> Columns:
        return {"vector": rows >= 0}

    def distances(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        one, other = (self._features.units[of] / self._features.scale for of in (rows, others))
        return np.asarray(np.maximum(0.0, 1 - one @ other.T))


class Diversity(ListMean):
    """How different the groups of the items of a list are, or of these and what its query had.

    The latter if what queries had in training is among its needs.
    """

    needs: ClassVar[Needs] = (GroupRows, Repeats)
    by: ClassVar[type[_ByGroups | _ByVectors]] = _ByGroups

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems, *_: float) -> np.ndarray:
        """Return the mean distance of the pairs of each list, or from what its query had."""
        by, out = self.by(catalogue), np.empty(len(scored.lists.offsets) - 1)
        of_items = scored.lists.offsets, scored.needs[by.rows], scored.needs[Repeats], k
        if TrainingRows in self.needs:
            spans = _spans(scored, catalogue)
            by.kernels.mean_distance_to_history(*spans, by.had(), *of_items, *by.how, out)
        else:
            by.kernels.mean_distance(*of_items, *by.how[:2], out)
        return out

    @classmethod
    def walk(cls, scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return the mean distance of each item to the other items, or to what the query had."""
        by = cls.by(catalogue)
        rows = scored.needs[by.rows][:k]
        counts = counted_once(scored)[:k] & by.is_there(rows)
        if TrainingRows in cls.needs:
            had = _of_the_query(by.had(), scored, catalogue)
            far = by.distances(rows[counts], had[by.is_there(had)])
            compared = far.shape[1]
        else:
            far = by.distances(rows[counts], rows[counts])
            np.fill_diagonal(far, 0.0)  # the distance of an item to itself does not count
            compared = max(0, len(far) - 1)
        pairs, term = np.zeros(len(counts), np.int64), np.zeros(len(counts))
        pairs[counts] = compared
        term[counts] = far.sum(axis=1) / max(1, compared)
        columns = by.columns(rows) | {"compared_with": pairs, "term": term}
        return ListWalk(columns, float(max(1, counts.sum())), "the items that are compared")


class ProfileDistance(Diversity):
    """How different the groups of the items of a list are from those that its query had."""

    needs = (TrainingRows, GroupRows, Repeats)


class CosineDiversity(Diversity):
    """How different the vectors of the items of a list are."""

    needs = (FeatureRows, Repeats)
    by = _ByVectors


class CosineProfileDistance(Diversity):
    """How different the vectors of the items of a list are from those that its query had."""

    needs = (TrainingRows, FeatureRows, Repeats)
    by = _ByVectors


def _spans(scored: ScoredBlock, catalogue: KnownItems) -> tuple[np.ndarray, np.ndarray]:
    """Return where the items that queries had in training start and end."""
    index = given(catalogue.training).index
    return take_spans(index.labels.offsets, index.find(scored.lists.queries))


def _of_the_query(had: np.ndarray, scored: ScoredBlock, catalogue: KnownItems) -> np.ndarray:
    """Return what the query of the only list had, of what all had."""
    starts, ends = _spans(scored, catalogue)
    return had[int(starts[0]) : int(ends[0])]
