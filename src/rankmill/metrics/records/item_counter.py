"""Counting items into a table that one thread at a time adds to, block after block."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

import numpy as np

from rankmill.columns.ids import NO_DATA, NO_PLACES, join_ids, take_ids
from rankmill.kernels.identity import SEED, SIGNED, STRING, Ids, build_table
from rankmill.kernels.lists import pack_strings
from rankmill.metrics.records.item_counts import ItemCounts, narrow

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
