"""The boundary to data from outside: what no reader expects is refused, with the file's name."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill import InputError
from rankmill.errors import Otherwise, outside
from rankmill.nightly.history import History
from rankmill.sources.readers.arrow_files import buffers_of

TABLE = pa.table({"query_id": ["a", "b"], "items": [["x"], ["y", "z"]]})
Run = Callable[..., Any]


@pytest.fixture
def labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "labels.parquet")
    return Path("labels.parquet")


def refused(run_cli: Run, *arguments: object) -> str:
    found = run_cli(*arguments)
    assert found.exit_code == 3, found.stderr
    assert "This is a bug" not in found.stderr
    return str(found.stderr)


# ------------------------------------------------------------------ the boundary itself


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("run"), "'run' is missing"),
        (OverflowError("int too big"), "int too big"),
        (TypeError(), "TypeError"),
        (RecursionError("..."), "it is nested too deep"),
        (OSError(40, "Too many levels of symbolic links"), "Too many levels of symbolic links"),
        (pa.ArrowNotImplementedError("a type"), "a type"),
    ],
)
def test_other_errors_name_the_input(error: Exception, told: str) -> None:
    with pytest.raises(InputError) as caught, outside("a.file", "fetch it"):
        raise error
    assert str(caught.value).startswith("a.file cannot be read: ")
    assert told in str(caught.value)
    assert str(caught.value).endswith("; fetch it")


@pytest.mark.parametrize(
    "error",
    [
        *(rankmill.UsageError("x"), MemoryError(), OSError(28, "full"), NameError("a bug")),
        Otherwise(),
    ],
)
def test_these_errors_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, outside("a.file"):
        raise error
    assert caught.value is error


# ------------------------------------------------------------------ text and JSON

DEEP = "[" * 100_000
TEXTS = {
    "deep.json": DEEP,
    "deep rows.json": '{"a": ' * 5000,
    "deep cell.csv": f'query_id,items\na,"{DEEP}"\n',
    "deep.jsonl": f'{{"query_id": "a", "items": {DEEP}\n',
    "long.json": '{"a": {"x": ' + "9" * 5000 + "}}",
    "surrogate.json": '{"a": {"\\ud800": 0.5}}',
    "surrogate query.json": '{"\\ud800": {"x": 0.5}}',
    "surrogate.jsonl": '{"query_id": "\\ud800", "items": ["x"]}\n',
    "huge.jsonl": '{"query_id": "a", "items": ["x"], "scores": [1e999]}\n',
    "huge gains.csv": "query_id,item_id,gain\na,x,1e999\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_that_no_parser_expects(run_cli: Run, labels: Path, name: str) -> None:
    Path(name).write_text(TEXTS[name])
    sides = (name, labels) if "gains" in name else (labels, name)
    assert name in refused(run_cli, "evaluate", *sides, "-m", "map")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tiny.json", '{"a": {"y": 0, "x": 1e-320}}'),
        ("tiny.jsonl", '{"query_id": "a", "items": ["x", "y"], "scores": [1e-320, 0.0]}\n'),
        ("tiny.csv", "query_id,item_id,score\na,y,0.0\na,x,1e-320\n"),
        ("tiny.trec", "a Q0 y 1 0 tag\na Q0 x 2 1e-320 tag\n"),
    ],
)
def test_the_smallest_numbers_are_numbers(labels: Path, name: str, text: str) -> None:
    """They are denormal; as 0 they would tie, and the other item would be first."""
    Path(name).write_text(text)
    assert rankmill.evaluate(labels, name, ["p@1"], per_query=True)["p@1"] == 0.5


# ------------------------------------------------------------------ names


def written(kind: str, table: pa.Table) -> bytes:
    sink = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, sink, store_schema=False)
    elif kind == "feather":
        feather.write_feather(table, sink)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrows"])
@pytest.mark.parametrize("name", ["query_id", "items", "other_name"])
def test_names_of_columns_that_are_not_utf_8(
    run_cli: Run, labels: Path, kind: str, name: str
) -> None:
    raw = written(kind, TABLE.append_column("other_name", [["u", "v"]]))
    broken = name.encode()[:-1] + b"\xff"
    Path(f"p.{kind}").write_bytes(raw.replace(name.encode(), broken))
    told = refused(run_cli, "evaluate", labels, f"p.{kind}", "-m", "map")
    assert f"p.{kind}" in told


@pytest.mark.skipif(os.name == "nt", reason="names are UTF-16 there")
@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("folder", [b"day=\xff", b"d\xff=1"])
def test_names_of_folders_that_are_not_utf_8(
    run_cli: Run, labels: Path, kind: str, folder: bytes
) -> None:
    os.makedirs(b"run/" + folder)
    Path(os.fsdecode(b"run/" + folder), f"p.{kind}").write_bytes(written(kind, TABLE))
    assert "is not UTF-8; rename it" in refused(run_cli, "evaluate", labels, "run", "-m", "map")


def test_classes_that_are_not_utf_8(run_cli: Run, labels: Path) -> None:
    text = pa.array([b"de\xff", b"fr"]).cast(pa.binary())
    by = pa.table({"query_id": ["a", "b"], "land": text.view(pa.string())})
    pq.write_table(by, "by.parquet")
    pq.write_table(TABLE, "other.parquet")
    asked = ("compare", labels, labels, "other.parquet", "-m", "map", "--by", "by.parquet")
    assert "by.parquet: column 'land'" in refused(run_cli, *asked)


# ------------------------------------------------------------------ baselines and histories

VALUES = (None, True, -1, 1e308, 10**25, "", "\ud800", "x", [], [[]], {}, {"a": 1}, [None])
VALUES += (float("nan"), "9" * 5000, 10**400)


def places(told: Any) -> Iterator[tuple[Any, Any]]:
    """Each place in a JSON document: what holds it, and its key there."""
    for key in told if isinstance(told, dict) else range(len(told)):
        yield told, key
        if isinstance(told[key], dict | list):
            yield from places(told[key])


def test_a_baseline_nested_too_deep(run_cli: Run, labels: Path) -> None:
    Path("base.json").write_text('{"metrics": ' + DEEP)
    asked = ("gate", labels, labels, "--baseline", "base.json", "--rule", "map drop <= 5%")
    assert "base.json cannot be read: it is nested too deep" in refused(run_cli, *asked)


@pytest.mark.parametrize("odd", ["folder", "loop", "text"])
def test_a_history_with_what_is_no_run(run_cli: Run, labels: Path, odd: str) -> None:
    History("runs").record(rankmill.evaluate(labels, labels, ["map"]))
    path = Path("runs/x.parquet")
    if odd == "folder":
        path.mkdir()
    elif odd == "loop":
        path.symlink_to("x.parquet")
    else:
        path.write_text("no Parquet")
    told = refused(run_cli, "history", "runs")
    assert "runs/x.parquet cannot be read" in told
    assert "move it elsewhere" in told


# ------------------------------------------------------------------ sizes before they are allocated


@pytest.mark.long
def test_many_columns_and_empty_lines(run_cli: Run, labels: Path) -> None:
    """Places for 60,000 fields in each of 60,000 lines would take 58 GB."""
    names = ",".join(["query_id", "item_id", "score", *(f"c{i}" for i in range(60_000))])
    Path("wide.csv").write_text(names + "\n" * 60_000)
    assert "wide.csv holds no rows" in refused(run_cli, "evaluate", labels, "wide.csv", "-m", "map")


ROWS = 5_000_000


def bomb(kind: str) -> bytes:
    """Rows of one value, which compress to a few thousand bytes, in one part."""
    zeros = np.zeros(ROWS, np.int64)
    table = pa.table({"query_id": zeros, "item_id": zeros, "more": zeros})
    sink = io.BytesIO()
    if kind == "arrows":
        packed = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, table.schema, options=packed) as writer:
            writer.write_table(table, max_chunksize=ROWS)
    else:
        feather.write_feather(table, sink, compression="zstd", chunksize=ROWS)
    return sink.getvalue()


@pytest.mark.parametrize("kind", ["feather", "arrows"])
@pytest.mark.long
def test_a_part_that_takes_more_than_the_limit(run_cli: Run, labels: Path, kind: str) -> None:
    path = Path(f"bomb.{kind}")
    path.write_bytes(bomb(kind))
    assert path.stat().st_size < 50_000
    numbers = pa.table({"query_id": [0], "item_id": [0]})
    pq.write_table(numbers, "labels.parquet")
    asked = ("evaluate", labels, path, "-m", "map", "--in-order", "--memory", "70MB")
    told = refused(run_cli, *asked)
    assert f"bomb.{kind}: " in told
    assert f"takes {2 * 8 * ROWS:,} bytes" in told  # of the columns that are read
    result = rankmill.evaluate(
        "labels.parquet", rankmill.Predictions(path, in_order=True), ["hit"], memory=10**8
    )
    assert result["hit"] == 1.0


@pytest.mark.parametrize(
    "kind",
    [
        pa.int64(),
        pa.bool_(),
        pa.null(),
        pa.large_string(),
        pa.list_(pa.string()),
        pa.struct({"a": pa.int8(), "b": pa.list_(pa.binary())}),
        pa.dictionary(pa.int8(), pa.string()),
        pa.list_(pa.int32(), 3),
        pa.map_(pa.string(), pa.int64()),
        pa.decimal128(9),
        pa.string_view(),
    ],
)
def test_buffers_of_a_type(kind: Any) -> None:
    """As many as an array has, of which a dictionary's own values are not in its record batch."""

    def count(array: Any) -> int:
        return 2 if pa.types.is_dictionary(array.type) else len(array.buffers())

    array = pa.nulls(2, kind)
    expected = 0 if pa.types.is_null(kind) else count(array)
    assert buffers_of(kind) == (None if kind == pa.string_view() else expected)
