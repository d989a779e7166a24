"""convert() writes any input as wide Parquet, sorted by query id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of
from rankmill.columns.ids import id_type, ids_to_arrow
from rankmill.columns.lists import is_list_type
from rankmill.columns.ranked_lists import Lists
from rankmill.engine.first_pass import Progress, progress_of
from rankmill.engine.head import open_as
from rankmill.engine.held_labels import read_in_order
from rankmill.errors import InputError, ResourceError, UsageError, plural, positive, told_shortly
from rankmill.io.whole_files import check_target, write_files
from rankmill.matching.index import RepeatedQueryError
from rankmill.show.tables import Facts
from rankmill.sources.inputs.inputs import Input, alike, map_lists
from rankmill.sources.meaning.looks import reading_again
from rankmill.sources.nouns import LabelsLike, PredictionsLike
from rankmill.sources.roles.source import MEMORY, Role
from rankmill.threads import Workers

SUFFIX = ".parquet"
# A row group ends at either of these. Small ones are read by several threads, large ones are
# compressed best.
GROUP_ROWS = 1 << 17
GROUP_BYTES = 1 << 26

# The rows of some lists, and of these the rows that were read, the null items and the tied ones.
_Block = tuple[Any, int, int, int]


@told_shortly
@reading_again
def convert(
    source: LabelsLike | PredictionsLike,
    path: str | Path,
    *,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Write labels or predictions of any kind as wide Parquet, sorted by query id.

    The file has one row per query: ``query_id``, ``items`` in rank order, and ``scores`` or
    ``gains`` if the input has them. Integer ids are sorted as numbers, strings as bytes. Evaluating
    the file gives the same values as the input, to the last bit, and is the fastest.

    Long predictions are written in the order in which they are evaluated: by rank if there is one,
    else by falling confidence, else as they come. Null items are left out, so the audit of the new
    file counts none; nor does it count equal ranks. Queries with an empty list are kept, as are
    repeated items and gains of 0 or less.

    Parameters
    ----------
    source : Labels, Predictions, or what these hold
        The input, as for `evaluate`. Given bare it is labels if it has gains but neither ranks nor
        confidences, and else predictions.
    path : str or path
        The file to write; its name ends in .parquet. It is written completely or not at all.
    threads : int, optional
        The number of threads; by default the number of CPUs.
    memory : int
        A limit in bytes for the rows that are sorted, which are held in memory, and another for
        scattered rows that are grouped by query: if these need more, temporary files are used.
    progress : bool or callable, optional
        True prints progress on standard error. A function is called with the number of rows done
        and their total.

    Returns
    -------
    dict
        "path", "role", the description of the input, and how many queries and items were written;
        "null_items" and "tied_ranks", which the new file does not have.

    Raises
    ------
    InputError
        If the input is broken, or has a query in two rows of lists.
    UsageError
        If the file cannot be written.
    ResourceError
        If the rows need more than `memory`.

    Notes
    -----
    Long predictions with `Predictions.in_order` are written in the order of their rows, labels with
    `Labels.binary` without gains. Where several columns make a query, their joined text is written.

    Examples
    --------
    >>> import rankmill
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> run = pa.table({"qid": ["q2", "q1", "q2"], "docno": [7, 8, 9], "score": [0.1, 0.5, 0.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     told = rankmill.convert(run, f"{folder}/run.parquet")
    ...     rows = pq.read_table(f"{folder}/run.parquet").to_pylist()
    >>> told["role"], told["queries"], told["items"]
    ('predictions', 2, 3)
    >>> rows[1]
    {'query_id': 'q2', 'items': [9, 7], 'scores': [0.9, 0.1]}
    """
    memory, report = positive(memory, "memory"), progress_of(progress)
    check_path(path)
    with ExitStack() as stack:
        role, one = open_as(source, memory)
        stack.callback(one.source.close)
        (one,) = alike([one])
        workers = stack.enter_context(Workers(threads))
        write = partial(_written, path, role, one, workers, memory, report)
        return read_in_order(write, one.columns)


def _written(
    path: str | Path,
    role: Role,
    one: Input,
    workers: Workers,
    memory: int,
    progress: Progress | None,
    together: bool,
) -> dict[str, Any]:
    """Read, sort and write an input; return what `convert` does."""
    rows = _Rows(one, role)
    read = map_lists(rows.of, one.source, one.columns, workers, together=together, memory=memory)
    with closing(read) as blocks:
        table = rows.held(blocks, memory, progress)
    order = _order(table.column(0), one.source.name)
    write_files([(path, partial(_write, table=table, order=order, target=rows.target))])
    return {
        "path": str(path),
        "role": role,
        "input": one.described(rows.rows),
        "queries": len(table),
        "items": sum(len(chunk.flatten()) for chunk in table.column("items").chunks),
        "null_items": rows.nulls,
        "tied_ranks": rows.tied if one.columns.rank else 0,
    }


