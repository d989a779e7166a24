"""What evaluate(semantics=...) must say, in plain Python; shares no code with the package.

Labels are query -> list of (item, gain), predictions query -> list of (item, confidence), in the
order given; an item may be None, a confidence None or NaN, a list None. ``semantics`` is a mapping
of every field of Semantics to its choice. The value over all orders of equal confidences is found
by going through all of them.

An order is a list of *worths*: what each prediction would gain, None for a wrong one. In most
functions a list of predictions is cut into *runs*, whose members may stand in any order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import oracle
import oracle_confidence
import oracle_lists
from oracle import Item, mean_and_error, parameters, parse

Choices = Mapping[str, str]
Worths = Sequence[float | None]
OPEN_ORDERS = ("worst", "best", "expected")
# All orders of a list are tried if there are at most this many.
MOST_ORDERS = 2000


class RefusedError(Exception):
    """Rankmill must refuse this input with an InputError; a metric that it names alone does so."""


# ------------------------------------------------------------------ labels


@dataclass(frozen=True)
class Truth:
    """The labels of a query: the gain of each, R, and the gains that an ideal list would have.

    ``others`` is the number of judged items that are not relevant, where a metric asks for them.
    """

    worth: dict[Item, float]
    count: int
    ideal: list[float]
    others: int = 0


def truth_for(metric: str, labels: Any, gains: str, semantics: Choices) -> Truth:
    """What a metric looks at; for judged and bpref all judged items of a query with a label."""
    name, rel = parse(metric)[0], parameters(metric).get("rel")
    if name == "judged" or name in oracle_lists.JUDGED_GAINS:
        return judged_truth(labels, semantics, rel, all_gains=True)
    if name == "bpref" or name in oracle_lists.LEVELS:
        return judged_truth(labels, semantics, rel, all_gains=False, below=name != "bpref")
    if name in oracle_lists.POWERS:
        gains = "exp"
    relevant = oracle.of_least_gain(labels, rel)
    if name == "rndcg" and truth_of(relevant, gains, semantics).count:
        relevant = labels
    return truth_of(relevant, gains, semantics)


def judged_truth(
    labels: Any, semantics: Choices, rel: float | None, *, all_gains: bool, below: bool = False
) -> Truth:
    """With `below`, items of a gain below 0 are kept, and worth -1."""
    listed = [(item, gain) for item, gain in labels or [] if item is not None]
    if semantics["repeated_labels"] == "error" and len({item for item, _ in listed}) < len(listed):
        raise RefusedError("repeated_labels")
    distinct = oracle.judged_gains(listed, semantics["no_relevant"] == "scored")
    if not distinct:
        return Truth({}, 0, [])
    if all_gains:
        return Truth(distinct, len(distinct), [])
    counted = listed if semantics["repeated_labels"] == "count" else list(distinct.items())
    right = [gain > 0 if rel is None else gain >= rel for _, gain in counted if gain >= 0]
    worth = {
        item: float(gain > 0 if rel is None else gain >= rel)
        for item, gain in distinct.items()
        if gain >= 0
    }
    if below:
        worth |= {item: -1.0 for item, gain in distinct.items() if gain < 0}
    return Truth(worth, sum(right), [], len(right) - sum(right))


def truth_of(labels: Any, gains: str, semantics: Choices) -> Truth:
    counted = [(item, gain) for item, gain in labels or [] if item is not None and gain > 0]
    distinct = oracle.label_gains(counted)
    if semantics["repeated_labels"] == "error" and len(counted) > len(distinct):
        raise RefusedError("repeated_labels")
    worth = {item: gain if gains == "linear" else 2.0**gain - 1 for item, gain in distinct.items()}
    if semantics["repeated_labels"] != "count":
        counted = list(distinct.items())
    ideal = [gain if gains == "linear" else 2.0**gain - 1 for _, gain in counted]
    return Truth(worth, len(counted), sorted(ideal, reverse=True))


# ------------------------------------------------------------------ a list of predictions


@dataclass(frozen=True)
class Prediction:
    item: Item
    confidence: float | None
    worth: float | None


def text(item: Item) -> bytes:
    return str(item).encode()


def runs_of(
    listed: Any,
    truth: Truth,
    semantics: Choices,
    by_confidence: bool,
    depth: int | None = None,
    judged: set[Item] | None = None,
) -> list[list[Prediction]]:
    """Return the predictions of a query in runs; a run has one member if its place is fixed.

    Those beyond `depth` are cut off, then those that are not in `judged` are dropped.
    """
    pairs = [(item, conf) for item, conf in listed or [] if item is not None]
    order = semantics["order"] if by_confidence else "given"
    if order.startswith("item_"):
        pairs.sort(key=lambda pair: text(pair[0]), reverse=order != "item_ascending")
    if order == "item_descending_float32":
        pairs.sort(key=lambda pair: -float(np.float32(pair[1])))
    elif order != "given":
        pairs.sort(key=lambda pair: -pair[1])
    repeats = semantics["repeated_predictions"]
    seen: set[Item] = set()
    kept = []
    for item, confidence in pairs:
        worth = truth.worth.get(item)
        if item in seen:
            if repeats == "error" or (repeats == "once" and order in OPEN_ORDERS):
                raise RefusedError("repeated_predictions")
            if repeats == "drop":
                continue
            if repeats == "once":
                worth = None
        seen.add(item)
        kept.append(Prediction(item, confidence, worth))
    kept = [one for one in kept[:depth] if judged is None or one.item in judged]
    if order not in OPEN_ORDERS:
        return [[one] for one in kept]
    return [list(run) for _, run in itertools.groupby(kept, key=lambda one: one.confidence)]


def in_order(runs: Sequence[list[Prediction]], order: str) -> list[Prediction]:
    """Return one list. The hits of a run come last (least worth first), first, or as given."""
    if order not in ("worst", "best"):
        return [one for run in runs for one in run]
    return [one for run in runs for one in sorted(run, key=how_right, reverse=order == "best")]


def how_right(one: Prediction) -> tuple[bool, float]:
    """Judged items may be worth nothing, or less, and are no other predictions."""
    return one.worth is not None, one.worth or 0.0


def arrangements(run: Sequence[float | None]) -> list[tuple[float | None, ...]]:
    """Return the distinct orders of a run; each stands for the same number of orders."""
    return list(dict.fromkeys(itertools.permutations(run)))


def count_orders(runs: Sequence[Sequence[Any]]) -> int:
    return math.prod(math.factorial(len(run)) for run in runs)


def all_orders(runs: Sequence[list[Prediction]]) -> Iterator[Worths]:
    worths = [arrangements([one.worth for one in run]) for run in runs]
    for chosen in itertools.product(*worths):
        yield list(itertools.chain.from_iterable(chosen))


# ------------------------------------------------------------------ metrics of one query


def ratio(above: float, below: float) -> float:
    return above / below if below else 0.0


def dcg_of(gains: Sequence[float | None]) -> float:
    return math.fsum(
        gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1) if gain is not None
    )


def bpref(worths: Worths, truth: Truth) -> float:
    most = min(truth.count, truth.others)
    above, terms = 0, []
    for worth in worths:
        if worth == 0:
            above += 1
        elif worth is not None:
            terms.append(1 - ratio(min(above, most), most))
    return ratio(math.fsum(terms), truth.count)


def value(metric: str, worths: Worths, truth: Truth, semantics: Choices) -> float:
    """A metric of one list in one order."""
    name, k = parse(metric)
    if name == "bpref":
        return bpref(worths, truth)
    if name in oracle_lists.VALUES and name != "fbeta":
        up_to = math.inf if k is None else k
        given = parameters(metric)
        listed = (worths, truth.count, truth.ideal, up_to, given, semantics["recall_rounding"])
        return oracle_lists.value(name, *listed)
    cutoff = math.inf if k is None else k
    total, count = truth.count, len(worths)
    if name == "rprec":
        k = total
    ranks = [rank for rank, worth in enumerate(worths[:k], start=1) if worth is not None]
    hits = len(ranks)
    if name == "map":
        divisors = {
            "min_k_labels": min(cutoff, total),
            "labels": total,
            "min_labels_predictions": min(total, count, cutoff),
            "hits": hits,
        }
        precisions = [found / rank for found, rank in enumerate(ranks, start=1)]
        return ratio(math.fsum(precisions), divisors[semantics["ap_divisor"]])
    if name == "first_hit":
        return 1 / ranks[0] if ranks else 0.0
    if name == "hit":
        return float(hits > 0)
    if name == "judged":
        return ratio(hits, min(cutoff, count))
    if name == "rbp":
        p = parameters(metric).get("p", 0.8)
        return math.fsum((1 - p) * p ** (rank - 1) for rank in ranks)
    within_k = semantics["recall_divisor"] == "min_k_labels"
    recall = ratio(hits, min(cutoff, total) if within_k else total)
    if name in ("recall", "rprec"):
        return recall
    if name in ("precision", "f1", "fbeta"):
        short = semantics["precision_divisor"] == "min_k_predictions"
        precision = ratio(hits, min(cutoff, count) if short else cutoff)
        if name == "precision":
            return precision
        square = parameters(metric).get("beta", 1) ** 2 if name == "fbeta" else 1
        return ratio((1 + square) * precision * recall, square * precision + recall)
    found = dcg_of(worths[:k])
    if name == "dcg":
        return found
    if semantics["ideal_dcg"] == "k" and k is not None:
        return ratio(found, dcg_of([1.0] * k))
    return ratio(found, dcg_of(truth.ideal[:k]))


def shared_precisions(runs: Sequence[list[Prediction]], truth: Truth) -> float:
    """All of a run have its last rank."""
    terms: list[float] = []
    last = 0
    for run in runs:
        last += len(run)
        right = sum(one.worth is not None for one in run)
        terms += [(len(terms) + right) / last] * right
    return ratio(math.fsum(terms), truth.count)


def query_value(
    metric: str, runs: Sequence[list[Prediction]], truth: Truth, semantics: Choices
) -> float:
    """A metric of one query: over all orders of its runs where they are open."""
    name, _ = parse(metric)

    def of_order(worths: Worths) -> float:
        return value(metric, worths, truth, semantics)

    order = semantics["order"]
    if name == "lrap":
        return shared_precisions(runs, truth)
    if order not in OPEN_ORDERS or all(len(run) == 1 for run in runs):
        return of_order([one.worth for run in runs for one in run])
    ends = of_order([one.worth for one in in_order(runs, order)])
    if name == "map" and semantics["ap_divisor"] == "hits":
        return ends  # fewer hits may raise this metric, so the other ways to order are not checked
    if order != "expected" and count_orders(runs) > MOST_ORDERS:
        return ends
    values = [of_order(worths) for worths in all_orders(runs)]
    if math.isnan(ends):  # whether a query has a value does not hang on its order
        assert all(map(math.isnan, values)), (metric, runs)
        return ends
    if order == "expected":
        return math.fsum(values) / len(values)
    lowest = (order == "worst") != (name in oracle_lists.LOWER_IS_BETTER)
    extreme = min(values) if lowest else max(values)
    assert math.isclose(extreme, ends, rel_tol=1e-13), (metric, runs)
    return extreme


# ------------------------------------------------------------------ global average precision


@dataclass(frozen=True)
class Pooled:
    confidence: float
    right: bool
    query: Any
    item: Item


def pooled(runs_by_query: Mapping[Any, Any], k: int | None, order: str) -> list[Pooled]:
    return [
        Pooled(one.confidence, one.worth is not None, query, one.item)
        for query, runs in runs_by_query.items()
        for one in in_order(runs, order)[:k]
    ]


def id_key(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def gap(listed: Sequence[Pooled], ties: str) -> float:
    """The sum of precisions at the right predictions, by falling confidence."""
    if ties == "ids":
        listed = sorted(listed, key=lambda one: (id_key(one.query), id_key(one.item)))
    terms = []
    before = right_before = 0
    by_confidence = sorted(listed, key=lambda one: -one.confidence)
    for _, group in itertools.groupby(by_confidence, key=lambda one: one.confidence):
        rights = [one.right for one in group]
        n, c = len(rights), sum(rights)
        if ties == "threshold":
            terms.append(c * (right_before + c) / (before + n))
        elif ties in ("given", "ids"):
            terms.append(gap_of_order(rights, before, right_before))
        elif ties in ("worst", "best"):
            terms.append(gap_of_order(sorted(rights, reverse=ties == "best"), before, right_before))
        else:
            # Every choice of c among n places has the same probability.
            values = [
                gap_of_order([place in chosen for place in range(n)], before, right_before)
                for chosen in itertools.combinations(range(n), c)
            ]
            terms.append(math.fsum(values) / len(values))
        before += n
        right_before += c
    return math.fsum(terms)


def gap_of_order(rights: Sequence[bool], before: int, right_before: int) -> float:
    terms = []
    for rank, right in enumerate(rights, start=before + 1):
        if right:
            right_before += 1
            terms.append(right_before / rank)
    return math.fsum(terms)


def tied_with_right(listed: Sequence[Pooled]) -> int:
    groups: dict[float, list[bool]] = {}
    for one in listed:
        groups.setdefault(one.confidence, []).append(one.right)
    return sum(len(group) for group in groups.values() if len(group) > 1 and any(group))


# ------------------------------------------------------------------ a whole evaluation


def settle(listed: Any, semantics: Choices, confidences_read: bool) -> Any:
    """Return the list with NaN as minus infinity, or raise RefusedError."""
    if not confidences_read:
        return [(item, None) for item, _ in listed or []]
    settled = []
    for item, confidence in listed or []:
        if confidence is None or math.isnan(confidence):
            if item is not None and semantics["nan_confidence"] == "error":
                raise RefusedError("nan_confidence")
            confidence = -math.inf
        settled.append((item, confidence))
    return settled


def evaluate(
    labels: Mapping[Any, Any],
    predictions: Mapping[Any, Any],
    metrics: Sequence[str],
    semantics: Choices,
    gains: str = "linear",
    *,
    confidences_read: bool = True,
    long_by_confidence: bool = False,
    depth: int | None = None,
    judged_only: bool = False,
) -> oracle.Evaluation:
    """Return what rankmill.evaluate must return; without the audit if predictions are left out.

    ``confidences_read`` is False if the input has no confidences. ``long_by_confidence`` says that
    the lists come from long rows without ranks, and are already sorted by confidence.

    Raises
    ------
    RefusedError
        If rankmill must raise InputError.
    """
    truths = {q: truth_of(listed, gains, semantics) for q, listed in labels.items()}
    none = Truth({}, 0, [])
    settled = {q: settle(ls, semantics, confidences_read) for q, ls in predictions.items()}
    judged = {query: judged_items(labels.get(query)) if judged_only else None for query in settled}

    def runs_for(query: Any, truth: Truth) -> list[list[Prediction]]:
        how = semantics, confidences_read, depth, judged.get(query)
        return runs_of(settled.get(query), truth, *how)

    runs = {query: runs_for(query, truths.get(query, none)) for query in settled}
    labelled = [query for query, truth in truths.items() if truth.count]
    predicted = {q for q, ls in settled.items() if any(item is not None for item, _ in ls)}
    scores = counted_queries(truths, runs, predicted, semantics)
    result = oracle.Evaluation({}, {}, {}, len(scores), {}, {})
    order = semantics["order"] if confidences_read else "given"
    tied = 0
    for metric in metrics:
        name, k = parse(metric)
        if name == "gap" or name in oracle_confidence.VALUES:
            listed = pooled(runs, k, order)
            totals = {
                "labelled_queries": len(labelled),
                "label_pairs": sum(truth.count for truth in truths.values()),
                "predicted_label_pairs": sum(truths[q].count for q in labelled if q in predicted),
                "hits": sum(one.right for one in listed),
            }
            total = totals[semantics["gap_total"]]
            if semantics["gap_total"] == "hits":
                total = max(1, total)  # 0 without hits, as in scikit-learn
            result.metrics[metric] = result.standard_errors[metric] = None
            if total and name != "gap":
                pairs = [(one.confidence, one.right) for one in listed]
                result.metrics[metric] = oracle.ORACLES[name](pairs, total, **parameters(metric))
            elif total:
                result.metrics[metric] = gap(listed, semantics["gap_ties"]) / total
                result.bounds[metric] = gap(listed, "worst") / total, gap(listed, "best") / total
            if name == "gap":
                tied = max(tied, tied_with_right(listed))
            continue
        own = {q: truth_for(metric, listed, gains, semantics) for q, listed in labels.items()}
        values = {
            query: query_value(metric, runs_for(query, own[query]), own[query], semantics)
            if score is None
            else score
            for query, score in scores.items()
        }
        if any(map(math.isnan, values.values())):
            raise RefusedError(metric)
        result.per_query[metric] = values
        found = list(values.values())
        result.metrics[metric], result.standard_errors[metric] = (
            mean_and_error(found) if found else (None, None)
        )
    if depth is not None or judged_only:
        return result
    result.audit = oracle.audit(labels, settled, [m for m in metrics if parse(m)[0] != "gap"])
    by_file_order = order == "confidence" or (order == "given" and long_by_confidence)
    cutoffs = [k for _, k in map(parse, metrics) if k is not None]
    result.audit |= {
        "tied_confidences": tied,
        "tied_ranks": sum(map(tied_ranks, settled.values())) if by_file_order else 0,
        "short_lists": sum(
            sum(map(len, runs[query])) < max(cutoffs, default=0)
            for query in labelled
            if query in predicted
        ),
    }
    return result


def judged_items(labels: Any) -> set[Item]:
    """An item is judged if one of its gains is 0 or more, as in trec_eval."""
    return {item for item, gain in labels or [] if item is not None and gain >= 0}


def dropped(
    labels: Mapping[Any, Any],
    predictions: Mapping[Any, Any],
    semantics: Choices,
    depth: int | None,
    judged_only: bool,
) -> dict[str, int]:
    """What the audit says of predictions beyond the depth, and of unjudged ones."""
    # Nothing of queries without labels is refused, and they are counted too.
    semantics = {**semantics, "nan_confidence": "last"}
    if semantics["repeated_predictions"] != "drop":
        semantics["repeated_predictions"] = "each"
    settled = {q: settle(ls, semantics, confidences_read=True) for q, ls in predictions.items()}
    counts = {"items_beyond_depth": 0, "unjudged_items": 0}
    for query, listed in settled.items():
        runs = runs_of(listed, Truth({}, 0, []), semantics, by_confidence=True)
        items = [one.item for run in runs for one in run]
        counts["items_beyond_depth"] += len(items) - len(items[:depth])
        judged = judged_items(labels.get(query)) if judged_only else set(items)
        counts["unjudged_items"] += sum(item not in judged for item in items[:depth])
    return counts


def tied_ranks(listed: Any) -> int:
    confidences = [confidence for item, confidence in listed if item is not None]
    return sum(confidences.count(confidence) > 1 for confidence in confidences)


def counted_queries(
    truths: Mapping[Any, Truth], runs: Mapping[Any, Any], predicted: set[Any], semantics: Choices
) -> dict[Any, float | None]:
    """Return the queries that count and their scores; None means the value of the metric."""
    out: dict[Any, float | None] = {}

    def decide(query: Any, field: str) -> None:
        choice = semantics[field]
        if choice == "error":
            raise RefusedError(field)
        if choice != "skip":
            own = field == "unpredicted" or choice == "scored"
            out[query] = None if own else {"zero": 0.0, "one": 1.0}[choice]

    for query, truth in truths.items():
        if query in predicted:
            if truth.count:
                out[query] = None
            else:
                decide(query, "no_relevant")
        elif truth.count:
            decide(query, "unpredicted")
        elif semantics["unpredicted"] == "zero":
            decide(query, "no_relevant")
    for query in sorted(predicted - truths.keys(), key=id_key):
        decide(query, "unlabelled")
    return out
