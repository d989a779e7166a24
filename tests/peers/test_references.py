"""The references of the presets, against the libraries of every test run, and by hand.

``test_references_peers.py`` has the other libraries. Each test says which input its library does
not accept; its dumps have no such input.
"""

from __future__ import annotations

import math
import warnings
from itertools import chain
from typing import Any

import numpy as np
import pytest
import pytrec_eval
import sklearn.metrics
from implicit.evaluation import ranking_metrics_at_k
from scipy.sparse import csr_matrix

from dumps import DUMPS, dump, hold
from references import REFERENCES, RefusedError
from references.competitions import pooled
from references.steps import Labels, Predictions, relevant_rows


def trec_eval_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
    """A dictionary has no repeats; a query with nothing relevant has a line that says so."""
    names = {"map": "map_cut", "precision": "P", "recall": "recall", "hit": "success"}
    names["relative_p"] = "relative_P"
    names = {metric: f"{name}_{k}" for metric, name in [*names.items(), ("ndcg", "ndcg_cut")]}
    if k is None:
        names = {"map": "map", "first_hit": "recip_rank", "rprec": "Rprec", "ndcg": "ndcg"}
        names |= {"recall": "set_recall", "bpref": "bpref", "num_rel_ret": "num_rel_ret"}
        names |= {"set_p": "set_P", "set_f": "set_F", "set_relative_p": "set_relative_P"}
        names |= {"set_map": "set_map", "iprec_avg": "11pt_avg", "bing": "binG", "g": "G"}
        names |= {"ndcg_rel": "ndcg_rel", "rndcg": "Rndcg", "infap": "infAP", "utility": "utility"}
        names |= {"iprec": "iprec_at_recall_0.30", "rprec_mult": "Rprec_mult_0.30"}
        names |= {one: one for one in ("num_ret", "num_rel", "num_nonrel_judged_ret")}
    qrels = {
        query: {item: int(gain) for item, gain in rows} or {"never-found": 0}
        for query, rows in labels.items()
    }
    run = {query: dict(listed) for query, listed in predictions.items()}
    values = pytrec_eval.RelevanceEvaluator(qrels, set(names.values())).evaluate(run)
    return {
        metric: {query: value[name] for query, value in values.items()}
        for metric, name in names.items()
    }


def test_trec_eval() -> None:
    hold("trec_eval", trec_eval_says, grades=(0, 1, 2, 3))


def sklearn_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
    """A query is a row of a matrix; zeros below all scores fill the row."""
    width = 1 + max(map(len, predictions.values()))
    gains, scores = [], []
    for query, listed in predictions.items():
        gain_of, filling = dict(labels.get(query, [])), width - len(listed)
        gains.append([gain_of.get(item, 0.0) for item, _ in listed] + [0.0] * filling)
        scores.append([confidence for _, confidence in listed] + [-100.0] * filling)
    found: dict[str, Any] = {
        "dcg": sklearn.metrics.dcg_score(gains, scores, k=k),
        "ndcg": sklearn.metrics.ndcg_score(gains, scores, k=k),
    }
    if k is None:
        rows = [[gain > 0 for gain in row] for row in gains]
        values = map(sklearn_average_precision, rows, scores)
        found["map"] = dict(zip(predictions, values, strict=True))
        pool = list(chain(*rows)), list(chain(*scores))
        found["gap"] = sklearn_average_precision(*pool)
    return found


def sklearn_average_precision(right: list[bool], scores: list[float]) -> float:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="No positive class found in y_true")
        return float(sklearn.metrics.average_precision_score(right, scores))


def test_sklearn() -> None:
    """Every label has a score, because the input is a matrix."""
    hold("sklearn", sklearn_says, grades=(0, 1, 2, 3), scored_labels=True)


def test_sklearn_by_query_sees_what_was_retrieved() -> None:
    hold("sklearn_ap", sklearn_says, cutoffs=(None,), ties=False)


def test_sklearn_label_ranking_is_the_same_but_without_labels() -> None:
    """label_ranking_average_precision_score: 1 where there are no labels."""
    score = sklearn.metrics.label_ranking_average_precision_score
    matrices = [[1, 0, 1, 0]], [[0.5, 0.5, 0.25, 0.125]]
    assert score(*matrices) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert sklearn_average_precision(matrices[0][0], matrices[1][0]) == pytest.approx(7 / 12)
    assert score([[0, 0]], [[0.5, 0.25]]) == 1.0


