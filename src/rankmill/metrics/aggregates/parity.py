"""What groups of items get: exposure, hits and recall, as numbers a group and as their parity.

To add one, write a class that says what it counts, and give it a row in `catalogue_metrics.py`. The
values of its groups are a column of the table of groups then.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Self

import numpy as np

from rankmill.columns.elementary import discounts
from rankmill.kernels import catalogue as kernels
from rankmill.metrics.aggregate import (
    Aggregate,
    AggregateSettings,
    Closing,
    Needs,
    ScoredBlock,
    Totals,
    Value,
)
from rankmill.metrics.needs import GroupLabels, GroupRows, Repeats, given
from rankmill.metrics.records import state_rows as rows
from rankmill.metrics.records.record import Counts, Fixed, FixedCounts, LaterCount, kind, same
from rankmill.records import record

# The columns of the sums of a group.
DIGITS = 4


def _sum(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the sum of two tables of sums, with the same digits in any order of adding."""
    found: np.ndarray = one + other
    for digit in (3, 2):
        found[:, digit - 1] += found[:, digit] >> kernels.HALF
        found[:, digit] &= kernels.BELOW
    return found


def _read_sums(row: rows.Row, name: str) -> np.ndarray:
    sums = rows.counts(row, name, least=0)
    return sums if len(sums) % DIGITS else sums.reshape(-1, DIGITS)


@record(frozen=True, eq=False)
class Parity(Aggregate):
    """What each group gets, over the number of its items or labels: the least over the largest."""

    needs: ClassVar[Needs] = (GroupRows, Repeats)
    title: ClassVar[str]  # what a group gets
    # Whether only hits count, and whether a place counts 1 / log2(rank + 1), and not 1.
    of_hits: ClassVar[bool] = False
    by_rank: ClassVar[bool] = True

    names: Annotated[tuple[str, ...], same(lambda row, name: tuple(rows.texts(row, name)), list)]
    whole: Fixed  # what an item is in units, of which each of its groups has a part
    # int64[groups, 4]: how many places, or hits, each group has, in units; and what they are worth
    # by their ranks: in units, their 2**-29 and their 2**-58, the last two below 2**29.
    sums: Annotated[np.ndarray, kind(_sum, _read_sums, np.ravel)]
    base: FixedCounts  # how many items, or labels, each group has, in units
    lists: LaterCount = 0

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return what groups get of no list."""
        if asked.catalogue is None:  # as where rows are given a type before any is read
            return cls((), 1, np.zeros((0, DIGITS), np.int64), np.zeros(0, np.int64))
        groups = given(given(asked.catalogue).groups)
        base = np.zeros(len(groups.names), np.int64)
        if GroupLabels not in cls.needs:
            each = np.repeat(groups.units, np.diff(groups.offsets))
            np.add.at(base, groups.codes, each)
        return cls(tuple(groups.names), groups.whole, np.zeros((len(base), DIGITS), np.int64), base)

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the sums with the lists of a block."""
        offsets, k = scored.lists.offsets, asked.metric.limit
        ranks = int(min(k, np.diff(offsets).max(initial=0)))
        sums = np.zeros_like(self.sums)
        groups = given(given(asked.catalogue).groups)
        counted = scored.needs[GroupRows]
        if self.of_hits:
            places = scored.hits.places(offsets)
            counted = np.full_like(counted, -1)
            counted[places] = scored.needs[GroupRows][places]
        of_items = counted, scored.needs[Repeats], k, worths(ranks), *groups.arrays
        kernels.sum_exposure(offsets, *of_items, sums)
        lists = None if self.lists is None else self.lists + int((np.diff(offsets) > 0).sum())
        return replace(self, sums=_sum(self.sums, sums), lists=lists)

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

    def finish(self, totals: Totals) -> Value:
        """Return the least value of a group over the largest."""
        each = [value for value in self.values() if value is not None]
        most = max(each, default=0.0)
        # A share of labels is of queries, as recall is.
        return Value(min(each) / most if most else None, lists=self.lists if self.by_rank else None)

    def by_group(self, at: str) -> dict[str, list[float | None]]:
        """Return the columns of the table of groups; `at` is the cutoff in their titles."""
        base = [count / self.whole for count in self.base.tolist()]
        return {
            "group": [*self.names],
            "labels" if GroupLabels in self.needs else "items": list(base),
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

    def check(self, row: rows.Row, prefix: str) -> None:
        """Raise UsageError if the sums are not those of the groups."""
        rows.same_length(row, f"{prefix}names", f"{prefix}base")
        if not self.whole:
            raise rows.damaged(f"{prefix}whole is 0, not the size of an item")
        if self.sums.shape != (len(self.names), DIGITS):
            raise rows.damaged(f"{prefix}sums are not those of {len(self.names)} groups")
        if (self.sums[:, 2:] > kernels.BELOW).any():
            raise rows.damaged(f"{prefix}sums have a digit of more than {kernels.HALF} bits")


class ExposureParity(Parity):
    """The exposure of an item of each group: demographic parity."""

    title = "exposure"


@record(frozen=True, eq=False)
class OfLabels(Parity):
    """What each group gets for each of its labels."""

    needs: ClassVar[Needs] = (*Parity.needs, GroupLabels)

    base: Counts

    def close(self, closing: Closing) -> Self:
        """Return the sums with the labels of the input."""
        return replace(self, base=self.base + closing.needs[GroupLabels])


class Treatment(OfLabels):
    """The exposure of each group for each of its labels: disparate treatment."""

    title = "treatment"


class Impact(OfLabels):
    """The exposure of the hits of each group for each of its labels: disparate impact."""

    title = "impact"
    of_hits = True


class Recall(OfLabels):
    """The share of the labels of each group that are hit."""

    title = "recall"
    of_hits = True
    by_rank = False


def worths(ranks: int) -> np.ndarray:
    """Return 1 / log2(rank + 1) for ranks from 1 as int64[ranks, 2], in 2**-29 and 2**-58.

    They are exact: down to 2**-6 a float64 is a multiple of 2**-58.
    """
    exact = (1 / discounts(ranks)[1:] * 2.0 ** (2 * kernels.HALF)).astype(np.int64)
    return np.column_stack([exact >> kernels.HALF, exact & kernels.BELOW])
