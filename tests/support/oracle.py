"""Every metric in plain Python, straight from its formula; shares no code with the package.

A list of labels is any of: items; (item, gain) pairs; a mapping item -> gain. A list of
predictions is items, or (item, confidence) pairs, in rank order. ``None`` as an item is a null
item, ``None`` as a list a null list, i.e. an empty one.

Where a set of floats is added it is added exactly (math.fsum), so each value is within a few units
in the last place of the true one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import catalogue_oracle
import oracle_confidence
import oracle_diversity
import oracle_lists

Item = Hashable
ALIASES = {
    **dict.fromkeys(("mrr", "rr", "recip_rank", "reciprocal_rank"), "first_hit"),
    **dict.fromkeys(("hit_rate", "HitRate", "success"), "hit"),
    **dict.fromkeys(("r-precision", "r_precision"), "rprec"),
    **{"ap": "map", "P": "precision", "R": "recall", "set_recall": "recall", "SetR": "recall"},
    **{
        "SetP": "set_p",
        "SetF": "set_f",
        "SetAP": "set_map",
        "SetRelP": "set_relative_p",
        "11pt_avg": "iprec_avg",
    },
    **{"Q": "q_measure", "catalog_coverage": "coverage"},
    **dict.fromkeys(("AvgRecPopularity", "arp"), "popularity"),
    **dict.fromkeys(("MeanInvUserFreq", "miuf"), "novelty"),
    **{
        "herfindahl": "hhi",
        "inter_list_diversity": "personalization",
        "intra_list_diversity": "ild",
    },
    **dict.fromkeys(("expected_profile_distance", "history_distance"), "epd"),
    "history_distance_cosine": "epd_cosine",
    **dict.fromkeys(("disparate_treatment_ratio", "dtr"), "treatment_parity"),
    **dict.fromkeys(("disparate_impact_ratio", "dir"), "impact_parity"),
    "cross_entropy": "log_loss",
    **{"pooled_auc": "roc_auc", "psprecision": "psp", "ps_ndcg": "psndcg"},
    "pr_auc": "auprc",
    "d_prime": "dprime",
    **dict.fromkeys(("alpha-nDCG", "α_nDCG"), "alpha_ndcg"),
    "err-ia": "err_ia",
    "strec": "subtopic_recall",
    "StRecall": "subtopic_recall",
    "label_ranking_average_precision_score": "lrap",
    **dict.fromkeys(("F1Beta", "f_beta"), "fbeta"),
    **{"tau": "kendall_tau", "p+": "p_plus", "p+_measure": "p_plus", "ndcg_p": "ndcg_jk"},
    **dict.fromkeys(("alpha-DCG", "α_DCG"), "alpha_dcg"),
    **{"nerr-ia": "nerr_ia", "p-ia": "p_ia", "map-ia": "map_ia", "AP_IA": "map_ia"},
}
# What stands behind the @ of a metric without a cutoff.
AT = {"iprec": "recall", "rprec_mult": "times"}
AT |= {"recall_at_precision": "precision", "precision_at_recall": "recall"}


# ------------------------------------------------------------------ lists


def label_gains(labels: Any) -> dict[Item, float]:
    """Return the labels with their gains: no nulls, no gain <= 0, the largest gain of repeats."""
    gains: dict[Item, float] = {}
    for item, gain in _label_pairs(labels):
        if item is not None and gain > 0:
            gains[item] = max(gain, gains.get(item, gain))
    return gains


def of_least_gain(labels: Any, rel: float | None) -> Any:
    """The labels that a metric with this rel looks at."""
    return labels if rel is None else [pair for pair in _label_pairs(labels) if pair[1] >= rel]


def judged_gains(labels: Any, scored: bool = False) -> dict[Item, float]:
    """All judged items with their gains, the largest of repeats.

    Without a label none, unless such queries are `scored` as others.
    """
    gains: dict[Item, float] = {}
    for item, gain in _label_pairs(labels):
        if item is not None:
            gains[item] = max(gain, gains.get(item, gain))
    return gains if scored or label_gains(labels) else {}


def _label_pairs(labels: Any) -> list[tuple[Item, float]]:
    if labels is None:
        return []
    if isinstance(labels, Mapping):
        return list(labels.items())
    return [label if isinstance(label, tuple) else (label, 1.0) for label in labels]


def prediction_pairs(predictions: Any) -> list[tuple[Item, Any]]:
    """Return (item, confidence) of all predictions but nulls; the others move up."""
    pairs = [p if isinstance(p, tuple) else (p, None) for p in predictions or []]
    return [pair for pair in pairs if pair[0] is not None]


def hit_ranks(labels: Any, predictions: Any, k: int | None = None) -> list[int]:
    """Ranks (from 1) of the right predictions; a repeated item is right at most once."""
    relevant = label_gains(labels)
    seen: set[Item] = set()
    ranks = []
    for rank, (item, _) in enumerate(prediction_pairs(predictions)[:k], start=1):
        if item in relevant and item not in seen:
            ranks.append(rank)
        seen.add(item)
    return ranks


# ------------------------------------------------------------------ metrics of one query


def average_precision(labels: Any, predictions: Any, k: int | None = None) -> float:
    total = len(label_gains(labels))
    if total == 0:
        return 0.0
    ranks = hit_ranks(labels, predictions, k)
    precisions = [hits / rank for hits, rank in enumerate(ranks, start=1)]
    return math.fsum(precisions) / (total if k is None else min(k, total))


def first_hit(labels: Any, predictions: Any, k: int | None = None) -> float:
    ranks = hit_ranks(labels, predictions, k)
    return 1 / ranks[0] if ranks else 0.0


def precision(labels: Any, predictions: Any, k: int) -> float:
    return len(hit_ranks(labels, predictions, k)) / k


def recall(labels: Any, predictions: Any, k: int | None = None) -> float:
    total = len(label_gains(labels))
    return len(hit_ranks(labels, predictions, k)) / total if total else 0.0


def hit(labels: Any, predictions: Any, k: int | None = None) -> float:
    return 1.0 if hit_ranks(labels, predictions, k) else 0.0


def f1(labels: Any, predictions: Any, k: int) -> float:
    both = precision(labels, predictions, k), recall(labels, predictions, k)
    return 2 * both[0] * both[1] / (both[0] + both[1]) if both[0] and both[1] else 0.0


def r_precision(labels: Any, predictions: Any) -> float:
    total = len(label_gains(labels))
    return len(hit_ranks(labels, predictions, total)) / total if total else 0.0


def _worth(gain: float, gains: str) -> float:
    return float(gain) if gains == "linear" else 2.0**gain - 1.0


def dcg(labels: Any, predictions: Any, k: int | None = None, gains: str = "linear") -> float:
    gain_of = label_gains(labels)
    items = [item for item, _ in prediction_pairs(predictions)]
    return math.fsum(
        _worth(gain_of[items[rank - 1]], gains) / math.log2(rank + 1)
        for rank in hit_ranks(labels, predictions, k)
    )


def ndcg(labels: Any, predictions: Any, k: int | None = None, gains: str = "linear") -> float:
    ranked = sorted(label_gains(labels).values(), reverse=True)[:k]
    ideal = math.fsum(
        _worth(gain, gains) / math.log2(rank + 1) for rank, gain in enumerate(ranked, start=1)
    )
    return dcg(labels, predictions, k, gains) / ideal if ideal else 0.0


def rank_biased(labels: Any, predictions: Any, k: int | None = None, p: float = 0.8) -> float:
    return math.fsum((1 - p) * p ** (rank - 1) for rank in hit_ranks(labels, predictions, k))


def judged(labels: Any, predictions: Any, k: int) -> float:
    listed = prediction_pairs(predictions)
    ranks = hit_ranks(dict.fromkeys(judged_gains(labels), 1.0), predictions, k)
    return len(ranks) / min(k, len(listed)) if listed else 0.0


def bpref(labels: Any, predictions: Any, rel: float | None = None) -> float:
    """Items judged with a gain below 0 count as not judged, as in trec_eval."""
    gains = judged_gains(labels)
    relevant = {item for item, gain in gains.items() if (gain > 0 if rel is None else gain >= rel)}
    others = {item for item, gain in gains.items() if gain >= 0} - relevant
    terms = []
    above: set[Item] = set()
    for item in dict.fromkeys(item for item, _ in prediction_pairs(predictions)):
        if item in others:
            above.add(item)
        elif item in relevant:
            lost = min(len(above), len(relevant)) / min(len(others), len(relevant)) if above else 0
            terms.append(1 - lost)
    return math.fsum(terms) / len(relevant) if relevant else 0.0


def of_list(
    name: str,
    labels: Any,
    predictions: Any,
    k: int | None = None,
    gains: str = "linear",
    rel: float | None = None,
    **given: float,
) -> float:
    """A metric of `oracle_lists`."""
    listed = prediction_pairs(predictions)
    least = 5e-324 if rel is None else rel
    if name in oracle_lists.LEVELS:
        judged = judged_gains(labels)
        worth = {item: (gain >= least) - (gain < 0) for item, gain in judged.items()}
        count = sum(level > 0 for level in worth.values())
    elif name in oracle_lists.JUDGED_GAINS:
        worth = judged_gains(labels)
        count = len(worth)
    else:
        relevant = of_least_gain(labels, rel)
        if name == "rndcg" and label_gains(relevant):
            relevant = labels
        worth = label_gains(relevant)
        count = len(worth)
        if name in oracle_lists.GRADED | oracle_lists.POWERS:
            how = "exp" if name in oracle_lists.POWERS else gains
            worth = {item: _worth(gain, how) for item, gain in worth.items()}
    first = set(hit_ranks(dict.fromkeys(worth, 1.0), predictions))
    worths = [worth[item] if rank in first else None for rank, (item, _) in enumerate(listed, 1)]
    ideal = sorted(worth.values(), reverse=True)
    return oracle_lists.value(name, worths, count, ideal, math.inf if k is None else k, given)


# ------------------------------------------------------------------ global average precision


def global_average_precision(
    predictions: Iterable[tuple[float, bool]], total: int, ties: str = "expected"
) -> float:
    """Compute GAP from (confidence, right?) of all predictions and M, the labelled queries.

    Take a group of n equal confidences with c right ones, after N others with C right ones. Place j
    of the group is right in c/n of the orders, and then (j - 1)(c - 1)/(n - 1) of the right ones
    are expected before it.
    """
    groups: dict[float, list[bool]] = {}
    for confidence, right in predictions:
        groups.setdefault(confidence, []).append(bool(right))
    terms: list[float] = []
    before = right_before = 0
    for confidence in sorted(groups, reverse=True):
        n, c = len(groups[confidence]), sum(groups[confidence])
        if ties == "expected" and c:
            for j in range(1, n + 1):
                earlier = (j - 1) * (c - 1) / (n - 1) if n > 1 else 0.0
                terms.append(c / n * (right_before + 1 + earlier) / (before + j))
        elif c:
            first = before + (n - c if ties == "worst" else 0)
            terms += [(right_before + j) / (first + j) for j in range(1, c + 1)]
        before += n
        right_before += c
    return math.fsum(terms) / total


def brute_force_gap(
    predictions: Sequence[tuple[float, bool]], total: int
) -> tuple[Fraction, Fraction, Fraction]:
    """Return (expected, worst, best) over every order of every group of ties, exactly."""
    ordered = sorted(predictions, key=lambda prediction: -prediction[0])
    groups = [list(group) for _, group in itertools.groupby(ordered, key=lambda p: p[0])]
    values = []
    for arrangement in itertools.product(*(itertools.permutations(group) for group in groups)):
        hits, value = 0, Fraction(0)
        for rank, (_, right) in enumerate(itertools.chain(*arrangement), start=1):
            if right:
                hits += 1
                value += Fraction(hits, rank)
        values.append(value / total)
    return sum(values, Fraction(0)) / len(values), min(values), max(values)


def gap_list(
    labels: Mapping[Any, Any], predictions: Mapping[Any, Any], k: int | None
) -> list[tuple[float, bool]]:
    """(confidence, right?) of each query's first k predictions, for all queries."""
    out = []
    for query, listed in predictions.items():
        right = set(hit_ranks(labels.get(query), listed, k))
        for rank, (_, confidence) in enumerate(prediction_pairs(listed)[:k], start=1):
            out.append((confidence, rank in right))
    return out


