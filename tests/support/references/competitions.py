"""Competitions: ml_metrics, three of Kaggle, Google Landmarks, two image and video challenges.

ml_metrics: average_precision.py of benhamner/Metrics; no labels is 0 there (its release 0.1.4 on
PyPI says 1). Kaggle's own scorers are not published: the competitions' pages say what is here.
Google Landmarks: google_landmarks_dataset/metrics.py of tensorflow/models. isc2021: isc/metrics.py
of facebookresearch/isc2021; vsc2022: vsc/metrics.py of facebookresearch/vsc2022.
"""

from __future__ import annotations

import math

from references.retrieval import one_threshold_a_group
from references.steps import (
    Labels,
    Predictions,
    RefusedError,
    UndefinedError,
    Values,
    first_hit_ranks,
    items_of,
    precision_sum,
    refuse_repeats,
    relevant_rows,
    required,
)

# A row of the one list that a global average precision ranks: query, item, confidence, right?
Row = tuple[str, str, float, bool]


def truncated_ap(items: list[str], relevant: list[str], k: int | None) -> float:
    """Repeated predictions count once; rows of labels are counted."""
    most = len(relevant)
    hits = precision_sum(first_hit_ranks(items, relevant, k))
    return hits / (most if k is None else min(most, k))


# ------------------------------------------------------------------ average precision at k


def ml_metrics_map(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    """Lists come in pairs, one a query; a query without predictions has an empty list."""
    result = {}
    for query, rows in labels.items():
        relevant, items = relevant_rows(rows), items_of(predictions.get(query, []))
        result[query] = truncated_ap(items, relevant, k) if relevant else 0.0
    return result


def whale_map(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    """One whale an image, five guesses: 1 / the rank of the right one."""
    if labels.keys() != predictions.keys():
        raise RefusedError("a submission has a row for each image of the solution, and no others")
    result = {}
    for query, rows in labels.items():
        relevant = set(relevant_rows(rows))
        if len(relevant) != 1:
            raise RefusedError(f"{query} has {len(relevant)} labels")
        result[query] = truncated_ap(items_of(predictions[query]), [*relevant], k)
    return result


def hm_map(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    """Customers who bought nothing are not scored."""
    result = {}
    for query, rows in labels.items():
        relevant = [*set(relevant_rows(rows))]
        if relevant:
            result[query] = truncated_ap(items_of(predictions.get(query, [])), relevant, k)
    return result


def _google_solution(labels: Labels, predictions: Predictions) -> dict[str, list[str]]:
    solution = {query: relevant_rows(rows) for query, rows in labels.items()}
    if not predictions.keys() <= solution.keys():
        raise RefusedError("a predicted query is not in the solution")
    return solution


def google_map(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    result = {}
    for query, relevant in _google_solution(labels, predictions).items():
        if query in predictions and not relevant:
            raise RefusedError(f"{query} is predicted and has no label: 0 / 0")
        items = items_of(predictions.get(query, []))
        result[query] = truncated_ap(items, relevant, k) if relevant else 0.0
    return result


def google_precision(labels: Labels, predictions: Predictions, k: int | None) -> Values:
    result = {}
    for query, relevant in _google_solution(labels, predictions).items():
        items = items_of(predictions.get(query, []))
        result[query] = len(first_hit_ranks(items, relevant, k)) / required(k)
    return result


# ------------------------------------------------------------------ global average precision


def pooled(labels: Labels, predictions: Predictions) -> list[Row]:
    relevant = {query: set(relevant_rows(rows)) for query, rows in labels.items()}
    return [
        (query, item, confidence, item in relevant.get(query, ()))
        for query, listed in predictions.items()
        for item, confidence in listed
    ]


def precisions_at_hits(rows: list[Row]) -> float:
    """Of rows already in order."""
    return precision_sum(rank for rank, row in enumerate(rows, start=1) if row[3])


def _one_a_query(predictions: Predictions, k: int | None) -> None:
    if k not in (None, 1) or any(len(listed) > 1 for listed in predictions.values()):
        raise RefusedError("a query has one prediction")


def by_ids(rows: list[Row]) -> list[Row]:
    """By confidence, descending; then by query id, then by item id, ascending; NaN last."""
    return sorted(
        rows, key=lambda row: (math.isnan(row[2]), -row[2], row[0].encode(), row[1].encode())
    )


def landmark_gap(labels: Labels, predictions: Predictions, k: int | None) -> float:
    """Ties in the order that Google's metrics.py calls Kaggle's."""
    _one_a_query(predictions, k)
    relevant = [set(relevant_rows(rows)) for rows in labels.values()]
    if any(len(items) > 1 for items in relevant):
        raise RefusedError("an image shows one landmark, or none")
    return precisions_at_hits(by_ids(pooled(labels, predictions))) / sum(map(len, relevant))


def google_gap(labels: Labels, predictions: Predictions, k: int | None) -> float:
    """Any of a query's labels is right; the divisor is the number of queries with labels."""
    _one_a_query(predictions, k)
    solution = _google_solution(labels, predictions)
    labelled = sum(bool(relevant) for relevant in solution.values())
    if not labelled:
        raise RefusedError("no query has a label: 0 / 0")
    return precisions_at_hits(by_ids(pooled(labels, predictions))) / labelled


def _pairs(labels: Labels, predictions: Predictions, k: int | None) -> int:
    """The number of label pairs, rows counted."""
    if k is not None:
        raise UndefinedError("the challenge has no cutoff within a query")
    for listed in predictions.values():
        refuse_repeats(items_of(listed), "the predictions")
    return sum(len(relevant_rows(rows)) for rows in labels.values())


def isc_gap(labels: Labels, predictions: Predictions, k: int | None) -> float:
    """The worst order of each group of ties: the wrong ones first."""
    total = _pairs(labels, predictions, k)
    rows = sorted(pooled(labels, predictions), key=lambda row: (-row[2], row[3]))
    return precisions_at_hits(rows) / total


def vsc_gap(labels: Labels, predictions: Predictions, k: int | None) -> float:
    """One threshold a group of ties."""
    total = _pairs(labels, predictions, k)
    for rows in labels.values():
        refuse_repeats(relevant_rows(rows), "the ground truth")
    found = pooled(labels, predictions)
    if not all(math.isfinite(row[2]) for row in found):
        raise RefusedError("a score is not finite")
    return one_threshold_a_group([(row[2], row[3]) for row in found], total)
