"""What metrics count for each query before they divide it: by a kernel, or by lines of NumPy.

A row of `QUANTITIES` is a function ``(count, hits, k, parameters) -> float64[n]`` without a loop of
its own. ``count(name, hits, k, ...)`` is what a kernel counts, or another quantity. Where equal
confidences have no order these are expected values, so that a quantity that is linear in them needs
no twin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rankmill.columns.elementary import discounts
from rankmill.kernels.utilities import (
    BEST,
    BY_GAIN,
    BY_PATIENCE,
    BY_RANK,
    BY_WANT,
    BY_WORTH,
    DEEPEST,
    EACH,
    FIRST,
    UP_TO_BEST,
)
from rankmill.metrics.base import NO_CUTOFF, Metric
from rankmill.semantics.choices import Choices

if TYPE_CHECKING:
    from rankmill.matching.hits import Hits
    from rankmill.matching.order import Runs

Quantity = Callable[..., Any]

# Kernels that read the gain of each label, also where all are 1.
OF_LABELS = {
    *("discounted_by_lost_gain", "ndcg_at_hits", "ndcg_at_levels", "stopped_ratio"),
    *("overlap_with_labels", "sum_best_worths", "largest_novelty", "count_all_subtopics"),
    "sum_precisions_of_subtopics",
}

_FILES_OF_KERNELS = "metrics", "gains", "diversity", "utilities"


def counted(
    name: str | Callable[..., None], hits: Hits, k: int, *arguments: Any, runs: Runs | None = None
) -> np.ndarray:
    """What a kernel counts for each query, a quantity, or a function of somebody's own.

    With `runs` of equal confidence it is the expected value over all their orders. What has no twin
    in ``rankmill.kernels.expectation`` counts the same in any order, or follows from what has one.
    """
    twin = None if runs is None else _kernel_in(("expectation",), str(name))
    quantity = QUANTITIES.get(name) if twin is None and isinstance(name, str) else None
    out = np.empty(len(hits.label_counts))
    if quantity is not None:
        out[:] = quantity(partial(counted, runs=runs), hits, k, *arguments)
    elif twin is not None:
        twin(runs, hits, k, *arguments, out)
    else:
        kernel_of(name)(hits.with_label_gains() if name in OF_LABELS else hits, k, *arguments, out)
    return out


def divided_by(hits: Hits, metric: Metric, semantics: Choices) -> np.ndarray:
    """What a metric with a divisor divides by for each query; 0 where there is nothing for that."""
    assert metric.spec.divisor is not None
    of = metric.spec.divisor.of
    if callable(of):
        return of(hits, metric, semantics)
    return counted(of, hits, metric.limit, *metric.arguments)


def kernel_of(name: str | Callable[..., None]) -> Callable[..., None]:
    """The kernel of that name, which stands in the first file that has it; a function is one."""
    found = name if callable(name) else _kernel_in(_FILES_OF_KERNELS, name)
    if found is None:
        raise LookupError(
            f"nothing counts {name!r}: add it to QUANTITIES of src/rankmill/metrics/quantities.py, "
            f"or a kernel of this name to src/rankmill/kernels/metrics.py"
        )
    return found


@cache
def _kernel_in(files: tuple[str, ...], name: str) -> Callable[..., None] | None:
    modules = (import_module(f"rankmill.kernels.{file}") for file in files)
    return next((getattr(one, name) for one in modules if hasattr(one, name)), None)


# ------------------------------------------------------------------ counts, and pairs


def _precision_at_multiple(count: Quantity, hits: Hits, k: int, times: float) -> np.ndarray:
    cuts = (times * hits.label_counts + 0.9).astype(np.int64)
    return np.asarray(count("count_hits_within", hits, k, cuts) / np.maximum(1, cuts))


def _utility(count: Quantity, hits: Hits, k: int, a: float, b: float, c: float) -> np.ndarray:
    found = count("count_hits", hits, k)
    missing = np.maximum(0, hits.label_counts - found)
    return np.asarray(a * found + b * (hits.prediction_counts - found) + c * missing)


def _hits_beyond_chance(count: Quantity, hits: Hits, k: int, items: int) -> np.ndarray:
    """Items x hits - k x labels, which is 0 for k random items."""
    beyond = float(items) * count("count_hits", hits, k) - float(k) * hits.label_counts
    return np.where(np.maximum(k, hits.label_counts) < items, beyond, 0.0)


def _weighted_pairs(count: Quantity, hits: Hits, k: int, by: int) -> np.ndarray:
    """The share of pairs in order times the predictions of the list, or times its hits."""
    found = count("count_hits", hits, k)
    misses = np.minimum(k, hits.prediction_counts) - found
    pairs = found * misses
    share = count("pairs_in_order", hits, k) / np.where(pairs > 0, pairs, 1.0)
    return np.where(pairs > 0, (found if by else found + misses) * share, 0.0)


def _list_weights(count: Quantity, hits: Hits, k: int, by: int) -> np.ndarray:
    """The weight of a list; 0 without a pair."""
    found, every = count("count_hits", hits, k), np.minimum(k, hits.prediction_counts)
    return np.where((found > 0) & (found < every), found if by else every, 0)


def _spread_of_chance(count: Quantity, hits: Hits, k: int, items: int) -> np.ndarray:
    """The root of k (N - k) R (N - R) for N items."""
    shown, labels = float(min(k, items)), hits.label_counts.astype(np.float64)
    roots = np.sqrt(shown * (items - shown)) * np.sqrt(labels * np.maximum(items - labels, 0))
    return np.asarray(roots)


def _how_many(hits: Hits, which: np.ndarray) -> np.ndarray:
    """How many of the hits of each query are such."""
    return np.diff(np.append(0, np.cumsum(which))[hits.offsets])


def relevant_labels(hits: Hits) -> np.ndarray:
    """R, the number of relevant items: those of a gain above 0."""
    if not len(hits.label_gains):
        return hits.label_counts
    before = np.append(0, np.cumsum(hits.label_gains > 0))
    return np.asarray(np.diff(before[hits.label_offsets]))


# ------------------------------------------------------------------ other gains, ranks, discounts


def _alike(hits: Hits) -> Hits:
    """The hits, all of gain 1."""
    return hits._replace(gains=np.ones(len(hits.ranks)))


def _capped(hits: Hits, most: float) -> Hits:
    """The hits with gains as shares of one that counts as 1, as does any larger gain."""
    return hits._replace(gains=np.minimum(1.0, hits.gains / most))


def _as_shares(hits: Hits) -> Hits:
    """The hits with gains as shares of the largest of the query's labels, if that is above 1."""
    most = np.ones(len(hits.label_counts))
    if len(hits.label_gains):
        some = hits.label_counts > 0
        most[some] = np.maximum(1.0, hits.label_gains[hits.label_offsets[:-1][some]])
    return hits._replace(gains=hits.gains / np.repeat(most, np.diff(hits.offsets)))


