"""The catalogue: the items that can be shown, and finding them by their ids."""

import numpy as np

from rankmill.kernels.identity import Ids
from rankmill.matching.lookup import look_up


class Catalogue:
    """Distinct items."""

    def __init__(self, items: Ids) -> None:
        self.items = items
        self._lookup = look_up(items)[0]

    def __len__(self) -> int:
        return len(self.items.keys)

    def find(self, items: Ids) -> np.ndarray:
        """Return the row of each item as int64; -1 for one that is not in the catalogue."""
        return self._lookup.find(items)
