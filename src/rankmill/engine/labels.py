"""Opening both inputs, and reading the labels into their index."""

from contextlib import closing
from dataclasses import dataclass
from functools import partial

from rankmill.columns.ranked import Lists
from rankmill.errors import InputError
from rankmill.matching.index import LabelIndex, LabelStore, RepeatedQueryError
from rankmill.matching.labels import Labels, clean_labels, exponential
from rankmill.results import audit
from rankmill.sources.inputs import Input, map_lists
from rankmill.sources.long import ScatteredRowsError
from rankmill.threads import Workers


@dataclass(frozen=True)
class LabelsRead:
    """The index of label lists, what was counted, and the rows that they came from."""

    index: LabelIndex
    counts: dict[str, int]
    rows: int


def read_labels(
    labels: Input, gain_function: str, workers: Workers, *, repeats: str = "set", whole: bool = True
) -> LabelsRead:
    """Read and clean all label lists.

    Raises
    ------
    InputError
        If they are not as said; also if there is none, where they are the whole of the labels.
    """
    clean = partial(clean_lists, gain_function=gain_function, repeats=repeats)
    expected, _ = labels.source.sizes([labels.columns.item])[labels.columns.item]
    for together in (False,) if labels.columns.wide else (True, False):
        read = map_lists(clean, labels.source, labels.columns, workers, together=together)
        counts = audit.empty()
        rows = 0
        store = LabelStore(labels.source.rows, expected)
        try:
            with closing(read) as blocks:
                for lists, cleaned, dropped in blocks:
                    store.add(lists.queries, cleaned, lists.place)
                    counts = audit.add(counts, dropped)
                    rows += lists.rows
            index = store.finish()
        except (ScatteredRowsError, RepeatedQueryError):
            if not together:
                raise
        else:
            break
    if whole:
        check_labelled(labels, len(index.labels.items.keys))
    return LabelsRead(index, counts, rows)


def check_labelled(labels: Input, count: int) -> None:
    """Raise InputError if there is not one label."""
    if not count:
        raise InputError(
            f"{labels.source.name}: no query has a label, so there is nothing to average"
        )


def clean_lists(
    lists: Lists, gain_function: str, repeats: str
) -> tuple[Lists, Labels, dict[str, int]]:
    """Label lists, as they were and cleaned, and what was counted."""
    try:
        cleaned, dropped = clean_labels(
            lists.offsets, lists.items, lists.numbers, repeats=repeats, queries=lists.queries
        )
    except InputError as error:
        raise InputError(f"{lists.place[0]}: {error}") from None
    return lists, exponential(cleaned, gain_function), dropped | {"null_labels": lists.nulls}
