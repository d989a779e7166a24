"""Reading the catalogue and the training set of a job."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from rankmill.engine.held_labels import read_labels
from rankmill.engine.job import Job
from rankmill.errors import InputError, UsageError
from rankmill.kernels.identity import Ids
from rankmill.matching.catalogue import Features, KnownItems, Training
from rankmill.matching.index import LabelIndex
from rankmill.metrics.base import NO_CUTOFF
from rankmill.metrics.records.item_counter import ItemCounter
from rankmill.metrics.records.item_counts import ItemCounts
from rankmill.results.audit import MOST_LISTED
from rankmill.semantics.choices import DEFAULT
from rankmill.semantics.scope import WHOLE
from rankmill.sources.input_options import InputOptions
from rankmill.sources.inputs.catalogue_items import open_items, read_items
from rankmill.sources.inputs.inputs import (
    Input,
    alike,
    check_positions,
    open_input,
    open_sources,
)
from rankmill.sources.inputs.item_vectors import open_features, read_features
from rankmill.sources.meaning.column_names import warn
from rankmill.sources.meaning.filler_items import SAY_PADDING, USUAL_PADDING, is_id
from rankmill.sources.meaning.roles import among
from rankmill.sources.nouns import Catalogue, Labels
from rankmill.threads import Workers


def with_catalogue(job: Job, catalogue: Catalogue | None, labels: Input, workers: Workers) -> Job:
    """Return the job with the items that can be shown, and those that queries had in training.

    Their columns are named as those of the labels, or by their usual names. A job that knows them
    already is as it was. Errors are of inputs that cannot be read, or of ids unlike the labels'.
    """
    if job.catalogue is not None:
        return job
    openers = beside(catalogue, labels, job.memory)
    assert (*openers,) == job.beside  # nothing is counted as if the catalogue were not there
    if not openers:
        return job
    training = items = groups = features = None
    described: dict[str, dict[str, object]] = {}
    for name, opener in openers.items():
        with opened(name, opener, labels) as one:
            if name == "train":
                index = training_index(one, job, workers)
                training = training_of(*item_counts(index), one).of_part(index)
                items, rows = training.items, index.rows
            elif name == "items":
                items, groups, rows = read_items(one, workers)
            else:
                read = read_features(one, workers)
                features, rows = Features(read.items, read.vectors), read.rows
                items = features.items if items is None else items
            described[name] = described_beside(name, one, rows)
    assert items is not None
    warn_of_padding(items)
    return replace(job, catalogue=KnownItems(items, training, described, groups, features))


def warn_of_padding(items: Ids) -> None:
    """Warn if a catalogue holds what usually is no item."""
    if is_id(items, USUAL_PADDING).any():
        warn(
            f"the catalogue holds the item {USUAL_PADDING}, which counts as any other: if it is "
            f"padding, say {SAY_PADDING}"
        )


def beside(
    catalogue: Catalogue | None, labels: Input, memory: int
) -> dict[str, Callable[[], Input]]:
    """Return how to open each input that is given beside labels and predictions."""
    item, given = labels.columns.item, Catalogue.of(catalogue)
    openers = {
        "train": lambda: _open_training(given.train, labels, memory),
        "items": lambda: open_items(given.items, item, given.group, labels.columns.padding),
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
