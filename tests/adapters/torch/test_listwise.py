"""Listwise AP against the formulas in plain Python, bin by bin, and its gradient."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import tells
from hypothesis import assume, given
from hypothesis import strategies as st

from rankmill import InputError, UsageError
from rankmill.adapters.torch import listwise
from rankmill.adapters.torch.listwise import listwise_ap, listwise_ap_loss
from rankmill.arrays import Ragged, average_precision

pytestmark = pytest.mark.small

# ------------------------------------------------------------------ the formulas, O(items × bins)


def histograms(scores: list, relevance: list, bins: int, low: Any, high: Any) -> tuple[list, list]:
    """Return N and N+ of each bin, for floats and fractions."""
    width = (high - low) / (bins - 1)
    centres = [high - m * width for m in range(bins)]

    def weight(score: Any, m: int) -> Any:
        if (m == 0 and score >= high) or (m == bins - 1 and score <= low):
            return 1
        return max(0, 1 - abs(score - centres[m]) / width)

    items = list(zip(scores, relevance, strict=True))
    everything = [sum(weight(score, m) for score, _ in items) for m in range(bins)]
    relevant = [sum(weight(score, m) for score, mark in items if mark) for m in range(bins)]
    return everything, relevant


def plain_ap(everything: list, relevant: list) -> Any:
    total = 0
    for m, hits in enumerate(relevant):
        precision = sum(relevant[: m + 1]) / (sum(everything[: m + 1]) + Fraction(1, 10**16))
        total += precision * hits
    return total / sum(relevant)


def tied_ap(everything: list, relevant: list) -> float:
    total = 0.0
    for m, (n, hits) in enumerate(zip(everything, relevant, strict=True)):
        n_before, hits_before = sum(everything[:m]), sum(relevant[:m])
        ratio = max(0, hits - 1) / (max(0, n - 1) + 1e-8)
        logarithm = math.log((n_before + n + 1) / (n_before + 1))
        ranks = n * ratio + (hits_before + 1 - ratio * (n_before + 1)) * logarithm
        total += hits * ranks / (n + 1e-8)
    return total / sum(relevant)


def oracle(
    scores: list, relevance: list, bins: int, low: Any, high: Any, tied: bool = False
) -> float:
    if not any(relevance):
        return math.nan
    formula = tied_ap if tied else plain_ap
    return formula(*histograms(scores, relevance, bins, low, high))


def slope(
    scores: list, relevance: list, place: int, step: Fraction, *settings: Any, sides: str = "both"
) -> float:
    """Return the oracle's difference quotient by one score; with fractions nothing is rounded."""
    bins, low, high, *tied = settings

    def moved(by: Fraction) -> Any:
        others = [Fraction(score) for score in scores]
        others[place] += by
        return oracle(others, relevance, bins, Fraction(low), Fraction(high), *tied)

    above = step if sides != "below" else Fraction(0)
    below = step if sides != "above" else Fraction(0)
    return float((moved(above) - moved(-below)) / (above + below))


# ------------------------------------------------------------------ values

RANGES = [(0, 1), (-1, 1), (-2, 6)]
# Scores are multiples of 1/64, and the distance of bins is a power of two. No weight is rounded, so
# all implementations are on the same side of TAP's jump at a bin with exactly one item.
EXACT_BINS = st.sampled_from([2, 3, 5, 9, 17])
DYADIC = st.integers(-(3 << 6), 7 << 6).map(lambda numerator: numerator / 64)
ANY_SCORE = st.floats(-3, 7) | st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e300, -1e300, 1e-320])


def queries(score: st.SearchStrategy[float]) -> st.SearchStrategy[list[list[tuple[float, int]]]]:
    return st.lists(st.lists(st.tuples(score, st.integers(0, 1)), max_size=9), max_size=5)


def split(lists: list[list[tuple[float, int]]]) -> tuple[list[list[float]], list[list[int]]]:
    return [[s for s, _ in one] for one in lists], [[r for _, r in one] for one in lists]


