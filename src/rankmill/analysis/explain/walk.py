"""What stands at each rank of one list, for the metrics' own walks, and what they divide by."""

import numpy as np

from rankmill.analysis.explain.walks import Ranked, ranked_of, walk_of
from rankmill.columns.ids import slice_ids
from rankmill.errors import UsageError
from rankmill.kernels.identity import Ids
from rankmill.matching.hits import Hits
from rankmill.matching.label_lists import LabelLists
from rankmill.metrics.aggregate import aggregate_of, list_walk_of
from rankmill.metrics.base import Columns, Metric
from rankmill.metrics.needs import Confidences
from rankmill.metrics.registry import REGISTRY, parse
from rankmill.metrics.summary import SUMMARISED
from rankmill.semantics.choices import CHOICES, Choices


def check_walk(metric: Metric, order: str) -> None:
    """Raise UsageError if a metric has no walk; nothing else could stand for it."""
    spec = metric.spec
    own = SUMMARISED.get(metric.name, ("",))[0] == metric.name  # gauc is not the mean of lists
    if metric.summary and not own:
        raise UsageError(
            f"{metric.text} has a summary over all queries, {metric.summary!r}: leave it out"
        )
    if metric.judged_only:
        raise UsageError(
            f"leave judged_only out of {metric.text}, as explain drops predictions before all: "
            "type --judged-only on the command line, judged_only=True of Semantics in Python"
        )
    if not _is_explained(metric):
        where = "evaluate has its value for each query"
        if spec.kernel is None:
            where = "it is of all lists together, and no list has a value of its own"
        names = [name for name, one in REGISTRY.items() if _is_explained(parse(one.example))]
        raise UsageError(
            f"explain does not support {metric.text}: {where}. explain takes {', '.join(names)}"
        )
    found = walk_of(metric)
    if order == "expected" and found is not None and not found.tied:
        raise UsageError(
            f"explain does not support {metric.text} under order 'expected': choose another order; "
            "evaluate has its value for each query"
        )


def _is_explained(metric: Metric) -> bool:
    if walk_of(metric) is not None or list_walk_of(metric) is not None:
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


def standing(
    hits: Hits, confidences: np.ndarray | None, order: str
) -> tuple[np.ndarray, np.ndarray | None, Hits, Ranked]:
    """The places of the only list in the order that counts, and what stands there in this order.

    For "worst" and "best" the places of equal confidence are put in another order, hits last by
    rising gain or first by falling gain.
    """
    count = int(hits.prediction_counts[0])
    places, starts = np.arange(count), np.ones(count, np.bool_)
    if confidences is not None and order in ("worst", "best"):
        given = ranked_of(hits, starts)
        run = np.cumsum(_starts(confidences))
        sign = 1 if order == "worst" else -1
        places = np.lexsort((sign * given.gain, given.hit == (order == "worst"), run))
        hit = given.hit[places]
        hits = hits._replace(ranks=np.flatnonzero(hit) + 1, gains=given.gain[places][hit])
    elif confidences is not None and order == "expected":
        starts = _starts(confidences)
    confidences = None if confidences is None else confidences[places]
    return places, confidences, hits, ranked_of(hits, starts)


def _starts(confidences: np.ndarray) -> np.ndarray:
    """Whether a run of equal confidence starts at each place."""
    return np.append(True, confidences[1:] != confidences[:-1])[: len(confidences)]


def walk(metric: Metric, ranked: Ranked, hits: Hits, order: str) -> Columns:
    """The columns of the walk down one list; "term" is what each rank adds to the sum.

    Under order "expected" the terms are expected values over all orders of equal confidences.
    """
    check_walk(metric, order)
    found = walk_of(metric)
    assert found is not None
    columns = found.columns(ranked, metric, hits)
    if order == "expected":
        columns.pop("precision", None)  # that of one order
        columns = {"chance": ranked.chance, **columns}
    return {"judged" if metric.spec.needs_judged else "hit": ranked.hit, **columns}


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
