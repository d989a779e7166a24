"""Reading text: rows, fields, and lists in cells, all as places in a block of bytes."""

import numpy as np

from rankmill.kernels.intrinsics import bits_within, count_ones, first_bit
from rankmill.kernels.jit import helper, kernel

NEWLINE, RETURN, SPACE, TAB, QUOTE, COMMA = 10, 13, 32, 9, 34, 44
APOSTROPHE, OPEN, CLOSE, BACKSLASH, POINT, HASH = 39, 91, 93, 92, 46, 35
NO_MARKS, ONE, LAST_BIT = np.uint64(0), np.uint64(1), np.uint64(63)
# The states of a reader of delimited text.
AT_START, PLAIN, QUOTED, AFTER_QUOTE = 0, 1, 2, 3
# What `survey` looks for.
ZEROS, NON_ASCII, QUOTES, KINDS = 0, 1, 2, 3
# What `scan_delimited` and `scan_blanks` return instead of a number of rows.
BAD_COUNT, BAD_QUOTE, UNCLOSED = -1, -2, -3


@helper
def is_blank(byte):
    """Return whether a byte is a blank within a line."""
    return byte == SPACE or byte == TAB or byte == RETURN or byte == 11 or byte == 12


@helper
def last_marks(data, start, low, high):
    """Return which of the less than 64 bytes from `start` on are within bounds; see `bits_within`.

    Kernels call it before their loops: there, a call would count references for each word.
    """
    marks = NO_MARKS
    for i in range(len(data) - start):
        if low <= data[start + i] <= high:
            marks |= ONE << np.uint64(i)
    return marks


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
def count_between(data, low, high):
    """Count the bytes from `low` to `high`."""
    full = len(data) - len(data) % 64
    count = count_ones(last_marks(data, full, low, high))
    for base in range(0, full, 64):
        count += count_ones(bits_within(data, base, low, high))
    return np.int64(count)


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
        inside = False
        before = ONE  # whether the byte before is blank
        for base in range(position, end if separator == SPACE else position, 64):
            # A line end in quotes is no blank.
            if base + 64 <= len(data):
                spaces = bits_within(data, base, SPACE, SPACE)
                spaces |= bits_within(data, base, TAB, NEWLINE - 1)
                blanks = spaces | bits_within(data, base, NEWLINE + 1, RETURN)
            else:
                spaces = last_marks(data, base, SPACE, SPACE)
                spaces |= last_marks(data, base, TAB, NEWLINE - 1)
                blanks = spaces | last_marks(data, base, NEWLINE + 1, RETURN)
            if end - base < 64:
                blanks |= ~((ONE << np.uint64(end - base)) - ONE)
            changes = blanks ^ (blanks << ONE | before)
            before = blanks >> LAST_BIT
            while changes != 0:
                place = base + first_bit(changes)
                changes &= changes - ONE
                if inside:
                    out_ends[count] = place
                    count += 1
                else:
                    out_starts[count] = place
                inside = not inside
        if inside:
            out_ends[count] = end
            count += 1
        if separator == SPACE:
            out_offsets[row + 1] = count
            continue
        while position < end and is_blank(data[position]):
            position += 1
        while end > position and is_blank(data[end - 1]):
            end -= 1
        while position < end:
            start = position
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
