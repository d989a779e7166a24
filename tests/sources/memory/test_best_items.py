"""top_k: the best items by scores, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from conftest import tells

import oracle
import rankmill
from rankmill import InputError, RankmillError, UsageError
from rankmill.arrays import Matrix, Ragged, top_k
from rankmill.sources.memory import matrices

pytestmark = pytest.mark.small

RNG = np.random.default_rng(0)
SCORES = RNG.integers(-9, 10, (30, 17)).astype("f4")
SEEN = RNG.random((30, 17)) < 0.4


@pytest.mark.parametrize("rows", [1, 4, 30])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("k", [1, 4, 17])
def test_blocks_of_rows_are_ranked(
    monkeypatch: pytest.MonkeyPatch, rows: int, threads: int, k: int
) -> None:
    monkeypatch.setattr(matrices, "rows_of", lambda width: rows)
    scores = SCORES.tolist()
    held: dict[str, Any] = {
        "nothing": None,
        "CSR": scipy.sparse.csr_matrix(SEEN),
        "lists": [row.nonzero()[0].tolist() for row in SEEN],
        "Ragged": Ragged.from_lists([row.nonzero()[0].astype("i4") for row in SEEN]),
        "matrix": Matrix(SEEN),
    }
    for name, seen in held.items():
        hidden = [[]] * 30 if name == "nothing" else held["lists"]
        expected = [
            oracle.best_items(row, k, some) for row, some in zip(scores, hidden, strict=True)
        ]
        best = top_k(SCORES, k, seen=seen, threads=threads)
        assert best.data.to_lists() == expected
        assert best.score.to_lists() == [
            [row[i] for i in some] for row, some in zip(scores, expected, strict=True)
        ]


def test_lists_are_those_that_evaluate_makes_of_a_matrix() -> None:
    labels = scipy.sparse.csr_array(RNG.random((30, 17)) < 0.3)
    metrics = "map@4,ndcg@4,gap@4"
    whole = rankmill.evaluate(labels, Matrix(SCORES), metrics)
    assert rankmill.evaluate(labels, top_k(SCORES, 4), metrics).metrics == whole.metrics
    unseen = top_k(SCORES, 4, seen=scipy.sparse.csr_array(SEEN))
    catalogue = rankmill.Catalogue(train=scipy.sparse.csr_array(SEEN), drop_seen=True)
    whole = rankmill.evaluate(labels, Matrix(SCORES), "map@4", catalogue=catalogue)
    assert rankmill.evaluate(labels, unseen, "map@4").metrics == whole.metrics


@pytest.mark.parametrize(
    ("given", "expected"), [("f4", "f4"), ("f8", "f8"), ("f2", "f4"), ("i4", "f8")]
)
def test_scores_have_a_dtype_of_floats(given: str, expected: str) -> None:
    best = top_k(SCORES.astype(given), 3)
    assert best.score.values.dtype == expected
    assert best.data.to_lists() == top_k(SCORES, 3).data.to_lists()


def test_tensors_are_scores_too() -> None:
    torch = pytest.importorskip("torch")
    expected = top_k(SCORES, 3)
    scores = torch.tensor(SCORES, requires_grad=True)
    for one in (scores, scores.bfloat16(), torch.tensor(SCORES.T).T):
        assert top_k(one, 3).data.to_lists() == expected.data.to_lists()
    assert top_k(scores, 3).score.to_lists() == torch.topk(scores, 3).values.tolist()


@pytest.mark.parametrize(
    ("run", "kind", "said"),
    [
        (lambda: top_k(SCORES, 0), UsageError, "k is 0"),
        (lambda: top_k(SCORES, -1), UsageError, "k is -1"),
        (lambda: top_k(SCORES, 2.5), UsageError, "k is 2.5"),
        (lambda: top_k(SCORES, 18), UsageError, "k is 18, but there are 17 items"),
        (lambda: top_k(SCORES, 2, items=SCORES), UsageError, "no longer multiplies vectors"),
        (lambda: top_k(SCORES[0], 2), InputError, "has the shape (17,)"),
        (lambda: top_k(SCORES.astype(object), 2), InputError, "a Matrix holds object"),
        (lambda: top_k(SCORES, 2, seen=[[1]]), InputError, "seen has 1 row, and there are 30"),
        (lambda: top_k(SCORES, 2, seen=[[]] * 29 + [[1, 17]]), InputError, "item 17 in row 29"),
        (lambda: top_k(SCORES, 2, seen=[[]] * 29 + [[-1]]), InputError, "item -1 in row 29"),
        (lambda: top_k(SCORES, 2, seen=[["a"]] * 30), InputError, "expected the numbers of items"),
        (lambda: top_k(SCORES * np.nan, 2), InputError, "row 0, column 0 is NaN"),
    ],
)
def test_what_is_said_of_bad_arguments(
    run: Callable[[], object], kind: type[RankmillError], said: str
) -> None:
    with pytest.raises(kind) as caught:
        run()
    tells(caught.value, [said])


@pytest.mark.small
@pytest.mark.parametrize("width", [1, 31, 32, 33, 65, 300])
@pytest.mark.parametrize("of", ["normal", "few", "same", "rising", "falling", "infinite"])
def test_any_order_of_scores_and_any_ties(width: int, of: str) -> None:
    draw, places = np.random.default_rng(width), np.arange(width, dtype=np.float64)
    row = {
        "normal": draw.standard_normal(width),
        "few": draw.integers(0, 3, width),
        "same": np.zeros(width),
        "rising": places,
        "falling": -places,
        "infinite": draw.choice([-np.inf, np.inf, 0.0, -0.0], width),
    }[of].astype(np.float32)
    order = np.lexsort((places, -row))
    for k in {1, (width + 1) // 2, width}:
        best = top_k(np.stack([row, row]), k)
        assert best.data.to_lists() == [order[:k].tolist()] * 2
        assert best.score.to_lists() == [row[order[:k]].tolist()] * 2
        for column in {0, width // 2, width - 1}:
            wrong = row.copy()
            wrong[column] = np.nan
            with pytest.raises(InputError, match=f"row 1, column {column} is NaN"):
                top_k(np.stack([row, wrong]), k)
