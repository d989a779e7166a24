"""Reading the labels of a job into their index."""

from contextlib import closing
from functools import partial

from rankmill.columns.ranked import Lists
from rankmill.engine.job import Job
from rankmill.errors import InputError
from rankmill.matching.index import LabelIndex, LabelStore, RepeatedQueryError
from rankmill.matching.labels import Labels, clean_labels, exponential
from rankmill.results import audit
from rankmill.sources.inputs import Input, map_lists
from rankmill.sources.long import ScatteredRowsError
from rankmill.threads import Workers


class HeldLabels:
    """Labels that are read once, when they are first needed, and held for all systems."""

    def __init__(self, labels: Input) -> None:
        self.input = labels
        self._known: dict[tuple[str, str, bool], LabelIndex] = {}

    def index(self, job: Job, workers: Workers) -> LabelIndex:
        """The index of all labels; raises InputError if there must be one and is none."""
        key = job.semantics.repeated_labels, job.gain_function, job.keeps_judged
        if key not in self._known:
            self._known[key] = read_labels(self.input, job, workers)
        check_labelled(self.input, job, len(self._known[key].labels.items.keys))
        return self._known[key]


def read_labels(labels: Input, job: Job, workers: Workers) -> LabelIndex:
    """Read and clean all label lists; raises InputError if they are not as said.

    Judged items of gain 0 or less are kept beside them if the job needs these.
    """
    clean = partial(clean_lists, job=job)
    expected, _ = labels.source.sizes([labels.columns.item])[labels.columns.item]
    for together in (False,) if labels.columns.wide else (True, False):
        read = map_lists(clean, labels.source, labels.columns, workers, together=together)
        counts = audit.empty()
        rows = 0
        store = LabelStore(labels.source.rows or 0, expected)
        try:
            with closing(read) as blocks:
                for lists, cleaned, dropped in blocks:
                    store.add(lists.queries, cleaned, lists.place)
                    counts = audit.add(counts, dropped)
                    rows += lists.rows
            index = store.finish(counts, rows)
        except (ScatteredRowsError, RepeatedQueryError):
            if not together:
                raise
        else:
            break
    return index


def check_labelled(labels: Input, job: Job, count: int) -> None:
    """Raise InputError if there is not one label, and there must be."""
    if not count and not job.part and not job.semantics.counts_without_labels:
        raise InputError(
            f"{labels.source.name}: no query has a label, so there is nothing to average"
        )


def clean_lists(lists: Lists, job: Job) -> tuple[Lists, Labels, dict[str, int]]:
    """Label lists, as they were and cleaned, and what was counted."""
    try:
        cleaned, dropped = clean_labels(
            lists.offsets,
            lists.items,
            lists.numbers,
            repeats=job.semantics.repeated_labels,
            queries=lists.queries,
            judged=job.keeps_judged,
        )
    except InputError as error:
        raise InputError(f"{lists.place.source}: {error}") from None
    return lists, exponential(cleaned, job.gain_function), dropped | {"null_labels": lists.nulls}
