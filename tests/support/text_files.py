"""Write the rows of a table in every format of text, for tests."""

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

Rows = list[tuple[Any, Any, float]]
Lists = dict[Any, list[tuple[Any, float]]]


def compress(content: bytes, kind: str) -> bytes:
    """The content as `gz`, `bz2`, `zst` or `lz4`; as it is for an empty kind."""
    if kind == "gz":
        return gzip.compress(content)
    if kind == "bz2":
        return bz2.compress(content)
    if not kind:
        return content
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, {"zst": "zstd", "lz4": "lz4"}[kind]) as stream:
        stream.write(content)
    return bytes(sink.getvalue())


def quoted(text: Any) -> str:
    """A field of CSV, in quotes if it needs them."""
    field = str(text)
    special = any(one in field for one in ',"\n\r\t ')
    return '"' + field.replace('"', '""') + '"' if special else field


def long_text(lists: Lists, number: str, delimiter: str = ",", end: str = "\n") -> bytes:
    """A row an item, with a header."""
    lines = [delimiter.join(("query_id", "item_id", number))]
    lines += [
        delimiter.join((quoted(query), "" if item is None else quoted(item), repr(value)))
        for query, items in lists.items()
        for item, value in items
    ]
    return (end.join(lines) + end).encode()


def wide_text(lists: Lists, number: str, separator: str, delimiter: str = ",") -> bytes:
    """A row a query, with items and numbers parted by a separator in their cells."""

    def cell(values: list[Any]) -> str:
        text = separator.join("" if one is None else str(one) for one in values)
        return '"' + text.replace('"', '""') + '"'

    lines = [delimiter.join(("query_id", "items", number + "s"))]
    for query, items in lists.items():
        cells = cell([item for item, _ in items]), cell([repr(value) for _, value in items])
        lines.append(delimiter.join((quoted(query), *cells)))
    return ("\n".join(lines) + "\n").encode()


def brackets_text(lists: Lists, number: str, write: Any = json.dumps) -> bytes:
    """A row a query, with lists as JSON (or Python) writes them in cells of CSV."""
    lines = [f"query_id,items,{number}s"]
    for query, items in lists.items():
        cells = [[item for item, _ in items], [value for _, value in items]]
        fields = ['"' + write(one).replace('"', '""') + '"' for one in cells]
        lines.append(",".join((quoted(query), *fields)))
    return ("\n".join(lines) + "\n").encode()


def pairs_text(lists: Lists) -> bytes:
    """A row a query, with each item followed by its confidence in one cell."""
    lines = ["id,predictions"]
    for query, items in lists.items():
        lines.append(f"{quoted(query)},{' '.join(f'{item} {value!r}' for item, value in items)}")
    return ("\r\n".join(lines) + "\r\n").encode()


def run_text(lists: Lists, blank: str = " ") -> bytes:
    """A TREC run; its ranks are wrong on purpose, because they do not count."""
    lines = [
        blank.join((str(query), "Q0", str(item), "7", f"{value:.17e}", "tag"))
        for query, items in lists.items()
        for item, value in items
    ]
    return ("\n".join(lines) + "\n").encode()


def qrels_text(lists: Lists, columns: int = 4) -> bytes:
    """TREC qrels of four or three columns."""
    middle = "\t0 " if columns == 4 else "  "
    lines = [
        f"{query}{middle}{item} {value:g}"
        for query, items in lists.items()
        for item, value in items
    ]
    return ("\r\n".join(lines) + "\r\n").encode()


def json_lines(lists: Lists, number: str) -> bytes:
    """An object a query."""
    rows = [
        {"query_id": query, "items": [i for i, _ in items], number + "s": [n for _, n in items]}
        for query, items in lists.items()
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def json_rows(lists: Lists, number: str) -> bytes:
    """An object an item."""
    rows = [
        {"item_id": item, number: value, "query_id": query, "more": {"a": [1]}}
        for query, items in lists.items()
        for item, value in items
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def twin(lists: Lists, number: str, *, wide: bool) -> Any:
    """The same rows as a table."""
    if wide:
        columns = {
            "query_id": pa.array(list(lists)),
            "items": pa.array([[item for item, _ in items] for items in lists.values()]),
            number + "s": pa.array([[n for _, n in items] for items in lists.values()]),
        }
        return pa.table(columns)
    rows = [(query, item, n) for query, items in lists.items() for item, n in items]
    queries, items, numbers = zip(*rows, strict=True)
    return pa.table({"query_id": queries, "item_id": items, number: numbers})


def write(folder: Path, name: str, content: bytes, compression: str = "") -> str:
    """Write a file, compressed by its suffix, and return its path."""
    path = folder / (name + (f".{compression}" if compression else ""))
    path.write_bytes(compress(content, compression))
    return str(path)
