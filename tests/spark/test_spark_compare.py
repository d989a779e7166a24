"""compare() and the command on Spark: what one machine gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data import tables

import rankmill
import rankmill.spark

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

ALIKE = ("values", "differences", "queries", "left_out", "differing", "slices", "losses")


@pytest.mark.parametrize("partitions", [2, 20])
@pytest.mark.parametrize(
    "options",
    [
        {"by": "weight", "worst_slices": 3, "margin": 0.1},
        {"weight": "weight", "by": ["label_count"], "semantics": {"unpredicted": "skip"}},
        {"tests": ("randomization", "wilcoxon", "tukey"), "replicates": 200, "baseline": "new"},
    ],
    ids=str,
)
def test_a_comparison_has_the_same_bits(
    spark: Any, options: dict[str, Any], partitions: int
) -> None:
    labels, old = tables("strings", "long", "wide")
    _, new = tables("strings", "long", "long", seed=5)
    runs = {"old": old, "new": new}
    frames = {name: spark.createDataFrame(one) for name, one in runs.items()}
    found = rankmill.spark.compare(
        spark.createDataFrame(labels), frames, ["map", "p@2"], partitions=partitions, **options
    )
    whole = rankmill.compare(labels, runs, ["map", "p@2"], **options)
    for field in ALIKE:
        assert getattr(found, field) == getattr(whole, field), field


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tests": "u"}, "there is no test 'u'"),
        ({"by": "label_popularity"}, "needs the labels of all queries"),
        ({"by": "a.parquet"}, "by names a table"),
        ({"metrics": "gap"}, "gap is no mean"),
        ({"baseline": "x"}, "there is no system 'x'"),
        ({"by": "country"}, "country"),
    ],
)
def test_wrong_comparisons_are_refused_before_a_job(
    spark: Any, options: dict[str, Any], message: str
) -> None:
    frames = [spark.createDataFrame(one) for one in tables("integers", "wide", "wide")]
    with pytest.raises(rankmill.RankmillError, match=message):
        rankmill.spark.compare(
            frames[0], {"a": frames[1], "b": frames[1]}, **{"metrics": "map", **options}
        )


def test_the_command_does_what_evaluate_does(spark: Any, tmp_path: Path, run_cli: Any) -> None:
    labels, predictions = tables("integers", "wide", "long")
    paths = [str(tmp_path / f"{name}.parquet") for name in ("labels", "predictions")]
    for one, path in zip((labels, predictions), paths, strict=True):
        pq.write_table(one, path)
    usual = ["-m", "map@3", "-m", "gap", "--weight", "weight"][:4]
    values = tmp_path / "values"
    found = run_cli("spark", *paths, *usual, "--format", "json", "--per-query", str(values))
    whole = run_cli("evaluate", *paths, *usual, "--format", "json")
    assert found.exit_code == whole.exit_code == 0, found.stderr
    for field in ("metrics", "standard_errors", "bounds", "audit"):
        assert json.loads(found.stdout)[field] == json.loads(whole.stdout)[field]
    assert pq.read_table(values).num_rows == json.loads(whole.stdout)["queries"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-m", "mapp"], 2),
        (["--columns", "a,b"], 2),
        (["--query", "nope"], 3),
        (["--labels-as", "csvv"], 3),
    ],
)
def test_the_command_keeps_the_exit_codes(
    spark: Any, tmp_path: Path, run_cli: Any, arguments: list[str], code: int
) -> None:
    path = str(tmp_path / "both.parquet")
    pq.write_table(pa.table({"query": [1], "item": [[1]]}), path)
    outcome = run_cli("spark", path, path, *arguments)
    assert outcome.exit_code == code, outcome.stderr
    assert outcome.stderr.startswith("error: ")
    assert "Traceback" not in outcome.stderr
