"""Time comparisons of systems: beside ranx, beside evaluate, with slices, and with many metrics.

    python benchmarks/comparing.py [--only ranx,ratios,large] [--queries 1_000_000] [--rounds 5]

- ranx: two systems of 100,000 queries, two metrics and the t-test, from dicts of texts and from
  Parquet, beside ranx.compare with the Qrels and Runs of the same dicts. Needs ranx.
- ratios: two systems and three metrics beside `evaluate` of both, and with a column of 20 values
  to cut by beside without.
- large: time and peak memory of five systems and ten metrics, in a process of its own.

What is compared runs in turn, after a round that does not count; medians. Ratios of wall time are
those of the medians, with the smallest and largest of the rounds; then the ratio of CPU times.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rankmill

ITEMS, LABELS, PREDICTED = 200, 4, 12
THREE = ["map@12", "ndcg@10", "recall@10"]
TEN = [*THREE, "map@5", "ndcg@5", "recall@5", "first_hit@10", "precision@10", "hit@10", "f1@10"]
OF_RANX = ["map@12", "ndcg@10"]
# What the issue on comparisons promises: at least, or at most.
BESIDE_RANX, BESIDE_EVALUATE, BESIDE_WHOLE = 30, 1.25, 1.15


def write(folder: Path, queries: int, systems: int, texts: bool = False) -> None:
    """Write labels with a column of 20 values, and systems that find some of them."""
    random = np.random.default_rng(0)
    ids = pa.array(np.arange(queries)).cast(pa.string() if texts else pa.int64())

    def lists(values: np.ndarray) -> Any:
        flat = pa.array(values.ravel()).cast(ids.type)
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1]).cast(pa.list_(ids.type))

    labels = random.integers(0, ITEMS, (queries, LABELS))
    country = pa.array(random.integers(0, 20, queries)).cast(pa.string())
    columns = {"query": ids, "items": lists(labels), "country": country}
    pq.write_table(pa.table(columns), folder / "labels.parquet", row_group_size=100_000)
    for i in range(systems):
        # Ten steps apart mod ITEMS, so that a list has no item twice.
        start = random.integers(0, ITEMS, queries)
        found = random.random(queries) < 0.5
        start[found] = labels[found, i % LABELS] - random.integers(0, 5, queries)[found] * 10
        predicted = (start[:, None] + 10 * np.arange(PREDICTED)) % ITEMS
        scores = np.broadcast_to(np.arange(PREDICTED, 0, -1.0), predicted.shape)
        columns = {"query": ids, "items": lists(predicted)}
        columns["scores"] = pa.FixedSizeListArray.from_arrays(scores.ravel(), PREDICTED)
        pq.write_table(pa.table(columns), folder / f"{i}.parquet", row_group_size=100_000)


def in_turn(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, np.ndarray]:
    """Return the seconds of wall and CPU time (columns) of each way, which run in turn."""
    seconds: dict[str, list[list[float]]] = {name: [] for name in ways}
    for i in range(rounds + 1):
        for name, run in ways.items():
            began = time.perf_counter(), time.process_time()
            run()
            ended = time.perf_counter(), time.process_time()
            if i:
                seconds[name].append([b - a for a, b in zip(began, ended, strict=True)])
    return {name: np.array(rounds) for name, rounds in seconds.items()}


def told(seconds: dict[str, np.ndarray], over: str, under: str, promise: str) -> None:
    """Print a row of the table of ratios: wall times, their ratio, and that of the CPU times."""
    each = (seconds[over] / seconds[under])[:, 0]
    a, b = (np.median(seconds[name], axis=0) for name in (over, under))
    spread = f"{each.min():.2f} to {each.max():.2f}"
    cells = [over, f"{a[0]:.3f} s", under, f"{b[0]:.3f} s", f"{a[0] / b[0]:.2f}", spread]
    print("|", " | ".join([*cells, f"{a[1] / b[1]:.2f}", promise]), "|", flush=True)


def beside_ranx(folder: Path, queries: int, rounds: int) -> None:
    import ranx

    write(folder, queries, 2, texts=True)

    def pairs(name: str, numbers: list[float]) -> dict[str, dict[str, Any]]:
        table = pq.read_table(folder / name)
        rows = zip(table["query"].to_pylist(), table["items"].to_pylist(), strict=True)
        return {q: dict(zip(items, numbers, strict=False)) for q, items in rows}

    labels = {q: dict.fromkeys(of, 1) for q, of in pairs("labels.parquet", [1.0] * LABELS).items()}
    runs = {
        name: pairs(f"{i}.parquet", [float(n) for n in range(PREDICTED, 0, -1)])
        for i, name in enumerate("ab")
    }
    qrels = ranx.Qrels(labels)
    of_ranx = [ranx.Run(run, name=name) for name, run in runs.items()]
    files = {name: folder / f"{i}.parquet" for i, name in enumerate("ab")}

    def ranx_compare(qrels: Any, runs: list[Any]) -> Any:
        return ranx.compare(qrels, runs, OF_RANX, stat_test="student", make_comparable=False)

    def from_dicts() -> Any:
        made = [ranx.Run(run, name=name) for name, run in runs.items()]
        return ranx_compare(ranx.Qrels(labels), made)

    theirs = ranx_compare(qrels, of_ranx).to_dict()
    ours = rankmill.compare(labels, runs, OF_RANX)
    for name in "ab":
        for metric in OF_RANX:
            values = theirs[name]["scores"][metric], ours.values[metric][name].value
            if abs(values[0] - values[1]) > 1e-9:
                sys.exit(f"{name} {metric}: ranx says {values[0]} and rankmill {values[1]}")
    # Numba keeps none of ranx's code that runs in threads; the first round compiles it.
    seconds = in_turn(
        {
            "ranx, dicts": from_dicts,
            "ranx, its objects": lambda: ranx_compare(qrels, of_ranx),
            "rankmill, dicts": lambda: rankmill.compare(labels, runs, OF_RANX),
            "rankmill, Parquet": lambda: rankmill.compare(
                folder / "labels.parquet", files, OF_RANX
            ),
        },
        rounds,
    )
    for under in ("rankmill, dicts", "rankmill, Parquet"):
        for over in ("ranx, dicts", "ranx, its objects"):
            told(seconds, over, under, f"at least {BESIDE_RANX}")


def ratios(folder: Path, queries: int, rounds: int) -> None:
    write(folder, queries, 2)
    labels = folder / "labels.parquet"
    runs = {str(i): folder / f"{i}.parquet" for i in range(2)}
    seconds = in_turn(
        {
            "evaluate of both": lambda: rankmill.evaluate_runs(labels, runs, THREE),
            "compare": lambda: rankmill.compare(labels, runs, THREE),
            "compare by 20 values": lambda: rankmill.compare(labels, runs, THREE, by="country"),
        },
        rounds,
    )
    told(seconds, "compare", "evaluate of both", f"at most {BESIDE_EVALUATE}")
    told(seconds, "compare by 20 values", "compare", f"at most {BESIDE_WHOLE}")


def large(folder: Path, queries: int, rounds: int) -> None:
    write(folder, queries, 5)
    for i in range(rounds + 1):
        child = [sys.executable, __file__, "--child", str(folder)]
        shown = subprocess.run(child, check=True, capture_output=True, text=True).stdout
        if i:
            print(f"| {shown.strip()} |")


def child(folder: Path) -> None:
    runs = {str(i): folder / f"{i}.parquet" for i in range(5)}
    began = time.perf_counter()
    found = rankmill.compare(folder / "labels.parquet", runs, TEN)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{found.queries:,} queries, 5 systems, 10 metrics | {seconds:.2f} s | {peak:,.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="ranx,ratios,large")
    parser.add_argument("--queries", type=lambda text: int(text.replace("_", "")), default=10**6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child is not None:
        child(asked.child)
        return
    parts = {"ranx": beside_ranx, "ratios": ratios, "large": large}
    for name in asked.only.split(","):
        queries = asked.queries // 10 if name == "ranx" else asked.queries
        with tempfile.TemporaryDirectory() as folder:
            parts[name](Path(folder), queries, asked.rounds)


if __name__ == "__main__":
    main()
