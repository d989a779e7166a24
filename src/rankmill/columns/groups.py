"""Groups of items: which groups each item is in, and what each group has of it."""

import math

import numpy as np

# The shares of items in their groups are integers up to this.
LARGEST_UNIT = 1 << 30


class Groups:
    """The groups of each item of a catalogue, such as its genres.

    Attributes
    ----------
    offsets, codes : int64
        The groups of each item, ascending, by their place among `names`.
    names : list of str
        In order.
    units : int64
        What each group of an item has of it, in units of which all items have as many.
    """

    def __init__(self, offsets: np.ndarray, codes: np.ndarray, names: list[str]) -> None:
        self.offsets = offsets
        self.codes = codes
        self.names = names
        sizes = np.diff(offsets)
        self.largest = int(sizes.max(initial=0))
        self.most_items = int((sizes > 0).sum())
        whole = math.lcm(*np.unique(sizes[sizes > 0]).tolist())
        self.units = min(whole, LARGEST_UNIT) // np.maximum(1, sizes)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The arrays that kernels take."""
        return self.offsets, self.codes, self.units
