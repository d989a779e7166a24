"""The dump as dictionaries of dictionaries, which is what trec_eval's wrapper and ranx take."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

CUTOFF = 12
#: The score of each rank; a run is sorted by score, so that these hold the order of the file.
SCORES = [float(CUTOFF - place) for place in range(CUTOFF)]


def labels_by_user(folder: Path) -> dict[str, dict[str, int]]:
    """The labels of each user who has any."""
    table = pq.read_table(folder / "labels.parquet", columns=["user_id", "items"])
    return {
        str(user): dict.fromkeys(map(str, items), 1)
        for user, items in zip(*table.to_pydict().values(), strict=True)
        if items
    }


def scores_of(items: list[str]) -> dict[str, float]:
    """The first items with falling scores; a repeat keeps its rank under a name of its own."""
    scores = dict(zip(items, SCORES, strict=False))
    if len(scores) < min(len(items), CUTOFF):
        scores = {}
        for place, item in enumerate(items[:CUTOFF]):
            scores[f"repeat at {place}" if item in scores else item] = SCORES[place]
    return scores


def predictions_by_user(folder: Path) -> dict[str, dict[str, float]]:
    table = pq.read_table(folder / "predictions.parquet", columns=["user_id", "items"])
    return {
        str(user): scores_of([str(item) for item in items])
        for user, items in zip(*table.to_pydict().values(), strict=True)
    }


def share_of_cutoff(labels: int) -> float:
    """What a value divided by R is multiplied with, so that it is divided by min(k, R)."""
    return labels / min(labels, CUTOFF)
