"""Metrics over their cutoffs, and precision over recall: as a table and as a picture."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill.engine.curves import curve_rows, cuts_of
from rankmill.errors import UsageError
from systems import made, table

LABELS, POOR, GOOD = made(6, 40)
RUNS = {"poor": table(POOR), "good": table(GOOD)}


def interpolated(run: dict[int, list[int]], recall: float) -> float:
    """The mean over queries of the largest precision at any rank with at least that recall."""
    best = []
    for query, labels in LABELS.items():
        needed = int(recall * len(labels) + 0.9)  # as trec_eval rounds
        right = [item in labels for item in run[query]]
        precisions = [
            sum(right[:k]) / k for k in range(1, len(right) + 1) if sum(right[:k]) >= needed
        ]
        best.append(max(precisions, default=0.0))
    return sum(best) / len(best)


def test_precision_over_recall_is_interpolated() -> None:
    results = rankmill.evaluate_runs(table(LABELS), RUNS, "pr")
    rows = curve_rows(results).to_pylist()
    assert [row["cutoff"] for row in rows] == [tenths / 10 for tenths in range(11)] * 2
    for row in rows:
        run = {"poor": POOR, "good": GOOD}[row["system"]]
        assert row["value"] == pytest.approx(interpolated(run, row["cutoff"]), abs=1e-12)


def test_a_curve_has_the_values_of_each_cutoff_alone() -> None:
    results = rankmill.evaluate_runs(table(LABELS), RUNS, "map@1..5,mrr")
    rows = curve_rows(results).to_pylist()
    assert len(rows) == 2 * 5
    for row in rows:
        name = f"map@{row['cutoff']:g}"
        alone = rankmill.evaluate(table(LABELS), RUNS[row["system"]], name)
        assert (row["metric"], row["value"]) == ("map", alone[name])
        assert row["standard_error"] == alone.standard_errors[name]


def test_one_curve_a_metric_with_its_parameters() -> None:
    asked = ["map@1", "map(rel=2)@1..2", "ndcg@1..2:median", "P_1..2", "iprec@0.5", "mrr"]
    found = cuts_of(rankmill.evaluate(table(LABELS), RUNS["good"], asked).metrics)
    assert list(found) == ["map(rel=2)", "ndcg:median", "precision"]
    assert found["precision"] == {1: "P_1", 2: "P_2"}


@pytest.mark.parametrize("text", ["map@0..3", "map@3..3", "map@5..2", "map@1..5000"])
def test_cutoffs_rise(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected rising ones, 1,000 at most"):
        rankmill.evaluate(table(LABELS), RUNS["good"], text)


def test_a_picture_has_a_panel_a_metric_and_a_line_a_system() -> None:
    results = rankmill.evaluate_runs(table(LABELS), RUNS, "map@1..5,recall@1,3")
    text = results.plot().svg()
    for shown in ("Value by cutoff", ">map<", ">recall<", ">poor<", ">good<"):
        assert shown in text
    over_recall = rankmill.evaluate_runs(table(LABELS), RUNS, "pr").plot()
    assert over_recall.title == "Precision by recall"
    with pytest.raises(UsageError, match="no picture of a Results without a metric at several"):
        rankmill.evaluate_runs(table(LABELS), RUNS, "map").plot()


@pytest.fixture
def files(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(LABELS), "labels.parquet")
    for name, one in RUNS.items():
        scored = one.append_column("scores", pa.array([[0.9, 0.5, 0.1]] * len(one)))
        pq.write_table(scored, f"{name}.parquet")
    return ["labels.parquet", "poor.parquet", "good.parquet"]


def test_the_command_writes_and_draws(files: list[str], run: Any) -> None:
    code, _, error = run("evaluate", *files, "-m", "map@1..3,pr", "--curve", "c.csv")
    assert (code, error) == (0, "")
    found = pc.read_csv("c.csv")
    assert found.column_names == ["system", "metric", "cutoff", "value", "standard_error"]
    assert found.num_rows == 2 * (3 + 11)
    code, _, error = run("evaluate", *files, "-m", "pr", "--curve", "c.svg")
    assert (code, error) == (0, "")
    with open("c.svg", encoding="utf-8") as file:
        assert "Precision by recall" in file.read()


def test_curves_of_both_kinds_are_one_table(files: list[str], run: Any) -> None:
    code, _, error = run("evaluate", *files[:2], "-m", "map@1..3,auprc", "--curve", "c.parquet")
    assert (code, error) == (0, "")
    found = pq.read_table("c.parquet")
    assert {*found["metric"].to_pylist()} == {"map", "auprc"}
    assert found["recall"].null_count == 3


def test_a_picture_of_confidences_is_refused_before_anything_is_read(run: Any) -> None:
    code, _, error = run("evaluate", "none", "nothing", "-m", "auprc", "--curve", "c.svg")
    assert code == 2
    assert "--curve draws a metric at several cutoffs, such as map@1..100, or pr" in error
