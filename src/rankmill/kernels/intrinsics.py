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


def first_marked(word):
    """Return the first byte in memory, from 0, that has a bit set in a uint64, which is not 0."""
    return ((int(word) & -int(word)).bit_length() - 1) >> 3


def equal_among(keys, start, key):
    """Return a bit for each of the `LANES` uint64 from keys[start] on that is equal to `key`.

    All of them are compared at once, without a branch. There must be so many.
    """
    return np.uint64(sum(1 << i for i in range(LANES) if keys[start + i] == key))


def prefetch(array, index):
    """Load array[index] into the cache ahead of its use; any index is safe."""
