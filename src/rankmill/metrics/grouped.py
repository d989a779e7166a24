"""Aggregates over groups of items, such as genres: calibration, diversity, parity of exposure."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from rankmill.columns.elementary import discounts, log2
from rankmill.columns.groups import Groups
from rankmill.columns.lists import take_spans
from rankmill.kernels import grouped as kernels
from rankmill.matching.catalogue import Catalogue
from rankmill.metrics import rows
from rankmill.metrics.aggregate import Asked, Closing, Scored, Totals, Value
from rankmill.metrics.listed import MeanOfSome, training_of
from rankmill.threads import Workers

# How much of the shares that a query had is mixed into those of its list, as Steck has it.
ALPHA = 0.01
# Ratios are multiplied by it before their logarithm is taken, so that they are above 1.
SCALE = 38


class OfGroups(MeanOfSome):
    """A mean over the lists that have a value."""

    needs_training: ClassVar[bool] = False
    needs_groups: ClassVar[bool] = True


class Miscalibration(OfGroups):
    """How far the groups that a list shows are from those that its query had."""

    needs_training: ClassVar[bool] = True

    def values(self, scored: Scored, k: int, catalogue: Catalogue) -> np.ndarray:
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
            scored.shown,
            scored.repeat,
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


class Diversity(OfGroups):
    """How different the groups of the items of a list are."""

    def values(self, scored: Scored, k: int, catalogue: Catalogue) -> np.ndarray:
        """Return the mean distance of the pairs of each list."""
        groups, out = groups_of(catalogue), np.empty(len(scored.lists.offsets) - 1)
        of_items = scored.lists.offsets, scored.shown, scored.repeat
        kernels.mean_distance(*of_items, k, *groups.arrays[:2], out)
        return out


class ProfileDistance(OfGroups):
    """How different the groups of the items of a list are from those that its query had."""

    needs_training: ClassVar[bool] = True

    def values(self, scored: Scored, k: int, catalogue: Catalogue) -> np.ndarray:
        """Return the mean distance of each list from what its query had."""
        training, groups = training_of(catalogue), groups_of(catalogue)
        offsets, out = training.index.labels.offsets, np.empty(len(scored.lists.offsets) - 1)
        spans = take_spans(offsets, training.index.find(scored.lists.queries))
        of_items = scored.lists.offsets, scored.shown, scored.repeat
        how = k, *groups.arrays[:2], groups.largest
        kernels.mean_distance_to_history(*spans, training.rows_in(catalogue), *of_items, *how, out)
        return out


@dataclass(frozen=True, eq=False)
class Parity:
    """The exposure of each group over the number of its items: the least over the largest.

    Attributes
    ----------
    counts : int64[groups, ranks]
        How many items of each group stand at each rank, in units of which an item has `items`.
    items : int64
        How many items each group has, in the same units.
    """

    passes: ClassVar[int] = 1
    needs_confidences: ClassVar[bool] = False
    needs_groups: ClassVar[bool] = True

    counts: np.ndarray
    items: np.ndarray

    @classmethod
    def init(cls, asked: Asked) -> Self:
        """Return the exposure of no list."""
        if asked.catalogue is None:  # as where rows are given a type before any is read
            return cls(np.zeros((0, 0), np.int64), np.zeros(0, np.int64))
        groups = groups_of(asked.catalogue)
        each = np.repeat(groups.units, np.diff(groups.offsets))
        items = np.zeros(len(groups.names), np.int64)
        np.add.at(items, groups.codes, each)
        return cls(np.zeros((len(items), 0), np.int64), items)

    def update(self, scored: Scored, asked: Asked) -> Self:
        """Return the exposure with the lists of a block."""
        assert asked.catalogue is not None
        offsets, k = scored.lists.offsets, asked.metric.limit
        ranks = int(min(k, np.diff(offsets).max(initial=0)))
        counts = np.zeros((len(self.items), ranks), np.int64)
        of_items = offsets, scored.shown, scored.repeat
        kernels.count_exposure(*of_items, k, *groups_of(asked.catalogue).arrays, counts)
        return self.merge(replace(self, counts=counts))

    def merge(self, other: Self) -> Self:
        """Return the exposure of the lists of both."""
        one, more = self.counts, other.counts
        if one.shape[1] < more.shape[1]:
            one, more = more, one
        counts = one.copy()
        counts[:, : more.shape[1]] += more
        return replace(self, counts=counts)

    def close(self, closing: Closing) -> Self:
        """Return the same, because all lists count."""
        return self

    def finish(self, totals: Totals, among: Any, workers: Workers) -> Value:
        """Return the least exposure of an item of a group over the largest."""
        attention = (1 / discounts(self.counts.shape[1])[1:]).tolist()
        each = [
            math.fsum(n * a for n, a in zip(row, attention, strict=True)) / items
            for row, items in zip(self.counts.tolist(), self.items.tolist(), strict=True)
        ]
        most = max(each, default=0.0)
        return Value(min(each) / most if most else None)

    def to_row(self) -> dict[str, Any]:
        """Return a flat row for Arrow."""
        return {"shares": self.counts.reshape(-1), "items": self.items}

    @classmethod
    def from_row(cls, row: rows.Row, prefix: str = "") -> Self:
        """Return the exposure from a row that `to_row` made."""
        counts = rows.counts(row, f"{prefix}shares", least=0)
        items = rows.counts(row, f"{prefix}items", least=1)
        if len(counts) % max(1, len(items)) or (len(counts) and not len(items)):
            raise rows.damaged(f"{prefix}shares are not those of {len(items)} groups")
        return cls(counts.reshape(len(items), len(counts) // max(1, len(items))), items)


def groups_of(catalogue: Catalogue) -> Groups:
    """Return the groups that the job has checked to be there."""
    assert catalogue.groups is not None
    return catalogue.groups
