"""Spark in processes of their own: spark-submit on a cluster, and a session of Spark Connect."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import tables
from repository import ROOT
from spark_sessions import JAVA

pyspark = pytest.importorskip(
    "pyspark", reason="pyspark is missing: scripts/test-spark installs it"
)
pytest_plugins = ["spark_sessions"]

BINARIES = Path(pyspark.__file__).parent / "bin"

METRICS = ["-m", "map@3", "-m", "gap", "-m", "first_hit"]


def ended(*command: object, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **more}
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env=environment)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """Labels as a file, and predictions as a folder of two files."""
    labels, predictions = tables("strings", "wide", "long")
    (tmp_path / "predictions").mkdir()
    pq.write_table(labels, tmp_path / "labels.parquet")
    pq.write_table(predictions.slice(0, 50), tmp_path / "predictions" / "0.parquet")
    pq.write_table(predictions.slice(50), tmp_path / "predictions" / "1.parquet")
    return [str(tmp_path / "labels.parquet"), str(tmp_path / "predictions")]


PAGE = (resources.files("rankmill") / "docs" / "spark.md").read_text()
CONFIGURED = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script of the docs page, which spark-submit runs."""
    found = re.search(r"^# run\.py\n(.+?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    (tmp_path / "run.py").write_text(found[1])
    return tmp_path / "run.py"


@pytest.fixture
def submit(script: Path) -> Any:
    """Run the script of the docs page with spark-submit."""
    command: list[object] = [BINARIES / "spark-submit"]
    for name, value in CONFIGURED.items():
        command += ["--conf", f"{name}={value}"]

    def run(master: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        where = {"PYSPARK_PYTHON": sys.executable}
        return ended(*command, "--master", master, script, *arguments, **where)

    return run


@pytest.mark.long
def test_spark_submit_on_a_cluster_does_what_evaluate_does(
    submit: Any, master: str, paths: list[str], tmp_path: Path, run_cli: Any
) -> None:
    whole = run_cli("evaluate", *paths, *METRICS, "-o", tmp_path / "whole.json")
    outcome = submit(master, "evaluate", *paths, *METRICS, "-o", tmp_path / "found.json")
    assert outcome.returncode == whole.exit_code == 0, outcome.stderr
    assert outcome.stdout == whole.stdout
    assert "[Stage " in outcome.stderr  # the progress
    found, wanted = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("found", "whole")
    )
    for one in (found, wanted):
        # Notes call files by their names, and DataFrames by their sides.
        one["notes"] = [note.partition(": ")[2] for note in one["notes"]]
        for name in ("seconds", "checksum"):
            one.pop(name, None)
        for side in one["inputs"].values():
            for name in ("source", "format", "files"):  # of files; Spark has DataFrames
                side.pop(name, None)
    assert found == wanted


@pytest.mark.long
def test_spark_submit_prints_what_evaluate_prints(
    submit: Any, paths: list[str], run_cli: Any
) -> None:
    outcome = submit("local[2]", "evaluate", *paths, *METRICS, "--format", "csv")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == run_cli("evaluate", *paths, *METRICS, "--format", "csv").stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("predictions", "metric", "more", "code", "message"),
    [
        ("nan.parquet", "gap", [], 3, "is nan.*in partition"),
        ("predictions", "mapp", [], 2, "unknown metric"),
        ("predictions", "map", ["-o", "no/folder.json"], 2, "cannot write to no/folder.json"),
        ("nowhere", "map", [], 3, "nowhere cannot be read by Spark as parquet"),
    ],
    ids=["data", "usage", "output", "path"],
)
def test_spark_submit_keeps_the_exit_codes(
    submit: Any,
    paths: list[str],
    predictions: str,
    metric: str,
    more: list[str],
    code: int,
    message: str,
) -> None:
    nan = pa.table({"query": ["id 1"], "item": ["id 1"], "score": [float("nan")]})
    folder = Path(paths[0]).parent
    pq.write_table(nan, folder / "nan.parquet")
    outcome = submit("local[1]", "evaluate", paths[0], folder / predictions, "-m", metric, *more)
    assert outcome.returncode == code, outcome.stderr
    # spark-submit writes both streams of a script in Python to its standard output.
    (error,) = outcome.stdout.splitlines()
    assert error.startswith("error: ")
    assert re.search(message, error)
    assert "Traceback" not in outcome.stderr
    assert "\tat org.apache" not in outcome.stderr


