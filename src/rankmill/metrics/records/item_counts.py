"""How many lists each item stands in, by how far down: exact counts that merge."""

import math
from collections.abc import Sequence
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa

from rankmill.columns.ids import (
    NO_DATA,
    NO_PLACES,
    IdStore,
    in_partitions,
    join_ids,
    take_ids,
    to_ids,
)
from rankmill.errors import InputError, ResourceError
from rankmill.kernels.identity import SEED, SIGNED, STRING, UNSIGNED, Ids
from rankmill.metrics.records import state_rows
from rankmill.records import record

NO_IDS = Ids(np.empty(0, np.uint64), NO_PLACES, NO_PLACES, NO_DATA, SIGNED)
# Small parts are only kept side by side.
ROOM = 1 << 16
# More rows are joined in partitions, each of which fits the caches; some at a time are copied.
PARTITIONS, TOGETHER, AT_ONCE = 64, 16, 1 << 20
MB = 10**6
Part: TypeAlias = tuple[Ids, np.ndarray]


@record(frozen=True, eq=False)
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
    # The distinct items of each part, and their counts, [n, columns] of signed integers.
    parts: tuple[Part, ...] = ()

    def with_counts(self, items: Ids, counts: np.ndarray) -> Self:
        """Return the counts with those of distinct items."""
        if not len(counts):
            return self
        return self.merge(type(self)(self.columns, ((items, counts),)))

    def merge(self, other: Self) -> Self:
        """Return the counts of both. Parts are joined before they take much more room than that."""
        parts = (*self.parts, *other.parts)
        sizes = [len(counts) for _, counts in parts]
        found = type(self)(self.columns, parts)
        if sum(sizes) > 2 * max(sizes, default=0) + ROOM:
            return type(self)(self.columns, (found.joined(),))
        return found

    def joined(self, most: float = math.inf) -> tuple[Ids, np.ndarray]:
        """Return all distinct items with their counts. They take the place of the parts.

        Raises ResourceError if they take more than so many bytes, as soon as some of them do.
        """
        for one in self.parts:  # to join them would take as much again
            _check_room([one], most)
        if len(self.parts) != 1:
            object.__setattr__(self, "parts", (self._join(most),))
        return self.parts[0]

    @property
    def bytes(self) -> int:
        """How many bytes the parts take; their items may be in several."""
        return sum(map(_bytes_of, self.parts))

    def _join(self, most: float = math.inf) -> Part:
        from rankmill.kernels.catalogue import sum_rows
        from rankmill.kernels.identity import group_rows

        if not self.parts:
            return NO_IDS, np.zeros((0, self.columns), np.int64)
        if sum(len(counts) for _, counts in self.parts) > AT_ONCE:
            return self._join_partitions(most)
        ids = join_ids([items for items, _ in self.parts])
        counts = np.concatenate([counts for _, counts in self.parts]).astype(np.int64)
        groups, first = np.empty((2, len(ids.keys)), np.int64)
        distinct = group_rows(ids, SEED, groups, first)
        found = np.zeros((distinct, self.columns), np.int64)
        sum_rows(groups, counts, found)
        whole = join_ids([take_ids(ids, first[:distinct])]), narrow(found)
        _check_room([whole], most)
        return whole

    def _join_partitions(self, most: float) -> Part:
        places = [in_partitions(items, PARTITIONS) for items, _ in self.parts]
        found: list[Part] = []
        for first in range(0, PARTITIONS, TOGETHER):
            parts: list[list[Part]] = []
            for (items, counts), (order, ends) in zip(self.parts, places, strict=True):
                rows = (order[start:end] for start, end in ends[first : first + TOGETHER])
                parts.append([(take_ids(items, some), counts[some]) for some in rows])
            for some in zip(*parts, strict=True):
                found.append(type(self)(self.columns, some)._join())
                _check_room(found, most)
        ids, counts = zip(*found, strict=True)
        return join_ids(list(ids)), np.concatenate(counts)

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
            "counts": counts.reshape(-1).astype(np.int64),
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


def _bytes_of(part: Part) -> int:
    ids, counts = part
    return sum(one.nbytes for one in (ids.keys, ids.starts, ids.ends, ids.data, counts))


def _check_room(some: Sequence[Part], most: float) -> None:
    """Raise ResourceError if some distinct items take more than so many bytes."""
    if sum(map(_bytes_of, some)) > most:
        number = sum(len(counts) for _, counts in some)
        raise ResourceError(
            f"counts of items take more than {int(most) // MB:,}MB in memory, for {number:,} items "
            "so far: allow more memory"
        )


def narrow(counts: np.ndarray) -> np.ndarray:
    """Return a copy of counts in as few bytes as hold them and their negatives."""
    return counts.astype(np.min_scalar_type(-1 - int(counts.max(initial=0))))


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
