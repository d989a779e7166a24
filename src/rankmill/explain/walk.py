"""What each rank of one list adds to a metric, and what the sum is divided by."""

from typing import NamedTuple

import numpy as np

from rankmill.matching.hits import Hits
from rankmill.metrics.registry import Metric
from rankmill.metrics.values import DIVISORS
from rankmill.semantics.choices import CHOICES, Semantics

# The field of Semantics that says what a metric is divided by.
_FIELDS = {
    "average_precision": ("ap_divisor",),
    "precision": ("precision_divisor",),
    "recall": ("recall_divisor",),
    "f1": ("precision_divisor", "recall_divisor"),
    "ndcg": ("ideal_dcg",),
}


class Ranked(NamedTuple):
    """One list in the order that counts: hits, gains and confidences, and log2(rank + 1)."""

    hit: np.ndarray
    gain: np.ndarray
    confidence: np.ndarray | None
    discount: np.ndarray


def last_rank(metric: Metric, hits: Hits) -> int:
    """The last rank that a metric looks at in the only list of `hits`."""
    predictions, labels = int(hits.prediction_counts[0]), int(hits.label_counts[0])
    return min(predictions, labels if metric.name == "rprec" else metric.limit)


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
    discount = hits.discounts[1 : count + 1]
    return places, Ranked(hit[places], gain[places], confidence, discount)


def _starts(confidences: np.ndarray) -> np.ndarray:
    """Whether a run of equal confidence starts at each place."""
    return np.append(True, confidences[1:] != confidences[:-1])[: len(confidences)]


def walk(metric: Metric, ranked: Ranked, count: int) -> dict[str, np.ndarray]:
    """The columns of a walk down the first `count` ranks; "term" is what each adds to the sum."""
    hit = ranked.hit[:count]
    ranks = np.arange(1, count + 1)
    first = hit & (hit.cumsum() == 1)
    columns: dict[str, np.ndarray] = {"hit": hit}
    if metric.name == "map":
        columns["precision"] = hit.cumsum() / ranks
        columns["term"] = np.where(hit, columns["precision"], 0.0)
    elif metric.name == "first_hit":
        columns["term"] = first / ranks
    elif metric.name == "hit":
        columns["term"] = first.astype(np.float64)
    elif metric.name in ("dcg", "ndcg"):
        columns["gain"] = ranked.gain[:count]
        columns["discount"] = ranked.discount[:count]
        columns["term"] = columns["gain"] / columns["discount"]
    else:
        columns["term"] = hit.astype(np.float64)
    return columns


def expected_walk(metric: Metric, ranked: Ranked, count: int) -> dict[str, np.ndarray]:
    """As `walk`, the expected value over all orders of equal confidences at each rank.

    "chance" is that of a hit at this rank. Terms are those of rankmill.kernels.expected.
    """
    assert ranked.confidence is not None
    starts = np.flatnonzero(_starts(ranked.confidence))
    of_place = _starts(ranked.confidence).cumsum() - 1
    sizes = np.diff(np.append(starts, len(ranked.hit)))
    hits = np.add.reduceat(ranked.hit.astype(np.int64), starts)
    found = (hits.cumsum() - hits)[of_place]
    ranks = np.arange(1, len(ranked.hit) + 1)
    place = ranks - starts[of_place]
    gains = np.add.reduceat(ranked.gain, starts)[of_place]
    sizes, hits = sizes[of_place], hits[of_place]
    chance = hits / sizes
    # The chance that this rank holds a hit if none before it in its run does.
    left = np.maximum(hits, sizes - place + 1)
    first = hits / left
    missed = np.append(1.0, np.cumprod(1 - first))[: len(ranks)]
    columns: dict[str, np.ndarray] = {"hit": ranked.hit, "chance": chance}
    if metric.name == "map":
        growth = (hits - 1) / np.maximum(1, sizes - 1)
        columns["term"] = chance * (found + 1 + (place - 1) * growth) / ranks
    elif metric.name == "first_hit":
        columns["term"] = missed * first / ranks
    elif metric.name == "hit":
        columns["term"] = missed * first
    elif metric.name in ("dcg", "ndcg"):
        columns["gain"] = gains / sizes
        columns["discount"] = ranked.discount
        columns["term"] = columns["gain"] / columns["discount"]
    else:
        columns["term"] = chance
    return {name: column[:count] for name, column in columns.items()}


def divisor_of(metric: Metric, hits: Hits, semantics: Semantics) -> tuple[float, str] | None:
    """What the sum over the only list is divided by, and what that is; None if by nothing."""
    name = metric.spec.divisor
    if name is None:
        return None
    divisor = float(DIVISORS[name](hits, metric, semantics)[0])
    meanings = []
    for field in _FIELDS[name]:
        choice = getattr(semantics, field)
        meaning = CHOICES[field][choice].removeprefix("divided by ")
        meanings.append(f"{meaning} ({field} {choice})")
    text = meanings[0]
    if name == "f1":
        text = f"the mean of {' and '.join(meanings)}"
    if name == "ndcg":
        text = f"the dcg of {text}"
    return divisor if divisor > 0 else 1.0, text


def ideal_gains(metric: Metric, hits: Hits, semantics: Semantics) -> np.ndarray:
    """The gains of the best list there could be, up to the cutoff."""
    if semantics.ideal_dcg == "k" and metric.k is not None:
        return np.ones(metric.k)
    gains = hits.label_gains if len(hits.label_gains) else np.ones(int(hits.label_counts[0]))
    return gains[: metric.limit]
