"""Aggregates that need what was seen in training: means over all lists, and shares of places."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from rankmill.kernels import listed as kernels
from rankmill.matching.catalogue import HEAD, MIDDLE, TAIL, KnownItems, Training
from rankmill.metrics import rows
from rankmill.metrics.aggregate import Asked, Closing, ListWalk, Scored, Totals, Value
from rankmill.metrics.base import Columns
from rankmill.metrics.mean import Mean
from rankmill.threads import Workers

# The groups of popularity by name.
PARTS = {HEAD: "head", MIDDLE: "middle", TAIL: "tail"}


@dataclass(frozen=True)
class ListMean:
    """The mean over all lists with a prediction, also those of queries without a label.

    Attributes
    ----------
    mean : Mean
    """

    passes: ClassVar[int] = 1
    needs_confidences: ClassVar[bool] = False
    needs_training: ClassVar[bool] = True

    mean: Mean = field(default_factory=Mean)

    @classmethod
    def init(cls, asked: Asked) -> Self:
        """Return the mean of no list."""
        return cls()

    def update(self, scored: Scored, asked: Asked) -> Self:
        """Return the mean with the lists of a block."""
        assert asked.catalogue is not None
        there = np.diff(scored.lists.offsets) > 0
        values = self.values(scored, asked.metric.limit, asked.catalogue)
        return replace(self, mean=self.mean.merge(Mean.of(values[there])))

    def values(self, scored: Scored, k: int, catalogue: KnownItems) -> np.ndarray:
        """Return the value of each list, float64[n]."""
        raise NotImplementedError

    def merge(self, other: Self) -> Self:
        """Return the mean of the lists of both."""
        return replace(self, mean=self.mean.merge(other.mean))

    def close(self, closing: Closing) -> Self:
        """Return the same, because all lists count."""
        return self

    def finish(self, totals: Totals, among: Any, workers: Workers) -> Value:
        """Return the mean and its standard error."""
        return Value(self.mean.mean, self.mean.standard_error, lists=self.mean.count)

    def to_row(self) -> dict[str, Any]:
        """Return a flat row for Arrow."""
        row = self.mean.to_row()
        return {"lists": row.pop("count"), **row}

    @classmethod
    def from_row(cls, row: rows.Row, prefix: str = "") -> Self:
        """Return the mean from a row that `to_row` made."""
        count = rows.count(row, f"{prefix}lists")
        return cls(Mean.from_row({**row, f"{prefix}count": count}, prefix))


class MeanOfSome(ListMean):
    """The mean over the lists that have a value; NaN is none."""

    def update(self, scored: Scored, asked: Asked) -> Self:
        """Return the mean with the lists of a block."""
        assert asked.catalogue is not None
        values = self.values(scored, asked.metric.limit, asked.catalogue)
        return replace(self, mean=self.mean.merge(Mean.of(values[~np.isnan(values)])))


class _Popularity(ListMean):
    def values(self, scored: Scored, k: int, catalogue: KnownItems) -> np.ndarray:
        """Return the mean popularity of each list."""
        return _means(scored, k, training_of(catalogue).popularity, 0.0)


class Popularity(_Popularity):
    """The mean number of queries that had an item."""

    @staticmethod
    def walk(scored: Scored, k: int, catalogue: KnownItems) -> ListWalk:
        """Return how many queries had each item."""
        had = of_rows(scored.trained, training_of(catalogue).users, 0)
        return _walk(scored, k, {"queries": had}, had.astype(np.float64))


class Novelty(ListMean):
    """The mean self-information of items."""

    def values(self, scored: Scored, k: int, catalogue: KnownItems) -> np.ndarray:
        """Return the mean novelty of each list."""
        training = training_of(catalogue)
        return _means(scored, k, training.novelty, training.novelty_of_others)

    @staticmethod
    def walk(scored: Scored, k: int, catalogue: KnownItems) -> ListWalk:
        """Return how many queries had each item, their share, and what that tells."""
        training = training_of(catalogue)
        had = of_rows(scored.trained, training.users, 0)
        columns = {"queries": had, "share": np.maximum(1, had) / training.queries}
        values = of_rows(scored.trained, training.novelty, training.novelty_of_others)
        return _walk(scored, k, columns, values)


class Serendipity(ListMean):
    """How much better than by popularity hits are placed."""

    def values(self, scored: Scored, k: int, catalogue: KnownItems) -> np.ndarray:
        """Return the serendipity of each list."""
        offsets, hits = scored.lists.offsets, scored.hits
        out = np.empty(len(offsets) - 1)
        how = k, training_of(catalogue).ranks, len(catalogue)
        of_items = scored.trained, scored.repeat
        kernels.serendipity(offsets, hits.offsets, hits.ranks, *of_items, *how, out)
        return out

    @staticmethod
    def walk(scored: Scored, k: int, catalogue: KnownItems) -> ListWalk:
        """Return what is to be expected at each rank, and of each item by its popularity."""
        items, rows = len(catalogue), scored.trained
        hit = np.zeros(len(rows), np.bool_)
        hit[scored.hits.ranks - 1] = True
        here = (items - np.arange(len(rows))) / items
        usual = of_rows(rows, (items + 1 - training_of(catalogue).ranks) / items, 0.0)
        columns = {"hit": hit, "at_rank": here, "by_popularity": usual}
        return _walk(scored, k, columns, np.where(hit, np.maximum(here - usual, 0.0), 0.0))


@dataclass(frozen=True)
class PopularityLift(_Popularity):
    """How much more popular items are than those that queries had in training.

    Attributes
    ----------
    before : float
        The mean over the queries of training of the mean popularity of their items.
    """

    before: float = 0.0

    @classmethod
    def init(cls, asked: Asked) -> Self:
        """Return the lift of no list."""
        assert asked.catalogue is not None
        return cls(before=_before(training_of(asked.catalogue)))

    def finish(self, totals: Totals, among: Any, workers: Workers) -> Value:
        """Return the lift and its standard error."""
        mean, error = self.mean.mean, self.mean.standard_error
        if mean is None or not self.before:
            return Value(None, lists=self.mean.count)
        error = None if error is None else error / self.before
        return Value(mean / self.before - 1, error, lists=self.mean.count)

    def to_row(self) -> dict[str, Any]:
        """Return a flat row for Arrow."""
        return {**super().to_row(), "before": self.before}

    @classmethod
    def from_row(cls, row: rows.Row, prefix: str = "") -> Self:
        """Return the lift from a row that `to_row` made."""
        before = rows.number(row, f"{prefix}before")
        return replace(super().from_row(row, prefix), before=before)


@dataclass(frozen=True)
class GroupShare:
    """The share of all places that items of one group of popularity take.

    Attributes
    ----------
    places, every : int
        How many items of the group stand within the cutoff, and how many of all.
    """

    passes: ClassVar[int] = 1
    needs_confidences: ClassVar[bool] = False
    needs_training: ClassVar[bool] = True
    group: ClassVar[int] = HEAD

    places: int = 0
    every: int = 0

    @classmethod
    def init(cls, asked: Asked) -> Self:
        """Return the share of no list."""
        return cls()

    def update(self, scored: Scored, asked: Asked) -> Self:
        """Return the share with the lists of a block."""
        assert asked.catalogue is not None
        groups, counts = training_of(asked.catalogue).groups, np.zeros(3, np.int64)
        offsets, repeat, k = scored.lists.offsets, scored.repeat, asked.metric.limit
        kernels.count_groups(offsets, scored.trained, repeat, k, groups, TAIL, counts)
        return self.merge(type(self)(int(counts[self.group]), int(counts.sum())))

    @classmethod
    def walk(cls, scored: Scored, k: int, catalogue: KnownItems) -> ListWalk:
        """Return how many queries had each item, and the group that this makes."""
        training = training_of(catalogue)
        group = of_rows(scored.trained, training.groups, TAIL)
        columns = {
            "queries": of_rows(scored.trained, training.users, 0),
            "part": np.array([PARTS[one] for one in group.tolist()], np.str_),
        }
        return _walk(scored, k, columns, (group == cls.group).astype(np.float64))

    def merge(self, other: Self) -> Self:
        """Return the share among the lists of both."""
        return type(self)(self.places + other.places, self.every + other.every)

    def close(self, closing: Closing) -> Self:
        """Return the same, because all lists count."""
        return self

    def finish(self, totals: Totals, among: Any, workers: Workers) -> Value:
        """Return the share; it has no standard error."""
        return Value(self.places / self.every if self.every else None)

    def to_row(self) -> dict[str, Any]:
        """Return a flat row for Arrow."""
        return {"places": self.places, "every": self.every}

    @classmethod
    def from_row(cls, row: rows.Row, prefix: str = "") -> Self:
        """Return the share from a row that `to_row` made."""
        found = cls(*(rows.count(row, prefix + name) for name in ("places", "every")))
        if found.places > found.every:
            raise rows.damaged(f"{prefix}places is {found.places:,} of {found.every:,}")
        return found


class HeadShare(GroupShare):
    """The share of the most popular items."""

    group = HEAD


class MiddleShare(GroupShare):
    """The share of the items between."""

    group = MIDDLE


class TailShare(GroupShare):
    """The share of the least popular items."""

    group = TAIL


def training_of(catalogue: KnownItems) -> Training:
    """Return the training that the job has checked to be there."""
    assert catalogue.training is not None
    return catalogue.training


def counted_once(scored: Scored) -> np.ndarray:
    """Return whether each item counts: it repeats none before it in its list."""
    return ~scored.repeat if len(scored.repeat) else np.ones(len(scored.lists.items.keys), np.bool_)


def of_rows(rows: np.ndarray, values: np.ndarray, other: float) -> np.ndarray:
    """Return the value at each row, another one at row -1."""
    found = np.full(len(rows), other, values.dtype)
    found[rows >= 0] = values[rows[rows >= 0]]
    return found


def _walk(scored: Scored, k: int, columns: Columns, values: np.ndarray) -> ListWalk:
    """Return the walk whose terms are the values of the first k items."""
    once = counted_once(scored)
    columns = columns | {"term": np.where(once, values, 0.0)}
    return ListWalk(
        {name: one[:k] for name, one in columns.items()},
        float(max(1, once[:k].sum())),
        "the items within the cutoff, each once",
    )


def walk_distances(
    columns: Columns, counts: np.ndarray, far: np.ndarray, *, among: bool = False
) -> ListWalk:
    """Return the walk whose terms are the mean distance of each item to some others.

    `far` has a row for each item that counts, and a column for each of the others. These are the
    same items if `among` themselves, and the distance of an item to itself does not count.
    """
    others = far.shape[1]
    if among:
        np.fill_diagonal(far, 0.0)
        others = max(0, others - 1)
    pairs, term = np.zeros(len(counts), np.int64), np.zeros(len(counts))
    pairs[counts] = others
    term[counts] = far.sum(axis=1) / max(1, others)
    columns = columns | {"compared_with": pairs, "term": term}
    return ListWalk(columns, float(max(1, counts.sum())), "the items that are compared")


def _means(scored: Scored, k: int, values: np.ndarray, other: float) -> np.ndarray:
    out = np.empty(len(scored.lists.offsets) - 1)
    of_items = scored.lists.offsets, scored.trained, scored.repeat
    kernels.mean_values(*of_items, k, values, other, out)
    return out


def _before(training: Training) -> float:
    labels = training.index.labels
    out = np.empty(len(labels.offsets) - 1)
    of_items = labels.offsets, training.find(labels.items), np.empty(0, np.bool_)
    kernels.mean_values(*of_items, len(labels.items.keys), training.popularity, 0.0, out)
    return Mean.of(out[np.diff(labels.offsets) > 0]).mean or 0.0
