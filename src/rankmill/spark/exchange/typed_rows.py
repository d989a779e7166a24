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

# The types that arrays of a kind of number are narrowed to, where that loses nothing.
_NARROWER = {"i": ("i1", "i2", "i4"), "u": ("u1", "u2", "u4"), "f": ("f4",)}


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
    Arrays of numbers travel as bytes, as few a number as hold all of them exactly: Spark copies
    lists number by number, several times.

    Attributes
    ----------
    numbers : dict of str to (numpy.dtype or None)
        The fields of a state or of counts; the type of the numbers of those that are arrays.
    schema : pyarrow.Schema
    """

    numbers: Mapping[str, Any]
    schema: Any

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "RowFormat":
        """Return the form of rows like one that `to_row` made."""
        fields, numbers = dict(_FIRST), {}
        for number, field in enumerate(pa.Table.from_pylist([dict(row)]).schema):
            numbers[field.name] = _numbers(field.type)
            fields[f"f{number}"] = pa.binary() if numbers[field.name] else field.type
        return cls(numbers, pa.schema(fields))

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
            if one.fields is not None:
                for number, (name, kind) in enumerate(self.numbers.items()):
                    row[f"f{number}"] = _packed(one.fields[name], kind)
            rows.append(row)
        return pa.RecordBatch.from_pylist(rows, self.schema)

    def read(self, table: Any) -> Iterator[Returned]:
        """Yield what a table of such rows holds; arrays of numbers come as NumPy arrays."""
        for batch in table.to_batches():
            for row in range(batch.num_rows):
                values = {name: batch.column(name)[row].as_py() for name in _FIRST}
                error = None
                if values["error"] is not None:
                    error = getattr(errors, values["error"])(values["message"])
                fields = None
                if error is None:
                    fields = {
                        name: _value(batch.column(f"f{number}")[row], kind)
                        for number, (name, kind) in enumerate(self.numbers.items())
                    }
                first = values["partition"], values["system"], fields, error
                yield Returned(*first, values["label_rows"], values["rows"])


def _numbers(kind: Any) -> Any:
    """Return the type of the numbers of a list, as NumPy has it; None for all else."""
    if not pa.types.is_list(kind) or not pa.types.is_primitive(kind.value_type):
        return None
    return np.dtype(kind.value_type.to_pandas_dtype())


def _packed(value: Any, kind: Any) -> Any:
    """Return a value for Arrow; an array of numbers as bytes, after the size of one."""
    if kind is None or value is None:
        return value
    array = np.asarray(value, kind)
    narrower = map(np.dtype, _NARROWER.get(kind.kind, ()))
    fits = (one for one in narrower if one.itemsize < kind.itemsize and _holds(one, array))
    narrow = next(fits, kind)
    return bytes([narrow.itemsize]) + array.astype(narrow).tobytes()


def _holds(narrow: Any, array: np.ndarray) -> bool:
    """Return whether all numbers have the same bits in a narrower type and back."""
    if narrow.kind == "f":
        with np.errstate(over="ignore"):
            there = array.astype(narrow).astype(array.dtype)
        return bool((there.view(np.int64) == array.view(np.int64)).all())
    limits = np.iinfo(narrow)
    return bool(array.min(initial=0) >= limits.min and array.max(initial=0) <= limits.max)


def _value(scalar: Any, kind: Any) -> Any:
    """Return a value for Python; an array of numbers as it was."""
    if kind is None or not scalar.is_valid:
        return scalar.as_py()
    data = memoryview(scalar.as_buffer())
    return np.frombuffer(data[1:], f"{kind.kind}{data[0]}").astype(kind)


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
        raise RuntimeError("Spark gave the rows of a partition twice: run the job again")