@pytest.mark.long
def test_spark_submit_exits_with_the_verdict_of_a_gate(submit: Any, paths: list[str]) -> None:
    outcome = submit("local[1]", "gate", *paths, "--rule", "map@3 >= 0.9")
    assert outcome.returncode == 1, outcome.stderr
    assert "regressed" in outcome.stdout


@pytest.mark.long
def test_the_archive_of_the_page_runs_a_gate_on_a_cluster(
    script: Path, master: str, paths: list[str], tmp_path: Path
) -> None:
    """Both commands as they stand: an environment is made of a checkout, packed, and unpacked."""
    found = re.search(r"^python -m venv packed.+?(?=^```)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    unwanted = shutil.ignore_patterns(".*", "build", "__pycache__", "spark-warehouse")
    shutil.copytree(ROOT, tmp_path / "rankmill", ignore=unwanted)
    settings = {**CONFIGURED, "spark.master": master}
    (tmp_path / "conf").mkdir()
    lines = [f"{name} {value}" for name, value in settings.items()]
    (tmp_path / "conf" / "spark-defaults.conf").write_text("\n".join(lines))
    told = f"labels = {paths[0]!r}\nrules = ['map@3 >= 0.9']\n[systems]\nnew = {paths[1]!r}\n"
    (tmp_path / "rankmill.toml").write_text(told)
    path = os.pathsep.join([str(Path(sys.executable).parent), str(BINARIES), os.environ["PATH"]])
    where = {"PATH": path, "SPARK_CONF_DIR": str(tmp_path / "conf"), "PYTHONPATH": ""}
    outcome = ended("bash", "-c", f"cd '{tmp_path}'\n{found[0]}", **where)
    shutil.rmtree(tmp_path / "packed")  # a gigabyte
    assert outcome.returncode == 1, outcome.stderr + outcome.stdout
    assert "regressed" in outcome.stdout


CONNECT = """
import sys, rankmill, rankmill.spark
from pyspark.sql import SparkSession
sys.path[:0] = [{folder!r}]
from data import same, tables
from rankmill.spark.exchange.layout import to_arrow

spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
assert "connect" in type(spark).__module__
metrics = ["map@3", "gap", "first_hit"]
for shapes in (("wide", "wide"), ("wide", "long")):
    both = tables("strings", *shapes)
    frames = [spark.createDataFrame(one.to_pandas()) for one in both]
    found = rankmill.spark.evaluate(*frames, metrics, per_query=True, partitions=3)
    whole = rankmill.evaluate(*both, metrics, per_query=True)
    same(found, whole)
    had, kept = (rankmill.Catalogue(train=one[1], drop_seen=True) for one in (frames, both))
    catalogued = rankmill.spark.evaluate(*frames, "novelty@3", catalogue=had, partitions=3)
    same(catalogued, rankmill.evaluate(*both, "novelty@3", catalogue=kept))
    rows = to_arrow(found.per_query).sort_by("query")
    assert rows.equals(whole.per_query.sort_by("query").cast(rows.schema)), rows
runs = dict.fromkeys(("old", "new"), frames[1])
assert rankmill.spark.compare(frames[0], runs, "map").values
try:
    rankmill.spark.evaluate(frames[0], rankmill.Predictions(frames[1], score="nope"), "gap")
except rankmill.InputError as error:
    print("error:", error)
print("the same")
"""


@pytest.mark.long
def test_a_session_of_spark_connect_gives_the_same_bits() -> None:
    pytest.importorskip("grpc_status", reason="Spark Connect needs grpcio-status")
    pytest.importorskip("pyspark", "4", reason="Spark 3.5 has the server of Connect elsewhere")
    code = CONNECT.format(folder=str(Path(__file__).parent))
    outcome = ended(sys.executable, "-W", "ignore", "-c", code)
    assert outcome.stdout.endswith("the same\n"), outcome.stderr[-3000:]
    assert "error: " in outcome.stdout
