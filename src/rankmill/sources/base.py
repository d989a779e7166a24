"""What every kind of input offers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from rankmill.columns.ranked import Lists
from rankmill.sources.footers import RowGroup

# About so many values are read, matched and scored at once by a thread.
BATCH_VALUES = 1 << 20
BATCH_ROWS = 1 << 16
BATCH_BYTES = 1 << 23


class Batch(NamedTuple):
    """Some rows of a source: an Arrow record batch, its file, and its first row there."""

    data: Any
    source: str
    first_row: int


@dataclass(frozen=True)
class Source:
    """An opened input.

    Attributes
    ----------
    name : str
        As shown in messages and results.
    schemas : mapping of str to pyarrow.Schema
        The schema of each file.
    rows : int
        Number of rows in all.
    sizes : callable
        Given column names, the number of values of each, lists counted by their items, and the
        bytes to read.
    pieces : callable
        Given column names, an iterator of batches for each piece that can be read on its own.
    lists : callable or None
        Given the columns, an iterator of lists for each piece, where the source holds lists and no
        rows; there are no pieces then.
    row_groups : callable
        Given the query and the item column, the row groups with the bounds of their query ids; none
        if these are not told.
    within : callable
        Given some row groups, the query column, and two ids, a source of the rows there whose ids
        are from the first id on and below the second; None is no end.
    """

    name: str
    schemas: Mapping[str, Any]
    rows: int
    sizes: Callable[[list[str]], dict[str, tuple[int, int]]]
    pieces: Callable[[list[str]], list[Iterator[Batch]]] = lambda columns: []
    lists: Callable[[Any], list[Iterator[Lists]]] | None = None
    row_groups: Callable[[str, str], list[RowGroup]] = lambda query, item: []
    within: Callable[[list[RowGroup], str, Any, Any], Self] | None = None
