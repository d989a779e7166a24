"""The files of the catalogue on the command line: inputs, which no output may replace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli_runs import write_dump


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write labels, predictions, and the files that metrics over a catalogue read."""
    monkeypatch.chdir(tmp_path)
    write_dump(tmp_path)
    pq.write_table(pa.table({"user_id": [1, 2], "item_id": [10, 30]}), "train.parquet")
    pq.write_table(pa.table({"item_id": [10, 20, 30]}), "items.parquet")
    pq.write_table(pa.table({"item_id": [10, 20], "x": [1.0, 2.0]}), "features.parquet")
    (tmp_path / "other.parquet").write_bytes(Path("predictions.parquet").read_bytes())
    return tmp_path


@pytest.mark.parametrize("option", ["train", "items", "features"])
@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "labels.parquet", "predictions.parquet", "-o"],
        ["evaluate", "labels.parquet", "predictions.parquet", "--per-query"],
        ["compare", "labels.parquet", "predictions.parquet", "other.parquet", "-o"],
        ["gate", "labels.parquet", "predictions.parquet", "--rule", "map > 0", "--json"],
        ["report", "labels.parquet", "predictions.parquet", "-o"],
    ],
)
def test_no_output_replaces_an_input(
    beside: Path, run: Any, command: list[str], option: str
) -> None:
    path = beside / f"{option}.parquet"
    before = path.read_bytes()
    code, _, err = run(*command, path.name, f"--{option}", path.name)
    assert code == 2
    assert f"cannot write to {path.name}: it is one of the inputs" in err
    assert path.read_bytes() == before
