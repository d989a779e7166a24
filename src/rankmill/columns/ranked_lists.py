"""Ranked lists: the items of each query in rank order, with an optional number for each item."""

from dataclasses import replace

import numpy as np

from rankmill.columns.ids import slice_ids, take_ids
from rankmill.columns.lists import drop_values, take_offsets, take_values
from rankmill.columns.place import Place
from rankmill.kernels.identity import Ids
from rankmill.records import record


@record(frozen=True)
class Lists:
    """The lists of some queries."""

    queries: Ids  # the id of each list
    offsets: np.ndarray  # int64[n + 1]: the items of each list
    items: Ids  # without null items
    # The confidences of predictions or the gains of labels: float32 or float64, one an item.
    numbers: np.ndarray | None
    nulls: int  # how many null items were left out
    tied: int  # how many items share their confidence or rank, so that file order decides
    place: Place  # where the lists stand; without numbers unless each row is a list
    rows: int  # how many input rows hold these lists
    repeats: int = 0  # how many items were dropped, because they repeat one of their list

    def slice(self, start: int, end: int) -> "Lists":
        """The lists from `start` to `end` (exclusive), as views, with the counts of all."""
        offsets = self.offsets[start : end + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        return replace(
            self,
            queries=slice_ids(self.queries, start, end),
            offsets=offsets - first,
            items=slice_ids(self.items, first, last),
            numbers=None if self.numbers is None else self.numbers[first:last],
            place=self.place.onwards(start),
            rows=end - start,
        )

    def take(self, rows: np.ndarray) -> "Lists":
        """The lists at some rows, with the counts and the place of all."""
        offsets = take_offsets(self.offsets, rows)
        at = take_values(self.offsets, np.arange(len(self.items.keys)), rows, offsets)
        return replace(
            self,
            queries=take_ids(self.queries, rows),
            offsets=offsets,
            items=take_ids(self.items, at),
            numbers=None if self.numbers is None else self.numbers[at],
        )

    def keep(self, keep: np.ndarray) -> "Lists":
        """The lists with only the items that are marked in `keep`."""
        return replace(
            self,
            offsets=drop_values(self.offsets, keep),
            items=take_ids(self.items, np.flatnonzero(keep)),
            numbers=None if self.numbers is None else self.numbers[keep],
        )

    @property
    def confidences(self) -> np.ndarray:
        """The numbers; the caller knows that the confidences were read."""
        assert self.numbers is not None
        return self.numbers
