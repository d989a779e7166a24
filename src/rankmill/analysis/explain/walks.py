"""What each rank adds to the sum of a kernel: a walk for each, over one list.

Under order "expected" equal confidences share chances, and where `Walk.tied` says so, the terms of
those are the expected ones: each order of its own is the case of runs of one.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from rankmill.kernels.diversity import SUBTOPICS
from rankmill.matching.hits import Hits
from rankmill.metrics.base import Columns, Metric
from rankmill.metrics.quantities import counted, relevant_labels


class Ranked(NamedTuple):
    """One list in the order that counts, and what is to be expected at each of its ranks."""

    rank: np.ndarray
    hit: np.ndarray  # whether a hit stands there
    discount: np.ndarray  # log2(rank + 1)
    chance: np.ndarray  # that of a hit at this rank
    first: np.ndarray  # that of the first hit at this rank
    gain: np.ndarray  # the mean one
    # Of the run of equal confidence: the hits before it, those in it, its length, and the place in
    # it, from 1.
    found: np.ndarray
    hits: np.ndarray
    size: np.ndarray
    place: np.ndarray


def ranked_of(hits: Hits, starts: np.ndarray) -> Ranked:
    """What stands at each rank of the only list; `starts` is whether a run starts there."""
    count = len(starts)
    hit, gain = np.zeros(count, np.bool_), np.zeros(count)
    hit[hits.ranks - 1] = True
    gain[hits.ranks - 1] = hits.gains
    rank = np.arange(1, count + 1)
    first_of_run, run = np.flatnonzero(starts), starts.cumsum() - 1
    sizes = np.diff(np.append(first_of_run, count))
    of_run = np.add.reduceat(hit.astype(np.int64), first_of_run)
    gains = np.add.reduceat(gain, first_of_run)[run]
    found = (of_run.cumsum() - of_run)[run]
    size, in_run, place = sizes[run], of_run[run], rank - first_of_run[run]
    # The chance that this rank holds a hit if none before it in its run does.
    first = in_run / np.maximum(in_run, size - place + 1)
    missed = np.append(1.0, np.cumprod(1 - first))[:count]
    told = in_run / size, missed * first, gains / size
    return Ranked(rank, hit, hits.discounts[1 : count + 1], *told, found, in_run, size, place)


def _precisions(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    growth = (ranked.hits - 1) / np.maximum(1, ranked.size - 1)
    term = ranked.chance * (ranked.found + 1 + (ranked.place - 1) * growth) / ranked.rank
    return {"precision": ranked.hit.cumsum() / ranked.rank, "term": term}


def _squares(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    """What each hit adds to the square of their number."""
    found = ranked.hit.cumsum()
    return {"term": np.where(ranked.hit, 2.0 * found - 1, 0.0)}


def _discounted(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    term = ranked.gain / ranked.discount
    return {"gain": ranked.gain, "discount": ranked.discount, "term": term}


def _discounted_by_misses(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    misses = (~ranked.hit).cumsum()
    discount = hits.discounts[np.where(ranked.hit, misses, 0) + 1]
    term = np.where(ranked.hit, 1.0 / discount, 0.0)
    return {"misses": misses, "discount": discount, "term": term}


def _rank_biased(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    """The weight is (1 - p) p**(rank - 1), multiplied up as the kernel does, to the same bits."""
    (p,) = metric.arguments
    weight = (1 - p) * np.cumprod(np.where(ranked.rank > 1, p, 1.0))
    return {"weight": weight, "term": ranked.chance * weight}


def _cascade(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    scale = 2.0 ** int(metric.arguments[0])
    chance = np.where(ranked.hit, np.minimum(ranked.gain, scale - 1.0) / scale, 0.0)
    left = np.cumprod(np.append(1.0, 1.0 - chance))[: len(chance)]
    term = np.where(ranked.hit, left * chance / ranked.rank, 0.0)
    return {"chance": chance, "reads": left, "term": term}


def _blended(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    (beta,) = metric.arguments
    count = int(hits.label_counts[0])
    reached = np.append(0.0, hits.with_label_gains().label_gains[:count].cumsum())
    ideal = reached[np.minimum(ranked.rank, count)]
    found, gain = ranked.hit.cumsum(), ranked.gain.cumsum()
    ratio = (found + beta * gain) / (ranked.rank + beta * ideal)
    return {"gain": gain, "ideal_gain": ideal, "term": np.where(ranked.hit, ratio, 0.0)}


def _bpref(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    relevant = ranked.hit & (ranked.gain > 0)
    above = (ranked.hit & ~relevant).cumsum()
    count = int(relevant_labels(hits)[0])
    most = min(count, int(hits.label_counts[0]) - count)
    term = np.where(relevant, 1.0 - np.minimum(above, most) / max(1, most), 0.0)
    return {"relevant": relevant, "nonrelevant": above, "term": term}


def _novelty(divided_by: str, ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    """What each hit is worth by the subtopics it adds, as the kernels have it, to the same bits."""
    (alpha,) = metric.arguments
    about, weights = _subtopics_at(ranked), np.ones(SUBTOPICS)
    worth = np.zeros(len(about))
    for place, its in enumerate(about):
        for subtopic in np.flatnonzero(its):
            worth[place] += weights[subtopic]
        weights[its] *= 1.0 - alpha
    return {
        "subtopics": about.sum(axis=1),
        "worth": worth,
        "term": worth / getattr(ranked, divided_by),
    }


def _subtopics(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    about = _subtopics_at(ranked)
    new = np.diff(np.logical_or.accumulate(about, axis=0).sum(axis=1), prepend=0)
    return {"subtopics": about.sum(axis=1), "term": new.astype(np.float64)}


def _subtopics_at(ranked: Ranked) -> np.ndarray:
    """Whether the item at each rank is about each subtopic, a row a rank."""
    masks = np.where(ranked.hit, ranked.gain, 0).astype(np.int64)
    about: np.ndarray = (masks[:, None] >> np.arange(SUBTOPICS) & 1).astype(np.bool_)
    return about


def _pairs(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    """How many misses within the cutoff are expected below each hit."""
    within = ranked.rank <= metric.limit
    misses = int((within & ~ranked.hit).sum())
    of_run = ranked.size - ranked.hits
    below = misses - (ranked.rank - ranked.place - ranked.found) - of_run / 2
    term = np.where(within, ranked.chance * below if misses else ranked.first, 0.0)
    return {"misses_below": below, "term": term}


def _weighted_pairs(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    """The same as shares of all pairs, times the weight of the list."""
    columns = _pairs(ranked, metric, hits)
    within = ranked.rank <= metric.limit
    found = int((within & ranked.hit).sum())
    misses = int(within.sum()) - found
    weight = (found if metric.arguments[0] else found + misses) if found and misses else 0
    sums = weight * (columns["term"].cumsum() / max(1.0, float(found) * misses))
    return columns | {"term": np.diff(sums, prepend=0.0), "sum": sums}


class Walk(NamedTuple):
    """The columns down one list, of which "term" is what each rank adds to the sum of a kernel.

    `tied` is whether the terms are right over all orders of equal confidences, too.
    """

    columns: Callable[[Ranked, Metric, Hits], Columns]
    tied: bool = False


def _expected(term: Callable[[Ranked], np.ndarray]) -> Walk:
    """The walk of a kernel whose terms are a function of what is to be expected at each rank."""
    return Walk(lambda ranked, metric, hits: {"term": term(ranked)}, True)


_HITS = _expected(lambda ranked: ranked.chance)
WALKS = {
    **dict.fromkeys(("count_hits", "count_hits_of_labels", "count_hits_for"), _HITS),
    "sum_precisions": Walk(_precisions, True),
    "first_hit": _expected(lambda ranked: ranked.first / ranked.rank),
    "any_hit": _expected(lambda ranked: ranked.first),
    "dcg": Walk(_discounted, True),
    "rank_biased": Walk(_rank_biased, True),
    "square_hits": Walk(_squares),
    "discounted_by_misses": Walk(_discounted_by_misses),
    "cascade": Walk(_cascade),
    "blended_ratios": Walk(_blended),
    "bpref": Walk(_bpref),
    "novelty_discounted": Walk(partial(_novelty, "discount")),
    "novelty_cascade": Walk(partial(_novelty, "rank")),
    "count_subtopics": Walk(_subtopics),
    "count_misses": _expected(lambda ranked: 1.0 - ranked.chance),
    "pairs_in_order": Walk(_pairs, True),
    "weighted_pairs": Walk(_weighted_pairs, True),
}
"""Kernel -> the walk of all metrics that it counts for."""


def _own(ranked: Ranked, metric: Metric, hits: Hits) -> Columns:
    """What any kernel says of the hits down to each rank, and what each adds to that."""
    sums = np.zeros(len(ranked.rank) + 1)
    for found in range(len(hits.ranks) + 1):
        some = hits._replace(
            offsets=np.array([0, found]), ranks=hits.ranks[:found], gains=hits.gains[:found]
        )
        at = int(hits.ranks[found - 1]) if found else 0
        sums[at:] = counted(metric.spec.kernel or "", some, metric.limit, *metric.arguments)[0]
    term = np.diff(sums)
    if len(term):
        term[0] = sums[1]
    return {"gain": ranked.gain, "term": term, "sum": sums[1:]}


def walk_of(metric: Metric) -> Walk | None:
    """Return the walk of a metric; None of one that equal confidences count otherwise for."""
    spec = metric.spec
    if callable(spec.kernel):
        return Walk(_own)
    if spec.kernel is None or spec.expected not in (None, spec.kernel):
        return None
    # Kernels that take what is chosen as well have a walk of their own, or none.
    return WALKS.get(spec.kernel) or (None if spec.chosen else Walk(_own))
