"""Exposure: how many lists show each item, counted once for all metrics over a catalogue.

And what it comes to: coverage, inequality and concentration, personalization.
"""

import math
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from rankmill.columns.elementary import log2
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
    Totals,
    Value,
    aggregate_of,
)
from rankmill.metrics.base import NO_CUTOFF, Metric
from rankmill.metrics.needs import Repeats
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.item_counts import ItemCounter, ItemCounts, Total
from rankmill.metrics.records.record import Count, Fixed, nested, same
from rankmill.records import record

# What to do about a catalogue that is not given.
GIVE_ITEMS = "give the items that can be shown, with --items or --train"


@record(eq=False)
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
    memory: float = math.inf  # the bytes that counts may take
    # The counts of predictions, with one more column for those of the catalogue, and those of hits.
    shown: Total = field(init=False)
    hit: Total = field(init=False)
    all: list["_Counter"] = field(default_factory=list)
    free: deque["_Counter"] = field(default_factory=deque)

    @classmethod
    def of(cls, asked: AggregateSettings) -> Self:
        """Return what counts for metrics, whose classes say ``whole``, ``hits`` and ``labels``."""
        kinds: list[Any] = [aggregate_of(one) for one in asked.users]
        whole = any(one.whole for one in kinds) and asked.catalogue is None
        # What is shown behind the last cutoff is in the catalogue too.
        cutoffs = {one.limit for one in asked.users} | ({NO_CUTOFF} if whole else set())
        hits, labels = any(one.hits for one in kinds), whole or any(one.labels for one in kinds)
        memory = asked.memory or math.inf
        return cls(tuple(sorted(cutoffs)), hits, labels, asked.catalogue, memory)

    def __post_init__(self) -> None:
        """Begin with nothing counted."""
        columns, memory = len(self.cutoffs), self.memory / (2 if self.hits else 1)
        self.shown = Total(columns, memory, self._inside)
        self.hit = Total(columns, memory)

    def add(self, lists: Lists, hits: Hits, repeat: np.ndarray) -> None:
        """Count lists and their hits, without marked repeats. Any thread may call it."""
        try:
            counter = self.free.pop()
        except IndexError:
            counter = _Counter(self)
            self.all.append(counter)
        counter.add(lists, hits, repeat)
        self.free.append(counter)

    @property
    def bytes(self) -> int:
        """The bytes of all tables and counts."""
        return self.shown.bytes + self.hit.bytes

    def _inside(self, ids: Ids) -> np.ndarray:
        if self.catalogue is None:
            return np.ones(len(ids.keys), np.int8)
        return (self.catalogue.find(ids) >= 0).astype(np.int8)


class _Counter:
    """Counts the lists of blocks on one thread."""

    def __init__(self, wanted: ExposureCounters) -> None:
        self._wanted = wanted
        self.shown = ItemCounter(wanted.cutoffs, wanted.shown)
        self.hit = ItemCounter(wanted.cutoffs, wanted.hit)
        self.lists = 0

    def add(self, lists: Lists, hits: Hits, repeat: np.ndarray) -> None:
        offsets, items = lists.offsets, lists.items
        self.shown.add(offsets, items, repeat=repeat)
        self.lists += int((np.diff(offsets) > 0).sum())
        if self._wanted.hits:
            self.hit.add(hits.offsets, take_ids(items, hits.places(offsets)), ranks=hits.ranks)


def _cutoffs(row: state_rows.Row, name: str) -> tuple[int, ...]:
    cutoffs = state_rows.counts(row, name, least=1).tolist()
    if not cutoffs or sorted(set(cutoffs)) != cutoffs:
        raise state_rows.damaged(f"{name} do not ascend")
    return tuple(cutoffs)


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


@record(frozen=True, eq=False)
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
        for counters in self.counters:
            for one in counters.all:
                one.shown.close()
                one.hit.close()
                lists += one.lists
            shown, hit = shown.merge(counters.shown.counts()), hit.merge(counters.hit.counts())
        if closing.known is not None and any(one.labels for one in self.counters):
            counter = ItemCounter([NO_CUTOFF])
            counter.add(closing.known.labels.offsets, closing.known.labels.items)
            labels = labels.merge(counter.counts())
        return type(self)(self.cutoffs, lists, self.size, shown, hit, labels)

    @property
    def held_bytes(self) -> int:
        """The bytes of what blocks are still added to."""
        return sum(one.bytes for one in self.counters)

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
        times = self._times[limit, inside and self.size > 0]
        values = sorted(times)
        return values, [times[one] for one in values], sum(one * times[one] for one in values)

    @cached_property
    def _times(self) -> dict[tuple[int, bool], Counter[int]]:
        """How many items stand in how many lists, by cutoff; those of the catalogue apart."""
        _, counts = self.shown.joined()
        inside, within = counts[:, -1] > 0, np.zeros(len(counts), np.int64)
        found = {}
        for column, limit in enumerate(self.cutoffs):
            within += counts[:, column]
            found[limit, False] = _times(within)
            if self.size:
                found[limit, True] = _times(within[inside])
        return found

    @cached_property
    def hits(self) -> Mapping[int, int]:
        """How many distinct items are hit within each cutoff."""
        _, counts = self.hit.joined()
        hit = np.logical_or.accumulate(counts > 0, axis=1).sum(axis=0)
        return dict(zip(self.cutoffs, hit.tolist(), strict=True))

    @cached_property
    def items(self) -> int:
        """The number of items of the catalogue."""
        ids, counts = self.shown.joined()
        return self.size or len(self.labels.with_counts(ids, counts[:, :1]).joined()[1])

    @property
    def label_items(self) -> int:
        """The number of distinct items of labels."""
        return len(self.labels.joined()[1])

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


