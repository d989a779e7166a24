"""The exact mean over queries, without and with weights.

And the ratio of what all count together to all their divisors.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from rankmill.metrics.aggregate import (
    Aggregate,
    AggregateSettings,
    Closing,
    Ratio,
    ScoredBlock,
    Totals,
    Value,
    WeightSums,
)
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.record import Count, SignedSum, Sum
from rankmill.records import record

# Every float64 is a multiple of 2**-UNIT, and its square is a multiple of 2**-(2 * UNIT).
UNIT = 1074
BINS = (2048, 8)


class ExactMean(Aggregate):
    """The mean of float64 values, each with its weight: exact sums, which are rounded only once.

    The sums are integers, so merging is associative and commutative. The bits do not depend on the
    number of threads, the batches or the order of files.
    """

    weight_unit: ClassVar[int] = 0

    @property
    def sums(self) -> tuple[int, int, int, int, int, int]:
        """How many values have a weight above 0; and the sums of w, w**2, w v, w**2 v, w**2 v**2.

        They are in units of 2**-1074 for each value, and of 2**-`weight_unit` for each weight.
        """
        raise NotImplementedError

    @property
    def effective(self) -> float | None:
        """The effective number of queries; None without weights, where it is their number."""
        return None

    def finish(self, totals: Totals) -> Value:
        """Return the mean, its standard error and the effective number of queries."""
        return Value(self.mean, self.standard_error, effective=self.effective)

    def ratio(self) -> Ratio | None:
        """Return the value as a ratio of sums over queries; None if it has none."""
        n, w, _, wv, *_ = self.sums
        return Ratio(Fraction(wv, w << UNIT), Fraction(w, 1 << self.weight_unit), n) if w else None

    @property
    def mean(self) -> float | None:
        """The correctly rounded mean, sum(w v) / sum(w); None without values, or weights."""
        _, w, _, wv, *_ = self.sums
        return wv / (w << UNIT) if w else None

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None below two weights above 0.

        It is sqrt(n / (n - 1) sum(w**2 (v - mean)**2)) / sum(w), the linearised error of a ratio of
        two sums: Cochran, Sampling Techniques, 3rd ed. 1977, chapter 6. With equal weights it is
        the sample standard deviation over sqrt(n). What stands under the root is exact and is
        rounded only once.
        """
        n, w, *_ = self.sums
        if n < 2:
            return None
        # Values count twice in the scatter, and weights four times in both.
        return math.sqrt(n * self._scatter / ((n - 1) * w**4 << (2 * UNIT)))

    @property
    def _scatter(self) -> int:
        """The sum of w**2 (v - mean)**2, times the square of the sum of weights."""
        _, w, ww, wv, wwv, wwvv = self.sums
        return w**2 * wwvv - 2 * w * wv * wwv + ww * wv**2

    @property
    def freedom(self) -> float:
        """The degrees of freedom of its standard error; 0 without weights."""
        n, *_ = self.sums
        return freedom_of(n, self.effective or float(n)) if n else 0.0


