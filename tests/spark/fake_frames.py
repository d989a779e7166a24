"""DataFrames without Spark: partitions of Arrow batches, for many small cases in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa


class Name(str):
    """The name of a column."""

    def alias(self, new: str) -> Name:
        """Return a new name for the column."""
        found = Name(new)
        found.of = self
        return found

    of: str


class FakeFrame:
    """What rankmill asks of a DataFrame, on lists of batches."""

    isStreaming = False  # noqa: N815

    def __init__(self, parts: Sequence[Sequence[Any]], schema: pa.Schema) -> None:
        self.parts, self.arrow = parts, schema
        settings = SimpleNamespace(get=lambda name: "3")
        self.sparkSession = SimpleNamespace(conf=settings, version="4.0.1")

    @property
    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.arrow)

    def __getitem__(self, name: str) -> Name:
        return Name(name.strip("`"))

    def select(self, *names: str) -> FakeFrame:
        of = {str(name): getattr(name, "of", name) for name in names}

        def chosen(batch: Any) -> Any:
            return pa.RecordBatch.from_arrays([batch.column(one) for one in of.values()], [*of])

        parts = [[chosen(batch) for batch in part] for part in self.parts]
        fields = [self.arrow.field(one).with_name(name) for name, one in of.items()]
        return FakeFrame(parts, pa.schema(fields))

    def limit(self, number: int) -> FakeFrame:
        """Return the first rows."""
        table = self.toArrow().slice(0, number)
        return FakeFrame([table.to_batches()], self.arrow)

    def mapInArrow(self, task: Callable[..., Any], schema: Any) -> FakeFrame:  # noqa: N802
        from pyspark.sql.pandas.types import to_arrow_schema

        parts = [list(task(iter(part))) for part in self.parts]
        return FakeFrame(parts, to_arrow_schema(schema))

    def repartition(self, number: int, name: str) -> FakeFrame:
        rows = [row for part in self.parts for batch in part for row in single_rows(batch)]
        parts: list[list[Any]] = [[] for _ in range(number)]
        for row in rows:
            parts[row.column(name)[0].as_py() % number].append(row)
        return FakeFrame(parts, self.arrow)

    def toArrow(self) -> pa.Table:  # noqa: N802
        batches = [batch for part in self.parts for batch in part]
        return pa.Table.from_batches(batches, batches[0].schema if batches else self.arrow)


def single_rows(batch: Any) -> list[Any]:
    return [batch.slice(i, 1) for i in range(batch.num_rows)]
