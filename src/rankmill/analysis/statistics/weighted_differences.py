"""The differences of queries that count with weights."""

import math
from dataclasses import dataclass

from rankmill.analysis.statistics.paired_differences import Paired
from rankmill.metrics.aggregates.weighted_mean import WeightedMean


@dataclass(frozen=True, eq=False)
class WeightedPaired:
    """The differences of queries that count with weights.

    Attributes
    ----------
    weighted : WeightedMean
        Of the differences.
    products : Paired
        The differences times their weights, whose signs a randomization test flips. Queries of
        weight 0 are left out.
    """

    weighted: WeightedMean
    products: Paired

    @property
    def n(self) -> int:
        """The number of queries with a weight above 0."""
        return self.weighted.positive

    @property
    def effective(self) -> float:
        """The number of queries of equal weight that give a mean of the same variance."""
        return self.weighted.effective or 0.0

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the standard error."""
        return self.weighted.freedom

    @property
    def mean(self) -> float | None:
        """The correctly rounded weighted mean; None without queries."""
        return self.weighted.mean

    @property
    def standard_error(self) -> float | None:
        """The standard error of the weighted mean; None below two queries."""
        return self.weighted.standard_error

    @property
    def cohen_d(self) -> float | None:
        """The mean over the standard error, over the root of the effective number of queries."""
        error = self.standard_error
        if self.mean is None or not error or not self.effective:
            return None
        return self.mean / error / math.sqrt(self.effective)

    @property
    def all_zero(self) -> bool:
        """Whether there are queries, and none of them has a difference."""
        return self.products.all_zero

    @property
    def won(self) -> int:
        """The number of queries on which the system has a larger value than the baseline."""
        return self.products.won

    @property
    def tied(self) -> int:
        """The number of queries without a difference."""
        return self.products.tied

    @property
    def lost(self) -> int:
        """The number of queries on which the system has a smaller value than the baseline."""
        return self.products.lost


AnyPaired = Paired | WeightedPaired
