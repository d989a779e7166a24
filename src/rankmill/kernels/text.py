"""Reading text: rows, fields, and lists in cells, all as places in a block of bytes."""

import numpy as np

from rankmill.kernels.identity import word_at
from rankmill.kernels.intrinsics import first_marked
from rankmill.kernels.jit import helper, kernel

NEWLINE, RETURN, SPACE, TAB, QUOTE, COMMA = 10, 13, 32, 9, 34, 44
APOSTROPHE, OPEN, CLOSE, BACKSLASH, POINT, HASH = 39, 91, 93, 92, 46, 35
# The byte 1, the byte of a line end, and the top bit, each eight times.
ONES = np.uint64(0x0101010101010101)
NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
TOPS = np.uint64(0x8080808080808080)
BEHIND_BLANKS = np.uint64(0x2121212121212121)
# The states of a reader of delimited text.
AT_START, PLAIN, QUOTED, AFTER_QUOTE = 0, 1, 2, 3
# What `scan_delimited` and `scan_blanks` return instead of a number of rows.
BAD_COUNT, BAD_QUOTE, UNCLOSED = -1, -2, -3


@helper
def is_blank(byte):
    """Return whether a byte is a blank within a line."""
    return byte == SPACE or byte == TAB or byte == RETURN or byte == 11 or byte == 12


@helper
def next_end(data, position, delimiter):
    """Return the next place from `position` on with a delimiter or a line end, or the size.

    Eight bytes are looked at at once: subtracting 1 from each byte of `x` borrows from the top bit
    of a byte that is 0. A borrow may mark a byte too much behind such a byte, never before it.
    """
    size = len(data)
    delimiters = np.uint64(delimiter) * ONES
    while position + 8 <= size:
        word = word_at(data, position)
        x = word ^ delimiters
        y = word ^ NEWLINES
        marks = (((x - ONES) & ~x) | ((y - ONES) & ~y)) & TOPS
        if marks != 0:
            return position + first_marked(marks)
        position += 8
    while position < size and data[position] != delimiter and data[position] != NEWLINE:
        position += 1
    return position


@helper
def next_blank(data, position, end):
    """Return the next place from `position` on with a blank, or `end`; as `next_end` does."""
    while position < end:
        if position + 8 <= end:
            word = word_at(data, position)
            if (word - BEHIND_BLANKS) & ~word & TOPS == 0:  # no byte is as small as a blank
                position += 8
                continue
        stop = min(position + 8, end)
        while position < stop:
            if is_blank(data[position]):
                return position
            position += 1
    return end


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
    line = 0
    position = 0
    while position < size:
        first_line = line
        field = 0
        empty = True  # whether the row is an empty line so far
        while True:
            start = position
            if position < size and data[position] == QUOTE:
                empty = False
                start += 1
                position += 1
                doubled = False
                while True:
                    while position < size and data[position] != QUOTE:
                        line += data[position] == NEWLINE
                        position += 1
                    if position >= size:
                        out_bad[0] = first_line
                        return UNCLOSED
                    if position + 1 < size and data[position + 1] == QUOTE:
                        doubled = True
                        position += 2
                    else:
                        break
                end = position
                position += 1
                while position < size and data[position] == RETURN:
                    position += 1
                if position < size and data[position] != delimiter and data[position] != NEWLINE:
                    out_bad[0] = line
                    return BAD_QUOTE
                if doubled and field < fields and wanted[field] >= 0:
                    out_marks[0, wanted[field]] = True
            else:
                indented = position < size and (data[position] == SPACE or data[position] == TAB)
                if indented and field < fields and wanted[field] >= 0:
                    out_marks[1, wanted[field]] = True
                position = next_end(data, position, delimiter)
                end = position
                if position >= size or data[position] == NEWLINE:
                    while end > start and data[end - 1] == RETURN:
                        end -= 1
                empty = empty and end == start
            if field < fields and wanted[field] >= 0:
                out_starts[wanted[field], row] = start
                out_ends[wanted[field], row] = end
            field += 1
            if position >= size or data[position] == NEWLINE:
                break
            empty = False
            position += 1
        position += 1
        line += 1
        if empty:
            continue
        if field != fields:
            out_bad[0] = first_line
            out_bad[1] = field
            return BAD_COUNT
        out_lines[row] = first_line
        row += 1
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
    position = 0
    while position < size:
        field = 0
        while True:
            while position < size and is_blank(data[position]):
                position += 1
            if position >= size or data[position] == NEWLINE:
                break
            if field == 0 and data[position] == HASH:
                out_bad[2] += 1
                while position < size and data[position] != NEWLINE:
                    position += 1
                break
            start = position
            while position < size and data[position] != NEWLINE and not is_blank(data[position]):
                position += 1
            if field < fields and wanted[field] >= 0:
                out_starts[wanted[field], row] = start
                out_ends[wanted[field], row] = position
            field += 1
        position += 1
        line += 1
        if field == 0:
            continue
        if field < fields or (field > fields and not more):
            out_bad[0] = line - 1
            out_bad[1] = field
            return BAD_COUNT
        out_lines[row] = line - 1
        row += 1
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


