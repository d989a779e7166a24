"""Finding the rows of ids: in a direct table if integers lie close together, else by hashing."""

from typing import Any, NamedTuple

import numpy as np

from rankmill.kernels.identity import SEED, STRING, UNSIGNED, Ids, build_table, find_rows
from rankmill.kernels.integers import find_direct, rows_by_rank, set_bits

# Integers use the direct table if their range is at most this many times their number. Up to this
# width the direct table takes no more memory than a hash table.
WIDEST = 32
NO_ROWS = np.empty(0, np.int32)
NO_WORDS = np.empty(0, np.uint64)


class Lookup(NamedTuple):
    """Ids and a table of their rows: ``words`` (and ``by_rank``) for integers, else ``slots``."""

    ids: Ids
    lowest: np.uint64
    words: np.ndarray
    by_rank: np.ndarray
    slots: np.ndarray

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the ids: the table of another process is made with another seed."""
        return _of_ids, (self.ids,)

    def find(self, wanted: Ids) -> np.ndarray:
        """Return the row of each wanted id as int64; -1 for an unknown id."""
        rows = np.empty(len(wanted.keys), np.int64)
        if not len(self.words):
            find_rows(self.ids, self.slots, SEED, wanted, rows)
        elif wanted.kind == STRING:
            rows.fill(-1)
        else:
            mixed = self.ids.kind != wanted.kind
            find_direct(self.words, self.lowest, self.by_rank, mixed, wanted.keys, rows)
        return rows


def _of_ids(ids: Ids) -> Lookup:
    return look_up(ids)[0]


def look_up(ids: Ids, *, ascending: bool = False) -> tuple[Lookup, int]:
    """Return a table of the rows of ids, and the first row of a repeated id or -1."""
    keys = ids.keys
    if ids.kind != STRING and len(keys):
        numbers = keys if ids.kind == UNSIGNED else keys.view(np.int64)
        ends = (numbers[0], numbers[-1]) if ascending else (numbers.min(), numbers.max())
        lowest, highest = map(int, ends)
        if highest - lowest < WIDEST * len(keys):
            return _directly(ids, lowest, highest, ascending)
    # A power of two of slots, two to four times as many as ids.
    slots = np.full(1 << max(4, (2 * len(keys)).bit_length()), -1, row_type(len(keys)))
    return Lookup(ids, np.uint64(0), NO_WORDS, NO_ROWS, slots), build_table(ids, SEED, slots)


def _directly(ids: Ids, lowest: int, highest: int, ascending: bool) -> tuple[Lookup, int]:
    words = np.zeros(2 * ((highest - lowest) // 64 + 1), np.uint64)
    start = np.uint64(lowest % 2**64)
    repeated = set_bits(ids.keys, start, words)
    by_rank = NO_ROWS
    if not ascending and repeated < 0:
        by_rank = np.empty(len(ids.keys), row_type(len(ids.keys)))
        rows_by_rank(ids.keys, start, words, by_rank)
    return Lookup(ids, start, words, by_rank, NO_ROWS), repeated


def row_type(count: int) -> type[np.signedinteger]:
    """Return the smallest integer type that holds `count` rows."""
    return np.int32 if count <= np.iinfo(np.int32).max else np.int64
