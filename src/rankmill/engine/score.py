"""Scoring one block of predictions against the labels."""

from collections import defaultdict, deque
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from rankmill.columns.ids import id_text, take_ids
from rankmill.columns.lists import count_true, lengths_of
from rankmill.columns.ranked_lists import Lists, Place
from rankmill.engine.job import Job
from rankmill.engine.segments import Key
from rankmill.engine.slices import moments_of, places_of, update_slices, ways_at
from rankmill.errors import InputError
from rankmill.kernels.identity import Ids
from rankmill.matching.catalogue import KnownItems
from rankmill.matching.hits import (
    Hits,
    Patterns,
    group_counted,
    group_hits,
    join_patterns,
    match,
    match_judged,
    of_least_gain,
    without_gains,
    without_labels,
)
from rankmill.matching.index import NO_COUNTS, LabelIndex
from rankmill.matching.label_lists import LabelLists
from rankmill.matching.order import arrange, with_hits_at_ends, within
from rankmill.metrics.aggregate import Aggregate, AggregateSettings, Need, ScoredBlock
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.base import MICRO, Metric, Sees
from rankmill.metrics.needs import columns_in
from rankmill.metrics.no_value import no_value, skipping
from rankmill.metrics.own import OwnMetricError
from rankmill.metrics.sums import TermProducts
from rankmill.metrics.values import Matched
from rankmill.records import record
from rankmill.results.audit import PADDED
from rankmill.sources.meaning.plain_ids import padded_tails

# ------------------------------------------------------------------ patterns of hits

# To group queries with gains takes as long as so many metrics of all of them.
WORTH_GROUPING = 4
# Patterns wait for those of later blocks until there are so many of them.
MOST = 1 << 14

# Whether hits are among all judged items, and what metrics look at.
Kind = tuple[bool, Sees]


class SharedPatterns:
    """Collects the patterns of blocks on several threads, and adds up the means of metrics.

    Sums are exact, so neither the threads nor the blocks change a bit. The queries of a block are
    grouped once, by all that any metric looks at. The fewer patterns of metrics that look at less
    are made of those. The hits of all blocks are of `labels`, and `empty` are the aggregates of the
    job, to which no block is added yet.
    """

    def __init__(self, job: Job, empty: Mapping[str, Aggregate], labels: LabelLists) -> None:
        self.job, self._labels = job, labels
        each = job.keep_values or job.cuts or job.terms  # then each query needs its own value
        each = each or len(job.asked) < WORTH_GROUPING
        self.means = {
            name: one
            for name, one in empty.items()
            if isinstance(one, Mean) and not each and _is_function_of_patterns(job.asked[name])
        }
        self.kinds = {name: self._kind(job.asked[name].metric) for name in self.means}
        every = {*self.kinds.values()}
        self.base: Kind = max(every, default=(False, "ranks"))
        if len(every) > 1:  # then it has all that these look at
            self.base = self.base[0], "labels"
        self._all: list[_Waiting] = []
        self._free: deque[_Waiting] = deque()

    def add(self, hits: Hits, judged: Hits | None) -> None:
        """Add the hits of a block, and those among judged items. Any thread may call it."""
        if not self.means:
            return
        try:
            waiting = self._free.pop()
        except IndexError:
            waiting = _Waiting(self)
            self._all.append(waiting)
        among, sees = self.base
        some = judged if judged is not None and among else hits
        waiting.add(self.base, [group_hits(_narrowed(some, sees))])
        self._free.append(waiting)

    def _kind(self, metric: Metric) -> Kind:
        judged = self._labels.judged if metric.needs_judged else None
        gains = (judged or self._labels).gains
        return judged is not None, metric.sees if len(gains) else "ranks"

    def close(self) -> Mapping[str, Aggregate]:
        """Return the means over all patterns."""
        last = _Waiting(self)
        for one in self._all:
            for kind, patterns in one.patterns.items():
                last.add(kind, patterns)
            last.means = {name: mean.merge(one.means[name]) for name, mean in last.means.items()}
        for kind in dict.fromkeys((self.base, *self.kinds.values())):
            if last.patterns[kind]:
                last.score(kind, join_patterns(last.patterns[kind]))
        return last.means


