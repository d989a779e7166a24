"""Check the promised speed, as ratios to yardsticks that are measured in the same run.

    python benchmarks/targets.py

Each operation and its yardstick take turns, and the medians of their times are compared. Whole
processes are timed from outside, so their start-up counts. The inputs are two dumps in the cache
folder, which are made if they are missing: that of the demo, and one whose predictions have their
users in another order than the labels. The script prints a markdown table. `peers.py` checks the
promises about whole processes beside their rivals.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rankmill
from bench_kernels import USERS, aligned_lists, confidences
from generate import Settings, cache_folder, cached_dump, generate

DEMO_METRICS = ["map@12", "first_hit@5", "gap"]
SMALL_USERS = 1_000


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def taking_turns(
    work: Callable[[], Any], yardstick: Callable[[], Any], rounds: int
) -> tuple[float, float]:
    """Median seconds of both, each run once before."""
    work()
    yardstick()
    times = [(seconds(work), seconds(yardstick)) for _ in range(rounds)]
    ours, theirs = zip(*times, strict=True)
    return statistics.median(ours), statistics.median(theirs)


def in_milliseconds(value: float) -> str:
    return f"{value * 1000:,.1f} ms"


def ratio_row(what: str, times: tuple[float, float], yardstick: str, target: float) -> list[str]:
    ours, theirs = times
    ratio = ours / theirs
    return [
        what,
        in_milliseconds(ours),
        f"{yardstick}: {in_milliseconds(theirs)}",
        f"≤ {target:g} ×",
        f"{ratio:.2f} ×",
        "yes" if ratio <= target else "no",
    ]


def seconds_row(what: str, measured: float, target: float) -> list[str]:
    reached = "yes" if measured <= target else "no"
    return [what, f"{measured:.2f} s", "", f"≤ {target:g} s", f"{measured:.2f} s", reached]


def average_precision_row(rounds: int) -> list[str]:
    labels, predictions = aligned_lists()
    times = taking_turns(
        lambda: rankmill.arrays.average_precision(labels, predictions, 12),
        predictions.values.sum,
        rounds,
    )
    return ratio_row("AP@12, 12M aligned int64 predictions", times, "`values.sum()`", 6)


def gap_row(rounds: int) -> list[str]:
    confidence, correct = confidences()
    times = taking_turns(
        lambda: rankmill.arrays.global_average_precision(confidence, correct, USERS),
        lambda: np.sort(confidence),
        rounds,
    )
    return ratio_row("GAP, 12M float32 confidences", times, "`np.sort`", 1.1)


def evaluation_row(order: str, labels: Path, predictions: Path, rounds: int) -> list[str]:
    def read() -> None:
        pq.read_table(labels, columns=["user_id", "items"])
        pq.read_table(predictions, columns=["user_id", "items", "scores"])

    times = taking_turns(
        lambda: rankmill.evaluate(labels, predictions, metrics=DEMO_METRICS, per_query=False),
        read,
        rounds,
    )
    what = f"the demo's evaluation, {order}, warm"
    return ratio_row(what, times, "`pq.read_table` of both", 2.5)


def run_command(*arguments: str, cache: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "rankmill", *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def process_rows(rounds: int) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        paths = generate(Path(folder), Settings(SMALL_USERS))
        cache = str(Path(folder) / "numba")
        metrics = [text for metric in DEMO_METRICS for text in ("-m", metric)]

        def evaluate() -> None:
            run_command("evaluate", *map(str, paths), *metrics, cache=cache)

        first = seconds(evaluate)
        later = statistics.median(seconds(evaluate) for _ in range(rounds))
        # The command that pip installs runs the same code under another name.
        usage = statistics.median(
            seconds(lambda: run_command("--help", cache=cache)) for _ in range(rounds)
        )
    rows = f"{SMALL_USERS:,} rows, whole process"
    return [
        seconds_row(f"{rows}, first ever (empty numba cache)", first, 8),
        seconds_row(f"{rows}, later", later, 0.35),
        seconds_row("`rankmill --help`, whole process", usage, 0.2),
    ]


def print_table(rows: list[list[str]]) -> None:
    header = ["what", "time", "yardstick", "target", "measured", "reached"]
    for row in [header, ["---"] * len(header), *rows]:
        print("| " + " | ".join(row) + " |")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="of each operation (%(default)s)")
    parser.add_argument("--dump", type=Path, default=cache_folder(), help="folder (%(default)s)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    dumps = {
        "shuffled": cached_dump(
            options.dump.with_name(f"{options.dump.name}-shuffled"), Settings(shuffle=True)
        ),
        "aligned": cached_dump(options.dump),
    }
    rows = [
        average_precision_row(options.rounds),
        gap_row(options.rounds),
        *(evaluation_row(order, *paths, options.rounds) for order, paths in dumps.items()),
        *process_rows(options.rounds),
    ]
    print(
        f"{platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"numpy {np.__version__}, numba {numba.__version__}, pyarrow {pa.__version__}, "
        f"rankmill {rankmill.__version__}; medians of {options.rounds} alternating rounds.\n"
    )
    print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
