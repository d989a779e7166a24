"""convert() writes any input as wide Parquet, sorted by query id."""

from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from rankmill.engine.progress import Progress, progress_of
from rankmill.engine.role import open_as
from rankmill.engine.wide_rows import RowBlocks, write_rows
from rankmill.errors import UsageError, plural, positive
from rankmill.io.whole_files import check_target
from rankmill.show.tables import Facts
from rankmill.sources.input_options import MEMORY, Role
from rankmill.sources.inputs.inputs import Input, alike, map_lists
from rankmill.sources.meaning.later_rows import reading_again
from rankmill.sources.rows.long import ScatteredRowsError
from rankmill.sources.rows.sorted_rows import RepeatedRowError, sorted_rows
from rankmill.threads import Workers

SUFFIX = ".parquet"


@reading_again
def convert(
    source: Any,
    path: str | Path,
    *,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Write labels or predictions of any kind as wide Parquet, sorted by query id.

    The file has one row per query: ``query_id``, ``items`` in rank order, and ``scores`` or
    ``gains`` if the input has them. Integer ids are sorted as numbers, strings as bytes. Evaluating
    the file gives the same values as the input, to the last bit, and is the fastest: if labels need
    more than `memory`, `evaluate` holds one range of ids at a time.

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
        A limit in bytes for the rows that are grouped, and another for those that are sorted. If
        they need more, temporary files are used.
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

    Notes
    -----
    Long predictions with `Predictions.in_order` are written in the order of their rows, labels with
    `Labels.binary` without gains. Where several columns make a query, their joined text is written.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> run = pa.table({"qid": ["q2", "q1", "q2"], "docno": [7, 8, 9], "score": [0.1, 0.5, 0.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     told = convert(run, f"{folder}/run.parquet")
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
        if not one.columns.wide:  # its rows may be adjacent by query; else they are read again
            with suppress(ScatteredRowsError, RepeatedRowError):
                return _written(path, role, one, workers, memory, True, report)
        return _written(path, role, one, workers, memory, False, report)


def _written(
    path: str | Path,
    role: Role,
    one: Input,
    workers: Workers,
    memory: int,
    together: bool,
    progress: Progress | None,
) -> dict[str, Any]:
    """Read, sort and write an input; return what `convert` does."""
    rows = RowBlocks(one, role)
    if not one.columns.wide:
        memory //= 2  # rows are grouped while the lists of others are sorted
    read = map_lists(rows.of, one.source, one.columns, workers, together=together, memory=memory)
    with closing(read) as blocks:
        counted = rows.counted(blocks, progress)
        with closing(sorted_rows(counted, rows.schema, one.source.name, memory)) as ordered:
            queries, items = write_rows(path, ordered, rows.schema)
    return {
        "path": str(path),
        "role": role,
        "input": one.described(rows.rows),
        "queries": queries,
        "items": items,
        "null_items": rows.nulls,
        "tied_ranks": rows.tied if one.columns.rank else 0,
    }


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
