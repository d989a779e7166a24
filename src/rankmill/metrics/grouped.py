"""Means over lists of what the groups of items show, such as genres: calibration, diversity."""

import math
from typing import ClassVar

import numpy as np

from rankmill.columns.elementary import log2
from rankmill.columns.groups import Groups
from rankmill.columns.lists import take_spans
from rankmill.kernels import grouped as kernels
from rankmill.matching.catalogue import Catalogue
from rankmill.metrics.aggregate import Scored
from rankmill.metrics.listed import MeanOfSome, training_of

# How much of the shares that a query had is mixed into those of its list, as Steck has it.
ALPHA = 0.01
# Ratios are multiplied by it before their logarithm is taken, so that they are above 1.
SCALE = 38


class OfGroups(MeanOfSome):
    """A mean over the lists that have a value."""

    needs_training: ClassVar[bool] = False
    needs_groups: ClassVar[bool] = True


class Miscalibration(OfGroups):
    """How far the groups that a list shows are from those that its query had."""

    needs_training: ClassVar[bool] = True

    def values(self, scored: Scored, k: int, catalogue: Catalogue) -> np.ndarray:
        """Return the Kullback-Leibler divergence of each list, in nats."""
        training, groups = training_of(catalogue), groups_of(catalogue)
        labels, offsets = training.index.labels, scored.lists.offsets
        starts, ends = take_spans(labels.offsets, training.index.find(scored.lists.queries))
        had = training.rows_in(catalogue)
        sizes = np.minimum(ends - starts, groups.most_items) * groups.largest
        room = int(np.minimum(sizes, len(groups.names)).sum())
        last, shares, ratios = np.empty(len(offsets) - 1, np.int64), np.empty(room), np.empty(room)
        kernels.compare_shares(
            starts,
            ends,
            had,
            offsets,
            scored.shown,
            scored.repeat,
            k,
            *groups.arrays,
            len(groups.names),
            ALPHA,
            last,
            shares,
            ratios,
        )
        count = int(last[-1]) if len(last) else 0
        logs = log2(ratios[:count] * 2.0**SCALE) - SCALE
        out = np.empty(len(offsets) - 1)
        kernels.sum_terms(last, shares[:count] * logs * math.log(2), out)
        return out


class Diversity(OfGroups):
    """How different the groups of the items of a list are."""

    def values(self, scored: Scored, k: int, catalogue: Catalogue) -> np.ndarray:
        """Return the mean distance of the pairs of each list."""
        groups, out = groups_of(catalogue), np.empty(len(scored.lists.offsets) - 1)
        of_items = scored.lists.offsets, scored.shown, scored.repeat
        kernels.mean_distance(*of_items, k, *groups.arrays[:2], out)
        return out


class ProfileDistance(OfGroups):
    """How different the groups of the items of a list are from those that its query had."""

    needs_training: ClassVar[bool] = True

    def values(self, scored: Scored, k: int, catalogue: Catalogue) -> np.ndarray:
        """Return the mean distance of each list from what its query had."""
        training, groups = training_of(catalogue), groups_of(catalogue)
        offsets, out = training.index.labels.offsets, np.empty(len(scored.lists.offsets) - 1)
        spans = take_spans(offsets, training.index.find(scored.lists.queries))
        of_items = scored.lists.offsets, scored.shown, scored.repeat
        how = k, *groups.arrays[:2], groups.largest
        kernels.mean_distance_to_history(*spans, training.rows_in(catalogue), *of_items, *how, out)
        return out


def groups_of(catalogue: Catalogue) -> Groups:
    """Return the groups that the job has checked to be there."""
    assert catalogue.groups is not None
    return catalogue.groups
