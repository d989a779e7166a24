"""Aggregates that need what was seen in training: means over lists, and shares of places."""

from dataclasses import replace
from typing import Annotated, ClassVar, Self

import numpy as np

from rankmill.columns.elementary import discounts, log2
from rankmill.kernels import catalogue as kernels
from rankmill.matching.catalogue import HEAD, MIDDLE, TAIL, KnownItems, Training
from rankmill.matching.order import ranks_of
from rankmill.metrics.aggregate import (
    Aggregate,
    AggregateSettings,
    ListWalk,
    Need,
    Needs,
    ScoredBlock,
    Totals,
    Value,
)
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.base import Columns
from rankmill.metrics.needs import Repeats, TrainingRows, given, of_rows
from rankmill.metrics.records import state_rows as rows
from rankmill.metrics.records.record import Count, LaterCount, Sum, same
from rankmill.records import record

# The groups of popularity by name.
PARTS = {HEAD: "head", MIDDLE: "middle", TAIL: "tail"}


@record(frozen=True)
class ListMean(Aggregate):
    """The mean over lists with a prediction and a value, also those of queries without a label."""

    needs: ClassVar[Needs] = (TrainingRows, Repeats)

    # The sums of the `Mean` of their values.
    lists: Count = 0
    total: Sum = 0
    squares: Sum = 0

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the mean with the lists of a block."""
        metric, there = asked.metric, np.diff(scored.lists.offsets) > 0
        values = self.values(scored, metric.limit, given(asked.catalogue), *metric.arguments)
        more = Mean.of(values[there & ~np.isnan(values)])
        return self.merge(replace(self, lists=more.count, total=more.total, squares=more.squares))

    @property
    def mean(self) -> Mean:
        """The mean."""
        return Mean(self.lists, self.total, self.squares)

    def check(self, row: rows.Row, prefix: str) -> None:
        """Raise UsageError if no values have these sums."""
        self.mean.check(row, prefix)

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems, *_: float) -> np.ndarray:
        """Return the value of each list, float64[n], NaN without one; last are parameters."""
        raise NotImplementedError

    def finish(self, totals: Totals) -> Value:
        """Return the mean and its standard error."""
        return Value(self.mean.mean, self.mean.standard_error, lists=self.lists)


class _Popularity(ListMean):
    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems, *_: float) -> np.ndarray:
        """Return the mean popularity of each list."""
        return _summed(scored, k, given(catalogue.training).popularity, 0.0)


class Popularity(_Popularity):
    """The mean number of queries that had an item."""

    @staticmethod
    def walk(scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return how many queries had each item."""
        had = of_rows(scored.needs[TrainingRows], given(catalogue.training).users, 0)
        return _walk(scored, k, {"queries": had}, had.astype(np.float64))


