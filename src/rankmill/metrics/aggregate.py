"""The protocol of aggregates, which is what a metric adds up to, and of what they need.

An aggregate is immutable, exact and mergeable. Its fields say how they merge and travel
(`rankmill.metrics.records.record`). `init` makes it before any query; `update` adds a block of
queries, on any thread; `close` adds what is known once an input is read; `finish` gives the value.
To add one, write a file in this folder and name its class (``module.Class``) in its metric's row.

What it looks at beside lists and hits it declares: ``needs = (TrainingRows, Repeats)``. A need is a
class, too. ``given`` names the input that has to be there, and ``lacks`` says so where it is not.
``find`` finds it for a block, where `update` has it as ``scored.needs[TrainingRows]``, and
``find_labels`` among labels, for ``closing.needs``. A need that is an aggregate itself adds up once
for all metrics that need it, as ``name`` of the state; `finish` has it in ``totals.needs``.
``bytes`` is what it holds, for a plan. Jobs, blocks, tallies and states know this protocol, and no
metric.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Protocol, Self, cast

import numpy as np
import pyarrow as pa

from rankmill.columns.ranked_lists import Lists
from rankmill.errors import UsageError
from rankmill.io.overflow import Overflow
from rankmill.matching.catalogue import KnownItems
from rankmill.matching.hits import Hits
from rankmill.matching.index import LabelIndex
from rankmill.metrics.base import MICRO, Columns, Metric
from rankmill.metrics.records.record import Record
from rankmill.semantics.choices import Choices, Scope
from rankmill.threads import Workers


class AggregateSettings(NamedTuple):
    """A metric, and the settings of its aggregate."""

    metric: Metric
    semantics: Choices
    memory: int = 0  # the bytes that an aggregate may keep to avoid a second pass
    keep_rows: str = ""  # the option that needs every prediction with its ids; empty if none does
    # Whether to make a checksum, because another process may run the second pass.
    checksum: bool = False
    # The items that can be shown, and what queries had in training, if they were given and read.
    catalogue: KnownItems | None = None
    # The metrics that need it, if it is a need, of which `metric` is the first.
    users: tuple[Metric, ...] = ()
    # Where that goes which needs more than `memory`; None if all stays in memory.
    file: Overflow | None = None


class Need:
    """What aggregates look at beside lists and hits; see above. The class itself is it."""

    #: Needs that it looks at itself.
    needs: ClassVar["Needs"] = ()
    #: The field of `Catalogue` that has to be given, and what to say of a metric if it is not.
    given: ClassVar[str] = ""
    lacks: ClassVar[str] = ""
    #: Where it stands in a state, if it is an aggregate.
    name: ClassVar[str] = ""
    #: Whether predictions need confidences, and whether it holds more the more is read, so that
    #: it gets a share of the memory.
    of_scores: ClassVar[bool] = False
    grows: ClassVar[bool] = False

    @classmethod
    def find(cls, scored: "ScoredBlock", catalogue: KnownItems | None) -> Any:
        """Return what it is for a block, if it is something."""

    @classmethod
    def find_labels(cls, index: LabelIndex, catalogue: KnownItems | None) -> Any:
        """Return what it is for the labels of an input, if it is something."""

    @classmethod
    def rows_held(
        cls, users: Iterable[Metric], semantics: Choices, scope: Scope, keep_rows: bool
    ) -> str:
        """Return the option that needs every prediction with its ids in memory, or ""."""
        return ""


Needs = tuple[type[Need], ...]


class ScoredBlock(NamedTuple):
    """A scored block of queries: its lists in counting order, its hits, and a metric's values."""

    lists: Lists
    hits: Hits
    order: str
    found: Hits  # the hits before `order` moved those of equal confidence
    predicted: np.ndarray  # bool: which queries had predictions, before any was dropped
    # The distinct values of the metric, and how many queries have each; None without values.
    values: np.ndarray | None = None
    counts: np.ndarray | None = None
    # For a micro-average, what each of the values, which are not divided yet, is divided by.
    divisors: np.ndarray | None = None
    # The weight of each query; None without weights. With weights, `values` holds the value of each
    # query and `counts` is None.
    weights: np.ndarray | None = None
    needs: Mapping[type[Need], Any] = {}  # what the needs of the job are for this block
    # The labels, and the row of each query among them, or -1.
    known: LabelIndex | None = None
    rows: np.ndarray | None = None


