"""The distribution of the values of queries: exact counts of distinct values; their summaries."""

import math
from dataclasses import replace
from typing import Annotated, Self

import numpy as np

from rankmill.metrics.aggregate import (
    Aggregate,
    AggregateSettings,
    Closing,
    ScoredBlock,
    Totals,
    Value,
)
from rankmill.metrics.aggregates.mean import UNIT, Mean
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.record import Count, same
from rankmill.metrics.texts import read_summary
from rankmill.records import record

FLOOR = 1e-5


def _floats(row: state_rows.Row, name: str) -> np.ndarray:
    return state_rows.ascending(row, name).astype(np.float64)


@record(frozen=True, eq=False)
class Distribution(Aggregate):
    """How many queries have each value. Zeros are not kept: they are all the other queries.

    The counts are integers, so merging is exact, associative and commutative. The arrays need 16
    bytes for each distinct value, of which there are at most as many as queries.

    Examples
    --------
    >>> some = Distribution("median", np.array([0.5, 1.0]), np.array([2, 1]), count=5)
    >>> some.value, replace(some, summary="above=0.5").value
    (0.5, 0.2)
    """

    # What the value is, such as "gm": see `rankmill.metrics.texts`.
    summary: Annotated[str, same(lambda row, name: read_summary(state_rows.text(row, name), name))]
    # The distinct values other than 0, ascending, and how many queries have each.
    values: Annotated[np.ndarray, same(_floats)]
    counts: Annotated[np.ndarray, same(lambda row, name: state_rows.counts(row, name, least=1))]
    count: Count = 0  # the number of all queries, once an input is closed

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the distribution of no query."""
        return cls(asked.metric.summary, np.empty(0), np.empty(0, np.int64))

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the distribution with the values of a block; `close` sets the count of queries."""
        assert scored.values is not None
        counts = scored.counts
        counts = np.ones(len(scored.values), np.int64) if counts is None else counts
        return self.with_values(scored.values, counts)

    def with_values(self, values: np.ndarray, counts: np.ndarray) -> Self:
        """Return the distribution with some values more, each as often as its count says."""
        values, counts = np.append(self.values, values), np.append(self.counts, counts)
        kept = (values != 0) & (counts > 0)
        distinct, place = np.unique(values[kept], return_inverse=True)
        totals = np.zeros(len(distinct), np.int64)
        np.add.at(totals, place, counts[kept])
        return replace(self, values=distinct, counts=totals)

    def merge(self, other: Self) -> Self:
        """Return the distribution of the queries of both."""
        return super().merge(other).with_values(other.values, other.counts)

    def close(self, closing: Closing) -> Self:
        """Return the distribution with its count and its ones; queries never added score 0."""
        with_ones = self.with_values(np.ones(1), np.array([closing.ones]))
        return replace(with_ones, count=self.count + closing.queries)

    def finish(self, totals: Totals) -> Value:
        """Return the summary; it has no standard error."""
        return Value(self.value)

    @property
    def value(self) -> float | None:
        """What the summary is of all queries; None without a query."""
        if not self.count:
            return None
        if self.summary == "sum":
            return Mean.of(self.values, self.counts).total / (1 << UNIT)
        if self.summary == "gm":
            logs = [math.log(max(one, FLOOR)) for one in self.values.tolist()]
            terms = [log * n for log, n in zip(logs, self.counts.tolist(), strict=True)]
            return math.exp(math.fsum([*terms, self._zeros * math.log(FLOOR)]) / self.count)
        if self.summary.startswith("above="):
            limit = float(self.summary.removeprefix("above="))
            return int(self.counts[self.values > limit].sum()) / self.count
        percent = 50.0 if self.summary == "median" else float(self.summary.removeprefix("p"))
        return self._quantile(percent / 100)

    @property
    def _zeros(self) -> int:
        return self.count - int(self.counts.sum())

    def _quantile(self, share: float) -> float:
        place = int(np.searchsorted(self.values, 0.0))
        values = np.insert(self.values, place, 0.0)
        ends = np.insert(self.counts, place, self._zeros).cumsum()
        at = share * (self.count - 1)
        low = min(int(at), self.count - 1)
        one, other = (
            float(values[np.searchsorted(ends, min(rank, self.count - 1), side="right")])
            for rank in (low, low + 1)
        )
        return one + (other - one) * (at - low)

    def check(self, row: state_rows.Row, prefix: str) -> None:
        """Raise UsageError if the values are not those of so many queries."""
        state_rows.same_length(row, f"{prefix}values", f"{prefix}counts")
        values = self.values
        if self._zeros < 0 or not np.isfinite(values).all() or (values == 0).any():
            raise state_rows.damaged(f"{prefix}values are not those of {self.count:,} queries")
