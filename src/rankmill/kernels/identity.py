"""Comparing ids exactly: hashing strings, tables of ids, finding and grouping rows.

An id is a 64-bit key. The key of an integer is its value. The key of a string is a hash of its
bytes; the hash finds candidates, and a comparison of the bytes decides. The hashes depend on a
random seed of the process, so nobody can make a file whose ids all collide. No result depends on
the seed.
"""

import os
from typing import NamedTuple

import numpy as np

from rankmill.kernels.intrinsics import fold, prefetch
from rankmill.kernels.jit import helper, kernel

# Kernels get it as an argument: they keep a global's value from when they were compiled, and are
# cached. It is odd, because a product with an odd number loses no bit of a key.
SEED = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)
SIGNED, UNSIGNED, STRING = 0, 1, 2
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads consecutive ids apart
TOP_BIT = np.uint64(63)
BYTE = np.uint64(8)
LAST_BYTE = np.uint64(56)
BITS = np.uint64(64)
ONE = np.uint64(1)
# How many ids ahead of the current one memory is prefetched.
AHEAD = 12


class Ids(NamedTuple):
    """A column of ids, as kernels take it.

    ``keys`` is uint64[n]. ``kind`` says what a key is. For strings, id i is the bytes
    ``data[starts[i]:ends[i]]``, with int64[n] ``starts`` and ``ends``; a selection of ids shares
    ``data`` with its source. For integers all three are empty.
    """

    keys: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    data: np.ndarray
    kind: int

    def __reduce__(self):
        """Pickle the ids; the keys of strings are made again, as each process has its seed."""
        return ids_of, (None if self.kind == STRING else self.keys, *self[1:])


@helper
def word_at(data, position):
    """Return the eight bytes from `position` on as one number."""
    word = np.uint64(0)
    for byte in range(8):  # unsigned indices: the compiler merges these into one load
        word |= np.uint64(data[np.uint64(position + byte)]) << np.uint64(8 * byte)
    return word


@helper
def last_marks(data, start, low, high):
    """Return which of the less than 64 bytes from `start` on are within bounds; see `bits_within`.

    Kernels call it before their loops: there, a call would count references for each word.
    """
    marks = np.uint64(0)
    for i in range(len(data) - start):
        if low <= data[start + i] <= high:
            marks |= ONE << np.uint64(i)
    return marks


@helper
def same_bytes(data, start, end, other_data, other_start, other_end):
    """Return whether two strings are equal."""
    length = end - start
    if length != other_end - other_start:
        return False
    if length >= 8:
        position = 0
        while position < length - 8:
            if word_at(data, start + position) != word_at(other_data, other_start + position):
                return False
            position += 8
        return word_at(data, end - 8) == word_at(other_data, other_end - 8)  # may overlap
    if length > 0 and start + 8 <= len(data) and other_start + 8 <= len(other_data):
        other = word_at(other_data, other_start)
        return (word_at(data, start) ^ other) << np.uint64(64 - 8 * length) == 0
    for position in range(length):
        if data[start + position] != other_data[other_start + position]:
            return False
    return True


@helper
def same(a, i, b, j):
    """Return whether string i of a equals string j of b.

    The body is one expression, because numba then removes the reference counting of the tuples'
    arrays. A branch here makes it ten times slower: all threads count references to the same
    arrays.
    """
    return same_bytes(a.data, a.starts[i], a.ends[i], b.data, b.starts[j], b.ends[j])


@helper
def shift_of(length):
    """Return the shift that maps a spread key to a table of `length` slots, a power of two."""
    shift = BITS
    while length > 1:
        length >>= 1
        shift -= ONE
    return shift


@helper
def home(key, seed, shift):
    """Return the slot where the search for a key starts.

    Multiplying by a random odd number and taking the upper bits is a universal family of hash
    functions: Dietzfelbinger et al., A Reliable Randomized Algorithm for the Closest-Pair Problem,
    1997.
    """
    return np.int64((key * seed) >> shift)


@kernel
def hash_strings(starts, ends, data, seed, out_keys):
    """Hash each string to 64 bits. Returns the first string that is outside of the data, or -1."""
    size = len(data)
    for i in range(len(out_keys)):
        position = starts[i]
        end = ends[i]
        if not 0 <= position <= end <= size:
            return i
        length = end - position
        key = seed ^ (np.uint64(length) * MULTIPLIER)
        if length >= 8:
            while position < end - 8:
                key = fold(key ^ word_at(data, position), seed)
                position += 8
            word = word_at(data, end - 8)  # may overlap the word before
        elif length > 0 and position + 8 <= size:
            word = word_at(data, position) << np.uint64(64 - 8 * length)  # drops the bytes after it
        else:
            word = np.uint64(0)
            while position < end:
                word = word >> BYTE | np.uint64(data[position]) << LAST_BYTE
                position += 1
        out_keys[i] = fold(key ^ word, seed)
    return -1


def ids_of(keys, starts, ends, data, kind):
    """Return ids with keys of this process."""
    if keys is None:
        keys = np.empty(len(starts), np.uint64)
        hash_strings(starts, ends, data, SEED, keys)
    return Ids(keys, starts, ends, data, kind)


