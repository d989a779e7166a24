"""The interface that every kind of input implements."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from rankmill.columns.ranked import Lists
from rankmill.sources.footers import RowGroup

# A batch is the data that one thread reads, matches and scores at once. A batch has about this many
# values, rows and bytes at most.
BATCH_VALUES = 1 << 20
BATCH_ROWS = 1 << 16
BATCH_BYTES = 1 << 23


class Batch(NamedTuple):
    """Some rows of a source: an Arrow record batch, its file, and its first row in that file."""

    data: Any
    source: str
    first_row: int


@dataclass(frozen=True)
class Source:
    """An opened input.

    Attributes
    ----------
    name : str
        The name in messages and results.
    schemas : mapping of str to pyarrow.Schema
        The schema of each file.
    rows : int
        The total number of rows.
    sizes : callable
        Takes column names; returns for each column the number of values and the bytes to read. A
        list counts as the number of its items.
    pieces : callable
        Takes column names; returns an iterator of batches for each piece. Pieces can be read
        independently of each other.
    lists : callable or None
        Takes the columns; returns an iterator of lists for each piece. Only a source that holds
        lists instead of rows has it, and such a source has no `pieces`.
    row_groups : callable
        Takes the query column and the item column; returns the row groups with the bounds of their
        query ids, or an empty list if the bounds are not known.
    within : callable
        Takes some row groups, the query column, and two ids; returns a source of the rows of these
        row groups whose query id is at least the first id and below the second. None means that
        the range has no bound on that side.
    """

    name: str
    schemas: Mapping[str, Any]
    rows: int
    sizes: Callable[[list[str]], dict[str, tuple[int, int]]]
    pieces: Callable[[list[str]], list[Iterator[Batch]]] = lambda columns: []
    lists: Callable[[Any], list[Iterator[Lists]]] | None = None
    row_groups: Callable[[str, str], list[RowGroup]] = lambda query, item: []
    within: Callable[[list[RowGroup], str, Any, Any], Self] | None = None
