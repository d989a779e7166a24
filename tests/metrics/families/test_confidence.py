"""Metrics of all predictions by confidence: the oracle, scikit-learn, parts, errors."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle_confidence
import rankmill
import strategies
from oracle import parameters, parse
from rankmill import InputError, UsageError
from rankmill.parts import State
from rankmill.results.curves import curves_of

CURVES = ["roc_auc", "auprc", "auprc_step", "best_f1", "best_f1_threshold"]
CURVES += [f"recall_at_precision@{at}" for at in ("0", "0.5", "0.9", "1")]
CURVES += [f"precision_at_recall@{at}" for at in ("0", "0.5", "0.9", "1")]
SUMS = ["ece", "ece(bins=1)", "ece(bins=4)", "brier", "log_loss", "dprime"]
METRICS = [*CURVES, *SUMS, "auprc@2", "best_f1@1", "ece(bins=10)@2", "brier@1", "dprime@2"]
METRICS += ["roc_auc@2", "log_loss@2"]
# At, below and above the edges of bins, and equal ones.
CONFIDENCES = [0.0, -0.0, 0.1, 0.25, 0.5, math.nextafter(0.5, 1), 0.75, 0.9, 1.0, 5e-324]
CLOSE = {"rel": 1e-12, "abs": 1e-12}

Listed = list[list[tuple[float, bool]]]


def tables(listed: Listed, kind: Any = None) -> tuple[pa.Table, pa.Table]:
    """Query q has the label 0; a right prediction is 0, wrong ones are all others."""
    items, scores = [], []
    for one in listed:
        right = [place for place, (_, is_right) in enumerate(one) if is_right][:1]
        items.append([0 if place in right else place + 1 for place in range(len(one))])
        scores.append([confidence for confidence, _ in one])
    queries = list(range(len(listed)))
    labels = pa.table({"query_id": queries, "items": [[0]] * len(listed)})
    columns = {
        "query_id": pa.array(queries, pa.int64()),
        "items": pa.array(items, pa.list_(pa.int64())),
        "scores": pa.array(scores, pa.list_(kind or pa.float64())),
    }
    return labels, pa.table(columns)


def expected(listed: Listed, metric: str) -> float | None:
    """Only the first right one of a list is right."""
    name, k = parse(metric)
    flat = []
    for one in listed:
        found = False
        for confidence, right in one[:k]:
            flat.append((confidence, right and not found))
            found = found or right
    return oracle_confidence.VALUES[name](flat, len(listed), **parameters(metric))


lists = st.lists(
    st.lists(st.tuples(st.sampled_from(CONFIDENCES), st.booleans()), max_size=5),
    min_size=1,
    max_size=6,
).filter(any)


@pytest.mark.small
@settings(max_examples=strategies.examples(60))
@given(listed=lists, memory=st.sampled_from([1, 1 << 30]), chunk=st.sampled_from([1, 100]))
def test_is_the_oracle(listed: Listed, memory: int, chunk: int) -> None:
    labels, predictions = tables(listed)
    chunked = strategies.chunked(predictions, chunk)
    result = rankmill.evaluate(labels, chunked, METRICS, memory=memory)
    for metric in METRICS:
        wanted = expected(listed, metric)
        if wanted is not None:
            wanted = pytest.approx(wanted, **CLOSE)
        assert result.metrics[metric] == wanted, metric
        assert result.standard_errors[metric] is None
    # Neither batches nor threads change a bit, nor does a second pass.
    again = rankmill.evaluate(labels, predictions, METRICS, threads=1)
    assert again.metrics == result.metrics


@pytest.mark.small
@settings(max_examples=strategies.examples(20))
@given(listed=lists, cut=st.integers(0, 6))
def test_parts_and_rows_give_the_same_bits(listed: Listed, cut: int) -> None:
    labels, predictions = tables(listed)
    whole = rankmill.evaluate(labels, predictions, METRICS)
    halves = [(one.slice(0, cut), one.slice(cut)) for one in (labels, predictions)]
    sides = list(zip(*halves, strict=True))
    states = [rankmill.parts.evaluate_part(*side, METRICS) for side in sides]
    rows = pa.Table.from_pylist([one.to_row() for one in states]).to_pylist()
    first, second = map(State.from_row, rows)
    state = second.merge(first)
    assert state.fingerprint == states[0].merge(states[1]).fingerprint
    counts = [rankmill.parts.second_pass(state, side[1]) for side in sides]
    among = {name: counts[1][name].merge(one) for name, one in counts[0].items()}
    assert state.result(among).metrics == whole.metrics


def test_scikit_learn() -> None:
    """On random dumps; recall is by the number of hits, as it is there."""
    from sklearn import metrics as sklearn

    generator = np.random.default_rng(3)
    hits = {"gap_total": "hits"}
    for _ in range(strategies.examples(200)):
        count = int(generator.integers(2, 40))
        scores = np.round(generator.random((count, 3)), int(generator.integers(1, 4)))
        right = np.zeros((count, 3), bool)
        right[np.arange(count), generator.integers(0, 3, count)] = generator.random(count) < 0.6
        right[0, 0] = not right[0].any() or right[0, 0]
        listed = [
            list(zip(*pair, strict=True))
            for pair in zip(scores.tolist(), right.tolist(), strict=True)
        ]
        names = ["auprc", "auprc_step", "brier", "best_f1", "best_f1_threshold"]
        names += ["recall_at_precision@0.5", "precision_at_recall@0.9"]
        found = rankmill.evaluate(*tables(listed), names, semantics=hits)
        y, p = right.ravel(), scores.ravel()
        precision, recall, thresholds = sklearn.precision_recall_curve(y, p)
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):
            warnings.simplefilter("ignore")
            f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
        assert found["auprc"] == pytest.approx(sklearn.auc(recall, precision), **CLOSE)
        assert found["auprc_step"] == pytest.approx(sklearn.average_precision_score(y, p), **CLOSE)
        assert found["brier"] == pytest.approx(sklearn.brier_score_loss(y, p), **CLOSE)
        assert found["best_f1"] == pytest.approx(f1.max(), **CLOSE)
        at = f1[:-1][thresholds == found["best_f1_threshold"]]
        assert at == pytest.approx(f1.max(), **CLOSE)
        reached = recall[precision >= 0.5].max()
        assert found["recall_at_precision@0.5"] == pytest.approx(reached, **CLOSE)
        reached = precision[recall >= 0.9].max()
        assert found["precision_at_recall@0.9"] == pytest.approx(reached, **CLOSE)


@pytest.mark.small
def test_by_hand() -> None:
    """Right at 0.9, wrong at 0.8, right at 0.6, wrong at 0.6; two queries have a label."""
    listed = [[(0.9, True), (0.8, False)], [(0.6, True), (0.6, False)]]
    found = rankmill.evaluate(*tables(listed), METRICS)
    # Points (0.5, 1), (0.5, 1/2) and (1, 1/2), from (0, 1).
    assert found["auprc"] == 0.5 + 0.5 * 0.5
    assert found["auprc_step"] == 0.5 + 0.5 * 0.5
    assert found["recall_at_precision@0.9"] == 0.5
    assert found["precision_at_recall@0.9"] == 0.5
    assert (found["best_f1"], found["best_f1_threshold"]) == (2 / 3, 0.9)
    assert found["brier"] == pytest.approx((0.01 + 0.64 + 0.16 + 0.36) / 4)
    # Bins end at 0.25, 0.5, 0.75 and 1: two of 0.6, of which one is right, and 0.8 and 0.9.
    assert found["ece(bins=4)"] == pytest.approx((abs(1 - 1.2) + abs(1 - 1.7)) / 4)
    assert found["dprime"] == pytest.approx(0.05 / math.sqrt((0.15**2 + 0.1**2) / 2))


@pytest.mark.small
def test_zeros_of_both_signs_are_one_threshold() -> None:
    labels = {"q1": {"a": 1}, "q2": {"c": 1}}
    runs = {"q1": [("a", -0.0)]}, {"q2": [("c", 0.0)]}
    for one, other in (runs, runs[::-1]):
        found = rankmill.evaluate(labels, one | other, "best_f1_threshold")
        assert math.copysign(1, found["best_f1_threshold"] or 0.0) == 1


@pytest.mark.small
def test_the_query_of_a_wrong_confidence_is_named() -> None:
    labels = {"q1": {"a": 1}, "q2": {"c": 1}}
    run = {"q1": [("a", 0.9), ("x", -5.0)], "q2": [("c", 2.0)]}
    with pytest.raises(InputError, match="query 'q2' has the confidence 2"):
        rankmill.evaluate(labels, run, "brier@1")


@pytest.mark.small
def test_without_a_value() -> None:
    nothing = rankmill.evaluate(*tables([[(0.5, False)], []]), METRICS)
    assert nothing.metrics["best_f1_threshold"] is None
    assert nothing.metrics["dprime"] is None
    assert [nothing[name] for name in ("auprc", "best_f1", "ece", "brier")] == [0, 0, 0.5, 0.25]
    infinite = rankmill.evaluate(*tables([[(math.inf, True)], []]), ["best_f1_threshold"])
    assert infinite.metrics["best_f1_threshold"] is None
    equal = rankmill.evaluate(*tables([[(0.5, False)], [(0.5, True)]]), ["dprime"])
    assert equal.metrics["dprime"] is None


@pytest.mark.small
@pytest.mark.parametrize(
    ("confidence", "metric", "wanted"),
    [
        (1.5, "ece", ["query 1", "1.5", "ece needs one from 0 to 1", "rescale"]),
        (-0.1, "brier@2", ["query 1", "-0.1", "brier@2"]),
        (math.inf, "dprime", ["query 1", "inf", "a finite one"]),
    ],
)
def test_confidences_are_checked(confidence: float, metric: str, wanted: list[str]) -> None:
    listed = [[(0.5, True)], [(0.9, True), (confidence, False)]]
    with pytest.raises(InputError) as error:
        rankmill.evaluate(*tables(listed), [metric])
    tells(error.value, wanted)
    assert rankmill.evaluate(*tables(listed), CURVES)["best_f1"] > 0


@pytest.mark.small
@pytest.mark.parametrize(
    ("metric", "wanted"),
    [
        ("recall_at_precision", ["needs precision", "recall_at_precision@0.5"]),
        ("recall_at_precision@1.5", ["'1.5'", "from 0 to 1"]),
        ("ece(bins=0)", ["bins", "'0'"]),
        ("ece(bins=1001)", ["bins", "below 1001"]),
        ("ece(bins=2.5)", ["an integer"]),
    ],
)
def test_parameters_are_checked(metric: str, wanted: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        rankmill.evaluate(*tables([[(0.5, True)]]), [metric])
    tells(error.value, wanted)


@pytest.mark.small
def test_damaged_rows_are_refused() -> None:
    row = rankmill.parts.evaluate_part(*tables([[(0.5, True), (0.25, False)]]), METRICS).to_row()
    for name, value in (
        ("recall_at_precision@0.5.at", 2.0),
        ("ece.predictions", [1]),
        ("ece.correct", [9] * 15),
        ("ece.totals", ["x"] * 15),
        ("brier.correct.squares", str(10**1000)),
        ("dprime.correct.count", 9),
    ):
        with pytest.raises(UsageError) as error:
            State.from_row({**row, name: value})
        tells(error.value, ["damaged"])


@pytest.mark.small
def test_a_curve_does_not_hold_all_predictions() -> None:
    """It is made when it is asked for, from what the correct predictions come to."""
    many = 20_000
    sides = tables([[(number / many, number < 9) for number in range(many)]])
    result = rankmill.evaluate(*sides, "auprc,gap,ece")
    for name in ("auprc", "ece"):
        assert len(pickle.dumps(result.curves[name])) < many
    assert len(result.curve("auprc")) == 1


@pytest.mark.small
def test_the_curve_is_explained() -> None:
    labels, predictions = tables([[(0.9, True), (0.8, False)], [(0.6, True), (0.6, False)]])
    found = rankmill.explain(labels, predictions, "auprc")
    assert found.value == rankmill.evaluate(labels, predictions, "auprc")["auprc"]
    assert found.table.to_pydict() == {
        "confidence": [0.9, 0.6],
        "predictions": [1, 4],
        "correct": [1, 2],
        "precision": [1.0, 0.5],
        "recall": [0.5, 1.0],
        "f1": [2 / 3, 2 / 3],
    }
    short = rankmill.explain(labels, predictions, "best_f1", rows=1)
    assert short.table["recall"].to_pylist() == [1.0]
    tells(short, ["1 of 2, by even steps", "best_f1 = 0.666", "recall"])
    bins = rankmill.explain(labels, predictions, "ece(bins=4)", rows=1).table.to_pydict()
    assert (bins["up to"], bins["correct"], bins["accuracy"]) == ([0.75, 1.0], [1, 1], [0.5, 0.5])
    kinds = rankmill.explain(labels, predictions, "dprime").table.to_pydict()
    assert kinds["predictions"] == [2, 2]
    assert kinds["deviation"] == pytest.approx([0.15, 0.1])


def test_rows_of_a_long_curve_are_even() -> None:
    listed = [[(place / 1000, place % 3 > 0)] for place in range(1000)]
    found = rankmill.explain(*tables(listed), "auprc", rows=10).table
    assert found["correct"].to_pylist() == [67, 134, 200, 267, 333, 400, 467, 533, 600, 666]


@pytest.mark.small
def test_compare_says_what_it_lacks() -> None:
    labels, predictions = tables([[(0.5, True)], [(0.25, False)], [(0.75, True)]])
    found = rankmill.compare(labels, {"a": predictions, "b": predictions}, ["brier", "best_f1"])
    assert any("brier is not a mean over queries" in note for note in found.notes)


@pytest.mark.small
def test_the_second_pass_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics of the same confidences share their counts."""
    from rankmill.metrics.gap.gap_counts import GapCounter

    made = []
    plain = GapCounter.__init__
    monkeypatch.setattr(
        GapCounter, "__init__", lambda self, *told: (made.append(self), plain(self, *told))[1]
    )
    pair = tables([[(0.5, True), (0.25, False)], [(0.75, False)]])
    for memory in (1, 1 << 30):
        made.clear()
        rankmill.evaluate(*pair, ["gap", *CURVES, "auprc@1", "best_f1@1"], memory=memory)
        assert len(made) == 2


