"""convert() writes any input as wide Parquet, sorted by query id."""

from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankmill.columns.ragged import Ragged
from rankmill.engine.job import Progress
from rankmill.engine.wide_rows import RowBlocks
from rankmill.engine.wide_writer import write_rows
from rankmill.errors import InputError, RankmillError, UsageError, positive
from rankmill.results.files import check_target
from rankmill.semantics.choices import DEFAULT
from rankmill.sources.asked import Role
from rankmill.sources.inputs import MEMORY, Input, map_lists, open_input
from rankmill.sources.roles import check_comparable
from rankmill.sources.sorting import sorted_rows
from rankmill.threads import Workers

SUFFIX = ".parquet"
# Confidences are taken along if there are any, even if they do not order the lists.
_WITH_SCORES = replace(DEFAULT, order="confidence")


def convert(
    source: Any,
    path: str | Path,
    *,
    role: Role | None = None,
    format: str | None = None,
    columns: Sequence[str] | str | None = None,
    query: str | None = None,
    item: str | None = None,
    score: Any = None,
    rank: str | None = None,
    gain: Any = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write labels or predictions of any kind as wide Parquet, sorted by query id.

    The file has a row for each query: ``query_id``, ``items`` in rank order, and ``scores`` or
    ``gains`` if the input has them. Integer ids are sorted as numbers, strings as bytes. Evaluating
    the file gives the same values as the input, to the last bit, and reads least: where labels need
    more than `memory`, `evaluate` holds one range of ids at a time.

    Long predictions are written in the order in which they are evaluated: by rank if there is one,
    else by falling confidence, else as they come. Null items are left out, so the audit of the new
    file counts none; nor does it count equal ranks. Queries with an empty list are kept, as are
    repeated items and gains of 0 or less.

    Parameters
    ----------
    source : str, path, list of paths, pyarrow.Table or Ragged
        The input, as for `evaluate`.
    path : str or path
        The file to write; its name ends in .parquet. It is written whole or not at all.
    role : {"labels", "predictions"}, optional
        What the input is. By default it is labels if it has gains but neither ranks nor
        confidences, and else predictions.
    format, columns
        The format of files that do not tell it, and the names of columns without a header.
    query, item, score, rank, gain : str, optional
        The names of columns that are not found by their usual names. Beside a `Ragged`, `score` or
        `gain` is a Ragged.
    threads : int, optional
        The number of threads; by default the number of CPUs.
    memory : int
        A limit in bytes for the rows that are grouped, and another for those that are sorted. If
        they need more, temporary files are used.
    progress : callable, optional
        A function that is called with the number of rows done and the number of all.

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
    memory = positive(memory, "memory")
    check_path(path)
    chosen = {"query": query, "item": item, "rank": rank}
    told = {"memory": memory, "told_format": format, "columns": columns}
    with ExitStack() as stack:
        role, one = open_as(source, role, chosen, {"score": score, "gain": gain}, told)
        stack.callback(one.source.close)
        check_comparable((one.source, one.columns), (one.source, one.columns))
        workers = stack.enter_context(Workers(threads))
        rows = RowBlocks(one, role)
        read = map_lists(rows.of, one.source, one.columns, workers, memory=memory)
        blocks = stack.enter_context(closing(read))
        counted = rows.counted(blocks, progress)
        ordered = sorted_rows(counted, rows.schema, one.source.name, memory)
        queries, items = write_rows(path, stack.enter_context(closing(ordered)), rows.schema)
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


def open_as(
    source: Any,
    role: Role | None,
    chosen: dict[str, str | None],
    numbers: dict[str, Any],
    told: dict[str, Any],
) -> tuple[Role, Input]:
    """Open an input as what it is: told, or found by its columns.

    Parameters
    ----------
    source, role
        As for `convert`.
    chosen
        The columns of query ids, items and ranks that the caller named.
    numbers
        "score" and "gain": columns, or a Ragged.
    told
        Other arguments of `open_input`.
    """
    score, rank, gain = numbers["score"], chosen["rank"], numbers["gain"]
    of_labels = {name: column for name, column in chosen.items() if name != "rank"}
    if role is None and gain is not None and score is None and rank is None:
        role = "labels"
    if role == "labels":
        if score is not None or rank is not None:
            raise UsageError("labels have no score and no rank: leave them out, or give a gain")
        return role, open_input(source, role, gain, of_labels, **told)
    if gain is not None:
        raise UsageError("predictions have no gain: leave it out, or say that these are labels")

    def as_predictions() -> Input:
        return open_input(source, "predictions", score, chosen, semantics=_WITH_SCORES, **told)

    if role == "predictions" or score is not None or rank is not None:
        return "predictions", as_predictions()
    try:
        found = as_predictions()
    except InputError as error:
        try:
            return "labels", open_input(source, "labels", None, of_labels, **told)
        except RankmillError:
            raise error from None
    if found.columns.score or found.columns.rank or isinstance(source, Ragged):
        return "predictions", found
    with suppress(InputError):
        labels = open_input(found.source, "labels", None, of_labels, **told)
        if labels.columns.gain:
            return "labels", labels
    return "predictions", found
