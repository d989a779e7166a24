"""`rankmill head`: what it tells of every kind of input, and of wrong ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells

from rankmill.engine.head import head

WIDE = pa.table({"user_id": [3, 1], "items": [[7, None, 8], []], "score": [[0.5, 0.3, 0.25], []]})
LONG = pa.table(
    {
        "qid": ["b", "a", "b"],
        "docno": [5, 6, 7],
        "rank": [2, 1, 1],
        "name": ["x", "y", "z"],
    }
)
BY_NAME = ["found by its name"]


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, tuple[str, Callable[[pa.Table, Path], None]]] = {
    "a.parquet": ("parquet", pq.write_table),
    "a.arrow": ("Arrow IPC", write_arrow),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_told_of_wide_and_long(tmp_path: Path, name: str, run_cli: Any) -> None:
    kind, write = WRITERS[name]
    path = tmp_path / name
    write(WIDE, path)
    outcome = run_cli("head", path)
    assert outcome.exit_code == 0, outcome.stderr
    tells(
        outcome.stdout,
        [
            f"format   {kind}",
            "rows     2",
            "predictions (by its columns; --labels reads it as",
            "wide: one row per query",
            "user_id  int64 ",
            "found by its name",
            "7 (0.5), 8 (0.25)",
        ],
    )
    assert "first queries" not in outcome.stdout
    write(LONG, path)
    told = json.loads(run_cli("head", path, "--predictions", "--format", "json").stdout)
    roles = {one["name"]: (one["role"], one["rules"]) for one in told["columns"]}
    assert roles == {
        "qid": ("query", BY_NAME),
        "docno": ("item", BY_NAME),
        "rank": ("rank", BY_NAME),
        "name": (None, []),
    }
    assert (told["shape"], told["order"], told["rows"], told["looked_at"]) == ("long", "rank", 3, 3)
    assert told["queries"] == [
        {"query": "b", "count": 2, "items": [7, 5]},
        {"query": "a", "count": 1, "items": [6]},
    ]


def test_columns_that_are_named(tmp_path: Path, run_cli: Any) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(LONG.rename_columns(["who", "docno", "stars", "name"]), path)
    told = run_cli("head", path, "--query", "who", "--gain", "stars")
    assert told.exit_code == 0, told.stderr
    tells(told.stdout, ["read as        labels", "you named it", "not read", "5 (2), 7 (1)"])
    for format in ("csv", "markdown"):
        tells(
            run_cli("head", path, "--query", "who", "--gain", "stars", "--format", format).stdout,
            ["stars", "gain", "not read"],
        )
    infinite = pa.table({"query": [1], "items": [[1]], "score": [[float("-inf")]]})
    pq.write_table(infinite, path)
    assert json.loads(run_cli("head", path, "--format", "json").stdout)["queries"][0]["scores"] == [
        "-inf"
    ]


def test_only_the_first_batch_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other row groups may even be broken."""
    path = tmp_path / "a.parquet"
    rows = 600_000
    table = pa.table(
        {"query": np.arange(rows) // 10, "item": np.arange(rows), "score": np.linspace(1, 0, rows)}
    )
    pq.write_table(table, path, row_group_size=100_000)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 3 : len(raw) // 2] = bytes(len(raw) // 2 - len(raw) // 3)
    path.write_bytes(raw)
    told = head(path)
    assert told["problem"] is None
    assert told["rows"] == rows
    assert told["looked_at"] <= 1 << 16
    assert [query["query"] for query in told["queries"]] == [0, 1, 2]


@pytest.mark.parametrize("text", ["run", "qrels"])
def test_standard_input(text: str) -> None:
    line = {"run": "1 Q0 d7 1 0.5 x\n", "qrels": "1 0 d7 2\n"}[text]
    command = [sys.executable, "-m", "rankmill", "head", "-"]
    command += ["--labels"] if text == "qrels" else []
    ran = subprocess.run(command, input=line, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    tells(ran.stdout, [f"TREC {text}", {"run": "d7 (0.5)", "qrels": "d7 (2)"}[text]])


@pytest.mark.parametrize(
    ("table", "shown", "wanted"),
    [
        ({"query": [1], "thing": ["x"]}, ["thing", "string"], ["no column looks like the item"]),
        ({"query": [1], "item": [2], "x": [0.5]}, ["double"], ["'x' is left over", "--score x"]),
        ({"query": [None], "item": [2]}, ["query"], ["looks like|no query id"]),
        ({"query": [1], "item": [2], "score": [float("nan")]}, ["score"], ["is nan", "row 0"]),
        ({"query": [1], "item": [0.5]}, ["item", "int64"], ["a fraction is not an id"]),
    ],
)
def test_what_is_wrong_is_told_with_what_is_there(
    tmp_path: Path, run_cli: Any, table: Any, shown: list[str], wanted: list[str]
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(table), path)
    outcome = run_cli("head", path)
    assert outcome.exit_code == 3
    tells(outcome.stdout, ["format", "rows", *shown])
    tells(outcome.stderr, wanted)


def test_files_that_cannot_be_opened(tmp_path: Path, run_cli: Any) -> None:
    (tmp_path / "junk").write_bytes(bytes(range(200)))
    (tmp_path / "a.arrow").write_bytes(b"ARROW1\0\0 cut")
    for name, wanted in (
        ("junk", ["junk cannot be read"]),
        ("a.arrow", ["a.arrow is broken"]),
        ("none", ["no such file"]),
    ):
        outcome = run_cli("head", tmp_path / name)
        assert (outcome.exit_code, outcome.stdout) == (3, "")
        tells(outcome.stderr, wanted)
