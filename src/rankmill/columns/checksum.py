"""Checksums of sets of rows: the same in every process, whatever the order of the rows."""

import numpy as np

from rankmill.columns.ids import take_ids
from rankmill.kernels.identity import STRING, Ids, hash_strings

# Arrays are hashed in pieces of this many rows, so hashing needs almost no memory.
PIECE = 1 << 16
# Two seeds give 128 bits. They are odd, as those of strings have to be.
SEEDS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)


def mix(bits: np.ndarray) -> None:
    """Change each uint64 so that all its bits depend on all: the finalizer of MurmurHash3."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        bits ^= bits >> np.uint64(33)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(33)


def hash_ids(ids: Ids, seed: np.uint64) -> np.ndarray:
    """Return a hash of each id as uint64; equal integers have equal ones, whatever their type."""
    if ids.kind != STRING:
        hashed = ids.keys ^ seed
    else:
        hashed = np.empty(len(ids.keys), np.uint64)
        hash_strings(ids.starts, ids.ends, ids.data, seed, hashed)
    mix(hashed)
    return hashed


def sum_ids(ids: Ids, seed: np.uint64) -> int:
    """Return the checksum of ids."""
    return _sum(hash_ids(ids, seed))


def sum_pairs(
    left: Ids, offsets: np.ndarray, right: Ids, codes: np.ndarray | None, seed: np.uint64
) -> int:
    """Return the checksum of the pairs of each left id and its right ones.

    Those of left id i are from offsets[i] to offsets[i + 1]: of `right`, or of `codes`, which are
    places in `right`.
    """
    hashes, total = hash_ids(left, seed), 0
    others = None if codes is None else hash_ids(right, seed)
    for start in range(0, int(offsets[-1]), PIECE):
        place = np.arange(start, min(start + PIECE, int(offsets[-1])))
        of_left = hashes[np.searchsorted(offsets, place, side="right") - 1]
        if codes is None or others is None:
            of_right = hash_ids(take_ids(right, place), seed)
        else:
            of_right = others[codes[place]]
        total += sum_rows(of_left, of_right)
    return total % 2**64


def sum_rows(left: np.ndarray, right: np.ndarray) -> int:
    """Return the checksum of rows of two hashes each."""
    both = left * SEEDS[0] + right
    mix(both)
    return _sum(both)


def _sum(hashes: np.ndarray) -> int:
    return int(hashes.sum(dtype=np.uint64))
