"""Finding texts that may not be meant as they stand."""

from rankmill.kernels.jit import helper, kernel

BLANK, LOWER_N, UPPER_N, LESS, BACKSLASH = 32, 110, 78, 60, 92
# The longest word for a missing value.
LONGEST = 4
# The least byte that is not ASCII, and those of U+00A0, U+2000 to U+200B, U+202F, U+3000, U+FEFF.
NOT_ASCII, NO_BREAK, SPACES = 0x80, (0xC2, 0xA0), (0xE2, 0x80)
LAST_SPACE, NARROW, IDEOGRAPHIC, MARK = 0x8B, 0xAF, (0xE3, 0x80, 0x80), (0xEF, 0xBB, 0xBF)


@helper
def is_blank(data, start, end, at, size):
    """Whether two or three bytes of a text are a blank beyond ASCII."""
    if at < start or at + size > end:
        return False
    one, two = data[at], data[at + 1]
    if size == 2:
        return one == NO_BREAK[0] and two == NO_BREAK[1]
    three = data[at + 2]
    if one == SPACES[0] and two == SPACES[1]:
        return three <= LAST_SPACE or three == NARROW
    if one == IDEOGRAPHIC[0]:
        return two == IDEOGRAPHIC[1] and three == IDEOGRAPHIC[2]
    return one == MARK[0] and two == MARK[1] and three == MARK[2]


@kernel
def first_odd(starts, ends, data):
    """Return the first text that is empty, begins or ends in a blank, or may be "nan" or "NULL".

    Blanks are also those of Unicode, such as a no-break space. It is -1 if there is none, or a
    text is outside of the data, which `hash_strings` tells.
    """
    for i in range(len(starts)):
        start, end = starts[i], ends[i]
        if not 0 <= start <= end <= len(data):
            return -1
        if start == end:
            return i
        first, last = data[start], data[end - 1]
        if first <= BLANK or last <= BLANK:
            return i
        if first >= NOT_ASCII or last >= NOT_ASCII:
            for size in (2, 3):
                if is_blank(data, start, end, start, size) or is_blank(
                    data, start, end, end - size, size
                ):
                    return i
        if end - start <= LONGEST and (
            first == LOWER_N or first == UPPER_N or first == LESS or first == BACKSLASH
        ):
            return i
    return -1
