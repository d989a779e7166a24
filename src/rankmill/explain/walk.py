"""What stands at each rank of one list, for the metrics' own walks, and what they divide by."""

import numpy as np

from rankmill.columns.ids import slice_ids
from rankmill.errors import UsageError
from rankmill.kernels.identity import Ids
from rankmill.matching.hits import Hits
from rankmill.matching.labels import LabelLists
from rankmill.metrics.aggregate import aggregate_of, list_walk_of
from rankmill.metrics.base import Columns, Metric, Ranked, Tied
from rankmill.metrics.needs import Confidences
from rankmill.metrics.registry import REGISTRY, parse
from rankmill.semantics.choices import CHOICES, Choices


def check_walk(metric: Metric, order: str) -> None:
    """Raise UsageError if a metric has no walk; nothing else could stand for it."""
    spec = metric.spec
    if metric.summary:
        raise UsageError(
            f"{metric.text} has a summary over all queries, {metric.summary!r}: leave it out"
        )
    if not _is_explained(metric):
        where = "evaluate has its value for each query"
        if spec.kernel is None:
            where = "it is of all lists together, and no list has a value of its own"
        names = [name for name, one in REGISTRY.items() if _is_explained(parse(one.example))]
        raise UsageError(
            f"{metric.text} has no walk yet: {where}. explain takes {', '.join(names)}"
        )
    if spec.kernel and order == "expected" and not spec.expected_walk:
        raise UsageError(
            f"{metric.text} has no walk yet under order 'expected': choose another order; evaluate "
            "has its value for each query"
        )


def _is_explained(metric: Metric) -> bool:
    if metric.spec.walk is not None or list_walk_of(metric) is not None:
        return True
    return Confidences in aggregate_of(metric).needs


def items_to_hit(labels: LabelLists, metric: Metric, hits: Hits) -> Ids:
    """The items among which hits are: by falling gain, so that those that count stand first."""
    if metric.spec.needs_judged and labels.judged is not None:
        labels = labels.judged
    distinct = int(hits.label_counts[0])
    if len(labels.all_offsets):  # repeats are among those
        distinct = len(labels.items.keys)
        if len(hits.label_gains) and not metric.spec.needs_judged:
            distinct = int((labels.gains >= hits.label_gains.min()).sum())
    return slice_ids(labels.items, 0, distinct)


def last_rank(metric: Metric, hits: Hits) -> int:
    """The last rank that a metric looks at in the only list of `hits`."""
    predictions, labels = int(hits.prediction_counts[0]), int(hits.label_counts[0])
    return min(predictions, labels if metric.spec.within_labels else metric.limit)


def ranked_hits(
    hits: Hits, confidences: np.ndarray | None, order: str
) -> tuple[np.ndarray, Ranked]:
    """The places of the only list in the order that counts, and what stands at each rank.

    For "worst" and "best" the places of equal confidence are put in another order, hits last by
    rising gain or first by falling gain.
    """
    count = int(hits.prediction_counts[0])
    hit, gain = np.zeros(count, np.bool_), np.zeros(count)
    hit[hits.ranks - 1] = True
    gain[hits.ranks - 1] = hits.gains
    places = np.arange(count)
    if confidences is not None and order in ("worst", "best"):
        run = np.cumsum(_starts(confidences))
        keys = (gain, hit, run) if order == "worst" else (-gain, ~hit, run)
        places = np.lexsort(keys)
    confidence = None if confidences is None else confidences[places]
    ranks = np.arange(1, count + 1)
    discount = hits.discounts[1 : count + 1]
    return places, Ranked(ranks, hit[places], gain[places], confidence, discount)


def _starts(confidences: np.ndarray) -> np.ndarray:
    """Whether a run of equal confidence starts at each place."""
    return np.append(True, confidences[1:] != confidences[:-1])[: len(confidences)]


def walk(metric: Metric, ranked: Ranked, hits: Hits, order: str) -> Columns:
    """The columns of the walk down one list; "term" is what each rank adds to the sum.

    Under order "expected" the terms are expected values over all orders of equal confidences.
    """
    check_walk(metric, order)
    if order == "expected":
        assert metric.spec.expected_walk is not None
        return metric.spec.expected_walk(_tied(ranked), metric, hits)
    assert metric.spec.walk is not None
    return metric.spec.walk(ranked, metric, hits)


def _tied(ranked: Ranked) -> Tied:
    """The chances at each rank, as rankmill.kernels.expected has them."""
    assert ranked.confidence is not None
    starts = np.flatnonzero(_starts(ranked.confidence))
    of_place = _starts(ranked.confidence).cumsum() - 1
    sizes = np.diff(np.append(starts, len(ranked.hit)))
    hits = np.add.reduceat(ranked.hit.astype(np.int64), starts)
    found = (hits.cumsum() - hits)[of_place]
    place = ranked.rank - starts[of_place]
    gains = np.add.reduceat(ranked.gain, starts)[of_place]
    sizes, hits = sizes[of_place], hits[of_place]
    # The chance that this rank holds a hit if none before it in its run does.
    left = np.maximum(hits, sizes - place + 1)
    first = hits / left
    missed = np.append(1.0, np.cumprod(1 - first))[: len(place)]
    return Tied(
        rank=ranked.rank,
        hit=ranked.hit,
        discount=ranked.discount,
        chance=hits / sizes,
        first=missed * first,
        gain=gains / sizes,
        found=found,
        hits=hits,
        size=sizes,
        place=place,
    )


def divisor_of(metric: Metric, hits: Hits, semantics: Choices) -> tuple[float, str] | None:
    """What the sum over the only list is divided by, and what that is; None if by nothing."""
    if metric.spec.divisor is None:
        return None
    divisor = float(metric.spec.divisor.of(hits, metric, semantics)[0])
    meanings = []
    for field in metric.spec.fields:
        choice = getattr(semantics, field)
        meaning = CHOICES[field][choice].removeprefix("divided by ")
        meanings.append(f"{meaning} ({field} {choice})")
    return divisor if divisor > 0 else 1.0, metric.spec.divisor.meaning.format(*meanings)
