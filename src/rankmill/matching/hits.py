"""Where predictions are right: matching lists with labels, once for every metric."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rankmill.columns.elementary import discounts
from rankmill.columns.lists import (
    drop_values,
    lengths_of,
    offsets_of,
    take_offsets,
    take_spans,
    take_values,
)
from rankmill.kernels.hits import match_lists
from rankmill.kernels.identity import SEED, Ids
from rankmill.kernels.patterns import group_graded, group_patterns
from rankmill.matching.label_lists import NO_GAINS, LabelLists, powers


class Hits(NamedTuple):
    """The ranks at which each query's list was right, and all else that a metric needs.

    Attributes
    ----------
    offsets, ranks : int64[n + 1], int64[h]
        Query q was right at ``ranks[offsets[q]:offsets[q + 1]]``, ascending, counted from 1.
    gains : float64[h]
    label_counts, prediction_counts : int64[n]
        R and n of each query.
    label_offsets, label_gains : int64[n + 1], float64
        The gains of each query's labels, descending; no gains, and any offsets, where all are 1.
    discounts : float64
        ``log2(rank + 1)`` at index rank.
    repeats : int
        Predictions that repeat an earlier one of their list.
    """

    offsets: np.ndarray
    ranks: np.ndarray
    gains: np.ndarray
    label_counts: np.ndarray
    prediction_counts: np.ndarray
    label_offsets: np.ndarray
    label_gains: np.ndarray
    discounts: np.ndarray
    repeats: int

    def places(self, offsets: np.ndarray) -> np.ndarray:
        """Return where each hit is among the predictions of all lists, whose offsets these are."""
        starts = np.repeat(offsets[:-1], lengths_of(self.offsets))
        return np.asarray(starts + self.ranks - 1)

    def with_label_gains(self) -> "Hits":
        """Return the same hits, and a gain for each label also where all are 1."""
        if len(self.label_gains):
            return self
        offsets = offsets_of(self.label_counts)
        return self._replace(label_offsets=offsets, label_gains=np.ones(int(offsets[-1])))

    def take(self, rows: np.ndarray) -> "Hits":
        """Return the hits of some queries; repeats are those of all."""
        offsets = take_offsets(self.offsets, rows)
        taken = self._replace(
            offsets=offsets,
            ranks=take_values(self.offsets, self.ranks, rows, offsets),
            gains=take_values(self.offsets, self.gains, rows, offsets),
            label_counts=self.label_counts[rows],
            prediction_counts=self.prediction_counts[rows],
        )
        if not len(self.label_gains):
            return taken
        offsets = take_offsets(self.label_offsets, rows)
        gains = take_values(self.label_offsets, self.label_gains, rows, offsets)
        return taken._replace(label_offsets=offsets, label_gains=gains)


def match(
    labels: LabelLists,
    offsets: np.ndarray,
    items: Ids,
    limit: int,
    *,
    rows: np.ndarray | None = None,
    repeats_count: bool = False,
    needs_repeats: bool = True,
) -> Hits:
    """Match lists of items with the label lists at `rows`, up to rank `limit`.

    Row -1 has no labels; without `rows`, list q is matched with label list q. Labels are read where
    they lie: copying them together would take longer than matching. A repeat of an earlier item of
    its list is no hit, unless `repeats_count`. Without `needs_repeats` they may not be counted.
    """
    spans, how = _spans(labels.offsets, rows), (limit, repeats_count, needs_repeats)
    hit_offsets, ranks, found, repeats = _matched(labels, spans, offsets, items, *how)
    gains = labels.gains[found] if len(labels.gains) else np.ones(len(found))
    return _with_labels(
        labels, rows, spans, (hit_offsets, ranks, gains), lengths_of(offsets), repeats
    )


def places_among(
    labels: LabelLists, offsets: np.ndarray, items: Ids, rows: np.ndarray
) -> np.ndarray:
    """Return the place of each item among the labels of its list, at `rows`; -1 for no label."""
    spans, every = _spans(labels.offsets, rows), len(items.keys)
    hit_offsets, ranks, found, _ = _matched(labels, spans, offsets, items, every, True, False)
    places = np.full(every, -1)
    places[np.repeat(offsets[:-1], lengths_of(hit_offsets)) + ranks - 1] = found
    return places


def _matched(
    labels: LabelLists,
    spans: tuple[np.ndarray, np.ndarray],
    offsets: np.ndarray,
    items: Ids,
    limit: int,
    repeats_count: bool,
    needs_repeats: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The offsets and ranks of hits, the place of each among all labels, and how many repeat."""
    most, (starts, ends) = lengths_of(offsets), spans
    most = most if repeats_count else np.minimum(most, ends - starts)
    room = int(most.sum())
    hit_offsets = np.empty_like(offsets)
    ranks, found = np.empty(room, np.int64), np.empty(room, np.int64)
    how = limit, repeats_count, needs_repeats, SEED
    out = hit_offsets, ranks, found
    count, repeats = match_lists(starts, ends, labels.items, offsets, items, *how, *out)
    return hit_offsets, ranks[:count], found[:count], repeats