def _without_hits_above(hits: Hits) -> Hits:
    """The hits, all of gain 1, each at the first rank below the misses above it."""
    above = np.arange(len(hits.ranks)) - np.repeat(hits.offsets[:-1], np.diff(hits.offsets))
    return _alike(hits)._replace(ranks=hits.ranks - above)


def _discounted_late(hits: Hits) -> Hits:
    """The hits with log2(rank) as the discount of each rank, from 2 on."""
    table = hits.discounts
    return hits._replace(discounts=np.concatenate([table[:2], table[1:-1]]))


def _best_list(hits: Hits) -> Hits:
    """The hits of lists of all labels by falling gain."""
    offsets = np.append(0, np.cumsum(hits.label_counts))
    gains = hits.with_label_gains().label_gains
    ranks = np.arange(1, len(gains) + 1) - np.repeat(offsets[:-1], hits.label_counts)
    return hits._replace(offsets=offsets, ranks=ranks, gains=gains)


# ------------------------------------------------------------------ powers


def _powers(p: float, many: int) -> np.ndarray:
    """The powers of p from 0 on, multiplied up: powers differ between machines."""
    return np.cumprod(np.append(1.0, np.full(max(0, many - 1), p)))


def _falling(hits: Hits, p: float) -> np.ndarray:
    """The powers of p by rank, p**(rank - 1), up to the last rank that may be."""
    return np.append(0.0, _powers(p, len(hits.discounts)))


def _sums_of_powers(p: float, many: np.ndarray) -> np.ndarray:
    """The sums of so many powers of p, from 0 on."""
    return np.asarray(np.append(0.0, np.cumsum(_powers(p, int(many.max(initial=0)))))[many])


def _inverse_squares(count: Quantity, hits: Hits, k: int, t: float, most: float) -> np.ndarray:
    """The mean gain of the ranks, with weights 1 / (rank - 1 + 2 t)**2."""
    ranks = np.arange(1.0, DEEPEST)
    shares = (ranks + 2.0 * t - 1.0) / (ranks + 2.0 * t)
    weights = np.zeros(max(len(hits.discounts), DEEPEST + 1))
    weights[1 : DEEPEST + 1] = np.cumprod(np.append(1.0, shares * shares))
    total = count("sum_weights", _capped(hits, most), k, 0.0, weights)
    return np.asarray(total / np.cumsum(weights)[-1])


