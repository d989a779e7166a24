"""Some of the queries of a source: a share by a hash of their ids, or a sample.

Parts of one input tell by a checksum of all its rows that it is the same one. It does not depend on
where the rows are, in what batches, or in what order, unless this order ranks the items.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import (
    arrow_of,
    floats_of,
    is_number_type,
    validity_of,
)
from rankmill.columns.ids import drop_nulls, id_type, is_id_type, plain, to_ids
from rankmill.columns.lists import is_list_type, split_lists, value_type
from rankmill.columns.ranked_lists import Lists
from rankmill.columns.seal import SEEDS, hash_ids, seal_of
from rankmill.errors import UsageError, plural
from rankmill.kernels.identity import STRING, Ids
from rankmill.kernels.lists import hash_lists
from rankmill.records import record
from rankmill.sources.roles.source import Batch, Block, InputFindings, Source, batch_of

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


@record(eq=False)
class Sample:
    """The queries with the smallest hashes, SAMPLED at most, whatever the order they come in.

    If the sample is of a `whole` input that parts share, it also has a checksum of all its rows.
    """

    whole: bool = False
    ordered: bool = False  # the order of rows ranks the items
    hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    # The number of rows of each batch and their checksum, by the columns that a pass reads.
    passes: dict[tuple[str, ...], list[tuple[int, int]]] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock)

    def add(self, hashes: np.ndarray) -> None:
        """Take some more queries into account. Any thread may call it."""
        if len(self.hashes) == SAMPLED:
            hashes = hashes[hashes < self.hashes[-1]]
        if len(hashes):
            with self._lock:
                self.hashes = np.union1d(self.hashes, hashes)[:SAMPLED]

    def begin(self, columns: Sequence[str]) -> Callable[[np.ndarray], None]:
        """Begin a pass over some columns; return what takes the hashes of its rows, in any thread.

        Rows may be read again, and then only the last pass over these columns counts.
        """
        totals = self.passes[tuple(columns)] = []
        return lambda hashes: totals.append((len(hashes), int(hashes.sum(dtype=np.uint64))))

    @property
    def content(self) -> str:
        """How many rows there are, and a checksum of all that was read."""
        sums = {n: np.array([*t, (0, 0)], np.uint64).sum(0) for n, t in self.passes.items()}
        rows = max((int(count) for count, _ in sums.values()), default=0)
        return f"{plural(rows, 'row')} ({seal_of(sums)})"


def divided(source: Source, query: str, share: Share | None, sample: Sample) -> Source:
    """Return a source of the rows of a share of the queries; all without one.

    All its queries go into the sample. Every row is read, and those of other shares are dropped
    before anything but a checksum is made of them.
    """

    def see(hashes: np.ndarray) -> None:
        if not source.positional:  # else each part begins with place 0 again
            sample.add(hashes)

    def of_block(block: Block, columns: list[str], add: Callable[[np.ndarray], None]) -> Batch:
        batch = batch_of(block)
        for one in (batch.files() or [batch]) if sample.whole else ():
            add(_hashes_of_rows(one, columns, sample.ordered))
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

    def of_lists(lists: Lists, add: Callable[[np.ndarray], None]) -> Lists:
        hashes = hash_ids(lists.queries, SEEDS[0])
        see(hashes)
        if sample.whole:
            add(_hashes_of_lists(lists, hashes))
        if share is None:
            return lists
        rows = np.flatnonzero(_is_in(hashes, share))
        return replace(lists.take(rows), place=lists.place.take(rows), rows=len(rows))

    def pieces(columns: list[str]) -> Sequence[Iterator[Block]]:
        names = list(dict.fromkeys([*columns, query]))
        make = partial(of_block, columns=names, add=sample.begin(names))
        return [(partial(make, one) for one in piece) for piece in source.pieces(names)]

    changed: dict[str, Any] = {"pieces": pieces}
    if source.lists is not None:
        held = source.lists

        def lists(columns: Any) -> list[Iterator[Lists]]:
            make = partial(of_lists, add=sample.begin(columns.names()))
            return [map(make, piece) for piece in held(columns)]

        changed = {"lists": lists}
    if source.best is not None:
        best = source.best
        changed["best"] = lambda *how: divided(best(*how), query, share, sample)
    if share is not None:
        changed |= {"rows": None, "made": None}
        changed["sizes"] = lambda columns: {
            name: (count // share.of, size // share.of)
            for name, (count, size) in source.sizes(columns).items()
        }
        if share.number > 1:  # the first part tells of the whole text
            changed |= {"findings": InputFindings(), "comments": None}
    return replace(source, **changed)


def _hashes_of_rows(batch: Batch, columns: Sequence[str], ordered: bool) -> np.ndarray:
    """Return a hash of each row of a batch; with its number, if the rows are ordered."""
    each, place = np.arange(batch.data.num_rows + 1), batch.place
    numbers = each[:-1] + place.first if place.lines is None else place.lines
    hashes = numbers.astype(np.uint64) * np.uint64(ordered)
    for name in columns:
        column = batch.data.column(name)
        offsets, values = split_lists(column) if is_list_type(column.type) else (each, column)
        hash_lists(offsets, _bits_of(values), SEEDS[1], hashes)
    return hashes


def _hashes_of_lists(lists: Lists, queries: np.ndarray) -> np.ndarray:
    """Return a hash of each list, with that of its query, and with its numbers."""
    hashes = queries.copy()
    numbers = [] if lists.numbers is None else [_bits_of(arrow_of(lists.numbers))]
    for bits in (_bits_of_ids(lists.items), *numbers):
        hash_lists(lists.offsets, bits, SEEDS[1], hashes)
    return hashes


def _bits_of(values: Any) -> np.ndarray:
    """Return a uint64 for each value of an Arrow array; equal ones are equal in any type."""
    values = plain(values, "values")
    kind = values.type
    if not is_id_type(kind) and is_number_type(kind):
        return (floats_of(values) + np.float64(0)).view(np.uint64)  # -0.0 is 0.0
    if not is_id_type(kind):  # a bool, a date or a time
        whole = values.cast(pa.uint8()) if kinds.is_boolean(kind) else values
        values = whole.view(pa.binary(whole.type.bit_width // 8))
    found = _bits_of_ids(to_ids(drop_nulls(values), "values"))
    if not values.null_count:
        return found
    bits = np.full(len(values), SEEDS[0])
    bits[validity_of(values)] = found
    return bits


def _bits_of_ids(ids: Ids) -> np.ndarray:
    return hash_ids(ids, SEEDS[1]) if ids.kind == STRING else ids.keys


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


def _ids(batch: Batch, query: str) -> Any:
    return plain(batch.data.column(query), f"{batch.source}: column {query!r}")
