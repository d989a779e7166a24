"""Comparison with peers on random runs: trec_eval (pytrec-eval-terrier) and scikit-learn.

pytrec_eval returns Python floats that trec_eval computed as C doubles, so 1e-12 holds. It holds
trec_eval 9, which sorts a run by score as C floats (10 as doubles), so the runs here have no
ties in float32. It does not average: only queries in both files have values, so all queries have
predictions here. Its ``map_cut`` divides by R instead of min(k, R) and cannot be compared with
``map@k``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import pytrec_eval
import sklearn.metrics

import rankmill
from flat import flat
from rankmill.arrays import Ragged

CLOSE = {"rel": 1e-12, "abs": 1e-15}

# name here -> (measure requested from trec_eval, key in its answer)
TREC = {
    "map": ("map", "map"),
    "first_hit": ("recip_rank", "recip_rank"),
    "rprec": ("Rprec", "Rprec"),
    "ndcg": ("ndcg", "ndcg"),
}
for cutoff in (1, 3, 10, 50):
    TREC[f"precision@{cutoff}"] = (f"P_{cutoff}", f"P_{cutoff}")
    TREC[f"recall@{cutoff}"] = (f"recall_{cutoff}", f"recall_{cutoff}")
    TREC[f"ndcg@{cutoff}"] = (f"ndcg_cut_{cutoff}", f"ndcg_cut_{cutoff}")
    TREC[f"hit@{cutoff}"] = (f"success_{cutoff}", f"success_{cutoff}")


def random_run(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Make graded judgements and a run; some documents are unjudged, judged 0 or not retrieved."""
    draw = np.random.default_rng(seed)
    documents = [f"doc-{number:03}" for number in range(60)]
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for number in range(40):
        judged = draw.choice(documents, draw.integers(1, 25), replace=False)
        grades = draw.integers(0, 4, len(judged))
        grades[0] = 1  # trec_eval has no value for a query without a relevant document
        found = draw.choice(documents, draw.integers(1, 40), replace=False)
        scores = draw.permutation(1000)[: len(found)] / 8
        qrels[f"q{number}"] = dict(zip(judged.tolist(), grades.tolist(), strict=True))
        run[f"q{number}"] = dict(zip(found.tolist(), scores.tolist(), strict=True))
    return qrels, run


