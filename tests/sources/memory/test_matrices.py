"""Matrices of scores and gains: the same as long rows, whatever holds them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from conftest import tells
from hypothesis import given
from hypothesis import strategies as st

import oracle
import rankmill
from rankmill import InputError, RankmillError, UsageError
from rankmill.arrays import Matrix, Ragged
from rankmill.semantics.choices import CHOICES
from rankmill.sources.memory import matrices
from rankmill.sources.memory.matrices import best_of
from strategies import some

pytestmark = pytest.mark.small

METRICS = "map@3,ndcg@5,dcg@23,first_hit@1,recall@4,precision@2,hit@2"
WHOLE = f"{METRICS},map,gap,num_ret,bpref"


def long_rows(gains: np.ndarray, scores: np.ndarray) -> tuple[Any, Any]:
    """The same as long rows in the order of the columns."""
    rows, width = scores.shape
    ids = {"query": np.repeat(np.arange(rows), width), "item": np.tile(np.arange(width), rows)}
    labelled = gains.ravel() != 0
    labels = {name: column[labelled] for name, column in ids.items()}
    labels["gain"] = gains.ravel()[labelled]
    return pa.table(labels), pa.table(ids | {"score": scores.ravel()})


def random_case(seed: int, *, rows: int = 40, width: int = 23) -> tuple[np.ndarray, np.ndarray]:
    """Gains from 0 to 2, and scores of which many are equal."""
    rng = np.random.default_rng(seed)
    gains = rng.integers(0, 3, (rows, width)) * (rng.random((rows, width)) < 0.2)
    gains[:, 0] += gains.sum(axis=1) == 0
    return gains, rng.integers(0, 9, (rows, width)) / 8


def values_of(result: Any) -> Any:
    return result.metrics, result.per_query.to_pydict()


# ------------------------------------------------------------------ the kernel


@given(
    st.integers(1, 90),
    st.integers(1, 90),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["f4", "f8"]),
    st.booleans(),
    st.sampled_from([2, 30, 10**6]),
)
def test_best_items_are_those_of_the_oracle(
    width: int, k: int, seed: int, dtype: str, tied: bool, distinct: int
) -> None:
    rng = np.random.default_rng(seed)
    scores = (rng.integers(0, distinct, (5, width)) - distinct // 3).astype(dtype)
    scores[rng.random(scores.shape) < 0.05] = -np.inf
    scores[rng.random(scores.shape) < 0.05] = np.inf
    hidden = [np.flatnonzero(rng.random(width) < 0.3).tolist() for _ in scores]
    for seen in ([[]] * 5, hidden):
        lists = Ragged.from_lists(seen)
        pair = lists.offsets, np.asarray(lists.values, np.int64)
        offsets, items, numbers, _ = best_of(scores, k, "scores", seen=pair, tied=tied)
        expected = [
            oracle.best_items(row, k, some, tied=tied)
            for row, some in zip(scores.tolist(), seen, strict=True)
        ]
        assert Ragged(offsets, items).to_lists() == expected
        assert numbers.tolist() == [
            row[i] for row, some in zip(scores, expected, strict=True) for i in some
        ]


@pytest.mark.parametrize("order", ["falling", "rising", "equal"])
@pytest.mark.parametrize("k", [1, 7, 600, 1000])
def test_scores_in_any_order_are_selected(order: str, k: int) -> None:
    scores = {"falling": -np.arange(1000.0), "rising": np.arange(1000.0), "equal": np.ones(1000)}
    _, items, _, _ = best_of(scores[order][None], k, "scores")
    assert items.tolist() == oracle.best_items(scores[order].tolist(), k)


# ------------------------------------------------------------------ the same as long rows


# This step takes each order and each dtype at least once.
@pytest.mark.parametrize(
    ("order", "dtype"),
    some(itertools.product(CHOICES["order"], ["f4", "f8", "f2", "i8", "u1"]), 3),
)
def test_scores_are_the_same_as_long_rows(
    order: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrices, "BATCH_VALUES", 100)  # so that there are several blocks
    gains, scores = random_case(1)
    scores = scores if dtype[0] == "f" else scores * 8
    scores = scores.astype(dtype)
    if dtype == "f8":  # scores that are equal once they are rounded to float32
        scores += np.arange(scores.size).reshape(scores.shape) * 1e-12
    flat = scores.astype("f4") if dtype == "f2" else scores
    for metrics in (METRICS, WHOLE):
        if metrics == WHOLE and order in ("worst", "best", "expected"):
            continue  # num_ret and bpref have no value there
        one = rankmill.evaluate(*long_rows(gains, flat), metrics, semantics={"order": order})
        for memory in (1 << 30, 1):
            two = rankmill.evaluate(
                Matrix(gains), Matrix(scores), metrics, semantics={"order": order}, memory=memory
            )
            assert values_of(one) == values_of(two)


@pytest.mark.parametrize(
    "semantics",
    [
        "trec_eval",
        rankmill.Semantics(depth=4),
        rankmill.Semantics(judged_only=True),
        rankmill.Semantics("trec_eval", depth=3, judged_only=True),
        rankmill.Semantics(ap_divisor="min_labels_predictions"),
    ],
)
def test_scopes_are_those_of_long_rows(semantics: Any) -> None:
    gains, scores = random_case(2)
    one = rankmill.evaluate(*long_rows(gains, scores), "map@3,ndcg@5", semantics=semantics)
    two = rankmill.evaluate(Matrix(gains), Matrix(scores), "map@3,ndcg@5", semantics=semantics)
    assert values_of(one) == values_of(two)


@pytest.mark.parametrize("order", ["given", "item_descending", "expected"])
def test_items_seen_in_training_leave_no_gap(order: str) -> None:
    gains, scores = random_case(3)
    train = np.random.default_rng(5).random(scores.shape) < 0.4
    pairs = pa.table(dict(zip(("query", "item"), train.nonzero(), strict=True)))

    def seen(held: Any) -> Any:
        return rankmill.Catalogue(train=held, drop_seen=True)

    how: dict[str, Any] = {"semantics": {"order": order}}
    one = rankmill.evaluate(*long_rows(gains, scores), METRICS, catalogue=seen(pairs), **how)
    for held in (scipy.sparse.csr_array(train), Matrix(train)):
        two = rankmill.evaluate(Matrix(gains), Matrix(scores), METRICS, catalogue=seen(held), **how)
        assert values_of(one) == values_of(two)
    assert one.metrics != rankmill.evaluate(Matrix(gains), Matrix(scores), METRICS, **how).metrics


def test_only_as_many_items_are_ranked_as_a_metric_asks_for() -> None:
    gains, scores = random_case(6)
    wide = rankmill.evaluate(Matrix(gains), Matrix(scores), "map@3,gap")
    few = rankmill.evaluate(Matrix(gains), Matrix(scores), "map@3")
    assert [one.audit["predictions"] for one in (wide, few)] == [scores.size, 3 * len(scores)]
    sides = (Matrix(gains), Matrix(scores)), long_rows(gains, scores)
    one, two = (rankmill.evaluate(*each, "map@3", by="list_length").by for each in sides)
    assert one.equals(two)


@pytest.mark.parametrize("threads", [1, 2])
def test_comparisons_take_matrices(threads: int) -> None:
    gains, scores = random_case(7)
    runs = {"one": Matrix(scores), "two": Matrix(scores[:, ::-1])}
    found = rankmill.compare(Matrix(gains), runs, "map@3", threads=threads)
    long = {name: long_rows(gains, one.values)[1] for name, one in runs.items()}
    expected = rankmill.compare(long_rows(gains, scores)[0], long, "map@3", threads=threads)
    assert found.to_arrow().equals(expected.to_arrow())


# ------------------------------------------------------------------ what holds labels and scores

GAINS, SCORES = random_case(8)
ONES = (GAINS > 0).astype(np.int8)
FORMS: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    "dense gains": (lambda: Matrix(GAINS), GAINS),
    "dense fractions": (lambda: Matrix(GAINS / 4), GAINS / 4),
    "booleans": (lambda: Matrix(GAINS > 0), ONES),
    "CSR": (lambda: scipy.sparse.csr_matrix(GAINS), GAINS),
    "CSC": (lambda: scipy.sparse.csc_array(GAINS.astype("f4")), GAINS),
    "COO with repeats": (
        lambda: scipy.sparse.coo_array((np.ones(4), ([0, 0, 1, 2], [3, 3, 2, 1])), ONES.shape),
        np.array([[0, 0, 0, 2], [0, 0, 1, 0], [0, 1, 0, 0]]),
    ),
    "CSR with repeats": (
        lambda: scipy.sparse.csr_array((np.ones(3), [3, 3, 2], [0, 2, *[3] * 39]), (40, 23)),
        np.array([[0, 0, 0, 2], [0, 0, 1, 0]]),
    ),
    "sparse ones": (lambda: scipy.sparse.csr_array(ONES), ONES),
    "lists": (lambda: [row.nonzero()[0].tolist() for row in ONES], ONES),
    "arrays": (lambda: [row.nonzero()[0] for row in ONES], ONES),
    "classes": (lambda: np.arange(40) % 23, np.eye(23, dtype=int)[np.arange(40) % 23]),
    "a column": (lambda: (np.arange(40) % 23)[:, None], np.eye(23, dtype=int)[np.arange(40) % 23]),
}


@pytest.mark.parametrize("form", FORMS)
def test_labels_in_every_form(form: str) -> None:
    made, dense = FORMS[form]
    gains = np.zeros(SCORES.shape)
    gains[: len(dense), : dense.shape[1]] = dense
    expected = rankmill.evaluate(*long_rows(gains, SCORES), METRICS)
    assert rankmill.evaluate(made(), Matrix(SCORES), METRICS).metrics == expected.metrics
    binary = rankmill.evaluate(rankmill.Labels(made(), binary=True), Matrix(SCORES), METRICS)
    ones = (gains != 0).astype(int)
    assert binary.metrics == rankmill.evaluate(*long_rows(ones, SCORES), METRICS).metrics


def test_sparse_predictions_are_the_stored_cells() -> None:
    table = rankmill.evaluate(*long_rows(GAINS, SCORES + 1), WHOLE)
    sparse = scipy.sparse.csr_array(SCORES + 1)
    assert rankmill.evaluate(Matrix(GAINS), sparse, WHOLE).metrics == table.metrics
    few = scipy.sparse.coo_array(([0.5, 0.9], ([0, 0], [4, 2])), (1, 5))
    found = rankmill.evaluate([[2, 3]], few, "map@3,num_ret")
    assert found.metrics == {"map@3": 0.5, "num_ret": 2.0}
    assert rankmill.evaluate([[2]], scipy.sparse.csr_array(np.eye(1, 5) > 0), "map").metrics


def test_tensors_are_taken_as_arrays_are() -> None:
    torch = pytest.importorskip("torch")
    expected = rankmill.evaluate(Matrix(GAINS), Matrix(SCORES.astype("f4")), METRICS).metrics
    base = torch.tensor(SCORES.astype("f4"))
    forms = (
        base.clone().requires_grad_(),
        torch.nn.Parameter(base.clone()),
        base.T.contiguous().T,
        base.repeat(1, 2)[:, : base.shape[1]],
        base.flip(0).flip(0),
        base.half(),  # eighths are exact in any type
        base.bfloat16(),
        base.double(),
    )
    for scores in forms:
        for gains in (torch.tensor(GAINS), torch.tensor(GAINS, dtype=torch.bfloat16)):
            assert rankmill.evaluate(Matrix(gains), Matrix(scores), METRICS).metrics == expected
    classes = torch.arange(40) % 23
    assert (
        rankmill.evaluate(classes, Matrix(base), METRICS).metrics
        == rankmill.evaluate(classes.numpy(), Matrix(SCORES), METRICS).metrics
    )
    best = torch.topk(base, 5).indices
    listed = rankmill.evaluate(classes[:, None], best, "map@5").metrics
    assert listed == rankmill.evaluate(classes[:, None].tolist(), best.tolist(), "map@5").metrics
    for lists in (list(best), dict(enumerate(best))):
        labels = classes[:, None] if isinstance(lists, list) else dict(enumerate(classes[:, None]))
        assert rankmill.evaluate(labels, lists, "map@5").metrics == listed
    average = rankmill.arrays.average_precision(classes[:, None], best, k=5)
    assert average.mean() == pytest.approx(listed["map@5"])
    assert Ragged(torch.tensor([0, 1]), torch.tensor([7])).to_lists() == [[7]]
    with pytest.raises(InputError, match=r"a tensor of layout torch.sparse_coo is not read"):
        Matrix(base.to_sparse())
    for other in (base.to(torch.float8_e4m3fn), base.to("meta")):
        with pytest.raises(InputError, match=r"is not a NumPy array"):
            Matrix(other)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors_are_taken_as_sparse_arrays_are() -> None:
    torch = pytest.importorskip("torch")
    gains, scores = torch.tensor(GAINS), Matrix(SCORES)
    expected = rankmill.evaluate(Matrix(GAINS), scores, METRICS).metrics
    for one in (gains, gains.float().requires_grad_(), gains.bfloat16()):
        assert rankmill.evaluate(one.to_sparse(), scores, METRICS).metrics == expected
    assert rankmill.evaluate(gains.to_sparse_csr(), scores, METRICS).metrics == expected
    ones = rankmill.evaluate((gains > 0).to_sparse(), scores, METRICS).metrics
    assert ones == rankmill.evaluate(Matrix(ONES), scores, METRICS).metrics
    twice = torch.sparse_coo_tensor([[1, 0, 0, 2], [2, 3, 3, 1]], [1, 1, 1, 1], (3, 4))
    few = Matrix(SCORES[:3, :4])
    told = rankmill.evaluate(Matrix(twice.to_dense()), few, METRICS).metrics
    assert rankmill.evaluate(twice, few, METRICS).metrics == told
    best = rankmill.arrays.top_k(scores, 5, seen=gains.to_sparse())
    assert (
        best.data.to_lists() == rankmill.arrays.top_k(scores, 5, seen=Matrix(GAINS)).data.to_lists()
    )
    listed = rankmill.evaluate([[2, 3]], torch.tensor([[0, 0, 0.9, 0, 0.5]]).to_sparse(), "map@3")
    assert listed.metrics == {"map@3": 0.5}
    outside = {"check_invariants": False, "size": (3, 4)}
    for bad, said in (
        (torch.sparse_coo_tensor([[0, 5], [1, 1]], [1.0, 1.0], **outside), "outside of its shape"),
        (torch.sparse_coo_tensor([[0, 1], [1, 4]], [1.0, 1.0], **outside), "outside of its shape"),
        (torch.sparse_csr_tensor([0, 1, 2, 9], [1, 2], [1.0, 1.0], **outside), "outside of its"),
        (torch.sparse_csr_tensor([0, 2, 1, 2], [1, 2], [1.0, 1.0], **outside), "end before they"),
        (torch.eye(3, 4).to_sparse_csc(), "layout torch.sparse_csc, which is not read"),
        (torch.eye(3, 4).to(torch.complex64).to_sparse(), "holds complex64"),
        (torch.ones(3, 4, 2).to_sparse(2), "has the shape"),
    ):
        with pytest.raises(InputError, match=said):
            against(bad)


def test_bfloat16_keeps_its_values() -> None:
    torch = pytest.importorskip("torch")
    scores = torch.tensor([[2.0**20, 2.0**20 + 2**13, 2.0**-30]]).bfloat16()  # no float16
    found = rankmill.evaluate([[0]], Matrix(scores), "first_hit@3,gap")
    same = rankmill.evaluate([[0]], Matrix(scores.double().numpy()), "first_hit@3,gap")
    assert found.metrics == same.metrics


# ------------------------------------------------------------------ what is said

S = np.arange(12.0).reshape(3, 4)
NAN = np.where(S == 6, np.nan, S)


@pytest.mark.parametrize(
    ("run", "kind", "said"),
    [
        (lambda: Matrix(S[0]), InputError, "has the shape (4,); expected two dimensions"),
        (lambda: Matrix(S[None]), InputError, "has the shape (1, 3, 4)"),
        (lambda: Matrix(S.astype(object)), InputError, "holds object; expected numbers"),
        (lambda: Matrix(S + 1j), InputError, "holds complex128"),
        (lambda: Matrix([["a"]]), InputError, "expected numbers"),
        (lambda: Matrix(scipy.sparse.csr_matrix(S)), InputError, "cannot be sparse: evaluate"),
        (lambda: Matrix([[1], [1, 2]]), InputError, "do not all have the same length"),
        (lambda: Matrix(pa.table({"a": [1]}).to_pandas()), InputError, "give its to_numpy()"),
        (lambda: against([[1]] * 2), InputError, "2 lists of labels and 3 of predictions"),
        (lambda: against(Matrix(S[:, :3])), InputError, "3 columns, and the Matrix of predict"),
        (lambda: against(scipy.sparse.eye_array(3, 9)), InputError, "9 columns, and the Matrix"),
        (lambda: against([[1], [4], [2]]), InputError, "query 1 has the label 4, but"),
        (lambda: against([[1], [0], [-1]]), InputError, "query 2 has the label -1, but"),
        (lambda: against(np.array([1, 2, 9])), InputError, "query 2 has the label 9"),
        (lambda: against((S > 5).astype(int)), InputError, "use rankmill.arrays.Matrix"),
        (lambda: against([["a"], ["b"], []]), InputError, "cannot be compared"),
        (lambda: against({0: [1]}), UsageError, "have ids: give both as lists"),
        (lambda: against([[1]] * 3, NAN), InputError, "row 1, column 2 is NaN"),
        (lambda: against(Matrix(NAN)), InputError, "is nan; expected a number"),
        (lambda: against(np.array([0.5, 1, 2])), UsageError, "expected a list of items"),
        (
            lambda: rankmill.evaluate([[1]], rankmill.Predictions(Matrix(S), score="x"), "map"),
            InputError,
            "no column 'x' for the score",
        ),
        (
            lambda: rankmill.evaluate([[1]], rankmill.Predictions(Matrix(S), padding=0), "map"),
            UsageError,
            "holds no padding",
        ),
        (lambda: against([[1]] * 3, np.full((3, 4), 2**53 + 1)), InputError, "no float64"),
        (lambda: against(scipy.sparse.coo_array(np.arange(3))), InputError, "the shape (3,)"),
        (lambda: against(scipy.sparse.csr_array(S + 1j)), InputError, "holds complex128"),
        (lambda: against(broken("csr")), InputError, "csr_array of labels is broken"),
        (lambda: against(broken("csc")), InputError, "csc_array of labels is broken"),
        (lambda: Matrix(np.ma.masked_array(S, S > 5)), InputError, "filled(-inf)"),
    ],
)
def test_what_is_said_of_bad_matrices(
    run: Callable[[], object], kind: type[RankmillError], said: str
) -> None:
    with pytest.raises(kind) as caught:
        run()
    tells(caught.value, [said])


def broken(form: str) -> Any:
    """A sparse array whose offsets point beyond its cells: SciPy writes there unless it checks."""
    found = scipy.sparse.coo_array(S).asformat(form)
    found.indptr[1] = 99
    return found


def against(labels: Any, scores: np.ndarray = S) -> Any:
    return rankmill.evaluate(labels, Matrix(scores), "map@2").metrics


def test_all_items_may_be_labels() -> None:
    assert rankmill.evaluate([[0, 1]], Matrix([[0.5, 0.25]]), "map")["map"] == 1


def test_nan_may_come_last_and_infinite_scores_are_ranked() -> None:
    last = {"nan_confidence": "last"}
    found = rankmill.evaluate([[2], [2], [2]], Matrix(NAN), "first_hit", semantics=last)
    assert found["first_hit"] == (1 / 2 + 1 / 4 + 1 / 2) / 3
    mixed = Matrix([[-np.inf, np.inf, 0.0, -np.inf]])
    values = [rankmill.evaluate([[i]], mixed, "first_hit")["first_hit"] for i in range(4)]
    assert values == [1 / 3, 1, 1 / 2, 1 / 4]


def test_matrices_without_rows_or_columns() -> None:
    with pytest.raises(InputError, match="holds no rows"):
        rankmill.evaluate(Matrix(np.zeros((0, 3))), Matrix(np.zeros((0, 3))), "map")
    zero = {"no_relevant": "zero"}
    assert rankmill.evaluate([[], []], Matrix(np.zeros((2, 0))), "map", semantics=zero)["map"] == 0


def test_scores_that_order_the_items_are_read() -> None:
    found = rankmill.evaluate([[1]] * 3, Matrix(S), "map@2").inputs["predictions"]
    assert found["columns"]["score"] == "score"
    assert "unread" not in found


def test_a_matrix_shows_its_shape() -> None:
    assert repr(Matrix(np.zeros((2000, 3), "f4"))) == "Matrix(2,000 x 3, float32)"
    assert rankmill.Predictions(Matrix(S)).head()["columns"][1]["name"] == "items"
