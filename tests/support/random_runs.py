"""What other tests share with those of registry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def random_run(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Ties of score, queries without a relevant document, relevant ones never found."""
    draw = np.random.default_rng(seed)
    documents = [f"doc-{number:03}" for number in range(60)]
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for number in range(60):
        judged = draw.choice(documents, draw.integers(1, 40), replace=False)
        grades = draw.integers(0, (1, 2, 4, 4)[number % 4], len(judged))
        found = draw.choice(documents, draw.integers(1, 50), replace=False)
        scores = draw.integers(0, 12, len(found)) / 8
        qrels[f"q{number}"] = dict(zip(judged.tolist(), grades.tolist(), strict=True))
        run[f"q{number}"] = dict(zip(found.tolist(), scores.tolist(), strict=True))
    return qrels, run


def long_table(side: dict[str, dict[str, Any]], name: str) -> pa.Table:
    rows = [(query, *pair) for query, items in side.items() for pair in items.items()]
    return pa.table(dict(zip(("qid", "docno", name), zip(*rows, strict=True), strict=True)))
