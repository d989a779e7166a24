"""The features of items: a vector each, all of one length, of which only the direction counts."""

import numpy as np

from rankmill.columns.checksum import PIECE, hash_ids, mix, sum_rows
from rankmill.kernels.identity import Ids
from rankmill.kernels.vectors import scale_vectors
from rankmill.matching.index import LabelIndex
from rankmill.matching.lookup import look_up

# The numbers of a vector of length 1 are integers in units of 2**-shift, as many as a float64 has
# if there are few items.
FINEST = 52


class Features:
    """The vectors of items, scaled to length 1.

    They are integers, ``units`` of 1 / ``scale``, so that sums do not depend on the order. The sum
    of the vectors of all items still fits into int64. No vector is of zeros.
    """

    def __init__(self, items: Ids, vectors: np.ndarray) -> None:
        self.items = items
        self.scale = 2.0 ** min(FINEST, 62 - len(vectors).bit_length())
        self.units: np.ndarray = np.empty(vectors.shape, np.int64)
        scale_vectors(vectors, self.scale, self.units)
        self._lookup = look_up(items)[0]
        self._had: np.ndarray | None = None

    def __str__(self) -> str:
        """How many vectors there are, of how many numbers."""
        return f"{len(self.units):,} vectors of {self.units.shape[1]:,} numbers"

    def checksum(self, seed: np.uint64) -> int:
        """Return a number that only equal features have in common, whatever the order of items."""
        each = np.arange(1, self.units.shape[1] + 1, dtype=np.uint64) * seed
        mix(each)
        rows = np.empty(len(self.units), np.uint64)
        step = max(1, PIECE // max(1, len(each)))
        for start in range(0, len(rows), step):
            some = self.units[start : start + step].view(np.uint64) * each
            rows[start : start + step] = some.sum(axis=1, dtype=np.uint64)
        return sum_rows(hash_ids(self.items, seed), rows)

    def find(self, items: Ids) -> np.ndarray:
        """Return the row of each item as int64; -1 for one without a vector."""
        return self._lookup.find(items)

    def had(self, history: LabelIndex) -> np.ndarray:
        """Return the row of each item that a query had; -1 for those without a vector."""
        if self._had is None:
            self._had = self.find(history.labels.items)
        return self._had