# ------------------------------------------------------------------ implicit


def implicit_says(labels: Labels, predictions: Predictions, k: int | None) -> dict[str, Any]:
    """Users and items are numbers; only labelled users get a list."""
    if k is None:
        return {}
    queries = sorted(labels.keys() | predictions.keys())
    numbers: dict[str, int] = {}
    lists = [
        [numbers.setdefault(item, len(numbers)) for item, _ in predictions.get(query, [])]
        for query in queries
    ]
    pairs = [
        (row, numbers.setdefault(item, len(numbers)))
        for row, query in enumerate(queries)
        for item in relevant_rows(labels.get(query, []))
    ]
    rows, columns = zip(*pairs, strict=True)
    shape = len(queries), len(numbers)
    test = csr_matrix((np.ones(len(pairs)), (rows, columns)), shape=shape)

    class Model:
        def recommend(self, users: Any, _items: Any, N: int, **_: Any) -> tuple[Any, Any]:  # noqa: N803
            ids = np.full((len(users), N), -1, np.int32)
            for place, user in enumerate(users):
                ids[place, : len(lists[user])] = lists[user][:N]
            return ids, np.zeros_like(ids, np.float32)

    arguments = Model(), csr_matrix(shape), test
    values = ranking_metrics_at_k(*arguments, K=k, show_progress=False)
    return {"map": values["map"], "ndcg": values["ndcg"]}


def test_implicit() -> None:
    """It returns only means. Labels are a set, because a sparse matrix has no repeats."""
    hold("implicit", implicit_says, repeats=True, repeated_labels=True)


# ------------------------------------------------------------------ competitions

NAN = math.nan


def lists(**queries: str) -> dict[str, list[tuple[str, float]]]:
    """Return labels, or predictions with falling confidence, for items named by one letter."""
    return {
        query: [(item, 1 / place) for place, item in enumerate(items, start=1)]
        for query, items in queries.items()
    }


@pytest.mark.parametrize(
    ("preset", "metric", "k", "labels", "predictions", "expected"),
    [
        # repeats count once and keep their rank; rows of labels are counted
        ("ml_metrics", "map", 3, {"q": "abb"}, {"q": "xaab"}, {"q": 1 / 2 / 3}),
        ("ml_metrics", "map", None, {"q": "ab"}, {"q": "xaab"}, {"q": (1 / 2 + 2 / 4) / 2}),
        ("ml_metrics", "map", 2, {"q": "abc", "r": "a"}, {"q": "ab"}, {"q": 1.0, "r": 0.0}),
        ("ml_metrics", "map", 2, {"q": ""}, {"q": "ab"}, {"q": 0.0}),
        ("kaggle_whale", "map", 5, {"q": "a", "r": "b"}, {"q": "xxa", "r": "x"},
         {"q": 1 / 3, "r": 0}),
        ("kaggle_whale", "map", 5, {"q": "ab"}, {"q": "a"}, RefusedError),
        ("kaggle_whale", "map", 5, {"q": "a"}, {}, RefusedError),
        ("kaggle_hm", "map", 12, {"q": "abb", "r": "", "s": "a"}, {"q": "b", "r": "a", "t": "a"},
         {"q": 1 / 2, "s": 0.0}),
        ("google_landmarks_v2", "map", 2, {"q": "abb", "r": "a"}, {"q": "aab"},
         {"q": 1 / 2, "r": 0}),
        ("google_landmarks_v2", "map", 2, {"q": ""}, {"q": "a"}, RefusedError),
        ("google_landmarks_v2", "map", 2, {"q": ""}, {}, {"q": 0.0}),
        ("google_landmarks_v2", "map", 2, {"q": "a"}, {"r": "a"}, RefusedError),
        ("google_landmarks_v2", "precision", 3, {"q": "ab"}, {"q": "aa"}, {"q": 1 / 3}),
    ],
)  # fmt: skip
def test_average_precision_by_hand(
    preset: str, metric: str, k: int | None, labels: Any, predictions: Any, expected: Any
) -> None:
    arguments = lists(**labels), lists(**predictions), k
    if expected is RefusedError:
        with pytest.raises(RefusedError):
            REFERENCES[preset][metric](*arguments)
    else:
        assert REFERENCES[preset][metric](*arguments) == pytest.approx(expected)


