"""Ranked lists: the items of each query in rank order, with an optional number for each item."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rankmill.columns.ids import slice_ids, take_ids
from rankmill.columns.lists import drop_values, take_offsets, take_values
from rankmill.kernels.identity import Ids
from rankmill.records import record

# ------------------------------------------------------------------ where rows stand in a source


class Place(NamedTuple):
    """The source of some rows, and the number of each row in it.

    Examples
    --------
    >>> Place("a.parquet", 5).of(2), Place("a.csv", 5, "line").of(2), Place("a.csv").of(2)
    ('row 7', 'line 7', '')
    """

    source: str  # the file, or what else holds the rows
    first: int = -1  # the number of the first row; -1 if the rows have no numbers of their own
    unit: str = "row"  # what is numbered: rows or lists from 0, or each "line" of a text from 1
    lines: np.ndarray | None = None  # the number of each row if they do not follow each other
    # For rows of several files: where those of each begin, and their place in it. The other fields
    # are those of the first file.
    files: "tuple[tuple[int, Place], ...]" = ()

    def at(self, i: int) -> "Place":
        """The place of the rows from row i on, in the one file that holds this row."""
        if not self.files:
            return self.onwards(i)
        start, place = [one for one in self.files if one[0] <= i][-1]
        return place.onwards(i - start)

    def of(self, i: int) -> str:
        """The place of row i, such as "row 7"; an empty text if it is not known."""
        if self.files:
            return self.at(i).of(0)
        return "" if self.first < 0 else f"{self.unit} {self.number(i)}"

    def number(self, i: int) -> int:
        """The number of row i."""
        return self.first + i if self.lines is None else int(self.lines[i])

    def onwards(self, i: int) -> "Place":
        """The place of the rows from row i on."""
        if self.files:
            later = [(start - i, place) for start, place in self.files if start > i]
            return self.at(i)._replace(files=((0, self.at(i)), *later))
        if self.first < 0:
            return self
        lines = None if self.lines is None else self.lines[i:]
        return self._replace(first=self.first + i, lines=lines)

    def take(self, rows: np.ndarray) -> "Place":
        """The place of some of the rows, which ascend."""
        if not len(rows) or (self.first < 0 and not self.files):
            return self
        if self.files:
            starts = [start for start, _ in self.files]
            ends = [*np.searchsorted(rows, starts).tolist(), len(rows)]
            files = tuple(
                (begin, place.take(rows[begin:end] - start))
                for (start, place), begin, end in zip(self.files, ends[:-1], ends[1:], strict=True)
                if begin < end
            )
            return files[0][1]._replace(files=files)
        lines = self.first + rows if self.lines is None else self.lines[rows]
        return self._replace(first=int(lines[0]), lines=lines)


@record(frozen=True)
class Lists:
    """The lists of some queries."""

    queries: Ids  # the id of each list
    offsets: np.ndarray  # int64[n + 1]: the items of each list
    items: Ids  # without null items
    # The confidences of predictions or the gains of labels: float32 or float64, one an item.
    numbers: np.ndarray | None
    nulls: int  # how many null items were left out
    tied: int  # how many items share their confidence or rank, so that file order decides
    place: Place  # where the lists stand; without numbers unless each row is a list
    rows: int  # how many input rows hold these lists
    repeats: int = 0  # how many items were dropped, because they repeat one of their list

    def slice(self, start: int, end: int) -> "Lists":
        """The lists from `start` to `end` (exclusive), as views, with the counts of all."""
        offsets = self.offsets[start : end + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        return replace(
            self,
            queries=slice_ids(self.queries, start, end),
            offsets=offsets - first,
            items=slice_ids(self.items, first, last),
            numbers=None if self.numbers is None else self.numbers[first:last],
            place=self.place.onwards(start),
            rows=end - start,
        )

    def take(self, rows: np.ndarray) -> "Lists":
        """The lists at some rows, with the counts and the place of all."""
        offsets = take_offsets(self.offsets, rows)
        at = take_values(self.offsets, np.arange(len(self.items.keys)), rows, offsets)
        return replace(
            self,
            queries=take_ids(self.queries, rows),
            offsets=offsets,
            items=take_ids(self.items, at),
            numbers=None if self.numbers is None else self.numbers[at],
        )

    def keep(self, keep: np.ndarray) -> "Lists":
        """The lists with only the items that are marked in `keep`."""
        return replace(
            self,
            offsets=drop_values(self.offsets, keep),
            items=take_ids(self.items, np.flatnonzero(keep)),
            numbers=None if self.numbers is None else self.numbers[keep],
        )

    @property
    def confidences(self) -> np.ndarray:
        """The numbers; the caller knows that the confidences were read."""
        assert self.numbers is not None
        return self.numbers
