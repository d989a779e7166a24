"""Random halves of the queries, and how well both agree about the systems."""

import math
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np

from rankmill.analysis.statistics.agreement import signs_of, tau_b
from rankmill.kernels.identity import STRING, Ids
from rankmill.threads import Workers

# Values are rounded to integers of up to 2**40, so that sums over a chunk are exact in float64.
BITS = 40
CHUNK = 1 << 12
_ROOM = 62
_WORD = 64
_ODD = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


class Halves(NamedTuple):
    """How well random halves of the queries agree about the systems.

    Attributes
    ----------
    tau : float or None
        The mean of Kendall's tau-b between the rankings of both halves; None for fewer than three
        systems, and where no split has a tau.
    agreement : dict of str to dict of str to (float or None)
        System -> other system -> the share of splits in which both halves say that the same one of
        the two is better. Splits in which both halves see a tie do not count; None if none is left.
    """

    tau: float | None
    agreement: dict[str, dict[str, float | None]]


class HalfSums(NamedTuple):
    """The sums of columns over the first halves, over the second ones, and the queries of each.

    The sums are int64[column, split], in a unit of the column in which a mean is off by up to half.
    """

    first: np.ndarray
    second: np.ndarray
    sizes: tuple[np.ndarray, np.ndarray]


def half_sums(
    columns: Sequence[np.ndarray],
    largest: Sequence[float],
    keys: np.ndarray,
    splits: int,
    workers: Workers,
) -> HalfSums:
    """Return the sums of columns over random halves of the queries, which `keys` draw.

    `largest` is for each column the largest absolute value that its unit is to fit.
    """
    count = len(keys)
    bits = min(BITS, _ROOM - count.bit_length())
    scales = [bits - int(np.frexp(one)[1]) for one in largest]

    def work(start: int) -> tuple[np.ndarray, np.ndarray]:
        coins = _coins(keys[start : start + CHUNK], splits)
        rounded = np.ones((len(columns) + 1, len(coins)))  # the last row counts the queries
        for row, column, scale in zip(rounded, columns, scales, strict=False):
            np.rint(np.ldexp(column[start : start + CHUNK], scale), out=row)
        # Sums of such integers are exact in any order. A product of matrices would be quicker, but
        # its threads are not ours: where others use the processors too, it is many times slower.
        first = np.einsum("cq,qs->cs", rounded, coins)
        return first.astype(np.int64), rounded.sum(axis=1, keepdims=True).astype(np.int64)

    first = np.zeros((len(columns) + 1, splits), np.int64)
    whole = np.zeros((len(columns) + 1, 1), np.int64)
    with closing(workers.map(work, range(0, count, CHUNK))) as parts:
        for of_first, of_whole in parts:
            first += of_first
            whole += of_whole
    second = whole - first
    return HalfSums(first[:-1], second[:-1], (first[-1], second[-1]))


def halves_of(systems: Sequence[str], sums: HalfSums) -> Halves:
    """Return how well the halves agree, from sums with a column for each system."""
    used = (sums.sizes[0] > 0) & (sums.sizes[1] > 0)
    first, second = (
        signs_of(half[:, used].T, size[used, None, None])
        for half, size in zip(sums[:2], sums.sizes, strict=True)
    )
    taus = tau_b(first, second)
    known = taus[~np.isnan(taus)]
    tau = math.fsum(known.tolist()) / len(known) if len(systems) > 2 and len(known) else None
    counted = ((first != 0) | (second != 0)).sum(axis=0)
    alike = (first * second > 0).sum(axis=0)
    shares: dict[str, dict[str, float | None]] = {
        name: {
            other: int(alike[i, j]) / int(counted[i, j]) if counted[i, j] else None
            for j, other in enumerate(systems)
            if j != i
        }
        for i, name in enumerate(systems)
    }
    return Halves(tau, shares)


def random_keys(ids: Ids, seed: int) -> np.ndarray:
    """Return a random number for each query, a function of its id and the seed alone."""
    from rankmill.kernels.identity import hash_strings

    keys = ids.keys
    if ids.kind == STRING:  # the hashes of strings in `ids` differ from process to process
        keys = np.empty(len(ids.keys), np.uint64)
        hash_strings(ids.starts, ids.ends, ids.data, _ODD, keys)
    return _mixed(keys ^ _mixed(np.array([seed % 2**64], np.uint64)))


def _coins(keys: np.ndarray, splits: int) -> np.ndarray:
    """Return 1.0 where a query is in the first half: float64[query, split]."""
    words = np.arange(1, -(-splits // _WORD) + 1, dtype=np.uint64) * _ODD
    drawn = _mixed(keys[:, None] + words).astype("<u8").view(np.uint8)
    return np.unpackbits(drawn, axis=1, count=splits, bitorder="little").astype(np.float64)


def _mixed(words: np.ndarray) -> np.ndarray:
    """Return the output function of splitmix64 (Steele et al., OOPSLA 2014)."""
    words = (words ^ (words >> _SHIFTS[0])) * _FACTORS[0]
    words = (words ^ (words >> _SHIFTS[1])) * _FACTORS[1]
    mixed: np.ndarray = words ^ (words >> _SHIFTS[2])
    return mixed