def ragged(lists: list[list[Any]], dtype: Any = np.float64) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)])
    return Ragged(offsets, np.array([value for one in lists for value in one], dtype))


@given(queries(DYADIC), EXACT_BINS, st.sampled_from(RANGES), st.booleans())
def test_equals_the_formulas(lists, bins, ends, tied):
    scores, relevance = split(lists)
    found = listwise_ap(ragged(scores), ragged(relevance), bins, *ends, tied=tied)
    expected = [oracle(*one, bins, *ends, tied) for one in zip(scores, relevance, strict=True)]
    assert found.dtype == np.float64
    assert found.tolist() == pytest.approx(list(map(float, expected)), abs=1e-12, nan_ok=True)


@given(queries(ANY_SCORE), st.integers(2, 40), st.sampled_from([*RANGES, (0.1, 0.7)]))
def test_equals_the_formula_for_any_scores(lists, bins, ends):
    scores, relevance = split(lists)
    found = listwise_ap(ragged(scores), ragged(relevance), bins, *ends)
    expected = [oracle(*one, bins, *ends) for one in zip(scores, relevance, strict=True)]
    assert found.tolist() == pytest.approx(list(map(float, expected)), abs=1e-12, nan_ok=True)


def test_an_example_by_hand():
    # Centres 1, 0.5, 0: N = (0.5, 1, 1.5), N+ = (0.5, 0.5, 1), so C+ / C = 1, 2/3, 2/3.
    found = listwise_ap([[0.75, 0.0, 0.25]], [[1, 1, 0]], bins=3)
    assert found[0] == pytest.approx((0.5 + 0.5 * 2 / 3 + 1 * 2 / 3) / 2, abs=1e-15)


def test_items_in_bins_of_their_own_have_plain_average_precision():
    generator = np.random.default_rng(0)
    places = generator.permuted(np.tile(np.arange(25), (40, 1)), axis=1)[:, :12]
    relevance = generator.random(places.shape) < 0.3
    relevance[:, 0] = True
    ranked = [row[np.argsort(-row)].tolist() for row in places]
    labels = [row[marks].tolist() for row, marks in zip(places, relevance, strict=True)]
    expected = average_precision(Ragged.from_lists(labels), Ragged.from_lists(ranked))
    assert listwise_ap(places / 24, relevance).tolist() == pytest.approx(expected, abs=1e-12)


def test_tied_is_near_the_mean_over_all_orders_of_ties():
    # Groups of (irrelevant, relevant) items with one score each. They are big, so the integral is
    # close to the sum. The mean over orders adds up ranks one by one.
    groups = [(300, 200), (400, 50), (100, 900)]
    expected = before = hits_before = 0
    for wrong, hits in groups:
        n = wrong + hits
        for rank in range(before + 1, before + n + 1):
            others = (rank - before - 1) * (hits - 1) / (n - 1)
            expected += hits / n * (hits_before + 1 + others) / rank
        before, hits_before = before + n, hits_before + hits
    expected /= hits_before
    scores, relevance = [], []
    for score, (wrong, hits) in zip((1.0, 0.5, 0.0), groups, strict=True):
        scores += [score] * (wrong + hits)
        relevance += [0] * wrong + [1] * hits
    assert listwise_ap([scores], [relevance], 3, tied=True)[0] == pytest.approx(expected, abs=1e-5)
    assert listwise_ap([scores], [relevance], 3)[0] != pytest.approx(expected, abs=1e-3)


def test_one_relevant_item_alone():
    assert listwise_ap([[0.5]], [[1]], 3).tolist() == [1.0]
    assert listwise_ap([[0.5]], [[1]], 3, tied=True)[0] == pytest.approx(math.log(2), abs=1e-7)


# ------------------------------------------------------------------ the gradient


