"""The groups of queries that a jackknife leaves out, one after the other.

The group of a query is a hash of its id, or of the least id of its cluster. It depends on nothing
else: not on the order of rows, the files, the threads or the process. So the groups of two systems
hold the same queries.
"""

from collections.abc import Iterable

import numpy as np

from rankmill.columns.checksum import hash_ids
from rankmill.kernels.identity import Ids
from rankmill.metrics.aggregate import Aggregate
from rankmill.records import record

# More groups tell no more of how far chance moves a metric, and take more time and memory.
GROUPS = 20
# The name of this way to cut queries; no column is called so.
GROUP = "\0group"
# It must be the same in every process, and odd.
SEED = np.uint64(0x2545F4914F6CDD1D)


def groups_of(queries: Ids) -> np.ndarray:
    """Return the group of each query; signed and unsigned integers of one value are in the same."""
    return _group(hash_ids(queries, SEED))


def classes_of_groups(
    queries: Ids, clusters: np.ndarray | None
) -> tuple[list[str | None], np.ndarray]:
    """Return the groups as slices; `clusters` are the codes of those of queries, or -1."""
    hashed = hash_ids(queries, SEED)
    if clusters is not None:
        known = clusters >= 0
        of = clusters[known]
        least = np.full(int(of.max(initial=-1)) + 1, np.iinfo(np.uint64).max, np.uint64)
        np.minimum.at(least, of, hashed[known])
        hashed[known] = least[of]
    return [*map(str, range(GROUPS)), None], _group(hashed)


def _group(hashed: np.ndarray) -> np.ndarray:
    return (hashed % np.uint64(GROUPS)).astype(np.int8)


@record(eq=False)
class QueryGroups:
    """Whether queries are cut into groups: no more once these take more memory than allowed."""

    needed: int = 0  # the bytes that they took when they were given up; 0 while they fit

    def fit(self, some: Iterable[Aggregate], memory: int) -> bool:
        """Return whether what aggregates of groups hold fits into so many bytes."""
        held = sum(one.held_bytes for one in some)
        if held > memory:
            self.needed = held
        return not self.needed