class WeightSums(NamedTuple):
    """How many of some weights are above 0, and the exact sums of the weights and their squares.

    The sums are in units of 2**-1074 and 2**-2148.
    """

    positive: int = 0
    total: int = 0
    squares: int = 0


class Closing(NamedTuple):
    """Which queries of an input count, once all its blocks are merged."""

    # How many queries count, and how many of them score 1 without a label.
    queries: int
    ones: int
    # The weights of both; all 0 without weights.
    weights: WeightSums = WeightSums()
    weights_of_ones: WeightSums = WeightSums()
    known: LabelIndex | None = None  # the labels of the input
    needs: Mapping[type[Need], Any] = {}  # what the needs of the job are for its labels


class Totals(NamedTuple):
    """What is known of all queries once all parts are merged.

    Their count, gap's divisor, and what needs added up.
    """

    queries: int
    gap_total: int
    semantics: Choices
    needs: Mapping[type[Need], Any] = {}
    among: Any = None  # the counts of the second pass of one metric
    workers: Workers | None = None  # those of `finish`


class Value(NamedTuple):
    """The value of a metric, its standard error, its bounds over ties, and the number of ties.

    `effective` is the effective number of queries, if these have weights. `lists` is how many lists
    it is made of, if all of them count, and not only those of queries with labels.
    """

    value: float | None
    standard_error: float | None = None
    bounds: tuple[float, float] | None = None
    tied: int = 0
    effective: float | None = None
    lists: int | None = None

    def averaged(self, queries: int) -> int:
        """Return how many lists, or else queries, the value is of."""
        return queries if self.lists is None else self.lists


class Ratio(NamedTuple):
    """A value that is a ratio of two sums over queries: exactly, its divisor, and how many."""

    value: Fraction
    divisor: Fraction
    queries: int

    @property
    def spread(self) -> float:
        """What a sum of squares is times larger as one of a sample."""
        return self.queries / (self.queries - 1)


class ListWalk(NamedTuple):
    """How the value of one list comes about, for `explain`."""

    # A row each of the first items of the list; "term" is what each adds to the sum.
    columns: Columns
    divisor: float | None = None  # what the sum is divided by
    meaning: str = ""  # what the divisor is
    of_items: bool = True  # whether rows are items; else they are what the first column tells


class Aggregate(Record):
    """What a metric adds up to over many queries."""

    #: 2 if `finish` needs a second pass over all predictions once all parts are merged, else 1.
    passes: ClassVar[int] = 1
    #: What it looks at beside lists and hits.
    needs: ClassVar[Needs] = ()

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the aggregate of no query."""
        return cls()

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the aggregate with one more block of queries. Any thread may call it."""
        return self

    def close(self, closing: Closing) -> Self:
        """Return the aggregate once all blocks of an input are merged."""
        return self

    def finish(self, totals: Totals) -> Value:
        """Return the value over all queries."""
        raise NotImplementedError

    def ratio(self) -> Ratio | None:
        """Return the value as a ratio of sums over queries; None if it is none, or has none."""
        return None

    def check_whole(self, totals: Totals) -> None:
        """Raise UsageError if it cannot have come from a row beside the others."""

    def small(self) -> Self:
        """Return the aggregate without the predictions that it holds."""
        return self

    @property
    def held_bytes(self) -> int:
        """The bytes that it counts in, if these grow with what is shown."""
        return 0

    def by_group(self, at: str) -> dict[str, Any]:
        """Return columns of the table of groups of items; `at` is the cutoff in their titles."""
        return {}


