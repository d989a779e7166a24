"""Equal confidences in a list: hits at an end of their run, or runs to average over."""

from typing import NamedTuple

import numpy as np

from rankmill.kernels.order import count_runs, move_hits
from rankmill.matching.hits import Hits


class Runs(NamedTuple):
    """The runs of equal confidence that hold a hit, by rank within each query."""

    # int64[n + 1]: query q has the runs from ``offsets[q]`` to ``offsets[q + 1]``.
    offsets: np.ndarray
    # int64: for each run the number of predictions before it, of its predictions, and of its hits.
    before: np.ndarray
    sizes: np.ndarray
    hits: np.ndarray
    gains: np.ndarray  # float64: for each run the sum of the gains of its hits


def runs_of(hits: Hits, offsets: np.ndarray, confidences: np.ndarray) -> Runs:
    """Return the runs of lists sorted by falling confidence; `hits` must have hits of all ranks."""
    room = len(hits.ranks)
    run_offsets = np.empty_like(offsets)
    runs, gains = np.empty((3, room), np.int64), np.empty(room)
    of_hits = hits.offsets, hits.ranks, hits.gains
    count = count_runs(offsets, confidences, *of_hits, run_offsets, runs, gains)
    before, sizes, counts = runs[:, :count]
    return Runs(run_offsets, before, sizes, counts, gains[:count])


def with_hits_at_ends(
    hits: Hits, offsets: np.ndarray, confidences: np.ndarray, *, first: bool
) -> Hits:
    """Return the hits moved to the start of their run, highest gain first, or to its end."""
    ranks, gains = np.empty_like(hits.ranks), np.empty_like(hits.gains)
    move_hits(offsets, confidences, hits.offsets, hits.ranks, hits.gains, first, ranks, gains)
    return hits._replace(ranks=ranks, gains=gains)
