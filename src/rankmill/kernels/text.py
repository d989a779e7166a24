"""Reading text: rows and their fields, as places in a block of bytes, and rows that do not fit."""

import numpy as np

from rankmill.kernels.identity import ONE, last_marks
from rankmill.kernels.intrinsics import bits_within, count_ones, first_bit
from rankmill.kernels.jit import helper, kernel

NEWLINE, RETURN, SPACE, TAB, QUOTE, HASH = 10, 13, 32, 9, 34, 35
NO_MARKS, LAST_BIT = np.uint64(0), np.uint64(63)
# The states of a reader of delimited text.
AT_START, PLAIN, QUOTED, AFTER_QUOTE = 0, 1, 2, 3
# What `survey` looks for.
ZEROS, NON_ASCII, QUOTES, KINDS = 0, 1, 2, 3
# What `scan_delimited` and `scan_blanks` return instead of a number of rows.
BAD_COUNT, BAD_QUOTE, UNCLOSED = -1, -2, -3


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


@kernel
def last_row_end(data, delimiter):
    """Return where the last whole row of delimited text ends; 0 if there is none.

    A line end within quotes ends no row. The data start at the start of a row.
    """
    state = AT_START
    found = 0
    for i in range(len(data)):
        byte = data[i]
        if state == QUOTED:
            if byte == QUOTE:
                state = AFTER_QUOTE
        elif byte == QUOTE and state != PLAIN:
            state = QUOTED
        elif byte == NEWLINE:
            state = AT_START
            found = i + 1
        elif byte == delimiter:
            state = AT_START
        else:
            state = PLAIN
    return found


@kernel
def scan_delimited(data, delimiter, wanted, out_starts, out_ends, out_marks, out_lines, out_bad):
    """Write where the wanted fields of each row are; empty lines are no rows.

    Parameters
    ----------
    data : uint8[n]
        Whole rows; the last may lack its line end.
    wanted : int64[fields]
        The column of the output for each field of a row, or -1.
    out_starts, out_ends : int64[columns, rows]
        The place of each field, without its quotes.
    out_marks : bool[2, columns]
        Set where a quoted field holds a doubled quote, which stands for one quote; and where a
        field without quotes begins with a blank.
    out_lines : int64[rows]
        The line of each row, counted from 0.
    out_bad : int64[2]
        The line and the number of fields of a bad row.

    Returns
    -------
    int
        The number of rows, or BAD_COUNT, BAD_QUOTE or UNCLOSED.
    """
    size = len(data)
    fields = len(wanted)
    row = 0
    line = first_line = 0
    field = 0
    start = end = 0
    state = PLAIN
    doubled = False
    full = size - size % 64
    for base in range(0, size + 1, 64):
        if base < full:
            line_ends = bits_within(data, base, NEWLINE, NEWLINE)
            quotes = bits_within(data, base, QUOTE, QUOTE)
            events = line_ends | quotes | bits_within(data, base, delimiter, delimiter)
        else:  # the end of the data ends a row as well
            line_ends = last_marks(data, base, NEWLINE, NEWLINE) | ONE << np.uint64(size - base)
            quotes = last_marks(data, base, QUOTE, QUOTE)
            events = line_ends | quotes | last_marks(data, base, delimiter, delimiter)
        while events != 0:
            event = events & (~events + ONE)  # the lowest bit
            events ^= event
            position = base + first_bit(event)
            ends_row = line_ends & event != 0
            if quotes & event != 0:
                if state == QUOTED:
                    state = AFTER_QUOTE
                    end = position
                elif state == AFTER_QUOTE:
                    if position > end + 1:
                        out_bad[0] = line
                        return BAD_QUOTE
                    state = QUOTED
                    doubled = True
                elif position == start:
                    state = QUOTED
                    start += 1
                continue
            if state == QUOTED:
                if position == size:
                    out_bad[0] = first_line
                    return UNCLOSED
                line += ends_row
                continue
            empty = False  # whether the row is an empty line
            if state == AFTER_QUOTE:
                for i in range(end + 1, position):
                    if data[i] != RETURN:
                        out_bad[0] = line
                        return BAD_QUOTE
            else:
                end = position
                while ends_row and end > start and data[end - 1] == RETURN:
                    end -= 1
                empty = ends_row and field == 0 and end == start
            column = wanted[field] if field < fields and not empty else -1
            if column >= 0:
                out_starts[column, row] = start
                out_ends[column, row] = end
                indented = end > start and (data[start] == SPACE or data[start] == TAB)
                out_marks[0, column] |= doubled
                out_marks[1, column] |= indented and state == PLAIN
            field += 1
            state = PLAIN
            doubled = False
            start = position + 1
            if not ends_row:
                continue
            line += 1
            if not empty:
                if field != fields:
                    out_bad[0] = first_line
                    out_bad[1] = field
                    return BAD_COUNT
                out_lines[row] = first_line
                row += 1
            first_line = line
            field = 0
    return row


