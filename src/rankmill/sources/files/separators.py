"""Rows of separated text: what separates their fields, and where they are in a block."""

import re
from typing import NamedTuple

import numpy as np

from rankmill.errors import plural
from rankmill.kernels.text import (
    BLANK_BEFORE_QUOTE,
    NEWLINE,
    RETURN,
    TEXT_BEHIND_QUOTE,
    UNCLOSED,
    find_rows,
    has_runs,
    part_by_tabs,
)
from rankmill.sources.files.text_blocks import Cut, TextBlock, last_line_end

# Runs of blanks separate the fields of TREC's formats; `::` those of MovieLens' first files.
BLANKS, COLONS = " ", "::"
SEPARATORS = (",", "\t", ";", "|", COLONS, BLANKS)
# What stands between fields where one byte has to, and no text of a file holds.
UNIT = b"\x1f"
ALL = 1 << 62
NO_ROWS = np.empty(0, np.int64)
# What comes before the header of a file: empty lines, and what tells Excel the separator.
_BEGIN = re.compile(rb'(?:[ \t]*\r?\n)*(?:"?sep=(.)"?[ \t]*\r?\n(?:[ \t]*\r?\n)*)?')
WRONG = {
    UNCLOSED: "a quoted text that starts here is not closed; expected a quote at its end",
    TEXT_BEHIND_QUOTE: "a quoted text is followed by more text; expected the end of the field "
    'after its quote: write a quote within the text as ""',
    BLANK_BEFORE_QUOTE: "spaces precede a quote, which quotes nothing then: write no spaces "
    "between a separator and a quote",
}


class Rows(NamedTuple):
    """The rows of a block: the line of each, counted from 0, and the number of its fields."""

    lines: np.ndarray
    fields: np.ndarray
    wrong: str = ""  # what is wrong with the quotes of the row behind them
    line: int = 0  # that of the wrong row


def one_byte(data: np.ndarray, separator: str, most: int = ALL) -> tuple[np.ndarray, str]:
    """The data with one byte between fields, and that byte.

    Of rows between whose fields are blanks, `most` fields are kept.
    """
    if separator == BLANKS and most == ALL and not has_runs(data):
        return data, BLANKS
    if separator == BLANKS:
        out = np.empty(len(data), np.uint8)
        return out[: part_by_tabs(data, most, out)], "\t"
    if separator == COLONS:
        parted = data.tobytes().replace(COLONS.encode(), UNIT)
        return np.frombuffer(parted, np.uint8), UNIT.decode()
    return data, separator


def has_quotes(separator: str) -> bool:
    """Whether a field may be quoted."""
    return separator not in (BLANKS, COLONS)


def rows_of(data: np.ndarray, separator: str, most: int = ALL, quotes: bool = True) -> Rows:
    """The rows of some data, as far as their quotes are right."""
    data, delimiter = one_byte(data, separator, most)
    length = int(np.count_nonzero((data == NEWLINE) | (data == RETURN))) + 1
    lines, fields = np.empty((2, length), np.int64)
    found = np.zeros(3, np.int64)
    quotes = quotes and has_quotes(separator)
    wrong = find_rows(data, ord(delimiter), quotes, lines, fields, found)
    count = int(found[0])
    return Rows(lines[:count], fields[:count], WRONG.get(wrong, ""), int(found[2]))


def cut_rows(separator: str, quotes: bool = True) -> Cut:
    """The function that tells where the last whole row ends; quotes matter where there are some."""

    def cut(data: np.ndarray, held: bool) -> int:
        if not (held and quotes and has_quotes(separator)):
            return last_line_end(data)
        found = np.zeros(3, np.int64)
        wrong = find_rows(data, ord(separator), True, NO_ROWS, NO_ROWS, found)
        # What is behind a wrong row is not read.
        return int(found[1]) if wrong in (0, UNCLOSED) else len(data)

    return cut


def begin_of(head: TextBlock) -> tuple[int, str]:
    """How many bytes stand before the first row of a file, and the separator that they tell."""
    found = _BEGIN.match(head.data.tobytes())
    assert found is not None  # it matches nothing, too
    return found.end(), (found[1] or b"").decode(errors="replace")


def separator_of(data: np.ndarray, usual: str, width: int = 0) -> str:
    """What separates the fields of most of the first rows as it does those of the first one.

    The `usual` one is taken where others do so as well. `width` is how many fields there are, if
    that is told.
    """
    best, most = usual, 0.0
    for separator in dict.fromkeys((usual, *SEPARATORS)):
        fields = rows_of(data, separator).fields
        if len(fields) == 0 or fields[0] < 2 or (width and fields[0] != width):
            continue
        agree = float(np.mean(fields == fields[0]))
        if agree > most and (separator != BLANKS or agree == 1):
            best, most = separator, agree
    return best


def check_widths(block: TextBlock, rows: Rows, width: int, expected: str) -> None:
    """Raise InputError for the first row of a block that is not as wide, or has wrong quotes."""
    bad = np.flatnonzero(rows.fields != width)
    if len(bad):
        line, found = int(rows.lines[bad[0]]), int(rows.fields[bad[0]])
        last = line == block.lines  # which has no end
        end = "; it is the last line and has no end, so the file may be cut off" if last else ""
        raise block.error(
            line, f"{plural(found, 'column')}; expected {expected}, as in the first line{end}"
        )
    if rows.wrong:
        raise block.error(rows.line, rows.wrong)


def is_number(text: str | bytes) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
