"""What an input holds: a checksum of its rows, the same wherever and in what batches they are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import floats_of, validity_of
from rankmill.columns.checksum import SEEDS, hash_ids
from rankmill.columns.ids import drop_nulls, plain, to_ids
from rankmill.columns.lists import is_list_type, split_lists
from rankmill.columns.ranked_lists import Lists
from rankmill.columns.seal import seal_of
from rankmill.errors import plural
from rankmill.kernels.identity import STRING, Ids
from rankmill.kernels.lists import hash_lists
from rankmill.sources.roles.source import Batch, Block, Source, batch_of

NULL = SEEDS[0]


@dataclass(eq=False)
class Content:
    """Checksums of all rows of an input, by the columns that are read together.

    They do not depend on the order of rows, unless it ranks the items, as `ordered` says.
    """

    ordered: bool = False
    _passes: dict[tuple[str, ...], list[tuple[int, int]]] = field(default_factory=dict)

    def reading(self, source: Source) -> Source:
        """Return a source whose rows are seen when they are read, by any thread."""

        def pieces(columns: list[str]) -> Sequence[Iterator[Block]]:
            add = self._begin(columns)

            def of_block(block: Block) -> Batch:
                batch = batch_of(block)
                for one in batch.files() or [batch]:
                    add(self._hashes(one, columns))
                return batch

            return [(partial(of_block, one) for one in piece) for piece in source.pieces(columns)]

        def lists(columns: Any) -> list[Iterator[Lists]]:
            add = self._begin(columns.names())

            def of_lists(lists: Lists) -> Lists:
                add(_hashes_of_lists(lists))
                return lists

            return [map(of_lists, piece) for piece in held(columns)]

        held = source.lists
        return replace(source, pieces=pieces) if held is None else replace(source, lists=lists)

    def _begin(self, columns: Sequence[str]) -> Callable[[np.ndarray], None]:
        """Begin a pass: rows may be read again, and only the last pass over a column counts."""
        found = self._passes[tuple(columns)] = []
        return lambda hashes: found.append((len(hashes), int(hashes.sum(dtype=np.uint64))))

    def __str__(self) -> str:
        """How many rows there are, and a checksum of all."""
        totals = {
            names: [sum(some) % 2**64 for some in zip((0, 0), *parts, strict=True)]
            for names, parts in sorted(self._passes.items())
        }
        rows = max((count for count, _ in totals.values()), default=0)
        return f"{plural(rows, 'row')} ({seal_of([*totals.items()])})"

    def _hashes(self, batch: Batch, columns: Iterable[str]) -> np.ndarray:
        """Return a hash of each row of a batch."""
        rows = batch.data.num_rows
        hashes, each = np.zeros(rows, np.uint64), np.arange(rows + 1)
        if self.ordered:
            place = batch.place
            hashes += (each[:-1] + place.first if place.lines is None else place.lines).astype(
                np.uint64
            )
        for name in columns:
            column = batch.data.column(name)
            offsets, values = split_lists(column) if is_list_type(column.type) else (each, column)
            hash_lists(offsets, _bits_of(values), SEEDS[1], hashes)
        return hashes


def _hashes_of_lists(lists: Lists) -> np.ndarray:
    """Return a hash of each list, with its query and its numbers."""
    hashes = hash_ids(lists.queries, SEEDS[0])
    hash_lists(lists.offsets, _bits_of_ids(lists.items), SEEDS[1], hashes)
    if lists.numbers is not None:
        hash_lists(lists.offsets, _bits_of_floats(lists.numbers), SEEDS[1], hashes)
    return hashes


def _bits_of(values: Any) -> np.ndarray:
    """Return a uint64 for each value of an Arrow array; equal ones are equal in any type."""
    values = plain(values, "values")
    kind = values.type
    if kinds.is_floating(kind) or kinds.is_decimal(kind):
        return _bits_of_floats(floats_of(values))
    if kinds.is_temporal(kind):
        values = values.view(pa.binary(kind.bit_width // 8))
    elif kinds.is_boolean(kind):
        values = values.cast(pa.uint8())
    found = _bits_of_ids(to_ids(drop_nulls(values), "values"))
    if not values.null_count:
        return found
    bits = np.full(len(values), NULL)
    bits[validity_of(values)] = found
    return bits


def _bits_of_ids(ids: Ids) -> np.ndarray:
    return hash_ids(ids, SEEDS[1]) if ids.kind == STRING else ids.keys


def _bits_of_floats(numbers: np.ndarray) -> np.ndarray:
    return (numbers + np.float64(0)).view(np.uint64)  # -0.0 is 0.0
