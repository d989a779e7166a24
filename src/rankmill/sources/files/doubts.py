"""Rows of text that do not fit how their file is read, counted over all rows of each file."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from rankmill.columns.place import Place
from rankmill.errors import InputError
from rankmill.kernels.text import cells_with, has_stray_return, lines_with_return, rows_with_quote
from rankmill.sources.files.text_blocks import TextBlock, Texts, shown

# A file with more such rows is not what its first rows made it seem.
MOST_IN_THOUSAND = 3
MOST_NOTES = 3
LINE_ENDS = "end all lines in LF or CRLF"
# What may part the items of a cell -> how a result tells it, and what a format is called by it.
PARTED_BY = {" ": "blanks", ",": "commas", ";": "semicolons", "|": "bars"}


class Doubt(NamedTuple):
    """Some rows that do not fit, and the first of them."""

    file: str
    guess: str  # what was taken for granted: "line end", "quotes" or "separator"
    line: int  # that of the first of them
    rows: int  # how many they are
    of: int  # how many rows were read
    what: str  # what is wrong with the first one
    todo: str

    def __str__(self) -> str:
        like = f"{self.rows:,} of {self.of:,} rows {'is' if self.rows == 1 else 'are'} like this"
        return f"{self.file}: line {self.line}: {self.what} ({like}): {self.todo}"

    def to_dict(self) -> dict[str, str | int]:
        """What is told of it in JSON."""
        found = self._asdict()
        return {name: found[name] for name in ("guess", "file", "line", "rows", "of")}


class Doubts:
    """What was found in the blocks of an input; a block that is read again replaces itself."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int], tuple[int, int, str, str]] = {}
        self._rows: dict[tuple[str, int], tuple[int, int]] = {}

    def read(self, file: str, block: int, rows: int, comments: int) -> None:
        """Say how many rows and comments a block holds; its first line names it."""
        self._rows[file, block] = rows, comments

    def add(self, guess: str, place: Place, line: int, rows: int, what: str, todo: str) -> None:
        """Add rows of a block that do not fit a guess; of several columns, the one with most."""
        key = guess, place.source, place.first
        before = self._found.get(key)
        if before is None or rows >= before[1]:
            self._found[key] = line, rows, what, todo

    def all(self) -> list[Doubt]:
        """What was found in each file, in the order of their names, with the first line of each."""
        rows: Counter[str] = Counter()
        for (file, _), (count, _) in list(self._rows.items()):
            rows[file] += count
        found: dict[tuple[str, str], Doubt] = {}
        for (guess, file, _), (line, count, what, todo) in sorted(self._found.items()):
            before = found.get((file, guess))
            if before is None:
                found[file, guess] = Doubt(file, guess, line, count, rows[file], what, todo)
            else:
                found[file, guess] = before._replace(rows=before.rows + count)
        return sorted(found.values())

    def notes(self) -> list[str]:
        """What was found in the first files, in words, and in how many others."""
        told = list(map(str, self.all()))
        more = len(told) - MOST_NOTES
        if more > 0:
            told[MOST_NOTES:] = [f"{more:,} more are like these: the JSON of the result has them"]
        return told

    def check(self) -> None:
        """Raise InputError if more than a few in a thousand rows of a file do not fit."""
        for one in self.all():
            if 1000 * one.rows > MOST_IN_THOUSAND * one.of:
                raise InputError(str(one))

    def counts(self) -> dict[str, int]:
        """What the audit counts of them."""
        return {
            "doubtful_rows": sum(one.rows for one in self.all()),
            "comment_lines": sum(comments for _, comments in list(self._rows.values())),
        }


def doubt_returns(block: TextBlock, delimiter: int, doubts: Doubts) -> None:
    """Add the lines of a block that hold a carriage return, which may be meant to end a line."""
    if not has_stray_return(block.data):
        return
    first = np.zeros(1, np.int64)
    count = lines_with_return(block.data, delimiter, first)
    if count:
        place = Place(block.file, block.first_line)
        what = "a carriage return within the line does not end it"
        doubts.add("line end", place, place.number(int(first[0])), count, what, LINE_ENDS)


def doubt_quotes(texts: Texts, doubts: Doubts) -> None:
    """Add the fields of a column that would be quoted, had they no blanks before the quote."""
    first = np.zeros(1, np.int64)
    count = rows_with_quote(texts.data, texts.starts, texts.ends, first)
    if count:
        row = int(first[0])
        what = (
            f"{texts.name} is {texts.shown(row)}, whose quotes are read as part of it, because "
            "blanks precede them"
        )
        todo = "write no blanks between a delimiter and a quote"
        doubts.add("quotes", texts.place, texts.place.number(row), count, what, todo)


def doubt_lists(lists: Texts, separator: str, doubts: Doubts) -> None:
    """Add the lists of a column of which an item holds something else that may part items.

    `lists` are what `text_lists.split` returns.
    """
    name, place, data, starts, ends, offsets = lists
    assert offsets is not None
    others = [one for one in PARTED_BY if one != separator]
    first = np.zeros(1, np.int64)
    count = cells_with(data, offsets, starts, ends, np.array([*map(ord, others)], np.uint8), first)
    if count:
        row = int(first[0])
        start, end = starts[offsets[row]], ends[offsets[row + 1] - 1]
        text = data[start:end].tobytes().decode(errors="replace")
        also = next(one for one in others if one in text)
        what = (
            f"{shown(data, start, end)} in {name!r} holds {also!r}, which may part items or be "
            f"within one, while {PARTED_BY[separator]} are taken to part items"
        )
        todo = (
            "say what parts items, by a format such as csv-commas or csv-blanks, with "
            "--labels-as or --predictions-as on the command line, Labels(format=...) or "
            'Predictions(format=...) in Python; or write lists in brackets, such as ["a", "b"]'
        )
        doubts.add("separator", place, place.number(row), count, what, todo)
