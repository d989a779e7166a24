"""Exposure: how many lists show each item, counted once for all metrics over a catalogue."""

from collections import deque
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from rankmill.columns.ids import take_ids
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import UsageError
from rankmill.kernels.identity import Ids
from rankmill.matching.catalogue import KnownItems
from rankmill.matching.hits import Hits
from rankmill.metrics.aggregate import (
    Aggregate,
    AggregateSettings,
    Closing,
    Need,
    Needs,
    ScoredBlock,
    Sizes,
    aggregate_of,
)
from rankmill.metrics.base import NO_CUTOFF
from rankmill.metrics.needs import Repeats
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.item_counter import ItemCounter, bytes_of_counter
from rankmill.metrics.records.item_counts import ItemCounts
from rankmill.metrics.records.record import Count, Fixed, nested, same


@dataclass(eq=False)
class ExposureCounters:
    """Counts the lists of blocks on several threads, each into tables of its own.

    Tables that last are quicker than counts of each block that are merged, and hold each item once
    a thread.

    Attributes
    ----------
    cutoffs : tuple of int
        Those of all metrics, ascending.
    hits, labels : bool
        Whether the metrics need the items that were hit, and those that are labels.
    catalogue : KnownItems or None
        The items that can be shown; None if these are all that are labels or predictions.
    """

    cutoffs: tuple[int, ...]
    hits: bool = False
    labels: bool = False
    catalogue: KnownItems | None = None
    all: list["_Counter"] = field(default_factory=list)
    free: deque["_Counter"] = field(default_factory=deque)

    @classmethod
    def of(cls, asked: AggregateSettings) -> Self:
        """Return what counts for metrics, whose classes say ``whole``, ``hits`` and ``labels``."""
        kinds: list[Any] = [aggregate_of(one) for one in asked.users]
        whole = any(one.whole for one in kinds) and not asked.beside
        # What is shown behind the last cutoff is in the catalogue too.
        cutoffs = {one.limit for one in asked.users} | ({NO_CUTOFF} if whole else set())
        hits, labels = any(one.hits for one in kinds), whole or any(one.labels for one in kinds)
        return cls(tuple(sorted(cutoffs)), hits, labels, asked.catalogue)

    def add(self, lists: Lists, hits: Hits, repeat: np.ndarray) -> None:
        """Count lists and their hits, without marked repeats. Any thread may call it."""
        try:
            counter = self.free.pop()
        except IndexError:
            counter = _Counter(self)
            self.all.append(counter)
        counter.add(lists, hits, repeat)
        self.free.append(counter)


class _Counter:
    """Counts the lists of blocks on one thread."""

    def __init__(self, wanted: ExposureCounters) -> None:
        self._wanted = wanted
        self._shown = ItemCounter(wanted.cutoffs)
        self.hit = ItemCounter(wanted.cutoffs)
        self.lists = 0

    def add(self, lists: Lists, hits: Hits, repeat: np.ndarray) -> None:
        offsets, items = lists.offsets, lists.items
        self._shown.add(offsets, items, repeat=repeat)
        self.lists += int((np.diff(offsets) > 0).sum())
        if self._wanted.hits:
            starts = np.repeat(offsets[:-1], np.diff(hits.offsets))
            self.hit.add(hits.offsets, take_ids(items, starts + hits.ranks - 1), ranks=hits.ranks)

    def shown(self) -> tuple[Ids, np.ndarray]:
        ids, columns = self._shown.counts().joined()
        inside = np.ones(len(columns), np.int64)
        if self._wanted.catalogue is not None:
            inside = (self._wanted.catalogue.find(ids) >= 0).astype(np.int64)
        return ids, np.column_stack([columns, inside])


def _cutoffs(row: state_rows.Row, name: str) -> tuple[int, ...]:
    cutoffs = state_rows.counts(row, name, least=1).tolist()
    if not cutoffs or sorted(set(cutoffs)) != cutoffs:
        raise state_rows.damaged(f"{name} do not ascend")
    return tuple(cutoffs)


