"""Equal confidences in a list: hits at either end of their run, or runs to take the mean over."""

from typing import NamedTuple

import numpy as np

from rankmill.kernels.ties import count_runs, move_hits
from rankmill.matching.hits import Hits


class Runs(NamedTuple):
    """The runs of equal confidence that hold a hit, by rank within each query.

    Attributes
    ----------
    offsets : int64[n + 1]
        The runs of query q are those from ``offsets[q]`` to ``offsets[q + 1]``.
    before, sizes, hits : int64
        The predictions before each run, those in it, and the hits among these.
    gains : float64
        The sum of the gains of its hits.
    """

    offsets: np.ndarray
    before: np.ndarray
    sizes: np.ndarray
    hits: np.ndarray
    gains: np.ndarray


def runs_of(hits: Hits, offsets: np.ndarray, confidences: np.ndarray) -> Runs:
    """The runs of lists whose confidences fall; `hits` must hold those of all ranks."""
    room = len(hits.ranks)
    run_offsets = np.empty_like(offsets)
    before, sizes, counts = (np.empty(room, np.int64) for _ in range(3))
    gains = np.empty(room)
    count = count_runs(
        offsets,
        confidences,
        hits.offsets,
        hits.ranks,
        hits.gains,
        run_offsets,
        before,
        sizes,
        counts,
        gains,
    )
    return Runs(run_offsets, before[:count], sizes[:count], counts[:count], gains[:count])


def with_hits_at_ends(
    hits: Hits, offsets: np.ndarray, confidences: np.ndarray, *, first: bool
) -> Hits:
    """The hits where those of each run stand first in it, highest gain first, or last."""
    ranks, gains = np.empty_like(hits.ranks), np.empty_like(hits.gains)
    move_hits(offsets, confidences, hits.offsets, hits.ranks, hits.gains, first, ranks, gains)
    return hits._replace(ranks=ranks, gains=gains)
