"""Hold Spark 4, Spark Connect and Spark 3.5 to the bits of one machine, in 153 cases.

    python benchmarks/spark_cases.py [--only TEXT] [--step N] [--sessions 4 connect 3.5]

The cases are those of `tests/spark/cases.py`. Each session runs them in a process of its own, one
after the other: the usual cases in local[2], those that kill executors in a cluster of two
processes. A row shows for each session the seconds that a case took, or the first line of what
differs. The script exits 1 if a case differs. It looks for both versions of Spark where
`scripts/test-spark --install` and `scripts/test-spark --spark 3.5.9 --install` put them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = [ROOT / "tests" / "spark", ROOT / "tests" / "support"]
SESSIONS = ("4", "connect", "3.5")
CLUSTER = "local-cluster[2,1,1024]"


def begun(kind: str, master: str) -> Any:
    """Start a session of a kind, with the settings of the tests."""
    from pyspark.sql import SparkSession

    from spark_sessions import HARMED, SETTINGS

    builder = SparkSession.builder
    builder = builder.remote(master) if kind == "connect" else builder.master(master)
    more = HARMED if master == CLUSTER else {}
    for name, value in {**SETTINGS, **more}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def run(kind: str, only: str, step: int) -> None:
    """Run the cases in this process; a line of JSON on standard output says what came of each."""
    sys.path[:0] = map(str, TESTS)
    warnings.simplefilter("ignore")
    from cases import CASES

    chosen = [case for case in CASES if only in case.name][::step]
    for harms in (False, True):
        cases = [case for case in chosen if case.harms == harms]
        session = begun(kind, CLUSTER if harms else "local[2]") if cases else None
        for case in cases:
            began, error = time.perf_counter(), ""
            try:
                case.run(session)
            except Exception as found:  # each of them is a difference
                traceback.print_exc()
                error = f"{type(found).__name__}: {next(iter(str(found).splitlines()), '')}"
            print(json.dumps([case.name, time.perf_counter() - began, error]), flush=True)
        if session is not None:
            session.stop()


def told(kind: str, folder: Path, asked: list[str], log: Path) -> dict[str, tuple[float, str]]:
    """Run the cases in a process with a Spark; what it says on standard error goes to a file."""
    paths = [str(folder), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    found = {}
    command = [sys.executable, __file__, "--run", kind, *asked]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process,
    ):
        for line in process.stdout or ():
            if line.startswith("["):  # Spark writes there, too
                name, seconds, error = json.loads(line)
                found[name] = seconds, error
                print(f"{kind:8} {seconds:6.1f} s  {name}  {error}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="the cases with TEXT in them")
    parser.add_argument("--step", type=int, default=1, metavar="N", help="one case in N")
    parser.add_argument("--sessions", nargs="+", choices=SESSIONS, default=SESSIONS)
    parser.add_argument("--spark-4", type=Path, default=ROOT / ".venv" / "spark", metavar="DIR")
    parser.add_argument("--spark-3", type=Path, default=ROOT / ".venv" / "spark-3.5.9")
    parser.add_argument("--logs", type=Path, default=Path.cwd(), help="what Spark says, by session")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments.run, arguments.only, arguments.step)
        return
    asked = ["--only", arguments.only, "--step", str(arguments.step)]
    results = {}
    for kind in arguments.sessions:
        folder = arguments.spark_3 if kind == "3.5" else arguments.spark_4
        if not (folder / "pyspark").is_dir():
            sys.exit(f"{folder} has no pyspark: scripts/test-spark --install puts it there")
        results[kind] = told(kind, folder, asked, arguments.logs / f"spark-{kind}.log")
    sys.path[:0] = [*map(str, TESTS), str(arguments.spark_4)]
    from cases import CASES

    names = [case.name for case in CASES if arguments.only in case.name][:: arguments.step]
    print("|".join(["", " case ", *(f" {kind} " for kind in results), ""]))
    print("| --- |" + " ---: |" * len(results))
    missing = 0.0, "it was not reached"
    wrong = 0
    for name in names:
        cells = [of.get(name, missing) for of in results.values()]
        wrong += sum(bool(error) for _, error in cells)
        texts = [error or f"{seconds:.1f} s" for seconds, error in cells]
        print(f"| {name} | {' | '.join(texts)} |")
    for kind, of in results.items():
        same, seconds = sum(not e for _, e in of.values()), sum(s for s, _ in of.values())
        print(f"{kind}: {same} of {len(names)} cases have the same bits, {seconds / 60:.1f} min")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
