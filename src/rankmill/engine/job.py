"""What is to be computed, and how."""

from dataclasses import dataclass

from rankmill.metrics.registry import NO_CUTOFF, Metric
from rankmill.semantics.choices import Semantics


@dataclass(frozen=True)
class Plan:
    """What to compute: metrics with one value a query, and those over all predictions.

    ``part`` says that there are other queries elsewhere, so that there may be no label here.
    """

    per_query: list[Metric]
    pooled: list[Metric]
    keep_values: bool
    memory: int
    semantics: Semantics
    gain_function: str = "linear"
    every_row: bool = False
    part: bool = False

    @property
    def limit(self) -> int:
        """The last rank whose hits any metric looks at."""
        if self.semantics.ties_open:  # hits of higher ranks may move up
            return NO_CUTOFF
        return max(metric.limit for metric in (*self.per_query, *self.pooled))

    @property
    def ordered_ties(self) -> bool:
        """Whether gap needs every prediction with its ids, not only counts of confidences."""
        return self.semantics.gap_ties in ("given", "ids") and bool(self.pooled)

    @property
    def keep_rows(self) -> bool:
        """Whether to keep every prediction with its ids, for gap or to show them."""
        return self.ordered_ties or (self.every_row and bool(self.pooled))

    @property
    def largest_cutoff(self) -> int:
        """The largest cutoff asked for, 0 without one."""
        return max((metric.limit if metric.k else 0) for metric in (*self.per_query, *self.pooled))