@record(frozen=True)
class OfExposure(Aggregate):
    """A metric over the exposure that all such metrics share, so that it adds nothing up itself."""

    needs = (Exposure,)
    # Whether it needs the items of the catalogue, those that were hit, and those that are labels.
    whole: ClassVar[bool] = False
    hits: ClassVar[bool] = False
    labels: ClassVar[bool] = False

    limit: Fixed  # the cutoff, or a rank beyond every list

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the aggregate of a metric."""
        return cls(asked.metric.limit)

    def finish(self, totals: Totals) -> Value:
        """Return the value of the exposure; it has no standard error."""
        exposure = totals.needs[Exposure]
        return Value(self.value(exposure), lists=exposure.lists)

    def check_whole(self, totals: Totals) -> None:
        """Raise UsageError if the exposure was not counted within the cutoff."""
        if self.limit not in totals.needs[Exposure].cutoffs:
            raise state_rows.damaged("exposure.cutoffs are not those of its metrics")

    def value(self, exposure: Exposure) -> float | None:
        """Return what the metric is of an exposure; None without one list."""
        raise NotImplementedError


class Coverage(OfExposure):
    """The share of the catalogue that any list shows."""

    whole = True

    def value(self, exposure: Exposure) -> float | None:
        """Return the number of distinct items over that of the catalogue."""
        items = exposure.items
        return sum(exposure.spread(self.limit, inside=True)[1]) / items if items else None


class LabelCoverage(OfExposure):
    """The share of the distinct labels that any list hits."""

    hits = labels = True

    def value(self, exposure: Exposure) -> float | None:
        """Return the number of distinct hits over that of distinct labels."""
        items = exposure.label_items
        return exposure.hits[self.limit] / items if items else None


@record(frozen=True)
class Gini(OfExposure):
    """How unequal the exposure of the items of the catalogue is."""

    whole = True

    less: Fixed = 1  # how many items fewer than all the sum is divided by, 1 or 0

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the aggregate of a metric."""
        return cls(asked.metric.limit, int(asked.metric.values["of"]))

    def value(self, exposure: Exposure) -> float | None:
        """Return the sum of (2 j - n - 1) c_j by rising count, / (n - less) / all."""
        values, times, total = exposure.spread(self.limit, inside=True)
        items = exposure.items
        if not total or items < 2:
            return 0.0 if total else None
        found, before = 0, items - sum(times)
        for count, many in zip(values, times, strict=True):
            found += count * many * (2 * before + many - items)
            before += many
        return found / ((items - self.less) * total)


class Entropy(OfExposure):
    """The entropy of the exposure, in bits."""

    def value(self, exposure: Exposure) -> float | None:
        """Return the sum of -p log2(p) over the items, of the share p of each."""
        values, times, total = exposure.spread(self.limit)
        if not total:
            return None
        logs = log2(np.array([total / c for c in values])).tolist()
        terms = [m * c / total * log for c, m, log in zip(values, times, logs, strict=True)]
        return math.fsum(terms)


class Concentration(OfExposure):
    """The Herfindahl-Hirschman index of the exposure."""

    def value(self, exposure: Exposure) -> float | None:
        """Return the sum of p**2 over the items, of the share p of each."""
        values, times, total = exposure.spread(self.limit)
        squares = sum(c * c * m for c, m in zip(values, times, strict=True))
        return squares / total**2 if total else None


class Personalization(OfExposure):
    """How little two lists have in common."""

    def value(self, exposure: Exposure) -> float | None:
        """Return 1 - the mean over all pairs of lists of the items that both show, / k."""
        values, times, _ = exposure.spread(self.limit)
        pairs = exposure.lists * (exposure.lists - 1)
        if not pairs:
            return None
        common = sum(c * (c - 1) * m for c, m in zip(values, times, strict=True))
        return (self.limit * pairs - common) / (self.limit * pairs)


def is_of_catalogue(metric: Metric) -> bool:
    """Return whether a metric is of all items that can be shown, also of those that are not."""
    kind = aggregate_of(metric)
    return issubclass(kind, OfExposure) and kind.whole
