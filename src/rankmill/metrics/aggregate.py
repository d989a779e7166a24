"""The protocol of aggregates: what a metric adds up to over many queries, such as a mean or gap.

An aggregate is immutable, exact and mergeable: ``merge`` is associative and commutative to the last
bit, and ``to_row`` and ``from_row`` carry it between processes. To add an aggregate, write a file
in this folder with a class that has all methods of `Aggregate`, and put the place of the class
(``module.Class``) in the row of the metric.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from rankmill.columns.ranked import Lists
from rankmill.errors import UsageError
from rankmill.matching.catalogue import KnownItems
from rankmill.matching.hits import Hits
from rankmill.metrics.base import Columns, Metric
from rankmill.metrics.exposure import Exposure
from rankmill.metrics.item_counter import NO_RANKS, NO_REPEATS
from rankmill.semantics.choices import Choices
from rankmill.threads import Workers


class Asked(NamedTuple):
    """A metric, and the settings of its aggregate.

    Attributes
    ----------
    metric, semantics
    memory : int
        The bytes that an aggregate may keep to avoid a second pass.
    keep_rows : str
        The option that needs every prediction with its ids; empty if none does.
    checksum : bool
        Whether to make a checksum, because another process may run the second pass.
    catalogue : KnownItems or None
        The items that can be shown, and what queries had in training, if they were given.
    """

    metric: Metric
    semantics: Choices
    memory: int = 0
    keep_rows: str = ""
    checksum: bool = False
    catalogue: KnownItems | None = None


class Scored(NamedTuple):
    """A scored block of queries: its lists in counting order, its hits, and a metric's values.

    Attributes
    ----------
    lists, hits, order
    found : Hits
        The hits before `order` moved those of equal confidence.
    values, counts : ndarray or None
        The distinct values of the metric, and how many queries have each; None without values.
    weights : ndarray or None
        The weight of each query; None without weights. With weights, `values` holds the value of
        each query and `counts` is None.
    repeat : ndarray of bool
        Whether each item repeats an earlier one of its list; empty if none does.
    trained, shown, featured : ndarray of int64
        The row of each item among those of training, in the catalogue, and among those with a
        vector, -1 for others; empty if no metric needs it.
    """

    lists: Lists
    hits: Hits
    order: str
    found: Hits
    values: np.ndarray | None = None
    counts: np.ndarray | None = None
    weights: np.ndarray | None = None
    repeat: np.ndarray = NO_REPEATS
    trained: np.ndarray = NO_RANKS
    shown: np.ndarray = NO_RANKS
    featured: np.ndarray = NO_RANKS


class WeightSums(NamedTuple):
    """How many of some weights are above 0, and the exact sums of the weights and their squares.

    The sums are in units of 2**-1074 and 2**-2148.
    """

    positive: int = 0
    total: int = 0
    squares: int = 0


class Closing(NamedTuple):
    """Which queries of an input count, once all its blocks are merged.

    Attributes
    ----------
    queries, ones : int
        How many queries count, and how many of them score 1 without a label.
    weights, weights_of_ones : WeightSums
        The weights of both; all 0 without weights.
    group_labels : int64
        How many labels each group of items has, in units of `Groups`; empty if no metric needs it.
    """

    queries: int
    ones: int
    weights: WeightSums = WeightSums()
    weights_of_ones: WeightSums = WeightSums()
    group_labels: np.ndarray = NO_RANKS


class Totals(NamedTuple):
    """What is known of all queries once all parts are merged.

    Their count, gap's divisor, and how many lists show each item if a metric asks for that.
    """

    queries: int
    gap_total: int
    semantics: Choices
    exposure: Exposure | None = None


class Value(NamedTuple):
    """The value of a metric, its standard error, its bounds over ties, and the number of ties.

    `effective` is the effective number of queries, if these have weights. `lists` is how many lists
    it is a mean over, if it is one over lists, and not over the queries that count.
    """

    value: float | None
    standard_error: float | None = None
    bounds: tuple[float, float] | None = None
    tied: int = 0
    effective: float | None = None
    lists: int | None = None


class ListWalk(NamedTuple):
    """How the value of one list comes about, for `explain`.

    Attributes
    ----------
    columns : dict of str to ndarray
        A row each of the first items of the list; "term" is what each adds to the sum.
    divisor : float, optional
        What the sum is divided by.
    meaning : str
        What the divisor is.
    of_items : bool
        Whether rows are items; else they are what the first column tells.
    """

    columns: Columns
    divisor: float | None = None
    meaning: str = ""
    of_items: bool = True


class Aggregate(Protocol):
    """What a metric adds up to over many queries."""

    #: 2 if `finish` needs a second pass over all predictions once all parts are merged, else 1.
    passes: ClassVar[int]
    #: Whether the aggregate needs the confidences of the predictions.
    needs_confidences: ClassVar[bool]

    @classmethod
    def init(cls, asked: Asked) -> Self:
        """Return the aggregate of no query."""

    def update(self, scored: Scored, asked: Asked) -> Self:
        """Return the aggregate with one more block of queries. Any thread may call it."""

    def merge(self, other: Self) -> Self:
        """Return the aggregate of the queries of both."""

    def close(self, closing: Closing) -> Self:
        """Return the aggregate once all blocks of an input are merged."""

    def finish(self, totals: Totals, among: Any, workers: Workers) -> Value:
        """Return the value over all queries; `among` holds the counts of the second pass."""

    def to_row(self) -> dict[str, Any]:
        """Return the fields of a flat row for Arrow: numbers, text and arrays of numbers."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any], prefix: str = "") -> Self:
        """Return the aggregate from the fields that `to_row` made, each named with the prefix."""


