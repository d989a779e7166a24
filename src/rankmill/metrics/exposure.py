"""Exposure: how many lists show each item, counted once for all metrics over a catalogue."""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping
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
    aggregate_of,
)
from rankmill.metrics.base import NO_CUTOFF
from rankmill.metrics.needs import Repeats
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.item_counter import ItemCounter
from rankmill.metrics.records.item_counts import PARTITIONS, ItemCounts, Room
from rankmill.metrics.records.record import Count, Fixed, nested, same


@dataclass(eq=False)
class ExposureCounters:
    """Counts the lists of blocks on several threads, each into tables of its own.

    Tables that last are quicker than counts of each block that are merged, and hold each item once
    a thread.
    """

    cutoffs: tuple[int, ...]  # those of all metrics, ascending
    # Whether the metrics need the items that were hit, and those that are labels.
    hits: bool = False
    labels: bool = False
    # The items that can be shown; None if these are all that are labels or predictions.
    catalogue: KnownItems | None = None
    # The bytes that the tables may take. What is more goes to a temporary file.
    room: Room = field(default_factory=Room)
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
        room = Room(max(1, asked.memory // 2), asked.file if asked.memory else None)
        return cls(tuple(sorted(cutoffs)), hits, labels, asked.catalogue, room)

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
        self.shown = ItemCounter(wanted.cutoffs, wanted.room, self._inside)
        self.hit = ItemCounter(wanted.cutoffs, wanted.room)
        self.lists = 0

    def add(self, lists: Lists, hits: Hits, repeat: np.ndarray) -> None:
        offsets, items = lists.offsets, lists.items
        self.shown.add(offsets, items, repeat=repeat)
        self.lists += int((np.diff(offsets) > 0).sum())
        if self._wanted.hits:
            self.hit.add(hits.offsets, take_ids(items, hits.places(offsets)), ranks=hits.ranks)

    def _inside(self, ids: Ids) -> np.ndarray:
        catalogue = self._wanted.catalogue
        if catalogue is None:
            return np.ones(len(ids.keys), np.int64)
        return (catalogue.find(ids) >= 0).astype(np.int64)


def _cutoffs(row: state_rows.Row, name: str) -> tuple[int, ...]:
    cutoffs = state_rows.counts(row, name, least=1).tolist()
    if not cutoffs or sorted(set(cutoffs)) != cutoffs:
        raise state_rows.damaged(f"{name} do not ascend")
    return tuple(cutoffs)


@dataclass(eq=False)
class _Summary:
    """What the counts of all items come to: by cutoff, how many items stand in how many lists."""

    apart: bool  # whether items of the catalogue count apart from all others
    times: dict[tuple[int, bool], Counter[int]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    hits: Counter[int] = field(default_factory=Counter)
    items: int = 0
    labels: int = 0

    def add(
        self, cutoffs: tuple[int, ...], shown: ItemCounts, hit: ItemCounts, labels: ItemCounts
    ) -> None:
        """Add items, of which no other call has one."""
        ids, counts = shown.joined()
        inside = counts[:, -1] > 0
        within, hits = np.zeros(len(counts), np.int64), np.zeros(len(hit.joined()[1]), np.bool_)
        for column, limit in enumerate(cutoffs):
            within += counts[:, column]
            hits |= hit.joined()[1][:, column] > 0
            self.hits[limit] += int(hits.sum())
            self.times[limit, False] += _times(within)
            if self.apart:
                self.times[limit, True] += _times(within[inside])
        self.labels += len(labels.joined()[1])
        self.items += len(labels.with_counts(ids, counts[:, :1]).joined()[1])


def _times(counts: np.ndarray) -> Counter[int]:
    """Return how many items have each count above 0."""
    if counts.max(initial=0) > 4 * len(counts) + (1 << 16):
        values, times = np.unique(counts, return_counts=True)
    else:  # which needs no sorting
        every = np.bincount(counts)
        values = np.flatnonzero(every)
        times = every[values]
    found = Counter(dict(zip(values.tolist(), times.tolist(), strict=True)))
    del found[0]
    return found


@dataclass(frozen=True, eq=False)
class Exposure(Aggregate, Need):
    """In how many lists each item stands. An item counts once a list, at its first rank.

    All lists of predictions count, also those of queries without a label.
    """

    needs: ClassVar[Needs] = (Repeats,)
    name = "exposure"
    grows = True

    # Ascending; the counts have a column for each, of the ranks above the cutoff before.
    cutoffs: Annotated[tuple[int, ...], same(_cutoffs, lambda some: np.array(some, np.int64))]
    lists: Count  # how many lists have a prediction
    size: Fixed  # how many items the catalogue has; 0 if it is all labels and predictions
    # The counts of predictions, and a last column that is above 0 if the catalogue has the item.
    shown: Annotated[ItemCounts, nested(ItemCounts)]
    hit: Annotated[ItemCounts, nested(ItemCounts)]  # the counts of hits, if they are wanted
    # How often each item is a label, in one column, if that is wanted.
    labels: Annotated[ItemCounts, nested(ItemCounts)]
    # What blocks are still added to, on all threads. `close` has all that they counted.
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

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the same, as its counters have one more block."""
        for one in self.counters:
            one.add(scored.lists, scored.hits, scored.needs[Repeats])
        return self

    def close(self, closing: Closing) -> Self:
        """Return the exposure with all that was counted, and with the labels if they are wanted."""
        shown, hit, labels, lists = self.shown, self.hit, self.labels, self.lists
        for one in (each for counters in self.counters for each in counters.all):
            shown, hit = shown.merge(one.shown.counts()), hit.merge(one.hit.counts())
            lists += one.lists
        wanted = next((one for one in self.counters if one.labels), None)
        if closing.known is not None and wanted is not None:
            counter = ItemCounter([NO_CUTOFF], wanted.room)
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

    def spread(self, limit: int, *, inside: bool = False) -> tuple[list[int], list[int], int]:
        """Return the numbers of lists that items stand in within a cutoff, ascending.

        And how many items stand in so many, and the sum of all. If `inside`, only items of the
        catalogue count.

        They do not depend on the order of the items, and Python's integers do not overflow.
        """
        times = self._summary.times[limit, inside and self.size > 0]
        values = sorted(times)
        return values, [times[one] for one in values], sum(one * times[one] for one in values)

    @property
    def hits(self) -> Mapping[int, int]:
        """How many distinct items are hit within each cutoff."""
        return self._summary.hits

    @property
    def items(self) -> int:
        """The number of items of the catalogue."""
        return self.size or self._summary.items

    @property
    def label_items(self) -> int:
        """The number of distinct items of labels."""
        return self._summary.labels

    @cached_property
    def _summary(self) -> "_Summary":
        """What all items come to, those in files a partition after the other."""
        found = _Summary(self.size > 0)
        every = self.shown, self.hit, self.labels
        file = next((one.spilled[0].file for one in every if one.spilled), None)
        if file is None:
            found.add(self.cutoffs, *every)
            return found
        in_file = [one.in_file(file) for one in every]
        for number in range(PARTITIONS):
            found.add(self.cutoffs, *(one.partition(number) for one in in_file))
        return found

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
