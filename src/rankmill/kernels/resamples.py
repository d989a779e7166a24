"""Sums of values with random signs, of values drawn with replacement, and of permuted rows.

Random words are a function of the seed, the replicate and a counter (splitmix64, Steele et al.,
OOPSLA 2014), and one call adds up a whole replicate in the order of its arguments. So a replicate
has the same bits in any block and on any thread.
"""

import math

import numpy as np

from rankmill.kernels.intrinsics import count_ones
from rankmill.kernels.jit import heavy_kernel, helper

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
ONE, EIGHT, TWELVE, HALF = np.uint64(1), np.uint64(8), np.uint64(12), np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
BYTE = np.uint64(0xFF)
WORD = 64
TILE = 256  # rows that stay in the cache while all replicates of a block pass over them
CHUNK = 1024  # the largest chunk: a pick takes 10 bits, and a word has 6 picks
PICKS = 6
MASK = np.uint64(CHUNK - 1)
BITS = tuple(np.uint64(10 * pick) for pick in range(PICKS))
# log(k!) - Stirling's approximation of it, for k below 10.
STIRLING_TAILS = (
    *(0.08106146679532726, 0.04134069595540929, 0.02767792568499834, 0.02079067210376509),
    *(0.01664469118982119, 0.01387612882307075, 0.01189670994589177, 0.01041126526197209),
    *(0.009255462182712733, 0.008330563433362871),
)


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


@heavy_kernel
def bootstrap_sums(seed, first, many, counts, few, sizes, out_sums):
    """Write the sums of as many values as there are, drawn with replacement.

    many[i] counts counts[i] times. `few` are values that count once each, in chunks of the sizes
    `sizes`: powers of two up to 1024. A binomial number of the draws falls on many[i] or into a
    chunk, given those before; within a chunk, each draw takes some bits of a random word.
    """
    number = len(few)
    for i in range(len(counts)):
        number += counts[i]
    for r in range(len(out_sums)):
        out_sums[r] = resampled_sum(
            stream(seed, np.uint64(first + r)), number, many, counts, few, sizes
        )


@helper
def resampled_sum(key, number, many, counts, few, sizes):
    draws = number
    left = number
    counter = np.uint64(0)
    total = 0.0
    for i in range(len(many)):
        chosen, counter = share_of(draws, counts[i], left, key, counter)
        total += many[i] * chosen
        draws -= chosen
        left -= counts[i]
    start = 0
    for c in range(len(sizes)):
        chosen, counter = share_of(draws, sizes[c], left, key, counter)
        picked, counter = sum_of_picks(few[start : start + sizes[c]], chosen, key, counter)
        total += picked
        draws -= chosen
        left -= sizes[c]
        start += sizes[c]
    return total


@helper
def share_of(draws, size, left, key, counter):
    """Return how many of the draws fall on `size` of the `left` values, and the next counter."""
    if size == left or draws == 0:
        return draws, counter
    p = size / left
    if p <= 0.5:
        return binomial(draws, p, key, counter)
    others, counter = binomial(draws, (left - size) / left, key, counter)
    return draws - others, counter


@helper
def sum_of_picks(chunk, draws, key, counter):
    mask = np.uint64(len(chunk) - 1)
    bits = count_ones(mask)
    total = 0.0
    words = draws // PICKS
    if len(chunk) == CHUNK:
        total = sum_of_full_words(chunk, words, key, counter)
    else:
        for w in range(words):
            total += sum_of_word(chunk, PICKS, mask, bits, random_word(key, counter + np.uint64(w)))
    counter += np.uint64(words)
    if draws > words * PICKS:
        word = random_word(key, counter)
        total += sum_of_word(chunk, draws - words * PICKS, mask, bits, word)
        counter += ONE
    return total, counter


@helper
def sum_of_full_words(chunk, words, key, counter):
    """Do as `sum_of_word` for many words; the processor can do constant steps side by side."""
    total = 0.0
    for w in range(words):
        word = random_word(key, counter + np.uint64(w))
        first = chunk[word & MASK] + chunk[(word >> BITS[1]) & MASK]
        second = chunk[(word >> BITS[2]) & MASK] + chunk[(word >> BITS[3]) & MASK]
        third = chunk[(word >> BITS[4]) & MASK] + chunk[(word >> BITS[5]) & MASK]
        total += first + second + third
    return total


