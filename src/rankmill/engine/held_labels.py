"""Reading the labels of a job into their index, and the catalogue beside them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise, starmap
from operator import call
from typing import Any, TypeVar

import numpy as np

from rankmill.columns.buffers import arrow_of, floats_of
from rankmill.columns.ids import id_text
from rankmill.columns.ranked_lists import Lists
from rankmill.engine.job import Job
from rankmill.errors import InputError, UsageError
from rankmill.kernels.identity import Ids
from rankmill.matching.catalogue import Features, KnownItems, Training
from rankmill.matching.hits import places_among
from rankmill.matching.index import LabelIndex, LabelStore, RepeatedQueryError
from rankmill.matching.label_lists import LabelLists, clean_labels, with_worths
from rankmill.metrics.base import NO_CUTOFF
from rankmill.metrics.records.item_counts import ItemCounter, ItemCounts
from rankmill.results.audit import MOST_LISTED
from rankmill.semantics.choices import DEFAULT, WHOLE
from rankmill.sources.inputs.catalogue_items import (
    open_features,
    open_items,
    read_features,
    read_items,
)
from rankmill.sources.inputs.inputs import (
    Input,
    alike,
    check_positions,
    map_lists,
    open_input,
    open_sources,
)
from rankmill.sources.meaning.column_names import warn
from rankmill.sources.meaning.plain_ids import SAY_PADDING, USUAL_PADDING, is_id
from rankmill.sources.meaning.roles import among
from rankmill.sources.meaning.values import with_column
from rankmill.sources.nouns import Catalogue, Labels
from rankmill.sources.roles.source import Batch, Columns, InputOptions, read_batches
from rankmill.sources.rows.facts import QueryFacts, read_columns, read_facts, seen_rows
from rankmill.sources.rows.long import ScatteredRowsError
from rankmill.threads import Workers

Value = TypeVar("Value")

# Sums of squares of weights, and of numbers that are multiplied by weights, stay finite.
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100


class HeldLabels:
    """Labels that are read once, when they are first needed, and held for all systems."""

    def __init__(self, labels: Input) -> None:
        self.input = labels
        self._known: dict[Any, LabelIndex] = {}

    def index(self, job: Job, workers: Workers) -> LabelIndex:
        """The index of all labels; raises InputError if there must be one and is none.

        Prepared labels keep it for other calls, unless this one cuts it into slices.
        """
        known = self._known
        if self.input.source.made is not None and job.cuts is None:
            known = self.input.source.made
        how = job.semantics.repeated_labels, job.gain_function, job.keeps_judged
        types = (frozenset(self.input.id_types(role)) for role in ("query", "item"))
        key = (
            *how,
            job.whole_gains,
            job.scope.weight,
            self.input.columns,
            self.input.source.key,
            *types,
        )
        if key not in known:
            known[key] = read_labels(self.input, job, workers)
        check_labelled(self.input, job, len(known[key].labels.items.keys))
        return known[key]


def read_labels(labels: Input, job: Job, workers: Workers) -> LabelIndex:
    """Read and clean all label lists; raises InputError if they are not as said.

    Judged items of gain 0 or less are kept beside them if the job needs these, and the weights of
    queries if it has weights.
    """
    clean = partial(clean_lists, job=job)
    expected, _ = labels.source.sizes([labels.columns.item])[labels.columns.item]

    def read(together: bool) -> LabelIndex:
        store = LabelStore(labels.source.rows or 0, expected)
        lists = map_lists(clean, labels.source, labels.columns, workers, together=together)
        # This thread makes room for each block, and the others copy the blocks there.
        with (
            closing(lists) as blocks,
            closing(workers.map(call, starmap(store.add, blocks))) as written,
        ):
            for _ in written:
                pass
        return store.finish(labels.comment_lines())

    index = read_in_order(read, labels.columns)
    if job.scope.weight is not None:
        index.weights = _read_weights(labels, index, job.scope.weight, workers)
    if seen := job.columns("hit"):
        index.columns = _read_seen(labels, index, seen, workers)
    return index


def read_in_order(read: Callable[[bool], Value], columns: Columns) -> Value:
    """Read rows, long ones as if those of a query were together, and again if they are not."""
    if not columns.wide:
        with suppress(ScatteredRowsError, RepeatedQueryError):
            return read(True)
    return read(False)


def _read_seen(
    labels: Input, index: LabelIndex, seen: Mapping[str, str], workers: Workers
) -> dict[str, np.ndarray]:
    """Return columns of the labels, each with the metric that sees it: a value a label.

    Of the rows of a label those of its largest gain count, and of these the smallest value.
    """
    source, columns = labels.source, replace(labels.columns, seen=(*seen,))
    for name, metric in seen.items():
        source = with_column(source, name, metric, (), lists=columns.wide)

    def read(batch: Batch) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        queries, offsets, items, numbers = seen_rows(batch, columns)
        places = places_among(index.labels, offsets, items, index.find(queries))
        gains = numbers.get(columns.gain or "", np.zeros(len(places)))
        known = places >= 0
        return places[known], gains[known], {name: numbers[name][known] for name in seen}

    names = list(dict.fromkeys([*columns.names(), *seen]))
    with closing(read_batches(read, source, names, workers)) as batches:
        parts = list(batches)
    largest = np.full(len(index.labels.items.keys), -np.inf)
    found = {name: np.full(len(largest), np.nan) for name in seen}
    for places, gains, _ in parts:
        np.maximum.at(largest, places, gains)
    for places, gains, numbers in parts:
        counts = gains == largest[places]
        for name, values in found.items():
            np.fmin.at(values, places[counts], numbers[name][counts])
    return found


def _read_weights(labels: Input, index: LabelIndex, name: str, workers: Workers) -> np.ndarray:
    """Return the weight of each query of the index; InputError if one is missing or wrong."""
    source = labels.source.name
    column = read_label_facts(labels, index, [name], workers)[name]
    found = floats_of(column, f"{source}: column {name!r}").astype(np.float64)
    good = (found == 0) | ((found >= LEAST_WEIGHT) & (found <= LARGEST_WEIGHT))
    if not good.all():
        place = int(good.argmin())
        value = column[place].as_py()
        raise InputError(
            f"{source}: query {id_text(index.queries, place)} has the weight "
            f"{'null' if value is None else value} in column {name!r}; expected 0, or a number "
            f"from {LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}: fix it, or drop the query"
        )
    return np.abs(found)  # of -0, which is a 0


def read_label_facts(
    labels: Input, index: LabelIndex, names: Sequence[str], workers: Workers
) -> dict[str, Any]:
    """Return columns of the labels as Arrow arrays, with a value for each query of their index."""
    queries = len(index.queries.keys)
    if labels.columns.wide:  # a row a query, in the order of the index
        found = read_columns(labels.source, names, workers)
        for column in found.values():
            if len(column) != queries:
                raise InputError(
                    f"{labels.source.name} held {queries:,} rows and now holds {len(column):,}: it "
                    "was changed meanwhile"
                )
        return found
    facts = read_facts(labels.source, labels.columns, names, workers)
    return at_rows(facts, index)


def at_rows(facts: QueryFacts, index: LabelIndex) -> dict[str, Any]:
    """Return each column of facts with a value for each query of an index; null if it has none."""
    return placed(facts, index.find(facts.queries), len(index.queries.keys))


def placed(
    facts: QueryFacts, rows: np.ndarray, count: int, *, beyond: bool = False
) -> dict[str, Any]:
    """Return each column of facts with a value for each of so many rows; null if it has none.

    `rows` are those of the queries of the facts, or -1. With `beyond`, the values of these follow.
    """
    place = np.full(count, -1, np.int64)
    place[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    if beyond:
        place = np.append(place, np.flatnonzero(rows < 0))
    taken = arrow_of(place, place < 0)
    return {name: column.take(taken) for name, column in facts.columns.items()}


def check_labelled(labels: Input, job: Job, count: int) -> None:
    """Raise InputError if there is not one label, and there must be."""
    if not count and not job.part and not job.semantics.counts_without_labels:
        raise InputError(
            f"{labels.source.name}: no query has a label, so there is nothing to average"
        )


def check_width(index: LabelIndex, labels: Input, predictions: Input) -> None:
    """Raise InputError if a label is no column of the matrix that the predictions are."""
    width, items = predictions.source.width, index.labels.items
    if width is None:
        return
    beyond = items.keys >= np.uint64(width)  # also negative ones
    if beyond.any():
        place = int(beyond.argmax())
        query = int(np.searchsorted(index.labels.offsets, place, side="right")) - 1
        raise InputError(
            f"{labels.source.name}: query {id_text(index.queries, query)} has the label "
            f"{id_text(items, place)}, but {predictions.source.name} has the columns 0 to "
            f"{width - 1}: labels must be column numbers; name padding such as -1 with "
            "Labels(..., padding=-1)"
        )
    listed, _ = labels.source.sizes([labels.columns.item])[labels.columns.item]
    cells = width * index.rows
    if labels.source.width is None and listed == cells and index.audit["repeated_labels"]:
        raise InputError(
            f"{labels.source.name} holds a number for each cell of {predictions.source.name}, and "
            "repeats labels, which looks like gains and not like lists of items: use "
            "rankmill.arrays.Matrix(...)"
        )


def _check_whole(gains: np.ndarray, preset: str) -> None:
    """Raise InputError for gains that the evaluator of a preset does not read as they are."""
    cut = np.trunc(gains)
    if (wrong := gains != cut).any():
        place = int(wrong.argmax())
        raise InputError(
            f"a gain is {gains[place]:g}, and {preset} cuts gains to whole numbers, here to "
            f"{cut[place]:g}: write whole gains, leave them out with --binary on the command line, "
            "binary=True in Python, or leave out the preset to count them as they are"
        )


def clean_lists(lists: Lists, job: Job) -> tuple[Lists, LabelLists, dict[str, int]]:
    """Label lists, as they were and cleaned, and what was counted."""
    try:
        if job.whole_gains and lists.numbers is not None:
            _check_whole(lists.numbers, job.whole_gains)
        cleaned, dropped = clean_labels(
            lists.offsets,
            lists.items,
            lists.numbers,
            repeats=job.semantics.repeated_labels,
            queries=lists.queries,
            judged=job.keeps_judged,
        )
        worths = with_worths(cleaned, job.gain_function)
    except InputError as error:
        starts = [start for start, _ in lists.place.files]
        for start, end in pairwise([*starts, lists.rows]):
            clean_lists(replace(lists.slice(start, end), place=lists.place.at(start)), job)
        raise InputError(f"{lists.place.source}: {error}") from None
    return lists, worths, dropped | {"null_labels": lists.nulls}


# ------------------------------------------------------------------ what stands beside them


def with_catalogue(job: Job, catalogue: Catalogue | None, labels: Input, workers: Workers) -> Job:
    """Return the job with the items that can be shown, and those that queries had in training.

    Their columns are named as those of the labels, or by their usual names. A job that knows them
    already is as it was. Errors are of inputs that cannot be read, or of ids unlike the labels'.
    """
    if job.catalogue is not None:
        return job
    openers = beside(catalogue, labels, job)
    assert (*openers,) == job.beside  # nothing is counted as if the catalogue were not there
    if not openers:
        return job
    training = items = groups = features = None
    columns: dict[str, np.ndarray] = {}
    described: dict[str, dict[str, object]] = {}
    for name, opener in openers.items():
        with opened(name, opener, labels) as one:
            if name == "train":
                index = training_index(one, job, workers)
                training = training_of(*item_counts(index), one).of_part(index)
                items, rows = training.items, index.rows
            elif name == "items":
                items, groups, rows, columns = read_items(one, workers)
            else:
                read = read_features(one, workers)
                features, rows = Features(read.items, read.vectors), read.rows
                items = features.items if items is None else items
            described[name] = described_beside(name, one, rows)
    assert items is not None
    warn_of_padding(items)
    known = KnownItems(items, training, described, groups, features, columns=columns)
    return replace(job, catalogue=known)


def warn_of_padding(items: Ids) -> None:
    """Warn if a catalogue holds what usually is no item."""
    if is_id(items, USUAL_PADDING).any():
        warn(
            f"the catalogue holds the item {USUAL_PADDING}, which counts as any other: if it is "
            f"padding, use {SAY_PADDING}"
        )


def beside(catalogue: Catalogue | None, labels: Input, job: Job) -> dict[str, Callable[[], Input]]:
    """Return how to open each input that is given beside labels and predictions."""
    item, given, seen = labels.columns.item, Catalogue.of(catalogue), job.columns("item")
    openers = {
        "train": lambda: _open_training(given.train, labels, job.memory),
        "items": lambda: open_items(given.items, item, given.group, labels.columns.padding, seen),
        "features": lambda: open_features(given.features, item, given.group),
    }
    return {name: one for name, one in openers.items() if getattr(given, name) is not None}


@contextmanager
def opened(name: str, opener: Callable[[], Input], labels: Input) -> Iterator[Input]:
    """Open an input whose ids are those of the labels; errors tell what it is given as."""
    try:
        one = opener()
        try:
            if name == "train":
                check_positions(labels.source, one.source, "train")
            yield alike([labels, one], fixed=True)[1]
        finally:
            one.source.close()
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def described_beside(name: str, one: Input, rows: int | None = None) -> dict[str, object]:
    """Return the description of an input that was opened as labels are."""
    found = one.described(rows)
    columns = found["columns"]
    if isinstance(columns, Mapping):  # the items of a catalogue have no column of queries
        facts = ", ".join(one.columns.facts[:MOST_LISTED])
        more = {{"items": "group"}.get(name, "vector"): facts} if facts else {}
        found["columns"] = {role: name for role, name in columns.items() if name} | more
    return found


def _open_training(train: Any, labels: Input, memory: int) -> Input:
    """Open what queries had in training; each column may be called as in the labels."""
    query, item = labels.source.key or labels.columns.query, labels.columns.item
    asked = InputOptions("train", query=query, item=item)
    (source,) = open_sources([(train, asked)], beside=[labels])
    chosen = among(source.schema.names, {"query": query, "item": item})
    exact, padding = labels.source.exact_ids, labels.columns.padding
    had = Labels(source, binary=True, padding=padding, exact_ids=exact, **chosen)
    return open_input(had, role="train", memory=memory)


def training_index(one: Input, job: Job, workers: Workers) -> LabelIndex:
    """Return the items that each query had in training, each once."""
    # Repeated rows are one interaction, whatever the semantics make of labels.
    plainly = replace(job, semantics=DEFAULT, scope=WHOLE, metrics=(), aside=())
    return read_labels(one, plainly, workers)


def item_counts(index: LabelIndex) -> tuple[ItemCounts, int]:
    """Return how many queries had each item, and how many had any."""
    counter = ItemCounter([NO_CUTOFF])
    counter.add(index.labels.offsets, index.labels.items)
    return counter.counts(), int((np.diff(index.labels.offsets) > 0).sum())


def training_of(counts: ItemCounts, queries: int, one: Input) -> Training:
    """Return what is known of all queries; InputError if none had an item."""
    items, users = counts.joined()
    if not len(users):
        raise InputError(f"{one.source.name} holds no items; expected what queries had in training")
    return Training(items, users[:, 0].astype(np.int64), queries)
