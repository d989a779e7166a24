"""Comparing on Spark: each task joins the systems over the queries of its partition."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.moved_queries import MovedRows, merged_rows
from rankmill.analysis.compare.queries.join import Joined, Reading, join_runs
from rankmill.engine.cuts import Cuts
from rankmill.engine.job import Job
from rankmill.engine.state import State
from rankmill.metrics.registry import parse
from rankmill.nightly.rules.baseline import Baseline
from rankmill.nightly.rules.earlier_values import with_table
from rankmill.records import record
from rankmill.sources.nouns import Labels, Predictions
from rankmill.spark.exchange.layout import TRAIN, Form
from rankmill.spark.exchange.returned_rows import Returned
from rankmill.spark.exchange.tasks import (
    check_seen,
    input_of,
    odd_ids,
    partition,
    seals_of,
    tables_of,
    with_training,
)
from rankmill.threads import Workers

# What sides besides those that are scored are called: tables of slices, the popularity of labels,
# and the values by query of an earlier run.
TABLE, POPULARITY, EARLIER = "by ", "popularity", "earlier"


@record(frozen=True)
class Joining:
    """How a task joins the systems over the queries of a partition."""

    job: Job
    form: Form  # its sides are the labels, the systems, and tables of slices
    systems: tuple[str, ...]
    baseline: str
    cuts: Cuts  # without the tables, which come with the rows
    # An earlier run whose values by query come with the rows: the baseline of the only system.
    earlier: Baseline | None = None

    def join(self, batches: Iterator[Any]) -> tuple[Joined, dict[str, int]]:
        """Return the systems over the queries of a partition, and the rows of each side."""
        tables = tables_of(batches, self.form)
        rows = {side: one.num_rows for side, one in tables.items()}
        several = 1 + len(self.systems)
        inputs = {  # the labels, the systems and what queries had in training, among the sides
            side.system: input_of(tables.pop(side.system), side)
            for number, side in enumerate(self.form.sides)
            if number < several or side.system == TRAIN
        }
        others = {
            side.system: side.read(tables[side.system])
            for side in self.form.sides
            if side.system in tables
        }
        job = with_training(self.job, inputs)
        labels, *runs = inputs.values()
        cuts = self.cuts._replace(
            tables=tuple(one for side, one in others.items() if side.startswith(TABLE)),
            popularity=others.get(POPULARITY),
        )
        systems = {name: Predictions(one) for name, one in zip(self.systems, runs, strict=True)}
        found = join_runs(job, Labels(labels), systems, self.baseline, cuts, Reading(threads=1))
        if self.earlier is not None:
            earlier = replace(self.earlier, table=others[EARLIER])
            found = with_table(found, earlier, part=True)
        return found, rows


@record(frozen=True)
class Findings:
    """What some queries of a comparison add up to."""

    state: ComparisonState
    states: Mapping[str, State]  # those of the systems that were scored
    moved: MovedRows  # the queries that moved most, by metric and system, up to `count` each
    count: int
    rows: Mapping[str, int]  # how many were read of each side
    # Those of the queries of each of two systems, also of those that do not count for both.
    alone: Mapping[str, ComparisonState]

    @classmethod
    def of(
        cls,
        joined: Joined,
        rows: Mapping[str, int],
        count: int,
        *,
        crossed: bool,
        alone: bool,
        moments: Collection[str] | None = None,
    ) -> Self:
        """Return what the queries of a join add up to; the options are those of `systems.join`."""
        with Workers(1) as workers:
            state = joined.state(workers, crossed=crossed, moments=moments)
            moved = joined.moved_rows(count, workers)
            each = {}
            if alone:
                each = joined.states_alone(workers, crossed=crossed, moments=moments)
            return cls(state, joined.states, moved, count, rows, each)

    def merge(self, other: Self) -> Self:
        """Return the same of the queries of both."""
        moved = {
            task: merged_rows([rows, other.moved[task]], self.count, parse(task[0]).better)
            for task, rows in self.moved.items()
        }
        states = {name: one.merge(other.states[name]) for name, one in self.states.items()}
        rows = {side: count + other.rows[side] for side, count in self.rows.items()}
        state = self.state.merge(other.state)
        alone = {name: one.merge(other.alone[name]) for name, one in self.alone.items()}
        return type(self)(state, states, moved, self.count, rows, alone)


def find(
    batches: Iterator[Any], joining: Joining, count: int, how: Mapping[str, Any]
) -> Iterator[Returned]:
    """Yield what the queries of a partition add up to; `how` are the options of `Findings.of`."""
    joined, rows = joining.join(batches)
    yield Returned(
        partition(),
        "",
        Findings.of(joined, rows, count, **how),
        seals=seals_of(joining.job, joined.states.values()),
        odd=odd_ids(joining.form.sides),
    )


def values_of(
    batches: Iterator[Any], joining: Joining, schema: Any, seals: frozenset[int] | None
) -> Iterator[Any]:
    """Yield the values of the queries of a partition for all systems, as in `schema`."""
    joined, _ = joining.join(batches)
    check_seen(seals_of(joining.job, joined.states.values()), seals)
    yield from joined.aligned.table().cast(schema).to_batches()