def _narrowed(hits: Hits, sees: Sees) -> Hits:
    """The hits with only what some metrics look at."""
    narrow = {"ranks": without_gains, "gains": without_labels}.get(sees)
    return hits if narrow is None else narrow(hits)


class _Waiting:
    """The patterns of some blocks, and the means over those that wait no more."""

    def __init__(self, shared: SharedPatterns) -> None:
        self._shared, self._job = shared, shared.job
        self.means = dict(shared.means)
        self.patterns: defaultdict[Kind, list[Patterns]] = defaultdict(list)

    def add(self, kind: Kind, patterns: list[Patterns]) -> None:
        waiting = self.patterns[kind]
        waiting += patterns
        if sum(len(one.counts) for one in waiting) > MOST:
            joined = join_patterns(waiting)
            waiting[:] = [joined]
            if 2 * len(joined.counts) > MOST:  # the next blocks would join with little less
                waiting.clear()
                self.score(kind, joined)

    def score(self, kind: Kind, patterns: Patterns) -> None:
        """Add the values of all metrics of this kind, and the patterns of those made of it."""
        others = {*self._shared.kinds.values()} - {kind} if kind == self._shared.base else ()
        for other in others:
            # Ties do not matter: of judged items at the same ranks, labels have the larger gains.
            labels_only = kind[0] and not other[0]
            hits = of_least_gain(patterns.hits, 5e-324) if labels_only else patterns.hits
            self.add(other, [group_counted(_narrowed(hits, other[1]), patterns.counts)])
        matched = Matched(patterns.hits, self._job.semantics, self._job.gain_function)
        for name, mean in self.means.items():
            if self._shared.kinds[name] == kind:
                values = matched.values(self._job.asked[name].metric)
                self.means[name] = mean.add(values, patterns.counts)


def _is_function_of_patterns(asked: AggregateSettings) -> bool:
    """Whether a metric needs no query by name, as errors of own metrics and missing values do."""
    metric = asked.metric
    return bool(metric.spec.kernel) and not metric.spec.home and not metric.counts_empty


Empties = Mapping[Key, Mapping[str, Aggregate]]
NO_SLICES: Empties = MappingProxyType({})


@record(frozen=True)
class Block:
    """What one block of lists comes to, without the lists."""

    queries: Ids  # with their place and number of rows as in `Lists`
    place: Place
    input_rows: int
    rows: np.ndarray  # of each query among the labels, or -1
    lengths: np.ndarray  # how many predictions each query has
    aggregates: dict[str, Aggregate]  # what each aggregate of the job comes to
    values: dict[str, np.ndarray]  # of each query, if they are kept
    shown: Lists | None  # first items of the lists, with which those of other systems are compared
    audit: dict[str, int]
    counts: dict[str, int]
    slices: dict[Key, dict[str, Aggregate]]  # what each aggregate comes to in each slice
    label_pairs: dict[Key, int]  # how many labels the queries with predictions have in each
    moments: TermProducts