class Novelty(ListMean):
    """The mean self-information of items."""

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems, *_: float) -> np.ndarray:
        """Return the mean novelty of each list."""
        training = given(catalogue.training)
        return _summed(scored, k, training.novelty, training.novelty_of_others)

    @staticmethod
    def walk(scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return how many queries had each item, their share, and what that tells."""
        training = given(catalogue.training)
        had = of_rows(scored.needs[TrainingRows], training.users, 0)
        columns = {"queries": had, "share": np.maximum(1, had) / training.queries}
        values = of_rows(scored.needs[TrainingRows], training.novelty, training.novelty_of_others)
        return _walk(scored, k, columns, values)


class Serendipity(ListMean):
    """How much better than by popularity hits are placed."""

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems, *_: float) -> np.ndarray:
        """Return the serendipity of each list."""
        ranks, places, of_list = hits_within(scored, k)
        items, rows = len(catalogue), scored.needs[TrainingRows][places]
        usual = (items + 1 - of_rows(rows, given(catalogue.training).ranks, items + 1)) / items
        better = np.maximum((items + 1 - ranks) / items - usual, 0.0)
        offsets, repeat = scored.lists.offsets, scored.needs[Repeats]
        counts = np.minimum(k, np.diff(offsets))
        if len(repeat):
            better = np.where(repeat[places], 0.0, better)
            again = np.flatnonzero(repeat & (ranks_of(offsets) <= k))
            np.subtract.at(counts, np.searchsorted(offsets, again, side="right") - 1, 1)
        return np.asarray(np.bincount(of_list, better, len(counts)) / np.maximum(1, counts))

    @staticmethod
    def walk(scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return what is to be expected at each rank, and of each item by its popularity."""
        items, rows = len(catalogue), scored.needs[TrainingRows]
        hit = np.zeros(len(rows), np.bool_)
        hit[scored.hits.ranks - 1] = True
        here = (items - np.arange(len(rows))) / items
        usual = of_rows(rows, (items + 1 - given(catalogue.training).ranks) / items, 0.0)
        columns = {"hit": hit, "at_rank": here, "by_popularity": usual}
        return _walk(scored, k, columns, np.where(hit, np.maximum(here - usual, 0.0), 0.0))


class LongTailShare(ListMean):
    """The mean share of items of the long tail."""

    divided: ClassVar[bool] = True

    def values(
        self, scored: ScoredBlock, k: int, catalogue: KnownItems, *head: float
    ) -> np.ndarray:
        """Return the share, or number, of such items in each list; `head` as for `walk`."""
        return _summed(scored, k, given(catalogue.training).long_tail(*head), 1.0, self.divided)

    @classmethod
    def walk(cls, scored: ScoredBlock, k: int, catalogue: KnownItems, head: float) -> ListWalk:
        """Return how many queries had each item, and whether it is of the long tail."""
        training, rows = given(catalogue.training), scored.needs[TrainingRows]
        columns = {"queries": of_rows(rows, training.users, 0)}
        found = _walk(scored, k, columns, of_rows(rows, training.long_tail(head), 1.0))
        return found if cls is LongTailShare else found._replace(divisor=None)


class LongTailCount(LongTailShare):
    """The mean number of items of the long tail."""

    divided = False


class _Expected(ListMean):
    """The mean over lists of queries with labels of what hits are worth, by their ranks."""

    needs: ClassVar[Needs] = (TrainingRows,)

    @staticmethod
    def worths(training: Training) -> tuple[np.ndarray, float]:
        """Return what each item is worth, and one that no query had."""
        raise NotImplementedError

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems, *_: float) -> np.ndarray:
        """Return what each list is worth."""
        lengths = np.minimum(k, np.diff(scored.lists.offsets))
        table = discounts(max(1, int(lengths.max(initial=0))))
        ranks, places, of_list = hits_within(scored, k)
        rows = scored.needs[TrainingRows][places]
        worth = of_rows(rows, *self.worths(given(catalogue.training))) / table[ranks]
        sums = np.bincount(of_list, worth, len(lengths))
        weights = np.cumsum(1 / table[1:])[np.maximum(1, lengths) - 1]
        there = (lengths > 0) & (scored.hits.label_counts > 0)
        return np.where(there, sums / weights, np.nan)

    @classmethod
    def walk(cls, scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return what each item is worth, and its discount."""
        training, rows = given(catalogue.training), scored.needs[TrainingRows][:k]
        hit, table = np.zeros(len(rows), np.bool_), discounts(len(rows))[1:]
        hit[scored.hits.ranks[scored.hits.ranks <= len(rows)] - 1] = True
        worth = of_rows(rows, *cls.worths(training))
        columns = {"hit": hit, "queries": of_rows(rows, training.users, 0), "worth": worth}
        columns |= {"discount": table, "term": np.where(hit, worth / table, 0.0)}
        total = float(np.cumsum(1 / table)[-1]) if len(rows) else 1.0
        return ListWalk(columns, total, "the sum of 1 / discount")


class ExpectedComplement(_Expected):
    """Hits are worth the share of queries that did not have them."""

    @staticmethod
    def worths(training: Training) -> tuple[np.ndarray, float]:
        """Return 1 - the share of queries that had each item."""
        return 1 - training.popularity / max(1, training.queries), 1.0


class ExpectedDiscovery(_Expected):
    """Hits are worth -log2 of the share of interactions that are with them."""

    @staticmethod
    def worths(training: Training) -> tuple[np.ndarray, float]:
        """Return that of each item; other items are worth as much as the rarest."""
        found = log2(training.interactions / training.popularity)
        return found, float(found.max(initial=0.0))


class UsualPopularity(Need):
    """The mean popularity of what queries had, which depends on all of them."""

    given = TrainingRows.given
    lacks = TrainingRows.lacks


@record(frozen=True)
class PopularityLift(_Popularity):
    """How much more popular items are than those that queries had in training."""

    needs: ClassVar[Needs] = (*_Popularity.needs, UsualPopularity)
    # The mean over the queries of training of the mean popularity of their items.
    before: Annotated[float, same(rows.number)] = 0.0

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the lift of no list."""
        training = given(given(asked.catalogue).training)
        usual = training.usual
        return cls(before=usual_popularity(training).mean or 0.0 if usual is None else usual)

    def finish(self, totals: Totals) -> Value:
        """Return the lift and its standard error."""
        mean, error = self.mean.mean, self.mean.standard_error
        if mean is None or not self.before:
            return Value(None, lists=self.lists)
        error = None if error is None else error / self.before
        return Value(mean / self.before - 1, error, lists=self.lists)


@record(frozen=True)
class GroupShare(Aggregate):
    """The share of all places that items of one group of popularity take."""

    needs: ClassVar[Needs] = (TrainingRows, Repeats)
    group: ClassVar[int] = HEAD

    # How many items of the group stand within the cutoff, and how many of all; and how many lists.
    places: Count = 0
    every: Count = 0
    lists: LaterCount = 0

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the share with the lists of a block."""
        groups = given(given(asked.catalogue).training).groups
        counts = np.zeros(3, np.int64)
        offsets, repeat, k = scored.lists.offsets, scored.needs[Repeats], asked.metric.limit
        kernels.count_groups(offsets, scored.needs[TrainingRows], repeat, k, groups, TAIL, counts)
        shares = int(counts[self.group]), int(counts.sum())
        return self.merge(type(self)(*shares, int((np.diff(offsets) > 0).sum())))

    @classmethod
    def walk(cls, scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return how many queries had each item, and the group that this makes."""
        training = given(catalogue.training)
        group = of_rows(scored.needs[TrainingRows], training.groups, TAIL)
        columns = {
            "queries": of_rows(scored.needs[TrainingRows], training.users, 0),
            "part": np.array([PARTS[one] for one in group.tolist()], np.str_),
        }
        return _walk(scored, k, columns, (group == cls.group).astype(np.float64))

    def finish(self, totals: Totals) -> Value:
        """Return the share; it has no standard error."""
        return Value(self.places / self.every if self.every else None, lists=self.lists)

    def check(self, row: rows.Row, prefix: str) -> None:
        """Raise UsageError if the group has more places than there are."""
        if self.places > self.every:
            raise rows.damaged(f"{prefix}places is {self.places:,} of {self.every:,}")


class HeadShare(GroupShare):
    """The share of the most popular items."""

    group = HEAD


class MiddleShare(GroupShare):
    """The share of the items between."""

    group = MIDDLE


class TailShare(GroupShare):
    """The share of the least popular items."""

    group = TAIL


def counted_once(scored: ScoredBlock) -> np.ndarray:
    """Return whether each item counts: it repeats none before it in its list."""
    repeat = scored.needs[Repeats]
    return ~repeat if len(repeat) else np.ones(len(scored.lists.items.keys), np.bool_)


def hits_within(scored: ScoredBlock, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rank of each hit within k, its place among all items, and the list it is in."""
    hits = scored.hits
    kept = hits.ranks <= k
    of_list = np.repeat(np.arange(len(hits.label_counts)), np.diff(hits.offsets))
    return hits.ranks[kept], hits.places(scored.lists.offsets)[kept], of_list[kept]


def _walk(scored: ScoredBlock, k: int, columns: Columns, values: np.ndarray) -> ListWalk:
    """Return the walk whose terms are the values of the first k items."""
    once = counted_once(scored)
    columns = columns | {"term": np.where(once, values, 0.0)}
    return ListWalk(
        {name: one[:k] for name, one in columns.items()},
        float(max(1, once[:k].sum())),
        "the items within the cutoff, each once",
    )


def _summed(
    scored: ScoredBlock, k: int, values: np.ndarray, other: float, mean: bool = True
) -> np.ndarray:
    """Return the mean of the values of the first k items of each list, or their sum."""
    out = np.empty(len(scored.lists.offsets) - 1)
    of_items = scored.lists.offsets, scored.needs[TrainingRows], scored.needs[Repeats]
    kernels.sum_values(*of_items, k, values, other, mean, out)
    return out


def usual_popularity(training: Training) -> Mean:
    """Return the mean popularity of what queries had, as a mean over those of the index."""
    labels = training.index.labels
    out = np.empty(len(labels.offsets) - 1)
    of_items = labels.offsets, training.find(labels.items), np.empty(0, np.bool_)
    kernels.sum_values(*of_items, len(labels.items.keys), training.popularity, 0.0, True, out)
    return Mean.of(out[np.diff(labels.offsets) > 0])
