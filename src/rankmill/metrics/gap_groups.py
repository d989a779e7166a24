"""What gap comes to without some of the queries: each group of them is left out once.

gap is no mean over queries, so how far chance moves it is found by leaving queries out. Each query
is in one of `GROUPS` groups by a hash of its id, which depends on nothing else: not on the order of
rows, the files, the threads or the process.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from rankmill.kernels.gap import split_groups, sum_without, tag_predictions
from rankmill.kernels.identity import STRING, Ids, hash_strings
from rankmill.metrics import rows
from rankmill.metrics.aggregate import Asked, Scored
from rankmill.metrics.fingerprints import mix
from rankmill.metrics.gap import ORDERED_TIES
from rankmill.metrics.gap_counts import Among, Distinct
from rankmill.semantics.choices import Semantics
from rankmill.threads import Workers

# A group has to fit into uint8.
GROUPS = 100
# The hash of strings starts here; it must be the same in every process, and odd.
SEED = np.uint64(0x2545F4914F6CDD1D)
# The number by which `sum_without` knows a choice of `gap_ties`.
TIES = {"expected": 0, "worst": 1, "best": 2, "threshold": 3}
COUNTS = "labelled", "label_pairs", "predicted_label_pairs"


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


class LeftOut(NamedTuple):
    """Gap of all queries, gap without each group, and the number of labelled queries in each."""

    whole: float
    values: np.ndarray
    sizes: np.ndarray


@dataclass(frozen=True, eq=False)
class GapGroups:
    """All predictions with their groups, and what the divisors of gap need of each group.

    Attributes
    ----------
    parts : tuple of Tagged or None
        None once they take more than ``room`` bytes. ``size`` is what all of them take or would.
    labelled, label_pairs, predicted_label_pairs : int64[GROUPS]
        The number of queries with a label, of all labels, and of those of queries with predictions.
    """

    parts: tuple[Tagged, ...] | None = ()
    size: int = 0
    room: int = 0
    labelled: np.ndarray = field(default_factory=_zeros)
    label_pairs: np.ndarray = field(default_factory=_zeros)
    predicted_label_pairs: np.ndarray = field(default_factory=_zeros)

    @classmethod
    def init(cls, room: int) -> Self:
        """Return the groups of no prediction, which may take so many bytes."""
        return cls(room=room)

    @property
    def complete(self) -> bool:
        """Whether all predictions are held; if not, more memory is needed."""
        return self.parts is not None

    def update(self, scored: Scored, asked: Asked, predicted: np.ndarray) -> Self:
        """Return the groups with a block of queries; `predicted` tells which have predictions."""
        lists, hits, limit = scored.lists, scored.hits, asked.metric.limit
        of_query = groups_of(lists.queries)
        room = len(lists.confidences)
        tagged = Tagged(
            np.empty_like(lists.confidences), np.empty(room, np.uint8), np.empty(room, np.bool_)
        )
        offsets = lists.offsets, hits.offsets, hits.ranks
        count = tag_predictions(*offsets, limit, of_query, lists.confidences, *tagged)
        if count < room:
            tagged = Tagged(*(array[:count].copy() for array in tagged))
        pairs = _sums(of_query, scored.found.label_counts * predicted)
        kept = tagged.nbytes, self.room
        return self.merge(type(self)((tagged,), *kept, predicted_label_pairs=pairs))

    def merge(self, other: Self) -> Self:
        """Return the groups of the predictions of both."""
        parts, size = None, self.size + other.size
        if self.parts is not None and other.parts is not None and size <= self.room:
            parts = (*self.parts, *other.parts)
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return replace(self, parts=parts, size=size, **counts)

    def close(self, queries: Ids, label_counts: np.ndarray, has_labels: np.ndarray) -> Self:
        """Return the groups with the queries of the labels: their ids and numbers of labels."""
        of_query = groups_of(queries)
        return replace(
            self,
            labelled=self.labelled + _sums(of_query, has_labels),
            label_pairs=self.label_pairs + _sums(of_query, label_counts),
        )

    def left_out(
        self, correct: Distinct, among: Among, semantics: Semantics, workers: Workers
    ) -> LeftOut | None:
        """Return gap without each group of queries, from the counts of both passes over all.

        A group without a labelled query is left out together with the next one that has some; after
        the last comes the first. None is returned if predictions were dropped, if the order of ties
        depends on ids or files, if there are fewer than two groups, or if gap has no value without
        one of them.
        """
        several = np.count_nonzero(self.labelled) > 1
        if self.parts is None or semantics.gap_ties in ORDERED_TIES or not several:
            return None
        together, sizes = _with_labels(self.labelled)
        own, own_correct = _split(self.parts, together, len(sizes), workers)
        totals = self._totals(semantics, together, own_correct)
        divisors = [int(totals.sum()), *(totals.sum() - totals).tolist()]
        if semantics.gap_total == "hits":  # without a hit gap is 0, as in scikit-learn
            divisors = [max(1, one) for one in divisors]
        if not all(divisors):
            return None
        counts = *correct, among.at, among.above
        nothing, ties = own[0][:0], TIES[semantics.gap_ties]

        def without(group: tuple[np.ndarray, np.ndarray]) -> float:
            return float(sum_without(*counts, *group, ties))

        left = [(nothing, nothing), *zip(own, own_correct, strict=True)]
        found = np.array(list(workers.map(without, left))) / divisors
        return LeftOut(float(found[0]), found[1:], sizes)

    def _totals(
        self, semantics: Semantics, together: np.ndarray, own_correct: list[np.ndarray]
    ) -> np.ndarray:
        """Return what each group adds to the divisor of gap."""
        if semantics.gap_total == "hits":
            return np.array([len(one) for one in own_correct])
        counts = {
            "labelled_queries": self.labelled,
            "label_pairs": self.label_pairs,
            "predicted_label_pairs": self.predicted_label_pairs,
        }[semantics.gap_total]
        return _sums(together, counts, len(own_correct))

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
            **{name: getattr(self, name) for name in COUNTS},
        }

    @classmethod
    def from_row(cls, row: rows.Row, prefix: str = "") -> Self:
        """Return the groups from a row that `to_row` made; confidences become float64.

        Raises
        ------
        UsageError
            If the row is not one of these groups.
        """
        names = [f"{prefix}{name}" for name in ("confidences", "groups", "correct")]
        confidences = rows.numbers(row, names[0])
        groups, correct = (rows.counts(row, name, least=0) for name in names[1:])
        rows.same_length(row, *names[:2])
        rows.same_length(row, names[0], names[2])
        rows.below(names[1], groups, GROUPS)
        rows.below(names[2], correct, 2)
        counts = {name: rows.counts(row, f"{prefix}{name}", least=0) for name in COUNTS}
        for name, one in counts.items():
            if len(one) != GROUPS:
                raise rows.damaged(f"{prefix}{name} holds {len(one)} numbers, not {GROUPS}")
        tagged = Tagged(confidences, groups.astype(np.uint8), correct.astype(np.bool_))
        parts = (tagged,) if rows.count(row, f"{prefix}complete") else None
        size, room = (rows.count(row, f"{prefix}{name}") for name in ("size", "room"))
        return cls(parts, size, room, *counts.values())


def _sums(groups: np.ndarray, counts: np.ndarray, length: int = GROUPS) -> np.ndarray:
    """Return the sum of the counts of each group; float64 holds sums below 2**53 exactly."""
    return np.bincount(groups, counts, length).astype(np.int64)


def _with_labels(labelled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the group that each is left out with, and the labelled queries of those that stay."""
    kept = np.flatnonzero(labelled)
    place = np.searchsorted(kept, np.arange(GROUPS)) % len(kept)
    return place.astype(np.uint8), labelled[kept]


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
