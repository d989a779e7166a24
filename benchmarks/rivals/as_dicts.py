"""The dump as dictionaries of dictionaries, which is what pytrec_eval and ranx take.

Both divide by R where this comparison divides by min(12, R), so each user's value is multiplied by
R / min(12, R). A dictionary holds no item twice, so a repeat keeps its rank under another name.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rivals.running import COLUMNS, CUTOFF

#: The score of each rank: a run is sorted by score, and these keep the order of the file.
SCORES = [float(CUTOFF - place) for place in range(CUTOFF)]


def scores_of(items: list[str]) -> dict[str, float]:
    items = items[:CUTOFF]
    scores = dict(zip(items, SCORES, strict=False))
    if len(scores) < len(items):
        scores = {}
        for item, score in zip(items, SCORES, strict=False):
            scores[f"repeat of {item} at {score}" if item in scores else item] = score
    return scores


def read(folder: Path, threads: int) -> tuple[dict[str, dict[str, int]], dict[str, dict]]:
    """The labels of each user who has any, and the first predictions of each user."""
    pa.set_cpu_count(threads)
    labels, predictions = (
        zip(*pq.read_table(folder / name, columns=COLUMNS).to_pydict().values(), strict=True)
        for name in ("labels.parquet", "predictions.parquet")
    )
    return (
        {str(user): dict.fromkeys(map(str, items), 1) for user, items in labels if items},
        {str(user): scores_of(list(map(str, items))) for user, items in predictions},
    )


def with_our_divisor(value: float, labels: int) -> float:
    return value * labels / min(labels, CUTOFF)