def long_tables(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> tuple[pa.Table, pa.Table]:
    """Return both as rows of (query, document) in random order, as qrels and runs have them."""
    tables = []
    for sides, name in ((qrels, "relevance"), (run, "score")):
        rows = [(query, *pair) for query, side in sides.items() for pair in side.items()]
        tables.append(
            pa.table(dict(zip(("qid", "docno", name), zip(*rows, strict=True), strict=True)))
        )
    return tables[0], tables[1]


@pytest.mark.parametrize("seed", range(4))
def test_trec_eval(seed: int) -> None:
    qrels, run = random_run(seed)
    measures = {measure for measure, _ in TREC.values()}
    expected = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    result = flat(rankmill.evaluate, *long_tables(qrels, run), metrics=list(TREC), gain="relevance")
    table = result.per_query
    assert table["qid"].to_pylist() == list(qrels)
    for name, (_, key) in TREC.items():
        values = [expected[query][key] for query in qrels]
        assert all(isinstance(value, float) for value in values)
        assert table[name].to_pylist() == pytest.approx(values, **CLOSE), name
        assert result[name] == pytest.approx(np.mean(values), **CLOSE), name
        assert 0 < result[name] <= 1


@pytest.mark.parametrize("seed", range(4))
def test_trec_eval_of_binary_labels_without_a_gain_column(seed: int) -> None:
    qrels, run = random_run(seed)
    qrels = {
        query: {document: 1 for document, grade in judged.items() if grade}
        for query, judged in qrels.items()
    }
    measures = {measure for measure, _ in TREC.values()}
    expected = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    labels, predictions = long_tables(qrels, run)
    result = rankmill.evaluate(labels.drop_columns("relevance"), predictions, metrics=list(TREC))
    for name, (_, key) in TREC.items():
        mean = np.mean([expected[query][key] for query in qrels])
        assert result[name] == pytest.approx(mean, **CLOSE), name


# ------------------------------------------------------------------ scikit-learn


def full_rankings(seed: int, queries: int = 30, items: int = 40) -> dict[str, Any]:
    """Every item is ranked for every query, as scikit-learn's functions assume."""
    draw = np.random.default_rng(seed)
    gains = draw.integers(1, 5, (queries, items)) * (draw.random((queries, items)) < 0.3)
    gains[:, 0] = 1
    scores = np.argsort(draw.random((queries, items)), axis=1).astype(float)
    labels = [np.flatnonzero(row).tolist() for row in gains]
    return {
        "gains": gains,
        "scores": scores,
        "labels": Ragged.from_lists(labels),
        "gain": Ragged.from_lists(
            [row[row > 0].astype(float).tolist() for row in gains],
        ),
        "predictions": Ragged.from_lists(np.argsort(-scores, axis=1).tolist()),
    }


@pytest.mark.parametrize("seed", range(3))
def test_sklearn_average_precision(seed: int) -> None:
    data = full_rankings(seed)
    expected = [
        sklearn.metrics.average_precision_score(gains > 0, scores)
        for gains, scores in zip(data["gains"], data["scores"], strict=True)
    ]
    found = rankmill.arrays.average_precision(data["labels"], data["predictions"])
    assert found.tolist() == pytest.approx(expected, **CLOSE)
    whole = sklearn.metrics.label_ranking_average_precision_score(data["gains"] > 0, data["scores"])
    assert found.mean() == pytest.approx(whole, **CLOSE)


@pytest.mark.parametrize("k", [None, 1, 7, 40, 100])
@pytest.mark.parametrize("gains", ["linear", "exp"])
def test_sklearn_ndcg_and_dcg(k: int | None, gains: str) -> None:
    """scikit-learn's gain is linear, so 2^g - 1 is given as the relevance."""
    data = full_rankings(11)
    worth = data["gains"] if gains == "linear" else 2 ** data["gains"] - 1
    arguments = data["labels"], data["predictions"], k
    for ours, theirs in (
        (rankmill.arrays.ndcg, sklearn.metrics.ndcg_score),
        (rankmill.arrays.dcg, sklearn.metrics.dcg_score),
    ):
        found = ours(*arguments, gain=data["gain"], gain_function=gains)
        expected = [
            theirs(row[None], scores[None], k=k, ignore_ties=True)
            for row, scores in zip(worth, data["scores"], strict=True)
        ]
        assert found.tolist() == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize("k", [1, 5, 20])
def test_sklearn_precision_recall_f1(k: int) -> None:
    """The first k predictions are one set of positives, and the labels are the other."""
    data = full_rankings(5)
    names = ("precision", "recall", "f1")
    for row, (gains, scores) in enumerate(zip(data["gains"], data["scores"], strict=True)):
        taken = np.zeros(len(gains), bool)
        taken[np.argsort(-scores)[:k]] = True
        expected = sklearn.metrics.precision_recall_fscore_support(
            gains > 0, taken, average="binary", zero_division=0.0
        )
        for name, value in zip(names, expected[:3], strict=True):
            found = getattr(rankmill.arrays, name)(data["labels"], data["predictions"], k)
            assert found[row] == pytest.approx(value, **CLOSE), name


@pytest.mark.parametrize("seed", range(3))
def test_sklearn_micro_average_precision_is_gap(seed: int) -> None:
    """Ties are left out. scikit-learn divides by the right predictions; rankmill divides by M."""
    draw = np.random.default_rng(seed)
    count, total = 5000, 3000
    correct = draw.random(count) < 0.2
    confidence = draw.permutation(count) / count
    expected = sklearn.metrics.average_precision_score(correct, confidence) * correct.sum() / total
    found = rankmill.arrays.global_average_precision(confidence, correct, total)
    assert found == pytest.approx(expected, **CLOSE)