@helper
def sum_of_word(chunk, picks, mask, bits, word):
    total = 0.0
    for _ in range(picks):
        total += chunk[word & mask]
        word >>= bits
    return total


@helper
def uniform(key, counter):
    """Return a number between 0 and 1, without both."""
    return (np.float64(random_word(key, counter) >> TWELVE) + 0.5) * 2.0**-52


@helper
def binomial(n, p, key, counter):
    """Return a binomial number, p at most one half, and the next counter."""
    if n * p < 10.0:
        return binomial_by_inversion(n, p, key, counter)
    return binomial_by_rejection(n, p, key, counter)


@helper
def binomial_by_inversion(n, p, key, counter):
    odds = p / (1.0 - p)
    at_zero = math.exp(n * math.log1p(-p))
    while True:
        u = uniform(key, counter)
        counter += ONE
        chance = at_zero
        for k in range(n + 1):
            if u <= chance:
                return k, counter
            u -= chance
            chance *= (n - k) * odds / (k + 1)


@helper
def binomial_by_rejection(n, p, key, counter):
    """Algorithm BTRS of Hörmann (J. Stat. Comput. Simul. 1993)."""
    odds = p / (1.0 - p)
    deviation = np.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    accepted = 0.92 - 4.2 / b
    while True:
        u = uniform(key, counter) - 0.5
        v = uniform(key, counter + ONE)
        counter += ONE + ONE
        distance = 0.5 - abs(u)
        k = np.int64(np.floor((2.0 * a / distance + b) * u + n * p + 0.5))
        if distance >= 0.07 and v <= accepted:
            return k, counter
        if k < 0 or k > n:
            continue
        alpha = (2.83 + 5.1 / b) * deviation
        mode = np.int64(np.floor((n + 1) * p))
        bound = (mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
        bound += (n + 1) * math.log((n - mode + 1) / (n - k + 1))
        bound += (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1))
        bound += stirling_tail(mode) + stirling_tail(n - mode)
        bound -= stirling_tail(k) + stirling_tail(n - k)
        if math.log(v * alpha / (a / (distance * distance) + b)) <= bound:
            return k, counter


@helper
def stirling_tail(k):
    if k < len(STIRLING_TAILS):
        return STIRLING_TAILS[k]
    inverse = 1.0 / (k + 1)
    square = inverse * inverse
    return (1 / 12 - (1 / 360 - square / 1260) * square) * inverse


@heavy_kernel
def permuted_sums(seed, first, rows, out_sums):
    """Write out_sums[replicate, column]: the sums of the columns after each row is permuted."""
    columns = rows.shape[1]
    words = np.uint64(columns // 2)  # a word gives two of a row's columns - 1 choices
    values = np.empty(columns)
    keys = np.empty(len(out_sums), np.uint64)
    for r in range(len(out_sums)):
        keys[r] = stream(seed, np.uint64(first + r))
        out_sums[r] = 0.0
    for start in range(0, len(rows), TILE):
        for r in range(len(out_sums)):
            for i in range(start, min(len(rows), start + TILE)):
                for c in range(columns):
                    values[c] = rows[i, c]
                add_permuted(values, keys[r], np.uint64(i) * words, out_sums, r)


@helper
def add_permuted(values, key, counter, out_sums, r):
    """Add the values to row r in random order; a choice is off by less than 2**-32."""
    last = len(values) - 1
    while last > 0:
        word = random_word(key, counter)
        counter += ONE
        chosen = ((word & LOW_HALF) * np.uint64(last + 1)) >> HALF
        out_sums[r, last] += values[chosen]
        values[chosen] = values[last]
        last -= 1
        if last > 0:
            chosen = ((word >> HALF) * np.uint64(last + 1)) >> HALF
            out_sums[r, last] += values[chosen]
            values[chosen] = values[last]
            last -= 1
    out_sums[r, 0] += values[0]
