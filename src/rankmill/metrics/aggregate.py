"""What a metric comes to over many queries: the protocol that a mean, gap and others keep to.

An aggregate is immutable, exact and mergeable: ``merge`` is associative and commutative to the last
bit, and ``to_row`` and ``from_row`` carry it from process to process. To add one: a file of this
folder with a class that has all of `Aggregate`, and its place (``module.Class``) in the row of the
metric.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from rankmill.columns.ranked import Lists
from rankmill.matching.hits import Hits
from rankmill.metrics.base import Metric
from rankmill.semantics.choices import Semantics
from rankmill.threads import Workers


class Asked(NamedTuple):
    """A metric, and how its aggregate is to be made.

    Attributes
    ----------
    metric, semantics
    memory : int
        Bytes that may be kept, so that no second pass is needed.
    keep_rows : str
        Who asks for every prediction with its ids; empty if nobody does.
    checksum : bool
        Whether the second pass may run in another process, which must go over the same.
    """

    metric: Metric
    semantics: Semantics
    memory: int = 0
    keep_rows: str = ""
    checksum: bool = False


class Scored(NamedTuple):
    """A block of queries: their lists in the order that counts, hits, and values of the metric.

    Attributes
    ----------
    lists, hits, order
    found : Hits
        The hits where they stood, before `order` moved those of equal confidence.
    values, counts : ndarray or None
        The values of the metric and how many queries have each; None for a metric without them.
    """

    lists: Lists
    hits: Hits
    order: str
    found: Hits
    values: np.ndarray | None = None
    counts: np.ndarray | None = None


class Totals(NamedTuple):
    """What is known of all queries once all are merged: how many count, and gap's divisor."""

    queries: int
    gap_total: int
    semantics: Semantics


class Value(NamedTuple):
    """The value of a metric, and what goes with it."""

    value: float | None
    standard_error: float | None = None
    bounds: tuple[float, float] | None = None
    tied: int = 0


class Aggregate(Protocol):
    """What a metric comes to over many queries."""

    #: 2 if `finish` needs what `second_pass` made of all predictions, once all parts are merged.
    passes: ClassVar[int]
    #: Whether it looks at confidences, so that there must be some.
    needs_confidences: ClassVar[bool]

    @classmethod
    def init(cls, asked: Asked) -> Self:
        """The aggregate of no query."""

    def update(self, scored: Scored, asked: Asked) -> Self:
        """With a block of queries more. Runs on any thread."""

    def merge(self, other: Self) -> Self:
        """The aggregate of the queries of both."""

    def close(self, queries: int, ones: int) -> Self:
        """Once all blocks of an input are merged: so many queries count, some as 1 for no label."""

    def finish(self, totals: Totals, among: Any, workers: Workers) -> Value:
        """The value over all queries; `among` is what the second pass counted, if there is one."""

    def to_row(self) -> dict[str, Any]:
        """Fields of a flat row for Arrow: numbers, text and arrays of numbers."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any], prefix: str = "") -> Self:
        """The aggregate that `to_row` made the fields of, each with the prefix before its name."""


class Counter(Protocol):
    """Counts all confidences in a second pass, some at a time."""

    def add(self, confidences: np.ndarray) -> None:
        """Count some, in any order."""

    def finish(self) -> Any:
        """What was counted: it merges, and has rows, as an aggregate does."""


class TwoPasses(Aggregate, Protocol):
    """An aggregate that needs all confidences once more, when all parts are merged."""

    def held(self) -> Iterable[np.ndarray] | None:
        """All confidences, if they were kept; None if they are to be read a second time."""

    def counter(self, workers: Workers) -> Counter:
        """What counts them."""

    def fingerprint(self, text: str) -> str:
        """The hash of a text and of what the second pass depends on."""

    def difference(self, among: Any) -> str:
        """What the second pass has otherwise than the first; empty if both saw the same."""


def aggregate_of(metric: Metric) -> type[Aggregate]:
    """The class that adds up a metric."""
    module, _, name = metric.spec.aggregate.partition(".")
    found: type[Aggregate] = getattr(import_module(f"rankmill.metrics.{module}"), name)
    return found