def between_centres(
    generator: np.random.Generator, items: int, bins: int, low: float, high: float
) -> list[float]:
    """Return scores away from all centres, some of them outside of both ends."""
    places = generator.integers(-1, bins, items) + generator.uniform(0.05, 0.95, items)
    return (high - places * (high - low) / (bins - 1)).tolist()


CASES = st.tuples(
    st.integers(0, 10**6), st.integers(1, 9), st.integers(2, 8), st.sampled_from([*RANGES, (3, 4)])
)


def drawn(case: tuple) -> tuple[list[float], list[bool], tuple]:
    seed, items, bins, ends = case
    generator = np.random.default_rng(seed)
    scores = between_centres(generator, items, bins, *ends)
    relevance = generator.random(items) < 0.5
    relevance[0] = True
    return scores, relevance.tolist(), (bins, *ends)


@given(CASES)
def test_gradient_is_the_slope(case):
    scores, relevance, settings = drawn(case)
    loss, gradient = listwise_ap_loss([scores], [relevance], *settings)
    assert loss == pytest.approx(1 - float(oracle(scores, relevance, *settings)), abs=1e-12)
    step = Fraction(1, 10**8)
    expected = [-slope(scores, relevance, i, step, *settings) for i in range(len(scores))]
    assert gradient[0].tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(CASES)
def test_gradient_of_tied_is_the_slope(case):
    scores, relevance, settings = drawn(case)
    for counts in histograms(scores, relevance, *settings):
        assume(all(abs(count - 1) > 0.02 for count in counts))  # TAP has a kink there
    gradient = listwise_ap_loss([scores], [relevance], *settings, tied=True).gradient
    step = Fraction(1, 10**5)
    expected = [-slope(scores, relevance, i, step, *settings, True) for i in range(len(scores))]
    assert gradient[0].tolist() == pytest.approx(expected, rel=1e-5, abs=1e-8)


def test_gradient_at_centres_is_that_below_and_at_the_lowest_that_above():
    scores, relevance, settings = [0.75, 0.5, 1.0, 0.0, 0.9, 0.2], [1, 1, 1, 1, 0, 0], (5, 0, 1)
    gradient = listwise_ap_loss([scores], [relevance], *settings).gradient[0]
    step = Fraction(1, 10**9)
    sides = ["below", "below", "below", "above", "both", "both"]
    expected = [
        -slope(scores, relevance, place, step, *settings, sides=side)
        for place, side in enumerate(sides)
    ]
    assert gradient.tolist() == pytest.approx(expected, abs=1e-8)
    assert np.all(gradient[:4] != 0)


def test_gradient_beyond_the_ends_is_nothing():
    gradient = listwise_ap_loss([[1.01, 0.4, -0.01, 1e308]], [[1, 1, 1, 0]], 4).gradient
    assert (gradient != 0).tolist() == [[False, True, False, False]]


def test_gradient_of_tied_where_a_bin_holds_exactly_one():
    # max(0, n - 1) has a kink here. A derivative of 1 would be divided by the guard of 1e-8.
    gradient = listwise_ap_loss([[0.5, 0.0]], [[1, 0]], 3, tied=True).gradient
    assert np.abs(gradient).max() < 10


# ------------------------------------------------------------------ means, weights, bits


