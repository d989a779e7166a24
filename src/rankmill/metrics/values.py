"""The value of a metric: what its kernel counts, over a divisor that semantics choose."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from rankmill.columns.elementary import discounts
from rankmill.kernels import metrics as kernels
from rankmill.matching.hits import Hits
from rankmill.matching.ties import Runs
from rankmill.metrics.registry import NO_CUTOFF, Metric
from rankmill.semantics.choices import DEFAULT, Semantics


def _of_average_precision(hits: Hits, metric: Metric, semantics: Semantics) -> np.ndarray:
    labels, k = hits.label_counts, metric.limit
    if semantics.ap_divisor == "min_k_labels":
        return np.asarray(np.minimum(k, labels))
    if semantics.ap_divisor == "min_labels_predictions":
        return np.asarray(np.minimum(np.minimum(k, labels), hits.prediction_counts))
    if semantics.ap_divisor == "hits":
        return _counted(kernels.count_hits, hits, k)
    return labels


def _of_precision(hits: Hits, metric: Metric, semantics: Semantics) -> np.ndarray:
    if semantics.precision_divisor == "min_k_predictions":
        return np.asarray(np.minimum(metric.limit, hits.prediction_counts))
    k = metric.k or metric.limit
    divisor: float = k
    if k > NO_CUTOFF:  # beyond int64, to which f1 adds the labels; or even beyond float64
        divisor = float(k) if k.bit_length() < 1024 else math.inf
    return np.full(len(hits.label_counts), divisor)


def _of_recall(hits: Hits, metric: Metric, semantics: Semantics) -> np.ndarray:
    labels = hits.label_counts
    return labels if semantics.recall_divisor == "labels" else np.minimum(metric.limit, labels)


def _of_f1(hits: Hits, metric: Metric, semantics: Semantics) -> np.ndarray:
    """The harmonic mean of h / a and h / b is h over the mean of a and b."""
    both = _of_precision(hits, metric, semantics) + _of_recall(hits, metric, semantics)
    return np.asarray(both / 2)


def _of_ndcg(hits: Hits, metric: Metric, semantics: Semantics) -> np.ndarray:
    if semantics.ideal_dcg == "k" and metric.limit < NO_CUTOFF:
        return np.full(len(hits.label_counts), _dcg_of_hits(metric.limit))
    return _counted(kernels.ideal_dcg, hits, metric.limit)


@cache
def _dcg_of_hits(k: int) -> float:
    """The DCG of k hits of gain 1."""
    return math.fsum(1 / discounts(k)[1:])


def _counted(kernel: Callable[..., None], hits: Hits, k: int) -> np.ndarray:
    out = np.empty(len(hits.label_counts))
    kernel(hits, k, out)
    return out


DIVISORS: dict[str, Callable[[Hits, Metric, Semantics], np.ndarray]] = {
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
    divisor = DIVISORS[metric.spec.divisor](hits, metric, semantics)
    return np.asarray(counts / np.where(divisor > 0, divisor, 1))
