"""Reading cells of text: lists, as the places of their items in a block of bytes, and numbers."""

import numpy as np

from rankmill.kernels.identity import ONE, last_marks
from rankmill.kernels.intrinsics import bits_within, count_ones, first_bit
from rankmill.kernels.jit import helper, kernel

NEWLINE, RETURN, SPACE, TAB, QUOTE, COMMA = 10, 13, 32, 9, 34, 44
APOSTROPHE, OPEN, CLOSE, BACKSLASH, POINT = 39, 91, 93, 92, 46
MINUS, PLUS, ZERO, NINE, LETTER_E = 45, 43, 48, 57, 101
LAST_BIT = np.uint64(63)
MOST_SIGNED = np.uint64((1 << 63) - 1)
MOST_EXACT = np.uint64(1 << 53)
MOST_MANTISSA = np.uint64((1 << 63) // 10)


@helper
def is_blank(byte):
    """Return whether a byte is a blank within a line."""
    return byte == SPACE or byte == TAB or byte == RETURN or byte == 11 or byte == 12


@kernel
def count_between(data, low, high):
    """Count the bytes from `low` to `high`."""
    full = len(data) - len(data) % 64
    count = count_ones(last_marks(data, full, low, high))
    for base in range(0, full, 64):
        count += count_ones(bits_within(data, base, low, high))
    return np.int64(count)


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


@kernel
def parse_floats(data, starts, ends, powers, out_values, out_slow):
    """Write the numbers that decimal strings hold, such as 12, -0.5 or 1e-3.

    A number of at most 2**53 with an exponent of ten within 22 is exact in two steps (Clinger, How
    to Read Floating Point Numbers Accurately, 1990); `powers` are the powers of ten from 0 to 22.
    Other strings are marked in `out_slow`. Returns how many these are.
    """
    slow = 0
    for i in range(len(starts)):
        position = starts[i]
        end = ends[i]
        negative = position < end and data[position] == MINUS
        if negative:
            position += 1
        mantissa = np.uint64(0)
        exponent = 0
        digits = 0
        point = False
        while position < end:
            byte = data[position]
            if ZERO <= byte <= NINE:
                if mantissa > MOST_MANTISSA:
                    break
                mantissa = mantissa * np.uint64(10) + np.uint64(byte - np.uint8(ZERO))
                exponent -= point
                digits += 1
            elif byte == POINT and not point:
                point = True
            else:
                break
            position += 1
        if digits > 0 and position + 1 < end and (data[position] | 32) == LETTER_E:
            position += 1
            minus = data[position] == MINUS
            if minus or data[position] == PLUS:
                position += 1
            power = 0
            digits = 0
            while position < end and ZERO <= data[position] <= NINE and digits < 4:
                power = power * 10 + np.int64(data[position] - np.uint8(ZERO))
                digits += 1
                position += 1
            exponent += -power if minus else power
        exact = mantissa <= MOST_EXACT and -22 <= exponent <= 22
        out_slow[i] = digits == 0 or position < end or not exact
        if out_slow[i]:
            slow += 1
            continue
        value = np.float64(mantissa)
        value = value / powers[-exponent] if exponent < 0 else value * powers[exponent]
        out_values[i] = -value if negative else value
    return slow


@kernel
def parse_integers(data, starts, ends, most, out_values):
    """Write the integers that strings hold, such as 0, 12 or -7; empty strings give 0.

    Integers are at most `most`, a uint64, and at least -`most`, or 0 if `most` is beyond int64.
    What is beyond int64 is written as int64 of the same bits. Returns the first string that is no
    such integer, else -1.
    """
    for i in range(len(starts)):
        position = starts[i]
        end = ends[i]
        negative = position < end and data[position] == MINUS
        if negative:
            position += 1
        digits = end - position
        if digits == 0 and not negative:
            out_values[i] = 0
            continue
        if not 1 <= digits <= 20 or (data[position] == ZERO and (digits > 1 or negative)):
            return i
        value = np.uint64(0)
        while position < end:
            byte = data[position]
            if byte < ZERO or byte > NINE:
                return i
            digit = np.uint64(byte - np.uint8(ZERO))
            if value > (most - digit) // np.uint64(10):
                return i
            value = value * np.uint64(10) + digit
            position += 1
        if negative and most > MOST_SIGNED:
            return i
        out_values[i] = -np.int64(value) if negative else np.int64(value)
    return -1
