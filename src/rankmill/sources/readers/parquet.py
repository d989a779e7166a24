"""Read Parquet files."""

import itertools
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from operator import add, le
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.types import is_dictionary, is_large_list, is_list, is_map, is_nested, is_struct

from rankmill.columns.lists import is_list_type, split_lists
from rankmill.columns.ranked_lists import Place
from rankmill.io.stores.store_objects import (
    beside,
    is_read_by_threads,
    open_ranges,
)
from rankmill.kernels.footers import COMPRESSED, VALUES
from rankmill.records import record
from rankmill.sources.files.files import (
    File,
    blamed,
    broken,
    check_unchanged,
    folder_columns,
    whole_schema,
    with_folders,
)
from rankmill.sources.files.footers import Footer, chunks_of, read_footer
from rankmill.sources.roles.source import (
    BATCH_BYTES,
    BATCH_ROWS,
    BATCH_VALUES,
    FIRST_ROWS,
    FRUGAL,
    Batch,
    InputOptions,
    Source,
)
from rankmill.threads import Workers

FOOTERS_AT_ONCE = 16
FOOTERS_IN_TURN = 64  # of files on the disk, which a thread reads
# Small files are read together, but no more than take a fraction of a second.
FILES_AT_ONCE = 256
# How many times smaller batches are within little memory; column chunks, which may be large,
# are then read in pieces.
FEWER = 4
IN_PIECES: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 18}
READ_WHOLE = 1 << 15  # pyarrow takes a third less time for bytes than for a file with so many
MOST_AT_ONCE = BATCH_ROWS, BATCH_VALUES, BATCH_BYTES


