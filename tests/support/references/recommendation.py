"""Libraries of recommendation: Spark, recommenders, RecTools, RePlay, implicit, LensKit.

Spark 4.3.0 mllib/evaluation/RankingMetrics.scala, fed by the inner join of its own example.
recommenders 1.2.1 evaluation/python_evaluation.py; queries are those in both frames.
RecTools 0.19.0 metrics/ranking.py, classification.py; queries are those with labels.
RePlay 0.22.0 metrics/*.py; queries are those with labels, a data frame's order of ties.
implicit 0.7.3 evaluation.pyx; queries are those with labels.
LensKit 2025.8.1 metrics/ranking/*.py and bulk.py; queries are those with a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from references.steps import (
    Labels,
    Predictions,
    RefusedError,
    UndefinedError,
    Values,
    by_confidence,
    by_confidence_then_item,
    discounted,
    first_hit_ranks,
    harmonic,
    hit_ranks,
    ideal_of,
    items_of,
    precision_sum,
    ratio,
    reciprocal,
    relevant_rows,
    required,
)

# What a measure of one query gets: its ranked items, its rows of relevant items, and k.
Measure = Callable[[list[str], list[str], "int | None"], float]


def places(ranks: list[int]) -> float:
    """Discounted sum of ones at these ranks."""
    return discounted((rank, 1.0) for rank in ranks)


# ------------------------------------------------------------------ Spark


def _spark(measure: Measure) -> Callable[..., Values]:
    def values(labels: Labels, predictions: Predictions, k: int | None) -> Values:
        result = {}
        for query in labels.keys() & predictions.keys():
            relevant = relevant_rows(labels[query])
            items = items_of(predictions[query])
            result[query] = measure(items, relevant, k) if relevant else 0.0
        return result

    return values


def _spark_map(items: list[str], relevant: list[str], k: int | None) -> float:
    most = len(set(relevant))
    return precision_sum(hit_ranks(items, relevant, k)) / (most if k is None else min(most, k))


def _spark_precision(items: list[str], relevant: list[str], k: int | None) -> float:
    return len(hit_ranks(items, relevant, k)) / required(k)


def _spark_recall(items: list[str], relevant: list[str], k: int | None) -> float:
    return len(hit_ranks(items, relevant, required(k))) / len(set(relevant))


def _spark_ndcg(items: list[str], relevant: list[str], k: int | None) -> float:
    ideal = ideal_of([1.0] * len(set(relevant)), required(k))
    return places(hit_ranks(items, relevant, k)) / ideal


SPARK = {
    "map": _spark(_spark_map),
    "precision": _spark(_spark_precision),
    "recall": _spark(_spark_recall),
    "ndcg": _spark(_spark_ndcg),
}


# ------------------------------------------------------------------ recommenders


def joined_ranks(items: list[str], relevant: list[str], k: int | None) -> list[int]:
    """The rank of each pair of a prediction and an equal row of labels: repeats multiply."""
    return [
        rank for rank in hit_ranks(items, relevant, k) for row in relevant if row == items[rank - 1]
    ]


def _recommenders(measure: Measure) -> Callable[..., Values]:
    def values(labels: Labels, predictions: Predictions, k: int | None) -> Values:
        result = {}
        for query in labels.keys() & predictions.keys():
            relevant = relevant_rows(labels[query])
            if relevant and predictions[query]:  # a frame has no row for an empty list
                result[query] = measure(by_confidence(predictions[query]), relevant, k)
        return result

    return values


def _recommenders_map(items: list[str], relevant: list[str], k: int | None) -> float:
    """``map_at_k``; without a cutoff ``map``."""
    most = len(relevant)
    return precision_sum(joined_ranks(items, relevant, k)) / (most if k is None else min(most, k))


def _recommenders_precision(items: list[str], relevant: list[str], k: int | None) -> float:
    return len(joined_ranks(items, relevant, k)) / required(k)


def _recommenders_recall(items: list[str], relevant: list[str], k: int | None) -> float:
    return len(joined_ranks(items, relevant, k)) / len(relevant)


def _recommenders_ndcg(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    """Unlike the others: a query with labels but no predictions is there, and is 0."""
    result = {}
    for query, rows in labels.items():
        relevant, items = relevant_rows(rows), by_confidence(predictions.get(query, []))
        if len(set(relevant)) < len(relevant) or len(set(items)) < len(items):
            raise UndefinedError("rows are joined twice: repeats have no meaning")
        if relevant:
            ideal = ideal_of([1.0] * len(relevant), required(k))
            result[query] = places(hit_ranks(items, relevant, k)) / ideal
    return result


RECOMMENDERS = {
    "map": _recommenders(_recommenders_map),
    "precision": _recommenders(_recommenders_precision),
    "recall": _recommenders(_recommenders_recall),
    "ndcg": _recommenders_ndcg,
}


# ------------------------------------------------------------------ RecTools


def _rectools(measure: Measure) -> Callable[..., Values]:
    """Label rows, left-joined with the predictions."""

    def values(labels: Labels, predictions: Predictions, k: int | None) -> Values:
        result = {}
        for query, rows in labels.items():
            relevant = relevant_rows(rows)
            if relevant:
                items = items_of(predictions.get(query, []))
                result[query] = measure(items, relevant, required(k))
        return result

    return values


def _rows_after_join(items: list[str], relevant: list[str]) -> int:
    """R: a label that is predicted more than once is so many rows."""
    return sum(max(1, items.count(item)) for item in relevant)


def _rectools_map(items: list[str], relevant: list[str], k: int | None) -> float:
    ranks = joined_ranks(items, relevant, k)
    at_hits = [sum(other <= rank for other in ranks) / rank for rank in set(ranks)]
    return math.fsum(at_hits) / _rows_after_join(items, relevant)


def _rectools_first_hit(items: list[str], relevant: list[str], k: int | None) -> float:
    return reciprocal(joined_ranks(items, relevant, k))


def _rectools_precision(items: list[str], relevant: list[str], k: int | None) -> float:
    return len(joined_ranks(items, relevant, k)) / required(k)


def _rectools_recall(items: list[str], relevant: list[str], k: int | None) -> float:
    return len(joined_ranks(items, relevant, k)) / _rows_after_join(items, relevant)


def _rectools_hit(items: list[str], relevant: list[str], k: int | None) -> float:
    return float(bool(joined_ranks(items, relevant, k)))


def _rectools_f1(items: list[str], relevant: list[str], k: int | None) -> float:
    return harmonic(_rectools_precision(items, relevant, k), _rectools_recall(items, relevant, k))


def _rectools_ndcg(items: list[str], relevant: list[str], k: int | None) -> float:
    """The ideal list is right at all k ranks (``divide_by_achievable=False``)."""
    return places(joined_ranks(items, relevant, k)) / ideal_of([1.0] * required(k))


RECTOOLS = {
    "map": _rectools(_rectools_map),
    "first_hit": _rectools(_rectools_first_hit),
    "precision": _rectools(_rectools_precision),
    "recall": _rectools(_rectools_recall),
    "hit": _rectools(_rectools_hit),
    "f1": _rectools(_rectools_f1),
    "ndcg": _rectools(_rectools_ndcg),
}


# ------------------------------------------------------------------ RePlay


def _replay(measure: Measure) -> Callable[..., Values]:
    def values(labels: Labels, predictions: Predictions, k: int | None) -> Values:
        result = {}
        for query, rows in labels.items():
            relevant = relevant_rows(rows)
            items = by_confidence_then_item(predictions.get(query, []))
            result[query] = measure(items, relevant, required(k)) if relevant and items else 0.0
        return result

    return values


def _replay_map(items: list[str], relevant: list[str], k: int | None) -> float:
    """Repeats count each time, and rows of labels are counted."""
    return precision_sum(hit_ranks(items, relevant, k)) / min(required(k), len(relevant))


def _replay_first_hit(items: list[str], relevant: list[str], k: int | None) -> float:
    return reciprocal(hit_ranks(items, relevant, k))


def _replay_precision(items: list[str], relevant: list[str], k: int | None) -> float:
    """Repeats count once, here and in recall."""
    return len(first_hit_ranks(items, relevant, k)) / required(k)


def _replay_recall(items: list[str], relevant: list[str], k: int | None) -> float:
    return len(first_hit_ranks(items, relevant, k)) / len(set(relevant))


def _replay_hit(items: list[str], relevant: list[str], k: int | None) -> float:
    return float(bool(hit_ranks(items, relevant, k)))


def _replay_ndcg(items: list[str], relevant: list[str], k: int | None) -> float:
    return places(hit_ranks(items, relevant, k)) / ideal_of([1.0] * len(relevant), k)


REPLAY = {
    "map": _replay(_replay_map),
    "first_hit": _replay(_replay_first_hit),
    "precision": _replay(_replay_precision),
    "recall": _replay(_replay_recall),
    "hit": _replay(_replay_hit),
    "ndcg": _replay(_replay_ndcg),
}


# ------------------------------------------------------------------ implicit


def _implicit(measure: Measure) -> Callable[..., Values]:
    """Labels are a sparse matrix: a set. Its precision is one ratio over all users: not here."""

    def values(labels: Labels, predictions: Predictions, k: int | None) -> Values:
        result = {}
        for query, rows in labels.items():
            relevant = relevant_rows(rows)
            if relevant:
                items = items_of(predictions.get(query, []))
                result[query] = measure(items, relevant, required(k))
        return result

    return values


IMPLICIT = {"map": _implicit(_spark_map), "ndcg": _implicit(_spark_ndcg)}


# ------------------------------------------------------------------ LensKit


def _lenskit(measure: Measure) -> Callable[..., Values]:
    """A query without labels, or with an empty list, is NaN, which the summary makes 0."""

    def values(labels: Labels, predictions: Predictions, k: int | None) -> Values:
        result = {}
        for query, listed in predictions.items():
            relevant = relevant_rows(labels.get(query, []))
            items = items_of(listed)[:k]
            if not items and query not in labels:
                continue
            if measure is _lenskit_map and items and not relevant:
                raise RefusedError("LensKit divides by zero labels")
            result[query] = measure(items, relevant, k) if items and relevant else 0.0
        return result

    return values


def _lenskit_map(items: list[str], relevant: list[str], k: int | None) -> float:
    return precision_sum(hit_ranks(items, relevant)) / min(len(relevant), len(items))


def _lenskit_first_hit(items: list[str], relevant: list[str], k: int | None) -> float:
    return reciprocal(hit_ranks(items, relevant))


def _lenskit_precision(items: list[str], relevant: list[str], k: int | None) -> float:
    return len(hit_ranks(items, relevant)) / len(items)


def _lenskit_recall(items: list[str], relevant: list[str], k: int | None) -> float:
    most = len(relevant)
    return len(hit_ranks(items, relevant)) / (most if k is None else min(most, k))


def _lenskit_hit(items: list[str], relevant: list[str], k: int | None) -> float:
    return float(bool(hit_ranks(items, relevant)))


def _late_discounts(ranks: list[int]) -> float:
    """Sum of 1 / log2(rank), with 1 for the first rank too."""
    return math.fsum(1 / math.log2(max(rank, 2)) for rank in ranks)


def _lenskit_dcg(items: list[str], relevant: list[str], k: int | None) -> float:
    return _late_discounts(hit_ranks(items, relevant))


def _lenskit_ndcg(items: list[str], relevant: list[str], k: int | None) -> float:
    ideal = _late_discounts([*range(1, len(relevant) + 1)][:k])
    return ratio(_lenskit_dcg(items, relevant, k), ideal)


LENSKIT = {
    "map": _lenskit(_lenskit_map),
    "first_hit": _lenskit(_lenskit_first_hit),
    "precision": _lenskit(_lenskit_precision),
    "recall": _lenskit(_lenskit_recall),
    "hit": _lenskit(_lenskit_hit),
    "ndcg_jk": _lenskit(_lenskit_ndcg),
    "dcg_jk": _lenskit(_lenskit_dcg),
}
