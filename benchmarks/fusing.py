"""Time the fusion of two runs beside ranx, and compare their scores.

    python benchmarks/fusing.py [--queries 20000] [--items 100] [--rounds 5]

Both sides take turns: rankmill with Arrow tables, shuffled against each other, and ranx with its
`Run` objects, whose making is not timed. The script prints the medians of wall time and of CPU time
as a markdown table. It needs the extra ``bench``.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import ranx

import rankmill

METHODS = {"rrf": ("rrf", None), "combsum": ("sum", "min-max"), "combmnz": ("mnz", "min-max")}
TOLERANCE = 1e-9


def make_run(generator: np.random.Generator, queries: int, items: int) -> pa.Table:
    """Lists of string ids in rank order, drawn from three times as many items."""
    drawn = generator.random((queries, 3 * items)).argsort(axis=1)[:, :items]
    scores = -np.sort(-generator.random((queries, items)))
    offsets = pa.array(np.arange(0, queries * items + 1, items))
    texts = pa.array(drawn.ravel()).cast(pa.string())
    order = generator.permutation(queries)
    table = {
        "query_id": pa.array(np.arange(queries)).cast(pa.string()),
        "items": pa.LargeListArray.from_arrays(offsets, texts),
        "scores": pa.LargeListArray.from_arrays(offsets, pa.array(scores.ravel())),
    }
    return pa.table(table).take(order)


def as_dicts(table: pa.Table) -> dict[str, dict[str, float]]:
    columns = (column.to_pylist() for column in table.columns)
    return {
        query: dict(zip(items, scores, strict=True))
        for query, items, scores in zip(*columns, strict=True)
    }


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of wall time and of CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    warnings.simplefilter("ignore")  # those of ranx
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    generator = np.random.default_rng(0)
    tables = [make_run(generator, arguments.queries, arguments.items) for _ in range(2)]
    runs = [ranx.Run(as_dicts(table)) for table in tables]
    print("| method | rankmill, wall / CPU s | ranx, wall / CPU s | ratio of CPU time |")
    print("| --- | ---: | ---: | ---: |")
    for method, (theirs, norm) in METHODS.items():
        expected = ranx.fuse(runs, norm=norm, method=theirs).to_dict()
        for query, items in as_dicts(rankmill.fuse(tables, method=method).table).items():
            scores = expected[query]
            assert items.keys() == scores.keys()
            assert all(abs(items[item] - scores[item]) <= TOLERANCE for item in items)
        times: list[list[tuple[float, float]]] = [[], []]
        for _ in range(arguments.rounds):
            times[0].append(timed(lambda method=method: rankmill.fuse(tables, method=method)))
            times[1].append(
                timed(lambda theirs=theirs, norm=norm: ranx.fuse(runs, norm=norm, method=theirs))
            )
        medians = [[statistics.median(one) for one in zip(*side, strict=True)] for side in times]
        cells = [f"{wall:.2f} / {cpu:.2f}" for wall, cpu in medians]
        print(f"| {method} | {' | '.join(cells)} | {medians[1][1] / medians[0][1]:.1f} |")


if __name__ == "__main__":
    main()
