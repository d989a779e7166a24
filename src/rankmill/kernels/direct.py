"""Finding integers that lie close: a bit for each number there could be, and ranks beside the bits.

``words`` is uint64[2 * m]: word 2 i holds the bits of the 64 numbers from ``lowest + 64 i`` on, and
word 2 i + 1 how many bits are set before them, so that both are in one line of the cache. The rank
of a number among those that are there is its row if they ascend; else ``rows`` has its row.
Differences of keys wrap around, which is right for signed and for unsigned ones.
"""

import numpy as np

from rankmill.kernels.intrinsics import count_ones
from rankmill.kernels.jit import helper, kernel

SHIFT = np.uint64(6)
WITHIN = np.uint64(63)
ONE = np.uint64(1)
TOP_BIT = np.uint64(63)


@helper
def rank_of(words, place):
    """How many numbers are there below the one at `place`, if that is there; or -1."""
    word = place >> SHIFT
    bit = ONE << (place & WITHIN)
    bits = words[2 * word]
    if bits & bit == 0:
        return -1
    return np.int64(words[2 * word + 1] + count_ones(bits & (bit - ONE)))


@kernel
def set_bits(keys, lowest, out_words):
    """Set the bit of each key; returns the first row whose key was there before, or -1."""
    for row in range(len(keys)):
        place = keys[row] - lowest
        word = 2 * (place >> SHIFT)
        bit = ONE << (place & WITHIN)
        if out_words[word] & bit != 0:
            return row
        out_words[word] |= bit
    total = np.uint64(0)
    for word in range(0, len(out_words), 2):
        out_words[word + 1] = total
        total += count_ones(out_words[word])
    return -1


@kernel
def rows_by_rank(keys, lowest, words, out_rows):
    """The row of each key, by its rank among all keys."""
    for row in range(len(keys)):
        out_rows[rank_of(words, keys[row] - lowest)] = row


@kernel
def find_direct(words, lowest, rows, mixed, wanted, out_rows):
    """The row of each wanted key, or -1.

    Where the kinds of keys are `mixed`, those whose highest bit is set have no equal.
    """
    end = np.uint64(32 * len(words))
    ascending = len(rows) == 0
    for i in range(len(wanted)):
        place = wanted[i] - lowest
        row = np.int64(-1)
        if place < end and not (mixed and wanted[i] >> TOP_BIT != 0):
            row = rank_of(words, place)
            if row >= 0 and not ascending:
                row = np.int64(rows[row])
        out_rows[i] = row
