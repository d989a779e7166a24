"""Slices of a result and weighted sums of metrics: as a table, as rows and as shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from rankmill.show.tables import Cell, Column, Part, Table

if TYPE_CHECKING:
    import pyarrow as pa

REACH = NormalDist().inv_cdf(0.975)
"""How many standard errors a 95% interval reaches to each side."""
UNKNOWN = "(unknown)"
"""The value of a slice of queries for which it is not known."""


class WeightedSum(NamedTuple):
    """The value of a weighted sum of metrics, its standard error and its 95% interval."""

    value: float
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None


def weighted_sum(value: float, error: float | None) -> WeightedSum:
    """Return a weighted sum with the interval that its standard error gives."""
    if error is None:
        return WeightedSum(value)
    return WeightedSum(value, error, value - REACH * error, value + REACH * error)


class MetricOfSlice(NamedTuple):
    """A metric in one slice: a row of `Result.by`."""

    by: str
    slice: str | None
    metric: str
    value: float | None
    standard_error: float | None
    queries: int


def table_of_slices(rows: Iterable[Any]) -> pa.Table:
    """Return slices as the table that `Result.by` is."""
    import pyarrow as pa

    from rankmill.columns.buffers import table_of

    kinds = [*[pa.string()] * 3, *[pa.float64()] * 2, pa.int64()]
    schema = pa.schema([*zip(MetricOfSlice._fields, kinds, strict=True)])
    rows = [one if isinstance(one, Mapping) else one._asdict() for one in rows]
    return table_of(rows, schema)


def slice_parts(results: Mapping[str, Any]) -> list[Part]:
    """Return sums and slices of a `Result` of each system as tables, each with an empty line."""
    first = next(iter(results.values()))
    several = len(results) > 1
    system = [Column("system")] if several else []
    parts: list[Part] = []
    rows: list[list[Cell]] = []
    if first.sums:
        for sum_name in first.sums:
            for name, one in results.items():
                value, error, low, high = one.sums[sum_name]
                interval = None if low is None or high is None else (low, high)
                rows.append([sum_name, *([name] if several else []), value, error, interval])
        columns = [Column("value", "value"), Column("standard error", "error")]
        columns.append(Column("95% interval", "range"))
        parts += [Table([Column("sum"), *system, *columns], rows), ""]
    if first.by is None:
        return parts
    for by in dict.fromkeys(one["by"] for one in first.by.to_pylist()):
        parts += [_slices_of(by, results), ""]
    return parts


def _slices_of(by: str, results: Mapping[str, Any]) -> Table:
    """A row for each slice and metric, with the value and the error of each system."""
    found: dict[tuple[Cell, str], dict[str, dict[str, Any]]] = {}
    for name, one in results.items():
        for row in one.by.to_pylist():
            if row["by"] == by:
                value = UNKNOWN if row["slice"] is None else row["slice"]
                found.setdefault((value, row["metric"]), {})[name] = row
    several = len(results) > 1
    # Each system has its own queries where those that count depend on the predictions.
    alike = all(len({one["queries"] for one in of.values()}) == 1 for of in found.values())
    columns, fields = [Column(by), Column("metric")], []
    for name in results:
        columns.append(Column(name if several else "value", "value"))
        columns.append(Column("error" if several else "standard error", "error"))
        fields += [(name, "value"), (name, "standard_error")]
        if not alike or name == [*results][-1]:
            columns.append(Column("queries", "count"))
            fields.append((name, "queries"))
    rows = [
        [*key, *(of.get(name, {}).get(field) for name, field in fields)]
        for key, of in found.items()
    ]
    return Table(columns, rows)