@kernel
def split_cells(data, starts, ends, separator, out_offsets, out_starts, out_ends):
    """Write where the items of each cell are, if a separator or blanks part them.

    Blanks around an item do not belong to it. With a blank as the separator, any run of blanks
    parts items. With another one, an empty item between two separators is kept.
    """
    count = 0
    out_offsets[0] = 0
    for row in range(len(starts)):
        position = starts[row]
        end = ends[row]
        while position < end and is_blank(data[position]):
            position += 1
        while end > position and is_blank(data[end - 1]):
            end -= 1
        while position < end:
            start = position
            if separator == SPACE:
                position = next_blank(data, position, end)
                stop = position
                while position < end and is_blank(data[position]):
                    position += 1
            else:
                while position < end and data[position] != separator:
                    position += 1
                stop = position
                more = position < end
                position += 1
                while position < end and is_blank(data[position]):
                    position += 1
                while stop > start and is_blank(data[stop - 1]):
                    stop -= 1
                if more and position >= end:  # an empty item after the last separator
                    out_starts[count] = start
                    out_ends[count] = stop
                    count += 1
                    start = stop = end
            out_starts[count] = start
            out_ends[count] = stop
            count += 1
        out_offsets[row + 1] = count
    return count


@helper
def is_nothing(data, start, end):
    """Return whether a text without quotes is null, None, nan or NaN."""
    size = end - start
    if size == 3:
        return (data[start] | 32) == 110 and data[start + 1] == 97 and (data[end - 1] | 32) == 110
    if size != 4:
        return False
    null = data[start] == 110 and data[start + 1] == 117 and data[end - 2] == data[end - 1] == 108
    none = data[start] == 78 and data[start + 1] == 111 and data[end - 2] == 110
    return null or (none and data[end - 1] == 101)


@helper
def split_list(data, position, end, count, out_starts, out_ends):
    """Write where the items of one list are; return the new count, or -1 if it is no such list."""
    while position < end and is_blank(data[position]):
        position += 1
    while end > position and is_blank(data[end - 1]):
        end -= 1
    if position == end:
        return count
    if end - position < 2 or data[position] != OPEN or data[end - 1] != CLOSE:
        return -1
    position += 1
    end -= 1
    commas = 0
    items = 0
    while True:
        while position < end and (is_blank(data[position]) or data[position] == NEWLINE):
            position += 1
        if position < end and data[position] == COMMA:
            commas += 1
            if commas != items:
                return -1
            position += 1
            continue
        if position >= end:
            break
        quote = data[position]
        if quote == QUOTE or quote == APOSTROPHE:
            position += 1
            start = position
            while position < end and data[position] != quote:
                if data[position] == BACKSLASH:
                    return -1
                position += 1
            if position >= end:
                return -1
            out_starts[count] = start
            out_ends[count] = position
            position += 1
        else:
            start = position
            while (
                position < end
                and data[position] != COMMA
                and data[position] != NEWLINE
                and not is_blank(data[position])
            ):
                byte = data[position]
                if byte == OPEN or byte == CLOSE or byte == QUOTE or byte == APOSTROPHE:
                    return -1
                position += 1
            size = position - start
            if size == 3 and data[start] == data[start + 1] == data[start + 2] == POINT:
                return -1  # NumPy leaves out items of a long array
            out_starts[count] = start
            out_ends[count] = start if is_nothing(data, start, position) else position
        count += 1
        items += 1
    return -1 if commas and commas != items - 1 else count


@kernel
def split_brackets(data, starts, ends, out_offsets, out_starts, out_ends, out_other):
    """Write where the items of each cell are, if a cell is a list such as [1, 2] or ['a', "b"].

    Commas or blanks part items; quotes around an item do not belong to it. An item that is missing,
    such as null, is written as an empty text. Cells that are no such list, or hold a backslash in
    quotes, are marked in `out_other` and get no items. Returns the number of items.
    """
    count = 0
    out_offsets[0] = 0
    for row in range(len(starts)):
        found = split_list(data, starts[row], ends[row], count, out_starts, out_ends)
        out_other[row] = found < 0
        if found >= 0:
            count = found
        out_offsets[row + 1] = count
    return count


@kernel
def first_with_blank(data, starts, ends):
    """Return the first string that holds what may part items; -1 if there is none."""
    for i in range(len(starts)):
        for position in range(starts[i], ends[i]):
            byte = data[position]
            if byte == SPACE or byte == COMMA or byte == 124 or byte == TAB or byte == 59:
                return i
    return -1
