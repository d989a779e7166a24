"""Finding texts that may not be meant as they stand."""

from rankmill.kernels.jit import kernel

BLANK, LOWER_N, UPPER_N, LESS, BACKSLASH = 32, 110, 78, 60, 92
# The longest word for a missing value.
LONGEST = 4


@kernel
def first_odd(starts, ends, data):
    """Return the first text that is empty, begins or ends in a blank, or may be "nan" or "NULL".

    It is -1 if there is none, or a text is outside of the data, which `hash_strings` tells.
    """
    for i in range(len(starts)):
        start, end = starts[i], ends[i]
        if not 0 <= start <= end <= len(data):
            return -1
        if start == end:
            return i
        first = data[start]
        if first <= BLANK or data[end - 1] <= BLANK:
            return i
        if end - start <= LONGEST and (
            first == LOWER_N or first == UPPER_N or first == LESS or first == BACKSLASH
        ):
            return i
    return -1
