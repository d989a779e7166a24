"""Libraries of retrieval and of machine learning: trec_eval, ranx, torchmetrics, scikit-learn.

trec_eval 9 (pytrec-eval-terrier 0.5.11): form_res_rels.c orders by score, then by document number,
both descending; queries are those in both files. It keeps scores as C floats, which is left out
here. ranx 0.3.21: metrics/*.py; queries are those with labels (``make_comparable=True``).
torchmetrics 1.9.0: functional/retrieval/*.py; queries are those with predictions.
scikit-learn 1.9.1: metrics/_ranking.py, called with the scored items of a query.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby

import oracle_lists
from references.steps import (
    Labels,
    Predictions,
    RefusedError,
    UndefinedError,
    Values,
    by_confidence,
    by_confidence_then_item,
    discounted,
    harmonic,
    hit_ranks,
    ideal_of,
    items_of,
    precision_sum,
    ratio,
    reciprocal,
    refuse_repeats,
    required,
    visible,
)

# What a measure of one query gets: its ranked items, the gain of each relevant item, and k.
Measure = Callable[[list[str], dict[str, float], "int | None"], float]


def average_precision(items: list[str], gains: dict[str, float], k: int | None) -> float:
    """The divisor is R, with a cutoff too."""
    return ratio(precision_sum(hit_ranks(items, gains, k)), len(gains))


def reciprocal_rank(items: list[str], gains: dict[str, float], k: int | None) -> float:
    return reciprocal(hit_ranks(items, gains, k))


def precision(items: list[str], gains: dict[str, float], k: int | None) -> float:
    return len(hit_ranks(items, gains, k)) / required(k)


def recall(items: list[str], gains: dict[str, float], k: int | None) -> float:
    return ratio(len(hit_ranks(items, gains, k)), len(gains))


def hit(items: list[str], gains: dict[str, float], k: int | None) -> float:
    return float(bool(hit_ranks(items, gains, k)))


def f1(items: list[str], gains: dict[str, float], k: int | None) -> float:
    return harmonic(precision(items, gains, k), recall(items, gains, k))


def r_precision(items: list[str], gains: dict[str, float], k: int | None) -> float:
    return recall(items, gains, len(gains))


def dcg(items: list[str], gains: dict[str, float], k: int | None) -> float:
    return discounted((rank, gains[items[rank - 1]]) for rank in hit_ranks(items, gains, k))


def ndcg(items: list[str], gains: dict[str, float], k: int | None) -> float:
    return ratio(dcg(items, gains, k), ideal_of(gains.values(), k))


# ------------------------------------------------------------------ trec_eval


def bpref(items: list[str], judged: dict[str, float], _k: int | None) -> float:
    """Judged nonrelevant documents above each relevant one, as far as they are as many."""
    relevant = [item for item, gain in judged.items() if gain > 0]
    others = len(judged) - len(relevant)
    total, above = 0.0, 0
    for item in items:
        if judged.get(item, -1.0) == 0:
            above += 1
        elif item in judged:
            lost = min(above, len(relevant)) / min(others, len(relevant)) if above else 0.0
            total += 1 - lost
    return ratio(total, len(relevant))


SHARES = {"recall": 0.3, "times": 0.3}


def of_list(name: str, rounding: str = "up") -> Measure:
    """A measure of `oracle_lists`, which is held to trec_eval here too."""

    def measure(items: list[str], gains: dict[str, float], k: int | None) -> float:
        worths = [gains.get(item) for item in items]
        ideal = sorted(gains.values(), reverse=True)
        cutoff = math.inf if k is None else k
        return oracle_lists.VALUES[name](
            oracle_lists.Listed(worths, len(gains), ideal, cutoff, SHARES, rounding)
        )

    return measure


def of_judged(name: str) -> Measure:
    """The same of all judged documents, which are worth 1 if they are relevant, else 0."""

    def measure(items: list[str], judged: dict[str, float], k: int | None) -> float:
        worths = [float(judged[item] > 0) if item in judged else None for item in items]
        relevant = sum(gain > 0 for gain in judged.values())
        cutoff = math.inf if k is None else k
        return oracle_lists.VALUES[name](oracle_lists.Listed(worths, relevant, [], cutoff))

    return measure


WHOLE_LISTS = (
    *("num_rel_ret", "set_p", "set_f", "set_map", "set_relative_p", "iprec_avg"),
    *("bing", "g", "ndcg_rel", "rndcg", "iprec", "rprec_mult", "num_ret", "num_rel", "utility"),
)
OF_JUDGED = ("infap", "num_nonrel_judged_ret")


def _trec_eval(
    measure: Measure, cutoff: str = "optional", least: float = 1
) -> Callable[..., Values]:
    """The measure sees the documents judged with at least this grade."""

    def values(labels: Labels, predictions: Predictions, k: int | None) -> Values:
        if k is not None and cutoff == "none":
            raise UndefinedError("trec_eval has no cutoff here")
        if k is None and cutoff == "required":
            raise UndefinedError("trec_eval has a cutoff here")
        result = {}
        for query in labels.keys() & predictions.keys():
            refuse_repeats(items_of(labels[query]), "the judgements")
            refuse_repeats(items_of(predictions[query]), "the run")
            if predictions[query]:  # a run file has no line for an empty list
                gains = {item: gain for item, gain in labels[query] if gain >= least}
                items = by_confidence_then_item(predictions[query])
                result[query] = measure(items, gains, k)
        return result

    return values


TREC_EVAL = {
    "map": _trec_eval(average_precision),
    "first_hit": _trec_eval(reciprocal_rank, "none"),
    "precision": _trec_eval(precision, "required"),
    "recall": _trec_eval(recall),
    "hit": _trec_eval(hit, "required"),
    "rprec": _trec_eval(r_precision, "none"),
    "ndcg": _trec_eval(ndcg),
    "bpref": _trec_eval(bpref, "none", least=0),
    "relative_p": _trec_eval(of_list("relative_p"), "required"),
    **{name: _trec_eval(of_list(name), "none") for name in WHOLE_LISTS},
    **{name: _trec_eval(of_judged(name), "none", least=0) for name in OF_JUDGED},
}
# As its 10.0-rc3 computes what 9 lacks or rounds otherwise.
TREC_EVAL_10 = TREC_EVAL | {
    "iprec": _trec_eval(of_list("iprec", "nearest"), "none"),
    "iprec_avg": _trec_eval(of_list("iprec_avg", "nearest"), "none"),
    "dcg": _trec_eval(dcg, "none"),
    "graded_rbp": _trec_eval(of_list("graded_rbp"), "none"),
    "rbp_resid": _trec_eval(of_judged("rbp_resid"), "none", least=0),
    "unj": _trec_eval(of_judged("unj"), "required", least=0),
}


# ------------------------------------------------------------------ ranx


def _ranx(measure: Measure) -> Callable[..., Values]:
    """Gains are integers, cut off at the point; those under 1 are not relevant."""

    def values(labels: Labels, predictions: Predictions, k: int | None) -> Values:
        result = {}
        for query, rows in labels.items():
            listed = predictions.get(query, [])
            refuse_repeats(items_of(rows), "the qrels (a dictionary)")
            refuse_repeats(items_of(listed), "the run (a dictionary)")
            gains = {item: float(int(gain)) for item, gain in rows if int(gain) >= 1}
            result[query] = measure(by_confidence(listed), gains, k)
        return result

    return values


RANX = {
    "map": _ranx(average_precision),
    "first_hit": _ranx(reciprocal_rank),
    "precision": _ranx(precision),
    "recall": _ranx(recall),
    "hit": _ranx(hit),
    "f1": _ranx(f1),
    "rprec": _ranx(r_precision),
    "ndcg": _ranx(ndcg),
    "dcg": _ranx(dcg),
}


# ------------------------------------------------------------------ ties that share their places


def shared_places(listed: list[tuple[float, float]], k: int | None) -> float:
    """Discounted gain of (score, gain) rows; equal scores share the discounts of their places."""
    total, before = 0.0, 0
    for _, group in groupby(sorted(listed, reverse=True), key=lambda row: row[0]):
        gains = [gain for _, gain in group]
        places = range(before + 1, before + len(gains) + 1)
        room = math.fsum(1 / math.log2(p + 1) for p in places if k is None or p <= k)
        total += math.fsum(gains) / len(gains) * room
        before += len(gains)
    return total


# ------------------------------------------------------------------ torchmetrics

# What a measure gets: the ranks of the hits within k, R, n, k. R counts the right rows of the list.
TorchMeasure = Callable[[list[int], int, int, "int | None"], float]


def _torchmetrics(measure: TorchMeasure, needs_positive: bool = True) -> Callable[..., Values]:
    """A query is its rows (score, right?); a label that is in no row does not exist.

    Most measures call a row with a score of 0 or less wrong, whatever its label.
    """

    def values(labels: Labels, predictions: Predictions, k: int | None) -> Values:
        result = {}
        for query, listed in visible(predictions):
            relevant = {item for item, gain in labels.get(query, []) if gain > 0}
            ranked = sorted(listed, key=lambda row: -row[1])
            ranks = [
                rank
                for rank, (item, score) in enumerate(ranked[:k], start=1)
                if item in relevant and (score > 0 or not needs_positive)
            ]
            total = sum(item in relevant for item, _ in listed)
            result[query] = measure(ranks, total, len(listed), k) if total else 0.0
        return result

    return values


def _torch_ndcg(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    result = {}
    for query, listed in visible(predictions):
        gains: dict[str, float] = {}
        for item, gain in labels.get(query, []):
            gains[item] = max(gain, gains.get(item, 0.0))
        rows = [(score, gains.get(item, 0.0)) for item, score in listed]
        result[query] = ratio(shared_places(rows, k), ideal_of((gain for _, gain in rows), k))
    return result


def _torch_r_precision(labels: Labels, predictions: Predictions, _k: int | None) -> Values:
    """There is no cutoff to give."""
    return _torchmetrics(
        lambda ranks, total, _n, _none: sum(rank <= total for rank in ranks) / total,
        needs_positive=False,
    )(labels, predictions, None)


def _torch_gap(labels: Labels, predictions: Predictions, k: int | None) -> float:
    """``binary_average_precision`` of the rows of all queries: there are no queries there."""
    if k is not None:
        raise UndefinedError("torchmetrics cuts no list for average precision")
    pooled = [
        (score, item in {label for label, gain in labels.get(query, []) if gain > 0})
        for query, listed in visible(predictions)
        for item, score in listed
    ]
    return one_threshold_a_group(pooled, sum(is_right for _, is_right in pooled))


TORCHMETRICS = {
    "gap": _torch_gap,
    "map": _torchmetrics(lambda ranks, _total, _n, _k: ratio(precision_sum(ranks), len(ranks))),
    "first_hit": _torchmetrics(lambda ranks, _total, _n, _k: reciprocal(ranks)),
    "precision": _torchmetrics(lambda ranks, _total, n, k: len(ranks) / (n if k is None else k)),
    "recall": _torchmetrics(lambda ranks, total, _n, _k: len(ranks) / total),
    "hit": _torchmetrics(lambda ranks, _total, _n, _k: float(bool(ranks)), needs_positive=False),
    "rprec": _torch_r_precision,
    "ndcg": _torch_ndcg,
}


# ------------------------------------------------------------------ scikit-learn


def _scored(labels: Labels, predictions: Predictions) -> dict[str, list[tuple[float, float]]]:
    """(score, gain) of each scored item, a query; every label must be among them.

    scikit-learn takes matrices, so that an item without a score cannot be said; of average
    precision it would make a smaller problem, with fewer positives.
    """
    rows: dict[str, list[tuple[float, float]]] = {}
    for query, listed in visible(predictions):
        gains = dict(labels.get(query, []))
        refuse_repeats(items_of(labels.get(query, [])), "a row of the matrix")
        refuse_repeats(items_of(listed), "a row of the matrix")
        if not gains.keys() <= {item for item, _ in listed}:
            raise RefusedError(f"a label of {query} has no score")
        if any(math.isnan(score) for _, score in listed):
            raise RefusedError("a score is NaN")
        rows[query] = [(score, gains.get(item, 0.0)) for item, score in listed]
    return rows


def one_threshold_a_group(rows: list[tuple[float, bool]], total: int) -> float:
    """Sum over distinct scores of (right ones there) × (precision down to there), / total."""
    value, count, right = 0.0, 0, 0
    for _, group in groupby(sorted(rows, reverse=True), key=lambda row: row[0]):
        found = [is_right for _, is_right in group]
        count, right = count + len(found), right + sum(found)
        value += sum(found) * right / count
    return value / total if total else 0.0


def _sklearn_map(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    if k is not None:
        raise UndefinedError("scikit-learn cuts no list for average precision")
    result = {}
    for query, rows in _scored(labels, predictions).items():
        right = [(score, gain > 0) for score, gain in rows]
        result[query] = one_threshold_a_group(right, sum(is_right for _, is_right in right))
    return result


def sklearn_retrieved_map(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    """Of each query, what a call with the retrieved items alone gives; 0 without a label there."""
    if k is not None:
        raise UndefinedError("scikit-learn cuts no list for average precision")
    result = {}
    for query, listed in visible(predictions):
        relevant = {item for item, gain in labels.get(query, []) if gain > 0}
        if len({item for item, _ in listed}) < len(listed):
            raise RefusedError(f"an item of {query} has two scores")
        right = [(score, item in relevant) for item, score in listed]
        total = sum(is_right for _, is_right in right)
        result[query] = one_threshold_a_group(right, total) if total else 0.0
    return result


def _sklearn_gap(labels: Labels, predictions: Predictions, k: int | None) -> float:
    if k is not None:
        raise UndefinedError("scikit-learn cuts no list for average precision")
    pooled = [
        (score, gain > 0) for rows in _scored(labels, predictions).values() for score, gain in rows
    ]
    return one_threshold_a_group(pooled, sum(is_right for _, is_right in pooled))


def _sklearn_dcg(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    scored = _scored(labels, predictions)
    return {query: shared_places(rows, k) for query, rows in scored.items()}


def _sklearn_ndcg(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    result = {}
    for query, rows in _scored(labels, predictions).items():
        if any(gain < 0 for _, gain in rows):
            raise RefusedError("a gain is negative")
        result[query] = ratio(shared_places(rows, k), ideal_of((gain for _, gain in rows), k))
    return result


SKLEARN = {"map": _sklearn_map, "gap": _sklearn_gap, "dcg": _sklearn_dcg, "ndcg": _sklearn_ndcg}
