"""Aggregates over the features of items, which are vectors: how different items are by cosine."""

from typing import ClassVar

import numpy as np

from rankmill.columns.lists import take_spans
from rankmill.kernels import vectors as kernels
from rankmill.matching.catalogue import KnownItems
from rankmill.matching.features import Features
from rankmill.metrics.aggregate import ListWalk, Needs, ScoredBlock
from rankmill.metrics.aggregates.list_means import MeanOfSome, counted_once, walk_distances
from rankmill.metrics.needs import FeatureRows, Repeats, TrainingRows, features_of, training_of


class CosineDiversity(MeanOfSome):
    """How different the items of a list are."""

    needs: ClassVar[Needs] = (FeatureRows, Repeats)

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems) -> np.ndarray:
        """Return the mean distance of the pairs of each list."""
        features, out = features_of(catalogue), np.empty(len(scored.lists.offsets) - 1)
        of_items = scored.lists.offsets, scored.needs[FeatureRows], scored.needs[Repeats]
        kernels.mean_distance(*of_items, k, features.units, features.scale, out)
        return out

    @staticmethod
    def walk(scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return the mean distance of each item to the other items."""
        features, rows = features_of(catalogue), scored.needs[FeatureRows][:k]
        counts = counted_once(scored)[:k] & (rows >= 0)
        far = _distances(rows[counts], rows[counts], features)
        return walk_distances({"vector": rows >= 0}, counts, far, among=True)


class CosineProfileDistance(MeanOfSome):
    """How different the items of a list are from those that its query had."""

    needs: ClassVar[Needs] = (TrainingRows, FeatureRows, Repeats)

    def values(self, scored: ScoredBlock, k: int, catalogue: KnownItems) -> np.ndarray:
        """Return the mean distance of each list from what its query had."""
        training, features = training_of(catalogue), features_of(catalogue)
        offsets, out = training.index.labels.offsets, np.empty(len(scored.lists.offsets) - 1)
        spans = take_spans(offsets, training.index.find(scored.lists.queries))
        of_items = scored.lists.offsets, scored.needs[FeatureRows], scored.needs[Repeats]
        how = k, features.units, features.scale
        kernels.mean_distance_to_history(*spans, features.had(training.index), *of_items, *how, out)
        return out

    @staticmethod
    def walk(scored: ScoredBlock, k: int, catalogue: KnownItems) -> ListWalk:
        """Return the mean distance of each item to what the query had."""
        training, features = training_of(catalogue), features_of(catalogue)
        labels, rows = training.index.labels, scored.needs[FeatureRows][:k]
        spans = take_spans(labels.offsets, training.index.find(scored.lists.queries))
        had = features.had(training.index)[int(spans[0][0]) : int(spans[1][0])]
        counts = counted_once(scored)[:k] & (rows >= 0)
        far = _distances(rows[counts], had[had >= 0], features)
        return walk_distances({"vector": rows >= 0}, counts, far)


def _distances(rows: np.ndarray, others: np.ndarray, features: Features) -> np.ndarray:
    """Return 1 - the cosine of each vector with each of others."""
    one, other = (features.units[of] / features.scale for of in (rows, others))
    far: np.ndarray = np.maximum(0.0, 1 - one @ other.T)
    return far
