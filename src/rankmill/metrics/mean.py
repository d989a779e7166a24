"""The exact, mergeable state of a mean over queries."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

# Every float64 is a whole number of 2**-UNIT; its square one of 2**-(2 * UNIT).
UNIT = 1074
BINS = (2048, 8)


@dataclass(frozen=True)
class MeanState:
    """A count, the exact sum and the exact sum of squares of float64 values.

    The sums are integers, so merging is associative and commutative, and any number of threads,
    any batches and any order of files give the same bits.

    Attributes
    ----------
    count : int
        Number of values, zeros included.
    total : int
        Sum of the values, in units of 2**-1074.
    squares : int
        Sum of the squared values, in units of 2**-2148.

    Examples
    --------
    >>> import numpy as np
    >>> halves = MeanState.of(np.array([0.5, 1.0])).merge(MeanState.of(np.array([0.1])))
    >>> halves.mean
    0.5333333333333333
    """

    count: int = 0
    total: int = 0
    squares: int = 0

    @classmethod
    def of(cls, values: np.ndarray, counts: np.ndarray | None = None) -> Self:
        """The state of finite float64 values, value i taken counts[i] times or once."""
        from rankmill.kernels.exact import accumulate

        if counts is None:
            counts = np.ones(len(values), np.int64)
        bins = np.zeros(BINS, np.int64)
        accumulate(np.ascontiguousarray(values, np.float64).view(np.int64), counts, bins)
        total = squares = 0
        for exponent in np.flatnonzero(bins.any(axis=1)).tolist():
            parts = bins[exponent].tolist()
            mantissas, high, middle, low = (
                parts[i] + (parts[i + 1] << 32) for i in range(0, len(parts), 2)
            )
            shift = max(exponent, 1) - 1
            total += mantissas << shift
            squares += ((high << 54) + (middle << 27) + low) << (2 * shift)
        return cls(int(counts.sum()), total, squares)

    def merge(self, other: Self) -> Self:
        """The state of the values of both."""
        return type(self)(
            self.count + other.count, self.total + other.total, self.squares + other.squares
        )

    def to_row(self) -> dict[str, object]:
        """A flat row for Arrow: count as int64, both sums as decimal text, which no type rounds."""
        return {"count": self.count, "total": str(self.total), "squares": str(self.squares)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The state that `to_row` made the row of."""
        return cls(int(row["count"]), int(row["total"]), int(row["squares"]))

    @property
    def mean(self) -> float | None:
        """The correctly rounded mean; None of no values."""
        return self.total / (self.count << UNIT) if self.count else None

    @property
    def standard_error(self) -> float | None:
        """The sample standard deviation over the square root of the count; None below two values.

        The variance is exact until it is rounded once.
        """
        if self.count < 2:
            return None
        scatter = self.count * self.squares - self.total * self.total
        # The variance is scatter / (count (count - 1) 2**2148); the mean's is that over count.
        return math.sqrt(scatter / ((self.count * self.count * (self.count - 1)) << (2 * UNIT)))
