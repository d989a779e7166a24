"""Columns that are made of others: where they are made, and where they cost nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankmill import Labels, Predictions
from rankmill.sources.inputs.inputs import open_inputs

WIDE = {"items": [[1, 2], [3], [4, 5, 6]], "scores": [[0.5, 0.25], [1.0], [3.0, 2.0, 1.0]]}
LONG = {"item_id": [1, 2, 3], "score": [0.5, 0.25, 1.0]}


def as_text(table: pa.Table) -> pa.Table:
    """The table with ids of text."""
    types = [
        pa.large_list(pa.string()) if one.name == "items" else pa.string() for one in table.schema
    ]
    kept = [
        one if "score" in one.name else one.with_type(kind)
        for one, kind in zip(table.schema, types, strict=True)
    ]
    return table.cast(pa.schema(kept))


@pytest.mark.small
@pytest.mark.parametrize("columns", [WIDE, LONG])
@pytest.mark.parametrize("text", [False, True])
def test_parquet_of_integers_is_read_as_it_stands(columns: Any, text: bool, tmp_path: Path) -> None:
    """Integers are read as they stand; texts are looked at, and nothing else."""
    table = pa.table({"query_id": [1, 2, 3], **columns})
    table = as_text(table) if text else table
    path = tmp_path / "both.parquet"
    pq.write_table(table, path, row_group_size=1)
    with open_inputs(Labels(path, binary=True), {"run": Predictions(path)}) as (labels, runs):
        for one in (labels, runs["run"]):
            source, of = one.source, one.columns
            assert ("derived" in source.pieces.__qualname__) == text
            (block, *_) = [batch for piece in source.pieces(of.names()) for batch in piece]
            data = block().data if callable(block) else block.data
            assert data.schema.field(of.item).type == table.schema.field(of.item).type
