"""Ranked lists: the items of each query, in order, with a number each."""

from dataclasses import dataclass, replace

import numpy as np

from rankmill.columns.ids import slice_ids
from rankmill.kernels.identity import Ids


@dataclass(frozen=True)
class Lists:
    """The lists of some queries.

    Attributes
    ----------
    queries : Ids, n
    offsets, items : int64[n + 1], Ids
        The items of each query, null items left out.
    numbers : float32 or float64, one an item, or None
        Confidences of predictions, gains of labels.
    nulls : int
        Null items that were left out.
    tied : int
        Items whose place among equal confidences was decided by file order.
    place : tuple of str and int
        The file, and the row of the first list if each row is a list, else -1.
    rows : int
        Rows of the input that they came from.
    repeats : int
        Items that were dropped since they repeat an earlier one of their list.
    """

    queries: Ids
    offsets: np.ndarray
    items: Ids
    numbers: np.ndarray | None
    nulls: int
    tied: int
    place: tuple[str, int]
    rows: int
    repeats: int = 0

    def slice(self, place: int) -> "Lists":
        """The list of one query only, of those that no item was left out of."""
        start, end = int(self.offsets[place]), int(self.offsets[place + 1])
        return replace(
            self,
            queries=slice_ids(self.queries, place, place + 1),
            offsets=np.array([0, end - start]),
            items=slice_ids(self.items, start, end),
            numbers=None if self.numbers is None else self.numbers[start:end],
            place=(self.place[0], self.place[1] + place),
            rows=1,
        )

    @property
    def confidences(self) -> np.ndarray:
        """The numbers, which were asked for."""
        assert self.numbers is not None
        return self.numbers
