"""top_k: the best items by scores or by vectors, block by block."""

from __future__ import annotations

import tracemalloc
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
from rankmill.sources.memory.best_items import best_lists

pytestmark = pytest.mark.small

RNG = np.random.default_rng(0)
USERS = RNG.integers(-3, 4, (30, 5)).astype("f4")  # small integers: every product is exact
ITEMS = RNG.integers(-3, 4, (17, 5)).astype("f4")
SEEN = RNG.random((30, 17)) < 0.4


@pytest.mark.parametrize("block", [1, 40, 1 << 22])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("k", [1, 4, 17])
def test_vectors_are_ranked_by_their_products(block: int, threads: int, k: int) -> None:
    scores = (USERS @ ITEMS.T).tolist()
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
        for best in (
            best_lists(USERS, k, ITEMS, seen, threads, block),
            best_lists(USERS @ ITEMS.T, k, None, seen, threads, block),
        ):
            assert best.data.to_lists() == expected
            assert best.score.to_lists() == [
                [row[i] for i in some] for row, some in zip(scores, expected, strict=True)
            ]


def test_lists_are_those_that_evaluate_makes_of_a_matrix() -> None:
    labels = scipy.sparse.csr_array(RNG.random((30, 17)) < 0.3)
    metrics = "map@4,ndcg@4,gap@4"
    best = top_k(USERS, 4, items=ITEMS)
    whole = rankmill.evaluate(labels, Matrix(USERS @ ITEMS.T), metrics)
    assert rankmill.evaluate(labels, best, metrics).metrics == whole.metrics
    unseen = top_k(USERS, 4, items=ITEMS, seen=scipy.sparse.csr_array(SEEN))
    catalogue = rankmill.Catalogue(train=scipy.sparse.csr_array(SEEN), drop_seen=True)
    whole = rankmill.evaluate(labels, Matrix(USERS @ ITEMS.T), "map@4", catalogue=catalogue)
    assert rankmill.evaluate(labels, unseen, "map@4").metrics == whole.metrics


@pytest.mark.parametrize(
    ("users", "items", "expected"),
    [("f4", "f4", "f4"), ("f4", "f8", "f8"), ("f2", "f2", "f4"), ("i4", "f4", "f8")],
)
def test_scores_have_the_wider_dtype(users: str, items: str, expected: str) -> None:
    best = top_k(USERS.astype(users), 3, items=ITEMS.astype(items))
    assert best.score.values.dtype == expected
    assert best.data.to_lists() == top_k(USERS, 3, items=ITEMS).data.to_lists()


def test_tensors_are_vectors_too() -> None:
    torch = pytest.importorskip("torch")
    expected = top_k(USERS, 3, items=ITEMS)
    users = torch.tensor(USERS, requires_grad=True)
    for items in (torch.tensor(ITEMS), torch.tensor(ITEMS).bfloat16(), torch.tensor(ITEMS.T).T):
        found = top_k(users, 3, items=items)
        assert found.data.to_lists() == expected.data.to_lists()
        assert found.score.to_lists() == expected.score.to_lists()
    scores = torch.tensor(USERS) @ torch.tensor(ITEMS).T
    assert top_k(scores, 3).score.to_lists() == torch.topk(scores, 3).values.tolist()


@pytest.mark.lengthy
def test_no_more_than_blocks_of_scores_are_held() -> None:
    users, items = np.ones((4000, 2), "f4"), np.ones((1000, 2), "f4")
    top_k(users[:1], 1, items=items)  # compiles
    tracemalloc.start()
    best_lists(users, 2, items, None, 2, 1 << 14)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4000 * 1000 * 4 / 8


def test_faiss_finds_the_same() -> None:
    faiss = pytest.importorskip("faiss")
    users, items = RNG.random((50, 8), "f4"), RNG.random((400, 8), "f4")
    index = faiss.IndexFlatIP(8)
    index.add(items)
    scores, found = index.search(users, 10)
    best = top_k(users, 10, items=items)
    np.testing.assert_allclose(best.score.values.reshape(50, 10), scores, rtol=1e-5)
    assert (best.data.values.reshape(50, 10) == found).mean() > 0.99


@pytest.mark.parametrize(
    ("run", "kind", "said"),
    [
        (lambda: top_k(USERS, 0), UsageError, "k is 0"),
        (lambda: top_k(USERS, -1), UsageError, "k is -1"),
        (lambda: top_k(USERS, 2.5), UsageError, "k is 2.5"),
        (lambda: top_k(USERS, 6), UsageError, "k is 6, but there are 5 items"),
        (lambda: top_k(USERS, 18, items=ITEMS), UsageError, "k is 18, but there are 17 items"),
        (lambda: top_k(USERS[:, :4], 2, items=ITEMS), InputError, "have 4 numbers, and those of"),
        (lambda: top_k(USERS[0], 2), InputError, "has the shape (5,)"),
        (lambda: top_k(USERS, 2, items=ITEMS[0]), InputError, "has the shape (5,)"),
        (lambda: top_k(USERS.astype(object), 2), InputError, "a Matrix holds object"),
        (lambda: top_k(USERS, 2, seen=[[1]]), InputError, "seen has 1 row, and there are 30"),
        (lambda: top_k(USERS, 2, seen=[[]] * 29 + [[1, 5]]), InputError, "item 5 in row 29"),
        (lambda: top_k(USERS, 2, seen=[[]] * 29 + [[-1]]), InputError, "item -1 in row 29"),
        (lambda: top_k(USERS, 2, seen=[["a"]] * 30), InputError, "expected the numbers of items"),
        (lambda: top_k(USERS * np.nan, 2), InputError, "row 0, column 0 is NaN"),
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
