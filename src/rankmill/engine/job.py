"""What is to be computed, and how: asked for once, and the same for all that follows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rankmill.errors import UsageError, positive
from rankmill.metrics.aggregate import Aggregate, Asked, aggregate_of
from rankmill.metrics.base import NO_CUTOFF, Metric
from rankmill.metrics.gap import ORDERED_TIES
from rankmill.metrics.registry import check_defined, parse_all
from rankmill.semantics.choices import Semantics
from rankmill.semantics.presets import semantics_of
from rankmill.sources.inputs import MEMORY, Input, open_inputs

GAIN_FUNCTIONS = ("linear", "exp")

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Job:
    """What to compute.

    Attributes
    ----------
    metrics : tuple of Metric
        In the order asked for.
    semantics, gain_function, memory
    keep_values : bool
        Whether the values a query are kept.
    keep_rows : bool
        Whether every prediction is kept with its ids, where a metric is over all of them.
    part : bool
        Whether there are other queries elsewhere, so that there may be no label here.
    """

    metrics: tuple[Metric, ...]
    semantics: Semantics
    gain_function: str = "linear"
    memory: int = MEMORY
    keep_values: bool = True
    keep_rows: bool = False
    part: bool = False

    @property
    def per_query(self) -> list[Metric]:
        """The metrics with a value a query."""
        return [metric for metric in self.metrics if metric.spec.kernel]

    @property
    def pooled(self) -> list[Metric]:
        """The metrics over all predictions in one list, by confidence."""
        return [metric for metric in self.metrics if aggregate_of(metric).needs_confidences]

    @property
    def needs_judged(self) -> bool:
        """Whether a metric asks for judged items of gain 0 or less."""
        return any(metric.spec.needs_judged for metric in self.metrics)

    @property
    def limit(self) -> int:
        """The last rank whose hits any metric looks at."""
        if self.semantics.ties_open:  # hits of higher ranks may move up
            return NO_CUTOFF
        return max(metric.limit for metric in self.metrics)

    @property
    def largest_cutoff(self) -> int:
        """The largest cutoff asked for, 0 without one."""
        return max((metric.limit if metric.k else 0) for metric in self.metrics)

    @property
    def holds_rows(self) -> str:
        """Who needs every prediction with its ids, for an error to say; empty if nobody does."""
        if self.pooled and self.semantics.gap_ties in ORDERED_TIES:
            return f"gap_ties {self.semantics.gap_ties!r}"
        return "gap row by row" if self.pooled and self.keep_rows else ""

    @property
    def asked(self) -> dict[str, Asked]:
        """How the aggregate of each metric is to be made; memory for confidences is shared."""
        memory = 0 if self.part else self.memory // max(1, len(self.pooled))
        more = (memory, self.holds_rows, self.part)
        return {metric.text: Asked(metric, self.semantics, *more) for metric in self.metrics}

    def aggregates(self) -> dict[str, Aggregate]:
        """The aggregate of each metric, of no query yet."""
        return {name: aggregate_of(one.metric).init(one) for name, one in self.asked.items()}


def make_job(
    metrics: str | Iterable[str],
    *,
    semantics: str | Semantics | Mapping[str, str] = "default",
    gain_function: str = "linear",
    memory: int = MEMORY,
    per_query: bool = True,
    **more: Any,
) -> Job:
    """Check what was asked for; `more` are fields of `Job`.

    Raises
    ------
    UsageError
        If a metric, a choice or a number is not one there is.
    """
    asked = parse_all(metrics)
    memory = positive(memory, "memory")
    if gain_function not in GAIN_FUNCTIONS:
        raise UsageError(f"unknown gain_function {gain_function!r}; expected 'linear' or 'exp'")
    counting = semantics_of(semantics)
    for metric in asked:
        check_defined(metric, counting)
    return Job(tuple(asked), counting, gain_function, memory, per_query, **more)


def open_job(
    job: Job, labels: Any, runs: Mapping[str, Any], columns: Mapping[str, Any]
) -> tuple[Input, dict[str, Input]]:
    """Open the labels and the predictions of each system, as the job needs them."""
    return open_inputs(
        labels,
        runs,
        need_score=bool(job.pooled),
        semantics=job.semantics,
        may_be_empty=job.part,
        **columns,
    )
