"""How many lists each item stands in, by how far down: exact counts that merge."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
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
from rankmill.kernels.identity import SEED, SIGNED, STRING, UNSIGNED, Ids, build_table
from rankmill.kernels.lists import pack_strings
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


# ------------------------------------------------------------------ counting items

# Integers are counted in a table of all numbers between the lowest and the highest if these are at
# most so many, or this many times as many as all integers that were counted.
SMALLEST, WIDEST = 1 << 16, 4
# The bytes of an item in a hash table that is at least half full: its key, where its text ends, its
# slots, and a count for each cutoff.
AN_ITEM, A_COUNT = 2 * (8 + 8 + 8), 2 * 8
# Counts of fewer bytes are never refused.
SPARED = 64 << 20
NO_REPEATS = np.empty(0, np.bool_)
NO_RANKS = np.empty(0, np.int64)


class Total:
    """What the tables of several threads add up to, and the bytes that these take together.

    Each thread has tables of all items that it met. All tables may take half of the `memory`
    allowed: one that has no room to grow is added, in as few bytes as hold it, and starts anew.
    What was added may take the other half, and a quarter once each item is held once. `more` gives
    one more column.
    """

    def __init__(
        self,
        cutoffs: int,
        memory: float = math.inf,
        more: Callable[[Ids], np.ndarray] | None = None,
    ) -> None:
        self._counts = ItemCounts(cutoffs + (more is not None))
        self._most, self._more = max(SPARED, memory / 4), more
        self._taken = 0  # by the tables
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """The bytes of the tables, and of what was added."""
        return self._taken + self._counts.bytes

    def take(self, more: int, *, anyway: bool = False) -> bool:
        """Take some more bytes for a table, and return whether they are there."""
        with self._lock:
            fits = anyway or self._taken + more <= 2 * self._most
            self._taken += more if fits else 0
        return fits

    def add(self, items: Ids, counts: np.ndarray) -> None:
        """Add distinct items; raises ResourceError if all take more than the memory allowed."""
        counts = narrow(counts)
        if self._more is not None:
            counts = np.column_stack([counts, self._more(items)])
        with self._lock:
            parts = (*self._counts.parts, (items, counts))
            self._counts = replace(self._counts, parts=parts)
            if self._counts.bytes > 2 * self._most:
                self.counts()

    def counts(self) -> ItemCounts:
        """Return what was added, each item once; raises ResourceError as `add`."""
        self._counts.joined(self._most)
        return self._counts


class ItemCounter:
    """In how many lists each item stands, by its rank: a column of counts for each cutoff.

    Integers that lie close together are counted in one table without their ids, all others in a
    hash table. Both may be in use, and then hold some items twice.
    """

    def __init__(self, cutoffs: Sequence[int], total: Total | None = None) -> None:
        self.cutoffs = np.array(cutoffs, np.int64)
        self._total = total or Total(len(cutoffs))
        self._direct = _Direct(len(cutoffs), self._total)
        self._hashed = _Hashed(len(cutoffs), self._total)

    def add(
        self,
        offsets: np.ndarray,
        items: Ids,
        ranks: np.ndarray = NO_RANKS,
        repeat: np.ndarray = NO_REPEATS,
    ) -> None:
        """Add lists. Ranks ascend in each; without, they are places. Marked repeats do not count.

        `offsets` start at 0.
        """
        if not len(items.keys):
            return
        how = ranks, repeat, self.cutoffs
        if not self._direct.add(offsets, items, *how):
            self._hashed.add(offsets, items, *how)

    def close(self) -> None:
        """Add all counts to the total; nothing may be counted after this."""
        tables: list[_Direct | _Hashed] = [self._hashed, self._direct]
        del self._hashed, self._direct
        while tables:  # each is freed before the next one is read
            self._total.add(*tables.pop().counts())

    def counts(self) -> ItemCounts:
        """Return the total with all counts; nothing may be counted after this."""
        self.close()
        return self._total.counts()


class _Direct:
    """Counts of integers from `lowest` on."""

    def __init__(self, columns: int, total: Total) -> None:
        self._total = total
        self._lowest = self._seen = 0
        self._counts = np.zeros((0, columns), np.int64)

    def add(self, offsets: np.ndarray, items: Ids, *how: np.ndarray) -> bool:
        """Add lists; return whether their items lie close enough together for that."""
        if items.kind == STRING:
            return False
        numbers = items.keys.view(np.int64) if items.kind == SIGNED else items.keys
        lowest, highest = int(numbers.min()), int(numbers.max())
        if len(self._counts):
            lowest = min(lowest, self._lowest)
            highest = max(highest, self._lowest + len(self._counts) - 1)
        self._seen += len(numbers)
        if highest - lowest >= max(SMALLEST, WIDEST * self._seen) or highest >= 1 << 63:
            return False
        if not self._widen(lowest, highest):
            return False
        from rankmill.kernels.catalogue import count_direct

        ranks, repeat, cutoffs = how
        start = np.uint64(self._lowest % 2**64)
        count_direct(offsets, items.keys, ranks, repeat, cutoffs, start, self._counts)
        return True

    def _widen(self, lowest: int, highest: int) -> bool:
        """Make room for more integers; above them by a half, as the next block may have more."""
        size, columns = self._counts.shape
        if size and lowest == self._lowest and highest < lowest + size:
            return True
        rows = highest - lowest + 1 + ((highest - lowest) // 2 if size else 0)
        if not self._total.take(2 * 8 * columns * (rows - size)):
            return False
        wide = np.zeros((rows, columns), np.int64)
        wide[self._lowest - lowest :][:size] = self._counts
        self._lowest, self._counts = lowest, wide
        return True

    def counts(self) -> tuple[Ids, np.ndarray]:
        """Return the items that were found, and their counts."""
        there = np.flatnonzero(self._counts.any(axis=1))
        keys = (there + self._lowest).view(np.uint64)
        return Ids(keys, NO_PLACES, NO_PLACES, NO_DATA, SIGNED), self._counts[there]


class _Hashed:
    """Counts of any items, by a hash table."""

    def __init__(self, columns: int, total: Total) -> None:
        self._total, self._columns = total, columns
        self._kind = SIGNED
        self._count = 0
        self._keys = np.empty(0, np.uint64)
        self._ends = np.zeros(1, np.int64)  # of the bytes of each string, behind a 0
        self._data = NO_DATA
        self._counts = np.zeros((0, columns), np.int64)
        self._slots = np.empty(0, np.int32)

    def add(self, offsets: np.ndarray, items: Ids, *how: np.ndarray) -> None:
        """Add lists."""
        from rankmill.kernels.catalogue import count_hashed

        if items.kind != SIGNED and self._kind == SIGNED:
            self._kind = items.kind
        place = 0
        while place < len(offsets) - 1:
            self._make_room(int(offsets[place + 1] - offsets[place]))
            before = self._count
            new = np.empty(len(self._keys) - before, np.int64)
            texts = self._ends[:-1], self._ends[1:], self._data
            table = self._slots, self._keys, self._counts, new
            counted = count_hashed(place, offsets, items, *how, SEED, *texts, before, table)
            place, self._count = counted
            if items.kind == STRING:
                self._copy_strings(take_ids(items, new[: self._count - before]), before)

    def _make_room(self, more: int) -> None:
        """Make room for one more list at least; the table is at most half full."""
        if self._count + more <= len(self._keys):
            return
        room = max(1 << 11, 2 * len(self._keys))
        while room < self._count + more:
            room *= 2
        bytes_more = (AN_ITEM + A_COUNT * self._columns) * (room - len(self._keys))
        if not self._total.take(bytes_more, anyway=not self._count):
            self._total.add(*self.counts())
            self._count = 0
            self._counts[:], self._slots[:] = 0, -1
            return self._make_room(more)
        keys, counts = np.empty(room, np.uint64), np.zeros((room, self._columns), np.int64)
        ends = np.zeros(room + 1, np.int64)
        keys[: self._count], counts[: self._count] = self._ids.keys, self._counts[: self._count]
        ends[: len(self._ends)] = self._ends
        self._keys, self._counts, self._ends = keys, counts, ends
        self._slots = np.full(2 * room, -1, np.int32)
        build_table(self._ids, SEED, self._slots)

    def _copy_strings(self, new: Ids, before: int) -> None:
        if not len(new.keys):
            return
        used, more = int(self._ends[before]), int((new.ends - new.starts).sum())
        if used + more > len(self._data):
            self._total.take(2 * (used + more) - len(self._data), anyway=True)
            data = np.empty(2 * (used + more), np.uint8)
            data[:used] = self._data[:used]
            self._data = data
        out = self._ends[before + 1 : self._count + 1], self._data[used : used + more]
        pack_strings(new.starts, new.ends, new.data, used, *out)

    @property
    def _ids(self) -> Ids:
        count, keys = self._count, self._keys[: self._count]
        if self._kind != STRING:
            return Ids(keys, NO_PLACES, NO_PLACES, NO_DATA, self._kind)
        return Ids(keys, self._ends[:count], self._ends[1 : count + 1], self._data, STRING)

    def counts(self) -> tuple[Ids, np.ndarray]:
        """Return the items that were found, and their counts."""
        return join_ids([self._ids]), self._counts[: self._count]
