"""Comparing on Spark: each task joins the systems over the queries of its partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rankmill.analysis.compare.queries.join import Joined, Reading, join_runs
from rankmill.engine.cuts import Cuts
from rankmill.engine.job import Job
from rankmill.errors import RankmillError
from rankmill.nightly.rules.baseline import Baseline
from rankmill.nightly.rules.earlier_values import with_table
from rankmill.sources.nouns import Labels, Predictions
from rankmill.spark.exchange.findings import Findings
from rankmill.spark.exchange.layout import TRAIN, Side
from rankmill.spark.exchange.returned_rows import Returned
from rankmill.spark.exchange.tasks import input_of, partition, tables_of, told, with_training

# What sides besides those that are scored are called: tables of slices, the popularity of labels,
# and the values by query of an earlier run.
TABLE, POPULARITY, EARLIER = "by ", "popularity", "earlier"


@dataclass(frozen=True)
class Joining:
    """How a task joins the systems over the queries of a partition.

    Attributes
    ----------
    job : Job
    sides : tuple of Side
        The labels, the systems, and tables of slices.
    schema : pyarrow.Schema
        Of the rows of the shuffle.
    systems : tuple of str
    baseline : str
    cuts : Cuts
        Without the tables, which come with the rows.
    earlier : Baseline or None
        An earlier run whose values by query come with the rows: the baseline of the only system.
    """

    job: Job
    sides: tuple[Side, ...]
    schema: Any
    systems: tuple[str, ...]
    baseline: str
    cuts: Cuts
    earlier: Baseline | None = None

    def join(self, batches: Iterator[Any]) -> tuple[Joined, dict[str, int]]:
        """Return the systems over the queries of a partition, and the rows of each side."""
        tables = tables_of(batches, self.schema, self.sides)
        rows = {side: one.num_rows for side, one in tables.items()}
        inputs = {side.system: input_of(tables.pop(side.system), side) for side in self.scored}
        job = with_training(self.job, inputs)
        labels, *runs = inputs.values()
        cuts = self.cuts._replace(
            tables=tuple(one for side, one in tables.items() if side.startswith(TABLE)),
            popularity=tables.get(POPULARITY),
        )
        systems = {name: Predictions(one) for name, one in zip(self.systems, runs, strict=True)}
        found = join_runs(job, Labels(labels), systems, self.baseline, cuts, Reading(threads=1))
        if self.earlier is not None:
            earlier = replace(self.earlier, table=tables[EARLIER])
            found = with_table(found, earlier, part=True)
        return found, rows

    @property
    def scored(self) -> tuple[Side, ...]:
        """The labels, the systems and what queries had in training, among the sides."""
        several = 1 + len(self.systems)
        return self.sides[:several] + tuple(s for s in self.sides[several:] if s.system == TRAIN)


def find(
    batches: Iterator[Any], joining: Joining, count: int, how: Mapping[str, bool]
) -> Iterator[Returned]:
    """Yield what the queries of a partition add up to; `how` are the options of `Findings.of`."""
    joined, rows = joining.join(batches)
    yield Returned(partition(), "", Findings.of(joined, rows, count, **how))


def values_of(batches: Iterator[Any], joining: Joining, schema: Any) -> Iterator[Any]:
    """Yield the values of the queries of a partition for all systems, as in `schema`."""
    try:
        joined, _ = joining.join(batches)
    except RankmillError as error:
        raise told(error, partition()) from None
    yield from joined.aligned.table().cast(schema).to_batches()
