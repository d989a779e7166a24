"""What gap comes to without some of the queries: each group of them is left out once.

gap is not a mean over queries, so how far chance moves it is found by leaving queries out. Each
query is in one of `GROUPS` groups by a hash of its id, which depends on nothing else: not on the
order of rows, the files, the threads or the process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from rankmill.columns.checksum import mix
from rankmill.columns.lists import lengths_of
from rankmill.kernels.gap import split_groups, sum_without
from rankmill.kernels.identity import STRING, Ids, hash_strings
from rankmill.matching.order import ranks_of
from rankmill.metrics.aggregate import OF_GROUPS, Aggregate, AggregateSettings, Closing, ScoredBlock
from rankmill.metrics.gap.distinct import Distinct
from rankmill.metrics.gap.gap_counts import Among
from rankmill.metrics.needs import ORDERED_TIES
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.record import Count, Counts, Fixed
from rankmill.semantics.choices import Choices
from rankmill.threads import Workers

# A group has to fit into uint8.
GROUPS = 100
# The hash of strings starts here; it must be the same in every process, and odd.
SEED = np.uint64(0x2545F4914F6CDD1D)
# The number by which `sum_without` knows a choice of `gap_ties`.
TIES = {"expected": 0, "worst": 1, "best": 2, "threshold": 3}


def _zeros() -> np.ndarray:
    return np.zeros(GROUPS, np.int64)


def groups_of(queries: Ids) -> np.ndarray:
    """Return the group of each query as uint8: a hash of its integer or bytes, modulo `GROUPS`.

    Signed and unsigned integers of the same value are in the same group.
    """
    keys = queries.keys.copy()
    if queries.kind == STRING:
        hash_strings(queries.starts, queries.ends, queries.data, SEED, keys)
    mix(keys)
    return (keys % np.uint64(GROUPS)).astype(np.uint8)


class Tagged(NamedTuple):
    """Predictions: the confidence of each, the group of its query, and whether it is correct."""

    confidences: np.ndarray
    groups: np.ndarray
    correct: np.ndarray

    @property
    def nbytes(self) -> int:
        """The bytes that the predictions take in memory."""
        return sum(array.nbytes for array in self)


class GroupPlaces(NamedTuple):
    """Where confidences of a group are among distinct ones, as far as there are some."""

    # int64: 2 i for those that equal number i, 2 i + 1 for those between it and the next, and -1
    # for those below all.
    places: np.ndarray
    # int64: how many predictions are there, and how many correct ones.
    counts: np.ndarray
    correct: np.ndarray

    def add_to(self, own: np.ndarray) -> None:
        """Add the counts to those of the group, as `sum_less` takes them."""
        equal, between = self.places % 2 == 0, (self.places % 2 == 1) & (self.places > 0)
        own[0, self.places[equal] // 2] += self.correct[equal]
        own[1, self.places[equal] // 2] += self.counts[equal]
        own[2, self.places[between] // 2] += self.counts[between]


class LeftOut(NamedTuple):
    """Gap of all queries, and without each group of them."""

    # gap of all queries, and without each group.
    whole: float
    values: np.ndarray
    sizes: np.ndarray  # int64: the number of labelled queries in each group
    hits: int  # the number of correct predictions
    most: float  # the largest value that gap may have, as far as the labels tell


@dataclass(frozen=True, eq=False)
class GapGroups(Aggregate):
    """All predictions with their groups, and what the divisors of gap need of each group."""

    # None once they take more than ``room`` bytes. ``size`` is what all of them take or would.
    parts: tuple[Tagged, ...] | None = ()
    size: Count = 0
    room: Fixed = 0
    # The number of queries with a label, of all labels, and of those of queries with predictions.
    labelled: Counts = field(default_factory=_zeros)
    label_pairs: Counts = field(default_factory=_zeros)
    predicted_label_pairs: Counts = field(default_factory=_zeros)

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        """Return the groups of no prediction."""
        return cls(room=asked.memory)

    def small(self) -> Self:
        """Return the counts alone, without any prediction."""
        return replace(self, parts=None)

    @property
    def complete(self) -> bool:
        """Whether all predictions are held; if not, more memory is needed."""
        return self.parts is not None

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        """Return the groups with a block of queries."""
        lists, hits, limit = scored.lists, scored.hits, asked.metric.limit
        of_query, lengths = groups_of(lists.queries), lengths_of(lists.offsets)
        correct = np.zeros(len(lists.confidences), np.bool_)
        correct[hits.places(lists.offsets)] = True
        tagged = Tagged(lists.confidences.copy(), np.repeat(of_query, lengths), correct)
        if limit < lengths.max(initial=0):
            kept = ranks_of(lists.offsets) <= limit
            tagged = Tagged(*(array[kept] for array in tagged))
        pairs = _sums(of_query, scored.found.label_counts * scored.predicted)
        whole = type(self)((tagged,), tagged.nbytes, self.room, predicted_label_pairs=pairs)
        return self.merge(whole)

    def merge(self, other: Self) -> Self:
        """Return the groups of the predictions of both."""
        found = super().merge(other)
        if self.parts is None or other.parts is None or found.size > self.room:
            return found.small()
        return replace(found, parts=(*self.parts, *other.parts))

    def close(self, closing: Closing) -> Self:
        """Return the groups with the queries of the labels."""
        assert closing.known is not None
        labels = closing.known.labels
        every = labels.all_offsets if len(labels.all_offsets) else labels.offsets
        of_query = groups_of(closing.known.queries)
        return replace(
            self,
            labelled=self.labelled + _sums(of_query, np.diff(labels.offsets) > 0),
            label_pairs=self.label_pairs + _sums(of_query, np.diff(every)),
        )

    def left_out(
        self, correct: Distinct, among: Among, semantics: Choices, workers: Workers
    ) -> LeftOut | None:
        """Return gap without each group of queries, from the counts of both passes over all.

        A group without a labelled query is left out together with the next one that has some; after
        the last comes the first. None is returned if predictions were dropped, if the order of ties
        depends on ids or files, if there are fewer than two groups, or if gap has no value without
        one of them.
        """
        together = self.together()
        if self.parts is None or semantics.gap_ties in ORDERED_TIES or together is None:
            return None
        own, own_correct = _split(self.parts, together, int(together.max()) + 1, workers)
        hits = np.array([len(one) for one in own_correct])
        if self.divisors(semantics, hits) is None:
            return None
        counts = *correct, among.at, among.above
        nothing, ties = own[0][:0], TIES[semantics.gap_ties]

        def without(group: tuple[np.ndarray, np.ndarray]) -> float:
            return float(sum_without(*counts, *group, ties))

        left = [(nothing, nothing), *zip(own, own_correct, strict=True)]
        return self.divided(semantics, hits, list(workers.map(without, left)))

    def together(self) -> np.ndarray | None:
        """Return for each group the one that it is left out with; None if these are not two."""
        kept = np.flatnonzero(self.labelled)
        if len(kept) < 2:
            return None
        places = np.searchsorted(kept, np.arange(GROUPS)) % len(kept)
        return places.astype(np.uint8)

    def divisors(self, semantics: Choices, hits: np.ndarray) -> list[int] | None:
        """Return what gap is divided by, and gap without each group; None if by 0.

        `hits` is the number of correct predictions in each of the groups that are left out.
        """
        totals = hits
        if semantics.gap_total != "hits":
            counts = {
                "labelled_queries": self.labelled,
                "label_pairs": self.label_pairs,
                "predicted_label_pairs": self.predicted_label_pairs,
            }[semantics.gap_total]
            together = self.together()
            assert together is not None  # as there are hits of groups
            totals = _sums(together, counts, len(hits))
        found = [int(totals.sum()), *(totals.sum() - totals).tolist()]
        if semantics.gap_total == "hits":  # without a hit gap is 0, as in scikit-learn
            found = [max(1, one) for one in found]
        return found if all(found) else None

    def divided(
        self, semantics: Choices, hits: np.ndarray, sums: Sequence[float]
    ) -> LeftOut | None:
        """Return gap from the sums of the precisions: of all predictions, and without each group.

        `hits` are as for `divisors`; None is returned if gap is divided by 0.
        """
        divisors = self.divisors(semantics, hits)
        if divisors is None:
            return None
        found = np.array(sums) / divisors
        sizes, count = self.labelled[self.labelled > 0], int(hits.sum())
        pairs = count if semantics.gap_total == "hits" else int(self.label_pairs.sum())
        return LeftOut(float(found[0]), found[1:], sizes, count, max(1.0, pairs / divisors[0]))

    def to_row(self) -> dict[str, Any]:
        """Return a flat row for Arrow; equal predictions give equal rows, in whatever order."""
        confidences, groups, correct = _joined(self.parts or ())
        order = np.lexsort((correct, groups, confidences))
        return {
            "complete": int(self.complete),
            "size": self.size,
            "room": self.room,
            "confidences": confidences[order].astype(np.float64),
            "groups": groups[order].astype(np.int64),
            "correct": correct[order].astype(np.int64),
            **super().to_row(),
        }

    @classmethod
    def from_row(cls, row: state_rows.Row, prefix: str = "") -> Self:
        """Return the groups from a row that `to_row` made; UsageError if it made none."""
        names = [f"{prefix}{name}" for name in ("confidences", "groups", "correct")]
        confidences = state_rows.numbers(row, names[0])
        groups, correct = (state_rows.counts(row, name, least=0) for name in names[1:])
        state_rows.same_length(row, *names[:2])
        state_rows.same_length(row, names[0], names[2])
        state_rows.below(names[1], groups, GROUPS)
        state_rows.below(names[2], correct, 2)
        tagged = Tagged(confidences, groups.astype(np.uint8), correct.astype(np.bool_))
        parts = (tagged,) if state_rows.count(row, f"{prefix}complete") else None
        return replace(super().from_row(row, prefix), parts=parts)

    def check(self, row: state_rows.Row, prefix: str) -> None:
        """Raise UsageError if it counts other groups."""
        for name in ("labelled", "label_pairs", "predicted_label_pairs"):
            if (held := len(getattr(self, name))) != GROUPS:
                raise state_rows.damaged(f"{prefix}{name} holds {held} numbers, not {GROUPS}")


def groups_in(aggregates: Mapping[str, Aggregate]) -> dict[str, GapGroups]:
    """Return the groups that are kept among the aggregates of a state, by metric."""
    kept = {name: one for name, one in aggregates.items() if isinstance(one, GapGroups)}
    return {name.removesuffix(OF_GROUPS): one for name, one in kept.items()}


def places_of(tagged: Tagged, values: np.ndarray, groups: np.ndarray) -> dict[int, GroupPlaces]:
    """Return where the confidences of each group are among distinct ones, which ascend.

    `groups` is the group that each group is counted with.
    """
    confidences = tagged.confidences
    above = np.searchsorted(values, confidences, side="right")
    below = np.searchsorted(values, confidences, side="left")
    places = 2 * above - 1 - (above > below)
    group = groups[tagged.groups]
    found = {}
    for one in np.unique(group).tolist():
        own = group == one
        there, at = np.unique(places[own], return_inverse=True)
        counts = np.bincount(at, minlength=len(there))
        correct = np.bincount(at[tagged.correct[own]], minlength=len(there))
        found[one] = GroupPlaces(there, counts, correct)
    return found


def sum_less(correct: Distinct, among: Among, semantics: Choices, own: np.ndarray) -> float:
    """Return the sum of the precisions at the correct predictions without those of a group.

    `own` has a row each for the correct predictions of the group, for all of its predictions that
    equal one of the distinct confidences, and for those above it.
    """
    nothing = correct.values[:0]
    counts = correct.counts - own[0], among.at - own[1], among.above - own[2]
    ties = TIES[semantics.gap_ties]
    return float(sum_without(correct.values, *counts, nothing, nothing, ties))


def _sums(groups: np.ndarray, counts: np.ndarray, length: int = GROUPS) -> np.ndarray:
    """Return the sum of the counts of each group; float64 holds sums below 2**53 exactly."""
    return np.bincount(groups, counts, length).astype(np.int64)


def _joined(parts: tuple[Tagged, ...]) -> Tagged:
    empty = Tagged(np.empty(0, np.float32), np.empty(0, np.uint8), np.empty(0, np.bool_))
    return Tagged(*(np.concatenate(arrays) for arrays in zip(empty, *parts, strict=True)))


def _split(
    parts: tuple[Tagged, ...], together: np.ndarray, count: int, workers: Workers
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the ascending confidences of each group: of all predictions, and of correct ones."""
    groups = [together[one.groups] for one in parts]
    sizes = [np.zeros(count, np.int64), np.zeros(count, np.int64)]
    for group, one in zip(groups, parts, strict=True):
        sizes[0] += np.bincount(group, minlength=count)
        sizes[1] += np.bincount(group[one.correct], minlength=count)
    ends = [np.cumsum(one) for one in sizes]
    dtype = np.result_type(np.float32, *(one.confidences for one in parts))
    out = [np.empty(one[-1], dtype) for one in ends]
    places = [end - size for end, size in zip(ends, sizes, strict=True)]
    for group, one in zip(groups, parts, strict=True):
        split_groups(one.confidences, group, one.correct, places[0], out[0], places[1], out[1])
    split = [np.split(array, end[:-1]) for array, end in zip(out, ends, strict=True)]
    list(workers.map(np.ndarray.sort, [*split[0], *split[1]]))
    return split[0], split[1]
