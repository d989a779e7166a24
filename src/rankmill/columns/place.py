"""Where rows stand in their source, as error messages tell it."""

from typing import NamedTuple

import numpy as np


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