class TwoPasses(Protocol):
    """What an aggregate has that needs all confidences a second time, once all parts are merged."""

    def held(self) -> Iterable[np.ndarray] | None:
        """Return all confidences if they were kept, or None if they must be read again."""

    def counter(self, workers: Workers) -> Any:
        """Return what counts arrays of confidences: it has `add`, and `finish` gives the counts."""

    def fingerprint(self, text: str) -> str:
        """Return a hash of a text and of all that the second pass depends on."""

    def difference(self, among: Any) -> str:
        """Say how the second pass differs from the first; empty if both saw the same."""

    def without(self, some: Any, among: Any, workers: Workers) -> tuple[Any, Any] | None:
        """Return it and the counts without some predictions; None if these were not kept."""


# The class that adds the same up where queries have weights.
WEIGHTED = dict.fromkeys(
    ("aggregates.mean.Mean", "aggregates.mean.SignedMean"), "aggregates.mean.WeightedMean"
) | {"aggregates.mean.MicroAverage": "aggregates.mean.MicroAverage"}


def aggregate_of(metric: Metric, weight: str | None = None) -> type[Aggregate]:
    """Return the class that adds up the values of a metric; `weight` names the weights of queries.

    UsageError if the metric cannot be weighted.
    """
    place = "aggregates.distribution.Distribution" if metric.summary else metric.spec.aggregate
    if metric.summary == MICRO:
        place = "aggregates.mean.MicroAverage"
    if weight is not None:
        if place not in WEIGHTED:
            raise UsageError(
                f"{metric.text} is not a mean over queries, so queries have no weight in it: "
                "leave out this metric, or --weight"
            )
        place = WEIGHTED[place]
    return _class_at(place)


def needs_of(metric: Metric) -> list[type[Need]]:
    """Return what a metric needs, and what its needs need before each."""
    own = getattr(metric.spec.kernel, "needs", ())  # those of a user's function
    return list(dict.fromkeys(_with_theirs((*aggregate_of(metric).needs, *own))))


def _with_theirs(needs: Iterable[type[Need]]) -> Iterator[type[Need]]:
    for need in needs:
        yield from _with_theirs(need.needs)
        yield need


def kinds_of(metrics: Sequence[Metric], weight: str | None) -> dict[str, type[Aggregate]]:
    """Return the class of each aggregate, by its name: of metrics, and of what they need."""
    kinds = {one.text: aggregate_of(one, weight) for one in metrics}
    needs = (need for one in metrics for need in needs_of(one) if issubclass(need, Aggregate))
    return kinds | {need.name: need for need in needs}


def has_curve(metric: Metric) -> bool:
    """Return whether the aggregate of a metric has a table: a curve, or bins."""
    return hasattr(aggregate_of(metric), "table")


def axes_of(metric: Metric) -> tuple[str, str] | None:
    """Return which columns of the table of a metric its picture has; None if it has no picture."""
    return cast(tuple[str, str] | None, getattr(aggregate_of(metric), "axes", None))


def list_walk_of(metric: Metric) -> Callable[..., ListWalk] | None:
    """Return the walk down the only list of a block, up to a rank; None for most metrics.

    It is a `walk` of the class of the aggregate, whose value follows from those of all lists. It
    takes the block, the rank, the catalogue and the parameters of the metric.
    """
    found: Callable[..., ListWalk] | None
    found = getattr(aggregate_of(metric), "walk", None)
    return found


def table_of_groups(added: Iterable[tuple[Metric, Aggregate]]) -> pa.Table | None:
    """Return what each group of items gets by each metric; None without such a metric."""
    columns: dict[str, list[Any]] = {}
    for metric, one in added:
        columns |= one.by_group("" if metric.k is None else f"@{metric.k}")
    if not columns:
        return None
    kinds = [pa.string(), *[pa.float64()] * (len(columns) - 1)]
    arrays = [pa.array(one, kind) for one, kind in zip(columns.values(), kinds, strict=True)]
    return pa.table(arrays, names=[*columns])


@cache
def _class_at(place: str) -> type[Aggregate]:
    module, _, name = place.rpartition(".")
    found: type[Aggregate] = getattr(import_module(f"rankmill.metrics.{module}"), name)
    return found
