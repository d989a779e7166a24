"""Each refusal, by Python, the command line and rankmill.toml: kind, words, exit code, no output.

Spark has its rows in tests/spark.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import tells

import rankmill
from flat import flat
from rankmill import InputError
from refusals import REFUSALS, Refusal, sides, written

FUNCTIONS = {"evaluate": rankmill.evaluate, "compare": rankmill.compare}
EXIT = {rankmill.UsageError: {2}, InputError: {3}, Exception: {2, 3}}
# What some flags are called, other than the option.
FLAGS = {"tests": "test"}
FLAT = {"sum": "sums"}


def rows(way: str) -> Any:
    return pytest.mark.parametrize("row", [one for one in REFUSALS if way in one.ways], ids=_id)


def _id(row: Refusal) -> str:
    return row.id


def as_given(value: Any, folder: Path | None) -> Any:
    """Dicts of columns as tables, or as files in a folder."""
    if isinstance(value, list):
        return [as_given(one, folder) for one in value]
    if isinstance(value, dict) and all(isinstance(one, list) for one in value.values()):
        table = pa.table(value)
        return table if folder is None else written(table, folder / f"table{len(value)}.parquet")
    return value


def said(row: Refusal, message: str, *names: object) -> None:
    """Check the message, in which inputs are called LABELS and PREDICTIONS."""
    for name, side in zip(names, ("LABELS", "PREDICTIONS"), strict=True):
        message = message.replace(str(name), side)
    assert re.search(row.says, message, re.DOTALL), message


@pytest.mark.small
@rows("python")
def test_by_python(row: Refusal) -> None:
    labels, predictions = sides(row)
    runs = {"a": predictions, "b": predictions} if row.asked == "compare" else predictions
    options = {
        FLAT.get(name, name): as_given(one, None) if name == "by" else one
        for name, one in row.options.items()
    }
    with pytest.raises((rankmill.RankmillError, rankmill.ResourceError)) as caught:
        flat(FUNCTIONS[row.asked], labels, runs, row.metrics, **options)
    assert isinstance(caught.value, row.kind)
    said(row, tells(caught.value, []), "the table of labels", "the table of predictions")


def typed(row: Refusal, folder: Path) -> list[str]:
    """The options as they are typed."""
    words = []
    for name, value in row.options.items():
        flag = f"--{FLAGS.get(name, name).replace('_', '-')}"
        if isinstance(value, dict) and name == "semantics":
            words += [word for one in value.items() for word in (flag, "=".join(one))]
            continue
        given = as_given(value, folder)
        for one in given if isinstance(given, list) else [given]:
            words += [flag] if one is True else [flag, str(one)]
    return words


def refused(row: Refusal, folder: Path, run: Any, *words: object) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    outputs = ["-o", folder / "new.json", "--per-query", folder / "new.parquet"]
    code, shown, error = run(row.asked, *words, *outputs)
    assert shown == ""
    assert code in EXIT[row.kind], error
    assert error.startswith("error: ")
    assert "Traceback" not in error
    assert "This is a bug" not in error
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    said(row, error, folder / "labels.parquet", folder / "predictions.parquet")


def files(row: Refusal, folder: Path) -> list[Path]:
    names = "labels.parquet", "predictions.parquet"
    paths = [written(one, folder / name) for one, name in zip(sides(row), names, strict=True)]
    if row.asked == "compare":
        paths.append(written(sides(row)[1], folder / "b.parquet"))
    return paths


def metrics_of(row: Refusal) -> list[str]:
    return [row.metrics] if isinstance(row.metrics, str) else list(row.metrics)


@rows("command line")
def test_by_the_command_line(row: Refusal, tmp_path: Path, run: Any) -> None:
    metrics = [word for one in metrics_of(row) for word in ("-m", one)]
    refused(row, tmp_path, run, *files(row, tmp_path), *metrics, *typed(row, tmp_path))


@rows("toml")
def test_by_a_file_of_options(row: Refusal, tmp_path: Path, run: Any) -> None:
    labels, predictions, *other = map(str, files(row, tmp_path))
    systems = f"predictions = {json.dumps(predictions)}\n"
    if other:
        systems = f"[systems]\na = {json.dumps(predictions)}\nb = {json.dumps(other[0])}\n"
    path = tmp_path / "rankmill.toml"
    words = typed(row, tmp_path)
    path.write_text(
        f"labels = {json.dumps(labels)}\nmetrics = {json.dumps(metrics_of(row))}\n{systems}"
    )
    refused(row, tmp_path, run, path, *words)
