"""Measure how the process ``rankmill evaluate -m map@12`` scales with the number of users.

    python benchmarks/scaling.py [--users 1_000_000,10_000_000,100_000_000] [--rounds 3]
                                 [--orders shuffled,aligned] [--threads 2] [--memory 8GiB]
                                 [--billion] [--json FILE] [--svg FILE] [--clean]

Dumps of up to BASE users (10 million) come from the generator. A larger dump is made of copies of
the base dump. Each copy is a file of labels and a file of predictions, with its user ids shifted so
that all ids are distinct. For each order, 100 million users take about 11 GB in the cache folder;
the script first checks that the disk has room. The files stay there for the next run unless --clean
is given. The value is checked too, because copies must not change the mean.

In "aligned" files both sides are sorted by user, and only as many labels are held as --memory
allows. In "shuffled" files the predictions of each copy are in another order than its labels. The
script prints a markdown table with the medians of wall time, peak memory and time per million
users.

With --billion, each size is also evaluated with means, with gap and a median, as a part of PARTS by
--part, and merged. A second table has CPU time, memory, and the bytes of states, with a row for a
billion users, as they grow from the smallest size to the largest. ``rankmill docs parts`` has it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

# As in peers.py, only the standard library is imported, because the memory of this process counts.
import charts
import peers

BASE = 10_000_000
SIDES = ("labels", "predictions")
BILLION = 10**9
PARTS = 8
MEANS = ("-m", "map@12", "-m", "ndcg@10", "-m", "recall@12")
POOLED = (*MEANS, "-m", "gap", "-m", "recall@12:median")
STAMP_KEY = b"rankmill.copy"
ROOM = 1.1
BLOCK = 1 << 24


@dataclass
class Point:
    """What was measured at one size; seconds and bytes are medians."""

    users: int
    order: str
    file_bytes: int
    seconds: float
    peak_bytes: float
    value: float
    runs: list[tuple[float, int]]

    @property
    def per_million(self) -> float:
        return self.seconds / self.users * 1e6


# ------------------------------------------------------------------ copies


def shift(source: Path, target: Path, offset: int, stamp: bytes) -> None:
    """Copy a file, row group by row group, with ``offset`` added to all user ids."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from generate import whole_or_nothing

    if target.exists() and (pq.read_schema(target).metadata or {}).get(STAMP_KEY) == stamp:
        return
    with whole_or_nothing(target) as temporary, pq.ParquetFile(source) as file:
        schema = file.schema_arrow.with_metadata({STAMP_KEY: stamp})
        with pq.ParquetWriter(temporary, schema) as writer:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                place = table.column_names.index("user_id")
                shifted = pc.add(table["user_id"], pa.scalar(offset, pa.int64()))
                table = table.set_column(place, schema.field(place), shifted)
                writer.write_table(table.cast(schema), row_group_size=table.num_rows)


def beyond_last_user(folder: Path) -> int:
    """A number above all user ids, from the statistics of the files."""
    import pyarrow.parquet as pq

    last = 0
    for side in SIDES:
        footer = pq.read_metadata(folder / f"{side}.parquet")
        place = footer.schema.to_arrow_schema().names.index("user_id")
        for group in range(footer.num_row_groups):
            last = max(last, footer.row_group(group).column(place).statistics.max)
    return last + 1


def copy_dump(base: Path, folder: Path, copies: int) -> None:
    """Fill ``folder`` with as many shifted copies; runs in a process of its own."""
    step = beyond_last_user(base)
    for side in SIDES:
        source = base / f"{side}.parquet"
        (folder / side).mkdir(parents=True, exist_ok=True)
        for copy in range(copies):
            stamp = f"{source.name} {source.stat().st_size} {source.stat().st_mtime_ns} {copy}"
            target = folder / side / f"part-{copy:03}.parquet"
            shift(source, target, copy * step, stamp.encode())


def files_below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


