"""Plain Python: sets and loops, as in a notebook; pyarrow reads the files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rivals.running import COLUMNS, CUTOFF, run


def average_precision(relevant: set, items: list) -> float:
    divisor = min(CUTOFF, len(relevant))
    unseen, total, hits = set(relevant), 0.0, 0
    for rank, item in enumerate(items[:CUTOFF], start=1):
        if item in unseen:
            unseen.remove(item)
            hits += 1
            total += hits / rank
    return total / divisor


def pairs(path: Path) -> zip:
    return zip(*pq.read_table(path, columns=COLUMNS).to_pydict().values(), strict=True)


def evaluate(folder: Path, threads: int) -> float:
    pa.set_cpu_count(threads)
    labels = {user: set(items) for user, items in pairs(folder / "labels.parquet") if items}
    total = 0.0
    for user, items in pairs(folder / "predictions.parquet"):
        relevant = labels.get(user)
        if relevant:
            total += average_precision(relevant, items)
    return total / len(labels)


if __name__ == "__main__":
    run(evaluate)
