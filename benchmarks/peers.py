"""Compare rankmill with what one would reach for instead: whole processes, taking turns.

    python benchmarks/peers.py --users 1_000_000 [--strings] [--rounds 3] [--only rankmill,duckdb]
                               [--threads 2] [--json FILE] [--svg FILE]

Each program computes map@12 of the generator's files (`rivals/running.py` says of what exactly) in
a fresh process, start-up included; one uncounted round first fills the file cache and the caches of
compiled code. Prints medians of wall time and peak memory, and ratios to rankmill of the same run
and size, as a markdown table. A program that cannot hold so many users gets a smaller dump of the
same kind, and rankmill is measured on that one too; nothing is extrapolated. The exit code is 1 if
a program failed or did not agree on the value (relative difference above 1e-9).
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
import threading
import time
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

# The standard library only: Linux counts the memory of the process that starts a program towards
# that program's peak (the child begins as its copy), so this one has to stay small.
import charts

HERE = Path(__file__).resolve().parent
MILLION = 1_000_000
CLOSE = 1e-9


@dataclass(frozen=True)
class Rival:
    """A program to measure; ``most`` is the number of users that it can hold in fair time."""

    name: str
    label: str
    package: str
    most: int | None = None
    remark: str = ""


OURS = Rival("rankmill", "rankmill", "rankmill")
FLOOR = Rival("read_only", "read only (pyarrow)", "pyarrow", remark="reads, computes nothing")
DICTS = "takes dicts; divides by R: scaled a user by R / min(12, R); repeats renamed"
RIVALS = (
    OURS,
    FLOOR,
    Rival("duckdb_join", "DuckDB, join", "duckdb", remark="unnest, join, window"),
    Rival("duckdb_lists", "DuckDB, lists", "duckdb", remark="list functions, no unnest"),
    Rival("polars_join", "Polars, join", "polars", remark="explode, join, group; streaming"),
    Rival("polars_lists", "Polars, lists", "polars", remark="list.contains; streaming"),
    Rival("pandas_merge", "pandas", "pandas", MILLION, "Arrow columns; explode, merge"),
    Rival("pytrec", "pytrec_eval", "pytrec-eval-terrier", MILLION, DICTS),
    Rival("ranx_dicts", "ranx", "ranx", MILLION, DICTS),
    Rival("plain_python", "plain Python", "pyarrow", MILLION, "sets and loops"),
)


@dataclass
class Run:
    """One finished process."""

    seconds: float
    peak_bytes: int
    output: str


@dataclass
class Row:
    """All that was measured of one program at one size."""

    rival: Rival
    users: int
    version: str
    runs: list[Run] = field(default_factory=list)
    value: float | None = None
    problem: str = ""

    @property
    def seconds(self) -> float:
        return statistics.median(run.seconds for run in self.runs)

    @property
    def peak_bytes(self) -> float:
        return statistics.median(run.peak_bytes for run in self.runs)


class FailedError(Exception):
    """A program ended with an error, or had to be stopped."""


def measured(
    command: list[str], environment: dict[str, str] | None = None, limit: float = 3600
) -> Run:
    """Run a command to its end; its wall time, and its own peak of resident memory."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=errors,
            cwd=HERE,
            env={**os.environ, **(environment or {})},
        )
        stopper = threading.Timer(limit, process.kill)
        stopper.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        finally:
            stopper.cancel()
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            lines = errors.read().decode(errors="replace").strip().splitlines() or [""]
            told = next((line for line in reversed(lines) if "rror" in line), lines[-1])
            reason = f"stopped after {seconds:.0f} s" if seconds >= limit else told.strip()
            raise FailedError(f"exit code {process.returncode}: {reason}")
        unit = 1 if sys.platform == "darwin" else 1024
        return Run(seconds, usage.ru_maxrss * unit, output.read().decode())


def bench_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rankmill" / "bench"


def made_dump(users: int, strings: bool = False) -> Path:
    """The folder of a dump, generated (in a process of its own) if it is not there."""
    folder = bench_folder() / f"{users}{'-strings' if strings else ''}"
    generate = [sys.executable, str(HERE / "generate.py"), str(folder), f"--users={users}"]
    subprocess.run([*generate, "--if-missing", *["--strings"] * strings], check=True)
    return folder


def evaluate_command(labels: Path, predictions: Path, threads: int) -> list[str]:
    command = [sys.executable, "-m", "rankmill", "evaluate", str(labels), str(predictions)]
    return [*command, "-m", "map@12", "--format", "json", "--threads", str(threads)]


def run_once(rival: Rival, folder: Path, threads: int, limit: float) -> tuple[Run, float | None]:
    if rival is OURS:
        files = folder / "labels.parquet", folder / "predictions.parquet"
        run = measured(evaluate_command(*files, threads), limit=limit)
        return run, json.loads(run.output)["metrics"]["map@12"]
    limits = {"POLARS_MAX_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", f"rivals.{rival.name}", str(folder), str(threads)]
    run = measured(command, limits, limit)
    return run, json.loads(run.output)["value"]