def gap(
    labels: Mapping[Any, Any],
    predictions: Mapping[Any, Any],
    k: int | None = None,
    ties: str = "expected",
) -> float:
    total = sum(1 for listed in labels.values() if label_gains(listed))
    return global_average_precision(gap_list(labels, predictions, k), total, ties)


ORACLES: dict[str, Callable[..., float]] = {
    "map": average_precision,
    "first_hit": first_hit,
    "precision": precision,
    "recall": recall,
    "hit": hit,
    "f1": f1,
    "rprec": r_precision,
    "ndcg": ndcg,
    "dcg": dcg,
    "rbp": rank_biased,
    "judged": judged,
    "bpref": bpref,
    "gap": gap,
    **{name: partial(of_list, name) for name in oracle_lists.VALUES},
    **{name: partial(catalogue_oracle.value, name) for name in catalogue_oracle.VALUES},
    **oracle_confidence.VALUES,
    **oracle_diversity.VALUES,
}


# Metrics of all predictions by confidence.
POOLED = {"gap", *oracle_confidence.VALUES}


# ------------------------------------------------------------------ a whole evaluation


@dataclass
class Evaluation:
    """Return what rankmill.evaluate must return for the same data."""

    metrics: dict[str, float]
    standard_errors: dict[str, float | None]
    bounds: dict[str, tuple[float, float]]
    queries: int
    per_query: dict[str, dict[Any, float]]
    audit: dict[str, int]


