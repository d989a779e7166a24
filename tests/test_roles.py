"""No column is silently misread: what is found, what is asked about, what is told as not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import rankmill
from cli_runs import process

LABELS = pa.table({"qid": ["a", "a", "b"], "docno": ["d3", "d2", "d1"]})
RUN = pa.table({"qid": ["a", "a", "a", "b"], "docno": ["d1", "d2", "d3", "d1"]})
WIDE = pa.table({"qid": ["a", "b"], "items": [["d1", "d2", "d3"], ["d1"]]})
NUMBERS = [0.1, 0.2, 0.9, 0.3]
LISTS = [[0.1, 0.2, 0.9], [0.3]]
AS_READ, BY_NUMBERS = (1 / 2 + 2 / 3) / 2, 1.0  # AP of query "a" in either order; that of "b" is 1


def plus(table: pa.Table, **columns: Any) -> pa.Table:
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


# ------------------------------------------------------------------ what was not read


def test_columns_that_are_not_read_are_told(files: Any, run_cli: Any) -> None:
    more = {"tag": ["x"] * 4, "rank": [1, 2, 3, 1], "score": NUMBERS}
    paths = files(LABELS, plus(RUN, **more))
    result = rankmill.evaluate(*paths, ["map"])
    assert result.inputs["predictions"]["unread"] == ["tag", "score"]
    assert "unread" not in result.inputs["labels"]
    assert result.to_dict()["inputs"] == result.inputs
    lines = run_cli("evaluate", *paths, "-m", "map").stdout.splitlines()
    (told,) = [line for line in lines if line.startswith("predictions ")]
    assert told.endswith("query = qid, item = docno, rank = rank; not read: tag, score)")
    (told,) = [line for line in lines if line.startswith("labels ")]
    assert "not read" not in told
    result = rankmill.evaluate(*paths, ["gap"])
    assert result.inputs["predictions"]["unread"] == ["tag"]


def test_the_first_of_several_files_tells_and_long_lists_are_cut(tmp_path: Path) -> None:
    names = [f"feature_{number}" for number in range(12)]
    first = plus(RUN, score=NUMBERS, **dict.fromkeys(names, NUMBERS))
    pq.write_table(first.slice(0, 3), tmp_path / "a.parquet")
    pq.write_table(plus(RUN, score=NUMBERS, other=NUMBERS).slice(3), tmp_path / "b.parquet")
    pq.write_table(LABELS, tmp_path / "labels.parquet")
    runs = [str(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    result = rankmill.evaluate(LABELS, runs, ["map"])
    assert result.inputs["predictions"]["unread"] == names
    with process("evaluate", tmp_path / "labels.parquet", ",".join(runs)) as done:
        out, _ = done.communicate()
    assert f"not read: {', '.join(names[:10])}, and 2 more)" in out
