"""Exposure: how many lists show each item, counted once for all metrics over a catalogue."""

from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from rankmill.columns.ids import take_ids
from rankmill.columns.ranked import Lists
from rankmill.errors import UsageError
from rankmill.matching.catalogue import KnownItems
from rankmill.matching.hits import Hits
from rankmill.matching.labels import LabelLists
from rankmill.metrics import rows
from rankmill.metrics.base import NO_CUTOFF
from rankmill.metrics.item_counter import ItemCounter
from rankmill.metrics.item_counts import ItemCounts


class Wanted(NamedTuple):
    """What the metrics of a job need of the exposure.

    Attributes
    ----------
    cutoffs : tuple of int
        All their cutoffs, ascending.
    hits, labels : bool
        Whether they need the items that were hit, and those that are labels.
    catalogue : KnownItems or None
        The items that can be shown; None if these are all that are labels or predictions.
    """

    cutoffs: tuple[int, ...]
    hits: bool
    labels: bool
    catalogue: KnownItems | None = None


@dataclass(frozen=True, eq=False)
class Exposure:
    """In how many lists each item stands. An item counts once a list, at its first rank.

    All lists of predictions count, also those of queries without a label.

    Attributes
    ----------
    cutoffs : tuple of int
        Ascending; the counts have a column for each, of the ranks above the cutoff before.
    shown : ItemCounts
        The counts of predictions, and a last column that is above 0 if the catalogue has the item.
    hit : ItemCounts
        The counts of hits, if they are wanted.
    labels : ItemCounts
        How often each item is a label, in one column, if that is wanted.
    lists : int
        How many lists have a prediction.
    size : int
        How many items the catalogue has; 0 if it is all labels and predictions.
    """

    cutoffs: tuple[int, ...]
    shown: ItemCounts
    hit: ItemCounts
    labels: ItemCounts
    lists: int = 0
    size: int = 0

    @classmethod
    def init(cls, wanted: Wanted) -> Self:
        """Return the exposure of no list."""
        columns = len(wanted.cutoffs)
        size = 0 if wanted.catalogue is None else len(wanted.catalogue)
        counts = ItemCounts(columns + 1), ItemCounts(columns), ItemCounts(1)
        return cls(wanted.cutoffs, *counts, size=size)

    def with_labels(self, labels: LabelLists) -> Self:
        """Return the exposure with more labels."""
        counter = ItemCounter([NO_CUTOFF])
        counter.add(labels.offsets, labels.items)
        return replace(self, labels=self.labels.merge(counter.counts()))

    def merge(self, other: Self) -> Self:
        """Return the exposure of the lists of both.

        Raises
        ------
        UsageError
            If they are of two catalogues.
        """
        if (self.cutoffs, self.size) != (other.cutoffs, other.size):
            raise UsageError(
                f"states over catalogues of {self.size:,} and {other.size:,} items do not merge: "
                "evaluate all parts with the same items"
            )
        return replace(
            self,
            shown=self.shown.merge(other.shown),
            hit=self.hit.merge(other.hit),
            labels=self.labels.merge(other.labels),
            lists=self.lists + other.lists,
        )

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
        row: dict[str, Any] = {
            "cutoffs": np.array(self.cutoffs, np.int64),
            "lists": self.lists,
            "size": self.size,
        }
        for name, one in (("shown", shown), ("hit", self.hit), ("labels", self.labels)):
            row |= {f"{name}.{key}": value for key, value in one.to_row().items()}
        return row

    @classmethod
    def from_row(cls, row: rows.Row, prefix: str) -> Self:
        """Return the exposure from a row that `to_row` made.

        Raises
        ------
        UsageError
            If the row is not one of an exposure.
        """
        cutoffs = rows.counts(row, f"{prefix}cutoffs", least=1).tolist()
        if not cutoffs or sorted(set(cutoffs)) != cutoffs:
            raise rows.damaged(f"{prefix}cutoffs do not ascend")
        columns = {"shown": len(cutoffs) + 1, "hit": len(cutoffs), "labels": 1}
        counts = {
            name: ItemCounts.from_row(row, f"{prefix}{name}.", width)
            for name, width in columns.items()
        }
        lists, size = (rows.count(row, prefix + name) for name in ("lists", "size"))
        return cls(tuple(cutoffs), **counts, lists=lists, size=size)


class ExposureCounters:
    """Counts the lists of blocks on several threads, each into tables of its own.

    Tables that last are quicker than counts of each block that are merged, and hold each item once
    a thread.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._all: list[_Counter] = []
        self._free: deque[_Counter] = deque()

    def add(self, lists: Lists, hits: Hits, repeat: np.ndarray) -> None:
        """Count lists and their hits, without marked repeats. Any thread may call it."""
        try:
            counter = self._free.pop()
        except IndexError:
            counter = _Counter(self._wanted)
            self._all.append(counter)
        counter.add(lists, hits, repeat)
        self._free.append(counter)

    def exposure(self) -> Exposure:
        """Return what was counted; nothing may be added after this."""
        found = Exposure.init(self._wanted)
        for one in self._all:
            found = found.merge(one.exposure())
        return found


class _Counter:
    """Counts the lists of blocks on one thread."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._shown = ItemCounter(wanted.cutoffs)
        self._hit = ItemCounter(wanted.cutoffs)
        self._lists = 0

    def add(self, lists: Lists, hits: Hits, repeat: np.ndarray) -> None:
        offsets, items = lists.offsets, lists.items
        self._shown.add(offsets, items, repeat=repeat)
        self._lists += int((np.diff(offsets) > 0).sum())
        if self._wanted.hits:
            starts = np.repeat(offsets[:-1], np.diff(hits.offsets))
            self._hit.add(hits.offsets, take_ids(items, starts + hits.ranks - 1), ranks=hits.ranks)

    def exposure(self) -> Exposure:
        counts = self._shown.counts()
        ids, columns = counts.joined()
        inside = np.ones(len(columns), np.int64)
        if self._wanted.catalogue is not None:
            inside = (self._wanted.catalogue.find(ids) >= 0).astype(np.int64)
        found = Exposure.init(self._wanted)
        shown = found.shown.with_counts(ids, np.column_stack([columns, inside]))
        return replace(found, shown=shown, hit=self._hit.counts(), lists=self._lists)