@record(frozen=True)
class ParquetPart:
    """The footer of a file, its schema, and the columns that its folders give."""

    footer: Footer
    schema: Any
    folders: dict[str, Any]
    most: tuple[int, ...] = MOST_AT_ONCE  # rows, values and bytes of a batch
    in_pieces: bool = False  # whether less is read ahead for them


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open Parquet files; only their footers are read at this point."""
    footers, frugal = _footers(files), asked.memory < FRUGAL
    most = tuple(one // (FEWER if frugal else 1) for one in asked.batch or MOST_AT_ONCE)
    columns = folder_columns(files, [footer.schema for footer in footers])
    schemas: dict[Any, Any] = {}  # files with the same columns share one
    parts = []
    for footer, of_file in zip(footers, columns, strict=True):
        kind = id(footer.schema), *((name, one.type) for name, one in of_file.items())
        if kind not in schemas:
            schema = whole_schema(footer.schema.remove_metadata(), of_file)
            schemas[kind] = schemas.setdefault(schema, schema)
        parts.append(ParquetPart(footer, schemas[kind], of_file, most, frugal))
    return Source(
        name=name,
        schemas={part.footer.file.name: part.schema for part in parts},
        rows=sum(part.footer.rows for part in parts),
        sizes=lambda columns: {name: _size(parts, name) for name in columns},
        pieces=lambda columns: [
            _read_files(some, columns) if len(some) > 1 else _read_groups(*some[0], columns)
            for some in _runs_of_files(parts, columns)
        ],
        peek=partial(_peek, parts),
        format="parquet",
    )


def _footers(files: Sequence[File]) -> list[Footer]:
    """The footers of files, which are read side by side: in stores each takes its time."""
    known: dict[tuple[bytes, int], Any] = {}
    some = 1 if files[0].filesystem is not None else FOOTERS_IN_TURN
    with Workers(FOOTERS_AT_ONCE) as workers:
        blocks = (files[start : start + some] for start in range(0, len(files), some))
        read = workers.map(lambda block: [read_footer(file, known) for file in block], blocks)
        return [footer for block in read for footer in block]


def _peek(parts: list[ParquetPart], columns: list[str]) -> Batch | None:
    """The first rows of some columns of the first file that has any; a whole batch is dear."""
    part = next((one for one in parts if one.footer.rows), None)
    if part is None:
        return None
    few = replace(part, most=(FIRST_ROWS, *part.most[1:]))
    groups = _runs_of_groups(few, columns)[0][:1]
    with closing(_read_groups(few, groups, columns)) as batches:
        return next(batches)


def _size(parts: list[ParquetPart], column: str) -> tuple[int, int]:
    """The number of values of a column in all files, and its bytes in the files.

    A null and an empty list count as one value each.
    """
    values = size = 0
    for part in parts:
        if column in part.folders:
            values += part.footer.rows
        else:
            chunks = chunks_of(part.footer, column)
            values += sum(chunk[VALUES] for chunk in chunks)
            size += sum(chunk[COMPRESSED] for chunk in chunks)
    return values, size


class Group(NamedTuple):
    """A row group to read: number, first row, rows, and the values of each column by the footer."""

    number: int
    first_row: int
    rows: int
    values: dict[str, int]

    @property
    def most_values(self) -> int:
        """The number of values of the longest column."""
        return max(self.values.values(), default=self.rows)


def _runs_of_groups(part: ParquetPart, columns: list[str]) -> list[list[Group]]:
    """The row groups to read; adjacent small row groups are joined."""
    names = [name for name in columns if name not in part.folders]
    if len(part.footer.groups) == 1 and part.footer.rows:  # a small file, mostly
        counts = {name: chunks_of(part.footer, name)[0][VALUES] for name in names}
        return [[Group(0, 0, part.footer.rows, counts)]]
    apart = _are_apart(part.schema.field(name).type for name in names)
    chunks = {name: chunks_of(part.footer, name) for name in names}
    runs: list[list[Group]] = []
    start = rows = size = values = 0
    for number, (its_rows, its_bytes) in enumerate(part.footer.groups):
        counts = {name: of_groups[number][VALUES] for name, of_groups in chunks.items()}
        group = Group(number, start, its_rows, counts)
        start += its_rows
        if not its_rows:
            continue
        rows, size, values = rows + its_rows, size + its_bytes, values + group.most_values
        joins = not apart and runs and runs[-1][-1].number == number - 1
        if joins and all(map(le, (rows, values, size), part.most)):
            runs[-1].append(group)
        else:
            runs.append([group])
            rows, size, values = its_rows, its_bytes, group.most_values
    return runs


def _are_apart(kinds: Iterable[Any]) -> bool:
    """Whether Arrow cannot join columns of these types: lists of dictionary-encoded items."""
    return any(is_list_type(kind) and is_dictionary(kind.value_type) for kind in kinds)


def _runs_of_files(
    parts: list[ParquetPart], columns: list[str]
) -> list[list[tuple[ParquetPart, list[Group]]]]:
    """The row groups to read of each file; those of small files with one schema are joined.

    Only lists are: errors of long rows, which are grouped later, could not name their file.
    """
    runs: list[list[tuple[ParquetPart, list[Group]]]] = []
    schema, joined = None, False
    held: tuple[int, ...] = ()
    for part in parts:
        if part.schema is not schema:
            kinds = [part.schema.field(name).type for name in columns]
            joined = any(map(is_list_type, kinds)) and not _are_apart(kinds)
            schema, held = part.schema, part.most
        for groups in _runs_of_groups(part, columns):
            sizes = [
                (one.rows, one.most_values, part.footer.groups[one.number][1]) for one in groups
            ]
            own = sizes[0] if len(sizes) == 1 else tuple(map(sum, zip(*sizes, strict=True)))
            held = tuple(map(add, held, own))
            if joined and all(map(le, held, part.most)) and len(runs[-1]) < FILES_AT_ONCE:
                runs[-1].append((part, groups))
            else:
                runs.append([(part, groups)])
                held = own
    return runs


def _read_files(some: list[tuple[ParquetPart, list[Group]]], columns: list[str]) -> Iterator[Batch]:
    """Read small files, as one batch."""
    batches = [one for part, groups in some for one in _read_groups(part, groups, columns)]
    starts = itertools.accumulate((one.data.num_rows for one in batches), initial=0)
    files = tuple(zip(starts, (one.place for one in batches), strict=False))
    place = batches[0].place._replace(files=files)
    row = 0
    for data in pa.Table.from_batches([one.data for one in batches]).combine_chunks().to_batches():
        yield Batch(data, place.onwards(row))
        row += data.num_rows


def _read_groups(
    part: ParquetPart, groups: list[Group], columns: list[str]
) -> Generator[Batch, None, None]:
    path, of_file = part.footer.file.name, part.footer.file
    stored = [name for name in columns if name not in part.folders]
    row = groups[0].first_row
    last = f" to {groups[-1].number}" if len(groups) > 1 else ""
    with blamed(of_file, part.footer.identity, f"row group {groups[0].number}{last}"):
        with (
            _place(part.footer) as place,
            pq.ParquetFile(
                place,
                metadata=part.footer.metadata,
                page_checksum_verification=True,
                **(IN_PIECES if part.in_pieces and of_file.filesystem is None else {}),
            ) as file,
        ):
            asked = None
            for data in _batches(file, part, groups, stored):
                if of_file.filesystem is None:
                    check_unchanged(of_file, part.footer.identity)
                elif asked is None:
                    # pyarrow has all column chunks of the piece before it decodes any. So one
                    # question is enough for all batches, and its answer is awaited at the end.
                    asked = beside(check_unchanged, of_file, part.footer.identity)
                yield Batch(with_folders(data, part.folders, columns), Place(path, row))
                row += data.num_rows
        if asked is not None:
            asked.result()


def _place(footer: Footer) -> Any:
    """What pyarrow reads a file from: its bytes, or the open file or object."""
    file = footer.file
    if file.filesystem is None and footer.identity[2] <= READ_WHOLE:
        with open(file.path, "rb", buffering=0) as opened:
            return nullcontext(pa.BufferReader(opened.read()))
    if file.filesystem is None:
        return pa.OSFile(os.fsencode(file.path))  # a name need not be UTF-8
    if is_read_by_threads(file.filesystem):
        return nullcontext(footer.opened)
    return open_ranges(file.filesystem, file.path, file.name)


def _batches(
    file: Any, part: ParquetPart, groups: list[Group], columns: list[str]
) -> Iterator[Any]:
    """Yield the record batches of row groups, with about BATCH_VALUES values a column.

    Row groups are read one at a time, even if they are joined. If pyarrow read them together, it
    would replace values that are missing in a row group by values of the next one.
    """
    if len(groups) == 1:
        yield from _group_batches(file, part, groups[0], columns)
        return
    batches = [data for group in groups for data in _group_batches(file, part, group, columns)]
    yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


def _group_batches(file: Any, part: ParquetPart, group: Group, columns: list[str]) -> Iterator[Any]:
    """Yield the batches of one row group; raise InputError if they contradict the footer."""
    footer, (most_rows, most_values, _) = part.footer, part.most
    largest = max(1, min(most_rows, most_values * group.rows // group.most_values))
    batch_rows = -(-group.rows // -(-group.rows // largest))
    if not columns:  # the folder names give all columns
        for start in range(0, group.rows, batch_rows):
            rows = min(batch_rows, group.rows - start)
            yield pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""])
        return
    found = dict.fromkeys(columns, 0)
    rows = 0
    for data in file.iter_batches(
        batch_size=batch_rows, row_groups=[group.number], columns=columns, use_threads=False
    ):
        rows += data.num_rows
        for name in columns:
            found[name] += count_values(data.column(name))
        if rows >= group.rows:  # check the counts before the last batch is yielded
            _check_counts(footer, group, rows, found)
        yield data
    _check_counts(footer, group, rows, found)  # pyarrow may stop early without an error


def _check_counts(footer: Footer, group: Group, rows: int, found: dict[str, int]) -> None:
    """Raise InputError if the numbers of rows or values differ from those in the footer."""
    counts = [("rows", rows, group.rows)]
    counts += [(f"values of column {name!r}", found[name], group.values[name]) for name in found]
    for what, held, said in counts:
        if held != said:
            which = f"row group {group.number}"
            what = f"{which} gave {held} {what}, but its footer says {said}"
            raise broken(footer.file, what, footer.identity)


def count_values(column: Any) -> int:
    """The number of values of a column as Parquet counts them: a null or empty list is one.

    Of structs, and of lists of them, these are the values of their first field.
    """
    kind = column.type
    if is_struct(kind) and kind.num_fields:
        return count_values(column.flatten()[0])
    if not (is_list_type(kind) or is_map(kind)) or not len(column):
        return len(column)
    # This avoids a copy. The reader returns null lists as empty ones.
    if is_list(kind) or is_large_list(kind) or is_map(kind):
        raw = np.frombuffer(column.buffers()[1], np.int64 if is_large_list(kind) else np.int32)
        offsets = raw[column.offset : column.offset + len(column) + 1]
    else:
        offsets, _ = split_lists(column)
    empty = int(np.count_nonzero(offsets[1:] == offsets[:-1]))
    if is_map(kind) or not is_nested(kind.value_type):
        return int(offsets[-1] - offsets[0]) + empty
    return count_values(split_lists(column)[1]) + empty
