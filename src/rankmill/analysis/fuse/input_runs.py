"""The runs to fuse, each read as rows by ascending query id, and their rows side by side."""

import bisect
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import numbers_of
from rankmill.engine.wide_rows import RowBlocks
from rankmill.errors import InputError, Otherwise
from rankmill.sources.input_options import Role
from rankmill.sources.inputs.inputs import Input, map_lists
from rankmill.sources.rows.long import ScatteredRowsError
from rankmill.sources.rows.sorted_rows import RepeatedRowError, sorted_rows
from rankmill.threads import Workers

# So many rows of a run are fused at once.
BLOCK_ROWS = 1 << 13
# Ways to read a run, each good for more inputs than the one before, and slower.
AS_THEY_COME, SORTED, GROUPED = range(3)


class ReadAgainError(Otherwise):
    """A run is not in the order that was hoped for; it is read in another way from now on."""


@dataclass(eq=False)
class InputRun:
    """A run, or the labels of training queries, and how it is read."""

    name: str
    input: Input
    among: Sequence[Input]  # the inputs of all runs, whose ids get one type
    memory: int  # the limit in bytes of its rows in memory
    role: Role = "predictions"

    def __post_init__(self) -> None:
        """Choose the quickest way to read it."""
        # What can be read only once is sorted at once.
        self._way = AS_THEY_COME if self.input.source.kept is None else GROUPED
        self.begin()

    def begin(self) -> None:
        """Count from the start."""
        self.rows = RowBlocks(self.input, self.role, self.among)
        self.queries = 0

    def tables(self, workers: Workers, report: Callable[[], None]) -> Generator[Any, None, None]:
        """Yield all rows by ascending query id, in tables of BLOCK_ROWS rows at most.

        Raises ReadAgainError if the run has to be read again.
        """
        try:
            for table in self._read(workers, report):
                self.queries += len(table)
                for start in range(0, len(table), BLOCK_ROWS):
                    yield table.slice(start, BLOCK_ROWS)
        except (ReadAgainError, ScatteredRowsError, RepeatedRowError):
            if self._way == GROUPED:
                raise
            wide = self.input.columns.wide
            self._way = SORTED if self._way == AS_THEY_COME and not wide else GROUPED
            raise ReadAgainError from None

    def _read(self, workers: Workers, report: Callable[[], None]) -> Generator[Any, None, None]:
        one, rows = self.input, self.rows
        together = self._way != GROUPED and not one.columns.wide
        read = map_lists(
            rows.of, one.source, one.columns, workers, together=together, memory=self.memory
        )
        with closing(read) as blocks:
            counted = rows.counted(blocks, lambda done, total: report())
            if self._way == AS_THEY_COME:
                yield from _ascending(counted)
                return
            ordered = sorted_rows(counted, rows.schema, one.source.name, self.memory)
            with closing(ordered) as tables:
                yield from tables


def _ascending(blocks: Iterator[Any]) -> Iterator[Any]:
    """Yield blocks as tables; raises ReadAgainError once query ids do not ascend."""
    last = None
    for block in filter(len, blocks):
        ids = block.column(0)
        if (last is not None and not last < ids[0].as_py()) or not _ascends(ids):
            raise ReadAgainError
        last = ids[-1].as_py()
        yield pa.Table.from_batches([block])


def _ascends(ids: Any) -> bool:
    if pa.types.is_integer(ids.type):
        numbers = numbers_of(ids)
        return bool((numbers[1:] > numbers[:-1]).all())
    import pyarrow.compute as pc

    return len(ids) < 2 or bool(pc.all(pc.greater(ids[1:], ids[:-1])).as_py())


def side_by_side(readers: Sequence[Iterator[Any]]) -> Iterator[list[Any]]:
    """Yield tables of all runs that together hold all rows of the same range of query ids.

    Each of `readers` yields tables by ascending query id.
    """
    heads = [next(reader, None) for reader in readers]
    while any(head is not None for head in heads):
        last = min(head.column(0)[-1].as_py() for head in heads if head is not None)
        taken = []
        for i, head in enumerate(heads):
            count = 0 if head is None else _count_up_to(head.column(0).chunk(0), last)
            taken.append(None if head is None else head.slice(0, count))
            if head is not None and count == len(head):
                heads[i] = next(readers[i], None)
            elif head is not None:
                heads[i] = head.slice(count)
        yield taken


def _count_up_to(ids: Any, last: Any) -> int:
    """How many of some ascending ids are not above `last`."""
    if pa.types.is_integer(ids.type):
        return int(np.searchsorted(numbers_of(ids), last, side="right"))
    return bisect.bisect_right(range(len(ids)), last, key=lambda i: ids[i].as_py())


def check_positions(inputs: Mapping[str, Input]) -> None:
    """Raise InputError if only some runs have places for query ids, or if they differ in length."""
    (first, one), *others = inputs.items()
    for name, other in others:
        if one.source.positional != other.source.positional:
            raise InputError(
                f"one of {first} and {name} has query ids, and the other is lists without: give "
                "both as lists, list q of both for query q, or both with ids"
            )
        if one.source.positional and one.source.rows != other.source.rows:
            raise InputError(
                f"{first} has {one.source.rows} lists and {name} has {other.source.rows}; "
                "expected the same number, list q of both for query q"
            )
