"""The exact mean over queries, and the ratio of what all count together to all their divisors."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np

from rankmill.metrics.aggregate import (
    Aggregate,
    AggregateSettings,
    Closing,
    Ratio,
    ScoredBlock,
    Totals,
    Value,
)
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.record import Count, SignedSum, Sum

# Every float64 is a multiple of 2**-UNIT, and its square is a multiple of 2**-(2 * UNIT).
UNIT = 1074
BINS = (2048, 8)


@dataclass(frozen=True)
class Mean(Aggregate):
    """A count, the exact sum and the exact sum of squares of float64 values.

    The sums are integers, so merging is associative and commutative. The bits do not depend on the
    number of threads, the batches or the order of files.

    Examples
    --------
    >>> import numpy as np
    >>> halves = Mean.of(np.array([0.5, 1.0])).merge(Mean.of(np.array([0.1])))
    >>> halves.mean
    0.5333333333333333
    """

    count: Count = 0  # of values, including zeros
    total: Sum = 0  # in units of 2**-1074
    squares: Sum = 0  # in units of 2**-2148

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the mean with the values of a block; `close` sets the count of queries."""
        assert scored.values is not None
        return self.add(scored.values, scored.counts)

    def add(self, values: np.ndarray, counts: np.ndarray | None) -> Self:
        """Return the mean with values; `close` sets the count of queries."""
        found = self.of(values, counts)
        return type(self)(self.count, self.total + found.total, self.squares + found.squares)

    def close(self, closing: Closing) -> Self:
        """Return the mean with its count and its ones; queries never added score 0."""
        total = self.total + (closing.ones << UNIT)
        squares = self.squares + (closing.ones << (2 * UNIT))
        return type(self)(self.count + closing.queries, total, squares)

    def finish(self, totals: Totals) -> Value:
        """Return the mean and its standard error."""
        return Value(self.mean, self.standard_error)

    def ratio(self) -> Ratio | None:
        """Return the value as a ratio of sums over queries; None if it has none."""
        if not self.count:
            return None
        return Ratio(Fraction(self.total, self.count << UNIT), Fraction(self.count), self.count)

    @classmethod
    def of(cls, values: np.ndarray, counts: np.ndarray | None = None) -> Self:
        """Return the mean of finite float64 values; value i counts counts[i] times, or once."""
        from rankmill.kernels.exact import accumulate

        count = len(values) if counts is None else int(counts.sum())
        if counts is None:
            counts = np.ones(len(values), np.int64)
        bins = np.zeros(BINS, np.int64)
        bits = np.ascontiguousarray(values, np.float64).view(np.int64)
        first, end = accumulate(bits, counts, bins)
        total = squares = 0
        for exponent, parts in enumerate(bins[first:end].tolist(), first):
            if not any(parts):
                continue
            mantissas, high, middle, low = (
                parts[i] + (parts[i + 1] << 32) for i in range(0, len(parts), 2)
            )
            shift = max(exponent, 1) - 1
            total += mantissas << shift
            squares += ((high << 54) + (middle << 27) + low) << (2 * shift)
        return cls(count, total, squares)

    def check(self, row: state_rows.Row, prefix: str) -> None:
        """Raise UsageError if no values have these sums."""
        if self.count * self.squares < self.total**2:
            raise state_rows.damaged(f"{prefix}squares is less than {prefix}total allows")

    @property
    def mean(self) -> float | None:
        """The correctly rounded mean, or None without values."""
        return self.total / (self.count << UNIT) if self.count else None

    @property
    def freedom(self) -> float:
        """The degrees of freedom of its standard error."""
        return self.count - 1.0

    @property
    def standard_error(self) -> float | None:
        """The sample standard deviation over the square root of the count; None below two values.

        The variance is exact and is rounded only once.
        """
        if self.count < 2:
            return None
        scatter = self.count * self.squares - self.total * self.total
        # The variance is scatter / (count (count - 1) 2**2148). Over count, it is the mean's.
        return math.sqrt(scatter / ((self.count * self.count * (self.count - 1)) << (2 * UNIT)))


@dataclass(frozen=True)
class SignedMean(Mean):
    """The mean of values of which some may be below 0."""

    total: SignedSum = 0


@dataclass(frozen=True)
class MicroAverage(Aggregate):
    """The exact sums of what queries count, of their divisors, and of the squares of both.

    They are in units of 2**-1074, and of 2**-2148 for squares. With weights, each query counts its
    weight times.

    Examples
    --------
    >>> import numpy as np
    >>> sums = MicroAverage.of(np.array([1.0, 2.0, 0.0]), np.array([2.0, 2.0, 4.0]))
    >>> one = replace(sums, queries=3)
    >>> one.value, round(one.standard_error, 6)
    (0.375, 0.301364)
    """

    queries: Count = 0  # the number of queries, which with weights are those with one above 0
    # The sum of what queries count, such as hits, and of what that is divided by.
    counted: Sum = 0
    divisors: Sum = 0
    # The sums of the squares of these, and of the two of a query together.
    counted_squares: Sum = 0
    divisor_squares: Sum = 0
    both_squares: Sum = 0

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the sums with a block; `close` sets the number of queries."""
        assert scored.values is not None
        assert scored.divisors is not None
        return self.merge(self.of(scored.values, scored.divisors, scored.counts, scored.weights))

    @classmethod
    def of(
        cls,
        counted: np.ndarray,
        divisors: np.ndarray,
        counts: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> Self:
        """Return the sums of some queries, whose number `close` sets."""
        if weights is not None:
            counted, divisors = counted * weights, divisors * weights
        one, other, both = (
            Mean.of(each, counts) for each in (counted, divisors, counted + divisors)
        )
        return cls(0, one.total, other.total, one.squares, other.squares, both.squares)

    def close(self, closing: Closing) -> Self:
        """Return the sums with the number of queries; those without labels add nothing."""
        queries = closing.weights.positive if closing.weights.total else closing.queries
        return replace(self, queries=self.queries + queries)

    def finish(self, totals: Totals) -> Value:
        """Return the ratio of the sums and its standard error."""
        return Value(self.value, self.standard_error)

    def ratio(self) -> Ratio | None:
        """Return the value as a ratio of sums over queries; None if it has none."""
        if not self.divisors:
            return None
        divisor = Fraction(self.divisors, 1 << UNIT)
        return Ratio(Fraction(self.counted, self.divisors), divisor, self.queries)

    @property
    def value(self) -> float | None:
        """The correctly rounded ratio of the sums; None if the divisors are all 0."""
        return self.counted / self.divisors if self.divisors else None

    @property
    def standard_error(self) -> float | None:
        """The linearised standard error of a ratio of two sums; None below two queries.

        It is sqrt(n / (n - 1) sum((counted - ratio divisor)**2)) / sum(divisor): Cochran, Sampling
        Techniques, 3rd ed. 1977, chapter 6.
        """
        n, above, below = self.queries, self.counted, self.divisors
        if n < 2 or not below:
            return None
        twice = self.both_squares - self.counted_squares - self.divisor_squares
        scatter = self.counted_squares * below**2 - above * below * twice
        scatter += self.divisor_squares * above**2
        return math.sqrt(n * max(0, scatter) / ((n - 1) * below**4))

    def check(self, row: state_rows.Row, prefix: str) -> None:
        """Raise UsageError if no queries have these sums."""
        sums = (self.counted, self.counted_squares), (self.divisors, self.divisor_squares)
        if any(squares > total**2 for total, squares in sums):
            raise state_rows.damaged(f"{prefix}squares are more than the sums allow")
