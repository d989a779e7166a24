"""Compare every metric of whole dumps with the plain-Python oracle of the tests, to 1e-12.

    python benchmarks/against_oracle.py FOLDER ... [--metric NAME ...]

A FOLDER holds labels.parquet and predictions.parquet, written by the generator with or without
--shuffle. A million users take some minutes and some gigabytes of memory.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import rankmill

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
import oracle

METRICS = [
    *("map@12", "map", "first_hit@5", "first_hit", "precision@12", "recall@12", "hit@3", "f1@12"),
    *("rprec", "ndcg@12", "dcg@12", "gap", "gap@3"),
]
TOLERANCE = 1e-12


def read(path: Path, columns: list[str]) -> list[list[Any]]:
    table = pq.read_table(path, columns=columns)
    return [table[column].to_pylist() for column in columns]


def largest_difference(folder: Path, metrics: list[str]) -> float:
    paths = [folder / f"{name}.parquet" for name in ("labels", "predictions")]
    found = rankmill.evaluate(*paths, metrics)
    users, items = read(paths[0], ["user_id", "items"])
    labels = dict(zip(users, items, strict=True))
    users, items, scores = read(paths[1], ["user_id", "items", "scores"])
    predictions = {
        user: list(zip(*lists, strict=True))
        for user, *lists in zip(users, items, scores, strict=True)
    }
    worst = 0.0
    for metric in metrics:  # one metric at a time, because the oracle keeps all its values
        expected = oracle.evaluate(labels, predictions, [metric])
        difference = abs(found.metrics[metric] - expected.metrics[metric])
        worst = max(worst, difference)
        print(f"{metric:14s} {found.metrics[metric]:.15f}  off by {difference:.1e}", flush=True)
    print(f"{folder}: {len(metrics)} metrics, off by {worst:.1e} at most")
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--metric", nargs="+", default=METRICS)
    options = parser.parse_args()
    worst = max(largest_difference(folder, options.metric) for folder in options.folders)
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
