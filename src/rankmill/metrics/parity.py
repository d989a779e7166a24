"""What groups of items get: exposure, hits and recall, as numbers a group and as their parity.

To add one, write a class that says what it counts, and give it a row in `catalogue.py`. The values
of its groups are a column of the table of groups then.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from rankmill.columns.elementary import discounts
from rankmill.columns.groups import Groups
from rankmill.kernels import grouped as kernels
from rankmill.kernels.identity import Ids
from rankmill.matching.catalogue import KnownItems
from rankmill.metrics import rows
from rankmill.metrics.aggregate import Aggregate, Asked, Closing, Scored, Totals, Value
from rankmill.metrics.base import Metric
from rankmill.metrics.grouped import groups_of
from rankmill.threads import Workers

# The columns of the sums of a group.
DIGITS = 4


@dataclass(frozen=True, eq=False)
class Parity:
    """What each group gets, over the number of its items or labels: the least over the largest.

    Attributes
    ----------
    names : tuple of str
        The groups.
    whole : int
        What an item is in units, of which each of its groups has a part.
    sums : int64[groups, 4]
        How many places, or hits, each group has, in units; and what they are worth by their ranks:
        in units, their 2**-29 and their 2**-58, the last two below 2**29.
    base : int64[groups]
        How many items, or labels, each group has, in units.
    title : str
        What a group gets.
    of_hits, needs_group_labels, by_rank : bool
        Whether only hits count, whether labels are the base, and whether a place counts
        1 / log2(rank + 1), and not 1.
    """

    passes: ClassVar[int] = 1
    needs_confidences: ClassVar[bool] = False
    needs_groups: ClassVar[bool] = True
    title: ClassVar[str]
    of_hits: ClassVar[bool] = False
    needs_group_labels: ClassVar[bool] = False
    by_rank: ClassVar[bool] = True

    names: tuple[str, ...]
    whole: int
    sums: np.ndarray
    base: np.ndarray

    @classmethod
    def init(cls, asked: Asked) -> Self:
        """Return what groups get of no list."""
        if asked.catalogue is None:  # as where rows are given a type before any is read
            return cls((), 1, np.zeros((0, DIGITS), np.int64), np.zeros(0, np.int64))
        groups = groups_of(asked.catalogue)
        base = np.zeros(len(groups.names), np.int64)
        if not cls.needs_group_labels:
            each = np.repeat(groups.units, np.diff(groups.offsets))
            np.add.at(base, groups.codes, each)
        return cls(tuple(groups.names), groups.whole, np.zeros((len(base), DIGITS), np.int64), base)

    def update(self, scored: Scored, asked: Asked) -> Self:
        """Return the sums with the lists of a block."""
        assert asked.catalogue is not None
        offsets, k = scored.lists.offsets, asked.metric.limit
        ranks = int(min(k, np.diff(offsets).max(initial=0)))
        sums = np.zeros_like(self.sums)
        of_items = scored.shown, scored.repeat, k, worths(ranks), *groups_of(asked.catalogue).arrays
        if self.of_hits:
            hits = scored.hits
            kernels.sum_hits(offsets, hits.offsets, hits.ranks, *of_items, sums)
        else:
            kernels.sum_exposure(offsets, *of_items, sums)
        return replace(self, sums=_sum(self.sums, sums))

    def merge(self, other: Self) -> Self:
        """Return the sums of the lists of both, which are of the same groups."""
        base = self.base + other.base if self.needs_group_labels else self.base
        return replace(self, sums=_sum(self.sums, other.sums), base=base)

    def close(self, closing: Closing) -> Self:
        """Return the sums with the labels of the input, if they are the base."""
        if not self.needs_group_labels:
            return self
        return replace(self, base=self.base + closing.group_labels)

    def gets(self) -> list[float]:
        """Return what each group gets, in units: exact sums, rounded once."""
        rows = self.sums.tolist()
        if not self.by_rank:
            return [places for places, *_ in rows]
        whole = 1 << 2 * kernels.HALF
        return [
            (high * whole + (middle << kernels.HALF) + low) / whole for _, high, middle, low in rows
        ]

    def values(self) -> list[float | None]:
        """Return what each group gets for each of its items or labels; None if it has none."""
        pairs = zip(self.gets(), self.base.tolist(), strict=True)
        return [got / base if base else None for got, base in pairs]

    def finish(self, totals: Totals, among: Any, workers: Workers) -> Value:
        """Return the least value of a group over the largest."""
        each = [value for value in self.values() if value is not None]
        most = max(each, default=0.0)
        return Value(min(each) / most if most else None)

    def by_group(self, at: str) -> dict[str, list[float | None]]:
        """Return the columns of the table of groups; `at` is the cutoff in their titles."""
        base = [count / self.whole for count in self.base.tolist()]
        return {
            "labels" if self.needs_group_labels else "items": list(base),
            **self.shares(at),
            f"{self.title}{at}": self.values(),
        }

    def shares(self, at: str) -> dict[str, list[float | None]]:
        """Return the column of the shares of all places within the cutoff, if these are counted."""
        if self.of_hits:
            return {}
        places = self.sums[:, 0].tolist()
        total = sum(places)
        return {f"share{at}": [count / total if total else None for count in places]}

    def to_row(self) -> dict[str, Any]:
        """Return a flat row for Arrow."""
        sums = self.sums.reshape(-1)
        return {"names": list(self.names), "whole": self.whole, "sums": sums, "base": self.base}

    @classmethod
    def from_row(cls, row: rows.Row, prefix: str = "") -> Self:
        """Return the sums from a row that `to_row` made.

        Raises
        ------
        UsageError
            If the row is not one of sums by group.
        """
        names = tuple(rows.texts(row, f"{prefix}names"))
        sums = rows.counts(row, f"{prefix}sums", least=0)
        base = rows.counts(row, f"{prefix}base", least=0)
        rows.same_length(row, f"{prefix}names", f"{prefix}base")
        whole = rows.count(row, f"{prefix}whole")
        if not whole:
            raise rows.damaged(f"{prefix}whole is 0, not the size of an item")
        if len(sums) != DIGITS * len(names):
            raise rows.damaged(f"{prefix}sums are not those of {len(names)} groups")
        sums = sums.reshape(len(names), DIGITS)
        if (sums[:, 2:] > kernels.BELOW).any():
            raise rows.damaged(f"{prefix}sums have a digit of more than {kernels.HALF} bits")
        return cls(names, whole, sums, base)


class Exposure(Parity):
    """The exposure of an item of each group: demographic parity."""

    title = "exposure"


class Treatment(Parity):
    """The exposure of each group for each of its labels: disparate treatment."""

    title = "treatment"
    needs_group_labels = True


class Impact(Parity):
    """The exposure of the hits of each group for each of its labels: disparate impact."""

    title = "impact"
    of_hits = needs_group_labels = True


class Recall(Parity):
    """The share of the labels of each group that are hit."""

    title = "recall"
    of_hits = needs_group_labels = True
    by_rank = False


def labels_of_groups(items: Ids, catalogue: KnownItems) -> np.ndarray:
    """Return how many of these labels each group has, in units."""
    groups: Groups = groups_of(catalogue)
    counts = np.zeros(len(groups.names), np.int64)
    kernels.count_shares(catalogue.find(items), *groups.arrays, counts)
    return counts


def table_of_groups(added: Iterable[tuple[Metric, Aggregate]]) -> pa.Table | None:
    """Return a row a group, with what it gets by each metric; None without such a metric."""
    columns: dict[str, list[Any]] = {}
    for metric, one in added:
        if isinstance(one, Parity):
            columns.setdefault("group", list(one.names))
            columns |= one.by_group("" if metric.k is None else f"@{metric.k}")
    if not columns:
        return None
    kinds = [pa.string(), *[pa.float64()] * (len(columns) - 1)]
    arrays = [pa.array(one, kind) for one, kind in zip(columns.values(), kinds, strict=True)]
    return pa.table(arrays, names=[*columns])


def _sum(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the sum of two tables of sums, with the same digits in any order of adding."""
    found: np.ndarray = one + other
    for digit in (3, 2):
        found[:, digit - 1] += found[:, digit] >> kernels.HALF
        found[:, digit] &= kernels.BELOW
    return found


def worths(ranks: int) -> np.ndarray:
    """Return 1 / log2(rank + 1) for ranks from 1 as int64[ranks, 2], in 2**-29 and 2**-58.

    They are exact: down to 2**-6 a float64 is a multiple of 2**-58.
    """
    exact = (1 / discounts(ranks)[1:] * 2.0 ** (2 * kernels.HALF)).astype(np.int64)
    return np.column_stack([exact >> kernels.HALF, exact & kernels.BELOW])
