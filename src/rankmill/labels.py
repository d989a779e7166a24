"""Labels: cleaned lists, and the index that finds a query's list by its id."""

import math
from dataclasses import dataclass

import numpy as np

from rankmill.errors import InputError
from rankmill.hits import NO_GAINS, Labels
from rankmill.ids import id_text, slice_ids, take_ids
from rankmill.kernels.identity import STRING, Ids, build_table, find_rows, mark_repeats
from rankmill.kernels.lists import sort_lists
from rankmill.lists import drop_values, take_offsets, take_values

LARGEST_GAIN = 1e100


def clean_labels(
    offsets: np.ndarray, items: Ids, gains: np.ndarray | None
) -> tuple[Labels, dict[str, int]]:
    """Label lists as sets: no repeats, no gain of 0 or less, gains falling within each list.

    Of a repeated label the largest gain counts. Also returns how many of each were dropped.
    """
    labels = Labels(offsets, items, NO_GAINS if gains is None else gains)
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
    repeated = mark_repeats(labels.offsets, labels.items, repeat)
    if repeated:
        labels = _keep(labels, ~repeat)
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
    return labels._replace(gains=np.exp2(labels.gains) - 1) if gains == "exp" else labels


def _keep(labels: Labels, keep: np.ndarray) -> Labels:
    kept = np.flatnonzero(keep)
    gains = labels.gains[kept] if len(labels.gains) else NO_GAINS
    return Labels(drop_values(labels.offsets, keep), take_ids(labels.items, kept), gains)


@dataclass(frozen=True)
class LabelIndex:
    """Query ids and their label lists.

    ``slots`` is an open-addressing hash table of rows: int32, twice to four times the queries.
    """

    queries: Ids
    labels: Labels
    slots: np.ndarray

    def find(self, queries: Ids) -> np.ndarray:
        """The row of each query, int64; -1 where it is not known."""
        rows = np.empty(len(queries.keys), np.int64)
        find_rows(self.queries, self.slots, queries, rows)
        return rows

    def gather(self, rows: np.ndarray) -> Labels:
        """The label lists of the rows, behind each other; row -1 has none."""
        labels = self.labels
        count = len(rows)
        if (
            count
            and rows[0] >= 0
            and rows[-1] - rows[0] == count - 1
            and (np.diff(rows) == 1).all()
        ):
            return slice_labels(labels, int(rows[0]), int(rows[0]) + count)
        taken = take_offsets(labels.offsets, rows)
        gains = labels.gains
        if len(gains):
            gains = take_values(labels.offsets, gains, rows, taken)
        items = labels.items
        if items.kind == STRING:
            places = take_values(labels.offsets, np.arange(len(items.keys)), rows, taken)
            items = take_ids(items, places)
        else:
            items = items._replace(keys=take_values(labels.offsets, items.keys, rows, taken))
        return Labels(taken, items, gains)


def slice_labels(labels: Labels, start: int, end: int) -> Labels:
    """Lists start to end, as views of the items."""
    first, last = labels.offsets[start], labels.offsets[end]
    gains = labels.gains[first:last] if len(labels.gains) else NO_GAINS
    return Labels(
        labels.offsets[start : end + 1] - first, slice_ids(labels.items, first, last), gains
    )


def hash_table(ids: Ids) -> tuple[np.ndarray, int]:
    """A table of the ids' rows for `find_rows`, and the first row of a repeated id or -1."""
    capacity = 1 << max(4, (2 * len(ids.keys)).bit_length())
    slots = np.full(capacity, -1, np.int32)
    return slots, build_table(ids, slots)


def repeated_query(queries: Ids, i: int, place: tuple[str, int]) -> InputError:
    """The error of query i of some lists that stood in an earlier row already."""
    source, first_row = place
    return InputError(
        f"{source}: row {first_row + i}: query {id_text(queries, i)} stands there a second time; "
        "expected one row a query, as the items are lists: merge or drop its rows"
    )
