"""Ways to cut queries into slices, by what is known of each query."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from rankmill.columns.buffers import numbers_of
from rankmill.errors import UsageError
from rankmill.kernels.identity import SEED, group_rows
from rankmill.matching.index import LabelIndex
from rankmill.results.slices import UNKNOWN

# A column with more values is no way to cut queries into slices that anybody reads.
MOST_SLICES = 1000
# Slices of two columns are looked at for losses, and only the worst of them are read.
MOST_CROSSED = 20_000
# The first number of each class of counts but 0; a class ends before the next one.
STARTS = (1, 2, 3, 6, 11, 21, 51, 101)
NO_ROW = -1
# The classes of items, and of queries by their labels.
POPULARITY = ("head", "middle", "tail")

Value = str | None
"""The value of a slice as text; None where it is not known."""

Key = tuple[str, Value]
"""A slice: the name of what cuts, and its value."""

Classes = tuple[list[Value], np.ndarray]
"""Values, the last of which is None, and a place among them for each query of the labels."""


class Segments(NamedTuple):
    """One way to cut queries into slices."""

    names: tuple[str, ...]  # the columns, or the names in `DERIVED`, that cut: one or two
    values: list[tuple[Value, ...]]  # a value for each name, in the order in which slices are shown
    codes: np.ndarray  # the slice of each query, as its place in `values`

    def at(self, rows: np.ndarray) -> "Segments":
        """Return the slices of some of the queries, those that have one."""
        codes = self.codes[rows]
        there = np.bincount(codes, minlength=len(self.values)) > 0
        values = [self.values[i] for i in np.flatnonzero(there)]
        return Segments(self.names, values, (there.cumsum() - 1)[codes])

    def crossed(self, other: "Segments") -> "Segments":
        """Return the slices of both ways at once, those that have a query."""
        joined = self.codes * len(other.values) + other.codes
        found, codes = np.unique(joined, return_inverse=True)
        pairs = (divmod(int(one), len(other.values)) for one in found)
        values = [(*self.values[a], *other.values[b]) for a, b in pairs]
        names = (*self.names, *other.names)
        check_slices(names, len(values), MOST_CROSSED)
        return Segments(names, values, codes)


def check_slices(names: Iterable[str], count: int, most: int = MOST_SLICES) -> None:
    """Raise UsageError if there are too many slices."""
    if count > most:
        raise UsageError(
            f"{' and '.join(names)} has {count:,} values; expected {most:,} at most: "
            "group them into classes, in a column of the labels or a table of query ids, or choose "
            "columns of a table or groups of one, as in --by users.parquet:country,age:4 on the "
            "command line, by='users.parquet:country,age:4' in Python"
        )


def natural(value: Value) -> tuple[Any, ...]:
    """Return what values are sorted by: numbers by size, texts with theirs by size, None last.

    Examples
    --------
    >>> sorted(["b10", None, "b9", "11-20", "2", "0.5", "-5", "-10"], key=natural)
    ['-10', '-5', '0.5', '2', '11-20', 'b9', 'b10', None]
    """
    if value is None:
        return (2,)
    parts = re.split(r"(^-?\d+(?:\.\d+)?|\d+(?:\.\d+)?)", value)
    first = (0, float(parts[1])) if len(parts) > 1 and not parts[0] else (1, 0.0)
    with suppress(ValueError):
        first = (0, float(value))
    # NaN is neither above nor below a number: it is a text as others are.
    first = (1, 0.0) if first[1] != first[1] else first
    split = ((float(one), "") if i % 2 else (-1.0, one) for i, one in enumerate(parts))
    return (*first, *split, (-1.0, value))


def classes_of(name: str, column: Any) -> Classes:
    """Return the different values of an Arrow array as text, and the place of each among them.

    Raises UsageError if there are more than MOST_SLICES.
    """
    encoded = _encoded(column)
    codes = codes_of(encoded)
    check_slices([name], int((np.bincount(codes + 1) > 0).sum()))
    return [*map(_text, encoded.dictionary.to_pylist()), None], codes


def compact(name: str, classes: Classes) -> Classes:
    """Return classes with each value once, None last, and the places in as few bytes as hold them.

    Raises UsageError if a value is called as queries are for which it is not known.
    """
    values, codes = classes
    if UNKNOWN in values:
        raise UsageError(
            f"{name!r} has the value {UNKNOWN!r}, as queries without one are called: rename it"
        )
    distinct = [*dict.fromkeys(value for value in values if value is not None), None]
    places = {value: place for place, value in enumerate(distinct)}
    kind = np.min_scalar_type(-len(distinct))
    table = np.array([places[value] for value in [*values, None]], kind)
    return distinct, table[codes]


def codes_of(column: Any) -> np.ndarray:
    """Return for each value of an Arrow array the place of it among the different ones, or -1."""
    return numbers_of(_encoded(column).indices, null=NO_ROW).astype(np.int64)


def _encoded(column: Any) -> Any:
    import pyarrow.types as kinds

    if not kinds.is_dictionary(column.type):
        return _interval_texts(column).dictionary_encode()
    words = column.dictionary
    texts = _interval_texts(words)
    return column if texts is words else type(column).from_arrays(column.indices, texts)


def _interval_texts(column: Any) -> Any:
    """Return the intervals of pandas.cut as texts, such as (0, 20]; other values as they are."""
    if getattr(column.type, "extension_name", "") != "pandas.interval":
        return column
    import pyarrow as pa
    import pyarrow.compute as pc

    closed = column.type.closed
    ends = [pc.struct_field(column.storage, place).cast(pa.string()) for place in (0, 1)]
    joined = pc.binary_join_element_wise(*ends, ", ")
    begin, end = (
        "[" if closed in ("left", "both") else "(",
        "]" if closed in ("right", "both") else ")",
    )
    return pc.binary_join_element_wise(begin, joined, end, "")


def _text(value: Any) -> Value:
    """Return a value of a column as text; -0.0 is 0.0."""
    if value is None or isinstance(value, bytes):
        return None if value is None else value.decode(errors="backslashreplace")
    return str(value + 0.0 if isinstance(value, float) else value)


def segments_of(name: str, classes: Classes, rows: np.ndarray) -> Segments:
    """Return the slices of queries, given the classes of all queries of the labels by `name`.

    `rows` are the rows of the queries in the labels, -1 where they are not among them. Equal values
    are one slice. The slices are in natural order, and each has a query.
    """
    values, codes = classes
    known = np.append(codes, NO_ROW)[rows]
    places = np.where(known < 0, len(values) - 1, known)
    there = {values[place] for place in np.flatnonzero(np.bincount(places))}
    order = sorted(there, key=natural)
    place_of = {value: i for i, value in enumerate(order)}
    table = np.array([place_of.get(value, NO_ROW) for value in values], np.int64)
    return Segments((name,), [(value,) for value in order], table[places])


def class_of_count(counts: np.ndarray) -> tuple[list[Value], np.ndarray]:
    """Return the names of the classes of counts, and the class of each count."""
    ends = [*(start - 1 for start in STARTS[1:]), None]
    names: list[Value] = ["0"]
    for start, end in zip(STARTS, ends, strict=True):
        more = "+" if end is None else f"-{end}"
        names.append(f"{start}{'' if start == end else more}")
    return [*names, None], np.searchsorted(STARTS, counts, side="right")


def popularity(index: LabelIndex) -> tuple[list[Value], np.ndarray]:
    """Return whether the labels of each query are popular: of the head, the middle or the tail.

    Items are sorted by the number of queries they are a label of. The head are the first items,
    which hold a third of all labels together; the tail are the last ones with a third. Items of
    the same number are in one class, that of the first of them. A query is in the class of its
    median label, the more popular one of two.
    """
    offsets, items = index.labels.offsets, index.labels.items
    groups, first = np.empty((2, len(items.keys)), np.int64)
    count = group_rows(items, SEED, groups, first)
    counts = np.bincount(groups, minlength=count)
    sizes, of_item, items_of_size = np.unique(-counts, return_inverse=True, return_counts=True)
    classes = class_of_items(-sizes, items_of_size).astype(np.int8)[of_item][groups]
    del groups, first  # 16 bytes for each label
    lengths = np.diff(offsets)
    there = np.flatnonzero(lengths)
    head, head_or_middle = (
        np.add.reduceat(one.astype(np.int32), offsets[there]) if len(there) else there
        for one in (classes == 0, classes < 2)
    )
    codes = np.full(len(lengths), NO_ROW)
    codes[there] = class_of_median(lengths[there], head, head_or_middle)
    return [*POPULARITY, None], codes


def class_of_items(sizes: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return the class of items by their number of labels: a place in `POPULARITY`.

    `sizes` are the numbers of labels that an item may have, descending; `items` are how many items
    have each.
    """
    labels = sizes * items
    before = np.cumsum(labels) - labels
    classes: np.ndarray = np.minimum(3 * before // max(1, int(labels.sum())), 2)
    return classes


def class_of_median(labels: np.ndarray, head: np.ndarray, head_or_middle: np.ndarray) -> np.ndarray:
    """Return the class of the median label of queries, given their labels of each class."""
    median = (labels - 1) // 2
    return np.where(median < head, 0, np.where(median < head_or_middle, 1, 2))


def unpredicted(predicted: Sequence[np.ndarray]) -> tuple[list[Value], np.ndarray]:
    """Return how many of the systems have predictions for each query: all, some or none."""
    systems = np.sum(predicted, axis=0)
    codes = np.where(systems == len(predicted), 0, np.where(systems > 0, 1, 2))
    return ["by no system", "by some systems", "by all systems", None], 2 - codes


class Known(NamedTuple):
    """What is known of the queries of the labels without a further column."""

    labels: LabelIndex
    lengths: np.ndarray  # how many predictions the baseline has for each query
    predicted: list[np.ndarray]  # for each system whether it has predictions for each query
    training: Any = None  # `Training`, if it is given


def training_of(job: Any) -> Any:
    """Return what queries had in training, None if a job does not know."""
    return None if job.catalogue is None else job.catalogue.training


def activity(known: Known) -> Classes:
    """Return the class of how many items queries had in training; UsageError without training."""
    if known.training is None:
        raise UsageError(
            "by='activity' counts what queries had in training: give it with --train on the "
            "command line, Catalogue(train=...) in Python"
        )
    there = known.training.index
    rows = there.find(known.labels.queries)
    counts = np.append(np.diff(there.labels.offsets), 0)[rows]  # 0 for those at row -1
    return class_of_count(counts)


class Derived(NamedTuple):
    """A way to cut that needs no column."""

    meaning: str
    classes: Callable[[Known], Classes]  # of the queries of the labels
    of_lists: bool = False  # it looks at the predictions, known once those of the first are read


DERIVED = {
    "label_count": Derived(
        "how many labels a query has",
        lambda known: class_of_count(np.diff(known.labels.labels.offsets)),
    ),
    "list_length": Derived(
        "how many predictions the baseline has for it",
        lambda known: class_of_count(known.lengths),
        of_lists=True,
    ),
    "label_popularity": Derived(
        "whether its labels are popular: head, middle or tail",
        lambda known: popularity(known.labels),
    ),
    "activity": Derived("how many items it had in training", activity),
    "unpredicted": Derived(
        "whether all systems, some or none have predictions for it",
        lambda known: unpredicted(known.predicted),
        of_lists=True,
    ),
}
OF_PREDICTIONS = frozenset(name for name, one in DERIVED.items() if one.of_lists)
