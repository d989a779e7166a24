"""What metrics need beside lists and hits: see `rankmill.metrics.aggregate`."""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from rankmill.columns.lists import take_spans
from rankmill.columns.ragged_lists import Groups
from rankmill.kernels import catalogue as kernels
from rankmill.kernels.hits import mark_repeats
from rankmill.kernels.identity import SEED
from rankmill.matching.catalogue import KnownItems
from rankmill.matching.hits import places_among
from rankmill.matching.index import LabelIndex
from rankmill.metrics.aggregate import Need, ScoredBlock
from rankmill.metrics.base import Metric
from rankmill.metrics.records.item_counts import NO_REPEATS
from rankmill.semantics.choices import Choices, Scope

# The choices for the ties of gap that need every prediction with its ids; for others counts do.
ORDERED_TIES = ("given", "ids")

Given = TypeVar("Given")


def given(what: Given | None) -> Given:
    """Return what the job has checked to be there, such as a part of a catalogue."""
    assert what is not None
    return what


class Confidences(Need):
    """The confidence of each prediction, which stands with the lists."""

    of_scores = True
    grows = True

    @classmethod
    def rows_held(
        cls, users: Iterable[Metric], semantics: Choices, scope: Scope, keep_rows: bool
    ) -> str:
        """Return the option that needs every prediction with its ids, as an error names it."""
        by_order = any("gap_ties" in metric.spec.fields for metric in users)
        if by_order and semantics.gap_ties in ORDERED_TIES:
            return f"gap_ties {semantics.gap_ties!r}"
        # A second pass would see confidences alone.
        if scope.judged_only:
            return "gap with judged_only"
        if scope.drop_seen:
            return "gap with drop_seen"
        return "gap row by row" if keep_rows else ""


class Repeats(Need):
    """Whether each item repeats an earlier one of its list; empty if none does."""

    @classmethod
    def find(cls, scored: ScoredBlock, catalogue: KnownItems | None) -> np.ndarray:
        """Return which items repeat, as bool."""
        if not scored.found.repeats:
            return NO_REPEATS
        repeat = np.empty(len(scored.lists.items.keys), np.bool_)
        mark_repeats(scored.lists.offsets, scored.lists.items, SEED, repeat)
        return repeat


class TrainingRows(Need):
    """The row of each item among those that queries had in training, as int64; -1 for others."""

    given = "train"
    lacks = "needs what queries had in training: give the interactions with --train"

    @classmethod
    def find(cls, scored: ScoredBlock, catalogue: KnownItems | None) -> np.ndarray:
        """Return the rows."""
        return given(given(catalogue).training).find(scored.lists.items)


class LabelRows(Need):
    """Where the labels of each query start and end, and the rows of all, as of TrainingRows."""

    needs = (TrainingRows,)

    @classmethod
    def find(cls, scored: ScoredBlock, catalogue: KnownItems | None) -> tuple[np.ndarray, ...]:
        """Return starts, ends and rows for the queries of a block."""
        known = given(scored.known)
        spans = take_spans(known.labels.offsets, given(scored.rows))
        return *spans, given(given(catalogue).training).label_rows(known)

    @classmethod
    def find_labels(cls, index: LabelIndex, catalogue: KnownItems | None) -> tuple[np.ndarray, ...]:
        """Return the same for all queries with labels."""
        offsets = index.labels.offsets
        rows = given(given(catalogue).training).label_rows(index)
        return offsets[:-1], offsets[1:], rows


class GroupRows(Need):
    """The row of each item in the catalogue, which has their groups; -1 for others."""

    given = "group"
    lacks = (
        "needs the groups of items, such as genres: give a catalogue with --items, and "
        "name its column of groups with --item-group"
    )

    @classmethod
    def find(cls, scored: ScoredBlock, catalogue: KnownItems | None) -> np.ndarray:
        """Return the rows."""
        return given(catalogue).find(scored.lists.items)


class FeatureRows(Need):
    """The row of each item among those with a vector; -1 for others."""

    given = "features"
    lacks = (
        "needs the vectors of items, such as embeddings: give a table of items and vectors with "
        "--features"
    )

    @classmethod
    def find(cls, scored: ScoredBlock, catalogue: KnownItems | None) -> np.ndarray:
        """Return the rows."""
        return given(given(catalogue).features).find(scored.lists.items)


class ItemColumns(Need):
    """The value of each item in columns of the catalogue; NaN for others."""

    given = "items"
    lacks = (
        "sees columns of the items, such as their price: give a table that has these and a column "
        "of items with --items"
    )

    @classmethod
    def find(cls, scored: ScoredBlock, catalogue: KnownItems | None) -> dict[str, np.ndarray]:
        """Return the values of all predictions, by the names that functions have for columns."""
        known = given(catalogue)
        rows = known.find(scored.lists.items)
        return {f"item_{n}": of_rows(rows, one, np.nan) for n, one in known.columns.items()}


class HitColumns(Need):
    """The value of each prediction that is a label in columns of the labels; NaN for others."""

    @classmethod
    def find(cls, scored: ScoredBlock, catalogue: KnownItems | None) -> dict[str, np.ndarray]:
        """Return the values of all predictions, by the names that functions have for columns."""
        known, lists = given(scored.known), scored.lists
        places = places_among(known.labels, lists.offsets, lists.items, given(scored.rows))
        return {f"hit_{n}": of_rows(places, one, np.nan) for n, one in known.columns.items()}


COLUMNS: dict[str, type[Need]] = {"hit": HitColumns, "item": ItemColumns}
"""What finds the columns that users' metrics see, by how their names begin."""


def side_of(column: str) -> str:
    """Return how the name begins that a function has for a column."""
    return column.partition("_")[0]


def columns_in(scored: ScoredBlock) -> dict[str, np.ndarray]:
    """Return what users' metrics see of a block: columns with a value a prediction."""
    found = (scored.needs.get(need, {}) for need in COLUMNS.values())
    return {name: values for each in found for name, values in each.items()}


def of_rows(rows: np.ndarray, values: np.ndarray, other: float) -> np.ndarray:
    """Return the value at each row, another one at row -1."""
    found = np.full(len(rows), other, values.dtype)
    found[rows >= 0] = values[rows[rows >= 0]]
    return found


class GroupLabels(Need):
    """How many labels each group of items has, in units of `Groups`."""

    needs = (GroupRows,)

    @classmethod
    def find_labels(cls, index: LabelIndex, catalogue: KnownItems | None) -> np.ndarray:
        """Return the counts."""
        return units_of(given(catalogue).find(index.labels.items), given(given(catalogue).groups))


def units_of(rows: np.ndarray, groups: Groups) -> np.ndarray:
    """Return what each group has of some items."""
    counts = np.zeros(len(groups.names), np.int64)
    kernels.count_shares(rows, *groups.arrays, counts)
    return counts
