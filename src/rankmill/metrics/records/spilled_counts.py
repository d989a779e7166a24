"""Counts of items beyond memory: in a temporary file, in partitions by a hash of the item."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import ids_to_arrow, in_partitions, take_ids, to_ids
from rankmill.io.overflow import Overflow
from rankmill.kernels.identity import Ids

# All counts of an item are in one partition. So many are small beside the tables that were full.
PARTITIONS = 256


class SpilledCounts(NamedTuple):
    """Items and their counts in a file: where each partition of them is."""

    file: Overflow
    schema: Any
    places: tuple[tuple[int, int], ...]

    def partition(self, number: int) -> tuple[Ids, np.ndarray]:
        """Return the items of a partition with their counts."""
        data = pa.ipc.read_record_batch(self.file.read(self.places[number]), self.schema)
        items, *counts = data.columns
        columns = [numbers_of(one).astype(np.int64) for one in counts]
        return to_ids(items, "items"), np.column_stack(columns)


def spilled(file: Overflow, items: Ids, counts: np.ndarray) -> SpilledCounts:
    """Write items and their counts; raises ResourceError if that fails."""
    order, partitions = in_partitions(items, PARTITIONS)
    small = np.min_scalar_type(int(counts.max(initial=0)))
    columns = [arrow_of(one[order].astype(small)) for one in counts.T]
    arrays = [ids_to_arrow(take_ids(items, order), set()), *columns]
    batch = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    parts = (batch.slice(start, end - start) for start, end in partitions)
    return SpilledCounts(file, batch.schema, tuple(file.add(one.serialize()) for one in parts))


@dataclass(eq=False)
class Room:
    """The bytes that the tables of several threads take together, and a file for what is more."""

    most: int = 0  # how many they may take, if there is a file
    file: Overflow | None = None  # without one, they may take any number
    taken: int = 0
    lock: Any = field(default_factory=Lock)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Room, ()  # another process has its own

    @property
    def crowded(self) -> bool:
        """Whether there is no room to join what the tables hold."""
        return self.file is not None and self.taken > self.most // 2

    def take(self, more: int, *, anyway: bool = False) -> bool:
        """Take some more bytes, and return whether they are there."""
        with self.lock:
            fits = anyway or self.file is None or self.taken + more <= self.most
            self.taken += more if fits else 0
        return fits
