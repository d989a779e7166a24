"""Time the trend of a history of many runs, as a process and inside one.

python benchmarks/history.py [--runs 10_000] [--repeat 5]
"""

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq

from rankmill.nightly.history import History
from rankmill.nightly.record import contents_of, run_table
from rankmill.results.result import Result

METRICS = {"map@12": 0.08, "ndcg@12": 0.12, "gap": 0.05}
BEGIN = datetime(2000, 1, 1, tzinfo=UTC)


def make(folder: Path, runs: int) -> None:
    folder.mkdir()
    errors = dict.fromkeys(METRICS, 0.001)
    for number in range(runs):
        result = Result({name: v + number * 1e-7 for name, v in METRICS.items()}, errors, {}, 10**6)
        tags = {"model": f"v{number}"}
        table = run_table(result, tags=tags, time=BEGIN + timedelta(hours=number))
        path, _ = contents_of(table, folder)[-1]
        pq.write_table(table, path)  # no fsync


def seconds(work: list[str] | Path) -> float:
    began = time.perf_counter()
    if isinstance(work, Path):
        History(work).trend("map@12")
    else:
        subprocess.run(work, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "history"
        make(folder, asked.runs)
        command = [sys.executable, "-m", "rankmill", "history", str(folder)]
        for what, work in (("in a process", folder), ("rankmill history", command)):
            times = sorted(seconds(work) for _ in range(asked.repeat))
            print(f"{what:16}  {asked.runs:,} runs  median {times[len(times) // 2]:.2f} s")


if __name__ == "__main__":
    main()
