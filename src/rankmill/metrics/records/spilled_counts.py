"""Counts of items beyond memory: in a temporary file, in partitions by a hash of the item."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import ids_to_arrow, take_ids, to_ids
from rankmill.io.overflow import SharedOverflow
from rankmill.kernels.identity import SEED, Ids, parts_of

# All counts of an item are in one partition. So many are small beside the tables that were full.
PARTITIONS = 256


class SpilledCounts(NamedTuple):
    """Items and their counts in a file: where each partition of them is."""

    file: "CountsFile"
    schema: Any
    places: tuple[tuple[int, int], ...]

    def partition(self, number: int) -> tuple[Ids, np.ndarray]:
        """Return the items of a partition with their counts."""
        data = pa.ipc.read_record_batch(self.file.read(self.places[number]), self.schema)
        items, *counts = data.columns
        columns = [numbers_of(one).astype(np.int64) for one in counts]
        return to_ids(items, "items"), np.column_stack(columns)


class CountsFile(SharedOverflow):
    """A temporary file of counts, which several threads add to. It disappears with its counts."""

    what = "counts of items"

    def add(self, items: Ids, counts: np.ndarray) -> SpilledCounts:
        """Write items and their counts; raises ResourceError if that fails."""
        parts = np.empty(len(counts), np.uint16)
        parts_of(items.keys, SEED, PARTITIONS, parts)
        order = np.argsort(parts, kind="stable")
        ends = np.cumsum(np.bincount(parts, minlength=PARTITIONS)).tolist()
        small = np.min_scalar_type(int(counts.max(initial=0)))
        columns = [arrow_of(one[order].astype(small)) for one in counts.T]
        arrays = [ids_to_arrow(take_ids(items, order), set()), *columns]
        batch = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
        starts = [0, *ends[:-1]]
        with self._lock:
            places = [
                self._file.add(batch.slice(start, end - start).serialize())
                for start, end in zip(starts, ends, strict=True)
            ]
        return SpilledCounts(self, batch.schema, tuple(places))


@dataclass(eq=False)
class Room:
    """The bytes that the tables of several threads take together, and a file for what is more.

    Attributes
    ----------
    most : int or None
        How many they may take; None for any number.
    """

    most: int | None = None
    taken: int = 0
    file: CountsFile = field(default_factory=CountsFile)
    lock: Any = field(default_factory=Lock)

    def __reduce__(self) -> tuple[type, tuple[int | None]]:
        return Room, (self.most,)  # another process has its own

    @property
    def crowded(self) -> bool:
        """Whether there is no room to join what the tables hold."""
        return self.most is not None and self.taken > self.most // 2

    def take(self, more: int, *, anyway: bool = False) -> bool:
        """Take some more bytes, and return whether they are there."""
        with self.lock:
            fits = anyway or self.most is None or self.taken + more <= self.most
            self.taken += more if fits else 0
        return fits
