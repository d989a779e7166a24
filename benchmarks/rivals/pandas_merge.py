"""pandas on Arrow columns (a third of the time of NumPy ones): explode, merge, number the hits."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa

from rivals.running import COLUMNS, CUTOFF, run


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path, columns=COLUMNS, dtype_backend="pyarrow")


def evaluate(folder: Path, threads: int) -> float:
    pa.set_cpu_count(threads)
    labels, predictions = read(folder / "labels.parquet"), read(folder / "predictions.parquet")
    counts = labels["items"].list.len()
    labels["divisor"] = counts.clip(upper=CUTOFF)
    labels = labels[counts > 0]
    ranked = predictions.explode("items")
    ranked["rank"] = ranked.groupby(level=0).cumcount() + 1
    ranked = ranked[ranked["rank"] <= CUTOFF]
    hits = ranked.merge(labels.explode("items"), on=["user_id", "items"])
    hits = hits.sort_values("rank").drop_duplicates(["user_id", "items"])
    place = hits.groupby("user_id").cumcount() + 1
    return float((place / hits["rank"] / hits["divisor"]).sum()) / len(labels)


if __name__ == "__main__":
    run(evaluate)