@record(frozen=True)
class Mean(ExactMean):
    """A count, the exact sum and the exact sum of squares of float64 values.

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

    @property
    def sums(self) -> tuple[int, int, int, int, int, int]:
        """The sums of values that each have the weight 1."""
        return self.count, self.count, self.count, self.total, self.total, self.squares

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


@record(frozen=True)
class SignedMean(Mean):
    """The mean of values of which some may be below 0."""

    total: SignedSum = 0


@record(frozen=True)
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


WEIGHTED_BINS = (6136, 18)
# For each column of the bins: which sum it is of, how many times the exponent of the bin counts,
# and which limb of 27 bits it is.
COLUMNS = [
    (which, times, 27 * limb)
    for which, times, limbs in ((0, 1, 4), (1, 1, 6), (2, 2, 8))
    for limb in range(limbs)
]


@record(frozen=True)
class WeightedMean(ExactMean):
    """The exact sums of w, w**2, w v, w**2 v and w**2 v**2 over queries of value v and weight w.

    Examples
    --------
    >>> import numpy as np
    >>> one = WeightedMean.of(np.array([1.0, 0.5]), np.array([3.0, 1.0]))
    >>> both = one.merge(WeightedMean.of(np.array([0.0]), np.array([4.0])))
    >>> both.mean, both.effective
    (0.4375, 2.4615384615384617)
    """

    weight_unit = UNIT

    positive: Count = 0  # the number of queries with a weight above 0; only these count
    # The sum of weights in units of 2**-1074, and of their squares in units of 2**-2148.
    w: SignedSum = 0
    ww: SignedSum = 0
    # The sums of products, in units of 2**-2148, 2**-3222 and 2**-4296.
    wv: SignedSum = 0
    wwv: SignedSum = 0
    wwvv: SignedSum = 0

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the mean with the values of a block; `close` adds the weights of queries."""
        assert scored.values is not None
        assert scored.weights is not None
        return self.merge(self._products(scored.values, scored.weights))

    def close(self, closing: Closing) -> Self:
        """Return the mean with the weights of all queries that count, and of those that score 1.

        Queries whose values were never added score 0.
        """
        ones = closing.weights_of_ones
        # The sums are those of v = 1, which is 2**UNIT units.
        wv, wwv = ones.total << UNIT, ones.squares << UNIT
        of_ones = type(self)(wv=wv, wwv=wwv, wwvv=wwv << UNIT)
        return self.merge(of_ones).merge(type(self)(*closing.weights))

    @property
    def sums(self) -> tuple[int, int, int, int, int, int]:
        """The number of weights above 0, and the sums."""
        return self.positive, self.w, self.ww, self.wv, self.wwv, self.wwvv

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray) -> Self:
        """Return the mean of finite float64 values; weights are finite and not negative."""
        return cls._products(values, weights).merge(cls(*sum_weights(weights)))

    @classmethod
    def _products(cls, values: np.ndarray, weights: np.ndarray) -> Self:
        """Return the sums that depend on values; the others are 0."""
        from rankmill.kernels.exact import accumulate_weighted

        bits = (np.ascontiguousarray(one, np.float64).view(np.int64) for one in (values, weights))
        bins = np.zeros(WEIGHTED_BINS, np.int64)
        accumulate_weighted(*bits, bins)
        limbs = bins.reshape(-1)
        places = np.flatnonzero(limbs)
        sums = [0, 0, 0]
        for place, limb in zip(places.tolist(), limbs[places].tolist(), strict=True):
            exponent, column = divmod(place, len(COLUMNS))
            which, times, shift = COLUMNS[column]
            sums[which] += limb << (times * exponent + shift)
        return cls(0, 0, 0, *sums)

    def check(self, row: state_rows.Row, prefix: str) -> None:
        """Raise UsageError if no queries have these sums."""
        n, w, ww, wv, wwv, wwvv = self.sums
        possible = min(w, ww, wwvv) >= 0 and ww <= w * w <= n * ww
        # As far as the result depends on it.
        possible &= wv * wv <= n * wwvv and wwv * wwv <= ww * wwvv and self._scatter >= 0
        if not possible:
            raise state_rows.damaged(
                f"{prefix}w, ww, wv, wwv, wwvv are not sums of the same queries"
            )

    @property
    def effective(self) -> float | None:
        """The effective number of queries, sum(w)**2 / sum(w**2); None if all weights are 0.

        So many queries of equal weight give a mean of the same variance: Kish, Survey Sampling,
        1965.
        """
        return self.w**2 / self.ww if self.w else None


def freedom_of(queries: int, effective: float) -> float:
    """Return the degrees of freedom of a t test with weights, given how many queries have one.

    With equal weights they are one less than the queries. The more weights differ, the less the
    effective number of queries (Kish) says of the spread, which a few large weights decide: then
    they are down to a third of it. Kish's number itself rejects up to 9 % at 5 %, and this one up
    to 6 %, from 10 effective queries on (``benchmarks/verdicts.py``).

    Examples
    --------
    >>> freedom_of(20, 20.0), round(freedom_of(500, 20.0), 2)
    (19.0, 6.51)
    """
    return (effective - 1) / (1 + 2 * (1 - effective / queries))


def sum_weights(weights: np.ndarray) -> WeightSums:
    """Return the number of weights above 0, and the exact sums of weights and their squares."""
    sums = Mean.of(weights)
    return WeightSums(int(np.count_nonzero(weights)), sums.total, sums.squares)
