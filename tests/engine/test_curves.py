"""Metrics over their cutoffs, and precision over recall: as a table and as a picture."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill.engine.curves import curve_lines, curve_picture, curve_rows, cuts_of
from rankmill.errors import UsageError
from rankmill.show.marks import Marker, Stroke, Text
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
    for shown in ("Value by cutoff, with 95% intervals", ">map<", ">recall<", ">poor<", ">good<"):
        assert shown in text
    medians = rankmill.evaluate_runs(table(LABELS), RUNS, "map@1..2:median").plot()
    assert medians.title == "Value by cutoff"
    over_recall = rankmill.evaluate_runs(table(LABELS), RUNS, "pr").plot()
    assert over_recall.title == "Precision by recall, with 95% intervals"


def test_without_curves_a_picture_has_the_values_with_their_intervals() -> None:
    picture = rankmill.evaluate_runs(table(LABELS), RUNS, "map,recall@1").plot()
    assert picture.title == "Values, with 95% intervals"
    for shown in (">map<", ">recall@1<", ">poor<", ">good<"):
        assert shown in picture.svg()
    one = rankmill.evaluate(table(LABELS), RUNS["good"], "map,recall@1").plot()
    assert (one.title, ">map<" in one.svg()) == (picture.title, True)


def test_a_picture_has_slices_below_each_metric() -> None:
    labels = LABELS | {1000 + place: [1] for place in range(60)}
    counted = [len(one) for one in labels.values()]
    many = {"query": [*labels], "place": [*range(len(labels))], "labels": counted}
    asked: dict[str, Any] = {"metrics": "map,recall@1", "by": pa.table(many)}
    one = rankmill.evaluate(table(labels), RUNS["good"], **asked).plot().svg()
    assert one.count(">by labels (queries)<") == 2
    assert ">all queries<" in one
    left_out = f">by place (queries); {len(labels) - 40} more not drawn<"
    assert one.count(left_out) == 2
    assert ">0 (1)<" in one
    several = rankmill.evaluate_runs(table(labels), RUNS, **asked).plot().svg()
    assert several.count(">by labels (queries)<") == 2
    assert ">1 · good (" in several
    assert f"{len(labels) - 20} more not drawn<" in several


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
    code, _, error = run("evaluate", *files, "-m", "pr", "--plot", "c.svg")
    assert (code, error) == (0, "")
    with open("c.svg", encoding="utf-8") as file:
        assert "Precision by recall" in file.read()


def test_curves_of_both_kinds_are_one_table(files: list[str], run: Any) -> None:
    code, _, error = run("evaluate", *files[:2], "-m", "map@1..3,auprc", "--curve", "c.parquet")
    assert (code, error) == (0, "")
    found = pq.read_table("c.parquet")
    assert {*found["metric"].to_pylist()} == {"map", "auprc"}
    assert found["recall"].null_count == 3


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--curve", "pr"], "-m pr prints the values, -m pr --plot curve.svg draws them"),
        (["--curve", "map@1..100"], "and -m map@1..100 --curve curve.csv writes them as a table"),
        (
            ["-m", "pr", "--curve", "c.svg"],
            "--plot c.svg draws curves: --curve writes points, in .json, ",
        ),
        (["-m", "map", "--curve", "c.csv"], "--curve needs a metric at several cutoffs"),
        (["-m", "map@1..3", "--plot", "c.csv"], "cannot draw 'c.csv': expected a name in .svg"),
    ],
)
def test_what_is_no_curve_is_told_before_anything_is_read(
    given: list[str], told: str, run: Any
) -> None:
    code, _, error = run("evaluate", "none", "nothing", *given)
    assert code == 2
    assert told in error


# ------------------------------------------------------------------ what is drawn


def scored(confidence: float, right: float, count: int = 400) -> Any:
    """Predictions of one item each, of which a share is right, around a confidence."""
    draw = random.Random(int(1000 * confidence))
    rows = [
        (q, 1 if draw.random() < right else 2, confidence * draw.random()) for q in range(count)
    ]
    return pa.table({"query": [r[0] for r in rows], "items": [[r[1]] for r in rows],
                     "scores": [[r[2]] for r in rows]})  # fmt: skip


def confident() -> rankmill.Results:
    labels = pa.table({"query": range(400), "items": [[1]] * 400})
    runs = {"a": scored(1.0, 0.5), "b": scored(0.5, 0.25)}
    return rankmill.evaluate_runs(labels, runs, "auprc,best_f1,ece(bins=4),brier,map@1..2")


def test_bands_are_the_standard_errors_within_the_range() -> None:
    results = rankmill.evaluate_runs(table(LABELS), RUNS, "recall@1..3")
    picture = curve_picture(results)
    bands = [one for one in picture.marks if isinstance(one, Stroke) and "shade" in one.role]
    assert [one.role for one in bands] == ["shade s1", "shade s0"]
    ticks = [(float(one.text), one.y - 4) for one in picture.marks
             if isinstance(one, Text) and "." in one.text]  # fmt: skip
    (low, bottom), (high, top) = min(ticks), max(ticks)
    for system, band in zip(("good", "poor"), bands, strict=True):
        one = results[system]
        reach = [1.959964 * (one.standard_errors[f"recall@{k}"] or 0) for k in (1, 2, 3)]
        wanted = [max(one[f"recall@{k}"] - r, 0.0) for k, r in zip((1, 2, 3), reach, strict=True)]
        wanted += [min(one[f"recall@{k}"] + r, 1.0) for k, r in zip((3, 2, 1), reach[::-1],
                                                                 strict=True)]  # fmt: skip
        shown = [low + (high - low) * (y - bottom) / (top - bottom) for _, y in band.points]
        assert shown == pytest.approx(wanted, abs=1e-4)


def test_intervals_end_with_the_range_of_the_metric() -> None:
    run = {1: [1, 9], 2: [9, 1], 3: [9, 1]}
    lines = curve_lines(rankmill.evaluate_runs({1: [1], 2: [1], 3: [1]}, {"a": run}, "map@1..2"))
    ends = [ends for _, ends in lines["map"]["a"].values()]
    assert ends[0] == (0.0, pytest.approx(1 / 3 * (1 + 1.959964)))
    assert ends[1] == (pytest.approx(2 / 3 - 1.959964 / 6), pytest.approx(2 / 3 + 1.959964 / 6))


def test_curves_by_confidence_are_drawn() -> None:
    results = confident()
    lines = curve_lines(results)
    assert list(lines) == ["map", "precision by recall, all predictions"]
    for name, one in results.items():
        curve = one.curve("auprc").to_pylist()
        for recall, (value, _) in lines["precision by recall, all predictions"][name].items():
            known = [row["precision"] for row in curve if row["recall"] >= recall]
            assert value == max(known, default=None)
    text = results.plot().svg()
    assert text.count("ece(bins=4): accuracy by confidence") == 2  # one for each system
    assert text.count(">precision by recall, all predictions<") == 1
    assert "brier" not in text
    assert text == confident().plot().svg()


def test_a_reliability_diagram_has_its_bins_and_the_diagonal() -> None:
    results = rankmill.Results({"a": confident()["a"]})
    only = {n: v for n, v in results["a"].metrics.items() if n.startswith("ece")}
    picture = curve_picture({"a": replace(results["a"], metrics=only)})
    assert picture.title == "Reliability"
    dots = [one for one in picture.marks if isinstance(one, Marker) and one.size == 4][:-1]
    bins = results["a"].curve("ece(bins=4)").to_pylist()
    (diagonal,) = [one for one in picture.marks
                   if isinstance(one, Stroke) and one.dash == "4 4"]  # fmt: skip
    (left, bottom), (right, top) = diagonal.points
    assert [((d.x - left) / (right - left), (d.y - bottom) / (top - bottom)) for d in dots] == [
        pytest.approx((row["mean"], row["accuracy"]), abs=1e-9) for row in bins
    ]


def test_results_of_json_have_no_curves_to_draw() -> None:
    again = rankmill.Results.from_json(confident().to_json())
    assert ">map<" in again.plot().svg()
    assert "ece" not in again.plot().svg()


def test_long_lines_have_few_markers_and_labels() -> None:
    picture = rankmill.evaluate_runs(table(LABELS), RUNS, "map@1..100").plot()
    marked = [one for one in picture.marks if isinstance(one, Marker) and one.role == "s0"]
    assert len(marked) <= 25 + 1
    texts = [one.text for one in picture.marks if isinstance(one, Text)]
    assert [text for text in texts if text.isdecimal()] == ["100", "80", "60", "40", "20"]
