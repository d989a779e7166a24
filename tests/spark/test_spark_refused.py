"""What is not on Spark is refused by name, and what keeps tasks from running is told in a line."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import rankmill
import rankmill.spark
from data import frame_of, same, tables
from rankmill.spark.exchange import spark_request
from rankmill.spark.exchange.layout import to_arrow

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours


# What is asked about a DataFrame before any session is.
FRAME = SimpleNamespace(mapInArrow=None, schema=None, sparkSession=None, isStreaming=False)


@pytest.mark.parametrize(
    ("function", "option", "value"),
    [
        ("evaluate", "threads", 2),
        ("evaluate_runs", "progress", True),
        ("compare", "cluster", "country"),
        ("compare", "all_pairs", True),
        ("compare", "cutoffs", [1, 5]),
        ("gate", "adjust", "visits"),
        ("gate", "details", True),
    ],
)
def test_options_of_one_machine_are_refused_by_name(function: str, option: str, value: Any) -> None:
    runs: Any = FRAME if function in ("evaluate", "gate") else {"old": FRAME, "new": FRAME}
    asked = "map > 0" if function == "gate" else "map"
    wanted = f"^{option} is not supported on Spark: leave it out, or give the same rows in files"
    with pytest.raises(rankmill.UsageError, match=wanted):
        getattr(rankmill, function)(FRAME, runs, asked, **{option: value})
    assert getattr(rankmill.spark, function) is getattr(rankmill, function)


def test_one_machine_has_no_partitions_and_other_functions_no_frames() -> None:
    one = {"q": ["a"]}
    with pytest.raises(rankmill.UsageError, match=r"\Apartitions are those of Data"):
        rankmill.evaluate(one, one, "map", partitions=2)
    with pytest.raises(rankmill.UsageError, match="labels cannot be a DataFrame of Spark here: on"):
        rankmill.explain(FRAME, one, "q", "map")
    with pytest.raises(rankmill.UsageError, match=r"\A:baseline is not supported on Spark"):
        rankmill.compare(FRAME, {"old": FRAME, "new": FRAME}, "rbo@2:baseline")


@pytest.mark.parametrize("labelled", [True, False])
def test_all_inputs_are_on_spark_or_none(labelled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FRAME, "sparkSession", SimpleNamespace(version="4.0.0"))
    sides = [FRAME, {"q": ["a"]}][:: 1 if labelled else -1]
    other = "predictions" if labelled else "labels"
    wanted = f"{other} cannot be a dict; expected a DataFrame of Spark, as another input is one"
    with pytest.raises(rankmill.UsageError, match=wanted):
        rankmill.evaluate(*sides, "map")


@pytest.mark.parametrize("name", ["plan", "plan_runs"])
def test_what_is_gone_says_what_to_do(name: str) -> None:
    assert name not in dir(rankmill.spark)
    with pytest.raises(AttributeError, match="both inputs are always shuffled by query"):
        getattr(rankmill.spark, name)


class PythonException(Exception):  # noqa: N818
    """As pyspark calls an error of a task."""


@pytest.mark.parametrize(
    ("told", "limit", "error"),
    [
        ("ImportError: libarrow.so.2200: failed to map segment", "300m", rankmill.ResourceError),
        ("numpy._core._exceptions._ArrayMemoryError: x\nMemoryError", "1g", rankmill.ResourceError),
        ("ImportError: libarrow.so.2200: failed to map segment", None, PythonException),
        ("ModuleNotFoundError: No module named 'rankmill'", "300m", rankmill.UsageError),
        ("rankmill.errors.InputError: other rows", None, rankmill.InputError),
        ("ValueError: else", "300m", PythonException),
    ],
)
def test_python_without_room_names_the_setting(
    monkeypatch: pytest.MonkeyPatch, told: str, limit: str | None, error: type[Exception]
) -> None:
    from pyspark.sql import SparkSession

    @spark_request.on_spark
    def evaluate() -> None:
        raise PythonException(f"An exception was thrown from the Python worker:\n{told}\n")

    settings = SimpleNamespace(get=lambda name, default: limit)
    session = SimpleNamespace(conf=settings)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: session)
    with pytest.raises(error) as caught:
        evaluate()
    if error is rankmill.ResourceError:
        told = str(caught.value)
        assert f"spark.executor.pyspark.memory is {limit}, " in told
        assert "or set it to 1.1GB and four times the rows of a task for each core" in told


def test_columns_may_have_dots_and_backticks(spark: Any) -> None:
    labels, old = tables("strings", "wide", "wide")
    new = tables("strings", "wide", "long", seed=3)[1]
    names = {"query": "a.`b", "item": "`c`.d", "score": "e f`"}
    tables_ = [
        one.rename_columns([names.get(n, n) for n in one.column_names])
        for one in (labels, old, new)
    ]
    told = {"query": names["query"], "item": names["item"]}

    def given(three: list[Any]) -> tuple[Any, dict[str, Any]]:
        runs = [rankmill.Predictions(one, score=names["score"], **told) for one in three[1:]]
        return rankmill.Labels(three[0], **told), {"old": runs[0], "new": runs[1]}

    here, runs = given(tables_)
    there, frames = given([frame_of(spark, one) for one in tables_])
    metrics = ["map@3", "gap"]
    for name, run in runs.items():
        found = rankmill.spark.evaluate(there, frames[name], metrics, per_query=True)
        whole = rankmill.evaluate(here, run, metrics)
        same(found, whole)
        rows = to_arrow(found.per_query).sort_by(names["query"]).to_pylist()
        assert rows == whole.per_query.sort_by(names["query"]).to_pylist()
    found = rankmill.spark.compare(there, frames, metrics, by="label_popularity")
    assert found.slices == rankmill.compare(here, runs, metrics, by="label_popularity").slices