def made(rows: int = 60, items: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.random((rows, items)), generator.random((rows, items)) < 0.1


def test_queries_without_a_relevant_item_are_left_out():
    scores = ragged([[0.4, 0.3], [0.4], [], [0.2, 0.24]])
    relevance = ragged([[0, 1], [0], [], [1, 0]], np.int64)
    ap = listwise_ap(scores, relevance, 5)
    assert np.isnan(ap).tolist() == [False, True, True, False]
    loss, gradient = listwise_ap_loss(scores, relevance, 5)
    assert loss == 1 - (ap[0] + ap[3]) / 2
    assert isinstance(gradient, Ragged)
    alone = listwise_ap_loss([[0.4, 0.3], [0.2, 0.24]], [[0, 1], [1, 0]], 5).gradient.tolist()
    assert gradient.to_lists() == [alone[0], [0.0], [], alone[1]]
    assert np.all(alone)


def test_weights_scale_each_query():
    scores, relevance = made(7)
    relevance[:, 0] = [True] * 6 + [False]
    relevance[6] = False
    weights = np.array([2, 0, 1, 0.5, 1, 3, 9])
    loss, gradient = listwise_ap_loss(scores, relevance, weights=weights)
    ap = listwise_ap(scores, relevance)[:6]
    assert loss == pytest.approx(1 - (ap * weights[:6]).sum() / 6, abs=1e-15)
    plain = listwise_ap_loss(scores, relevance).gradient
    assert gradient == pytest.approx(plain * weights[:, None], abs=1e-15)
    assert not gradient[1].any()
    assert gradient[0].any()


@pytest.mark.parametrize("tied", [False, True])
def test_same_bits_for_any_number_of_threads(tied, monkeypatch):
    scores, relevance = made(listwise.WORTH_THREADS // 40 + 1)
    weights = np.linspace(0.1, 2, len(scores))
    found = []
    for threads in (1, 2, 3, 7, 100):
        monkeypatch.setattr(listwise, "available_cpus", lambda threads=threads: threads)
        loss, gradient = listwise_ap_loss(scores, relevance, tied=tied, weights=weights)
        found.append((loss, gradient.tobytes(), listwise_ap(scores, relevance).tobytes()))
    assert len(set(found)) == 1
    order = np.random.default_rng(1).permutation(len(scores))
    shuffled = listwise_ap_loss(scores[order], relevance[order], tied=tied, weights=weights[order])
    assert shuffled.loss == found[0][0]
    assert shuffled.gradient.tobytes() == gradient[order].tobytes()


def test_without_gradient():
    scores, relevance = made(5)
    loss, gradient = listwise_ap_loss(scores, relevance, gradient=False)
    assert gradient is None
    assert loss == listwise_ap_loss(scores, relevance).loss


# ------------------------------------------------------------------ kinds of input


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4", np.int8])
@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int64, np.float32])
def test_kinds_of_numbers(dtype, kind):
    scores, relevance = made(6)
    scores = (scores * 8).astype(dtype)
    found = listwise_ap_loss(scores, relevance.astype(kind), 9, 0, 8)
    expected = listwise_ap_loss(scores.astype(np.float64), relevance, 9, 0, 8)
    assert found.loss == expected.loss
    wanted = np.dtype(dtype) if np.dtype(dtype).kind == "f" else np.dtype(np.float64)
    assert found.gradient.dtype == wanted
    assert found.gradient.tolist() == expected.gradient.astype(wanted).tolist()


def test_shapes_of_input():
    scores, relevance = made(6)
    expected = listwise_ap_loss(scores, relevance)
    strided = np.repeat(np.asfortranarray(scores), 2, axis=0)[::2]
    for given_scores in (strided, scores.tolist()):
        found = listwise_ap_loss(given_scores, relevance.tolist())
        assert found.loss == expected.loss
        assert np.array_equal(found.gradient, expected.gradient)
    found = listwise_ap_loss(ragged(scores.tolist()), ragged(relevance.tolist(), np.uint8))
    assert found.loss == expected.loss
    assert found.gradient.to_lists() == expected.gradient.tolist()


def test_no_queries():
    assert listwise_ap(np.empty((0, 3)), np.empty((0, 3))).shape == (0,)
    assert np.isnan(listwise_ap(np.empty((2, 0)), np.empty((2, 0)))).tolist() == [True, True]


# ------------------------------------------------------------------ errors

ONE = [[0.5, 0.2]]
MARK = [[1, 0]]
LISTS = Ragged.from_lists(ONE)


