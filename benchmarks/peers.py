"""Compare rankmill with programs that users would take instead, as whole processes in turn.

    python benchmarks/peers.py --users 1_000_000 [--strings] [--rounds 3] [--only rankmill,duckdb]
                               [--orders shuffled,aligned] [--threads 2] [--json FILE] [--svg FILE]

Each program computes map@12 of the generator's files in a new process, and its start-up is
measured too; `rivals/running.py` says exactly what a program computes. One round that does not
count first fills the file cache and the caches of compiled code. In real dumps the predictions have
their users in another order than the labels ("shuffled"); files with the same order ("aligned") are
measured too.

The script prints a markdown table with the medians of wall time and peak memory, and their ratios
to rankmill in the same run, size and order. A second table compares the measured sizes with the
promises for shuffled files.

A program that cannot hold the given number of users gets a smaller dump of the same kind, and
rankmill is measured on that dump too; nothing is extrapolated. The exit code is 1 if a program
failed or computed another value (relative difference above 1e-9).
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

# Only the standard library is imported. A child process begins as a copy of its parent, and Linux
# counts this copy in the peak memory of the child; so the parent has to stay small.
import charts

HERE = Path(__file__).resolve().parent
MILLION = 1_000_000
CLOSE = 1e-9
ORDERS = ("shuffled", "aligned")


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


#: The promises for shuffled files: (users, string ids?, rival) -> the largest allowed ratios of
#: rankmill's seconds and of its peak memory to those of the rival.
TARGETS = {
    (10 * MILLION, False, "duckdb_join"): (0.22, 0.38),
    (10 * MILLION, False, "duckdb_lists"): (0.4, None),
    (10 * MILLION, False, "read_only"): (1.0, 0.4),
    (MILLION, False, "duckdb_join"): (0.36, 1.0),
    (MILLION, False, "duckdb_lists"): (0.48, None),
    (MILLION, True, "duckdb_join"): (0.45, None),
    (MILLION, True, "duckdb_lists"): (0.58, None),
}


@dataclass
class Run:
    """One finished process."""

    seconds: float
    peak_bytes: int
    output: str
    cpu: float = 0.0


@dataclass
class Row:
    """All that was measured of one program at one size, in one order."""

    rival: Rival
    users: int
    order: str
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
        cpu = usage.ru_utime + usage.ru_stime
        return Run(seconds, usage.ru_maxrss * unit, output.read().decode(), cpu)


def bench_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rankmill" / "bench"


def made_dump(users: int, order: str, strings: bool = False) -> Path:
    """The folder of a dump, generated (in a process of its own) if it is not there."""
    shuffle = order == "shuffled"
    folder = bench_folder() / f"{users}{'-strings' * strings}{'-shuffled' * shuffle}"
    generate = [sys.executable, str(HERE / "generate.py"), str(folder), f"--users={users}"]
    options = ["--if-missing", *["--strings"] * strings, *["--shuffle"] * shuffle]
    subprocess.run([*generate, *options], check=True)
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


def compare(users: int, order: str, rivals: list[Rival], options: argparse.Namespace) -> list[Row]:
    """Measure the programs at one size and in one order, in turn."""
    folder = made_dump(users, order, options.strings)
    rows = []
    for rival in rivals:
        try:
            rows.append(Row(rival, users, order, metadata.version(rival.package)))
        except metadata.PackageNotFoundError:
            problem = f"{rival.package} is not installed"
            rows.append(Row(rival, users, order, "", problem=problem))
    for turn in range(options.rounds + 1):
        for row in rows:
            if row.problem:
                continue
            try:
                run, value = run_once(row.rival, folder, options.threads, options.limit)
            except FailedError as error:
                # The earlier measurements are dropped too, since the program may have changed.
                row.runs, row.value, row.problem = [], None, f"round {turn}: {error}"
                continue
            what = f"{users:,} {order}, round {turn}: {row.rival.name}"
            print(f"{what} {run.seconds:.2f} s", file=sys.stderr)
            row.value = value
            if turn:
                row.runs.append(run)
    ours = next(row.value for row in rows if row.rival is OURS)
    for row in rows:
        if None not in (ours, row.value) and not math.isclose(row.value, ours, rel_tol=CLOSE):
            row.problem = f"DISAGREES: {row.value!r}, rankmill {ours!r}"
    return rows


def table(rows: list[Row]) -> list[list[str]]:
    header = ["program", "users", "order", "wall", "× rankmill", "peak RSS", "× rankmill"]
    lines = [[*header, "map@12", "how"], ["---", "---:", "---", *["---:"] * 5, "---"]]
    ours = {(row.users, row.order): row for row in rows if row.rival is OURS and row.runs}
    for row in rows:
        name = f"{row.rival.label} ({row.version})" if row.version else row.rival.label
        cells = ["–"] * 4
        if row.runs:
            cells[::2] = f"{row.seconds:.2f} s", f"{row.peak_bytes / 1e6:,.0f} MB"
            if base := ours.get((row.users, row.order)):
                cells[1] = f"{row.seconds / base.seconds:.2f}"
                cells[3] = f"{row.peak_bytes / base.peak_bytes:.2f}"
        value = "–" if row.value is None else f"{row.value:.12f}"
        lines.append([name, f"{row.users:,}", row.order, *cells, value])
        lines[-1].append(row.problem or row.rival.remark)
    return lines


def target_table(rows: list[Row], strings: bool) -> list[list[str]]:
    """What was promised of the sizes and rivals that were measured; nothing if that is none."""
    lines = [
        ["shuffled", "users", "of", "target", "measured", "reached"],
        ["---", "---:", *["---"] * 4],
    ]
    measured = {
        (row.users, row.rival.name): row for row in rows if row.order == "shuffled" and row.runs
    }
    for (users, of_strings, name), targets in TARGETS.items():
        ours, theirs = measured.get((users, OURS.name)), measured.get((users, name))
        if of_strings != strings or ours is None or theirs is None:
            continue
        ratios = ours.seconds / theirs.seconds, ours.peak_bytes / theirs.peak_bytes
        for what, target, ratio in zip(("wall", "peak RSS"), targets, ratios, strict=True):
            if target is not None:
                reached = "yes" if ratio <= target else "no"
                cells = [what, f"{users:,}", theirs.rival.label]
                lines.append([*cells, f"≤ {target:g} ×", f"{ratio:.2f} ×", reached])
    return lines if len(lines) > 2 else []


def drawing(rows: list[Row], ids: str) -> str:
    groups = []
    for users, order in dict.fromkeys((row.users, row.order) for row in rows):
        chosen = [row for row in rows if (row.users, row.order) == (users, order) and row.runs]
        bars = tuple(
            charts.Bar(
                row.rival.label,
                (row.seconds, row.peak_bytes),
                (f"{row.seconds:.2f} s", f"{row.peak_bytes / 1e9:.2f} GB"),
                {OURS: "ours", FLOOR: "floor"}.get(row.rival, "bar"),
            )
            for row in sorted(chosen, key=speed)
        )
        if bars:
            groups.append(charts.Group(f"{users:,} users, {order}", bars))
    title = f"map@12 of 12 predictions per user, {ids} ids: whole process"
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
    parser.add_argument("--orders", default=",".join(ORDERS), help="of users (%(default)s)")
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
    options.orders = orders_of(options.orders, parser)
    wanted = tuple(filter(None, (options.only or "").split(",")))
    for word in wanted:
        if not any(name.startswith(word) for name in names):
            parser.error(f"--only: no program begins with {word!r}")
    options.rivals = [rival for rival in RIVALS[1:] if not wanted or rival.name.startswith(wanted)]
    return options


def orders_of(text: str, parser: argparse.ArgumentParser) -> list[str]:
    orders = text.split(",")
    if not set(orders) <= set(ORDERS):
        parser.error(f"--orders: {text!r} is no list of {', '.join(ORDERS)}")
    return orders


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    sizes: dict[int, list[Rival]] = {options.users: [OURS]}
    for rival in options.rivals:
        sizes.setdefault(min(options.users, rival.most or options.users), [OURS]).append(rival)
    rows = [
        row
        for users, rivals in sizes.items()
        for order in options.orders
        for row in compare(users, order, rivals, options)
    ]
    print(", ".join(f"{name} {value}" for name, value in setting(options).items()))
    for lines in filter(None, (table(rows), target_table(rows, options.strings))):
        print("\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines))
    if options.json:
        options.json.write_text(as_json(rows, options))
    if options.svg:
        options.svg.write_text(drawing(rows, "string" if options.strings else "integer"))
    return int(any(row.problem and row.version for row in rows))


if __name__ == "__main__":
    sys.exit(main())
