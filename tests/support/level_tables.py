"""What other tests share with those of levels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

Judgements = dict[str, dict[str, int]]


Run = dict[str, dict[str, float]]


def random_run(seed: int) -> tuple[Judgements, Run]:
    """Make judgements of -1 to 3 and a run with ties; a query may lack any relevant document."""
    draw = np.random.default_rng(seed)
    documents = [f"doc-{number}" for number in range(40)]
    qrels, run = {}, {}
    for number in range(40):
        judged = draw.choice(documents, draw.integers(1, 25), replace=False)
        found = draw.choice(documents, draw.integers(1, 30), replace=False)
        grades = draw.integers(-1, 4, len(judged))
        grades[0] = max(0, grades[0])  # trec_eval reads beyond its arrays if all are negative
        scores = draw.integers(0, 12, len(found)) / 8
        qrels[f"q{number}"] = dict(zip(judged.tolist(), grades.tolist(), strict=True))
        run[f"q{number}"] = dict(zip(found.tolist(), scores.tolist(), strict=True))
    qrels["none of the run is judged"] = {"a": 2, "b": 1}
    run["none of the run is judged"] = {"c": 0.5, "d": 0.5}
    return qrels, run


def tables(qrels: Judgements, run: Run) -> tuple[pa.Table, pa.Table]:
    made = []
    for sides, name in ((qrels, "relevance"), (run, "score")):
        rows = [(query, *pair) for query, side in sides.items() for pair in side.items()]
        made.append(
            pa.table(dict(zip(("qid", "docno", name), zip(*rows, strict=True), strict=True)))
        )
    return made[0], made[1]