def score_lists(
    lists: Lists,
    index: LabelIndex,
    job: Job,
    empty: Mapping[str, Aggregate],
    empties: Empties = NO_SLICES,
    shared: SharedPatterns | None = None,
) -> Block:
    """Match the lists with the labels of their queries, and compute every metric.

    `empty` are the aggregates of the job, to which no block is added yet, and `empties` those of
    each slice. The means of `shared` are not in the block: they are added up there.
    """
    semantics = job.semantics
    lists = arrange(lists, semantics)
    rows = index.find(lists.queries)
    lengths, dropped = lengths_of(lists.offsets), NO_COUNTS
    predicted, known = lengths > 0, rows >= 0
    missed = NO_COUNTS
    if job.catalogue is not None:
        lists, missed = known_lists(lists, job.catalogue, job.scope.drop_seen)
    if job.scope.drops:  # a query whose predictions are all dropped still has predictions
        lists, dropped = within(lists, index.labels, rows, job.scope)
    found, judged = match_block(lists, index, rows, job, job.limit)
    counts = found.label_counts
    labelled = counts > 0
    both = labelled & predicted
    unlabelled = predicted & ~known
    no_relevant = predicted & known & ~labelled
    _refuse(lists, unlabelled, semantics.unlabelled, "is not among the labels", "unlabelled")
    _refuse(lists, no_relevant, semantics.no_relevant, "is left without a label", "no_relevant")
    own = predicted & known if semantics.no_relevant == "scored" else both
    whole, judged = whole_block(lists, found, judged, predicted, (index, rows), job)
    ways = ways_at(index, job.cuts.derived, rows, lengths, lists.queries) if job.cut else {}
    weights = index.weights_at(rows)
    if weights is not None or whole.order == "expected":
        shared = None
    aggregates, values, each = _scored(whole, judged, own, weights, job, empty, bool(ways), shared)
    shown = None
    if job.alike is not None:
        shown, beside = job.alike.score(lists)
        values |= beside
    places = places_of(ways) if ways else {}
    return Block(
        queries=lists.queries,
        place=lists.place,
        input_rows=lists.rows,
        rows=rows,
        lengths=lengths,
        aggregates=aggregates,
        values=values,
        shown=shown,
        audit={
            "queries_predicted": count_true(predicted),
            "queries_in_both": count_true(both),
            "queries_only_predicted": count_true(predicted) - count_true(both),
            "repeated_items": found.repeats + lists.repeats,
            "null_items": lists.nulls,
            "short_lists": count_true(both & (found.prediction_counts < job.largest_cutoff)),
            "tied_ranks": lists.tied,
            "predictions": int(lengths.sum()) + lists.repeats,
            PADDED: padded_tails(lists.offsets, lists.items),
            **dropped,
            **missed,
        },
        counts={
            "unlabelled": count_true(unlabelled),
            "no_relevant": count_true(no_relevant),
            # Nearly all are predicted: so it takes less time than to add those up alone.
            "predicted_labels": int(counts.sum()) - int(counts[~predicted].sum()),
        },
        slices=update_slices(places, empties, job, each, whole) if places else {},
        label_pairs={key: int(counts[at][both[at]].sum()) for key, at in places.items()},
        moments=moments_of(job, ways, each) if job.terms else TermProducts(),
    )


def match_block(
    lists: Lists, index: LabelIndex, rows: np.ndarray, job: Job, limit: int
) -> tuple[Hits, Hits | None]:
    """The hits up to a rank, and those among all judged items if the job asks for these."""
    each = job.semantics.repeated_predictions == "each"
    among = index.labels, lists.offsets, lists.items, limit
    if job.needs_judged:
        scored = job.semantics.no_relevant == "scored"
        return match_judged(*among, rows, repeats_count=each, unlabelled=scored)
    return match(*among, rows=rows, repeats_count=each), None


def whole_block(
    lists: Lists,
    found: Hits,
    judged: Hits | None,
    predicted: np.ndarray,
    known: tuple[LabelIndex, np.ndarray],
    job: Job,
) -> tuple[ScoredBlock, Hits | None]:
    """The block as aggregates take it, and the hits among judged items in the same order.

    `known` are the labels, and the row of each query among them.
    """
    order = job.semantics.order if lists.numbers is not None else "given"
    hits = found
    if order in ("worst", "best"):
        at_ends = partial(with_hits_at_ends, first=order == "best")
        hits = at_ends(hits, lists.offsets, lists.confidences)
        judged = judged and at_ends(judged, lists.offsets, lists.confidences)
    needs: dict[type[Need], Any] = {}
    whole = ScoredBlock(
        lists, hits, order, found, predicted, needs=needs, known=known[0], rows=known[1]
    )
    for need in job.needs:  # which may look at those before it
        needs[need] = need.find(whole, job.catalogue)
    return whole, judged


