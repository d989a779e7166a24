"""Polars by one who joins rows whole: each predicted item is looked up in the user's label list."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from rivals.polars_join import exploded, items, mean, scan
from rivals.running import run


def evaluate(folder: Path, threads: int) -> float:
    labels, predictions = scan(folder)
    joined = predictions.join(labels.rename({"items": "relevant"}), on="user_id")
    hits = exploded(joined).filter(pl.col("relevant").list.contains(items))
    return mean(hits, labels)


if __name__ == "__main__":
    run(evaluate)
