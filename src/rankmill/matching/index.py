"""The index of the labels, which finds the labels of a query by its id."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from rankmill.columns.ids import Growing, IdStore, as_stored, id_text
from rankmill.columns.lists import offsets_of
from rankmill.columns.ranked_lists import Lists, Place
from rankmill.errors import InputError
from rankmill.kernels.identity import SEED, SIGNED, STRING, UNSIGNED, Ids, build_table, find_rows
from rankmill.kernels.integers import (
    find_direct,
    find_in_order,
    first_descent,
    rows_by_rank,
    set_bits,
)
from rankmill.kernels.jit import read_only
from rankmill.matching.label_lists import NO_GAINS, NO_OFFSETS, LabelLists

# ------------------------------------------------------------------ finding the rows of ids

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


NO_COUNTS: Mapping[str, int] = MappingProxyType({})


class RepeatedQueryError(InputError):
    """A query id that occurs a second time, at `row`."""

    def __init__(self, row: int, message: str = "") -> None:
        super().__init__(message)
        self.row = row


class LabelIndex:
    """Query ids and their label lists, with the audit of the labels and their number of rows.

    ``weights`` is the weight of each query, float64[n], or None if all count the same. ``columns``
    have a float64 for each label, in the order of the lists: users' metrics see them. ``classes``
    are the ways to cut the queries into slices: the values of each, and the place of each query
    among them. ``beyond`` has other queries of a way's table, their places, and one of all others.

    Ascending ids are searched outwards from the last match. A hash table is used if the ids do not
    ascend, or if predictions come in another order. RepeatedQueryError if a query id occurs twice.
    """

    def __init__(
        self, queries: Ids, labels: LabelLists, audit: Mapping[str, int] = NO_COUNTS, rows: int = 0
    ) -> None:
        # Here, and not for each block that is matched with them.
        self.queries: Ids = read_only(queries)
        self.labels: LabelLists = read_only(labels)
        self.audit = audit
        self.rows = rows
        self.weights: np.ndarray | None = None
        self.columns: dict[str, np.ndarray] = {}
        self.classes: dict[str, tuple[list[str | None], np.ndarray]] = {}
        self.beyond: dict[str, tuple[Lookup, np.ndarray]] = {}
        self._flip = np.uint64(1 << 63 if queries.kind == SIGNED else 0)
        self._lookup: Lookup | None = None
        self._lock = threading.Lock()
        self._ascending = queries.kind != STRING and first_descent(queries.keys, self._flip) < 0
        # Whether the predictions have so far come in the order of the labels.
        self._in_order = self._ascending
        if not self._ascending:
            self._look_up()

    def _look_up(self) -> Lookup:
        with self._lock:
            if self._lookup is None:
                self._lookup, repeated = look_up(self.queries, ascending=self._ascending)
                if repeated >= 0:
                    raise RepeatedQueryError(repeated)
            return self._lookup

    def find(self, queries: Ids) -> np.ndarray:
        """Return the row of each query as int64; -1 for an unknown query."""
        if self._in_order and queries.kind == self.queries.kind:
            rows = np.empty(len(queries.keys), np.int64)
            far = find_in_order(self.queries.keys, self._flip, queries.keys, rows)
            if 8 * far <= len(rows):
                return rows
            self._in_order = False  # the next queries will not be in order either
        return (self._lookup or self._look_up()).find(queries)

    def weights_at(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the weights of rows that `find` returned, 0 for unknown queries; None without."""
        if self.weights is None:
            return None
        if not len(self.weights):
            return np.zeros(len(rows))
        weights: np.ndarray = self.weights[rows]
        weights[rows < 0] = 0
        return weights


