"""Metrics of somebody's own on Spark: the same bits, whatever the workers have."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

import rankmill
import rankmill.spark
from data import frame_of, same, tables
from rankmill.errors import UsageError
from rankmill.metrics import registry

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

SOURCE = """
import numba
import rankmill

SCALE = 0.5

@numba.njit
def precise(found, rank):
    return SCALE * found / rank

@rankmill.metric("{0}@k", range=(0, 1), better="higher")
def {0}(ranks, labels, k):
    total = 0.0
    for found in range(len(ranks)):
        total += precise(found + 1, ranks[found]) / SCALE
    return total / min(k, labels)
"""


def defined(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Define a metric in a module that only this process has, or at a prompt."""
    source = SOURCE.format(f"of_{where}")
    if where == "main":
        for name in ("SCALE", "precise", "of_main"):  # they end with the test
            monkeypatch.setattr(sys.modules["__main__"], name, None, raising=False)
        exec(source, vars(sys.modules["__main__"]))
    else:
        (tmp_path / "here_only.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "here_only", raising=False)
        importlib.import_module("here_only")


@pytest.mark.rows(1)
@pytest.mark.parametrize("where", ["main", "module"])
def test_compiled_metrics_travel_to_the_workers(
    spark: Any, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defined(where, tmp_path, monkeypatch)
    name = f"of_{where}@3"
    (labels, new), (_, old) = (tables("integers", "wide", "long", seed=one) for one in (1, 2))
    frames = [frame_of(spark, one) for one in (labels, new, old)]
    found = rankmill.spark.evaluate(*frames[:2], [name, "map@3"], partitions=20)
    same(found, rankmill.evaluate(labels, new, [name, "map@3"]))
    assert found[name] == found["map@3"] > 0
    compared = rankmill.spark.compare(frames[0], {"old": frames[2], "new": frames[1]}, name)
    here = rankmill.compare(labels, {"old": old, "new": new}, name)
    assert compared.to_dict()["metrics"] == here.to_dict()["metrics"]
    rule = f"{name} drop <= 1%"
    verdict = rankmill.spark.gate(*frames[:2], rule, baseline=frames[2])
    assert verdict.outcomes == rankmill.gate(labels, new, rule, baseline=old).outcomes


@pytest.mark.long
def test_columns_travel_to_the_tasks(spark: Any) -> None:
    @rankmill.metric("worth@k", range=(0, 1000), better="higher")
    def worth(ranks: Any, hit_when: Any, item_price: Any) -> float:
        total = 0.0
        for hit in range(len(ranks)):
            total += 0.1 * hit_when[hit] * item_price[ranks[hit] - 1]
        return total

    labels, predictions = tables("integers", "long", "long")
    when = pa.array([float(place % 7) for place in range(len(labels))])
    labels = labels.append_column("when", when)
    known = pa.compute.unique(predictions["item"])
    items = pa.table({"item": known, "price": [0.5 * n for n in range(len(known))]})
    found = rankmill.spark.evaluate(
        frame_of(spark, labels),
        frame_of(spark, predictions),
        "worth@3,map@3",
        catalogue=rankmill.Catalogue(items=frame_of(spark, items)),
        partitions=5,
    )
    here = rankmill.evaluate(
        labels, predictions, "worth@3,map@3", catalogue=rankmill.Catalogue(items=items)
    )
    assert found.metrics == here.metrics
    assert found["worth@3"] > 0


def test_what_cannot_be_sent_is_told(spark: Any) -> None:
    lock = threading.Lock()

    @rankmill.metric("locked", compile=False)
    def locked(labels: int) -> float:
        with lock:
            return labels

    both = [frame_of(spark, one) for one in tables("integers", "wide", "wide")]
    message = "locked cannot be sent to the workers, because something "
    message += "that its function uses cannot be pickled: "
    with pytest.raises(UsageError, match=message):
        rankmill.spark.evaluate(*both, "locked")
    assert "locked" in registry.REGISTRY


@pytest.mark.long
def test_the_command_takes_a_file_that_defines_metrics(tmp_path: Path) -> None:
    labels, predictions = tables("strings", "wide", "wide")
    pq.write_table(labels, tmp_path / "labels.parquet")
    pq.write_table(predictions, tmp_path / "run.parquet")
    (tmp_path / "mine.py").write_text(SOURCE.format("of_file"))
    command = [sys.executable, "-m", "rankmill", "spark", "evaluate"]
    command += ["labels.parquet", "run.parquet"]
    done = subprocess.run(
        [
            *command,
            *[
                "--define",
                "mine.py",
                "-m",
                "of_file@3,map@3",
                "--format",
                "json",
                "--partitions",
                "2",
            ],
        ],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)["metrics"]
    assert (
        values["of_file@3"]
        == values["map@3"]
        == rankmill.evaluate(labels, predictions, "map@3")["map@3"]
    )
