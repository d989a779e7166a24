"""What other libraries and competitions compute, in plain Python: the presets are held to these.

``REFERENCES[preset][metric](labels, predictions, k)`` answers ``{query: value}``, with the queries
that the library counts in its mean and no others; for ``gap`` one number. ``labels`` is
``{query: [(item, gain), ...]}`` in the order of rows, ``predictions`` is ``{query: [(item,
confidence), ...]}`` in rank order; ``k`` may be None. A gain of 0 or less, or an empty list of
labels, says that the query is known and that nothing is relevant (libraries whose input is rows of
relevant items never hear of such a query).

Raised: ``RefusedError`` where the library refuses the input or stops on it, ``UndefinedError``
where it has no such measure. ``test_references.py`` holds all this to the installed libraries.
"""

from __future__ import annotations

from collections.abc import Callable

from references import competitions, recommendation, retrieval
from references.steps import RefusedError, UndefinedError

__all__ = ["REFERENCES", "RefusedError", "UndefinedError"]

REFERENCES: dict[str, dict[str, Callable]] = {
    "trec_eval": retrieval.TREC_EVAL,
    "trec_eval-10": retrieval.TREC_EVAL_10,
    "ml_metrics": {"map": competitions.ml_metrics_map},
    "kaggle_landmark": {"gap": competitions.landmark_gap},
    "kaggle_whale": {"map": competitions.whale_map},
    "kaggle_hm": {"map": competitions.hm_map},
    "spark": recommendation.SPARK,
    "torchmetrics": retrieval.TORCHMETRICS,
    "ranx": retrieval.RANX,
    "sklearn": retrieval.SKLEARN,
    "sklearn_ap": {"map": retrieval.sklearn_retrieved_map},
    "recommenders": recommendation.RECOMMENDERS,
    "rectools": recommendation.RECTOOLS,
    "replay": recommendation.REPLAY,
    "implicit": recommendation.IMPLICIT,
    "lenskit": recommendation.LENSKIT,
    "isc2021": {"gap": competitions.isc_gap},
    "vsc2022": {"gap": competitions.vsc_gap},
    "google_landmarks_v2": {
        "map": competitions.google_map,
        "precision": competitions.google_precision,
        "gap": competitions.google_gap,
    },
}