def size_of(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def copies_folder(users: int, base: int, order: str) -> Path:
    shuffled = "-shuffled" * (order == "shuffled")
    return peers.bench_folder() / f"{users // base}-copies-of-{base}{shuffled}"


def made_copies(users: int, base_users: int, order: str) -> Path:
    """The folder of a size above the base, built unless it is there; stops if the disk is small."""
    base, copies = peers.made_dump(base_users, order), users // base_users
    folder = copies_folder(users, base_users, order)
    wanted = int(copies * size_of(files_below(base)) * ROOM)
    missing = max(0, wanted - size_of(files_below(folder)))
    free = shutil.disk_usage(base).free
    print(
        f"{users:,} users, {order}: {copies} copies, {wanted / 1e9:.1f} GB in {folder}, "
        f"of which {missing / 1e9:.1f} GB may have to be written; {free / 1e9:.1f} GB free",
        file=sys.stderr,
    )
    if missing > free:
        raise SystemExit(f"error: too little room in {peers.bench_folder()}: see above")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(copy_dump, base, folder, copies).result()
    return folder


# ------------------------------------------------------------------ measuring


def sources(users: int, base: int, order: str) -> tuple[Path, Path]:
    """The labels and the predictions of a size: two files, or two folders of copies."""
    if users <= base:
        folder = peers.made_dump(users, order)
        return folder / "labels.parquet", folder / "predictions.parquet"
    folder = made_copies(users, base, order)
    return folder / "labels", folder / "predictions"


def blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK):
            yield block


def warm(paths: list[Path]) -> None:
    """Read the files once, so that they come from the file cache if they fit into it."""
    for path in paths:
        for _ in blocks(path):
            pass


def measured(users: int, order: str, options: argparse.Namespace) -> Point:
    labels, predictions = sources(users, options.base, order)
    files = [path for side in (labels, predictions) for path in files_of(side)]
    command = peers.evaluate_command(labels, predictions, options.threads)
    command += ["--memory", options.memory]
    warm(files)
    runs = []
    for turn in range(options.rounds):
        run = peers.measured(command)
        print(f"{users:,} {order}, round {turn + 1}: {run.seconds:.2f} s", file=sys.stderr)
        runs.append(run)
    return Point(
        users,
        order,
        size_of(files),
        statistics.median(run.seconds for run in runs),
        statistics.median(run.peak_bytes for run in runs),
        json.loads(runs[-1].output)["metrics"]["map@12"],
        [(run.seconds, run.peak_bytes) for run in runs],
    )


def files_of(path: Path) -> list[Path]:
    return files_below(path) if path.is_dir() else [path]


# ------------------------------------------------------------------ a billion


@dataclass
class Step:
    """What one process of an evaluation took at one size."""

    users: int
    name: str
    cpu: float
    seconds: float
    peak_bytes: int
    written: int = 0


def extrapolated(first: Step, last: Step) -> Step:
    """What a billion users take if the rest grows as it did between two sizes."""
    times = (BILLION - last.users) / (last.users - first.users)

    def grown(name: str) -> float:
        one, other = getattr(first, name), getattr(last, name)
        return float(other + times * max(0, other - one))

    peak, written = int(grown("peak_bytes")), int(grown("written"))
    return Step(BILLION, last.name, grown("cpu"), grown("seconds"), peak, written)


def steps(users: int, order: str, options: argparse.Namespace) -> Iterator[Step]:
    """Evaluate a size with and without parts, each in a process of its own."""
    labels, predictions = sources(users, options.base, order)
    command = peers.evaluate_command(labels, predictions, options.threads)[:6]
    command += ["--threads", str(options.threads), "--memory", options.memory]
    share = ["--part", f"1/{PARTS}"]
    merge = [*command[:3], "merge"]
    with tempfile.TemporaryDirectory(dir=peers.bench_folder()) as name:
        states = {one: Path(name) / f"{one}.arrow" for one in ("means", "pooled", "part", "second")}
        for what, given, state in (
            ("means", [*command, *MEANS, "--quiet"], None),
            ("state of means", [*command, *MEANS, "--state"], states["means"]),
            ("gap, median", [*command, *POOLED, "--quiet"], None),
            ("state of gap, median", [*command, *POOLED, "--state"], states["pooled"]),
            (f"means, part of {PARTS}", [*command, *MEANS, *share, "--state"], states["part"]),
            (
                "second pass of gap",
                [*command, *POOLED, "--second", str(states["pooled"]), "--state"],
                states["second"],
            ),
            ("merge", [*merge, str(states["pooled"]), str(states["second"])], None),
        ):
            run = peers.measured([*given, *([] if state is None else [str(state)])])
            written = 0 if state is None else state.stat().st_size
            print(f"{users:,} {order}, {what}: {run.cpu:.2f} s of CPU", file=sys.stderr)
            yield Step(users, what, run.cpu, run.seconds, run.peak_bytes, written)


def table_of_steps(found: list[Step]) -> list[list[str]]:
    """A row for each size and step, and for a billion users."""
    header = ["step", "users", "CPU", "wall", "peak RSS", "state"]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    for name in dict.fromkeys(one.name for one in found):
        measured = [one for one in found if one.name == name]
        more = [extrapolated(measured[0], measured[-1])] if len(measured) > 1 else []
        for one in [*measured, *more]:
            lines.append(
                [
                    one.name,
                    f"{one.users:,}",
                    f"{one.cpu:,.1f} s",
                    f"{one.seconds:,.1f} s",
                    f"{one.peak_bytes / 1e6:,.0f} MB",
                    f"{one.written / 1e6:,.3f} MB" if one.written else "",
                ]
            )
    return lines


