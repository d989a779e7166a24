"""compare() and the command on Spark: what one machine gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
import rankmill.spark
from data import frame_of, tables
from flat import flat

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tests": "u"}, "there is no test 'u'"),
        ({"tests": "tukey"}, "Tukey's test is gone: take the test randomization"),
        ({"by": "no/such.parquet"}, "no/such.parquet"),
        ({"by": pa.table({"query": ["a"], "x": [1]})}, "query ids cannot be compared"),
        ({"by": [pa.table({"query": [1], "weight": [1]}), "weight"]}, "two kinds of slices"),
        ({"metrics": "gap", "semantics": {"gap_ties": "ids"}}, "needs all predictions at once"),
        ({"baseline": "x"}, "there is no system 'x'"),
        ({"by": "country"}, "country"),
    ],
)
def test_wrong_comparisons_are_refused_before_a_job(
    spark: Any, options: dict[str, Any], message: str
) -> None:
    frames = [frame_of(spark, one) for one in tables("integers", "wide", "wide")]
    with pytest.raises(rankmill.RankmillError, match=message):
        flat(
            rankmill.spark.compare,
            frames[0],
            {"a": frames[1], "b": frames[1]},
            **{"metrics": "map", **options},
        )


def test_the_command_does_what_evaluate_does(spark: Any, tmp_path: Path, run_cli: Any) -> None:
    labels, predictions = tables("integers", "wide", "long")
    _, other = tables("integers", "wide", "long", seed=3)
    paths = [str(tmp_path / f"{name}.parquet") for name in ("labels", "old", "new")]
    for one, path in zip((labels, predictions, other), paths, strict=True):
        pq.write_table(one, path)
    config = tmp_path / "rankmill.toml"
    config.write_text(
        'labels = "labels.parquet"\nmetrics = ["map@3", "p@2"]\nweight = "weight"\n'
        '[systems]\nold = "old.parquet"\nnew = "new.parquet"\n'
    )
    (tmp_path / "runs").mkdir()
    for number, given in enumerate(([*paths[:2], "-m", "map@3", "-m", "gap"], [str(config)])):
        outputs = {}
        for command in ("spark", "evaluate"):
            values, runs = tmp_path / f"{command}{number}.parquet", tmp_path / "runs" / command
            runs.mkdir(exist_ok=True)
            more = ["--per-query", str(values), "--history", str(runs), "--tag", "a=b"]
            named = ["spark", "evaluate"] if command == "spark" else [command]
            outcome = run_cli(*named, *given, "--format", "json", *more)
            assert outcome.exit_code == 0, outcome.stderr
            table = pq.read_table(values)
            told = json.loads(outcome.stdout)
            recorded = rankmill.History(runs).runs[-1]
            outputs[command] = told, table, recorded
        (found, table, recorded), (whole, values_here, recorded_here) = outputs.values()
        for one, of in ((found, whole), *zip(*map(_systems, (found, whole)), strict=True)):
            for field in ("metrics", "standard_errors", "bounds", "audit", "semantics", "scope"):
                assert one.get(field) == of.get(field), field
        sort = [(table.column_names[0], "ascending")]
        assert table.sort_by(sort).to_pydict() == values_here.sort_by(sort).to_pydict()
        assert recorded.metrics == recorded_here.metrics


def _systems(told: dict[str, Any]) -> list[dict[str, Any]]:
    systems: Any = told.get("systems", {})
    return list(systems.values()) if isinstance(systems, dict) else list(systems)


def test_text_without_a_header_takes_the_names_of_columns(
    spark: Any, tmp_path: Path, run_cli: Any
) -> None:
    (tmp_path / "labels.tsv").write_text("1\t5\n2\t6\n")
    (tmp_path / "run.csv").write_text("1,5,0.5\n1,7,0.75\n2,6,0.5\n")
    paths = [str(tmp_path / name) for name in ("labels.tsv", "run.csv")]
    arguments = [*paths, "-m", "map", "--format", "json", "--columns", "query,item,score"]
    outcome = run_cli("spark", "evaluate", *arguments, "--label-columns", "query,item")
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["metrics"] == {"map": 0.75}


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
    outcome = run_cli("spark", "evaluate", path, path, *arguments)
    assert outcome.exit_code == code, outcome.stderr
    assert outcome.stderr.startswith("error: ")
    assert "Traceback" not in outcome.stderr
