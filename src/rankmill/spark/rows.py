"""Typed rows that tasks return: a state or counts of a system, or an error, with the partition."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill import errors
from rankmill.errors import RankmillError

# The fields before those of the state: where it comes from, what went wrong if anything did, and
# how many rows were read.
_FIRST = {
    "partition": pa.int64(),
    "system": pa.string(),
    "error": pa.string(),
    "message": pa.string(),
    "label_rows": pa.int64(),
    "rows": pa.int64(),
}


@dataclass(frozen=True)
class Returned:
    """What a task returns for a system: the fields of a state, or an error."""

    partition: int
    system: str = ""
    fields: Mapping[str, Any] | None = None
    error: RankmillError | None = None
    label_rows: int = 0
    rows: int = 0


@dataclass(frozen=True)
class RowFormat:
    """The Arrow form of what tasks return.

    Fields are named by their number, as Spark does not tell names apart that differ in case only.

    Attributes
    ----------
    names : tuple of str
        The names of the fields of a state or of counts.
    schema : pyarrow.Schema
    """

    names: tuple[str, ...]
    schema: Any

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "RowFormat":
        """Return the form of rows like one that `to_row` made."""
        fields = dict(_FIRST)
        for number, field in enumerate(pa.Table.from_pylist([dict(row)]).schema):
            # Spark has no unsigned integers; a state has bytes at most.
            bytes_ = field.type == pa.list_(pa.uint8())
            fields[f"f{number}"] = pa.list_(pa.int16()) if bytes_ else field.type
        return cls(tuple(row), pa.schema(fields))

    @property
    def spark_schema(self) -> Any:
        """The schema as Spark declares it."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.schema)

    def batch(self, returned: Iterable[Returned]) -> Any:
        """Return a record batch of what tasks return."""
        rows = []
        for one in returned:
            row: dict[str, Any] = {
                "partition": one.partition,
                "system": one.system,
                "error": type(one.error).__name__ if one.error is not None else None,
                "message": str(one.error) if one.error is not None else None,
                "label_rows": one.label_rows,
                "rows": one.rows,
            }
            for number, name in enumerate(self.names if one.fields is not None else ()):
                row[f"f{number}"] = (one.fields or {})[name]
            rows.append(row)
        return pa.RecordBatch.from_pylist(rows, self.schema)

    def read(self, table: Any) -> Iterator[Returned]:
        """Yield what a table of such rows holds; arrays of numbers come as NumPy arrays."""
        for batch in table.to_batches():
            for row in range(batch.num_rows):
                values = {name: _value(batch.column(name)[row]) for name in batch.schema.names}
                error = None
                if values["error"] is not None:
                    error = getattr(errors, values["error"])(values["message"])
                fields = None
                if error is None:
                    fields = {name: values[f"f{i}"] for i, name in enumerate(self.names)}
                first = values["partition"], values["system"], fields, error
                yield Returned(*first, values["label_rows"], values["rows"])


def _value(scalar: Any) -> Any:
    """Return a value for Python; a list of numbers is a NumPy array without a copy."""
    if not pa.types.is_list(scalar.type) or not scalar.is_valid:
        return scalar.as_py()
    if pa.types.is_string(scalar.type.value_type):
        return scalar.as_py()
    return np.asarray(scalar.values)


def first_error(returned: Iterable[Returned]) -> Returned | None:
    """Return the error of the first partition that has one."""
    failed = [one for one in returned if one.error is not None]
    return min(failed, key=lambda one: one.partition, default=None)


def check_once(returned: Sequence[Returned]) -> None:
    """Raise an error if a partition is there twice.

    Spark gives each partition once: of a task that was tried several times, or on two executors at
    once, it keeps the rows of one attempt. So this is a check that nothing else happened.
    """
    places = {(one.partition, one.system) for one in returned}
    if len(places) < len(returned):
        raise RuntimeError("Spark gave the rows of a partition twice")
