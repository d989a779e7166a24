"""Queries of very different sizes on Spark: a giant one, and few that hold half of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
import rankmill.spark
from data import same

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

METRICS = ["map", "map@12", "ndcg@10", "gap", "gap@5"]
# A query has 300,000 predictions. Of the 2,000 others, one in a hundred has half of all rows.
SIZES = np.array([300_000, *[5_000] * 20, *[50] * 1_980])


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Labels and predictions as files, by the shape of both."""
    draw = np.random.default_rng(0)
    query = np.repeat(np.arange(len(SIZES)), SIZES)
    offsets = np.append(0, np.cumsum(SIZES))
    item = np.arange(len(query)) - offsets[query]
    # No two of a query are equal, but many of all are.
    scores = np.concatenate([draw.permutation(size) for size in SIZES])
    scores = (scores / 2**19).astype(np.float32)
    right = draw.random(len(query)) < np.where(SIZES[query] < 100, 0.2, 0.01)
    right &= query % 50 != 3  # some queries have no labels
    folder, found = tmp_path_factory.mktemp("skewed"), {}
    for shape in ("long", "wide"):
        both = [{"query": query[right], "item": item[right]}]
        both.append({"query": query, "item": item, "score": scores})
        if shape == "long":
            orders = [draw.permutation(len(one["query"])) for one in both]
            frames = [
                pa.table({name: values[order] for name, values in one.items()})
                for one, order in zip(both, orders, strict=True)
            ]
        else:
            ranked = np.lexsort((-scores, query))
            both[1] = {"query": query, "item": item[ranked], "score": scores[ranked]}
            frames = [wide(one, draw) for one in both]
        found[shape] = [folder / f"{shape}-{name}" for name in ("labels", "predictions")]
        for path, frame in zip(found[shape], frames, strict=True):
            pq.write_table(frame, path)
    return found


def wide(rows: dict[str, np.ndarray], draw: np.random.Generator) -> pa.Table:
    """Rows that stand by query, as a list a query; the queries come in any order."""
    queries, first = np.unique(rows.pop("query"), return_index=True)
    offsets = pa.array(np.append(first, len(rows["item"])).astype(np.int32))
    lists = {
        name: pa.ListArray.from_arrays(offsets, pa.array(values)) for name, values in rows.items()
    }
    return pa.table({"query": queries, **lists}).take(draw.permutation(len(queries)))


@pytest.mark.long
@pytest.mark.parametrize("shape", ["long", "wide"])
def test_giant_queries_have_the_same_bits(
    spark: Any, skewed: dict[str, list[Path]], shape: str
) -> None:
    frames = (spark.read.parquet(str(path)) for path in skewed[shape])
    found = rankmill.spark.evaluate(*frames, METRICS, partitions=4)
    whole = rankmill.evaluate(*map(pq.read_table, skewed[shape]), METRICS)
    assert whole.audit["predictions"] == SIZES.sum()
    same(found, whole)
