"""The catalogue: the items that can be shown, which query had which in training, and vectors."""

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import field
from functools import cached_property

import numpy as np
import pyarrow as pa

from rankmill.columns.elementary import exp2, log2
from rankmill.columns.ids import to_ids
from rankmill.columns.ragged_lists import Groups
from rankmill.columns.ranked_lists import Lists
from rankmill.columns.seal import PIECE, SEEDS, hash_ids, mix, sum_ids, sum_pairs, sum_rows
from rankmill.errors import plural
from rankmill.kernels.identity import Ids
from rankmill.kernels.vectors import scale_vectors
from rankmill.matching.hits import match
from rankmill.matching.index import LabelIndex, look_up
from rankmill.records import record

HEAD, MIDDLE, TAIL = 0, 1, 2
# The numbers of a vector of length 1 are integers in units of 2**-shift, as many as a float64 has
# if there are few items.
FINEST = 52


class ItemRows:
    """Distinct items, which have a row each."""

    items: Ids

    def __post_init__(self) -> None:
        self._lookup = look_up(self.items)[0]

    def find(self, items: Ids) -> np.ndarray:
        """Return the row of each item as int64; -1 for one that is not among them."""
        return self._lookup.find(items)


@record(eq=False, repr=False)
class Training(ItemRows):
    """The items that queries had in training, each once a query."""

    items: Ids  # the distinct ones
    users: np.ndarray  # int64: how many queries had each item
    queries: int  # how many had an item
    index: LabelIndex = field(init=False)  # the items of each query, as `of_part` tells
    # The mean popularity of what a query had, as a mean over all queries, where these are not all
    # in the index.
    usual: float | None = None
    seals: frozenset[int] = frozenset()  # of the parts that it was counted in, if it was in parts

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rows: np.ndarray | None = None
        self._labels: tuple[LabelIndex, np.ndarray] | None = None

    def of_part(self, index: LabelIndex) -> "Training":
        """Return what some queries had; how popular items are is that of all queries."""
        found = copy(self)
        found.index, found._rows, found._labels = index, None, None
        return found

    def rows_in(self, catalogue: "KnownItems") -> np.ndarray:
        """Return the row of each item that a query had in a catalogue; -1 for others."""
        if self._rows is None:
            self._rows = catalogue.find(self.index.labels.items)
        return self._rows

    @property
    def interactions(self) -> int:
        """How many pairs of a query and an item there are."""
        return int(self.users.sum())

    @property
    def most(self) -> int:
        """How many items a query had at most."""
        return int(np.diff(self.index.labels.offsets).max(initial=0))

    @cached_property
    def popularity(self) -> np.ndarray:
        """How many queries had each item, as float64."""
        return self.users.astype(np.float64)

    @cached_property
    def novelty(self) -> np.ndarray:
        """-log2 of the share of queries that had each item."""
        return log2(self.queries / self.popularity)

    @property
    def novelty_of_others(self) -> float:
        """The same of an item that no query had, as if one had."""
        return float(log2(np.array([float(max(1, self.queries))]))[0])

    @cached_property
    def ranks(self) -> np.ndarray:
        """The popularity rank of each item, from 1; items of one popularity share it."""
        return np.unique(-self.users, return_inverse=True)[1].astype(np.int64) + 1

    @cached_property
    def groups(self) -> np.ndarray:
        """Whether each item is in the head, the middle or the tail.

        The head is the most popular items that 20 % of interactions are with, the tail the least
        popular ones. Items of one popularity are in one group: in the head if more popular ones
        have less than 20 %, else in the tail if less popular ones have.
        """
        each, places = self._by_popularity()
        below = each.cumsum() - each
        above = self.interactions - below - each
        tail = np.where(5 * below < self.interactions, TAIL, MIDDLE)
        found: np.ndarray = np.where(5 * above < self.interactions, HEAD, tail)[places]
        return found.astype(np.int64)

    def _by_popularity(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the interactions with items of each popularity, ascending, and whose it is."""
        values, places, times = np.unique(self.users, return_inverse=True, return_counts=True)
        return values * times, places

    def long_tail(self, head: float) -> np.ndarray:
        """1 of each item that is less popular than items that have `head` of interactions, else 0.

        Items of one popularity are on one side.
        """
        each, places = self._by_popularity()
        above = self.interactions - each.cumsum()
        found: np.ndarray = (above >= head * self.interactions)[places]
        return found.astype(np.float64)

    def inverse_propensities(self, a: float, b: float) -> np.ndarray:
        """1 / propensity of each item, and last that of an item that no query had."""

        def power(numbers: np.ndarray, exponent: float) -> np.ndarray:
            inverted = numbers < 1  # log2 takes numbers from 1 on
            logs = log2(np.where(inverted, 1 / numbers, numbers))
            return exp2(exponent * np.where(inverted, -logs, logs))

        queries = np.array([float(max(1, self.queries))])
        # Of fewer than 3 queries it would be below 0, and a propensity above 1.
        scale = np.maximum(0, log2(queries) * math.log(2) - 1) * power(np.array([b + 1]), a)
        return np.asarray(1 + scale * power(np.append(self.popularity, 0.0) + b, -a))

    def label_rows(self, index: LabelIndex) -> np.ndarray:
        """Return the row of each label, as `find` does; they are found once."""
        if self._labels is None or self._labels[0] is not index:
            self._labels = index, self.find(index.labels.items)
        return self._labels[1]

    def seen(self, lists: Lists) -> np.ndarray:
        """Return whether the query of each prediction had its item, as bool."""
        rows = self.index.find(lists.queries)
        every = len(lists.items.keys)
        labels = self.index.labels
        found = match(labels, lists.offsets, lists.items, every, rows=rows, repeats_count=True)
        seen = np.zeros(every, np.bool_)
        seen[found.places(lists.offsets)] = True
        return seen


class Features(ItemRows):
    """The vectors of items, scaled to length 1.

    They are integers, ``units`` of 1 / ``scale``, so that sums do not depend on the order. The sum
    of the vectors of all items still fits into int64. No vector is of zeros.
    """

    def __init__(self, items: Ids, vectors: np.ndarray) -> None:
        self.items = items
        self.scale = 2.0 ** min(FINEST, 62 - len(vectors).bit_length())
        self.units: np.ndarray = np.empty(vectors.shape, np.int64)
        scale_vectors(vectors, self.scale, self.units)
        self.__post_init__()
        self._had: np.ndarray | None = None

    def __str__(self) -> str:
        """How many vectors there are, of how many numbers."""
        return f"{len(self.units):,} vectors of {self.units.shape[1]:,} numbers"

    def checksum(self, seed: np.uint64) -> int:
        """Return a number that only equal features have in common, whatever the order of items."""
        each = np.arange(1, self.units.shape[1] + 1, dtype=np.uint64) * seed
        mix(each)
        rows = np.empty(len(self.units), np.uint64)
        step = max(1, PIECE // max(1, len(each)))
        for start in range(0, len(rows), step):
            some = self.units[start : start + step].view(np.uint64) * each
            rows[start : start + step] = some.sum(axis=1, dtype=np.uint64)
        return sum_rows(hash_ids(self.items, seed), rows)

    def had(self, history: LabelIndex) -> np.ndarray:
        """Return the row of each item that a query had; -1 for those without a vector."""
        if self._had is None:
            self._had = self.find(history.labels.items)
        return self._had


@record(eq=False, repr=False)
class KnownItems(ItemRows):
    """Distinct items, and training, groups, features and columns of items if there are any."""

    items: Ids
    training: Training | None = None
    described: dict[str, dict[str, object]] = field(default_factory=dict)  # what inputs were read
    groups: Groups | None = None
    features: Features | None = None
    text: str | None = None  # what to call it, where not all of the training is here
    columns: dict[str, np.ndarray] = field(default_factory=dict)  # which users' metrics see

    def __len__(self) -> int:
        return len(self.items.keys)

    def of_part(self, index: LabelIndex) -> "KnownItems":
        """Return the same, with what some queries had in training."""
        found = copy(self)
        found.training = None if self.training is None else self.training.of_part(index)
        return found

    def __str__(self) -> str:
        """What only equal catalogues have in common, in a line: counts, and a hash of all."""
        if self.text is not None:
            return self.text
        told = plural(len(self), "item")
        if self.groups is not None:
            told += f" in {len(self.groups.names):,} groups"
        if self.training is not None:
            one = self.training
            told += f", {plural(one.interactions, 'interaction')} of {plural(one.queries, 'query')}"
        if self.features is not None:
            told += f", {self.features}"
        hashes = (f"{sum(self._checksums(seed)) % 2**64:016x}" for seed in SEEDS)
        return f"{told} ({''.join(hashes)})"

    def _checksums(self, seed: np.uint64) -> Iterator[int]:
        """Yield numbers of all items, groups, interactions and vectors, whatever their order."""
        yield sum_ids(self.items, seed)
        if self.groups is not None:
            names = to_ids(pa.array(self.groups.names, pa.large_string()), "groups")
            yield sum_pairs(self.items, self.groups.offsets, names, self.groups.codes, seed)
        if self.training is not None:
            index = self.training.index
            labels = index.labels
            yield sum_pairs(index.queries, labels.offsets, labels.items, None, seed ^ np.uint64(2))
        if self.features is not None:
            yield self.features.checksum(seed)
        for name, values in self.columns.items():
            of_name = hash_ids(to_ids(pa.array([name], pa.large_string()), name), seed)
            bits = np.where(np.isnan(values), np.nan, values).view(np.uint64)
            yield sum_rows(hash_ids(self.items, seed), bits ^ of_name)
