"""Polars, lazy and streaming: explode both sides, join on user and item, group.

POLARS_MAX_THREADS is set by the caller: Polars reads it when it is imported.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from rivals.running import CUTOFF, run

items, rank = pl.col("items"), pl.col("rank")


def scan(folder: Path) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Labels with their divisor, of those who have any; predictions with their ranks."""
    count = items.list.len()
    labels = pl.scan_parquet(folder / "labels.parquet").filter(count > 0)
    predictions = pl.scan_parquet(folder / "predictions.parquet")
    return (
        labels.select("user_id", "items", divisor=count.clip(upper_bound=CUTOFF)),
        predictions.select("user_id", items.list.head(CUTOFF)),
    )


def exploded(predictions: pl.LazyFrame) -> pl.LazyFrame:
    return predictions.with_columns(rank=pl.int_ranges(1, items.list.len() + 1)).explode(
        "items", "rank"
    )


def mean(hits: pl.LazyFrame, labels: pl.LazyFrame) -> float:
    """MAP from the hits, of which some may repeat an item."""
    once = hits.group_by("user_id", "items").agg(rank.min(), pl.col("divisor").first())
    place = rank.rank("ordinal").over("user_id")
    total = once.select((place / rank / pl.col("divisor")).sum())
    tables = pl.collect_all([total, labels.select(pl.len())], engine="streaming")
    return tables[0].item() / tables[1].item()


def evaluate(folder: Path, threads: int) -> float:
    labels, predictions = scan(folder)
    hits = exploded(predictions).join(labels.explode("items"), on=["user_id", "items"])
    return mean(hits, labels)


if __name__ == "__main__":
    run(evaluate)