def compare(users: int, rivals: list[Rival], options: argparse.Namespace) -> list[Row]:
    """Measure the programs at one size, in turn."""
    folder = made_dump(users, options.strings)
    rows = []
    for rival in rivals:
        try:
            rows.append(Row(rival, users, metadata.version(rival.package)))
        except metadata.PackageNotFoundError:
            rows.append(Row(rival, users, "", problem=f"{rival.package} is not installed"))
    for turn in range(options.rounds + 1):
        for row in rows:
            if row.problem:
                continue
            try:
                run, value = run_once(row.rival, folder, options.threads, options.limit)
            except FailedError as error:
                # What was measured before goes too: it may be of another state of the program.
                row.runs, row.value, row.problem = [], None, f"round {turn}: {error}"
                continue
            print(f"{users:,} round {turn}: {row.rival.name} {run.seconds:.2f} s", file=sys.stderr)
            row.value = value
            if turn:
                row.runs.append(run)
    ours = next(row.value for row in rows if row.rival is OURS)
    for row in rows:
        if None not in (ours, row.value) and not math.isclose(row.value, ours, rel_tol=CLOSE):
            row.problem = f"DISAGREES: {row.value!r}, rankmill {ours!r}"
    return rows


def table(rows: list[Row]) -> list[list[str]]:
    header = ["program", "users", "wall", "× rankmill", "peak RSS", "× rankmill", "map@12", "how"]
    lines = [header, ["---", *["---:"] * 6, "---"]]
    ours = {row.users: row for row in rows if row.rival is OURS and row.runs}
    for row in rows:
        name = f"{row.rival.label} ({row.version})" if row.version else row.rival.label
        cells = ["–"] * 4
        if row.runs:
            cells[::2] = f"{row.seconds:.2f} s", f"{row.peak_bytes / 1e6:,.0f} MB"
            if base := ours.get(row.users):
                cells[1] = f"{row.seconds / base.seconds:.2f}"
                cells[3] = f"{row.peak_bytes / base.peak_bytes:.2f}"
        value = "–" if row.value is None else f"{row.value:.12f}"
        lines.append([name, f"{row.users:,}", *cells, value, row.problem or row.rival.remark])
    return lines


def drawing(rows: list[Row], ids: str) -> str:
    groups = []
    for users in dict.fromkeys(row.users for row in rows):
        bars = tuple(
            charts.Bar(
                row.rival.label,
                (row.seconds, row.peak_bytes),
                (f"{row.seconds:.2f} s", f"{row.peak_bytes / 1e9:.2f} GB"),
                {OURS: "ours", FLOOR: "floor"}.get(row.rival, "bar"),
            )
            for row in sorted((row for row in rows if row.users == users and row.runs), key=speed)
        )
        if bars:
            groups.append(charts.Group(f"{users:,} users", bars))
    title = f"map@12 of 12 predictions a user, {ids} ids: whole process"
    return charts.bar_chart(title, ["wall time", "peak memory"], groups)


def speed(row: Row) -> float:
    return row.seconds


def setting(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "threads": options.threads,
        "rounds": options.rounds,
        "ids": "string" if options.strings else "int",
    }


def as_json(rows: list[Row], options: argparse.Namespace) -> str:
    """Render everything that was measured, each run included."""
    found = []
    for row in rows:
        runs = [{"seconds": run.seconds, "peak_bytes": run.peak_bytes} for run in row.runs]
        medians = {"seconds": row.seconds, "peak_bytes": row.peak_bytes} if runs else {}
        found.append({**asdict(row), **medians, "runs": runs})
    return json.dumps({**setting(options), "rows": found}, indent=1) + "\n"


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=MILLION)
    parser.add_argument("--strings", action="store_true", help="64-hex users, 9-digit items")
    parser.add_argument("--rounds", type=int, default=3, help="counted ones (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="for each (%(default)s)")
    parser.add_argument("--limit", type=float, default=900, help="seconds a run (%(default)s)")
    names = [rival.name for rival in RIVALS]
    parser.add_argument("--only", help=f"of {', '.join(names)}; a beginning suffices")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--svg", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    if min(options.users, options.rounds, options.threads) < 1:
        parser.error("--users, --rounds and --threads must be at least 1")
    wanted = tuple(filter(None, (options.only or "").split(",")))
    for word in wanted:
        if not any(name.startswith(word) for name in names):
            parser.error(f"--only: no program begins with {word!r}")
    options.rivals = [rival for rival in RIVALS[1:] if not wanted or rival.name.startswith(wanted)]
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    sizes: dict[int, list[Rival]] = {options.users: [OURS]}
    for rival in options.rivals:
        sizes.setdefault(min(options.users, rival.most or options.users), [OURS]).append(rival)
    rows = [row for users, rivals in sizes.items() for row in compare(users, rivals, options)]
    print(", ".join(f"{name} {value}" for name, value in setting(options).items()) + "\n")
    for line in table(rows):
        print("| " + " | ".join(line) + " |")
    if options.json:
        options.json.write_text(as_json(rows, options))
    if options.svg:
        options.svg.write_text(drawing(rows, "string" if options.strings else "integer"))
    return int(any(row.problem and row.version for row in rows))


if __name__ == "__main__":
    sys.exit(main())