# ------------------------------------------------------------------ report


def table(points: list[Point], base: int) -> list[list[str]]:
    header = ["users", "order", "files", "wall", "s per million users", "peak RSS", "map@12"]
    lines = [header, ["---:", "---", *["---:"] * (len(header) - 2)]]
    for point in points:
        copies = f" ({point.users // base} copies)" if point.users > base else ""
        lines.append(
            [
                f"{point.users:,}{copies}",
                point.order,
                f"{point.file_bytes / 1e9:.2f} GB",
                f"{point.seconds:.2f} s",
                f"{point.per_million:.3f}",
                f"{point.peak_bytes / 1e6:,.0f} MB",
                f"{point.value:.12f}",
            ]
        )
    return lines


def drawing(points: list[Point]) -> str:
    panels = []
    for order in dict.fromkeys(point.order for point in points):
        chosen = [point for point in points if point.order == order]
        seconds = tuple((point.users, point.seconds) for point in chosen)
        memory = tuple((point.users, point.peak_bytes / 1e9) for point in chosen)
        panels += [
            charts.Panel(
                f"{order}: wall time, s", seconds, tuple(f"{y:.1f} s" for _, y in seconds)
            ),
            charts.Panel(f"{order}: peak, GB", memory, tuple(f"{y:.2f} GB" for _, y in memory)),
        ]
    title = "rankmill evaluate -m map@12, whole process; dashed: in proportion to the first point"
    return charts.line_chart(title, "users, 12 predictions each", panels)


def disagreements(points: list[Point], base: int) -> list[str]:
    """Sizes made of copies whose mean is not the base's, where the base was measured."""
    values = {point.order: point.value for point in points if point.users == base}
    return [
        f"{point.users:,} users: map@12 is {point.value!r}, of one copy {values[point.order]!r}"
        for point in points
        if point.users > base
        and point.order in values
        and not math.isclose(point.value, values[point.order], rel_tol=peers.CLOSE)
    ]


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", default="1_000_000,10_000_000,100_000_000")
    parser.add_argument("--base", type=int, default=BASE, help="users a copy (%(default)s)")
    parser.add_argument("--orders", default=",".join(peers.ORDERS), help="of users (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="of each size (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(%(default)s)")
    parser.add_argument("--memory", default="8GiB", help="as for rankmill (%(default)s)")
    parser.add_argument("--billion", action="store_true", help="a table of states and parts, too")
    parser.add_argument("--clean", action="store_true", help="delete the copies afterwards")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--svg", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    options.orders = peers.orders_of(options.orders, parser)
    try:
        options.users = sorted({int(size) for size in options.users.split(",")})
    except ValueError:
        parser.error(f"--users: {options.users!r} is not a list of numbers")
    if min(*options.users, options.base, options.rounds, options.threads) < 1:
        parser.error("all numbers must be at least 1")
    for size in options.users:
        if size > options.base and size % options.base:
            parser.error(f"--users: {size:,} is not a multiple of the base, {options.base:,}")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    # This run on a small dump compiles the kernels.
    peers.measured(peers.evaluate_command(*sources(1000, BASE, options.orders[0]), options.threads))
    try:
        points = [
            measured(users, order, options) for order in options.orders for users in options.users
        ]
        found = []
        if options.billion:
            order = options.orders[0]
            list(steps(1000, order, options))  # compiles the other kernels
            found = [step for users in options.users for step in steps(users, order, options)]
    finally:
        if options.clean:
            for order, users in itertools.product(options.orders, options.users):
                shutil.rmtree(copies_folder(users, options.base, order), ignore_errors=True)
    for line in table(points, options.base):
        print("| " + " | ".join(line) + " |")
    for line in table_of_steps(found) if found else []:
        print("| " + " | ".join(line) + " |")
    if options.json:
        told = [{**asdict(point), "per_million": point.per_million} for point in points]
        text = {"threads": options.threads, "rounds": options.rounds, "points": told}
        text["steps"] = [asdict(step) for step in found]
        options.json.write_text(json.dumps(text, indent=1) + "\n")
    if options.svg:
        options.svg.write_text(drawing(points))
    problems = disagreements(points, options.base)
    print("".join(f"error: {problem}\n" for problem in problems), end="", file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
