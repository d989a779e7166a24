"""Labels: cleaned lists, and the index that finds a query's list by its id."""

import math
import threading

import numpy as np

from rankmill.elementary import exp2, expm1
from rankmill.errors import InputError
from rankmill.hits import NO_GAINS, NO_OFFSETS, Labels
from rankmill.ids import Growing, IdStore, id_text, take_ids
from rankmill.kernels.ascending import find_in_order, first_descent
from rankmill.kernels.identity import SEED, SIGNED, STRING, Ids
from rankmill.kernels.lists import sort_lists
from rankmill.kernels.matching import mark_repeats
from rankmill.lists import drop_values, offsets_of
from rankmill.lookup import Lookup, look_up

LARGEST_GAIN = 1e100


class RepeatedQueryError(InputError):
    """A query id stands a second time, at `row`."""

    def __init__(self, row: int, message: str = "") -> None:
        super().__init__(message)
        self.row = row


def clean_labels(
    offsets: np.ndarray,
    items: Ids,
    gains: np.ndarray | None,
    *,
    repeats: str = "set",
    queries: Ids | None = None,
) -> tuple[Labels, dict[str, int]]:
    """Label lists as sets: no repeats, no gain of 0 or less, gains falling within each list.

    Of a repeated label the largest gain counts. Where `repeats` is "count", offsets and gains are
    also kept as they were with them. Also returns how many of each were dropped.

    Raises
    ------
    InputError
        If there is a repeat and `repeats` is "error"; `queries` name the lists then.
    """
    labels = Labels(offsets, items, NO_GAINS if gains is None else gains.astype(np.float64))
    nonpositive = 0
    if len(labels.gains):
        keep = labels.gains > 0
        nonpositive = len(keep) - int(keep.sum())
        if nonpositive:
            labels = _keep(labels, keep)
        order = np.arange(len(labels.gains))
        sort_lists(labels.offsets, -labels.gains, order)
        labels = Labels(labels.offsets, take_ids(labels.items, order), labels.gains[order])
    repeat = np.empty(len(labels.items.keys), np.bool_)
    repeated = mark_repeats(labels.offsets, labels.items, SEED, repeat)
    before = labels
    if repeated and repeats == "error" and queries is not None:
        place = int(repeat.argmax())
        row = int(np.searchsorted(labels.offsets, place, side="right")) - 1
        raise InputError(
            f"query {id_text(queries, row)} has label {id_text(labels.items, place)} a second "
            "time, but repeated_labels is 'error': drop the repeats, or choose 'set' or 'count'"
        )
    if repeated:
        labels = _keep(labels, ~repeat)
    if repeats == "count":
        labels = labels._replace(all_offsets=before.offsets, all_gains=before.gains)
    return labels, {"repeated_labels": repeated, "nonpositive_gains": nonpositive}


def exponential(labels: Labels, gains: str) -> Labels:
    """The labels with gains 2**g - 1 where `gains` is "exp"; a gain of 1 stays 1.

    Raises
    ------
    InputError
        If a gain is too large: sums and squares of gains must stay finite.
    """
    largest = labels.gains.max(initial=0)
    limit = LARGEST_GAIN if gains == "linear" else math.log2(LARGEST_GAIN)
    if largest > limit:
        raise InputError(f"a gain is {largest:g}; expected {limit:g} at most for {gains} gains")
    if gains == "exp":
        labels = labels._replace(gains=_powers(labels.gains), all_gains=_powers(labels.all_gains))
    return labels


def _powers(gains: np.ndarray) -> np.ndarray:
    """2**g - 1, exact for whole gains, and for tiny ones not rounded to 0."""
    powers = exp2(gains) - 1
    tiny = gains < 1e-3
    if tiny.any():
        powers[tiny] = expm1(gains[tiny] * math.log(2))
    return powers


def _keep(labels: Labels, keep: np.ndarray) -> Labels:
    kept = np.flatnonzero(keep)
    gains = labels.gains[kept] if len(labels.gains) else NO_GAINS
    return Labels(drop_values(labels.offsets, keep), take_ids(labels.items, kept), gains)


class LabelIndex:
    """Query ids and their label lists.

    Ids that ascend are searched outwards from the last match. Others, and ascending ones that are
    asked for in another order, are looked up in a table.

    Raises
    ------
    RepeatedQueryError
        If a query id stands twice.
    """

    def __init__(self, queries: Ids, labels: Labels) -> None:
        self.queries = queries
        self.labels = labels
        self._flip = np.uint64(1 << 63 if queries.kind == SIGNED else 0)
        self._lookup: Lookup | None = None
        self._lock = threading.Lock()
        self._ascending = queries.kind != STRING and first_descent(queries.keys, self._flip) < 0
        # Whether queries are asked for in the order in which they stand.
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
        """The row of each query, int64; -1 where it is not known."""
        if self._in_order and queries.kind == self.queries.kind:
            rows = np.empty(len(queries.keys), np.int64)
            far = find_in_order(self.queries.keys, self._flip, queries.keys, rows)
            if 8 * far <= len(rows):
                return rows
            self._in_order = False  # those that are asked for next will not be, either
        return (self._lookup or self._look_up()).find(queries)


class LabelStore:
    """Label lists that are put behind each other as they are read.

    There is room for so many rows and labels at first; there may be more, or fewer.
    """

    def __init__(self, rows: int, labels: int) -> None:
        self._queries = IdStore(rows)
        self._items = IdStore(labels)
        self._offsets = Growing(np.int64, rows + 1)
        self._offsets.extend(np.zeros(1, np.int64))
        self._gains = Growing(np.float64)
        self._all_lengths = Growing(np.int64)
        self._all_gains = Growing(np.float64)
        self._places: list[tuple[int, tuple[str, int]]] = []
        self._count = self._labels = 0

    def add(self, queries: Ids, labels: Labels, place: tuple[str, int]) -> None:
        """Put the lists of some queries behind those that are there."""
        self._queries.add(queries)
        self._items.add(labels.items)
        self._offsets.extend(labels.offsets[1:] + self._labels)
        self._gains.extend(labels.gains)
        if len(labels.all_offsets):
            self._all_lengths.extend(np.diff(labels.all_offsets))
        self._all_gains.extend(labels.all_gains)
        self._places.append((self._count, place))
        self._count += len(queries.keys)
        self._labels += len(labels.items.keys)

    def finish(self) -> LabelIndex:
        """The index of all lists.

        Raises
        ------
        InputError
            If a query stands in two rows.
        """
        offsets = self._offsets.finish()
        gains, all_gains = self._gains.finish(), self._all_gains.finish()
        if (gains == 1).all() and (all_gains == 1).all():
            gains = all_gains = NO_GAINS
        lengths = self._all_lengths.finish()
        all_offsets = offsets_of(lengths) if len(lengths) else NO_OFFSETS
        labels = Labels(offsets, self._items.finish(), gains, all_offsets, all_gains)
        queries = self._queries.finish()
        try:
            return LabelIndex(queries, labels)
        except RepeatedQueryError as error:
            start, place = next(one for one in reversed(self._places) if one[0] <= error.row)
            raise repeated_query(queries, error.row, (place[0], place[1] - start)) from None


def repeated_query(queries: Ids, i: int, place: tuple[str, int]) -> RepeatedQueryError:
    """The error of query i of some lists that stood in an earlier row already."""
    source, first_row = place
    return RepeatedQueryError(
        i,
        f"{source}: query {id_text(queries, i)} stands a second time in row {first_row + i}, "
        "counted from 0; expected one row a query, as the items are lists: merge or drop its rows",
    )
