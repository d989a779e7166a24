"""The curves and bins that metrics by confidence are made of, as tables."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from rankmill.errors import UsageError, positive
from rankmill.show.tables import Column, Kind, Table, View, listing

# Metric -> what makes its columns.
Curves = Mapping[str, Callable[[], dict[str, np.ndarray]]]

_TEXTS = ("system", "metric")


def thinned(columns: dict[str, np.ndarray], rows: int | None) -> dict[str, np.ndarray]:
    """Return so many rows of a curve at most, at even shares of all correct predictions.

    Bins are all kept.
    """
    correct = columns["correct"]
    if rows is None or rows >= len(correct) or "recall" not in columns:
        return columns
    shares = np.arange(1, rows + 1) * (correct[-1] / rows)
    kept = np.unique(np.searchsorted(correct, shares).clip(max=len(correct) - 1))
    return {name: column[kept] for name, column in columns.items()}


def curve_table(curves: Curves, metric: str, rows: int | None = None) -> pa.Table:
    """Return the curve of a metric, in `rows` rows at most; UsageError if it has none."""
    if metric not in curves:
        raise UsageError(f"{metric} has no curve; auprc, best_f1, ece and related metrics have one")
    rows = None if rows is None else positive(rows, "rows")
    return pa.table(thinned(curves[metric](), rows))


def curves_of(systems: Mapping[str, Curves]) -> pa.Table:
    """Return the curves of all metrics of all systems in one table, named by system and metric.

    The system is left out if there is only one.
    """
    parts = []
    for system, curves in systems.items():
        for metric in curves:
            part = curve_table(curves, metric)
            names = {"system": system, "metric": metric}
            if len(systems) == 1:
                del names["system"]
            columns = {title: [text] * part.num_rows for title, text in names.items()}
            parts.append(
                pa.table(columns | dict(zip(part.column_names, part.columns, strict=True)))
            )
    return pa.concat_tables(parts, promote_options="permissive")


def view_of_curves(table: pa.Table) -> View:
    """Return what `curves_of` made as text: CSV, JSON and the other forms."""
    columns = [Column(one.name, _kind(one)) for one in table.schema]
    rows = table.to_pylist()
    return listing(Table(columns, [list(row.values()) for row in rows]), rows)


def _kind(column: pa.Field) -> Kind:
    if column.name in _TEXTS:
        return "text"
    return "number" if pa.types.is_floating(column.type) else "count"