# ------------------------------------------------------------------ curves as tables


@pytest.mark.small
def test_curves_are_those_of_explain(tmp_path: Path, run_cli: Any) -> None:
    """Of a result, of merged parts, and in files; each metric has its rows."""
    labels, predictions = tables(
        [[(0.9, True), (0.3, False)], [(0.8, True), (0.6, False)], [(0.7, False), (0.2, True)]]
    )
    metrics = ["map", "auprc", "ece(bins=4)", "brier", "gap"]
    result = rankmill.evaluate(labels, predictions, metrics)
    assert list(result.curves) == ["auprc", "ece(bins=4)", "brier"]
    for name in result.curves:
        assert result.curve(name) == rankmill.explain(labels, predictions, name).table
    assert result.curve("PR_AUC") == result.curve("auprc")
    curve = result.curve("auprc").to_pydict()
    assert curve["confidence"] == [0.9, 0.8, 0.2]
    assert curve["recall"] == [1 / 3, 2 / 3, 1]
    assert result.curve("auprc", rows=1)["recall"].to_pylist() == [1]
    assert result.curve("ece(bins=4)", rows=1).num_rows == 4
    state = rankmill.parts.evaluate_part(labels, predictions, metrics)
    counts = rankmill.parts.second_pass(state, predictions)
    assert state.result(counts).curve("auprc") == result.curve("auprc")
    pq.write_table(labels, tmp_path / "l.parquet")
    pq.write_table(predictions, tmp_path / "p.parquet")
    paths = [tmp_path / "l.parquet", tmp_path / "p.parquet"]
    asked = ["-m", "map", "-m", "auprc", "-m", "ece(bins=4)"]
    for name in ("c.parquet", "c.csv", "c.json"):
        assert run_cli("evaluate", *paths, *asked, "--curve", tmp_path / name).exit_code == 0
    table = pq.read_table(tmp_path / "c.parquet")
    assert table["metric"].to_pylist() == ["auprc"] * 3 + ["ece(bins=4)"] * 4
    assert table["recall"].to_pylist() == [1 / 3, 2 / 3, 1, *[None] * 4]
    assert json.loads((tmp_path / "c.json").read_text()) == table.to_pylist()
    assert (tmp_path / "c.csv").read_text().startswith("metric,confidence,predictions,correct,")
    pq.write_table(predictions, tmp_path / "q.parquet")
    paths.append(tmp_path / "q.parquet")
    both = run_cli("evaluate", *paths, *asked, "--curve", tmp_path / "both.parquet")
    assert both.exit_code == 0, both.stderr
    assert len(set(pq.read_table(tmp_path / "both.parquet")["system"].to_pylist())) == 2


@pytest.mark.small
def test_no_curve(tmp_path: Path, run_cli: Any) -> None:
    labels, predictions = tables([[(0.5, True)]])
    result = rankmill.evaluate(labels, predictions, ["map", "auprc"])
    with pytest.raises(UsageError, match="map has no curve; auprc"):
        result.curve("map")
    with pytest.raises(KeyError, match="no metric 'ece'"):
        result.curve("ece")
    with pytest.raises(UsageError, match="rows"):
        result.curve("auprc", rows=0)
    refused = run_cli("evaluate", "l", "p", "-m", "map", "--curve", tmp_path / "c.csv")
    assert refused.exit_code == 2
    assert "--curve needs a metric at several cutoffs" in refused.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.small
def test_all_curves_are_one_table() -> None:
    found = rankmill.evaluate(*tables([[(0.5, True)], [(0.25, False)]]), METRICS)
    table = curves_of({"": found.curves})
    assert {*table["metric"].to_pylist()} == {*found.curves}
    rows = table.filter(pc.equal(table["metric"], "brier"))
    assert (rows["correct"].to_pylist(), rows["predictions"].to_pylist()) == ([1, 0], [1, 1])
