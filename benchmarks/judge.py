"""Read files without rankmill, with pyarrow or Python, and score them with the tests' oracle.

Each function prints its results, because it runs in a process that pyarrow may end.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import feather

from broken import SIDES

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
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
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_string_view(column.type):
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


# ------------------------------------------------------------------ other formats


class UndecidedError(Exception):
    """A file of which nobody says what it holds, such as an id with a blank in it."""


Row = dict[str, Any]
"""What a row holds by role: query, item, rank, and number for gains and scores."""

_INTEGER = re.compile(r"\s*[+-]?[\d_]+\s*")
_CANONICAL = re.compile(r"0|-?[1-9]\d{0,17}")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


def print_formats(sides: dict[str, tuple[str, Path]], roles: Roles, metrics: Sequence[str]) -> None:
    """Print the metrics of files of other formats, by their kinds; nothing where undecided."""
    if expected := evaluated(sides, roles, metrics):
        print(json.dumps(expected))


def evaluated(
    sides: dict[str, tuple[str, Path]], roles: Roles, metrics: Sequence[str]
) -> dict[str, Any] | None:
    """The metrics of files, and how many queries count; None where undecided."""
    broken = zipfile.BadZipFile, lzma.LZMAError, zlib.error, NotImplementedError, RuntimeError
    try:
        labels, predictions = (lists_of(*sides[side], roles[side], side) for side in SIDES)
        if "gain" not in roles["labels"] and sides["labels"][0] not in BY_SCORE:
            labels = {query: [item for item, _ in pairs] for query, pairs in labels.items()}
    except (UndecidedError, ValueError, TypeError, KeyError, EOFError, OSError, *broken):
        return None  # errors of pyarrow are among these
    except MemoryError:  # pyarrow's, of damage in a column that rankmill does not read
        return None
    expected = oracle.evaluate(labels, predictions, metrics)
    return {"queries": expected.queries, **expected.metrics}


def lists_of(kind: str, path: Path, roles: dict[str, str], side: str) -> dict[Any, Any]:
    """The lists of a file, read without rankmill."""
    number = "gain" if side == "labels" else "score"
    columns = {role: roles[role] for role in ("query", "item", "rank") if role in roles}
    if number in roles:
        columns["number"] = roles[number]
    rows = READERS[kind.split(",")[0] if kind not in READERS else kind](path, columns, side)
    if any(isinstance(row["item"], list) for row in rows):
        found = {}
        for row in rows:
            items = row["item"] or []
            numbers = row["number"] or [] if "number" in columns else [None] * len(items)
            found[row["query"]] = list(zip(items, numbers, strict=True))
        if None in found or len(found) < len(rows):
            raise UndecidedError
        return found
    order = "rank" if "rank" in columns else "confidence" if number == "score" else "file"
    ordered = order != "confidence" or "number" in columns or kind in BY_SCORE
    return oracle.lists_of_rows(
        [(row["query"], row["item"], row.get("rank"), row.get("number")) for row in rows],
        order if ordered else "file",
    )


def rows_of_table(read: Callable[[str], pa.Table]) -> Callable[..., list[Row]]:
    def rows(path: Path, columns: dict[str, str], side: str) -> list[Row]:
        table = read(str(path))
        table.validate(full=True)
        found = {role: values(table.column(name)) for role, name in columns.items()}
        ids = [one for role in ("query", "item") for one in found[role]]
        ids += [one for listed in ids if isinstance(listed, list) for one in listed]
        if any(isinstance(one, bytes) and (one == b"" or one != one.strip()) for one in ids):
            raise UndecidedError
        return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]

    return rows


def read_feather(path: str) -> pa.Table:
    return feather.read_table(path, memory_map=False)


def text_of(path: Path) -> str:
    raw = path.read_bytes()
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            raw = archive.read(*archive.namelist())
    elif path.suffix in (".gz", ".xz", ".bz2"):
        raw = {".gz": gzip, ".xz": lzma, ".bz2": bz2}[path.suffix].decompress(raw)
    elif path.suffix in (".zst", ".lz4"):
        kind = {".zst": "zstd", ".lz4": "lz4"}[path.suffix]
        with pa.CompressedInputStream(pa.BufferReader(raw), kind) as stream:
            raw = stream.read()
    text = raw.decode()
    if re.search(r"[^\n\t -\U0010ffff]|\ufeff", text):  # controls
        raise UndecidedError
    return text


def rows_of_csv(delimiter: str) -> Callable[..., list[Row]]:
    def rows(path: Path, columns: dict[str, str], side: str) -> list[Row]:
        header, *lines = csv.reader(
            io.StringIO(text_of(path), newline=""), delimiter=delimiter, strict=True
        )
        if len(set(header)) < len(header) or any(len(line) != len(header) for line in lines):
            raise UndecidedError
        return [cells(dict(zip(header, line, strict=True)), columns) for line in lines]

    return rows


def cells(row: Row, columns: dict[str, str]) -> Row:
    """The cells of a row of text by role; those that are JSON are lists."""
    found: Row = {}
    for role, name in columns.items():
        cell = row[name]
        if cell.startswith("["):
            listed = json.loads(cell)
            found[role] = [as_number(one) if role == "number" else as_text(one) for one in listed]
        else:
            found[role] = as_text(cell) if role in ("query", "item") else as_number(cell)
    return found


def as_text(cell: Any) -> bytes | None:
    """An id; integers are as their text, if it is the only one that they have."""
    if cell is None:
        return None
    text = str(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell
    if not isinstance(text, str) or not text or text != text.strip() or set(text) & set("\"'\\"):
        raise UndecidedError
    if _INTEGER.fullmatch(text) and not _CANONICAL.fullmatch(text):
        raise UndecidedError
    return text.encode()


def as_number(cell: Any) -> float:
    if isinstance(cell, str) and not _NUMBER.fullmatch(cell):
        raise UndecidedError
    if isinstance(cell, bool) or not math.isfinite(number := float(cell)):
        raise UndecidedError
    return number


def rows_of_trec(path: Path, columns: dict[str, str], side: str) -> list[Row]:
    found = []
    for line in text_of(path).removesuffix("\n").split("\n"):
        fields = line.split()
        if len(fields) != (4 if side == "labels" else 6) or fields[0].startswith("#"):
            raise UndecidedError
        number = as_number(fields[3 if side == "labels" else 4])
        found.append({"query": as_text(fields[0]), "item": as_text(fields[2]), "number": number})
    return found


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; UndecidedError if it has a key twice."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise UndecidedError
    return dict(pairs)


def rows_of_json_lines(path: Path, columns: dict[str, str], side: str) -> list[Row]:
    lines = text_of(path).removesuffix("\n").split("\n")
    return rows_of_records([json.loads(line, object_pairs_hook=once) for line in lines], columns)


def rows_of_json_records(path: Path, columns: dict[str, str], side: str) -> list[Row]:
    return rows_of_records(json.loads(text_of(path), object_pairs_hook=once), columns)


def rows_of_records(told: list[Row], columns: dict[str, str]) -> list[Row]:
    found: list[Row] = []
    for row in told:
        items = [as_text(one) for one in row[columns["item"]]]
        found.append({"query": as_text(row[columns["query"]]), "item": items})
        if "number" in columns:
            found[-1]["number"] = [as_number(one) for one in row[columns["number"]]]
    ids = {type(row[columns["query"]]) for row in told}
    items = {type(one) for row in told for one in row[columns["item"]] if one is not None}
    if len(ids) > 1 or len(items) > 1:  # a number, and a text that may stand for it
        raise UndecidedError
    return found


def rows_of_json_by_query(path: Path, columns: dict[str, str], side: str) -> list[Row]:
    return [
        {"query": as_text(query), "item": as_text(item), "number": as_number(number)}
        for query, items in json.loads(text_of(path), object_pairs_hook=once).items()
        for item, number in items.items()
    ]


def read_parquet(path: str) -> pa.Table:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        return pa.concat_tables([file.read_row_group(one) for one in range(file.num_row_groups)])


READERS: dict[str, Callable[..., list[Row]]] = {
    "Parquet": rows_of_table(read_parquet),
    "Arrow file": rows_of_table(lambda path: pa.ipc.open_file(path).read_all()),
    "Arrow stream": rows_of_table(lambda path: pa.ipc.open_stream(path).read_all()),
    "Feather": rows_of_table(read_feather),
    "CSV": rows_of_csv(","),
    "CSV, wide": rows_of_csv(","),
    "TSV": rows_of_csv("\t"),
    "TREC": rows_of_trec,
    "JSON Lines": rows_of_json_lines,
    "JSON records": rows_of_json_records,
    "JSON by query": rows_of_json_by_query,
}
BY_SCORE = ("TREC", "JSON by query")
"""Formats whose rows stand in no order, and which have a number in each."""
