"""Read Parquet files with pyarrow, and score them with the oracle of the tests.

Each function prints its results, because it runs in a process that pyarrow may end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broken import SIDES

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import oracle

METRICS = ("map@3", "ndcg@5", "recall", "gap")
Files = dict[str, Path]
Roles = dict[str, dict[str, str]]
"""Of each side, the columns by their roles: query, item, score, rank, gain."""


def print_evaluation(files: Files, roles: Roles) -> None:
    """Print the metrics and the audit, and how many queries count."""
    labels, predictions = read_sides(files, roles)
    used = roles["predictions"]
    by_confidence = (
        "score" in used and "rank" not in used and not is_wide(files["predictions"], used)
    )
    expected = oracle.evaluate(labels, predictions, METRICS, by_confidence=by_confidence)
    if "rank" in used:
        del expected.audit["tied_ranks"]  # the oracle counts equal confidences only
    print(json.dumps({"queries": expected.queries, **expected.metrics, **expected.audit}))


def print_value(files: Files, roles: Roles, query: int | str) -> None:
    """Print one query's value, of the first metric; none without labels, as it does not count."""
    labels, predictions = (lists.get(as_id(query)) for lists in read_sides(files, roles, query))
    value = oracle.query_value(METRICS[0], labels, predictions)
    print(json.dumps({"value": value if oracle.label_gains(labels) else None}))


def read_sides(files: Files, roles: Roles, query: int | str | None = None) -> list[dict[Any, Any]]:
    labels, predictions = (lists_read(files[side], roles[side], query) for side in SIDES)
    if "gain" not in roles["labels"]:
        labels = {query: [item for item, _ in pairs] for query, pairs in labels.items()}
    return [labels, predictions]


def lists_read(
    path: Path, roles: dict[str, str], query: int | str | None
) -> dict[Any, list[tuple[Any, Any]]]:
    """Of all queries, or of one, the items with their numbers in order.

    Row groups are read one by one: read together, values that are missing in one are taken from the
    next.
    """
    with pq.ParquetFile(path) as file:
        groups = [
            file.read_row_group(group, list(roles.values())) for group in range(file.num_row_groups)
        ]
    table = pa.concat_tables(groups)
    if query is not None:  # other queries are ignored, even if they are repeated
        table = table.filter(pc.field(roles["query"]) == query)
    read = {role: values(table.column(name)) for role, name in roles.items()}
    numbers = read.get("gain") or read.get("score") or [None] * len(table)
    if not is_wide(path, roles):
        rows = zip(read["query"], read["item"], read.get("rank", numbers), numbers, strict=True)
        order = "rank" if "rank" in roles else "confidence" if "score" in roles else "file"
        return oracle.lists_of_rows(rows, order)
    if None in read["query"] or len(set(read["query"])) < len(table):
        raise ValueError("a query id is null, or repeated")
    return {
        query: list(zip(items or [], scores or [None] * len(items or []), strict=True))
        for query, items, scores in zip(read["query"], read["item"], numbers, strict=True)
    }


def is_wide(path: Path, roles: dict[str, str]) -> bool:
    return pa.types.is_nested(pq.read_schema(path).field(roles["item"]).type)


def values(column: pa.ChunkedArray) -> list[Any]:
    """Values as Python has them, but text as bytes: it may be no UTF-8."""
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
        column = column.cast(pa.list_(pa.binary()))
    return column.to_pylist()


def as_id(query: int | str) -> int | bytes:
    return query.encode() if isinstance(query, str) else query


# ------------------------------------------------------------------ contradictions


def print_contradictions(path: Path, roles: dict[str, str]) -> None:
    """Print where columns of a file are not what its footer says."""
    columns = list(roles.values())
    with pq.ParquetFile(path) as file:
        rows = 0
        for number in range(file.num_row_groups):
            footer = file.metadata.row_group(number)
            try:
                table = file.read_row_group(number, columns)
            except (pa.ArrowException, OSError) as error:
                print(f"row group {number} cannot be read: {error}")
                return
            rows += len(table)
            if len(table) != footer.num_rows:
                print(f"row group {number}: {len(table)} rows, in the footer {footer.num_rows}")
            chunks = [footer.column(place) for place in range(footer.num_columns)]
            for name in columns:
                told = next(c.num_values for c in chunks if c.path_in_schema.split(".")[0] == name)
                if count(table.column(name)) != told:
                    found = count(table.column(name))
                    print(f"row group {number}, {name}: {found} values, in the footer {told}")
        if rows != file.metadata.num_rows:
            print(f"rows of all row groups do not add up to {file.metadata.num_rows}")


def count(column: pa.ChunkedArray) -> int:
    """Values as footers count them: a list without any, and a null, are one."""
    if not pa.types.is_nested(column.type):
        return len(column)
    return sum(max(1, length or 0) for length in pc.list_value_length(column).to_pylist())
