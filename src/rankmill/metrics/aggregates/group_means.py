"""Means over lists of what the groups of items show, such as genres: calibration, diversity."""

import math
from typing import ClassVar

import numpy as np

from rankmill.columns.elementary import log2
from rankmill.columns.groups import Groups
from rankmill.columns.lists import take_spans
from rankmill.kernels import grouped as kernels
from rankmill.matching.catalogue import KnownItems
from rankmill.metrics.aggregate import ListWalk, Needs, ScoredBlock
from rankmill.metrics.aggregates.list_means import MeanOfSome, counted_once, walk_distances
from rankmill.metrics.needs import GroupRows, Repeats, TrainingRows, groups_of, training_of

# How much of the shares that a query had is mixed into those of its list, as Steck has it.
ALPHA = 0.01
# Ratios are multiplied by it before their logarithm is taken, so that they are above 1.
SCALE = 38


class Miscalibration(MeanOfSome):
    """How far the groups that a list shows are from those that its query had."""

    needs: ClassVar[Needs] = (TrainingRows, GroupRows, Repeats)

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems) -> np.ndarray:
        """Return the Kullback-Leibler divergence of each list, in nats."""
        training, groups = training_of(catalogue), groups_of(catalogue)
        labels, offsets = training.index.labels, scored.lists.offsets
        starts, ends = take_spans(labels.offsets, training.index.find(scored.lists.queries))
        had = training.rows_in(catalogue)
        sizes = np.minimum(ends - starts, groups.most_items) * groups.largest
        room = int(np.minimum(sizes, len(groups.names)).sum())
        last, shares, ratios = np.empty(len(offsets) - 1, np.int64), np.empty(room), np.empty(room)
        kernels.compare_shares(
            starts,
            ends,
            had,
            offsets,
            scored.needs[GroupRows],
            scored.needs[Repeats],
            k,
            *groups.arrays,
            len(groups.names),
            ALPHA,
            last,
            shares,
            ratios,
        )
        count = int(last[-1]) if len(last) else 0
        logs = log2(ratios[:count] * 2.0**SCALE) - SCALE
        out = np.empty(len(offsets) - 1)
        kernels.sum_terms(last, shares[:count] * logs * math.log(2), out)
        return out

    @staticmethod
    def walk(scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return the shares of each group, before and in the list, and what they add."""
        groups = groups_of(catalogue)
        before = _units(_had(scored, catalogue), groups)
        now = _units(scored.needs[GroupRows][:k][counted_once(scored)[:k]], groups)
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


class Diversity(MeanOfSome):
    """How different the groups of the items of a list are."""

    needs: ClassVar[Needs] = (GroupRows, Repeats)

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems) -> np.ndarray:
        """Return the mean distance of the pairs of each list."""
        groups, out = groups_of(catalogue), np.empty(len(scored.lists.offsets) - 1)
        of_items = scored.lists.offsets, scored.needs[GroupRows], scored.needs[Repeats]
        kernels.mean_distance(*of_items, k, *groups.arrays[:2], out)
        return out

    @staticmethod
    def walk(scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return the groups of each item, and its mean distance to the other items."""
        groups, rows = groups_of(catalogue), scored.needs[GroupRows][:k]
        counts = counted_once(scored)[:k] & _is_grouped(rows, groups)
        far = _distances(rows[counts], rows[counts], groups)
        return walk_distances({"groups": _named(rows, groups)}, counts, far, among=True)


class ProfileDistance(MeanOfSome):
    """How different the groups of the items of a list are from those that its query had."""

    needs: ClassVar[Needs] = (TrainingRows, GroupRows, Repeats)

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems) -> np.ndarray:
        """Return the mean distance of each list from what its query had."""
        training, groups = training_of(catalogue), groups_of(catalogue)
        offsets, out = training.index.labels.offsets, np.empty(len(scored.lists.offsets) - 1)
        spans = take_spans(offsets, training.index.find(scored.lists.queries))
        of_items = scored.lists.offsets, scored.needs[GroupRows], scored.needs[Repeats]
        how = k, *groups.arrays[:2], groups.largest
        kernels.mean_distance_to_history(*spans, training.rows_in(catalogue), *of_items, *how, out)
        return out

    @staticmethod
    def walk(scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return the groups of each item, and its mean distance to what the query had."""
        groups, rows, had = (
            groups_of(catalogue),
            scored.needs[GroupRows][:k],
            _had(scored, catalogue),
        )
        counts = counted_once(scored)[:k] & _is_grouped(rows, groups)
        far = _distances(rows[counts], had[_is_grouped(had, groups)], groups)
        return walk_distances({"groups": _named(rows, groups)}, counts, far)


def _had(scored: ScoredBlock, catalogue: KnownItems) -> np.ndarray:
    """Return the rows in the catalogue of what the query of the only list had."""
    training = training_of(catalogue)
    spans = take_spans(training.index.labels.offsets, training.index.find(scored.lists.queries))
    return training.rows_in(catalogue)[int(spans[0][0]) : int(spans[1][0])]


def _units(rows: np.ndarray, groups: Groups) -> np.ndarray:
    """Return what each group has of some items."""
    counts = np.zeros(len(groups.names), np.int64)
    kernels.count_shares(rows, *groups.arrays, counts)
    return counts


def _codes(rows: np.ndarray, groups: Groups) -> list[np.ndarray]:
    """Return the groups of each item."""
    offsets, none = groups.offsets.tolist(), groups.codes[:0]
    return [groups.codes[offsets[i] : offsets[i + 1]] if i >= 0 else none for i in rows.tolist()]


def _is_grouped(rows: np.ndarray, groups: Groups) -> np.ndarray:
    """Return whether each item has a group."""
    return np.array([len(codes) > 0 for codes in _codes(rows, groups)], np.bool_)


def _named(rows: np.ndarray, groups: Groups) -> np.ndarray:
    """Return the groups of each item by name."""
    named = [", ".join(groups.names[one] for one in codes) for codes in _codes(rows, groups)]
    return np.array(named, np.str_)


def _distances(rows: np.ndarray, others: np.ndarray, groups: Groups) -> np.ndarray:
    """Return the Jaccard distance of each item from each of others; all have groups."""
    sides = [[set(codes.tolist()) for codes in _codes(one, groups)] for one in (rows, others)]
    far = [[1 - len(a & b) / len(a | b) for b in sides[1]] for a in sides[0]]
    return np.array(far).reshape(len(rows), len(others))