@pytest.mark.parametrize(
    ("scores", "relevance", "wanted"),
    [
        ([[0.5], [math.nan]], [[1], [0]], ["score 0 of query 1 is nan", "finite"]),
        ([[0.5, math.inf]], MARK, ["score 1 of query 0 is inf", "finite"]),
        (
            Ragged([0, 1, 1, 3], np.float32([0, 1, -np.inf])),
            Ragged([0, 1, 1, 3], [1, 0, 0]),
            ["score 1 of query 2 is -inf"],
        ),
        (ONE, [[1, 2]], ["relevance 1 of query 0 is 2", "0 or 1"]),
        (ONE, [[0.5, 1]], ["relevance 0 of query 0 is 0.5", "0 or 1"]),
        (ONE, [[1, math.nan]], ["relevance 1 of query 0 is nan"]),
        (ONE, [[1]], ["(1, 1)", "(1, 2)", "one relevance per score"]),
        (LISTS, Ragged([0, 1], [1]), ["relevance (1)", "one relevance per score"]),
        ([["a"]], [[1]], ["scores are <U1", "numbers"]),
        (
            Ragged.from_lists([["a"]]),
            Ragged.from_lists([[1]]),
            ["scores are large_string", "numbers"],
        ),
        (ONE, [["a", "b"]], ["relevance are <U1", "numbers"]),
    ],
)
def test_bad_data(scores, relevance, wanted):
    for function in (listwise_ap, listwise_ap_loss):
        with pytest.raises(InputError) as caught:
            function(scores, relevance)
        tells(caught.value, wanted)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (([0.5], [1]), ["scores are 1-dimensional", "(queries, items)", "Ragged"]),
        ((ONE, [1]), ["relevance are 1-dimensional"]),
        (([[0.5], [0.5, 1]], MARK), ["scores are not an array", "Ragged"]),
        ((LISTS, MARK), ["scores are a Ragged and relevance a list", "both"]),
        ((ONE, MARK, 1), ["bins is 1", "2 or more"]),
        ((ONE, MARK, 2.0), ["bins is 2.0", "integer"]),
        ((ONE, MARK, True), ["bins is True"]),
        ((ONE, MARK, 5, 1, 1), ["low is 1 and high 1", "below"]),
        ((ONE, MARK, 5, 2, 1), ["low is 2 and high 1", "below"]),
        ((ONE, MARK, 5, math.nan, 1), ["low is nan", "finite"]),
        ((ONE, MARK, 5, 0, math.inf), ["high is inf", "finite"]),
        ((ONE, MARK, 5, "0", 1), ["low is '0'", "number"]),
        ((ONE, MARK, 5, 0, 5e-324), ["high 5e-324", "divide"]),
        ((ONE, MARK, 5, -1.5e308, 1.5e308), ["high 1.5e+308", "divide"]),
    ],
)
def test_bad_request(arguments, wanted):
    for function in (listwise_ap, listwise_ap_loss):
        with pytest.raises(UsageError) as caught:
            function(*arguments)
        tells(caught.value, wanted)


def test_tied_must_be_a_flag():
    with pytest.raises(UsageError, match="tied is 'yes'"):
        listwise_ap(ONE, MARK, tied="yes")


@pytest.mark.parametrize(
    ("weights", "wanted"),
    [
        ([1, 1], ["shape (2,)", "shape (1,)"]),
        (2.0, ["shape ()", "shape (1,)"]),
        (["a"], ["<U1", "number"]),
        ([math.nan], ["weight 0 is nan", "finite"]),
        ([-1], ["weight 0 is -1", "0 or more"]),
    ],
)
def test_bad_weights(weights, wanted):
    with pytest.raises(InputError) as caught:
        listwise_ap_loss(ONE, MARK, weights=weights)
    tells(caught.value, wanted)


@pytest.mark.parametrize("rows", [0, 3])
def test_a_loss_of_no_query_with_a_relevant_item(rows):
    with pytest.raises(InputError) as caught:
        listwise_ap_loss(np.ones((rows, 2)), np.zeros((rows, 2)))
    tells(caught.value, [f"none of {rows} queries", "leave such a batch out"])
