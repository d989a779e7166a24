"""Footers: what pyarrow reads there, and nothing that a broken one could do harm with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import strategies
from rankmill.sources.footers import read_row_groups


@pytest.mark.parametrize("kind", [*strategies.INTEGER_TYPES, *strategies.STRING_TYPES], ids=str)
def test_footers_are_read_as_pyarrow_reads_them(tmp_path: Path, kind: pa.DataType) -> None:
    integers = pa.types.is_integer(kind)
    ids = [one for one in strategies.INTEGERS if strategies.fits(one, kind)]
    ids = sorted(ids) if integers else sorted(strategies.STRINGS, key=str.encode)
    lists = pa.array([[1, None]] * len(ids) * 20)
    path = tmp_path / "labels.parquet"
    table = pa.table({"other": lists, "q": strategies.array(ids * 20, kind), "items": lists})
    pq.write_table(table, path, row_group_size=7)
    metadata = pq.read_metadata(path)
    found = read_row_groups(str(path), 5, table.schema, "q", "items")
    assert len(found) == metadata.num_row_groups
    for number, group in enumerate(found):
        columns = [metadata.row_group(number).column(i) for i in (1, 2)]
        bounds = columns[0].statistics
        low, high = (bounds.min, bounds.max) if integers else (bounds.min_raw, bounds.max_raw)
        assert group == (
            5,
            number,
            metadata.row_group(number).num_rows,
            columns[1].num_values,
            columns[0].total_compressed_size,
            columns[1].total_compressed_size,
            low,
            high,
        )


def test_broken_footers_tell_nothing_or_something(tmp_path: Path) -> None:
    """No byte of a footer, whatever it is, may end the process or keep it busy."""
    path = tmp_path / "labels.parquet"
    table = pa.table({"q": np.arange(30), "items": pa.array([[1, 2]] * 30)})
    pq.write_table(table, path, row_group_size=7)
    raw = path.read_bytes()
    size = int.from_bytes(raw[-8:-4], "little")
    draw = np.random.default_rng(0)
    nothing = 0
    for place in range(len(raw) - 8 - size, len(raw)):
        broken = bytearray(raw)
        broken[place] = draw.integers(256)
        path.write_bytes(broken)
        nothing += not read_row_groups(str(path), 0, table.schema, "q", "items")
    assert nothing > size // 4
    for end in range(0, 200, 7):
        path.write_bytes(raw[:end])
        assert read_row_groups(str(path), 0, table.schema, "q", "items") == []