@dataclass(frozen=True, eq=False)
class Exposure(Aggregate, Need):
    """In how many lists each item stands. An item counts once a list, at its first rank.

    All lists of predictions count, also those of queries without a label.

    Attributes
    ----------
    cutoffs : tuple of int
        Ascending; the counts have a column for each, of the ranks above the cutoff before.
    lists : int
        How many lists have a prediction.
    size : int
        How many items the catalogue has; 0 if it is all labels and predictions.
    shown : ItemCounts
        The counts of predictions, and a last column that is above 0 if the catalogue has the item.
    hit : ItemCounts
        The counts of hits, if they are wanted.
    labels : ItemCounts
        How often each item is a label, in one column, if that is wanted.
    counters : frozenset of ExposureCounters
        What blocks are still added to, on all threads. `close` has all that they counted.
    """

    needs: ClassVar[Needs] = (Repeats,)
    name = "exposure"

    cutoffs: Annotated[tuple[int, ...], same(_cutoffs, lambda some: np.array(some, np.int64))]
    lists: Count
    size: Fixed
    shown: Annotated[ItemCounts, nested(ItemCounts)]
    hit: Annotated[ItemCounts, nested(ItemCounts)]
    labels: Annotated[ItemCounts, nested(ItemCounts)]
    counters: frozenset[ExposureCounters] = frozenset()

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the exposure of no list."""
        return cls.of(ExposureCounters.of(asked))

    @classmethod
    def of(cls, counters: ExposureCounters) -> Self:
        """Return the exposure of no list, which counters add to."""
        columns = len(counters.cutoffs)
        size = 0 if counters.catalogue is None else len(counters.catalogue)
        counts = ItemCounts(columns + 1), ItemCounts(columns), ItemCounts(1)
        return cls(counters.cutoffs, 0, size, *counts, frozenset([counters]))

    @classmethod
    def bytes(cls, asked: AggregateSettings, sizes: Sizes) -> int:
        """Return the bytes of the counts on all threads."""
        wanted = ExposureCounters.of(asked)
        tables = 2 if wanted.hits else 1
        each = bytes_of_counter(sizes.items, len(wanted.cutoffs), sizes.text)
        return sizes.threads * tables * each

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the same, as its counters have one more block."""
        for one in self.counters:
            one.add(scored.lists, scored.hits, scored.needs[Repeats])
        return self

    def close(self, closing: Closing) -> Self:
        """Return the exposure with all that was counted, and with the labels if they are wanted."""
        shown, hit, labels, lists = self.shown, self.hit, self.labels, self.lists
        for one in (each for counters in self.counters for each in counters.all):
            shown, hit = shown.with_counts(*one.shown()), hit.merge(one.hit.counts())
            lists += one.lists
        if closing.known is not None and any(one.labels for one in self.counters):
            counter = ItemCounter([NO_CUTOFF])
            counter.add(closing.known.labels.offsets, closing.known.labels.items)
            labels = labels.merge(counter.counts())
        return type(self)(self.cutoffs, lists, self.size, shown, hit, labels)

    def merge(self, other: Self) -> Self:
        """Return the exposure of the lists of both; UsageError if they are of two catalogues."""
        if (self.cutoffs, self.size) != (other.cutoffs, other.size):
            raise UsageError(
                f"states over catalogues of {self.size:,} and {other.size:,} items do not merge: "
                "evaluate all parts with the same items"
            )
        return replace(super().merge(other), counters=self.counters | other.counters)

    def counts(self, limit: int, *, inside: bool = False) -> np.ndarray:
        """Return how many lists show each item within a cutoff, without items that none shows.

        With `inside`, only items of the catalogue count.
        """
        columns = self.cutoffs.index(limit) + 1
        every = self.shown.joined()[1]
        if inside:
            every = every[every[:, -1] > 0]
        found: np.ndarray = every[:, :columns].sum(axis=1)
        return found[found > 0]

    def hits(self, limit: int) -> int:
        """Return how many distinct items are hit within a cutoff."""
        columns = self.cutoffs.index(limit) + 1
        return int(self.hit.joined()[1][:, :columns].any(axis=1).sum())

    @cached_property
    def items(self) -> int:
        """The number of items of the catalogue."""
        if self.size:
            return self.size
        shown, counts = self.shown.joined()
        return len(self.labels.with_counts(shown, counts[:, :1]).joined()[1])

    def to_row(self) -> dict[str, Any]:
        """Return a flat row for Arrow."""
        ids, counts = self.shown.joined()
        last = counts[:, -1:] > 0  # how many blocks have shown an item is of no interest
        shown = ItemCounts(self.shown.columns, ((ids, np.hstack([counts[:, :-1], last])),))
        return super(Exposure, replace(self, shown=shown)).to_row()

    @classmethod
    def from_row(cls, row: state_rows.Row, prefix: str = "") -> Self:
        """Return the exposure from a row that `to_row` made; UsageError if it made none."""
        cutoffs = _cutoffs(row, f"{prefix}cutoffs")
        widths = {"shown": len(cutoffs) + 1, "hit": len(cutoffs), "labels": 1}
        lists, size = (state_rows.count(row, prefix + name) for name in ("lists", "size"))
        each = (ItemCounts.from_row(row, f"{prefix}{n}.", width) for n, width in widths.items())
        shown, hit, labels = each
        return cls(cutoffs, lists, size, shown, hit, labels)
