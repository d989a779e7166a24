"""Spark on a cluster of processes: the same bits while executors, workers and tasks fail."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from data import same, tables

import rankmill
import rankmill.spark
from rankmill.spark import counting, merging, tasks

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

METRICS = ["map@3", "gap", "gap@2", "first_hit"]
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # A slow task is started a second time on another executor.
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "100ms",
}


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Any], master: str) -> Iterator[Any]:
    session = start(master, **SETTINGS)
    yield session
    session.stop()  # another application can have its processors


def harm(flag: str, what: str) -> None:
    """Do harm to the task that comes first, and to no other."""
    import os
    import signal
    import time

    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    process = os.getpid()
    if what == "executor":  # the Java process above this one
        while "java" not in Path(f"/proc/{process}/comm").read_text():
            stat = Path(f"/proc/{process}/stat").read_text()
            process = int(stat.rpartition(")")[2].split()[1])
    if what in ("executor", "python"):
        os.kill(process, signal.SIGKILL)
    if what == "exception":
        raise OSError("the network is gone for a moment")
    if what == "fetch":  # what this executor has written for others to read
        for file in Path(os.environ["SPARK_EXECUTOR_DIRS"]).rglob("shuffle_*"):
            file.unlink()
        return
    time.sleep(3)  # so that speculation sees a slow task


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to find executors in")
@pytest.mark.parametrize("number", ["first", "second"])
@pytest.mark.parametrize("what", ["executor", "python", "exception", "slow", "fetch"])
def test_a_failure_in_a_pass_changes_no_bit(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str, what: str
) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file
    shape = "wide" if what in ("executor", "slow") else "long"
    labels, predictions = tables("integers", "wide", shape)
    kind = tasks.Scoring if number == "first" else counting.Counting
    usual, flag = merging.function_of, str(tmp_path / "harmed")

    def function_of(task: Any) -> Any:
        if not isinstance(task, kind):
            return usual(task)

        def run(batches: Any) -> Any:
            held = list(batches)
            harm(flag, what)
            return task(iter(held))

        return run

    monkeypatch.setattr(merging, "function_of", function_of)
    both = [cluster.createDataFrame(one) for one in (labels, predictions)]
    found = rankmill.spark.evaluate(*both, METRICS, partitions=4)
    assert Path(flag).exists()
    same(found, rankmill.evaluate(labels, predictions, METRICS))
