"""Check every promise about speed in one run, each beside what it is measured by.

    python benchmarks/targets.py [--only TEXT] [--rounds 5]

A row is a promise: what is measured, the most that it may be, and the function that measures it.
Rivals and yardsticks take turns with rankmill in the same run, and medians are compared. Seconds of
whole processes are measured from outside, so start-up counts. The inputs are made in the cache
folder if they are missing (3 GB). On two quiet cores that takes 5 minutes, and a run about 10.

With TREC_EVAL=PATH in the environment, that trec_eval is raced, too. `--only` measures the rows
with a text in their names; `--scale 0.001` shrinks all inputs, to see that the script runs. The
exit code is 1 if a promise was not kept.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import catalogue
import inputs
import many_metrics
import rankmill
from bench_kernels import aligned_lists, confidences
from generate import Settings, cache_folder, cached_dump
from rankmill.columns.ids import to_ids
from rankmill.matching.hits import group_hits, match
from rankmill.matching.index import LabelIndex
from rankmill.matching.label_lists import clean_labels
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.registry import parse
from rankmill.metrics.values import Matched

HERE = Path(__file__).resolve().parent
MILLION = 1_000_000
DEMO_METRICS = ["map@12", "first_hit@5", "gap"]
PREPARED_QUERIES = 100_000
SMALL_CALLS = 100

scale, rounds = 1.0, 5


class Row(NamedTuple):
    """A promise: at most `target` ms, s or ×, the ratio to a yardstick, of what is measured."""

    name: str
    target: float
    unit: str
    measure: Callable[..., float]
    arguments: tuple[Any, ...] = ()


# ------------------------------------------------------------------ measuring


def wall(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(
    work: Callable[[], Any], yardstick: Callable[[], Any], clock: Callable[..., float] = wall
) -> float:
    """The median of the ratios of both, which take turns after a run of each that is not timed."""
    work()
    yardstick()
    return statistics.median(clock(work) / clock(yardstick) for _ in range(rounds))


def scaled(count: int) -> int:
    return max(1_000, int(count * scale))


def dump(users: int, **settings: Any) -> tuple[Path, Path]:
    """The labels and predictions of so many users, shuffled."""
    folder = cache_folder().parent / "bench" / f"{users}-shuffled"
    return cached_dump(folder, Settings(users, shuffle=True, **settings))


class Used(NamedTuple):
    """What a process took, in seconds."""

    wall: float
    cpu: float


def process(*arguments: object, kernels: Path) -> Used:
    """Run a command of rankmill whose kernels are kept in a folder."""
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "rankmill", *map(str, arguments)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(kernels)},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"exit code {child.returncode}: rankmill {' '.join(map(str, arguments))}")
    return Used(time.perf_counter() - start, usage.ru_utime + usage.ru_stime)


# ------------------------------------------------------------------ 1 and 7: processes


@cache
def warmed() -> tuple[Path, Used]:
    """A folder with all kernels, and what it took to compile them."""
    folder = Path(tempfile.mkdtemp(prefix="rankmill-kernels-"))
    return folder, process("warmup", kernels=folder)


def evaluation(users: int, kernels: Path) -> Used:
    return process("evaluate", *dump(users), "-m", "map@12", kernels=kernels)


def first(users: int) -> float:
    """The median processor time of an evaluation that finds no compiled kernel."""
    users = scaled(users)
    dump(users)
    used = []
    for _ in range(min(3, rounds)):
        with tempfile.TemporaryDirectory() as folder:
            used.append(evaluation(users, Path(folder)).cpu)
    return statistics.median(used)


def later(users: int, what: str = "wall") -> float:
    """The median of what an evaluation takes that finds all kernels compiled."""
    kernels, _ = warmed()
    used = [evaluation(users, kernels) for _ in range(2 * rounds)]
    return statistics.median(getattr(one, what) for one in used[1:])


def above_later(users: int) -> float:
    return first(users) - later(users, "cpu")


def warm_up() -> float:
    return warmed()[1].wall


def help_shown() -> float:
    kernels, _ = warmed()
    return statistics.median(process("--help", kernels=kernels).wall for _ in range(rounds))


# ------------------------------------------------------------------ 2: small calls


def small_lists(queries: int) -> tuple[list[list[int]], list[list[int]]]:
    draw = np.random.default_rng(0)
    return draw.integers(0, 100, (queries, 3)).tolist(), draw.integers(
        0, 100, (queries, 12)
    ).tolist()


def small_evaluate(queries: int) -> float:
    """The median processor time of evaluate() of lists in memory."""
    sides = (dict(enumerate(side)) for side in small_lists(queries))
    return small(partial(rankmill.evaluate, *sides, "map@12"))


def small_average_precision(queries: int) -> float:
    return small(partial(rankmill.arrays.average_precision, *small_lists(queries), 12))


def small(call: Callable[[], Any]) -> float:
    return statistics.median([cpu(call) for _ in range(SMALL_CALLS)][3:])


def prepared_labels() -> float:
    """An evaluation with prepared labels beside its kernels alone, in processor time."""
    queries = scaled(PREPARED_QUERIES)
    labels, predictions = aligned_lists(queries)
    order = np.random.default_rng(0).permutation(queries)
    found = predictions.values.reshape(queries, -1)[order].ravel()
    offsets, metric = predictions.offsets, parse("map@12")
    tables = [
        pa.table({"user_id": ids, "items": one.to_arrow()})
        for ids, one in (
            (np.arange(queries), labels),
            (order, rankmill.arrays.Ragged(offsets, found)),
        )
    ]
    prepared = rankmill.Labels(tables[0]).prepare()
    cleaned, _ = clean_labels(labels.offsets, to_ids(pa.array(labels.values), "labels"), None)
    index = LabelIndex(to_ids(pa.array(np.arange(queries)), "queries"), cleaned)
    ids = to_ids(pa.array(order), "queries"), to_ids(pa.array(found), "predictions")

    def kernels() -> Mean:
        hits = match(index.labels, offsets, ids[1], 12, rows=index.find(ids[0]))
        patterns = group_hits(hits)
        return Mean.of(Matched(patterns.hits).values(metric), patterns.counts)

    def evaluated() -> Any:
        return rankmill.evaluate(prepared, tables[1], metrics="map@12", per_query=False)

    result, total = evaluated(), (kernels().mean or 0) * queries
    if abs(result["map@12"] * result.queries - total) > 1e-6:  # those without labels do not count
        raise SystemExit("prepared labels and their kernels give different values")
    return ratio(evaluated, kernels, cpu)


# ------------------------------------------------------------------ 3: beside DuckDB and pyarrow


@cache
def peers(users: int, strings: bool) -> dict[str, dict[str, float]]:
    """Seconds and peak bytes of each program; run by a small process, as peers.py explains."""
    turns = min(rounds, 3) if users > MILLION else rounds
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "rows.json"
        command = [sys.executable, HERE / "peers.py", "--json", told, "--only", "duckdb,read"]
        sizes = ["--users", scaled(users), "--rounds", turns, "--orders", "shuffled"]
        words = [*command, *sizes, *["--strings"] * strings]
        subprocess.run(list(map(str, words)), stdout=subprocess.DEVNULL, check=True)
        rows = json.loads(told.read_text())["rows"]
    return {row["rival"]["name"]: row for row in rows}


def beside_peer(users: int, rival: str, what: str = "seconds", strings: bool = False) -> float:
    rows = peers(users, strings)
    return rows["rankmill"][what] / rows[rival][what]


beside_peer_of_strings = partial(beside_peer, MILLION, strings=True)


# ------------------------------------------------------------------ 4: text and objects


@cache
def race(name: str, rivals: tuple[str, ...] = ()) -> dict[str, float]:
    """Median seconds of rankmill and some programs, or of all calls, in a race of inputs.py."""
    if name in inputs.CALLS:
        seconds = inputs.CALLS[name](rounds)
    else:
        chosen = inputs.PROCESSES[name]
        inputs.PROCESSES[name] = {one: chosen[one] for one in ("rankmill", *rivals)}
        folder = inputs.FOLDER if scale == 1 else inputs.FOLDER / f"scale-{scale:g}"
        seconds = inputs.time_processes(name, folder, min(rounds, 3))
        inputs.PROCESSES[name] = chosen
    return {one: statistics.median(times) for one, times in seconds.items()}


def beside_rival(name: str, rival: str) -> float:
    """Ratio to a program whose name begins so; NaN if it is not there."""
    there = [one for one in inputs.PROCESSES[name] if one.startswith(rival)]
    found = race(name, tuple(there))
    return found["rankmill"] / min((found[one] for one in there if one in found), default=math.nan)


def dicts_beside_pytrec_eval() -> float:
    found = race("dicts")
    return found["rankmill"] / found["pytrec_eval"]


def objects_beside_arrow() -> float:
    found = race("frames")
    return found["pandas, list cells"] / found["pandas, Arrow columns"]


# ------------------------------------------------------------------ 5: many metrics


@cache
def many(gains: str) -> float:
    """The processor time of all promised values as a ratio to that of map@12."""
    labels, predictions = dump(scaled(MILLION))
    runs = {"map@12": ["map@12"], "all": many_metrics.PROMISED}
    with tempfile.TemporaryDirectory() as folder:
        path = many_metrics.with_gains(labels, many_metrics.GAINS[gains], Path(folder))
        return dict(many_metrics.beside_map(path, predictions, runs, rounds))["all"].cpu_ratio


def over_catalogue() -> float:
    names = ("map@12", "and all five")
    runs = {name: catalogue.RUNS[name] for name in names}
    times = many_metrics.beside_map(*dump(scaled(833_333)), runs, rounds)
    return dict(times)[names[1]].cpu_ratio


# ------------------------------------------------------------------ 6: kernels


def ap_beside_sum() -> float:
    labels, predictions = aligned_lists(scaled(MILLION))
    return ratio(
        partial(rankmill.arrays.average_precision, labels, predictions, 12), predictions.values.sum
    )


def gap_beside_sort() -> float:
    users = scaled(MILLION)
    confidence, correct = confidences(12 * users)
    gap = partial(rankmill.arrays.global_average_precision, confidence, correct, users)
    return ratio(gap, partial(np.sort, confidence))


def demo_beside_reading() -> float:
    labels, predictions = dump(scaled(MILLION))

    def read() -> None:
        pq.read_table(labels, columns=["user_id", "items"])
        pq.read_table(predictions, columns=["user_id", "items", "scores"])

    return ratio(
        partial(rankmill.evaluate, labels, predictions, DEMO_METRICS, per_query=False), read
    )


# ------------------------------------------------------------------ the table


TEN = 10 * MILLION
BYTES = "peak_bytes"
ROWS = [
    Row("first evaluate of 1,000 rows, CPU above later ones", 1.0, "s", above_later, (1_000,)),
    Row("first map@12 of 1M rows, CPU", 4, "s", first, (MILLION,)),
    Row("rankmill warmup", 25, "s", warm_up),
    Row("evaluate of lists, 1 query, CPU", 0.5, "ms", small_evaluate, (1,)),
    Row("evaluate of lists, 100 queries, CPU", 0.8, "ms", small_evaluate, (100,)),
    Row("evaluate of lists, 1,000 queries, CPU", 2, "ms", small_evaluate, (1_000,)),
    Row("average_precision, 1 query, CPU", 0.5, "ms", small_average_precision, (1,)),
    Row("average_precision, 100 queries, CPU", 0.8, "ms", small_average_precision, (100,)),
    Row("average_precision, 1,000 queries, CPU", 2, "ms", small_average_precision, (1_000,)),
    Row("prepared labels, 100,000 queries, CPU / kernels", 1.2, "×", prepared_labels),
    Row("10M users / DuckDB's join", 0.22, "×", beside_peer, (TEN, "duckdb_join")),
    Row("10M users / DuckDB's lists", 0.4, "×", beside_peer, (TEN, "duckdb_lists")),
    Row("10M users / read_table", 1.0, "×", beside_peer, (TEN, "read_only")),
    Row("10M users, memory / join", 0.38, "×", beside_peer, (TEN, "duckdb_join", BYTES)),
    Row("1M users / DuckDB's join", 0.36, "×", beside_peer, (MILLION, "duckdb_join")),
    Row("1M users / DuckDB's lists", 0.48, "×", beside_peer, (MILLION, "duckdb_lists")),
    Row("1M users, strings / DuckDB's join", 0.45, "×", beside_peer_of_strings, ("duckdb_join",)),
    Row("1M users, strings / DuckDB's lists", 0.58, "×", beside_peer_of_strings, ("duckdb_lists",)),
    Row("TREC, 7M lines / pytrec_eval", 0.15, "×", beside_rival, ("trec", "pytrec_eval")),
    Row("TREC, 7M lines / trec_eval", 0.15, "×", beside_rival, ("trec", "trec_eval")),
    Row("CSV, 16M articles / DuckDB", 1.0, "×", beside_rival, ("csv", "DuckDB")),
    Row("CSV, 16M articles / pandas.read_csv", 1.5, "×", beside_rival, ("csv", "pandas")),
    Row("dicts / pytrec_eval", 0.2, "×", dicts_beside_pytrec_eval),
    Row("pandas, object columns / Arrow columns", 1.5, "×", objects_beside_arrow),
    Row("85 values, no gains, CPU / map@12", 1.36, "×", many, ("none",)),
    Row("85 values, gains 1 to 3, CPU / map@12", 1.54, "×", many, ("1 to 3",)),
    Row("85 values, gains 0 to 3, CPU / map@12", 1.75, "×", many, ("0 to 3",)),
    Row("85 values, all gains differ, CPU / map@12", 2.52, "×", many, ("all differ",)),
    Row("five catalogue metrics, 10M predictions, CPU / map@12", 1.25, "×", over_catalogue),
    Row("AP@12 of 12M aligned predictions / values.sum()", 6, "×", ap_beside_sum),
    Row("GAP of 12M float32 / np.sort", 1.0, "×", gap_beside_sort),
    Row("the demo's metrics, warm / read_table", 2.5, "×", demo_beside_reading),
    Row("1,000 rows, later, whole process", 0.33, "s", later, (1_000,)),
    Row("rankmill --help, whole process", 0.2, "s", help_shown),
]


def shown(value: float, unit: str) -> str:
    return f"{value * (1000 if unit == 'ms' else 1):.3g} {unit}"


def main() -> int:
    global scale, rounds
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="in the name of a row")
    parser.add_argument("--rounds", type=int, default=rounds, help="of each (%(default)s)")
    parser.add_argument("--scale", type=float, default=scale, help="of inputs (%(default)s)")
    asked = parser.parse_args()
    if asked.rounds < 1:
        parser.error("--rounds must be at least 1")
    scale, rounds = asked.scale, asked.rounds
    sizes = {"QUERIES": 10, "CUSTOMERS": 69_000, "USERS": 100, "DICT_QUERIES": 100}
    for name, least in sizes.items():
        setattr(inputs, name, max(least, int(getattr(inputs, name) * scale)))
    print(
        f"{platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"numpy {np.__version__}, numba {numba.__version__}, pyarrow {pa.__version__}, "
        f"rankmill {rankmill.__version__}; medians of {rounds} rounds in turn.\n"
    )
    print("| what | target | reached | kept |\n|---|---:|---:|---|")
    missed = 0
    for row in ROWS:
        if asked.only not in row.name:
            continue
        value = row.measure(*row.arguments)
        target = row.target / (1000 if row.unit == "ms" else 1)
        kept = "not here" if math.isnan(value) else "yes" if value <= target else "no"
        missed += kept == "no"
        cells = row.name, f"≤ {row.target:g} {row.unit}", shown(value, row.unit), kept
        print(f"| {' | '.join(cells)} |", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
