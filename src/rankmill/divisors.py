"""What metrics are divided by: functions of (hits, k, semantics), one number a query."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from rankmill.hits import Hits
from rankmill.kernels import metrics as kernels
from rankmill.metrics import NO_CUTOFF
from rankmill.semantics import Semantics


def _of_average_precision(hits: Hits, k: int, semantics: Semantics) -> np.ndarray:
    labels = hits.label_counts
    if semantics.ap_divisor == "min_k_labels":
        return np.asarray(np.minimum(k, labels))
    if semantics.ap_divisor == "min_labels_predictions":
        return np.asarray(np.minimum(np.minimum(k, labels), hits.prediction_counts))
    if semantics.ap_divisor == "hits":
        return _counted(kernels.count_hits, hits, k)
    return labels


def _of_precision(hits: Hits, k: int, semantics: Semantics) -> np.ndarray:
    if semantics.precision_divisor == "min_k_predictions":
        return np.asarray(np.minimum(k, hits.prediction_counts))
    return np.full(len(hits.label_counts), k)


def _of_recall(hits: Hits, k: int, semantics: Semantics) -> np.ndarray:
    labels = hits.label_counts
    return labels if semantics.recall_divisor == "labels" else np.minimum(k, labels)


def _of_f1(hits: Hits, k: int, semantics: Semantics) -> np.ndarray:
    """The harmonic mean of h / a and h / b is h over the mean of a and b."""
    both = _of_precision(hits, k, semantics) + _of_recall(hits, k, semantics)
    return np.asarray(both / 2)


def _of_ndcg(hits: Hits, k: int, semantics: Semantics) -> np.ndarray:
    if semantics.ideal_dcg == "k" and k < NO_CUTOFF:
        return np.full(len(hits.label_counts), _dcg_of_hits(k))
    return _counted(kernels.ideal_dcg, hits, k)


@cache
def _dcg_of_hits(k: int) -> float:
    """The DCG of k hits of gain 1."""
    return math.fsum(1 / math.log2(rank + 1) for rank in range(1, k + 1))


def _counted(kernel: Callable[..., None], hits: Hits, k: int) -> np.ndarray:
    out = np.empty(len(hits.label_counts))
    kernel(hits, k, out)
    return out


DIVISORS: dict[str, Callable[[Hits, int, Semantics], np.ndarray]] = {
    "average_precision": _of_average_precision,
    "precision": _of_precision,
    "recall": _of_recall,
    "f1": _of_f1,
    "ndcg": _of_ndcg,
}


def divide(values: np.ndarray, name: str | None, *arguments: Any) -> np.ndarray:
    """The values over the divisor of that name, if there is one; over 1 where that is 0."""
    if name is None:
        return values
    divisor = DIVISORS[name](*arguments)
    return np.asarray(values / np.where(divisor > 0, divisor, 1))
