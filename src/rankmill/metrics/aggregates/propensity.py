"""Hits by the propensities of their items, which follow from how many queries had these before."""

from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np

from rankmill.columns.elementary import discounts
from rankmill.kernels import catalogue as kernels
from rankmill.matching.catalogue import KnownItems
from rankmill.metrics.aggregate import AggregateSettings, Closing, ListWalk, Needs, ScoredBlock
from rankmill.metrics.aggregates.list_means import hits_within
from rankmill.metrics.aggregates.mean import MicroAverage
from rankmill.metrics.needs import LabelRows, TrainingRows, given, of_rows
from rankmill.records import record


@record(frozen=True, eq=False)
class ScoredPrecision(MicroAverage):
    """What hits are worth, over what the labels that are worth most come to."""

    needs: ClassVar[Needs] = (TrainingRows, LabelRows)
    by_rank: ClassVar[bool] = False

    # The cutoff, what each item is worth (the last one is any other item), and whether queries
    # without predictions count.
    limit: int = 0
    worths: np.ndarray = field(default_factory=lambda: np.zeros(1))
    every: bool = False

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the aggregate of no list."""
        worths = given(given(asked.catalogue).training).inverse_propensities(
            *asked.metric.arguments
        )
        every = asked.semantics.unpredicted == "zero"
        return cls(limit=asked.metric.limit, worths=worths, every=every)

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the sums with a block."""
        labels = scored.needs[LabelRows]
        divisors = self._best(*labels)
        ranks, places, of_list = hits_within(scored, self.limit)
        _, *worths, table = self._how(int(ranks.max(initial=0)))
        worth = of_rows(scored.needs[TrainingRows][places], *worths) / table[ranks]
        counted = np.bincount(of_list, worth, len(divisors))
        scale = self._scale(labels[1] - labels[0])
        return self.merge(self.of(counted / scale, divisors / scale))

    def close(self, closing: Closing) -> Self:
        """Return the sums with the divisors of queries without predictions, if these count."""
        closed = super().close(closing)
        if not self.every or closing.known is None:
            return closed
        starts, ends, rows = closing.needs[LabelRows]
        divisors = self._best(starts, ends, rows) / self._scale(ends - starts)
        whole = self.of(np.zeros(len(divisors)), divisors)
        unseen = whole.divisor_squares - self.divisor_squares
        return replace(
            closed,
            divisors=whole.divisors,
            divisor_squares=whole.divisor_squares,
            both_squares=closed.both_squares + unseen,
        )

    def _how(self, depth: int) -> tuple[Any, ...]:
        table = discounts(depth) if self.by_rank else np.ones(depth + 1)
        return self.limit, self.worths[:-1], float(self.worths[-1]), table

    def _best(self, starts: np.ndarray, ends: np.ndarray, rows: np.ndarray) -> np.ndarray:
        out = np.empty(len(starts))
        depth = int((ends - starts).max(initial=0))
        kernels.sum_largest(starts, ends, rows, *self._how(depth), out)
        return out

    def _scale(self, labels: np.ndarray) -> np.ndarray:
        """Return what both are divided by."""
        return np.ones(len(labels))

    @classmethod
    def walk(
        cls, scored: ScoredBlock, k: int, catalogue: KnownItems, a: float, b: float
    ) -> ListWalk:
        """Return how many queries had each item, its 1 / propensity, and what a hit is worth."""
        training, rows = given(catalogue.training), scored.needs[TrainingRows]
        one = cls(limit=k, worths=training.inverse_propensities(a, b))
        hit = np.zeros(len(rows), np.bool_)
        hit[scored.hits.ranks - 1] = True
        worth = of_rows(rows, one.worths[:-1], float(one.worths[-1]))
        table = one._how(len(rows))[-1]
        labels = scored.needs[LabelRows]
        scale = one._scale(labels[1] - labels[0])[0]
        columns = {
            "hit": hit,
            "queries": of_rows(rows, training.users, 0),
            "worth": worth,
            "term": np.where(hit, worth / table[1 : len(rows) + 1], 0.0) / scale,
        }
        columns = {name: each[:k] for name, each in columns.items()}
        divisor = float(one._best(*labels)[0] / scale)
        return ListWalk(columns, divisor or 1.0, "the same of the labels that are worth most")


class ScoredGain(ScoredPrecision):
    """The same over log2(rank + 1), and over the dcg of min(k, R) hits of gain 1."""

    by_rank = True

    def _scale(self, labels: np.ndarray) -> np.ndarray:
        reached = np.minimum(labels, self.limit)
        sums = np.cumsum(1 / discounts(max(1, int(reached.max(initial=0))))[1:])
        return np.asarray(sums[np.maximum(1, reached) - 1])
