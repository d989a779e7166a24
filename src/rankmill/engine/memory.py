"""Labels that do not fit into memory: ranges of query ids are evaluated one after the other.

In files sorted by query, each row group holds a narrow range of ids, and the footer tells which.
Then only the labels of one range have to be in memory. A range has all rows of its queries, and the
states of the ranges are merged exactly, so the result is the same to the last bit. Rows of other
ranges may stand between them: row groups that two ranges share are read twice.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import is_list_type
from rankmill.engine.job import Job
from rankmill.errors import ResourceError
from rankmill.sources.files.footers import RowGroup
from rankmill.sources.inputs.inputs import Input

# The bytes of a query of the labels: its key and its offset; whether it has labels, was seen and
# was predicted; and its share of a hash table, which is needed if the ids do not ascend.
A_QUERY = 8 + 8 + 3 + 16
# The bytes of its weight: read with its key, grouped by query, and put in the order of the labels.
A_WEIGHT = 8 + 8 + 32 + 8
# The bytes of a label: its key. A gain takes as many.
A_LABEL = 8
# The bytes that a string takes besides its key: its offset, and its text. The text is assumed to
# take at least 16 bytes, and more if it does in the file.
A_STRING = 8
ITS_BYTES = 16
# Labels of fewer bytes take no room from others: the process alone takes several times as much.
LEAST = 32 << 20
# Labels and lists of fewer bytes are never refused.
SPARED = 64 << 20
MB = 10**6
# The bytes of an item in a list that is read, matched and scored.
A_LISTED = 64
# Row groups that overlap the end of a range are read twice. If ranges would read more than this
# many times the rows of the input, the input is not sorted and ranges would be slow; of labels that
# fit, but leave less than half of the memory, it is not worth to read more than so many times.
MOST_READ = 2
MOST_READ_TO_SHARE = 1.25
# The number of ranges is limited, because each range starts threads anew.
MOST_RANGES = 1000


class IdRange(NamedTuple):
    """Queries with ids from `low` to below `high` (None: no bound), and their row groups."""

    low: Any
    high: Any
    labels: list[RowGroup]
    predictions: list[RowGroup]


def label_bytes(labels: Input, rows: int, values: int, query_bytes: int, item_bytes: int) -> int:
    """Return the bytes that labels take in memory, from the counts and sizes in footers."""
    held = rows * (A_QUERY + A_WEIGHT * len(labels.columns.facts))
    held += values * A_LABEL * (2 if labels.columns.gain else 1)
    for role, count, size in (("query", rows, query_bytes), ("item", values, item_bytes)):
        if is_text(labels, role):
            held += A_STRING * count + max(ITS_BYTES * count, size)
    return held


def bytes_of_groups(labels: Input, groups: list[RowGroup]) -> int:
    """Return the bytes that the labels of some row groups take in memory."""
    if not groups:  # the bounds in a footer may enclose no id
        return 0
    sizes = ((one.rows, one.values, one.query_bytes, one.item_bytes) for one in groups)
    return label_bytes(labels, *map(sum, zip(*sizes, strict=True)))


def bytes_of_all(labels: Input) -> int:
    """Return the bytes that all labels take in memory."""
    query, item = labels.columns.query, labels.columns.item
    sizes = labels.source.sizes([query, item])
    values, item_bytes = sizes[item]
    return label_bytes(labels, labels.source.rows or 0, values, sizes[query][1], item_bytes)


def items_at_most(several: Iterable[Input]) -> tuple[int, int]:
    """Return how many distinct items inputs have at most, and the bytes of their texts; or 0, 0.

    Integers are no more than there are between the lowest and the highest that footers name. Texts
    take no more than their columns without compression, and are known of Parquet files alone.
    """
    values = texts = 0
    bounds: list[tuple[Any, Any]] | None = []
    for one in several:
        item = one.columns.item
        count = one.source.sizes([item])[item][0]
        groups = one.source.row_groups(item, item) if count else []
        text = is_text(one, "item")
        if one.source.rows is None or (text and count and not groups):
            return 0, 0
        values += count
        texts += sum(group.item_whole for group in groups if text)
        if text or (count and not groups):
            bounds = None
        elif bounds is not None:
            bounds += [(group.low, group.high) for group in groups]
    if bounds:
        lows, highs = zip(*bounds, strict=True)
        values = min(values, max(highs) - min(lows) + 1)
    return values, texts


def bytes_of_items(items: Input) -> int:
    """Return the bytes that distinct items take in memory, with the table that finds them."""
    count, size = items.source.sizes([items.columns.item])[items.columns.item]
    return count * (A_LABEL + 16) + (A_STRING * count + size if is_text(items, "item") else 0)


def bytes_of_vectors(features: Input) -> int:
    """Return the bytes that vectors of items take in memory, with those being read."""
    sizes = features.source.sizes(list(features.columns.facts))
    return 2 * 8 * sum(count for count, _ in sizes.values())


def bytes_at_once(
    labels: Input, predictions: Input, ranges: Sequence[IdRange], whole: int
) -> tuple[int, int]:
    """Return the bytes of the labels that are held at once, and of a list of mean length.

    `whole` are the bytes of all labels.
    """
    held = max((bytes_of_groups(labels, one.labels) for one in ranges), default=0)
    values = 0
    if predictions.source.format and predictions.columns.wide and predictions.source.rows:
        item = predictions.columns.item
        values = predictions.source.sizes([item])[item][0] // predictions.source.rows
    return held or whole, A_LISTED * values


def check_room(
    labels: Input, predictions: Input, ranges: Sequence[IdRange], whole: int, memory: int
) -> int:
    """Return how many of the bytes allowed are left beside the labels, but a quarter at least.

    `whole` are the bytes of all labels. Raises ResourceError if files need more than is allowed.
    """
    held, a_list = bytes_at_once(labels, predictions, ranges, whole)
    for one, size, what, todo in (
        (labels, held, "its labels take", ", or hold ranges of them: 'rankmill docs memory'"),
        (predictions, a_list, "a list, which is read as a whole, takes", ""),
    ):
        if one.source.format and size > max(SPARED, memory):
            raise ResourceError(
                f"{one.source.name}: {what} about {size // MB + 1:,}MB in memory, and "
                f"{memory // MB:,}MB are allowed: allow {size // MB + 1}MB{todo}"
            )
    return room_beside(held, memory)


def room_beside(held: int, memory: int) -> int:
    """Return how many of the bytes allowed are left beside labels, but a quarter at least."""
    return memory if held <= LEAST else max(1, memory // 4, memory - held)


def id_ranges(labels: Input, predictions: Input, job: Job, whole: int) -> list[IdRange]:
    """Return the ranges to evaluate; none if all labels fit or the inputs are not sorted.

    `whole` are the bytes of all labels.
    """
    semantics = job.semantics
    if (
        job.keep_values  # the values take as much memory as the labels
        or not (job.cuts is None or job.cuts.by_part)
        or (job.by and any(aggregate.passes > 1 for aggregate in job.kinds.values()))
        or job.holds_rows
        # An "error" reports the number of wrong queries of all ranges together, and a wrong footer
        # could separate the labels of a query from its predictions.
        or "error" in (semantics.unlabelled, semantics.unpredicted, semantics.no_relevant)
        or not (_same_ids(labels) and _same_ids(predictions))
    ):
        return []
    shared = not predictions.columns.wide or any(need.grows for need in job.needs)
    room = job.memory // 2 if shared else job.memory
    if whole <= room:
        return []  # checked before the bounds of ids, which take a second to read from a big footer
    of_labels = _row_groups(labels)
    total = bytes_of_groups(labels, of_labels)
    if total <= room:
        return []
    of_predictions = _row_groups(predictions)
    if not of_predictions:
        return []
    most = max(room, total // MOST_RANGES)
    ends = [None, *_cuts(labels, of_labels, most), None]
    ranges = [
        IdRange(low, high, _between(of_labels, low, high), _between(of_predictions, low, high))
        for low, high in itertools.pairwise(ends)
    ]
    most_read = MOST_READ if total > job.memory else MOST_READ_TO_SHARE
    for side, groups in (
        (labels, [group for one in ranges for group in one.labels]),
        (predictions, [group for one in ranges for group in one.predictions]),
    ):
        if sum(group.rows for group in groups) > most_read * (side.source.rows or 0):
            return []
    return ranges if len(ranges) > 1 else []


def restrict(one: Input, groups: list[RowGroup], within: IdRange) -> Input:
    """Return an input that has only the queries of a range."""
    assert one.source.within is not None  # as the source has row groups
    source = one.source.within(groups, one.columns.query, within.low, within.high)
    return replace(one, source=source)


def _row_groups(one: Input) -> list[RowGroup]:
    return one.source.row_groups(one.columns.query, one.columns.item)


def _cuts(labels: Input, groups: list[RowGroup], most: int) -> list[Any]:
    """Return the ids at which ranges start; their labels take at most `most` bytes if possible.

    Each is the first id of a row group, so in sorted files a range consists of whole row groups.
    """
    cuts: list[Any] = []
    held: list[RowGroup] = []
    total = 0
    start = min(group.low for group in groups)
    for group in sorted(groups, key=lambda one: one.low):
        size = bytes_of_groups(labels, [group])
        if total + size > most and group.low > start:
            start = group.low
            cuts.append(start)
            held = [one for one in held if one.high >= group.low]
            total = bytes_of_groups(labels, held)
        held.append(group)
        total += size
    return cuts


def _between(groups: list[RowGroup], low: Any, high: Any) -> list[RowGroup]:
    return [
        one
        for one in groups
        if (low is None or one.high >= low) and (high is None or one.low < high)
    ]


def _same_ids(one: Input) -> bool:
    """Return whether ids have one type in all files. If not, all rows are compared (or refused)."""
    return all(
        len({schema.field(name).type for schema in one.source.kinds().values()}) == 1
        for name in (one.columns.query, one.columns.item)
    )


def is_text(one: Input, role: str) -> bool:
    """Return whether the ids of a column are strings."""
    kind = one.source.schema.field(getattr(one.columns, role)).type
    return is_text_type(kind.value_type if is_list_type(kind) else kind)
