"""Write fused lists as a run of TREC: query, Q0, item, rank, score and tag."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.errors import InputError
from rankmill.io.whole_files import whole_file

TAG = "rankmill"


def write_run(path: str | Path, tables: Iterable[Any], schema: Any) -> tuple[int, int]:
    """Write tables of rows; return how many queries and items were written.

    A query without items has no line. Scores have all their digits.
    """
    rows = items = 0
    with whole_file(path) as file:
        for table in tables:
            rows += len(table)
            for batch in table.to_batches():
                lines = _lines(batch)
                items += len(lines)
                if len(lines):
                    file.write(_bytes_of(lines))
    return rows, items


def _lines(batch: Any) -> Any:
    """The lines of a batch, without their ends."""
    import pyarrow.compute as pc

    lists = batch.column(1)
    lengths = np.diff(numbers_of(lists.offsets))
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    ranks = arrow_of(np.arange(1, len(starts) + 1) - starts)
    queries = _field(batch.column(0), "query").take(
        arrow_of(np.repeat(np.arange(len(lengths)), lengths))
    )
    fields = [
        queries,
        pa.scalar(b"Q0", pa.large_binary()),
        _field(lists.flatten(), "item"),
        _text(ranks),
        _text(batch.column(2).flatten()),
        pa.scalar(f"{TAG}\n".encode(), pa.large_binary()),
    ]
    return pc.binary_join_element_wise(*fields, pa.scalar(b" ", pa.large_binary()))


def _field(ids: Any, role: str) -> Any:
    """Ids as fields of a line; raises InputError if one would be read as something else."""
    import pyarrow.compute as pc

    if pa.types.is_integer(ids.type):
        return _text(ids)
    comment = "|^#" if role == "query" else ""
    broken = pc.match_substring_regex(ids, rf"^$|[\s\x0b]{comment}")
    place = pc.index(broken, True).as_py()
    if place >= 0:
        shown = ids[place].as_py().decode(errors="backslashreplace")
        raise InputError(
            f"the {role} id {shown!r} cannot be in a TREC run, whose fields are separated by "
            "white space, and whose lines that begin with # are comments: write .parquet"
        )
    return ids


def _text(numbers: Any) -> Any:
    return numbers.cast(pa.large_string()).cast(pa.large_binary())


def _bytes_of(lines: Any) -> Any:
    """The bytes of all lines, one after the other."""
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])]