@kernel
def build_table(ids, seed, out_slots):
    """Fill an open-addressing table with the rows of ids.

    The length of the table is a power of two, and -1 marks a free slot. Returns the first row that
    repeats an earlier id, or -1.
    """
    mask = len(out_slots) - 1
    shift = shift_of(len(out_slots))
    text = ids.kind == STRING
    keys = ids.keys
    count = len(keys)
    for row in range(count):
        if row + AHEAD < count:
            prefetch(out_slots, home(keys[row + AHEAD], seed, shift))
        slot = home(keys[row], seed, shift)
        while out_slots[slot] >= 0:
            other = out_slots[slot]
            if keys[row] == keys[other] and (not text or same(ids, row, ids, other)):
                return row
            slot = (slot + 1) & mask
        out_slots[slot] = row
    return -1


@kernel
def find_rows(ids, slots, seed, wanted, out_rows):
    """Write the row of each wanted id in the table, or -1."""
    mask = len(slots) - 1
    shift = shift_of(len(slots))
    text = ids.kind == STRING
    mixed = ids.kind != wanted.kind
    keys, starts, ends, data = ids.keys, ids.starts, ids.ends, ids.data
    wanted_keys = wanted.keys
    count = len(keys)
    expected = 0
    jumps = 0  # high if the order differs from that of the table; then memory is prefetched
    last = len(out_rows) - 1
    for i in range(len(out_rows)):
        if jumps > 8 and count > 0:
            prefetch(slots, home(wanted_keys[min(last, i + 3 * AHEAD)], seed, shift))
            candidate = slots[home(wanted_keys[min(last, i + 2 * AHEAD)], seed, shift)]
            prefetch(keys, max(0, candidate))
            if text:
                prefetch(starts, max(0, candidate))
                prefetch(ends, max(0, candidate))
                candidate = slots[home(wanted_keys[min(last, i + AHEAD)], seed, shift)]
                prefetch(data, starts[max(0, candidate)])
                prefetch(data, ends[max(0, candidate)] - 1)
        # Two files are often in the same order, so the row after the last match is tried first.
        row = -1
        key = wanted_keys[i]
        if mixed and key >> TOP_BIT != 0:  # 2**64 - 1 and -1 have the same bits but are not equal
            out_rows[i] = -1
            continue
        if (
            expected < count
            and keys[expected] == key
            and (not text or same(ids, expected, wanted, i))
        ):
            row = expected
            jumps = max(0, jumps - 1)
        else:
            jumps = min(16, jumps + 1)
            slot = home(key, seed, shift)
            while slots[slot] >= 0:
                other = np.int64(slots[slot])
                if keys[other] == key and (not text or same(ids, other, wanted, i)):
                    row = other
                    break
                slot = (slot + 1) & mask
        if row >= 0:
            expected = row + 1
        out_rows[i] = row


@kernel
def parts_of(keys, seed, count, out_parts):
    """Write a part, at least 0 and below `count`, for each key; equal keys get the same part."""
    for i in range(len(keys)):
        out_parts[i] = fold(keys[i], seed) % np.uint64(count)


@kernel
def run_starts(ids, out_first):
    """Write the first row of each run of equal ids, and return the number of runs."""
    text = ids.kind == STRING
    keys = ids.keys
    count = 0
    for row in range(len(keys)):
        if row == 0 or keys[row] != keys[row - 1] or (text and not same(ids, row, ids, row - 1)):
            out_first[count] = row
            count += 1
    return count


@kernel
def group_rows(ids, seed, out_groups, out_first):
    """Number the distinct ids in order of first appearance.

    Writes the group of each row and the first row of each group. Returns the number of groups.
    """
    slots = np.full(1024, -1, np.int64)
    mask = len(slots) - 1
    shift = shift_of(len(slots))
    text = ids.kind == STRING
    keys, starts, data = ids.keys, ids.starts, ids.data
    rows = len(keys)
    found = np.empty(rows, np.uint64)  # the keys of the groups, close to each other
    count = 0
    for row in range(rows):
        # Rows of one query often follow each other.
        if row > 0 and keys[row] == keys[row - 1] and (not text or same(ids, row, ids, row - 1)):
            out_groups[row] = out_groups[row - 1]
            continue
        if row + 4 * AHEAD < rows:
            prefetch(slots, home(keys[row + 4 * AHEAD], seed, shift))
            group = max(0, slots[home(keys[row + 3 * AHEAD], seed, shift)])
            prefetch(found, group)
            prefetch(out_first, group)
            if text and count > 0:
                other = out_first[max(0, slots[home(keys[row + 2 * AHEAD], seed, shift)])]
                prefetch(starts, other)
                prefetch(ids.ends, other)
                other = out_first[max(0, slots[home(keys[row + AHEAD], seed, shift)])]
                prefetch(data, starts[other])
        slot = home(keys[row], seed, shift)
        while slots[slot] >= 0:
            group = slots[slot]
            if keys[row] == found[group] and (not text or same(ids, row, ids, out_first[group])):
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = count
            found[count] = keys[row]
            out_first[count] = row
            count += 1
        out_groups[row] = slots[slot]
        if 2 * count > len(slots):
            slots = np.full(4 * len(slots), -1, np.int64)
            mask = len(slots) - 1
            shift = shift_of(len(slots))
            for group in range(count):
                slot = home(found[group], seed, shift)
                while slots[slot] >= 0:
                    slot = (slot + 1) & mask
                slots[slot] = group
    return count