# Right and wrong predictions are tied; r is right in s's group if query ids are read in order.
TIED_LABELS = lists(p="a", q="a", r="a", s="a", t="")
TIED = {
    "p": [("a", 0.9)],
    "q": [("x", 0.5)],
    "r": [("a", 0.5)],
    "s": [("a", 0.5)],
    "t": [("a", 0.5)],
}


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("kaggle_landmark", (1 / 1 + 2 / 3 + 3 / 4) / 4),  # p, q, r, s, t
        ("google_landmarks_v2", (1 / 1 + 2 / 3 + 3 / 4) / 4),
        ("isc2021", (1 / 1 + 2 / 4 + 3 / 5) / 4),  # p, q, t, then r and s
        ("vsc2022", (1 / 1 + 2 * 3 / 5) / 4),  # the group's two at the precision of its end
    ],
)
def test_gap_by_hand(preset: str, expected: float) -> None:
    assert REFERENCES[preset]["gap"](TIED_LABELS, TIED, None) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("preset", "labels", "predictions"),
    [
        ("kaggle_landmark", lists(q="ab"), lists(q="a")),
        ("kaggle_landmark", lists(q="a"), lists(q="ab")),
        ("google_landmarks_v2", lists(q="a"), lists(r="a")),
        ("google_landmarks_v2", lists(q=""), lists(q="a")),
        ("isc2021", lists(q="a"), lists(q="aa")),
        ("vsc2022", lists(q="a"), lists(q="aa")),
        ("vsc2022", lists(q="aa"), lists(q="a")),
        ("vsc2022", lists(q="a"), {"q": [("a", NAN)]}),
    ],
)
def test_gap_refuses(preset: str, labels: Labels, predictions: Predictions) -> None:
    with pytest.raises(RefusedError):
        REFERENCES[preset]["gap"](labels, predictions, None)


def test_landmark_gap_ranks_nan_last() -> None:
    labels, predictions = lists(q="a", r="a"), {"q": [("a", NAN)], "r": [("x", -1.0)]}
    assert REFERENCES["kaggle_landmark"]["gap"](labels, predictions, None) == 1 / 2 / 2


def test_gap_of_challenges_from_scikit_learn() -> None:
    """vsc2022 is scikit-learn's value scaled to all pairs; isc2021 is that after breaking ties."""
    for seed in range(DUMPS):
        labels, predictions = dump(seed)
        rows = pooled(labels, predictions)
        right, scores = [row[3] for row in rows], [row[2] for row in rows]
        scale = sum(right) / sum(map(len, labels.values()))
        expected = sklearn_average_precision(right, scores) * scale
        found = REFERENCES["vsc2022"]["gap"](labels, predictions, None)
        assert math.isclose(found, expected, rel_tol=1e-12), seed
        wrong_first = [
            score - is_right / 100 for score, is_right in zip(scores, right, strict=True)
        ]
        worst = sorted(zip(wrong_first, range(len(rows)), strict=True))
        places = {index: float(place) for place, (_, index) in enumerate(worst)}
        expected = sklearn_average_precision(right, [places[i] for i in range(len(rows))]) * scale
        found = REFERENCES["isc2021"]["gap"](labels, predictions, None)
        assert math.isclose(found, expected, rel_tol=1e-12), seed


def test_gap_of_landmarks_from_scikit_learn() -> None:
    """With one prediction a query both agree, and equal scikit-learn if no queries are tied."""
    for seed in range(DUMPS):
        labels, predictions = dump(seed, longest=1, ties=False)
        labels = {query: labels.get(query, [])[:1] for query in labels.keys() | predictions.keys()}
        for number, listed in enumerate(predictions.values()):
            listed[0] = listed[0][0], listed[0][1] + number / 128
        rows = pooled(labels, predictions)
        scale = sum(row[3] for row in rows) / sum(map(len, labels.values()))
        expected = sklearn_average_precision([row[3] for row in rows], [row[2] for row in rows])
        for preset in ("kaggle_landmark", "google_landmarks_v2"):
            found = REFERENCES[preset]["gap"](labels, predictions, None)
            assert math.isclose(found, expected * scale, rel_tol=1e-12), (preset, seed)
