"""CPU instructions that numba offers no function for, in plain Python.

Compiled kernels use the instructions themselves, from `rankmill.kernels.instructions`.
"""

import numpy as np

ALL_ONES = (1 << 64) - 1
LANES = 16


def fold(a, b):
    """Return the upper half of the 128-bit product of two uint64 XOR the lower half."""
    product = int(a) * int(b)
    return np.uint64((product ^ product >> 64) & ALL_ONES)


def count_ones(word):
    """Return the number of bits that are set in a uint64."""
    return np.uint64(int(word).bit_count())


def first_bit(word):
    """Return the lowest bit, from 0, that is set in a uint64, which is not 0."""
    return (int(word) & -int(word)).bit_length() - 1


def bits_within(data, position, low, high):
    """Return which of 64 bytes from `position` on are at least `low` and at most `high`.

    Bit i of the uint64 is set for byte `position` + i. All 64 bytes must be in the data.
    """
    some = data[position : position + 64]
    return np.packbits((some >= low) & (some <= high), bitorder="little").view(np.uint64)[0]


def equal_among(keys, start, key):
    """Return a bit for each of the `LANES` uint64 from keys[start] on that is equal to `key`.

    All of them are compared at once, without a branch. There must be so many.
    """
    return np.uint64(sum(1 << i for i in range(LANES) if keys[start + i] == key))


def prefetch(array, index):
    """Load array[index] into the cache ahead of its use; any index is safe."""