def parse(text: str) -> tuple[str, int | None]:
    name, _, cutoff = text.partition("@")
    name = name.partition("(")[0]
    name = ALIASES.get(name, name)
    return name, int(cutoff) if cutoff and name not in AT else None


def parameters(text: str) -> dict[str, float]:
    """Those in parentheses, and one behind the @."""
    inner = text.partition("(")[2].partition(")")[0]
    pairs = (pair.partition("=") for pair in inner.split(",") if inner)
    name, _, at = text.partition("@")
    name = name.partition("(")[0]
    more = {AT[name]: float(at)} if name in AT and at else {}
    return {name: float(value) for name, _, value in pairs} | more


def query_value(text: str, labels: Any, predictions: Any, gains: str = "linear") -> float:
    name, k = parse(text)
    given: dict[str, Any] = parameters(text)
    if name in oracle_lists.VALUES:
        return of_list(name, labels, predictions, k, gains, **given)
    if name != "bpref":
        labels = of_least_gain(labels, given.pop("rel", None))
    if name not in ("rprec", "bpref"):
        given["k"] = k
    if name in ("dcg", "ndcg"):
        given["gains"] = gains
    return ORACLES[name](labels, predictions, **given)


def evaluate(
    labels: Mapping[Any, Any],
    predictions: Mapping[Any, Any],
    metrics: Sequence[str],
    gains: str = "linear",
    by_confidence: bool = False,
) -> Evaluation:
    """``by_confidence``: long input without ranks, whose lists were ordered by confidence."""
    labelled = [query for query, listed in labels.items() if label_gains(listed)]
    result = Evaluation({}, {}, {}, len(labelled), {}, {})
    for text in metrics:
        name, k = parse(text)
        if name == "gap":
            result.metrics[text] = gap(labels, predictions, k)
            result.standard_errors[text] = None
            result.bounds[text] = (
                gap(labels, predictions, k, "worst"),
                gap(labels, predictions, k, "best"),
            )
            continue
        if name in oracle_confidence.VALUES:
            found = gap_list(labels, predictions, k), len(labelled)
            result.metrics[text] = ORACLES[name](*found, **parameters(text))
            result.standard_errors[text] = None
            continue
        values = {
            query: query_value(text, labels[query], predictions.get(query), gains)
            for query in labelled
        }
        result.per_query[text] = values
        result.metrics[text], result.standard_errors[text] = mean_and_error(list(values.values()))
    result.audit = audit(labels, predictions, metrics, by_confidence)
    return result


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean, and its standard error from the sample variance (n - 1)."""
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return mean, None
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (count - 1) / count)


def weighted_mean_and_error(
    values: Sequence[float], weights: Sequence[float]
) -> tuple[float | None, float | None, float | None]:
    """Weighted mean, its linearised standard error, and the effective number of values."""
    pairs = [(Fraction(w), Fraction(v)) for w, v in zip(weights, values, strict=True)]
    count = sum(w > 0 for w, _ in pairs)
    total = sum(w for w, _ in pairs)
    if not total:
        return None, None, None
    mean = sum(w * v for w, v in pairs) / total
    effective = float(total**2 / sum(w * w for w, _ in pairs))
    if count < 2:
        return float(mean), None, effective
    scatter = sum((w * (v - mean)) ** 2 for w, v in pairs)
    variance = Fraction(count, count - 1) * scatter / total**2
    return float(mean), math.sqrt(float(variance)), effective


def audit(
    labels: Mapping[Any, Any],
    predictions: Mapping[Any, Any],
    metrics: Sequence[str],
    by_confidence: bool = False,
) -> dict[str, int]:
    labelled = {query for query, listed in labels.items() if label_gains(listed)}
    lists = {query: prediction_pairs(listed) for query, listed in predictions.items()}
    predicted = {query for query, listed in lists.items() if listed}
    pairs = [pair for listed in labels.values() for pair in _label_pairs(listed)]
    real = [pair for pair in pairs if pair[0] is not None]
    kept = sum(len(label_gains(listed)) for listed in labels.values())
    distinct = sum(
        len({item for item, _ in _label_pairs(listed)} - {None}) for listed in labels.values()
    )
    parsed = [parse(text) for text in metrics]
    cutoffs = [k for _, k in parsed if k is not None]
    gap_cutoffs = [k for name, k in parsed if name == "gap"]
    both = labelled & predicted
    return {
        "queries_labelled": len(labelled),
        "queries_predicted": len(predicted),
        "queries_in_both": len(both),
        "queries_only_labelled": len(labelled - predicted),
        "queries_only_predicted": len(predicted - labelled),
        "empty_label_lists": len(labels) - len(labelled),
        "repeated_labels": len(real) - distinct,
        "null_labels": len(pairs) - len(real),
        "nonpositive_gains": distinct - kept,
        "repeated_items": sum(len(ls) - len({item for item, _ in ls}) for ls in lists.values()),
        "null_items": sum(len(listed or []) - len(lists[q]) for q, listed in predictions.items()),
        "items_beyond_depth": 0,
        "unjudged_items": 0,
        "seen_items": 0,
        "unknown_items": 0,
        "short_lists": sum(len(lists[q]) < max(cutoffs) for q in both) if cutoffs else 0,
        "tied_confidences": _tied_confidences(labels, predictions, gap_cutoffs),
        "tied_ranks": sum(map(_tied_ranks, lists.values())) if by_confidence else 0,
        "comment_lines": 0,
        "labels": kept,
        "predictions": sum(map(len, lists.values())),
    }


def _tied_confidences(labels: Any, predictions: Any, cutoffs: Sequence[int | None]) -> int:
    """Count the tied confidences in the longest list that a gap metric asks for."""
    if not cutoffs:
        return 0
    longest = None if None in cutoffs else max(k for k in cutoffs if k is not None)
    listed = gap_list(labels, predictions, longest)
    groups: dict[float, list[bool]] = {}
    for confidence, is_right in listed:
        groups.setdefault(confidence, []).append(is_right)
    return sum(len(group) for group in groups.values() if len(group) > 1 and any(group))


def _tied_ranks(listed: Sequence[tuple[Item, float]]) -> int:
    confidences = [confidence for _, confidence in listed]
    return sum(confidences.count(confidence) > 1 for confidence in confidences)


def lists_of_rows(
    rows: Iterable[tuple[Any, Item, Any, Any]], order: str = "file"
) -> dict[Any, list[tuple[Item, Any]]]:
    """Rows (query, item, rank, confidence) of a long file -> query -> list, in rank order.

    ``order`` is "rank" (ascending), "confidence" (descending, equal ones in file order) or "file".
    """
    rows_of: dict[Any, list[tuple[Any, Item, Any, Any]]] = {}
    for row in rows:
        rows_of.setdefault(row[0], []).append(row)
    for listed in rows_of.values():
        if order == "rank":
            listed.sort(key=lambda row: row[2])
        elif order == "confidence":
            listed.sort(key=lambda row: -row[3])
    return {q: [(item, conf) for _, item, _, conf in listed] for q, listed in rows_of.items()}


def best_items(
    scores: Sequence[float], k: int, seen: Iterable[int] = (), *, tied: bool = False
) -> list[int]:
    """The places of the k highest scores, equal ones by place; `tied`: all that equal the last."""
    hidden = set(seen)
    order = sorted((-score, i) for i, score in enumerate(scores) if i not in hidden)
    least = order[k - 1][0] if tied and len(order) >= k else None
    return [i for rank, (key, i) in enumerate(order) if rank < k or key == least]
