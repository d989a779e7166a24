"""Finding integer keys: among ascending ones, or by a bit for each possible number, and ranks.

``words`` is uint64[2 * m]. Word 2 i holds the bits of the 64 numbers from ``lowest + 64 i`` on, and
word 2 i + 1 holds how many bits are set before these. Both words are in the same cache line. The
rank of a number is the count of smaller numbers that are present. The rank is the row if the keys
ascend; otherwise ``rows[rank]`` is the row. Differences of keys wrap around, which is right for
signed and for unsigned keys.
"""

import numpy as np

from rankmill.kernels.identity import ONE, TOP_BIT
from rankmill.kernels.intrinsics import count_ones
from rankmill.kernels.jit import helper, kernel

SHIFT = np.uint64(6)
WITHIN = np.uint64(63)
# A search over more steps than this reads memory that is not in the cache.
FAR = 1 << 12


@kernel
def first_descent(keys, flip):
    """Return the first row whose key is not above the key of the row before, or -1.

    Each key is compared as unsigned after XOR with `flip`: 2**63 puts signed keys in order.
    """
    for row in range(1, len(keys)):
        if keys[row] ^ flip <= keys[row - 1] ^ flip:
            return row
    return -1


@kernel
def find_in_order(keys, flip, wanted, out_rows):
    """Write the row of each wanted key among ascending keys, or -1.

    Each search starts at the last match and goes outwards, so keys wanted in ascending order cost
    almost nothing. Returns how many keys were far from the match before them. The search stops
    when these are more than an eighth of all wanted keys; the remaining rows are not written.
    """
    count = len(keys)
    far = 0
    low = -1  # the last row known to be at or before the wanted key
    for i in range(len(wanted)):
        key = wanted[i]
        if low + 1 < count and keys[low + 1] == key:
            low += 1
            out_rows[i] = low
            continue
        place = key ^ flip
        step = 1
        if low >= 0 and keys[low] ^ flip > place:
            high = low
            while high - step >= 0 and keys[high - step] ^ flip > place:
                high -= step
                step *= 2
            low = max(-1, high - step)
        else:
            while low + step < count and keys[low + step] ^ flip <= place:
                low += step
                step *= 2
            high = min(count, low + step)
        far += step > FAR
        if 8 * far > len(wanted):
            return far
        while high - low > 1:
            middle = (low + high) // 2
            if keys[middle] ^ flip <= place:
                low = middle
            else:
                high = middle
        out_rows[i] = low if low >= 0 and keys[low] == key else -1
    return far


@helper
def rank_of(words, place):
    """Return how many numbers below `place` are present, or -1 if `place` itself is not."""
    word = place >> SHIFT
    bit = ONE << (place & WITHIN)
    bits = words[2 * word]
    if bits & bit == 0:
        return -1
    return np.int64(words[2 * word + 1] + count_ones(bits & (bit - ONE)))


@kernel
def set_bits(keys, lowest, out_words):
    """Set the bit of each key. Returns the first row that repeats an earlier key, or -1."""
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
    """Write the row of each key at the rank of the key among all keys."""
    for row in range(len(keys)):
        out_rows[rank_of(words, keys[row] - lowest)] = row


@kernel
def find_direct(words, lowest, rows, mixed, wanted, out_rows):
    """Write the row of each wanted key, or -1.

    `mixed` says that one side is signed and the other is unsigned. Then a wanted key whose highest
    bit is set is equal to no key.
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