def _scored(
    whole: ScoredBlock,
    judged: Hits | None,
    own: np.ndarray,
    weights: np.ndarray | None,
    job: Job,
    empty: Mapping[str, Aggregate],
    cut: bool,
    shared: SharedPatterns | None,
) -> tuple[dict[str, Aggregate], dict[str, np.ndarray], dict[str, ScoredBlock]]:
    """Each aggregate of a block, the values if kept, and blocks with a value for each query.

    The last are of metrics with values, if queries are `cut` or there are sums. `own` are the
    queries whose lists have a value of their own. What others score, if they count at all, is not
    for a metric to say.
    """
    matched: dict[tuple[tuple[bool, bool], bool], tuple[Matched, Patterns | None]] = {}
    aggregates: dict[str, Aggregate] = {}
    kept: dict[str, np.ndarray] = {}
    each: dict[str, ScoredBlock] = {}
    keeps = {*job.values_kept}
    if shared is not None:
        shared.add(whole.hits, judged)
    for name, asked in job.asked.items():
        if shared is not None and name in shared.means:
            continue
        scored = whole
        if asked.metric.spec.kernel:
            needed = judged if asked.metric.needs_judged else None
            hits = needed or whole.hits
            # Metrics that see no gains take the same groups of queries, which are few.
            graded = len(hits.label_gains) > 0 and asked.metric.sees != "ranks"
            counts_empty = asked.metric.counts_empty
            apart = counts_empty and (graded or not own.all())
            apart = apart or bool(asked.metric.spec.columns)  # which no pattern tells
            kind = needed is not None, graded
            if (kind, apart) not in matched:
                hits = hits if graded else without_gains(hits)
                matched[kind, apart] = _matched(whole, hits, job, apart)
            one, patterns = matched[kind, apart]
            values = _values(one, patterns, whole, asked.metric)
            micro = micro_of(one, asked.metric)
            if counts_empty:
                if not own.all():  # then each query stands for itself
                    for one_of in (values, *micro.values()):
                        one_of[~own] = 0
                values = _checked(values, micro, patterns, whole, job, asked.metric)
            scored = whole._replace(values=values, counts=patterns and patterns.counts)
            scored = scored._replace(**micro)
            of_queries = weights is not None or cut or bool(job.terms)
            if patterns is not None and (name in keeps or of_queries):
                values = values[patterns.of_query]
                micro = {field: each[patterns.of_query] for field, each in micro.items()}
            if name in keeps:
                kept[name] = values
            if of_queries:  # those of one pattern have weights and slices of their own
                each[name] = whole._replace(**{"values": values, "weights": weights} | micro)
            if weights is not None:
                scored = each[name]
        aggregates[name] = empty[name].update(scored, asked)
    return aggregates, kept, each


def micro_of(matched: Matched, metric: Metric) -> dict[str, Any]:
    """What a micro-average adds up, as fields of a `ScoredBlock`; nothing for other metrics."""
    if metric.summary != MICRO:
        return {}
    divisors = matched.divisors(metric)
    return {"values": matched.counts(metric), "divisors": divisors.astype(np.float64)}


def known_lists(
    lists: Lists, catalogue: KnownItems, drop_seen: bool
) -> tuple[Lists, dict[str, int]]:
    """The lists, without what their queries had in training if so asked, and counts for the audit.

    They are of predictions that were seen in training, and of those that no catalogue has.
    """
    seen = np.zeros(0, np.bool_)
    if catalogue.training is not None:
        seen = catalogue.training.seen(lists)
    unknown = int((catalogue.find(lists.items) < 0).sum())
    left = lists.keep(~seen) if drop_seen else lists
    return left, {"seen_items": int(seen.sum()), "unknown_items": unknown}


