"""Sums of values with random signs.

Random words are a function of the seed, the replicate and a counter (splitmix64, Steele et al.,
OOPSLA 2014), and one call adds up a whole replicate in the order of its arguments. So a replicate
has the same bits in any block and on any thread.
"""

import numpy as np

from rankmill.kernels.intrinsics import count_ones
from rankmill.kernels.jit import heavy_kernel, helper

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
ONE, EIGHT = np.uint64(1), np.uint64(8)
BYTE = np.uint64(0xFF)
WORD = 64


@heavy_kernel
def flip_sums(seed, first, few, many, counts, out_sums):
    """Write the sums of values with random signs, for the replicates first, first + 1, ...

    `few` are values that count once each; their number is a multiple of 64, with zeros at the end.
    many[i] counts counts[i] times: the number of its positive signs is a number of random bits.
    """
    tables = np.empty((8, 256))
    keys = np.empty(len(out_sums), np.uint64)
    tiles = len(few) // WORD
    for r in range(len(out_sums)):
        keys[r] = stream(seed, np.uint64(first + r))
        out_sums[r] = 0.0
    for tile in range(tiles):
        fill_tables(few, tile * WORD, tables)
        add_signed_tile(keys, np.uint64(tile), tables, out_sums)
    for r in range(len(out_sums)):
        out_sums[r] += signed_sum(keys[r], np.uint64(tiles), many, counts)


@helper
def stream(seed, replicate):
    return mix(seed + mix(replicate + GOLDEN))


@helper
def mix(state):
    state = (state ^ (state >> SHIFTS[0])) * FACTORS[0]
    state = (state ^ (state >> SHIFTS[1])) * FACTORS[1]
    return state ^ (state >> SHIFTS[2])


@helper
def random_word(key, counter):
    return mix(key + counter * GOLDEN)


@helper
def fill_tables(few, start, tables):
    """Write the signed sum of each 8 values for all 256 choices of their signs."""
    for group in range(8):
        base = start + 8 * group
        sums = tables[group]
        sums[0] = 0.0
        for i in range(8):
            sums[0] -= few[base + i]
        for i in range(8):
            size = 1 << i
            for before in range(size):
                sums[size + before] = sums[before] + 2.0 * few[base + i]


@helper
def add_signed_tile(keys, counter, tables, out_sums):
    for r in range(len(out_sums)):
        word = random_word(keys[r], counter)
        total = 0.0
        for group in range(8):
            total += tables[group, np.int64(word & BYTE)]
            word >>= EIGHT
        out_sums[r] += total


@helper
def signed_sum(key, counter, many, counts):
    total = 0.0
    for i in range(len(many)):
        left = counts[i]
        positive = 0
        while left >= WORD:
            positive += np.int64(count_ones(random_word(key, counter)))
            counter += ONE
            left -= WORD
        if left > 0:
            word = random_word(key, counter) >> np.uint64(WORD - left)
            positive += np.int64(count_ones(word))
            counter += ONE
        total += many[i] * (2 * positive - counts[i])
    return total
