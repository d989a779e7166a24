"""Opening both inputs, and reading the labels into their index."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from rankmill import audit
from rankmill.errors import InputError, UsageError
from rankmill.hits import Labels
from rankmill.labels import (
    LabelIndex,
    LabelStore,
    RepeatedQueryError,
    clean_labels,
    exponential,
)
from rankmill.ragged import Ragged
from rankmill.semantics import DEFAULT, Semantics
from rankmill.sources.base import Source
from rankmill.sources.columns import Columns, Role, check_comparable, find_columns
from rankmill.sources.convert import Lists
from rankmill.sources.long import ScatteredRowsError
from rankmill.sources.opening import map_lists, open_source
from rankmill.workers import Workers

# What confidences, and scattered rows, may take before they are read twice, or grouped on disk.
MEMORY = 1 << 30


@dataclass(frozen=True)
class Input:
    """An opened input, and its columns."""

    source: Source
    columns: Columns
    ragged: bool

    def described(self) -> dict[str, object]:
        """What was read, for the result."""
        return {
            "source": self.source.name,
            "files": len(self.source.schemas),
            "rows": self.source.rows,
            "shape": "ragged" if self.ragged else "wide" if self.columns.wide else "long",
            "columns": self.columns.mapping(),
        }


def open_input(
    value: Any,
    role: Role,
    numbers: Any,
    chosen: Mapping[str, str | None],
    *,
    need_score: bool = False,
    semantics: Semantics = DEFAULT,
    may_be_empty: bool = False,
) -> Input:
    """Open labels or predictions, and find their columns.

    Parameters
    ----------
    value, role
        What was given for that side.
    numbers
        Its confidences or gains: a column name, None, or a Ragged for a Ragged.
    chosen
        The columns that were named, by role.
    need_score
        Whether a metric needs confidences.
    semantics
        Whether predictions are ordered by confidence, and may lack some.
    may_be_empty
        Whether there may be no rows.

    Raises
    ------
    InputError, UsageError
        If it cannot be opened, or its columns cannot be told.
    """
    kind = "score" if role == "predictions" else "gain"
    if isinstance(numbers, Ragged) and not isinstance(value, Ragged):
        raise UsageError(
            f"{kind} is a Ragged, but the {role} are not: name the column that holds it, or give "
            f"both as Ragged"
        )
    name = kind if isinstance(numbers, Ragged) else numbers
    chosen = {**chosen, kind: name}
    source = open_source(value, role, numbers, may_be_empty=may_be_empty)
    columns = find_columns(source, role, chosen, need_score=need_score, semantics=semantics)
    return Input(source, columns, isinstance(value, Ragged))


def _check_ragged(labels: Any, predictions: Any) -> None:
    """Raise an error if only one side is a Ragged, or both are of different lengths."""
    if isinstance(labels, Ragged) != isinstance(predictions, Ragged):
        one, other = (
            ("labels", "predictions") if isinstance(labels, Ragged) else ("predictions", "labels")
        )
        raise UsageError(
            f"{one} are Ragged and have no query ids, but {other} are not: give both as "
            "Ragged, list q of both for query q, or both with ids"
        )
    if isinstance(labels, Ragged) and len(labels) != len(predictions):
        raise InputError(
            f"there are {len(labels)} lists of labels and {len(predictions)} of predictions; "
            "expected as many, list q of both for query q"
        )


def open_inputs(
    labels: Any,
    runs: Mapping[str, Any],
    *,
    need_score: bool = False,
    semantics: Semantics = DEFAULT,
    may_be_empty: bool = False,
    query: str | None = None,
    item: str | None = None,
    score: Any = None,
    rank: str | None = None,
    gain: Any = None,
    label_query: str | None = None,
    label_item: str | None = None,
) -> tuple[Input, dict[str, Input]]:
    """Open labels and all predictions, find their columns, and check that they go together."""
    if not runs:
        raise UsageError("there are no predictions to evaluate")
    for predictions in runs.values():
        _check_ragged(labels, predictions)
    label_input = open_input(
        labels,
        "labels",
        gain,
        {"query": label_query or query, "item": label_item or item},
        may_be_empty=may_be_empty,
    )
    chosen = {"query": query, "item": item, "rank": rank}
    inputs = {
        name: open_input(
            predictions,
            "predictions",
            score,
            chosen,
            need_score=need_score,
            semantics=semantics,
            may_be_empty=may_be_empty,
        )
        for name, predictions in runs.items()
    }
    for one in inputs.values():
        check_comparable((label_input.source, label_input.columns), (one.source, one.columns))
    return label_input, inputs


@dataclass(frozen=True)
class LabelsRead:
    """The index of label lists, what was counted, and the rows that they came from."""

    index: LabelIndex
    counts: dict[str, int]
    rows: int


def read_labels(
    labels: Input, gains: str, workers: Workers, *, repeats: str = "set", whole: bool = True
) -> LabelsRead:
    """Read and clean all label lists.

    Raises
    ------
    InputError
        If they are not as said; also if there is none, where they are the whole of the labels.
    """
    clean = partial(clean_lists, gains=gains, repeats=repeats)
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


def clean_lists(lists: Lists, gains: str, repeats: str) -> tuple[Lists, Labels, dict[str, int]]:
    """Label lists, as they were and cleaned, and what was counted."""
    try:
        cleaned, dropped = clean_labels(
            lists.offsets, lists.items, lists.numbers, repeats=repeats, queries=lists.queries
        )
    except InputError as error:
        raise InputError(f"{lists.place[0]}: {error}") from None
    return lists, exponential(cleaned, gains), dropped | {"null_labels": lists.nulls}
