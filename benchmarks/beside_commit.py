"""Time whole commands of this checkout beside those of an earlier commit, in turn.

    git worktree add ../old COMMIT
    python benchmarks/beside_commit.py ../old [--queries 100_000 1_000_000] [--rounds 9]

Each round runs a command in both checkouts, the other one first every second time, after a round
that does not count and compiles kernels and modules. Shown are the medians of this checkout, and
the median of the rounds' ratios to the earlier commit with its 95 % interval by order statistics,
of CPU time (user and system) and of wall time. The script ends with 1 if the interval of a ratio of
CPU time is above 1.05. On a busy machine only CPU time counts.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from comparing import write

MOST = 1.05
METRICS = ("-m", "map@12", "-m", "ndcg@10", "-m", "recall@10")
PAIR = ("labels.parquet", "0.parquet", "1.parquet")
GATE = ("gate", "labels.parquet", "1.parquet", "--baseline", "0.parquet", "--rule")
COMMANDS = {
    "evaluate": ("evaluate", "labels.parquet", "0.parquet", "-m", "map@12"),
    "compare": ("compare", *PAIR, *METRICS),
    "compare --by": ("compare", *PAIR, *METRICS, "--by", "country"),
    "gate": (*GATE, "map@12 drop <= 5% confidence 0.95"),
    "gate, slices": (*GATE, "map@12[country=*] drop <= 5%"),
    "compare --cutoffs": ("compare", *PAIR, "-m", "map", "--cutoffs", "1,5,10,20"),
}


def seconds(checkout: Path, folder: Path, command: tuple[str, ...]) -> tuple[float, float]:
    """Return the CPU time and the wall time of one process."""
    # As after an installation, modules are compiled.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "rankmill", *command],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(checkout / "src")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert child.stderr is not None
    said = child.stderr.read().decode()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"{checkout}: {' '.join(command)}: {said}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - began


def ratios(here: np.ndarray, there: np.ndarray) -> tuple[float, float, float]:
    """Return the median of the rounds' ratios, and the ends of its interval of at least 95 %."""
    each = np.sort(here / there)
    n = len(each)
    below = np.cumsum([math.comb(n, i) for i in range(n)]) / 2.0**n
    end = max(0, int(np.searchsorted(below, 0.025, side="right")) - 1)
    return float(np.median(each)), float(each[end]), float(each[n - 1 - end])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("earlier", type=Path, help="a checkout of the earlier commit")
    parser.add_argument("--queries", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="+", default=list(COMMANDS), choices=COMMANDS)
    asked = parser.parse_args()
    sides = Path(__file__).resolve().parent.parent, asked.earlier.resolve()
    slower = False
    print("| queries | command | CPU | ratio, 95 % interval | wall | ratio, 95 % interval |")
    print("|---:|---|---:|---|---:|---|")
    for queries in asked.queries:
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), queries, 2)
            for what in asked.only:
                found = np.empty((asked.rounds + 1, 2, 2))
                for i in range(asked.rounds + 1):
                    for side in (0, 1) if i % 2 else (1, 0):
                        found[i, side] = seconds(sides[side], Path(name), COMMANDS[what])
                here, there = found[1:, 0], found[1:, 1]
                cells = [f"{queries:,}", what]
                for kind in (0, 1):
                    ratio, low, high = ratios(here[:, kind], there[:, kind])
                    cells += [f"{np.median(here[:, kind]):.2f} s"]
                    cells += [f"{ratio:.3f} ({low:.3f} to {high:.3f})"]
                    slower |= kind == 0 and low > MOST
                print("|", " | ".join(cells), "|", flush=True)
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
