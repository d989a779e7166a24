"""What other tests share with those of presets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rankmill.semantics.presets import PRESETS
from references.steps import Labels, Predictions

MESSY = {"repeats": True, "repeated_labels": True}


# The input that a library accepts and that the note of its preset does not exclude. Some libraries
# count repeats in their own way for some metrics, see MESSY_METRICS.
SHAPES: dict[str, dict[str, Any]] = {
    "trec_eval": {"grades": (0, 1, 2, 3)},
    "trec_eval-10": {"grades": (0, 1, 2, 3)},
    "ml_metrics": MESSY | {"unlabelled": False},
    "kaggle_landmark": {"longest": 1, "empty_labels": False},
    "kaggle_whale": MESSY,
    "kaggle_hm": MESSY,
    "spark": MESSY,
    "torchmetrics": {"ties": False},
    "ranx": {"grades": (0, 1, 2, 3)},
    "sklearn": {"grades": (0, 1, 2, 3), "scored_labels": True},
    "sklearn_ap": {"ties": False},
    "recommenders": {},
    "rectools": {},
    "replay": {},
    "implicit": MESSY,
    "lenskit": MESSY,
    "isc2021": {"repeated_labels": True},
    "vsc2022": {},
    "google_landmarks_v2": MESSY | {"unlabelled": False},
}


# The metrics that a preset has also for dumps with repeats; its other metrics are left out there.
MESSY_METRICS = {
    "recommenders": ["map@k", "precision@k", "recall@k"],
    "replay": ["map@k", "ndcg@k"],
}


# Refused under the preset alone -> the choices that they are refused without.
WITH = {("recommenders", "ndcg@k"): {"unpredicted": "zero"}}


CASES = [
    *(
        (name, shape, [one for one in PRESETS[name].metrics if (name, one) not in WITH])
        for name, shape in SHAPES.items()
    ),
    *((name, {}, [metric]) for name, metric in WITH),
    *((name, {"repeats": True}, metrics) for name, metrics in MESSY_METRICS.items()),
    ("replay", {"repeated_labels": True}, ["map@k", "ndcg@k", "precision@k", "hit@k"]),
]


def tables(labels: Labels, predictions: Predictions) -> tuple[pa.Table, pa.Table]:
    def table(lists: dict[str, list[tuple[str, float]]], number: str) -> pa.Table:
        return pa.table(
            {
                "query": pa.array(list(lists), pa.string()),
                "items": pa.array(
                    [[item for item, _ in rows] for rows in lists.values()], pa.list_(pa.string())
                ),
                number: pa.array(
                    [[one for _, one in rows] for rows in lists.values()], pa.list_(pa.float64())
                ),
            }
        )

    return table(labels, "gain"), table(predictions, "score")