def score_unpredicted(
    index: LabelIndex, rows: np.ndarray, job: Job, source: str
) -> dict[str, tuple[ScoredBlock, np.ndarray]]:
    """Metrics in which queries without predictions may not score 0: a block of each, and values."""
    no_items = take_ids(index.labels.items, np.zeros(0, np.int64))
    none = np.zeros(len(rows) + 1, np.int64)
    hits = match(index.labels, none, no_items, job.limit, rows=rows)
    nothing = dict.fromkeys((name for one in job.every for name in one.spec.columns), np.zeros(0))
    one = Matched(hits, job.semantics, job.gain_function, beside=(none, nothing))
    lists = Lists(take_ids(index.queries, rows), none, no_items, None, 0, 0, Place(source), 0)
    weights = index.weights_at(rows)
    found, predicted = {}, np.zeros(len(rows), np.bool_)
    for name, asked in job.asked.items():
        if asked.metric.counts_empty:
            scored = ScoredBlock(lists, hits, "given", hits, predicted, weights=weights)
            values = _values(one, None, scored, asked.metric)
            micro = micro_of(one, asked.metric)
            scored = scored._replace(**{"values": values} | micro)
            values = _checked(values, micro, None, scored, job, asked.metric)
            found[name] = scored, values
    return found


def _values(
    one: Matched, patterns: Patterns | None, block: ScoredBlock, metric: Metric
) -> np.ndarray:
    """The value of each query; an error of a metric of somebody's own names the query."""
    try:
        return one.values(metric)
    except OwnMetricError as failed:
        row = failed.row if patterns is None else int((patterns.of_query == failed.row).argmax())
        which = f"query {id_text(block.lists.queries, row)}"
        if failed.row < 0:
            which = "a block of queries, and of none of them alone"
        raise InputError(
            f"{block.lists.place.at(row).source}: {metric.text} of {which}: {failed.what}"
        ) from failed.__cause__


def _checked(
    values: np.ndarray,
    micro: Mapping[str, np.ndarray],
    patterns: Patterns | None,
    block: ScoredBlock,
    job: Job,
    metric: Metric,
) -> np.ndarray:
    """The values, NaN where nothing is added to the divisor of a micro-average.

    InputError for the first query that a metric has no value for.
    """
    missing = np.isnan(values)
    if not missing.any():
        return np.where(micro["divisors"] > 0, values, np.nan) if micro else values
    row = int((missing if patterns is None else missing[patterns.of_query]).argmax())
    lists, labels = block.lists, block.found.label_counts[row]
    if not block.found.prediction_counts[row]:
        what, todo = "labels but no predictions", skipping("unpredicted")
        if lists.rows:  # it had some
            dropping = "--drop-seen" if job.scope.drop_seen else "--judged-only"
            what, todo = "no predictions left", f"leave out {dropping}"
    elif labels:
        what, todo = f"no label with a gain of {metric.rel:g} or more", "choose a smaller rel"
    else:
        what, todo = "no label", skipping("no_relevant")
    raise no_value(metric, lists.place.at(row).source, id_text(lists.queries, row), what, todo)


def _matched(
    whole: ScoredBlock, hits: Hits, job: Job, apart: bool
) -> tuple[Matched, Patterns | None]:
    """The hits as metrics take them, those of all queries that look the same only once.

    Where ties have an expected value, each query stands for itself. So it does if asked to stand
    `apart`, and for one metric, or a few with gains, which are done sooner than grouping.
    """
    lists = whole.lists
    if whole.order == "expected":
        ties = lists.offsets, lists.confidences
        return Matched(hits, job.semantics, job.gain_function, ties), None
    graded = len(hits.label_gains) > 0
    how = job.semantics, job.gain_function
    slow = any(asked.metric.spec.home for asked in job.asked.values())  # it may be plain Python
    least = WORTH_GROUPING if graded else 1 if slow else 2
    if apart or len(job.asked) < least:
        return Matched(hits, *how, beside=(lists.offsets, columns_in(whole))), None
    patterns = group_hits(hits)
    return Matched(patterns.hits, *how), patterns


def _refuse(lists: Lists, queries: np.ndarray, choice: str, what: str, field: str) -> None:
    """Raise InputError if one of the queries is there and should not be."""
    if choice == "error" and queries.any():
        row = int(queries.argmax())
        at = lists.place.at(row)
        where = f" in {at.of(0)}" if at.of(0) else ""
        raise InputError(
            f"{at.source}: query {id_text(lists.queries, row)}{where} has predictions but "
            f"{what}, and {field} is 'error': drop it, or choose 'skip' or 'zero'"
        )
