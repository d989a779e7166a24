"""Labels that do not fit into memory: ranges of query ids, evaluated one after the other.

Where footers show that row groups hold ids of narrow ranges, as those of files sorted by query do,
only the labels of one range have to be held. All that a query needs is within one range, and what
ranges come to is added up exactly, so that the result is the same to the last bit.
"""

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import is_list_type
from rankmill.engine.job import Job
from rankmill.sources.footers import RowGroup
from rankmill.sources.inputs import Input

# A query of the labels: its key and offset, whether it has labels, was seen and predicted,
# and its part of a hash table if the ids do not ascend.
A_QUERY = 8 + 8 + 3 + 16
# A label: its key; and its gain, if it has one.
A_LABEL = 8
# A string beside its key: its offset; and its bytes, if the file does not hold more of them.
A_STRING = 8
ITS_BYTES = 16
# Labels of fewer bytes are held at once: the process alone takes several times as much.
LEAST = 32 << 20
# Row groups at the ends of a range are read twice. Ranges that read more than so many times the
# rows there are would be slow: the input is not sorted.
MOST_READ = 2
# Each range starts threads anew.
MOST_RANGES = 1000


class IdRange(NamedTuple):
    """Queries whose ids are at least `low` and below `high` (None: no end), and where they are."""

    low: Any
    high: Any
    labels: list[RowGroup]
    predictions: list[RowGroup]


def label_bytes(labels: Input, rows: int, values: int, query_bytes: int, item_bytes: int) -> int:
    """What labels take when they are held, given what footers tell of them."""
    held = rows * A_QUERY + values * A_LABEL * (2 if labels.columns.gain else 1)
    for role, count, size in (("query", rows, query_bytes), ("item", values, item_bytes)):
        if is_text(labels, role):
            held += A_STRING * count + max(ITS_BYTES * count, size)
    return held


def bytes_of_groups(labels: Input, groups: list[RowGroup]) -> int:
    """What the labels of some row groups take when they are held."""
    if not groups:  # a footer may tell bounds that no id is between
        return 0
    sizes = ((one.rows, one.values, one.query_bytes, one.item_bytes) for one in groups)
    return label_bytes(labels, *map(sum, zip(*sizes, strict=True)))


def bytes_of_all(labels: Input) -> int:
    """What all labels take when they are held."""
    query, item = labels.columns.query, labels.columns.item
    sizes = labels.source.sizes([query, item])
    values, item_bytes = sizes[item]
    return label_bytes(labels, labels.source.rows, values, sizes[query][1], item_bytes)


def id_ranges(labels: Input, predictions: Input, job: Job) -> list[IdRange]:
    """The ranges to evaluate one by one; none if all labels fit, or the inputs are not sorted."""
    semantics = job.semantics
    if (
        job.keep_values  # takes as much as labels
        or job.holds_rows
        # These errors tell how many there are, and a wrong footer would make queries lack a side.
        or "error" in (semantics.unlabelled, semantics.unpredicted, semantics.no_relevant)
        or not (_same_ids(labels) and _same_ids(predictions))
    ):
        return []
    if bytes_of_all(labels) <= max(LEAST, job.memory):
        return []  # asked first: bounds of ids take a second to read from a footer of megabytes
    of_labels = _row_groups(labels)
    total = bytes_of_groups(labels, of_labels)
    if total <= max(LEAST, job.memory):
        return []
    of_predictions = _row_groups(predictions)
    if not of_predictions:
        return []
    most = max(LEAST, job.memory, total // MOST_RANGES)
    ends = [None, *_cuts(labels, of_labels, most), None]
    ranges = [
        IdRange(low, high, _between(of_labels, low, high), _between(of_predictions, low, high))
        for low, high in itertools.pairwise(ends)
    ]
    for side, groups in (
        (labels, [group for one in ranges for group in one.labels]),
        (predictions, [group for one in ranges for group in one.predictions]),
    ):
        if sum(group.rows for group in groups) > MOST_READ * side.source.rows:
            return []
    return ranges if len(ranges) > 1 else []


def restrict(one: Input, groups: list[RowGroup], within: IdRange) -> Input:
    """An input without the queries outside of a range."""
    assert one.source.within is not None  # it told of its row groups
    source = one.source.within(groups, one.columns.query, within.low, within.high)
    return replace(one, source=source)


def _row_groups(one: Input) -> list[RowGroup]:
    return one.source.row_groups(one.columns.query, one.columns.item)


def _cuts(labels: Input, groups: list[RowGroup], most: int) -> list[Any]:
    """The ids at which ranges begin, so that their labels take at most so many bytes, if they can.

    They are the first ids of row groups, so that in sorted files a range holds whole row groups.
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
    """Whether ids are of one type in all files: others are compared, and refused, over all rows."""
    return all(
        len({schema.field(name).type for schema in one.source.schemas.values()}) == 1
        for name in (one.columns.query, one.columns.item)
    )


def is_text(one: Input, role: str) -> bool:
    """Whether the ids of a column are strings."""
    kind = next(iter(one.source.schemas.values())).field(getattr(one.columns, role)).type
    return is_text_type(kind.value_type if is_list_type(kind) else kind)