def _with_labels(
    labels: LabelLists,
    rows: np.ndarray | None,
    spans: tuple[np.ndarray, np.ndarray],
    hits: tuple[np.ndarray, np.ndarray, np.ndarray],
    prediction_counts: np.ndarray,
    repeats: int,
) -> Hits:
    """The hits, given as their offsets, ranks and gains, with the gains and numbers of labels.

    `spans` are where the labels of each query start and end.
    """
    label_offsets, label_gains = labels.offsets, labels.gains
    if len(labels.all_offsets):
        label_offsets, label_gains = labels.all_offsets, labels.all_gains
        spans = _spans(label_offsets, rows)
    starts, ends = spans
    label_counts = ends - starts
    if rows is not None and len(label_gains):
        label_offsets = offsets_of(label_counts)
        every = np.arange(len(rows))  # what `rows` point to is far apart, and was read before
        label_gains = take_values(starts, label_gains, every, label_offsets)
    longest = int(max(prediction_counts.max(initial=0), label_counts.max(initial=0)))
    of_labels = label_offsets, label_gains, discounts(longest)
    return Hits(*hits, label_counts, prediction_counts, *of_labels, repeats)


def _spans(offsets: np.ndarray, rows: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Where the lists at `rows`, or all lists, start and end."""
    return (offsets[:-1], offsets[1:]) if rows is None else take_spans(offsets, rows)


def match_judged(
    labels: LabelLists,
    offsets: np.ndarray,
    items: Ids,
    limit: int,
    rows: np.ndarray,
    *,
    repeats_count: bool = False,
    unlabelled: bool = False,
) -> tuple[Hits, Hits | None]:
    """Return the hits as `match` does, and those with all judged items of queries with a label.

    Queries without one get no judged items, as they have no value of their own, unless `unlabelled`
    asks for them. The second is None where all judged items are labels. Labels are the judged items
    of a gain above 0.
    """
    if labels.judged is None:
        return match(labels, offsets, items, limit, rows=rows, repeats_count=repeats_count), None
    spans = take_spans(labels.offsets, rows)
    with_label = rows if unlabelled else np.where(spans[1] > spans[0], rows, -1)
    judged = match(
        labels.judged, offsets, items, limit, rows=with_label, repeats_count=repeats_count
    )
    kept = judged.gains > 0
    hits = drop_values(judged.offsets, kept), judged.ranks[kept], judged.gains[kept]
    counts = judged.prediction_counts, judged.repeats
    return _with_labels(labels, rows, spans, hits, *counts), judged


def of_least_gain(hits: Hits, least: float) -> Hits:
    """The hits and labels that have at least this gain."""
    if not len(hits.label_gains) and least <= 1:  # all gains are 1
        return hits
    hits = hits.with_label_gains()
    kept, kept_labels = hits.gains >= least, hits.label_gains >= least
    label_offsets = drop_values(hits.label_offsets, kept_labels)
    return hits._replace(
        offsets=drop_values(hits.offsets, kept),
        ranks=hits.ranks[kept],
        gains=hits.gains[kept],
        label_counts=np.diff(label_offsets),
        label_offsets=label_offsets,
        label_gains=hits.label_gains[kept_labels],
    )


def without_gains(hits: Hits) -> Hits:
    """The same hits and labels, all of gain 1."""
    if not len(hits.label_gains):
        return hits
    return hits._replace(gains=np.ones(len(hits.ranks)), label_gains=NO_GAINS)


def without_labels(hits: Hits) -> Hits:
    """The same hits with their gains; each query has one label of gain 0, whatever it had."""
    if not len(hits.label_gains):
        return hits
    ones = np.ones_like(hits.label_counts)
    offsets = np.arange(len(hits.offsets))
    return hits._replace(label_counts=ones, label_offsets=offsets, label_gains=np.zeros(len(ones)))


def among_judged(hits: Hits) -> Hits:
    """The hits of lists without items that are not judged, given all that are.

    As in trec_eval, an item of a gain below 0 is not judged.
    """
    kept = hits.gains >= 0
    offsets = drop_values(hits.offsets, kept)
    ranks = np.arange(1, offsets[-1] + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    left = hits._replace(
        offsets=offsets, ranks=ranks, gains=hits.gains[kept], prediction_counts=np.diff(offsets)
    )
    return of_least_gain(left, 5e-324)


def of_relevant(hits: Hits, least: float) -> Hits:
    """All hits, but those of queries without a label of at least this gain."""
    if not len(hits.label_gains) and least <= 1:  # all gains are 1
        return hits
    told = hits.with_label_gains()
    above = np.append(0, np.cumsum(told.label_gains >= least))
    has = np.diff(above[told.label_offsets]) > 0
    if has.all():
        return hits
    kept = np.repeat(has, np.diff(hits.offsets))
    offsets = drop_values(hits.offsets, kept)
    return hits._replace(offsets=offsets, ranks=hits.ranks[kept], gains=hits.gains[kept])


def as_relevant(hits: Hits, least: float) -> Hits:
    """Judged hits and labels with gain 1 if they have at least `least`, else 0; none below 0."""
    if not len(hits.label_gains):
        return of_least_gain(hits, least)
    judged = of_least_gain(hits, 0.0)
    return judged._replace(
        gains=(judged.gains >= least).astype(np.float64),
        label_gains=(judged.label_gains >= least).astype(np.float64),
    )


def as_levels(hits: Hits, least: float) -> Hits:
    """Judged hits and labels with gain 1 if they have at least `least`, -1 below 0, else 0."""
    if not len(hits.label_gains) and least <= 1:  # all gains are 1
        return hits
    hits = hits.with_label_gains()
    gains, label_gains = (
        np.where(one >= least, 1.0, np.where(one < 0, -1.0, 0.0))
        for one in (hits.gains, hits.label_gains)
    )
    return hits._replace(gains=gains, label_gains=label_gains)


def as_powers(hits: Hits) -> Hits:
    """The hits and labels with gains 2**g - 1, which are as good as infinite above g = 300."""
    if not len(hits.label_gains):
        return hits
    gains, label_gains = (powers(np.minimum(one, 300)) for one in (hits.gains, hits.label_gains))
    return hits._replace(gains=gains, label_gains=label_gains)


def in_units(hits: Hits, unit: float) -> Hits:
    """The hits and labels with gains as multiples of a unit."""
    hits = hits.with_label_gains()
    return hits._replace(gains=hits.gains / unit, label_gains=hits.label_gains / unit)


class Patterns(NamedTuple):
    """Hits of queries that differ from each other, each standing for all that look the same."""

    hits: Hits  # one query a pattern
    counts: np.ndarray  # int64: the number of queries of each pattern
    of_query: np.ndarray  # int64[n]: the pattern of each query that was grouped


def group_hits(hits: Hits) -> Patterns:
    """Group queries with as many labels and predictions, and hits of equal ranks and gains.

    Metrics are functions of these, so that they need computing once a pattern; short lists have
    few. Where labels have gains, all queries without a hit are one pattern: only for metrics that
    count nothing there.
    """
    count = len(hits.label_counts)
    graded = len(hits.label_gains) > 0
    groups, first, counts = (np.empty(count, np.int64) for _ in range(3))
    shape = hits.label_counts, hits.prediction_counts
    out = SEED, groups, first, counts
    if graded:
        gains, label_gains = hits.gains.view(np.int64), hits.label_gains.view(np.int64)
        found = group_graded(
            hits.offsets, hits.ranks, gains, *shape, hits.label_offsets, label_gains, *out
        )
    else:
        found = group_patterns(hits.offsets, hits.ranks, *shape, *out)
    first = first[:found]
    distinct = hits.take(first)
    if not graded:  # equal gains do not matter where all labels have the same
        distinct = distinct._replace(gains=np.ones(len(distinct.ranks)))
    return Patterns(distinct, counts[:found], groups)


def join_patterns(parts: Sequence[Patterns]) -> Patterns:
    """Group the patterns of parts; their queries are not told."""
    if len(parts) == 1:
        return parts[0]
    every = [part.hits for part in parts]
    offsets, ranks, gains, *counts, _, label_gains, tables, _ = zip(*every, strict=True)
    label_counts, prediction_counts = map(np.concatenate, counts)
    joined = Hits(
        offsets=offsets_of(np.concatenate([lengths_of(one) for one in offsets])),
        ranks=np.concatenate(ranks),
        gains=np.concatenate(gains),
        label_counts=label_counts,
        prediction_counts=prediction_counts,
        # The offsets of a part are any where it has no gains, as without any label.
        label_offsets=offsets_of(label_counts),
        label_gains=np.concatenate(label_gains),
        discounts=max(tables, key=len),
        repeats=0,
    )
    return group_counted(joined, np.concatenate([part.counts for part in parts]))


def group_counted(hits: Hits, counts: np.ndarray) -> Patterns:
    """Group hits of which each stands for so many queries; these are not told."""
    patterns = group_hits(hits)
    totals = np.zeros(len(patterns.counts), np.int64)
    np.add.at(totals, patterns.of_query, counts)
    return patterns._replace(counts=totals)
