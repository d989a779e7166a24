"""Workers of Spark whose Python has no rankmill, or another version of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rankmill.spark
from data import frame_of
from rankmill.errors import UsageError

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

HIDING = """import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "rankmill":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""

OLDER = """import rankmill.package
rankmill.package.__version__ = "0.8.7"
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("worker", "message"),
    [
        (HIDING, r"no module 'rankmill'.* PYSPARK_PYTHON"),
        (OLDER, rf"has rankmill 0\.8\.7, and the driver has {rankmill.__version__}: install"),
    ],
    ids=["none", "another version"],
)
def test_workers_without_rankmill_are_one_error_with_the_way_out(
    start: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    worker: str,
    message: str,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(worker)
    python = tmp_path / "python"
    path = os.pathsep.join([str(tmp_path), "$PYTHONPATH"])
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    spark = start("local[1]", **{"spark.app.name": f"workers: {message}"})
    labels = frame_of(spark, pa.table({"user_id": [1, 2], "items": [[1], [2]]}))
    runs = {"old": labels, "new": labels}
    for call in (
        lambda: rankmill.spark.evaluate(labels, labels, "map"),
        lambda: rankmill.spark.evaluate(labels, labels, "map", partitions=2),
        lambda: rankmill.spark.evaluate_runs(labels, runs, "map"),
        lambda: rankmill.spark.compare(labels, runs, "map"),
        lambda: rankmill.spark.gate(labels, labels, "map >= 0.5"),
    ):
        with pytest.raises(UsageError, match=message) as told:
            call()
        assert "Traceback" not in str(told.value)
        assert told.value.__cause__ is None
    with pytest.raises(UsageError, match=r"labels .* use rankmill\.spark\.evaluate, or compare"):
        rankmill.evaluate(labels, labels, "map")
    with pytest.raises(UsageError, match=r"use rankmill\.spark\.evaluate, or compare"):
        rankmill.gate(labels, labels, "map >= 0.5")


def test_a_driver_without_pandas_is_one_error(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = frame_of(spark, pa.table({"user_id": [1, 2], "items": [[1], [2]]}))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"Pandas >= .* not found\.: pip install '\.\[spark\]'"):
        rankmill.spark.evaluate(labels, labels, "map")