@cache
def _dcg_of_all_hits(k: int) -> float:
    """The dcg of k hits of gain 1."""
    return math.fsum(1 / discounts(k)[1:])


def _ones(hits: Hits) -> np.ndarray:
    """1 for each rank that may be, from 0."""
    return np.ones(len(hits.discounts))


def _rank_behind(hits: Hits, k: int) -> np.ndarray:
    """The rank behind the last prediction of each query that counts."""
    return np.asarray(np.minimum(k, hits.prediction_counts) + 1.0)


def _ranks(hits: Hits) -> np.ndarray:
    """Each rank that may be, from 0."""
    return np.arange(float(len(hits.discounts)))


def _ended(kernel: str, *constants: Any) -> Quantity:
    """What a kernel counts that takes some constants after the parameters."""
    return lambda count, hits, k, *given: count(kernel, hits, k, *given, *constants)


def _novelty(kernel: str, weights: Quantity, discounts: Quantity) -> Quantity:
    """What subtopics are worth that lose alpha with each item, by weights and discounts."""
    return lambda count, hits, k, alpha, *beta: count(
        kernel, hits, k, alpha, weights(hits, *beta), discounts(hits)
    )


QUANTITIES: dict[str, Quantity] = {
    "cutoff": lambda count, hits, k: k,
    "eleven": lambda count, hits, k: 11,
    # Of numbers of hits, labels and predictions.
    "count_labels": lambda count, hits, k: hits.label_counts,
    "count_labels_within": lambda count, hits, k, *_: np.minimum(k, hits.label_counts),
    "count_predictions": lambda count, hits, k: np.minimum(k, hits.prediction_counts),
    # Whether there are k predictions; without a cutoff, which is beyond any list, whether one.
    "enough_predictions": lambda count, hits, k: (
        hits.prediction_counts >= (k if k < NO_CUTOFF else 1)
    ),
    "count_hits": lambda count, hits, k: count(
        "count_hits_within", hits, k, np.full_like(hits.label_counts, k)
    ),
    "count_misses": lambda count, hits, k: (
        np.minimum(k, hits.prediction_counts) - count("count_hits", hits, k)
    ),
    "count_all_misses": lambda count, hits, k: (
        hits.prediction_counts - count("count_hits", hits, NO_CUTOFF)
    ),
    "count_hits_for": lambda count, hits, k, beta: count("count_hits", hits, k),
    "count_hits_of_labels": lambda count, hits, k: count(
        "count_hits_within", hits, k, hits.label_counts
    ),
    "precision_at_multiple": _precision_at_multiple,
    "labels_and_predictions": lambda count, hits, k, beta: (
        (beta**2 * hits.label_counts + hits.prediction_counts) / (1 + beta**2)
    ),
    "labels_or_predictions": lambda count, hits, k: np.minimum(
        hits.label_counts, hits.prediction_counts
    ),
    "labels_times_predictions": lambda count, hits, k: hits.label_counts * hits.prediction_counts,
    "square_hits": lambda count, hits, k: count("count_hits", hits, k) ** 2,
    "utility": _utility,
    "hits_beyond_chance": _hits_beyond_chance,
    "spread_of_chance": _spread_of_chance,
    "count_pairs": lambda count, hits, k: (
        count("count_hits", hits, k) * count("count_misses", hits, k)
    ),
    "weighted_pairs": _weighted_pairs,
    "list_weights": _list_weights,
    # Of the rank of the first hit.
    "first_hit": lambda count, hits, k: count(
        "worth_of_first", hits, k, _ones(hits), _ranks(hits), np.zeros(len(hits.label_counts))
    ),
    "first_rank": lambda count, hits, k: count(
        "worth_of_first", hits, k, _ranks(hits), _ones(hits), _rank_behind(hits, k)
    ),
    "any_hit": lambda count, hits, k: (
        1.0
        - count(
            "worth_of_first",
            hits,
            k,
            0.0 * _ones(hits),
            _ones(hits),
            np.ones(len(hits.label_counts)),
        )
    ),
    # Of judged items, whose gains are below 0 if they are only pooled.
    "count_unjudged": lambda count, hits, k: (
        np.minimum(k, hits.prediction_counts)
        - _how_many(hits, (hits.ranks <= k) & (hits.gains >= 0))
    ),
    "count_relevant": lambda count, hits, k: relevant_labels(hits),
    "count_without_gain": lambda count, hits, k: _how_many(hits, hits.gains == 0),
    "bpref": lambda count, hits, k: count("sum_preferences", hits, k, relevant_labels(hits)),
    # The pairs whose larger gain stands first, less none or all of the others, over both.
    "judged_in_order": _ended("pairs_by_gain", 0),
    "rank_correlation": _ended("pairs_by_gain", 1),
    # Of gains.
    "sum_label_gains": lambda count, hits, k, *_: count(
        "sum_weights", _best_list(hits), NO_CUTOFF, 0.0, _ones(hits)
    ),
    "capped_dcg": lambda count, hits, k, most: count("dcg", _capped(hits, most), k),
    "late_dcg": lambda count, hits, k: count("dcg", _discounted_late(hits), k),
    "ideal_late_dcg": lambda count, hits, k: count("ideal_dcg", _discounted_late(hits), k),
    "dcg_of_all_hits": lambda count, hits, k, *_: _dcg_of_all_hits(k),
    "discounted_by_misses": lambda count, hits, k: count("dcg", _without_hits_above(hits), k),
    "ideal_cascade": lambda count, hits, k, most: count("cascade", _best_list(hits), k, most),
    # Of those who go on with a chance of p: the weight of a rank is (1 - p) p**(rank - 1).
    "rank_biased": lambda count, hits, k, p: count(
        "sum_weights", _alike(hits), k, 0.0, (1 - p) * _falling(hits, p)
    ),
    "rank_biased_residual": lambda count, hits, k, p: count(
        "sum_weights", _alike(hits), k, 1.0, -((1 - p) * _falling(hits, p))
    ),
    "rank_biased_gains": lambda count, hits, k, p: (
        (1 - p) * count("sum_weights", _as_shares(hits), k, 0.0, _falling(hits, p))
    ),
    "sum_of_powers": lambda count, hits, k, gamma, beta: _sums_of_powers(gamma, hits.label_counts),
    "sum_of_weights": lambda count, hits, k, p: _sums_of_powers(
        p, np.minimum(k, np.maximum(hits.prediction_counts, hits.label_counts))
    ),
    "inverse_squares": _inverse_squares,
    # Of those who go on less after a gain.
    "stopped_by_gain": _ended("mean_gain", BY_GAIN, 0.0),
    "stopped_by_rank": _ended("mean_gain", BY_RANK, 0.0),
    "stopped_by_patience": lambda count, hits, k, p, most: count(
        "mean_gain", hits, k, most, BY_PATIENCE, p
    ),
    "stopped_by_want": lambda count, hits, k, t, most: count(
        "mean_gain", hits, k, most, BY_WANT, t
    ),
    # Blended ratios where one stops.
    "blended_ratios": _ended("stopped_ratio", 1.0, EACH),
    "ratio_at_first": _ended("stopped_ratio", 1.0, FIRST),
    "ratio_at_best": _ended("stopped_ratio", 1.0, BEST),
    "ratios_up_to_best": _ended("stopped_ratio", 1.0, UP_TO_BEST),
    "ratios_by_gamma": lambda count, hits, k, gamma, beta: count(
        "stopped_ratio", hits, k, beta, gamma, EACH
    ),
    "ratios_by_gain": _ended("stopped_ratio", 1.0, BY_WORTH),
    # Of subtopics: of the list, and of the best list.
    "novelty_discounted": _novelty("sum_worths", _ones, attrgetter("discounts")),
    "ideal_novelty_discounted": _novelty("sum_best_worths", _ones, attrgetter("discounts")),
    "novelty_cascade": _novelty("sum_worths", _ones, _ranks),
    "ideal_novelty_cascade": _novelty("sum_best_worths", _ones, _ranks),
    "novelty_biased": _novelty("sum_worths", _falling, _ones),
    "ideal_novelty_biased": _novelty("sum_best_worths", _falling, _ones),
    "places_of_subtopics": lambda count, hits, k: count("count_all_subtopics", hits, k) * k,
    # The sums of a list whose every item is relevant to all subtopics of the query.
    "largest_novelty_discounted": _ended("largest_novelty", True),
    "largest_novelty_cascade": _ended("largest_novelty", False),
    "endless_novelty_biased": lambda count, hits, k, alpha, beta: (
        count("count_all_subtopics", hits, k) / (1 - (1 - alpha) * beta)
    ),
}
"""What is no kernel, by name: a formula each."""