@kernel
def scan_blanks(data, wanted, more, out_starts, out_ends, out_lines, out_bad):
    """Write where the wanted fields of each line are, if fields are parted by runs of blanks.

    Lines that begin with # are comments, and no rows; `out_bad` has their number behind the others.
    With `more`, fields behind the last one are passed over. The other arguments and the result are
    those of `scan_delimited`.
    """
    size = len(data)
    fields = len(wanted)
    row = 0
    line = 0
    field = 0
    start = 0
    inside = comment = False
    before = ONE  # whether the byte before is blank
    full = size - size % 64
    for base in range(0, size + 1, 64):
        if base < full:
            line_ends = bits_within(data, base, NEWLINE, NEWLINE)
            blanks = bits_within(data, base, TAB, RETURN) | bits_within(data, base, SPACE, SPACE)
        else:  # the end of the data ends a row as well
            behind = ONE << np.uint64(size - base)
            line_ends = last_marks(data, base, NEWLINE, NEWLINE) | behind
            blanks = last_marks(data, base, TAB, RETURN) | last_marks(data, base, SPACE, SPACE)
            blanks |= ~(behind - ONE)
        changes = blanks ^ (blanks << ONE | before)
        before = blanks >> LAST_BIT
        events = changes | line_ends
        while events != 0:
            event = events & (~events + ONE)  # the lowest bit
            events ^= event
            position = base + first_bit(event)
            if changes & event != 0:
                if inside:
                    column = wanted[field] if field < fields and not comment else -1
                    if column >= 0:
                        out_starts[column, row] = start
                        out_ends[column, row] = position
                    field += 1
                elif field == 0 and data[position] == HASH:
                    comment = True
                    out_bad[2] += 1
                start = position
                inside = not inside
            if line_ends & event == 0:
                continue
            line += 1
            if field > 0 and not comment:
                if field < fields or (field > fields and not more):
                    out_bad[0] = line - 1
                    out_bad[1] = field
                    return BAD_COUNT
                out_lines[row] = line - 1
                row += 1
            field = 0
            comment = False
    return row


@kernel
def undouble(data, out_starts, out_ends, out_data):
    """Copy strings, and change their places to those of the copies.

    In a quoted string, each doubled quote becomes one. Returns the number of bytes written.
    """
    written = 0
    for i in range(len(out_starts)):
        start = written
        position = out_starts[i]
        quoted = position > 0 and data[position - 1] == QUOTE
        while position < out_ends[i]:
            out_data[written] = data[position]
            written += 1
            position += 2 if quoted and data[position] == QUOTE else 1
        out_starts[i] = start
        out_ends[i] = written
    return written


# ------------------------------------------------------------------ what may not fit


@kernel
def has_stray_return(data):
    """Return whether a carriage return stands before anything but a line end or another one."""
    found = False
    for i in range(len(data) - 1):
        found |= (data[i] == RETURN) & (data[i + 1] != NEWLINE) & (data[i + 1] != RETURN)
    return found


@kernel
def lines_with_return(data, delimiter, out_first):
    """Count the lines with a carriage return within; write the first of them, from 0.

    Those within quotes do not count; without a `delimiter`, which is 0 then, there are no quotes.
    """
    count = 0
    line = 0
    counted = -1
    quoted = False
    at_start = True  # of a field, or behind a quote that may end one
    for i in range(len(data)):
        byte = data[i]
        if quoted:
            quoted = byte != QUOTE
            at_start = not quoted
        elif byte == QUOTE and delimiter != 0 and at_start:
            quoted = True
        else:
            at_start = byte == delimiter or byte == NEWLINE
            stray = byte == RETURN and i + 1 < len(data)
            if stray and data[i + 1] != NEWLINE and data[i + 1] != RETURN and counted < line:
                if count == 0:
                    out_first[0] = line
                count += 1
                counted = line
        line += byte == NEWLINE
    return count


@kernel
def rows_with_quote(data, starts, ends, out_first):
    """Count the fields that begin with blanks and a quote; write the first of them."""
    count = 0
    for row in range(len(starts)):
        position = starts[row]
        if position < ends[row] and (data[position] == SPACE or data[position] == TAB):
            while position < ends[row] and (data[position] == SPACE or data[position] == TAB):
                position += 1
            quoted = starts[row] > 0 and data[starts[row] - 1] == QUOTE
            if position < ends[row] and data[position] == QUOTE and not quoted:
                if count == 0:
                    out_first[0] = row
                count += 1
    return count


@helper
def holds(data, start, end, first, second, third):
    """Return whether some text holds one of three bytes."""
    found = False
    for i in range(np.uint64(start), np.uint64(end)):  # unsigned: the compiler takes many at once
        found |= (data[i] == first) | (data[i] == second) | (data[i] == third)
    return found


@kernel
def cells_with(data, offsets, starts, ends, others, out_first):
    """Count the lists of which an item holds one of three bytes; write the first of them."""
    first, second, third = others[0], others[1], others[2]
    count = 0
    for row in range(len(offsets) - 1):
        low, high = offsets[row], offsets[row + 1]
        if low == high or not holds(data, starts[low], ends[high - 1], first, second, third):
            continue
        for item in range(low, high):
            if holds(data, starts[item], ends[item], first, second, third):
                if count == 0:
                    out_first[0] = row
                count += 1
                break
    return count
