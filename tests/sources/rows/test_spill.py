"""Long rows in any order beyond memory: how they are grouped on disk, and read a second time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from portions import in_batches
from rankmill.io.overflow import Overflow
from rankmill.sources.inputs import inputs as inputs_module
from rankmill.sources.rows import long

pytestmark = pytest.mark.small
QUERIES, EACH = 200, 8


def sides(kind: str, holes: float = 0.0, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """Return labels, and scattered rows: ids of a kind, and a share of items that are null."""
    draw = np.random.default_rng(seed)
    rows = draw.permutation(QUERIES * EACH)
    items = rows * 7 % 300
    columns = {
        "user_id": pa.array(rows // EACH),
        "item_id": pa.array(items, mask=draw.random(len(rows)) < holes),
        "score": draw.integers(0, 50, len(rows)) / 8,
    }
    labels = {"user_id": pa.array(np.arange(QUERIES) * 2), "item_id": np.arange(QUERIES) * 3 % 300}
    if kind == "text":
        for table in (columns, labels):
            for name in ("user_id", "item_id"):
                table[name] = pa.array(table[name]).cast(pa.string())
    return pa.table(labels), pa.table(columns)


def noted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, argument: int) -> list[Any]:
    """Return the list of an argument of all calls of a function."""
    calls: list[Any] = []
    usual = getattr(owner, name)

    def called(*some: Any, **more: Any) -> Any:
        calls.append(some[argument])
        return usual(*some, **more)

    monkeypatch.setattr(owner, name, called)
    return calls


@pytest.mark.rows(3)
@pytest.mark.lengthy
@pytest.mark.parametrize("kind", ["integers", "text"])
@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("rows_of_a_part", [1, 3, 1 << 10])
@pytest.mark.parametrize("threads", [1, 2])
def test_portions_do_not_change_a_bit(
    monkeypatch: pytest.MonkeyPatch, kind: str, holes: float, rows_of_a_part: int, threads: int
) -> None:
    labels, run = sides(kind, holes)
    monkeypatch.setattr(long, "ROWS_OF_A_PART", rows_of_a_part)
    metrics = ["map@5", "ndcg@3", "gap", "gap@2"]
    whole = rankmill.evaluate(labels, run, metrics)
    batches = pa.Table.from_batches(run.to_batches(max_chunksize=97))
    for memory in (1, 30_000):
        found = rankmill.evaluate(labels, batches, metrics, memory=memory, threads=threads)
        assert found.metrics == whole.metrics
        assert found.audit == whole.audit


def test_rows_are_cut_many_at_a_time(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As parts that are written and read take as long with one row as with a thousand."""
    labels, run = sides("integers")
    pq.write_table(run, tmp_path / "run.parquet", row_group_size=100)
    monkeypatch.setattr(long, "ROWS_OF_A_PART", 100)
    written = noted(monkeypatch, Overflow, "add", 1)
    memory = len(run) * long.BYTES_A_ROW  # so that there are about three partitions
    source = in_batches(tmp_path / "run.parquet", 100, memory=memory - 1)  # a batch a row group
    rankmill.evaluate(labels, source, "map@5", memory=memory - 1)
    assert 4 < len(written) < 50
    assert sum(pa.py_buffer(one).size for one in written) > 24 * len(run)


@pytest.mark.parametrize("case", ["gap", "gap@2", "null items"])
def test_a_second_pass_reads_confidences_alone_where_it_can(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    labels, run = sides("integers", 0.2 if case == "null items" else 0.0)
    path = str(tmp_path / "run.parquet")
    pq.write_table(run, path, row_group_size=1000)
    metric = "gap@2" if case == "gap@2" else "gap"
    whole = rankmill.evaluate(labels, path, metric)
    asked = noted(monkeypatch, inputs_module, "read_batches", 2)
    found = rankmill.evaluate(labels, path, metric, memory=1)
    assert found.metrics == whole.metrics
    assert (["score"] in asked) == (case == "gap")
