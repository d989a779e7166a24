"""How many lists each item stands in, by how far down: exact counts that merge.

Counts beyond memory are in a temporary file, in partitions by a hash of the item.
"""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import (
    NO_DATA,
    NO_PLACES,
    IdStore,
    ids_to_arrow,
    in_partitions,
    join_ids,
    take_ids,
    to_ids,
)
from rankmill.errors import InputError
from rankmill.io.overflow import Overflow
from rankmill.kernels.identity import SEED, SIGNED, STRING, UNSIGNED, Ids
from rankmill.metrics.records import state_rows

NO_IDS = Ids(np.empty(0, np.uint64), NO_PLACES, NO_PLACES, NO_DATA, SIGNED)
# Integers are joined by a table of all between them if these are at most so many times as many.
CLOSE = 4
# Small parts are only kept side by side.
ROOM = 1 << 16
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
    def least(self) -> int:
        """How many items a table has room for in any case."""
        return min(1 << 16, self.most >> 9)

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


@dataclass(frozen=True, eq=False)
class ItemCounts:
    """Counts of items, in one column or several, in parts that may have items in common.

    Examples
    --------
    >>> ids = to_ids(np.array([7, 9]), "items")
    >>> one = ItemCounts(1).with_counts(ids, np.array([[2], [1]]))
    >>> one.merge(one).joined()[1].tolist()
    [[4], [2]]
    """

    columns: int
    # The distinct items of each part, and their counts, int64[n, columns].
    parts: tuple[tuple[Ids, np.ndarray], ...] = ()
    # More parts, which are in a temporary file. Then none stays in memory.
    spilled: tuple[SpilledCounts, ...] = ()

    def with_counts(self, items: Ids, counts: np.ndarray) -> Self:
        """Return the counts with those of distinct items."""
        if not len(counts):
            return self
        return self.merge(type(self)(self.columns, ((items, counts),)))

    def merge(self, other: Self) -> Self:
        """Return the counts of both. Parts are joined before they take much more room than that."""
        parts, in_file = (*self.parts, *other.parts), (*self.spilled, *other.spilled)
        if in_file:
            return type(self)(self.columns, parts, in_file).in_file(in_file[0].file)
        sizes = [len(counts) for _, counts in parts]
        found = type(self)(self.columns, parts)
        if sum(sizes) > 2 * max(sizes, default=0) + ROOM:
            return type(self)(self.columns, (found.joined(),))
        return found

    def joined(self) -> tuple[Ids, np.ndarray]:
        """Return all distinct items with their counts. They take the place of the parts."""
        if self.spilled:
            every = tuple(self.partition(number).joined() for number in range(PARTITIONS))
            return type(self)(self.columns, every).joined()
        if len(self.parts) != 1:
            object.__setattr__(self, "parts", (self._join(),))
        return self.parts[0]

    def in_file(self, file: Overflow) -> Self:
        """Return the counts with none in memory; those are written to a file."""
        more = (spilled(file, *part) for part in self.parts)
        return type(self)(self.columns, (), (*self.spilled, *more))

    def in_memory(self) -> Self:
        """Return the counts with none in a file."""
        return type(self)(self.columns, (self.joined(),)) if self.spilled else self

    def partition(self, number: int) -> Self:
        """Return the counts of one of the partitions of those in files."""
        parts = (one.partition(number) for one in self.spilled)
        return type(self)(self.columns, tuple(part for part in parts if len(part[1])))

    def _join(self) -> tuple[Ids, np.ndarray]:
        from rankmill.kernels.identity import group_rows
        from rankmill.kernels.item_counts import sum_rows

        if not self.parts:
            return NO_IDS, np.zeros((0, self.columns), np.int64)
        ids = join_ids([items for items, _ in self.parts])
        counts = np.concatenate([counts for _, counts in self.parts])
        if (lowest := close_together(ids)) is not None:
            return self._join_close(ids, counts, lowest)
        groups, first = np.empty((2, len(ids.keys)), np.int64)
        distinct = group_rows(ids, SEED, groups, first)
        found = np.zeros((distinct, self.columns), np.int64)
        sum_rows(groups, counts, found)
        return join_ids([take_ids(ids, first[:distinct])]), found

    def _join_close(self, ids: Ids, counts: np.ndarray, lowest: int) -> tuple[Ids, np.ndarray]:
        from rankmill.kernels.item_counts import sum_rows

        start = np.uint64(lowest % 2**64)
        places = (ids.keys - start).view(np.int64)
        table = np.zeros((int(places.max()) + 1, self.columns), np.int64)
        sum_rows(places, counts, table)
        there = np.zeros(len(table), np.bool_)
        there[places] = True
        found = np.flatnonzero(there)
        return ids._replace(keys=found.astype(np.uint64) + start), table[found]

    def to_row(self) -> dict[str, Any]:
        """Return a flat row for Arrow: integers, or bytes and where each item ends, and counts."""
        ids, counts = self.joined()
        text = ids.kind == STRING
        if text:
            store = IdStore()
            store.add(ids)
            ids = store.finish()
        return {
            "kind": ids.kind,
            "keys": np.empty(0, np.int64) if text else ids.keys.view(np.int64),
            "ends": ids.ends if text else np.empty(0, np.int64),
            "data": ids.data if text else NO_DATA,
            "counts": counts.reshape(-1),
        }

    @classmethod
    def from_row(cls, row: state_rows.Row, prefix: str, columns: int) -> Self:
        """Return the counts from a row that `to_row` made.

        UsageError if the row is not one of counts of items.
        """
        kind = state_rows.count(row, f"{prefix}kind")
        counts = state_rows.counts(row, f"{prefix}counts", least=0)
        if kind == STRING:
            ids = _strings(row, prefix)
        elif kind in (SIGNED, UNSIGNED):
            keys = state_rows.integers(row, f"{prefix}keys").view(np.uint64)
            ids = Ids(keys, NO_PLACES, NO_PLACES, NO_DATA, kind)
        else:
            raise state_rows.damaged(f"{prefix}kind is {kind}, not one of ids")
        if len(counts) != columns * len(ids.keys):
            raise state_rows.damaged(
                f"{prefix}counts holds {len(counts):,} numbers for {len(ids.keys):,} items and "
                f"{columns} cutoffs"
            )
        found = cls(columns, ((ids, counts.reshape(-1, columns)),))
        if len(found._join()[1]) != len(ids.keys):
            raise state_rows.damaged(f"{prefix}keys has an item twice")
        return found


def close_together(ids: Ids) -> int | None:
    """Return the lowest of integers if a table of all between them is small; else None."""
    if ids.kind == STRING or not len(ids.keys):
        return None
    numbers = ids.keys if ids.kind == UNSIGNED else ids.keys.view(np.int64)
    lowest, highest = int(numbers.min()), int(numbers.max())
    return lowest if highest - lowest < CLOSE * len(numbers) else None


def _strings(row: state_rows.Row, prefix: str) -> Ids:
    """Return the strings of a row; their keys differ in each process."""
    ends = state_rows.counts(row, f"{prefix}ends", least=0)
    data = state_rows.counts(row, f"{prefix}data", least=0)
    state_rows.below(f"{prefix}data", data, 256)
    buffers = [None, *map(pa.py_buffer, (np.append(0, ends), data.astype(np.uint8)))]
    array = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)
    try:
        if (np.diff(ends, prepend=0) < 0).any():
            raise InputError("ends do not ascend")
        return to_ids(array, "items")
    except InputError as error:
        raise state_rows.damaged(f"{prefix}ends: {error}") from None
