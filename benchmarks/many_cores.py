"""Measure how rankmill and DuckDB get faster with more threads, and compute it for more cores.

    python benchmarks/many_cores.py [--users 10_000_000] [--rounds 5] [--threads 1,2,4,8,16]
                                    [--cores 16] [--py-spy PROGRAM]

Both compute map@12 of the generator's shuffled files as whole processes, in turn, on 1, 2, 4 ...
threads, as many as there are cores. The script prints medians of wall and CPU time, and their
ratio.

What takes as long on any number of threads is the serial part. Of the least squares of
wall = serial + parallel / threads, the script prints both parts, and what they come to on `--cores`
cores. That is computed and not measured; it assumes that memory keeps up. With the path of py-spy,
whose version is printed, it also says for how long some thread held Python's lock: no number of
cores takes less than that.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from peers import OURS, RIVALS, Rival, Run, evaluate_command, made_dump, run_once

RATE = 200  # samples a second


def fitted(walls: dict[int, float]) -> tuple[float, float]:
    """The serial and the parallel seconds that fit the wall time of each number of threads."""
    shares = {threads: 1 / threads for threads in walls}
    middle, mean = statistics.fmean(shares.values()), statistics.fmean(walls.values())
    spread = sum((share - middle) ** 2 for share in shares.values())
    both = sum((shares[one] - middle) * (walls[one] - mean) for one in walls)
    parallel = max(0.0, both / spread)
    return max(0.0, mean - parallel * middle), parallel


def lock_seconds(py_spy: str, folder: Path, threads: int) -> float:
    """For how long a thread of one run held Python's lock, as py-spy samples it."""
    files = folder / "labels.parquet", folder / "predictions.parquet"
    with tempfile.TemporaryDirectory() as place:
        found = Path(place) / "samples"
        how = ["record", "--gil", "--format", "raw", "--rate", str(RATE), "--output", str(found)]
        command = [py_spy, *how, "--", *evaluate_command(*files, threads)]
        subprocess.run(command, check=True, capture_output=True)
        return sum(int(line.rpartition(" ")[2]) for line in found.read_text().splitlines()) / RATE


Medians = dict[tuple[Rival, int], float]


def measured_in_turn(
    programs: list[Rival], counts: list[int], folder: Path, rounds: int
) -> tuple[Medians, Medians]:
    """The wall and CPU seconds of each program on each number of threads."""
    runs: dict[tuple[Rival, int], list[Run]] = {}
    values = set()
    for number in range(rounds + 1):
        for program in programs:
            for count in counts:
                run, value = run_once(program, folder, count, 3600)
                values.add(round(value or 0, 9))
                if number:  # the first round fills caches
                    runs.setdefault((program, count), []).append(run)
    if len(values) > 1:
        raise SystemExit(f"error: the programs differ: {values}")
    walls, cpus = (
        {one: statistics.median(getattr(run, name) for run in done) for one, done in runs.items()}
        for name in ("seconds", "cpu")
    )
    return walls, cpus


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--users", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", help="such as 1,2,4; by default powers of two up to the cores")
    parser.add_argument("--cores", type=int, default=16, help="what the time is computed for")
    parser.add_argument("--py-spy", metavar="PROGRAM")
    options = parser.parse_args()
    there = os.cpu_count() or 1
    counts = [1 << i for i in range(there.bit_length()) if 1 << i <= there]
    if options.threads:
        counts = sorted({int(one) for one in options.threads.split(",")})
    if len(counts) < 2:
        parser.error("expected two numbers of threads or more, such as --threads 1,2")
    programs = [OURS, next(one for one in RIVALS if one.name == "duckdb_lists")]
    folder = made_dump(options.users, "shuffled")
    walls, cpus = measured_in_turn(programs, counts, folder, options.rounds)
    print(f"{options.users:,} users, shuffled, {there} cores, medians of {options.rounds} rounds\n")
    print("| threads | rankmill | CPU | DuckDB, lists | CPU | wall, ratio |")
    print("|--:|--:|--:|--:|--:|--:|")
    for count in counts:
        ours, theirs = (walls[one, count] for one in programs)
        seconds = (f"{of[one, count]:.2f} s" for one in programs for of in (walls, cpus))
        print(f"| {count} | {' | '.join(seconds)} | {ours / theirs:.2f} |")
    print()
    computed = []
    for program in programs:
        serial, parallel = fitted({count: walls[program, count] for count in counts})
        computed.append(serial + parallel / options.cores)
        print(
            f"{program.label}: {serial:.2f} s serial and {parallel:.2f} s parallel: computed, not "
            f"measured, {computed[-1]:.2f} s on {options.cores} cores"
        )
    print(f"ratio on {options.cores} cores, computed: {computed[0] / computed[1]:.2f}")
    if options.py_spy:
        version = subprocess.check_output([options.py_spy, "--version"], text=True).strip()
        held = statistics.median(
            lock_seconds(options.py_spy, folder, counts[-1]) for _ in range(options.rounds)
        )
        print(f"Python's lock was held for {held:.2f} s with {counts[-1]} threads ({version})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
