"""Finding rows of text that do not fit how their file is read."""

import numpy as np

from rankmill.kernels.jit import helper, kernel

NEWLINE, RETURN, SPACE, TAB, QUOTE = 10, 13, 32, 9, 34


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
