"""Adding up blocks, and deciding which queries count in a mean."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from rankmill.columns.buffers import numbers_of
from rankmill.columns.ids import NO_DATA, NO_PLACES, id_text, ids_to_arrow, join_ids, take_ids
from rankmill.columns.lists import count_true
from rankmill.columns.ranked_lists import Place
from rankmill.engine.alike import ShownLists
from rankmill.engine.job import Job
from rankmill.engine.score import Block, SharedPatterns, score_unpredicted
from rankmill.engine.segments import DERIVED, Key, Known, compact
from rankmill.engine.slices import (
    labels_at,
    merged,
    moments_at_close,
    moments_of,
    of_others,
    pieces_of,
    places_of,
    update_slices,
    ways_at,
)
from rankmill.engine.state import State
from rankmill.errors import InputError
from rankmill.kernels.identity import STRING, UNSIGNED, Ids
from rankmill.kernels.lists import first_seen
from rankmill.matching.index import LabelIndex, look_up, repeated_query
from rankmill.metrics.aggregate import Aggregate, Closing, TwoPasses, WeightSums
from rankmill.metrics.aggregates.mean import sum_weights
from rankmill.metrics.gap.gap_counts import Among
from rankmill.metrics.no_value import no_value, skipping
from rankmill.metrics.sums import TermProducts
from rankmill.results import audit

# The divisors of gap that semantics choose among.
GAP_TOTALS = "labelled_queries", "label_pairs", "predicted_label_pairs", "hits"


class Counted(NamedTuple):
    """The queries that count."""

    # How many count, how many of them score 1 because they have no label, and the weights of both.
    closing: Closing
    among_labels: np.ndarray  # whether each query of the labels counts
    ones: np.ndarray  # whether each scores 1 because it has no label
    strangers: bool  # whether queries that are only in the predictions count as well
    others: int  # how many these are
    # The score of a query of the labels without a label; None if it is the value of its list.
    no_relevant: float | None
    unlabelled: float  # the score of a query that the labels do not have


class Tally:
    """The sum of all blocks of predictions of one input, or of a share of its queries.

    A share adds to the state of the shares before it.
    """

    def __init__(self, index: LabelIndex, job: Job, before: State | None = None) -> None:
        self.index = index
        self.job = job
        self.before = State.of(job) if before is None else before
        offsets = index.labels.offsets
        self.has_labels = offsets[1:] > offsets[:-1]
        self.audit = audit.empty()
        self.counts = Counter[str]()
        self.empty = job.aggregates()
        self.shared = SharedPatterns(job, self.empty, index.labels)
        self.aggregates = {
            name: one.merge(self.empty[name]) for name, one in self.before.aggregates.items()
        }
        self.empties: defaultdict[Key, dict[str, Aggregate]] = defaultdict(
            lambda: job.of_slice.aggregates()
        )
        self.slices: dict[Key, dict[str, Aggregate]] = {}
        self.label_pairs = Counter[Key]()
        self.moments = TermProducts()
        self.rows = 0
        queries = len(index.queries.keys)
        names = job.values_kept
        self.values = {name: np.zeros(queries) for name in names}
        # Lists beside those of the baseline, which are kept until all of them are read.
        beside = job.alike.metrics if job.alike and job.alike.index else ()
        self.alike = {name: np.full(queries, np.nan) for name in beside}
        # Which queries of the labels have predictions, where that matters.
        self.predicted = np.zeros(queries, np.bool_)
        self._keeps_predicted = job.semantics.unpredicted != "zero" or job.of_unpredicted
        self.lengths = np.zeros(queries if job.keep_lengths else 0, np.int64)
        self.among: dict[str, Among] = {}  # the counts of the second pass, once it is made
        self.state: State
        self.counted: Counted
        self._seen = np.zeros(queries, np.bool_)
        self._strangers: list[tuple[Ids, np.ndarray, np.ndarray, Place]] = []

    @cached_property
    def shown(self) -> ShownLists:
        """The first items of all lists, if those of other systems are compared with them."""
        return ShownLists(self.job.memory)

    def add(self, block: Block) -> None:
        """Add a block. Raises InputError if an earlier block had one of its queries."""
        rows = block.rows
        repeated = first_seen(rows, self._seen)
        if repeated >= 0:
            raise repeated_query(block.queries, repeated, block.place, repeated)
        for name, new in block.aggregates.items():
            self.aggregates[name] = self.aggregates[name].merge(new)
        if block.slices and self.job.cut:
            self._add_to_slices(block.slices)
        self.label_pairs.update(block.label_pairs)
        self.moments = self.moments.merge(block.moments)
        self.rows += block.input_rows
        self.audit = audit.add(self.audit, block.audit)
        self.counts.update(block.counts)
        strange = np.flatnonzero(rows < 0)
        known = slice(None) if not len(strange) else np.flatnonzero(rows >= 0)
        if self._keeps_predicted:
            self.predicted[rows[known]] = block.lengths[known] > 0
        if self.job.keep_lengths:
            self.lengths[rows[known]] = block.lengths[known]
        for name, new_values in block.values.items():
            kept = self.alike if name in self.alike else self.values
            kept[name][rows[known]] = new_values[known]
        if block.shown is not None:
            self.shown.add(block.shown)
        if len(strange):
            ids = join_ids([take_ids(block.queries, strange)])  # a copy, which frees the batch
            self._strangers.append((ids, block.lengths[strange] > 0, strange, block.place))

    def _add_to_slices(self, slices: Mapping[Key, Mapping[str, Aggregate]]) -> None:
        """Add to slices; they keep no more predictions than all queries do."""
        for key, some in slices.items():
            before = self.slices.setdefault(key, {**self.empties[key]})
            for name, new in some.items():
                before[name] = before[name].merge(new)
        groups, every = self.job.groups, (one for of in self.slices.values() for one in of.values())
        if groups is not None and not groups.fit(every, self.job.memory // 2):
            self.slices.clear()
            self.empties.clear()
        for name, one in self.aggregates.items():
            if one.passes > 1 and cast(TwoPasses, one).held() is None:
                for some_of in self.slices.values():
                    if name in some_of:
                        some_of[name] = some_of[name].small()

    def close(self, source: str) -> State:
        """Set `state` and `counted`, and return the state of all shares so far.

        Raises InputError if a query has no predictions or no label and the semantics make this an
        error. The message names `source`, the source of the predictions.
        """
        self.counted = counted = counted_queries(self, source)
        if self.job.cuts:
            of_first = Known(self.index, self.lengths, [self.lengths > 0])
            for name in self.job.cuts.derived:
                if name not in self.index.classes:  # from here on, for all systems
                    self.index.classes[name] = compact(name, DERIVED[name].classes(of_first))
        if self.job.of_unpredicted:
            self._add_unpredicted(source)
        labelled = count_true(self.has_labels)
        pairs = int(self._label_offsets[-1])
        counts = dict(self.index.audit) | {
            "queries_labelled": labelled,
            "queries_only_labelled": labelled - self.audit["queries_in_both"],
            "empty_label_lists": len(self.has_labels) - labelled,
            "labels": int(self.index.labels.offsets[-1]),
        }
        for name, mean in self.shared.close().items():
            self.aggregates[name] = self.aggregates[name].merge(mean)
        before, index, job, known = self.before, self.index, self.job, self.job.catalogue
        needs = {need: need.find_labels(index, known) for need in job.needs}
        closing = counted.closing._replace(known=index, needs=needs)
        self.state = replace(
            before,
            queries=before.queries + counted.closing.queries,
            gap_total=before.gap_total
            + self._gap_total(labelled, pairs, self.counts["predicted_labels"]),
            audit=audit.add(before.audit, audit.add(self.audit, counts)),
            aggregates={name: one.close(closing) for name, one in self.aggregates.items()},
            slices=merged(before.slices, dict(self._close_slices()) if index.classes else {}),
            moments=before.moments.merge(self._moments()) if job.terms else before.moments,
        )
        return self.state

    def _close_slices(self) -> Iterator[tuple[Key, State]]:
        """Yield the state of each slice of these queries."""
        index, job, counted = self.index, self.job, self.counted
        offsets = self._label_offsets
        nothing = State.of(job.of_slice)
        for name, (values, codes) in index.classes.items():
            sums = np.zeros((4, len(values)), np.int64)
            for at, _ in pieces_of(index):
                pairs = np.diff(offsets[at.start : at.stop + 1])
                some = counted.among_labels[at], counted.ones[at], self.has_labels[at], pairs
                for row, one in zip(sums, some, strict=True):
                    row += np.bincount(codes[at], one, len(values)).astype(np.int64)
            others_of = self._others(name, len(values))
            for place, value in enumerate(values):
                key = name, value
                queries, ones, labelled, label_pairs = sums[:, place].tolist()
                others = others_of[place]
                # gap may be divided by labels of queries that do not count, as all do in a part.
                if not (queries or labelled or others or key in self.slices):
                    continue
                closing = Closing(queries + others, ones + int(counted.unlabelled) * others)
                if index.weights is not None:
                    of_all, of_ones = self._weights(codes == place)
                    closing = closing._replace(weights=of_all, weights_of_ones=of_ones)
                if not all(need.of_scores for need in job.needs):
                    own = labels_at(index, np.flatnonzero(codes == place))
                    needs = {need: need.find_labels(own, job.catalogue) for need in job.needs}
                    closing = closing._replace(known=own, needs=needs)
                some_of = self.slices.get(key, self.empties[key])
                yield (
                    key,
                    replace(
                        nothing,
                        queries=closing.queries,
                        gap_total=self._gap_total(labelled, label_pairs, self.label_pairs[key]),
                        aggregates={n: one.close(closing) for n, one in some_of.items()},
                    ),
                )

    def _others(self, name: str, count: int) -> list[int]:
        """Return how many queries that are not among the labels count in each slice."""
        if not self.counted.others:
            return [0] * count
        places = of_others(self.index, name, self.strangers())
        counts: list[int] = np.bincount(places, minlength=count).tolist()
        return counts

    @property
    def _label_offsets(self) -> np.ndarray:
        """Where the labels of each query begin and end, with repeats if these count."""
        labels = self.index.labels
        return labels.all_offsets if len(labels.all_offsets) else labels.offsets

    def _gap_total(self, labelled: int, pairs: int, predicted: int) -> int:
        """Return what gap is divided by, as far as it is known here."""
        totals = dict(zip(GAP_TOTALS, (labelled, pairs, predicted, 0), strict=True))
        return totals[self.job.semantics.gap_total]

    def _weights(self, within: np.ndarray) -> tuple[WeightSums, WeightSums]:
        """Return the weights of queries of the labels that count, and of those that score 1."""
        weights, counted = self.index.weights, self.counted
        assert weights is not None
        every = sum_weights(weights[counted.among_labels & within])
        return every, sum_weights(weights[counted.ones & within])

    def _moments(self) -> TermProducts:
        """Return the moments of all queries of this tally."""
        found, counted = self.moments, self.counted
        for at, ways in pieces_of(self.index):
            weights = None if self.index.weights is None else self.index.weights[at]
            some = counted.among_labels[at], counted.ones[at], weights
            found = found.merge(moments_at_close(self.job, ways, *some))
        rows, none = np.full(counted.others, -1), np.zeros(counted.others)
        others = self.strangers() if counted.others else None
        ways = ways_at(self.index, (), rows, none, others)
        return found.merge(
            moments_at_close(self.job, ways, none + 1, none + counted.unlabelled, None)
        )

    def _add_unpredicted(self, source: str) -> None:
        valued = self.has_labels | (self.job.semantics.no_relevant == "scored")
        rows, job = np.flatnonzero(valued & ~self.predicted), self.job
        blocks = score_unpredicted(self.index, rows, job, source)
        for name, (block, values) in blocks.items():
            new = self.empty[name].update(block, job.asked[name])
            self.aggregates[name] = self.aggregates[name].merge(new)
            if name in self.values:
                self.values[name][rows] = values
        ways = ways_at(self.index, (), rows, rows)
        each = {name: block for name, (block, _) in blocks.items()}
        self._add_to_slices(update_slices(places_of(ways), self.empties, job, each))
        if job.terms:
            self.moments = self.moments.merge(moments_of(job, ways, each))

    def first_stranger(self) -> str | None:
        """Return the first query that is only in the predictions, as text, or None."""
        return next((id_text(ids, 0) for ids, *_ in self._strangers), None)

    def strangers(self) -> Ids:
        """Return the queries that are only in the predictions, sorted by id.

        They are sorted because the order of reading depends on how scattered rows were grouped.
        """
        ids = join_ids([take_ids(ids, np.flatnonzero(p)) for ids, p, _, _ in self._strangers])
        import pyarrow.compute as pc

        return take_ids(ids, numbers_of(pc.sort_indices(ids_to_arrow(ids, set()))))

    def some_strangers(self, count: int) -> Ids:
        """Return queries that are only in the predictions: those of the smallest keys.

        So they are the same in whatever order they were read.
        """

        def smallest(ids: Ids, places: np.ndarray) -> Ids:
            if len(places) > count:
                places = places[np.argpartition(ids.keys[places], count)[:count]]
            return take_ids(ids, places)

        some = join_ids([smallest(ids, np.flatnonzero(p)) for ids, p, _, _ in self._strangers])
        return smallest(some, np.arange(len(some.keys)))

    def unseen(self, queries: Ids) -> np.ndarray:
        """Return whether each of these is a query with labels and without predictions."""
        rows = self.index.find(queries)
        return np.asarray((rows >= 0) & self.has_labels[rows] & ~self._seen[rows])

    def check_strangers(self) -> None:
        """Raise InputError if a query that is only in the predictions occurs twice."""
        if not self._strangers:
            return
        every = [ids for ids, *_ in self._strangers]
        if all(ids.kind == STRING for ids in every):  # texts of different keys differ
            keys = np.concatenate([ids.keys for ids in every])
            if look_up(Ids(keys, NO_PLACES, NO_PLACES, NO_DATA, UNSIGNED))[1] < 0:
                return
        repeated = look_up(join_ids(every))[1]
        for ids, _, rows, place in self._strangers:
            if 0 <= repeated < len(rows):
                raise repeated_query(ids, repeated, place, int(rows[repeated]))
            repeated -= len(rows)


def counted_queries(tally: Tally, source: str) -> Counted:
    """Return the queries that count under the job's semantics; `source` names the predictions.

    Raises InputError if one has no predictions or no label, and the semantics make this an error.
    """
    semantics = tally.job.semantics
    labelled, asked = tally.has_labels, tally.predicted
    if semantics.unpredicted == "zero":
        asked = np.ones(len(labelled), np.bool_)
    for field, one, other, what, todo in (
        ("unpredicted", labelled, asked, "has labels but no predictions", "predict it"),
        ("no_relevant", asked, labelled, "is left without a label", "drop it"),
    ):
        if getattr(semantics, field) == "error" and (wrong := one & ~other).any():
            query = id_text(tally.index.queries, int(wrong.argmax()))
            more = int(wrong.sum()) - 1
            raise InputError(
                f"{source}: query {query} {what}{f', as {more:,} more' if more else ''}, but "
                f"{field} is 'error': {todo}, or choose 'zero' or 'skip'"
            )
    _check_scored(tally, source, asked)
    counts = labelled & asked
    empty = ~labelled & asked & semantics.scores_no_relevant
    counts |= empty
    scores_one = empty & (semantics.no_relevant == "one")
    ones = count_true(scores_one)
    strangers = semantics.unlabelled in ("zero", "one")
    unlabelled = tally.counts["unlabelled"] if strangers else 0
    ones += unlabelled if semantics.unlabelled == "one" else 0
    closing = Closing(count_true(counts) + unlabelled, ones)
    scored = semantics.no_relevant == "scored"
    weights = tally.index.weights
    if weights is not None:
        of_all, of_ones = sum_weights(weights[counts]), sum_weights(weights[scores_one])
        closing = closing._replace(weights=of_all, weights_of_ones=of_ones)
    return Counted(
        closing=closing,
        among_labels=counts,
        ones=scores_one,
        strangers=strangers,
        others=unlabelled,
        no_relevant=None if scored else float(semantics.no_relevant == "one"),
        unlabelled=float(semantics.unlabelled == "one"),
    )


def _check_scored(tally: Tally, source: str, asked: np.ndarray) -> None:
    """Raise InputError if a query would score 0 or 1 in a metric for which that would be wrong."""
    metric = next((one for one in tally.job.metrics if one.spec.without_labels != "scored"), None)
    if metric is None:
        return
    empty, chosen = ~tally.has_labels & asked, tally.job.semantics
    if chosen.no_relevant in ("zero", "one") and empty.any():
        query = id_text(tally.index.queries, int(empty.argmax()))
        raise no_value(metric, source, query, "no label", skipping("no_relevant"))
    if chosen.unlabelled in ("zero", "one") and tally.counts["unlabelled"]:
        what, query = "predictions but is not among the labels", id_text(tally.strangers(), 0)
        raise no_value(metric, source, query, what, skipping("unlabelled"))