class LabelStore:
    """Collects label lists, one after the other, as they are read.

    `rows` and `labels` are the expected numbers; there may be more or fewer. A block that no other
    follows is not copied.
    """

    def __init__(self, rows: int, labels: int) -> None:
        self._writes: list[_Write] = []
        self._settle = partial(_write_all, self._writes)
        self._queries = IdStore(rows, self._settle)
        self._lists = _GrowingLists(rows, labels, self._settle)
        self._judged: _GrowingLists | None = None
        self._first: list[tuple[Ids, LabelLists]] = []  # until another one follows
        self._places: list[tuple[int, Place]] = []
        self._audit = Counter[str]()
        self._count = self._rows = 0

    def add(
        self, lists: Lists, labels: LabelLists, dropped: Mapping[str, int]
    ) -> Callable[[], None]:
        """Make room for lists, here cleaned, after those added before, and count what was dropped.

        What is returned copies them there, on any thread. It is worth a thread of its own, because
        the system clears new memory when it is first written to. `finish` copies what is left.
        """
        blocks = [*self._first, (lists.queries, labels)]
        self._first = [] if self._places else blocks
        self._places.append((self._count, lists.place))
        self._count += len(lists.queries.keys)
        self._rows += lists.rows
        self._audit.update(dropped)
        writes = [self._place(*one) for one in blocks if not self._first]
        return partial(_write_all, writes)

    def _place(self, queries: Ids, labels: LabelLists) -> "_Write":
        copies = [self._queries.place(queries), *self._lists.place(labels)]
        if labels.judged is not None:  # all blocks have gains, or none
            self._judged = self._judged or _GrowingLists(0, 0, self._settle)
            copies += self._judged.place(labels.judged)
        self._writes.append(_Write(copies))
        return self._writes[-1]

    def finish(self, counts: Mapping[str, int] = NO_COUNTS) -> LabelIndex:
        """Return the index of all lists; these counts are added to its audit.

        InputError if a query has two rows.
        """
        self._settle()
        self._audit.update(counts)
        if self._first:
            ((ids, lone),) = self._first
            queries, labels = as_stored(ids), _as_stored(lone)
            judged = None if lone.judged is None else _as_stored(lone.judged)
        else:
            queries, labels = self._queries.finish(), self._lists.finish()
            judged = None if self._judged is None else self._judged.finish()
        if judged is not None:
            lengths = [(len(one.items.keys), *one.all_offsets[-1:]) for one in (labels, judged)]
            if lengths[0] != lengths[1]:  # else all judged items are labels
                labels = labels._replace(judged=judged)
        try:
            return LabelIndex(queries, labels, self._audit, self._rows)
        except RepeatedQueryError as error:
            start, place = next(one for one in reversed(self._places) if one[0] <= error.row)
            raise repeated_query(queries, error.row, place, error.row - start) from None


class _Write:
    """Copies what a store made room for, once, whichever thread calls it first."""

    def __init__(self, copies: list[Callable[[], object]]) -> None:
        self._copies = copies
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            for copy in self._copies:
                copy()
            self._copies = []


def _write_all(writes: list[_Write]) -> None:
    for write in writes:
        write()
    writes.clear()


class _GrowingLists:
    """Lists of items and gains, with room for so many at first; `settle` is as in `Growing`."""

    def __init__(self, rows: int, labels: int, settle: Callable[[], None]) -> None:
        self._items = IdStore(labels, settle)
        self._offsets = Growing(np.int64, rows + 1, settle)
        self._offsets.extend(np.zeros(1, np.int64))
        self._gains = Growing(np.float64, labels, settle)
        self._all_lengths = Growing(np.int64, settle=settle)
        self._all_gains = Growing(np.float64, settle=settle)
        self._labels = 0

    def place(self, labels: LabelLists) -> list[Callable[[], object]]:
        """Make room for lists; what is returned copies them there, on any thread."""
        offsets, lengths = labels.offsets, np.diff(labels.all_offsets)
        ends = self._offsets.room(len(offsets) - 1)
        copies: list[Callable[[], object]] = [
            self._items.place(labels.items),
            partial(np.add, offsets[1:], self._labels, out=ends),
            partial(np.copyto, self._gains.room(len(labels.gains)), labels.gains),
            partial(np.copyto, self._all_lengths.room(len(lengths)), lengths),
            partial(np.copyto, self._all_gains.room(len(labels.all_gains)), labels.all_gains),
        ]
        self._labels += len(labels.items.keys)
        return copies

    def finish(self) -> LabelLists:
        offsets, gains = self._offsets.finish(), self._gains.finish()
        lengths, all_gains = self._all_lengths.finish(), self._all_gains.finish()
        all_offsets = offsets_of(lengths) if len(lengths) else NO_OFFSETS
        found = LabelLists(offsets, self._items.finish(), gains, all_offsets, all_gains)
        return _without_ones(found)


def _as_stored(labels: LabelLists) -> LabelLists:
    """Return the lists of a block as a store has them that holds no others."""
    return _without_ones(labels._replace(items=as_stored(labels.items), judged=None))


def _without_ones(labels: LabelLists) -> LabelLists:
    """Return lists without gains where all of them are 1."""
    if (labels.gains == 1).all() and (labels.all_gains == 1).all():
        return labels._replace(gains=NO_GAINS, all_gains=NO_GAINS)
    return labels


def repeated_query(queries: Ids, i: int, place: Place, row: int) -> RepeatedQueryError:
    """Return the error for query i, which an earlier row already has; it is `row` of its place."""
    place = place.at(row)
    counted = ", counted from 0" if place.unit == "row" else ""
    return RepeatedQueryError(
        i,
        f"{place.source}: query {id_text(queries, i)} appears a second time in "
        f"{place.of(0)}{counted}; expected one row per query, as the items are lists: merge or "
        "drop its rows, or if several columns make a query, name them all, as --query A,B on the "
        "command line, query=[...] of Labels and Predictions in Python",
    )
