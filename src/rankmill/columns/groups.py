"""Groups of items: which groups each item is in, and what each group has of it."""

import math

import numpy as np

# The shares of items in their groups are integers up to this.
LARGEST_UNIT = 1 << 30


class Groups:
    """The groups of each item of a catalogue, such as its genres.

    The codes from offsets[i] to offsets[i + 1] are those of item i: its groups, ascending, by their
    place among `names`, which are in order. An item has `whole` units, of which each of its groups
    has its `units`; all are int64.
    """

    def __init__(self, offsets: np.ndarray, codes: np.ndarray, names: list[str]) -> None:
        self.offsets = offsets
        self.codes = codes
        self.names = names
        sizes = np.diff(offsets)
        self.largest = int(sizes.max(initial=0))
        self.most_items = int((sizes > 0).sum())
        self.whole = min(math.lcm(*np.unique(sizes[sizes > 0]).tolist()), LARGEST_UNIT)
        self.units = self.whole // np.maximum(1, sizes)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The arrays that kernels take."""
        return self.offsets, self.codes, self.units