class _Rows:
    """Makes rows of the lists of an input; counts them, their null items and those of equal rank.

    In `schema`, ids are integers, or bytes, which Arrow sorts and takes; `target` is what is
    written.
    """

    def __init__(self, one: Input, role: Role) -> None:
        self._input = one
        self._query, query = _kinds(one, "query")
        self._item, item = _kinds(one, "item")
        fields = [("query_id", self._query), ("items", pa.large_list(self._item))]
        target = [("query_id", query), ("items", _list_of(item))]
        name = one.columns.score or one.columns.gain
        if name is not None:
            self._number = _number_type(one, name)
            numbers = "scores" if role == "predictions" else "gains"
            fields.append((numbers, pa.large_list(self._number)))
            target.append((numbers, _list_of(self._number)))
        self.schema, self.target = pa.schema(fields), pa.schema(target)
        self.rows = self.nulls = self.tied = 0

    def of(self, lists: Lists) -> _Block:
        """The rows of some lists."""
        source = lists.place.source
        offsets = arrow_of(lists.offsets)
        items = _ids(lists.items, self._item, f"{source}: column {self._input.columns.item!r}")
        columns = [
            _ids(lists.queries, self._query, f"{source}: column {self._input.columns.query!r}"),
            pa.LargeListArray.from_arrays(offsets, items),
        ]
        if len(self.schema) > 2:
            numbers = np.empty(0) if lists.numbers is None else lists.numbers
            columns.append(
                pa.LargeListArray.from_arrays(offsets, arrow_of(numbers).cast(self._number))
            )
        rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return rows, lists.rows, lists.nulls, lists.tied

    def held(self, blocks: Iterable[_Block], memory: int, progress: Progress | None) -> Any:
        """Return the rows of blocks as a table, and count them."""
        held, size = [], 0
        for rows, count, nulls, tied in blocks:
            held.append(rows)
            size += rows.nbytes
            if size > memory:
                raise ResourceError(
                    f"{self._input.source.name}: the rows to sort take more than the {memory:,} "
                    "bytes that are allowed: allow more memory"
                )
            self.rows += count
            self.nulls += nulls
            self.tied += tied
            if progress is not None:
                progress(self.rows, self._input.source.rows)
        return pa.Table.from_batches(held, self.schema).combine_chunks()


def _order(ids: Any, name: str) -> Any:
    """Return the places of rows by ascending query id; a query that comes twice is an error."""
    import pyarrow.compute as pc

    order = pc.sort_indices(ids)
    ids = ids.take(order)
    same = pc.equal(ids[1:], ids[:-1])
    if pc.any(same).as_py():
        repeated = ids[1:].filter(same)[0].as_py()
        shown = repeated.decode(errors="backslashreplace") if isinstance(repeated, bytes) else None
        raise RepeatedQueryError(
            0,
            f"{name}: query {repeated if shown is None else repr(shown)} is in two rows; expected "
            "one row per query, as the items are lists: merge or drop its rows",
        )
    return order


def _ids(ids: Any, kind: Any, what: str) -> Any:
    if kinds.is_large_binary(kind):
        return ids_to_arrow(ids, {kind}) if len(ids.keys) else pa.array([], kind)
    try:
        return ids_to_arrow(ids, set()).cast(kind)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{what}: {error}; cast the ids of all files to one integer type, or to strings"
        ) from None


def _kinds(one: Input, role: str) -> tuple[Any, Any]:
    """Return the type in which ids are sorted and held, and that in which they are written."""
    found = {*map(id_type, one.id_types(role))} - {pa.null()}
    if any(not kinds.is_integer(kind) for kind in found):
        text = all(kinds.is_large_string(kind) for kind in found)
        return pa.large_binary(), pa.large_string() if text else pa.large_binary()
    if len(found) != 1:
        unsigned = bool(found) and all(map(kinds.is_unsigned_integer, found))
        found = {pa.uint64() if unsigned else pa.int64()}
    (kind,) = found
    return kind, kind


def _list_of(kind: Any) -> Any:
    return pa.large_list(pa.field("element", kind))


def _number_type(one: Input, name: str) -> Any:
    """The type of confidences or gains: float where all are, which takes half of double."""
    found = {schema.field(name).type for schema in one.source.kinds().values()}
    found = {kind.value_type if is_list_type(kind) else kind for kind in found}
    narrow = all(kinds.is_float32(kind) or kinds.is_float16(kind) for kind in found)
    return pa.float32() if narrow else pa.float64()


def _write(file: BinaryIO, table: Any, order: Any, target: Any) -> None:
    """Write the rows of a table in an order."""
    import pyarrow.parquet as pq

    count = min(GROUP_ROWS, max(1, GROUP_BYTES * len(table) // max(1, table.nbytes)))
    with pq.ParquetWriter(
        file,
        target,
        compression="zstd",
        use_dictionary=["items.list.element"],
        write_statistics=["query_id"],
        write_page_index=True,
        write_page_checksum=True,
        store_schema=False,  # else lists and strings would be read with 64-bit offsets
    ) as writer:
        for start in range(0, len(table), count):
            rows = table.take(order[start : start + count])
            # The bytes of text are written as they were read, valid or not.
            writer.write_table(rows.cast(target, safe=False), row_group_size=count)


def check_path(path: str | Path) -> None:
    """Raise UsageError unless a Parquet file can be written at `path`."""
    if Path(path).suffix.lower() != SUFFIX:
        raise UsageError(
            f"cannot write {path}: what is written is Parquet; expected a name in {SUFFIX}"
        )
    check_target(path)


def converted_lines(told: Mapping[str, Any]) -> list[Facts]:
    """Return what is said of what `rankmill.convert` returned."""
    columns = ", ".join(f"{role}={column}" for role, column in told["input"]["columns"].items())
    rows = [
        ("wrote", told["path"]),
        (told["role"], f"{plural(told['queries'], 'query')}, {plural(told['items'], 'item')}"),
        ("read as", f"{told['input']['shape']}: {columns}"),
    ]
    if told["null_items"]:
        rows.append(("left out", f"{told['null_items']:,} null items"))
    if told["tied_ranks"]:
        rows.append(
            ("equal ranks", f"{plural(told['tied_ranks'], 'item')}: they keep the order of rows")
        )
    return [Facts(rows)]
