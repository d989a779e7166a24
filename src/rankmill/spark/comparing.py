"""compare() of DataFrames of Spark."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from rankmill.compare.compare import compare_part, compare_state
from rankmill.compare.comparison import Comparison
from rankmill.compare.cutting import cuts_of
from rankmill.compare.significance import TUKEY
from rankmill.compare.state import ComparisonState
from rankmill.engine.options import options_of
from rankmill.errors import RankmillError, UsageError
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.sources.facts import Kind
from rankmill.spark.layout import Side, arrow_schema
from rankmill.spark.merging import collected
from rankmill.spark.request import request_of
from rankmill.spark.rows import Returned, RowFormat
from rankmill.spark.run import evaluate
from rankmill.spark.tasks import inputs_of, partition, told


@options_of(evaluate, without=("per_query",))
def compare(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    baseline: str | None = None,
    tests: str | Iterable[str] = ("t",),
    correction: str = "holm",
    confidence: float = 0.95,
    margin: float | None = None,
    by: Any = (),
    worst_slices: int = 0,
    replicates: int = 10_000,
    seed: int = 0,
    **options: Any,
) -> Comparison:
    """Compare systems in DataFrames of Spark with a baseline, as `rankmill.compare` does.

    Each task joins the systems over its queries and returns exact sums, so that all values, tests
    and intervals have the same bits as on one machine.

    Parameters
    ----------
    labels, runs, metrics
        As for `rankmill.spark.evaluate_runs`. Metrics are means over queries, so no gap.
    baseline, tests, correction, confidence, margin, worst_slices, replicates, seed
        As for `rankmill.compare`.
    by : str or sequence of str
        Columns of the labels, or "label_count", "list_length" or "unpredicted".

    Returns
    -------
    Comparison
        As that of `rankmill.compare`, without the values of queries and those that moved. All
        other parameters and the errors are those of `rankmill.spark.evaluate`.
    """
    began = time.perf_counter()
    names = (tests,) if isinstance(tests, str) else tuple(tests)
    asked: dict[str, Any] = {"baseline": baseline, "by": by, "crossed": worst_slices > 0}
    asked |= {"tukey": TUKEY in names}
    settings: dict[str, Any] = {"tests": names, "correction": correction, "confidence": confidence}
    settings |= {"margin": margin, "worst_slices": worst_slices, "threads": None}
    settings |= {"replicates": replicates, "seed": seed}
    # What is wrong with the options is found before Spark reads a row.
    some = pa.table({"query": [0], "item": [[0]], **_columns_of(by, options["weight"])})
    few = compare_part(
        some, dict.fromkeys(runs, some.select(["query", "item"])), **asked, weight=options["weight"]
    )
    compare_state(few, **(settings | {"replicates": min(replicates, 10)}))
    facts: dict[str, Kind] = dict.fromkeys(cuts_of(by).columns, "segment")
    request = request_of(labels, runs, metrics, options | {"per_query": False}, facts)
    if request.job.pooled:
        raise UsageError("gap is no mean over queries: rankmill.compare compares it")
    rows, sides = request.rows(*range(len(request.sides)))
    form = RowFormat.of({"table": b""})
    asked |= {key: value for key, value in request.options.items() if key != "per_query"}
    task = Comparing(request.metrics, asked, tuple(sides), tuple(runs), arrow_schema(rows), form)
    found = collected(rows, task, Sent, form, request.partitions)
    state = Sent.from_row(found[0].fields or {}).state
    return replace(compare_state(state, **settings), seconds=time.perf_counter() - began)


def _columns_of(by: Any, weight: str | None) -> dict[str, Any]:
    cuts = cuts_of(by)
    if cuts.tables:
        raise UsageError("by names a table; on Spark, queries are cut by columns of the labels")
    return {name: ["a"] for name in cuts.columns} | ({} if weight is None else {weight: [1.0]})


@dataclass(frozen=True)
class Sent:
    """The state of a comparison that travels as an Arrow stream of its table."""

    state: ComparisonState

    def merge(self, other: Self) -> Self:
        """Return the state of the queries of both."""
        return type(self)(self.state.merge(other.state))

    def to_row(self) -> dict[str, Any]:
        """Return a row with the table."""
        table = self.state.to_table()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return {"table": sink.getvalue().to_pybytes()}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the state from a row that `to_row` made."""
        return cls(ComparisonState.from_table(pa.ipc.open_stream(row["table"]).read_all()))


@dataclass(frozen=True)
class Comparing:
    """What a task of a comparison does; see `Scoring`. `systems` are the names of the systems."""

    metrics: tuple[str, ...]
    options: Mapping[str, Any]
    sides: tuple[Side, ...]
    systems: tuple[str, ...]
    schema: Any
    form: RowFormat

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the state of the comparison over the queries of a partition, once."""
        where = partition()
        try:
            labels, *others = inputs_of(batches, self.schema, self.sides).values()
            runs = dict(zip(self.systems, others, strict=True))
            state = compare_part(labels, runs, self.metrics, **self.options)
            returned = [Returned(where, "", Sent(state).to_row())]
        except RankmillError as error:
            returned = [Returned(where, error=told(error, where))]
        yield self.form.batch(returned)
