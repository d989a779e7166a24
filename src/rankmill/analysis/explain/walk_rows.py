"""The rows of a walk down one list as a table, and what stands below: labels and predictions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.elementary import discounts
from rankmill.columns.ids import id_value, ids_to_arrow, join_ids, slice_ids, take_ids
from rankmill.columns.ranked_lists import Lists
from rankmill.engine.job import Job
from rankmill.kernels.identity import SEED, Ids
from rankmill.kernels.matching import mark_repeats
from rankmill.matching.label_lists import LabelLists
from rankmill.matching.order import arrange
from rankmill.matching.scope_filter import only_judged

# Arrow cannot take rows of views.
_LARGE = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
# So many labels are listed by name.
LISTED = 20


def repeats_of(
    lists: Lists, labels: LabelLists, rows: np.ndarray, job: Job, count: int
) -> tuple[Ids, np.ndarray]:
    """Repeats that were dropped, and how many predictions stand before each; up to a rank."""
    if job.semantics.repeated_predictions != "drop":
        return slice_ids(lists.items, 0, 0), np.empty(0, np.int64)
    listed = arrange(lists, replace(job.semantics, repeated_predictions="each"))
    if job.scope.judged_only:
        listed = only_judged(listed, labels, rows)
    repeat = np.empty(len(listed.items.keys), np.bool_)
    mark_repeats(listed.offsets, listed.items, SEED, repeat)
    before = np.cumsum(~repeat)
    places = np.flatnonzero(repeat & (before <= count))
    return take_ids(listed.items, places), before[places]


def table_of(
    items: Ids,
    columns: dict[str, np.ndarray],
    ideal: np.ndarray,
    dropped: tuple[Ids, np.ndarray],
    kinds: set[Any],
) -> pa.Table:
    """A row a rank, with the best list beside it if that is longer, and dropped items between."""
    count = len(items.keys)
    width = max(count, len(ideal))
    order = np.argsort(np.append(np.arange(width), dropped[1] - 0.5), kind="stable")
    at_rank, at_item = order < width, order < count
    rank = pa.array(order + 1, mask=~at_rank)
    item_place = np.where(at_rank, order, order - width + count)
    kinds = {_LARGE.get(kind, kind) for kind in kinds}
    item = ids_to_arrow(join_ids([items, dropped[0]]), kinds)
    item = item.take(pa.array(item_place, mask=at_rank & ~at_item))
    table = {"rank": rank, "item": item}
    place = pa.array(order, mask=~at_item)
    table |= {name: pa.array(column).take(place) for name, column in columns.items()}
    if len(ideal):
        gain = np.append(ideal, np.zeros(width - len(ideal)))
        best = {"ideal_gain": gain, "ideal_sum": (gain / discounts(width)[1:]).cumsum()}
        table |= {
            name: pa.array(one).take(pa.array(order, mask=~at_rank)) for name, one in best.items()
        }
    table["note"] = pa.array(_notes(item.to_pylist(), rank.to_pylist()), pa.string())
    return pa.table(table)


def _notes(items: list[Any], ranks: list[int | None]) -> list[str]:
    """Which items repeat an earlier one, and at which rank that stands."""
    first: dict[Any, int | None] = {}
    notes = []
    for item, rank in zip(items, ranks, strict=True):
        note = ""
        if item is None:
            note = "no prediction"
        elif item in first:
            note = f"repeats rank {first[item]}" + (", dropped" if rank is None else "")
        else:
            first[item] = rank
        notes.append(note)
    return notes


def tell_labels(items: Ids, count: int) -> str:
    """How many labels there are, and the first of them."""
    named = [str(id_value(items, i)) for i in range(min(LISTED, len(items.keys)))]
    more = ["..."] if len(items.keys) > LISTED else []
    return f"{count:,}: {', '.join([*named, *more])}" if count else "0"


def tell_predictions(lists: Lists, arranged: Lists, dropped: Mapping[str, int], count: int) -> str:
    """How many predictions there are, and which of them do not count."""
    predictions = len(arranged.items.keys)
    text = f"{predictions:,}"
    if count < predictions:
        text += f", of which the first {count:,} count"
    if arranged.repeats:
        text += f"; repeats dropped: {arranged.repeats:,}"
    if lists.nulls:
        text += f"; null items dropped: {lists.nulls:,}"
    if dropped["items_beyond_depth"]:
        text += f"; beyond the depth: {dropped['items_beyond_depth']:,}"
    if dropped["unjudged_items"]:
        text += f"; unjudged, dropped: {dropped['unjudged_items']:,}"
    return text
