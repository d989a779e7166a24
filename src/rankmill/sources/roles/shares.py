"""Some of the queries of a source: a share by a hash of their ids, a sample, or a range of ids."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of, numbers_of, validity_of
from rankmill.columns.checksum import SEEDS, hash_ids
from rankmill.columns.ids import drop_nulls, id_type, is_id_type, plain, to_ids
from rankmill.columns.lists import is_list_type, split_lists, value_type
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import UsageError
from rankmill.sources.roles.contents import Content
from rankmill.sources.roles.source import Batch, Block, Source, batch_of, of_batch

# Two inputs that share one in fifty queries have none in common in such samples once in 170 times.
SAMPLED = 256


class Share(NamedTuple):
    """Which part of the queries: the `number`-th of `of`, from 1 on."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what a text such as "3/8" names; UsageError if it names none."""
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", str(text))
        number, of = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= of:
            raise UsageError(
                f"{str(text)!r} is not a part; expected I/N with I from 1 to N, such as 3/8"
            )
        return cls(number, of)


@dataclass(eq=False)
class Sample:
    """The queries with the smallest hashes, SAMPLED at most, whatever the order they come in."""

    hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    _lock: Any = field(default_factory=Lock)

    def add(self, hashes: np.ndarray) -> None:
        """Take some more queries into account. Any thread may call it."""
        if len(self.hashes) == SAMPLED:
            hashes = hashes[hashes < self.hashes[-1]]
        if len(hashes):
            with self._lock:
                self.hashes = np.union1d(self.hashes, hashes)[:SAMPLED]


def divided(
    source: Source, query: str, share: Share | None, sample: Sample, content: Content | None = None
) -> Source:
    """Return a source of the rows of a share of the queries; all without one.

    All its queries go into the sample. Every row is read and goes into the content, if there is
    one, and those of other shares are dropped before anything is made of them.
    """
    source = source if content is None else content.reading(source)

    def see(hashes: np.ndarray) -> None:
        if not source.positional:  # else each part begins with place 0 again
            sample.add(hashes)

    def of_block(block: Block) -> Batch:
        batch = batch_of(block)
        column = _ids(batch, query)
        if not is_id_type(column.type):
            return batch  # the code that reads the ids raises the error
        there = validity_of(column)
        hashes = hash_ids(to_ids(drop_nulls(column), batch.source), SEEDS[0])
        see(hashes)
        if share is None:
            return batch
        kept = ~there  # a row without an id is an error, whoever reads it
        kept[there] = _is_in(hashes, share)
        return _rows(batch, np.flatnonzero(kept))

    def of_lists(lists: Lists) -> Lists:
        hashes = hash_ids(lists.queries, SEEDS[0])
        see(hashes)
        if share is None:
            return lists
        rows = np.flatnonzero(_is_in(hashes, share))
        return replace(lists.take(rows), place=lists.place.take(rows), rows=len(rows))

    def pieces(columns: list[str]) -> Sequence[Iterator[Block]]:
        names = list(dict.fromkeys([*columns, query]))
        return [(partial(of_block, one) for one in piece) for piece in source.pieces(names)]

    changed: dict[str, Any] = {"pieces": pieces}
    if source.lists is not None:
        held = source.lists
        changed = {"lists": lambda columns: [map(of_lists, piece) for piece in held(columns)]}
    if source.best is not None:
        best = source.best
        changed["best"] = lambda *how: divided(best(*how), query, share, sample, content)
    if source.within is not None and share is None:
        of_groups = source.within
        changed["within"] = lambda *some: divided(of_groups(*some), query, share, sample)
    if share is not None:
        changed |= {"rows": None, "row_groups": lambda query, item: [], "made": None}
        changed["sizes"] = lambda columns: {
            name: (count // share.of, size // share.of)
            for name, (count, size) in source.sizes(columns).items()
        }
        if share.number > 1:  # the first part tells of the whole text
            changed["doubts"] = None
    return replace(source, **changed)


def _is_in(hashes: np.ndarray, share: Share) -> np.ndarray:
    inside: np.ndarray = hashes % np.uint64(share.of) == share.number - 1
    return inside


def _rows(batch: Batch, rows: np.ndarray) -> Batch:
    if len(rows) == batch.data.num_rows:
        return batch
    columns = [_without_views(one) for one in batch.data.columns]
    data = pa.RecordBatch.from_arrays(columns, names=batch.data.schema.names)
    return Batch(data.take(arrow_of(rows)), batch.place.take(rows))


def _without_views(column: Any) -> Any:
    """Return a column with plain texts, as Arrow cannot take from views."""
    value = value_type(column.type)
    if not (kinds.is_string_view(value) or kinds.is_binary_view(value)):
        return column
    if not is_list_type(column.type):
        return column.cast(id_type(column.type))
    offsets, values = split_lists(column)
    return pa.LargeListArray.from_arrays(arrow_of(offsets), values.cast(id_type(values.type)))


# ------------------------------------------------------------------ ranges


def rows_within(blocks: Iterator[Block], query: str, low: Any, high: Any) -> Iterator[Batch]:
    """Yield the rows whose ids are at least `low` and below `high`; None means no bound."""
    for batch in map(batch_of, blocks):
        ids = of_batch(partial(_ids, query=query), batch)
        if ids.null_count:  # the code that reads the ids raises the error
            yield batch
            continue
        inside = np.ones(len(ids), np.bool_)
        if low is not None:
            inside &= ~_below(ids, low)
        if high is not None:
            inside &= _below(ids, high)
        rows = np.flatnonzero(inside)
        if len(rows):
            yield _rows(batch, rows)


def _ids(batch: Batch, query: str) -> Any:
    return plain(batch.data.column(query), f"{batch.source}: column {query!r}")


def _below(ids: Any, bound: Any) -> np.ndarray:
    if kinds.is_integer(ids.type):
        # This is exact even if the bound does not fit the integer type.
        below: np.ndarray = numbers_of(ids) < bound
        return below
    import pyarrow.compute as pc

    # Strings are compared as bytes, as in the footer, whatever their Arrow type is.
    less = pc.less(ids.cast(pa.large_binary()), pa.scalar(bound, pa.large_binary()))
    return numbers_of(less.cast(pa.uint8())).view(np.bool_)
