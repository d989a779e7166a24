"""The value of a metric: what its kernel counts, over a divisor that semantics choose."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from rankmill.hits import Hits
from rankmill.kernels import metrics as kernels
from rankmill.metrics import NO_CUTOFF, Metric
from rankmill.semantics import DEFAULT, Semantics
from rankmill.ties import Runs


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


def compute(
    metric: Metric, hits: Hits, semantics: Semantics = DEFAULT, runs: Runs | None = None
) -> np.ndarray:
    """The value of a metric per query, float64[n]: what its kernel counts, over its divisor.

    With `runs` it is the expected value over all orders of equal confidences.
    """
    k, name = metric.limit, str(metric.spec.kernel)
    counts = np.empty(len(hits.label_counts))
    if runs is None:
        getattr(kernels, name)(hits, k, counts)
    else:
        from rankmill.kernels import expected

        getattr(expected, name)(runs, hits, k, counts)
    if metric.spec.divisor is None:
        return counts
    divisor = DIVISORS[metric.spec.divisor](hits, k, semantics)
    return np.asarray(counts / np.where(divisor > 0, divisor, 1))
