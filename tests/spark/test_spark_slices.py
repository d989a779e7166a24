"""Slices and weighted sums of evaluate on Spark: the same bits as in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from conftest import tells

import rankmill
import rankmill.spark
from data import frame_of, same, tables
from rankmill import InputError, UsageError

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

SUMS = [
    "both = 0.25*map@3[kind=a] + 0.75*recall@3:micro",
    "more = map@3 - 2*first_hit[kind=(unknown)]",
]


def cut(shape: str, other: str) -> tuple[pa.Table, pa.Table]:
    labels, predictions = tables("strings", shape, other)
    numbers = [int(one[3:]) for one in labels["query"].to_pylist()]
    kinds = ["abc"[one % 3] if one % 5 else None for one in numbers]
    return labels.append_column("kind", pa.array(kinds)), predictions


@pytest.mark.parametrize("name", ["class", "gain", "rating"])
def test_columns_of_tables_are_not_those_of_labels(spark: Any, name: str) -> None:
    labels, predictions = cut("wide", "wide")
    labels = labels.select(["query", "item"])
    table = pa.table({"query": labels["query"], name: [i % 3 for i in range(len(labels))]})
    both = frame_of(spark, labels), frame_of(spark, predictions)
    found = rankmill.spark.evaluate(*both, ["ndcg@3"], by=table, partitions=2)
    whole = rankmill.evaluate(labels, predictions, ["ndcg@3"], by=table)
    same(found, whole)
    assert found.by == whole.by


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ({"metrics": "gap", "by": "kind"}, UsageError, ["gap has no slices", "without by"]),
        ({"by": "label_popularity"}, UsageError, ["labels of all queries"]),
        ({"metrics": "psp@3"}, UsageError, ["psp@3", "in training"]),
        ({"metrics": "rbo:baseline"}, UsageError, ["lists of two systems", "one machine"]),
        ({"by": "city"}, InputError, ["city"]),
        ({"by": "kind", "sums": "x = map[city=a]"}, UsageError, ["'x'", "only of kind"]),
        ({"by": "kind", "sums": "x = map[kind=z]"}, InputError, ["'z'", "a, b, c"]),
        ({"sums": "x = map[kind=z]"}, UsageError, ["no slices"]),
    ],
)
def test_what_cannot_be_is_told(spark: Any, how: Any, kind: type, words: list[str]) -> None:
    labels, predictions = cut("wide", "wide")
    with pytest.raises(kind) as caught:
        rankmill.spark.evaluate(
            frame_of(spark, labels),
            frame_of(spark, predictions),
            partitions=2,
            **{"metrics": "map"} | how,
        )
    tells(caught.value, words)


def test_tables_that_spark_cannot_cut_by(spark: Any, tmp_path: Path) -> None:
    labels, predictions = (frame_of(spark, one) for one in cut("wide", "wide"))
    with pytest.raises(UsageError, match="join this DataFrame to the labels"):
        rankmill.spark.evaluate(labels, predictions, "map", by=labels)
    path = tmp_path / "kinds.csv"
    path.write_text("query,kind\nid 1,x\n")
    with pytest.raises(UsageError, match="the labels have a column 'kind' too: rename"):
        rankmill.spark.evaluate(labels, predictions, "map", by=str(path))
    path.write_text("query,age\nid 1,x\nid 1,y\n")
    with pytest.raises(InputError, match="query 'id 1' has 'x' and 'y' in column 'age'"):
        rankmill.spark.evaluate(labels, predictions, "map", by=str(path))
    table = pa.table({"query": ["id 1"], "age": ["x"]})
    with pytest.raises(UsageError, match="coverage@3 counts the lists of queries without labels"):
        rankmill.spark.evaluate(labels, predictions, "coverage@3", by=table)
    how = rankmill.Semantics(unlabelled="zero")
    with pytest.raises(UsageError, match="unlabelled 'zero' counts the lists"):
        rankmill.spark.evaluate(labels, predictions, "map", by=table, semantics=how)
    runs = {"a": predictions, "b": predictions}
    with pytest.raises(UsageError, match="the lists of the first system"):
        rankmill.spark.evaluate_runs(labels, runs, "map", by="list_length")


def test_more_values_than_anybody_reads(spark: Any) -> None:
    many = pa.table({"query": range(1200), "items": [[1]] * 1200, "id": [*range(1200)]})
    with pytest.raises(UsageError, match="id has 1,200 values; expected 1,000 at most"):
        rankmill.spark.evaluate(
            frame_of(spark, many), frame_of(spark, many), "map", by="id", partitions=20
        )


def test_the_command(spark: Any, tmp_path: Path, run: Any) -> None:
    labels, predictions = cut("wide", "wide")
    paths = tmp_path / "labels.parquet", tmp_path / "run.parquet"
    for one, path in zip((labels, predictions), paths, strict=True):
        pq.write_table(one, path)
    given = *paths, "-m", "map@3", "-m", "recall@3:micro", "--by", "kind", "--sum", SUMS[0]
    given = *given, "--format", "csv"
    assert run("spark", "evaluate", *given)[1] == run("evaluate", *given)[1]
