"""Comparing on Spark: each task joins the systems over the queries of its partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rankmill.compare.cutting import Cuts
from rankmill.compare.joined import Joined, join
from rankmill.errors import RankmillError
from rankmill.spark.found import Found
from rankmill.spark.layout import Side
from rankmill.spark.rows import Returned, RowFormat
from rankmill.spark.tasks import inputs_of, partition, told

# What the sides of tables of slices are called, and of that with the popularity of labels.
TABLE, POPULARITY = "by", "popularity"


@dataclass(frozen=True)
class Joining:
    """How a task joins the systems over the queries of a partition.

    Attributes
    ----------
    metrics : tuple of str
    options : dict
        All options of `rankmill.evaluate`, with one thread.
    sides : tuple of Side
        The labels, the systems, and tables of slices.
    schema : pyarrow.Schema
        Of the rows of the shuffle.
    systems : tuple of str
    baseline : str
    cuts : Cuts
        Without the tables, which come with the rows.
    """

    metrics: tuple[str, ...]
    options: Mapping[str, Any]
    sides: tuple[Side, ...]
    schema: Any
    systems: tuple[str, ...]
    baseline: str
    cuts: Cuts

    def join(self, batches: Iterator[Any]) -> tuple[Joined, dict[str, int]]:
        """Return the systems over the queries of a partition, and the rows of each side."""
        inputs = inputs_of(batches, self.schema, self.sides)
        rows = {side: one.source.rows or 0 for side, one in inputs.items()}
        tables = [one.source for side, one in inputs.items() if side.startswith(f"{TABLE} ")]
        known = inputs.get(POPULARITY)
        cuts = self.cuts._replace(
            tables=tuple(tables), popularity=None if known is None else known.source
        )
        runs = {name: inputs[f"run {name}"] for name in self.systems}
        options = dict(self.options)
        found = join(inputs[""], runs, self.metrics, self.baseline, cuts, options, part=True)
        return found, rows


@dataclass(frozen=True)
class Comparing:
    """What a task of a comparison does.

    Attributes
    ----------
    joining : Joining
    count : int
        How many of the queries that moved most are found, up and down.
    crossed, values : bool
        Whether slices of two ways to cut are needed, and the values that Tukey's test takes.
    """

    joining: Joining
    count: int
    crossed: bool
    values: bool

    def found(self, batches: Iterator[Any]) -> Found:
        """Return what the queries of a partition add up to."""
        joined, rows = self.joining.join(batches)
        return Found.of(joined, rows, self.count, crossed=self.crossed, values=self.values)


@dataclass(frozen=True)
class Sending:
    """A task that yields what another one finds as a row, or its error."""

    comparing: Comparing
    form: RowFormat

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield what the queries of a partition add up to, once."""
        where = partition()
        try:
            returned = Returned(where, "", self.comparing.found(batches).to_row())
        except RankmillError as error:
            returned = Returned(where, error=told(error, where))
        yield self.form.batch([returned])