class Counter(Protocol):
    """Counts all confidences in a second pass, one array at a time."""

    def add(self, confidences: np.ndarray) -> None:
        """Count the confidences of one array; their order does not matter."""

    def finish(self) -> Any:
        """Return the counts, which have `merge` and `to_row` as an aggregate does."""


class TwoPasses(Aggregate, Protocol):
    """An aggregate that needs all confidences a second time, once all parts are merged."""

    def held(self) -> Iterable[np.ndarray] | None:
        """Return all confidences if they were kept, or None if they must be read again."""

    def counter(self, workers: Workers) -> Counter:
        """Return the counter of the second pass."""

    def fingerprint(self, text: str) -> str:
        """Return a hash of a text and of all that the second pass depends on."""

    def difference(self, among: Any) -> str:
        """Say how the second pass differs from the first; empty if both saw the same."""


# The class that adds the same up where queries have weights.
WEIGHTED = dict.fromkeys(("mean.Mean", "mean.SignedMean"), "weighted.WeightedMean")


def aggregate_of(metric: Metric, weight: str | None = None) -> type[Aggregate]:
    """Return the class that adds up the values of a metric; `weight` names the weights of queries.

    Raises
    ------
    UsageError
        If the metric cannot be weighted.
    """
    place = "distribution.Distribution" if metric.summary else metric.spec.aggregate
    if weight is not None:
        if place not in WEIGHTED:
            raise UsageError(
                f"{metric.text} is no mean over queries, so that queries have no weight in it: "
                "leave out this metric, or --weight"
            )
        place = WEIGHTED[place]
    return _class_at(place)


def has_curve(metric: Metric) -> bool:
    """Return whether the aggregate of a metric has a table: a curve, or bins."""
    return hasattr(aggregate_of(metric), "table")


def list_walk_of(metric: Metric) -> Callable[[Scored, int, KnownItems], ListWalk] | None:
    """Return the walk down the only list of a block, up to a rank; None for most metrics.

    It is a `walk` of the class of the aggregate, whose value follows from those of all lists.
    """
    found: Callable[[Scored, int, KnownItems], ListWalk] | None
    found = getattr(aggregate_of(metric), "walk", None)
    return found


@cache
def _class_at(place: str) -> type[Aggregate]:
    module, _, name = place.partition(".")
    found: type[Aggregate] = getattr(import_module(f"rankmill.metrics.{module}"), name)
    return found
