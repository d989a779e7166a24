"""What tasks return, as rows of Arrow: what a system adds up to, or an error."""

import io
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import narrowest
from rankmill.metrics.base import Metric
from rankmill.metrics.records.record import Record
from rankmill.metrics.registry import parse
from rankmill.records import record
from rankmill.sources.roles.source import OddIds

RETURNED = pa.schema({"partition": pa.int64(), "returned": pa.binary()})

# Shorter arrays take as many bytes narrowed.
_SHORT = 32


# Kinds of ids that are not compared as they stand -> how many there are, and one of them.
Odd = Mapping[OddIds, tuple[int, Any]]


def odd_of_both(one: Odd, other: Odd) -> Odd:
    """Return the sum of both; of two examples the first by name, whatever partition has it."""
    both = {
        kind: (found[0] + one[kind][0], min(found[1], one[kind][1]))
        for kind, found in other.items()
        if kind in one
    }
    return {**one, **other, **both}


class Mergeable(Protocol):
    """A state, or counts of the second pass."""

    def merge(self, other: Self) -> Self:
        """Return the sum of both."""


@record(frozen=True)
class Returned:
    """What a task returns for a system: what its rows add up to, or an error."""

    partition: int
    system: str = ""
    value: Any = None
    error: Exception | None = None
    label_rows: int = 0
    rows: int = 0
    seals: frozenset[int] = frozenset()  # what later passes find again, by partition
    odd: Odd = field(default_factory=dict)

    def merge(self, other: "Returned") -> "Returned":
        """Return the sum of both, under the partition of this one."""
        value, read = self.value.merge(other.value), self.label_rows + other.label_rows
        return replace(
            self,
            value=value,
            label_rows=read,
            rows=self.rows + other.rows,
            seals=self.seals | other.seals,
            odd=odd_of_both(self.odd, other.odd),
        )


class _Packer(pickle.Pickler):
    """Records go as their rows, metrics by name, and arrays in as few bytes as hold them."""

    def reducer_override(self, value: Any) -> Any:
        """Return what makes the value again, or leave it to pickle."""
        if isinstance(value, Record):
            return type(value).from_row, (value.to_row(),)
        if isinstance(value, Metric):
            return parse, (value.text,)
        if type(value) is np.ndarray and value.ndim == 1 and len(value) > _SHORT:
            narrow = value.astype(narrowest(value))
            return _widened, (narrow.tobytes(), narrow.dtype.str, value.dtype.str)
        return NotImplemented


def packed(value: Any) -> bytes:
    """Return a value as bytes, for a process with the same version of rankmill."""
    found = io.BytesIO()
    _Packer(found, pickle.HIGHEST_PROTOCOL).dump(value)
    return found.getvalue()


def unpacked(data: Any) -> Any:
    """Return the value that `packed` made bytes of."""
    return pickle.loads(data)


def batch_of(returned: Iterable[Returned]) -> Any:
    """Return a record batch of what tasks return, by its partition."""
    rows = [{"partition": one.partition, "returned": packed(one)} for one in returned]
    return pa.RecordBatch.from_pylist(rows, RETURNED)


def read_returned(table: Any) -> Iterator[Returned]:
    """Yield what a table or a batch of such rows holds, one at a time."""
    column = table.column("returned")
    return (unpacked(column[row].as_buffer()) for row in range(len(column)))


def _widened(data: bytes, narrow: str, kind: str) -> np.ndarray:
    return np.frombuffer(data, narrow).astype(kind)


def merged_rows(rows: Iterable[Returned], where: int) -> list[Returned]:
    """Return what tasks return merged by system, as of a partition; an error stands alone.

    Of several errors it is that of the first partition. Rows are merged as they come, and then not
    held. Spark gives each partition once: of a task that was tried several times, or on two
    executors at once, it keeps the rows of one attempt. A RuntimeError says that something else
    happened.
    """
    failed: Returned | None = None
    places = set()
    found: dict[str, Returned] = {}
    for one in rows:
        if one.error is not None and (failed is None or one.partition < failed.partition):
            failed = one
        if (one.partition, one.system) in places:
            raise RuntimeError("Spark gave the rows of a partition twice: run the job again")
        places.add((one.partition, one.system))
        if failed is None:
            before = found.get(one.system)
            found[one.system] = one if before is None else before.merge(one)
    return [failed] if failed else [replace(one, partition=where) for one in found.values()]
