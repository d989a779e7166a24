"""Reading text: where rows begin and end in a block of bytes, and how many fields they have."""

import numpy as np

from rankmill.kernels.identity import ONE, last_marks
from rankmill.kernels.intrinsics import bits_within, count_ones, first_bit
from rankmill.kernels.jit import helper, kernel

NEWLINE, RETURN, SPACE, TAB, QUOTE, HASH = 10, 13, 32, 9, 34, 35
VERTICAL_TAB, FORM_FEED = 11, 12
NO_MARKS = np.uint64(0)
# What `survey` looks for.
ZEROS, NON_ASCII, QUOTES, KINDS = 0, 1, 2, 3
# What `find_rows` finds wrong.
UNCLOSED, TEXT_BEHIND_QUOTE, BLANK_BEFORE_QUOTE = -1, -2, -3


@kernel
def survey(data, out_held):
    """Write whether there are zeros, bytes beyond ASCII, and quotes; return how many lines end."""
    lines = 0
    zeros = others = quotes = NO_MARKS
    size = len(data)
    for base in range(0, size - 63, 64):
        lines += np.int64(count_ones(bits_within(data, base, NEWLINE, NEWLINE)))
        zeros |= bits_within(data, base, 0, 0)
        others |= bits_within(data, base, 128, 255)
        quotes |= bits_within(data, base, QUOTE, QUOTE)
    out_held[ZEROS], out_held[NON_ASCII], out_held[QUOTES] = zeros != 0, others != 0, quotes != 0
    for i in range(size - size % 64, size):
        lines += data[i] == NEWLINE
        out_held[ZEROS] |= data[i] == 0
        out_held[NON_ASCII] |= data[i] >= 128
        out_held[QUOTES] |= data[i] == QUOTE
    return lines


@helper
def all_blank(data, start, end):
    """Return whether some text holds nothing but blanks."""
    while start < end and (data[start] == SPACE or data[start] == TAB):
        start += 1
    return start == end


@kernel
def find_rows(data, delimiter, quotes, out_lines, out_fields, out_found):
    """Write the line of each row, counted from 0, and the number of its fields.

    Rows are those of pyarrow.csv: a carriage return ends one too, and empty lines are none. Without
    `quotes`, a quote is a byte as any other. Rows beyond the length of the output are not written.

    Parameters
    ----------
    data : uint8[n]
        Some rows, of which the last may lack its line end.
    out_found : int64[3]
        The number of right rows, where the last of them that has a line end ends, and the line of
        the row behind them.

    Returns
    -------
    int
        0, or what is wrong with the quotes of a row.
    """
    size = len(data)
    full = size - size % 64
    row = line = first = start = 0
    field = 1
    closed = -1  # where the quotes of the field end
    quoted = False
    for base in range(0, size + 1, 64):
        if base < full:
            line_ends = bits_within(data, base, NEWLINE, NEWLINE)
            ends = line_ends | bits_within(data, base, RETURN, RETURN)
            marks = bits_within(data, base, QUOTE, QUOTE)
            events = ends | bits_within(data, base, delimiter, delimiter)
        else:  # the end of the data ends a row as well
            line_ends = last_marks(data, base, NEWLINE, NEWLINE)
            ends = line_ends | last_marks(data, base, RETURN, RETURN)
            ends |= ONE << np.uint64(size - base)
            marks = last_marks(data, base, QUOTE, QUOTE)
            events = ends | last_marks(data, base, delimiter, delimiter)
        if quotes:
            events |= marks
        while events != 0:
            event = events & (~events + ONE)  # the lowest bit
            events ^= event
            position = base + first_bit(event)
            if marks & event != 0:
                if quoted:
                    closed = position + 1
                    quoted = False
                elif position == start or position == closed:
                    quoted = True
                elif closed >= 0:
                    return TEXT_BEHIND_QUOTE
                elif all_blank(data, start, position):
                    return BLANK_BEFORE_QUOTE
                continue
            if quoted:
                if position == size:
                    return UNCLOSED
                line += line_ends & event != 0
                continue
            if closed >= 0 and not all_blank(data, closed, position):
                return TEXT_BEHIND_QUOTE
            field += 1
            if ends & event != 0:
                line += line_ends & event != 0
                if field > 2 or position > start:
                    if row < len(out_lines):
                        out_lines[row] = first
                        out_fields[row] = field - 1
                    row += 1
                    out_found[0] = row
                if line_ends & event != 0:
                    out_found[1] = position + 1
                first = out_found[2] = line
                field = 1
            start = position + 1
            closed = -1
    return 0


@kernel
def has_runs(data):
    """Return whether anything but single blanks stands between the fields of lines."""
    found = len(data) > 0 and (data[0] == SPACE or data[-1] == SPACE)
    for i in range(len(data) - 1):
        one, other = data[i], data[i + 1]
        found |= (one == SPACE) & ((other == SPACE) | (other == NEWLINE) | (other == RETURN))
        found |= (other == SPACE) & (one == NEWLINE)
        found |= (one == TAB) | (one == VERTICAL_TAB) | (one == FORM_FEED)
    return found


@kernel
def part_by_tabs(data, most, out_data):
    """Copy lines with a tab in the place of each run of blanks, and none around; return the size.

    Of each line, the first `most` fields are copied.
    """
    written = 0
    field = 0
    inside = False
    for i in range(len(data)):
        byte = data[i]
        if byte == SPACE or TAB <= byte <= RETURN:
            inside = False
            if byte == NEWLINE or byte == RETURN:
                field = 0
                out_data[written] = byte
                written += 1
            continue
        if not inside:
            inside = True
            if 0 < field < most:
                out_data[written] = TAB
                written += 1
            field += 1
        if field <= most:
            out_data[written] = byte
            written += 1
    return written
