"""Sort rows of lists by query id; rows that do not fit into memory are merged from a file."""

import bisect
from collections.abc import Generator, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.errors import InputError
from rankmill.io.overflow import Overflow

# Sorting copies rows twice, and a run is sorted while the next rows are read.
SHARE = 4
# A sorted run is read back in batches of about so many bytes, or of such a part of a run.
RUN_BATCH, PARTS = 1 << 21, 16


class RepeatedRowError(InputError):
    """A query that is in two rows."""


def sorted_rows(
    blocks: Iterable[Any], schema: Any, name: str, memory: int
) -> Generator[Any, None, None]:
    """Yield rows as tables by ascending query id, their first column: an integer or binary.

    The blocks are record batches of the schema, whose columns are of types that Arrow can sort and
    take. Rows in memory take `memory` bytes at most. A query that comes twice is an error.
    """
    held: list[Any] = []
    size = 0
    runs: list[_Run] = []
    batch = min(RUN_BATCH, memory // (SHARE * PARTS))
    with Overflow(name, "rows to sort") as file:
        for block in blocks:
            held.append(block)
            size += block.nbytes
            if size * SHARE > memory:
                runs.append(_Run(_sorted(pa.Table.from_batches(held), name), file, batch))
                held, size = [], 0
        last = _sorted(pa.Table.from_batches(held, schema), name)
        if not runs:
            yield last
            return
        runs.append(_Run(last, file, batch))
        del last
        yield from _merged(runs, name)


def _sorted(table: Any, name: str) -> Any:
    """The rows of a table by ascending query id."""
    import pyarrow.compute as pc

    table = table.combine_chunks()
    order = numbers_of(pc.sort_indices(table.column(0)))
    if len(order) and np.any(order[1:] < order[:-1]):
        table = table.take(arrow_of(order))
    ids = table.column(0)
    same = pc.equal(ids[1:], ids[:-1]) if len(ids) > 1 else None
    if same is not None and pc.any(same).as_py():
        repeated = ids[1:].filter(same)[0].as_py()
        shown = repeated.decode(errors="backslashreplace") if isinstance(repeated, bytes) else None
        raise RepeatedRowError(
            f"{name}: query {repeated if shown is None else repr(shown)} is in two rows; expected "
            "one row per query, as the items are lists: merge or drop its rows"
        )
    return table


class _Run:
    """Sorted rows on disk, of which about `batch` bytes are read at a time, in order."""

    def __init__(self, table: Any, file: Overflow, batch: int) -> None:
        self._file = file
        self._schema = table.schema
        rows = max(1, len(table) * batch // max(1, table.nbytes))
        batches = table.to_batches(max_chunksize=rows)
        self._places = [file.add(batch.serialize()) for batch in batches][::-1]
        self.head = table.slice(0, 0)
        self.fill()

    def fill(self) -> None:
        """Read the next rows if there are none left; at the end there are none."""
        while not len(self.head) and self._places:
            raw = self._file.read(self._places.pop())
            batch = pa.ipc.read_record_batch(raw, self._schema)
            self.head = pa.Table.from_batches([batch])

    def last(self) -> Any:
        """The last query id of the rows that were read."""
        return self.head.column(0)[-1].as_py()

    def take(self, last: Any) -> Any:
        """Take the rows up to a query id off."""
        ids = self.head.column(0)
        count = bisect.bisect_right(range(len(ids)), last, key=lambda i: ids[i].as_py())
        taken, self.head = self.head.slice(0, count), self.head.slice(count)
        self.fill()
        return taken


def _merged(runs: list[_Run], name: str) -> Iterator[Any]:
    """Yield the rows of all runs in order."""
    while runs := [run for run in runs if len(run.head)]:
        # All rows up to the least of these ids were read.
        last = min(run.last() for run in runs)
        yield _sorted(pa.concat_tables([run.take(last) for run in runs]), name)
