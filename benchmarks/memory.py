"""Hold evaluations to `--memory`: 33 cases of metrics, shapes of data and limits.

    python benchmarks/memory.py [--folder DIR] [--only TEXT] [--threads 2] [--share 1.0]

Each case runs in a process of its own. Its peak is what Linux calls VmHWM, all pages that it had in
memory at once; its time is that of its CPUs, which says the same on a busy machine, beside the time
of the same evaluation with a limit that nothing reaches. A case is over if its peak is more than
300 MB above its limit, or its time more than three times that of the other: labels in shares are
read once for each. An evaluation that is refused (exit code 4) names what it needs, and has to need
it: its peak without a limit must be over as well. The script exits 1 if a case is over. `--share`
makes smaller data, which say little.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ABOVE, SLOWER = 300_000_000, 3
MB = 1_000_000
UNLIMITED = 64_000 * MB
ROW_GROUP = 1 << 16
CATALOGUE = "coverage@8,gini@8,entropy@8"
LABEL_COVERAGE = "coverage_of_labels@8,coverage@8"


class Shape(NamedTuple):
    """Data to write: how many queries with how many predictions each, and what their items are.

    ``items`` is the number of distinct ones, and ``hits`` the share of predictions that are right.
    """

    queries: int
    each: int
    items: int
    hits: float = 0.1
    kind: str = "scattered"
    long: bool = False
    shuffled: bool = False


SHAPES = {
    "12 predictions per user": Shape(2_000_000, 12, 100_000),
    "shuffled users": Shape(2_000_000, 4, 100_000, shuffled=True),
    "12M shuffled users": Shape(12_000_000, 12, 100_000, hits=0.25, shuffled=True),
    "10M scattered items": Shape(1_000_000, 16, 10_000_000),
    "10M close items": Shape(1_000_000, 16, 10_000_000, kind="close"),
    "5M items of text": Shape(500_000, 16, 5_000_000, kind="text"),
    "half of 40M are right": Shape(2_000_000, 20, 1_000, hits=0.5, kind="close"),
    "long, scattered rows": Shape(2_000_000, 5, 10_000_000, long=True, shuffled=True),
    "20M sorted users": Shape(20_000_000, 1, 100_000, kind="close"),
    "one query of 10M": Shape(1, 10_000_000, 10_000_000),
}
CASES = [
    *[("12 predictions per user", "map@12", limit) for limit in (50, 200)],
    *[("12 predictions per user", "map@12,gap", limit) for limit in (50, 200)],
    ("12 predictions per user", "map@12,ndcg@12,recall@12,mrr", 50),
    ("12 predictions per user", CATALOGUE, 100),
    *[("shuffled users", "map@12", limit) for limit in (100, 300)],
    ("shuffled users", "map@12,gap", 300),
    ("12M shuffled users", "map@12,gap", 1_700),  # of which labels take half
    *[("10M scattered items", CATALOGUE, limit) for limit in (200, 800)],
    ("10M scattered items", "coverage@1..3", 1_000),
    ("10M scattered items", LABEL_COVERAGE, 1_000),
    ("10M scattered items", f"map@8,gap,{CATALOGUE}", 1_600),
    ("10M close items", CATALOGUE, 800),
    ("10M close items", LABEL_COVERAGE, 1_000),
    ("5M items of text", CATALOGUE, 1_600),
    ("5M items of text", LABEL_COVERAGE, 2_000),
    *[("half of 40M are right", "gap", limit) for limit in (100, 200, 400)],
    ("half of 40M are right", "gap,gap@5", 200),
    ("half of 40M are right", "map@12", 100),
    *[("long, scattered rows", "map@5", limit) for limit in (100, 200)],
    ("long, scattered rows", "map@5,gap", 200),
    ("long, scattered rows", CATALOGUE, 800),
    *[("20M sorted users", "map@1", limit) for limit in (100, 200)],
    ("20M sorted users", "gap", 200),
    *[("one query of 10M", "map@100", limit) for limit in (200, 2_000)],
]


class Outcome(NamedTuple):
    """What a process used, and what it said: its values, or why it refused."""

    peak: int
    seconds: float
    said: Any
    refused: bool


def written(folder: Path, name: str, share: float) -> tuple[Path, Path]:
    """Return the labels and predictions of a shape, which are written by a process of their own."""
    place = folder / re.sub(r"\W+", "-", name)
    if not (place / "done").exists():
        place.mkdir(parents=True, exist_ok=True)
        settings = ["--write", str(place), "--only", name, "--share", str(share)]
        subprocess.run([sys.executable, __file__, *settings], check=True)
        (place / "done").touch()
    return place / "labels.parquet", place / "predictions.parquet"


def write(shape: Shape, place: Path) -> None:
    """Write the labels and the predictions of a shape, a row group at a time."""
    generator = np.random.default_rng(0)
    order = np.arange(shape.queries)
    if shape.shuffled:
        generator.shuffle(order)
    if shape.long:
        _write(place / "predictions.parquet", _long_rows(shape, generator))
    else:
        _write(place / "predictions.parquet", _lists(shape, order, generator))
    _write(place / "labels.parquet", _labels(shape, generator))


def _labels(shape: Shape, generator: np.random.Generator) -> Iterator[pa.Table]:
    """Yield labels: items that are predicted, some of them of this query."""
    each = max(1, round(shape.hits * shape.each))
    for start in range(0, shape.queries, ROW_GROUP):
        queries = np.arange(start, min(start + ROW_GROUP, shape.queries))
        ranks = np.argsort(generator.random((len(queries), min(shape.each, 64))), axis=1)[:, :each]
        items = _items(shape, queries[:, None], ranks)
        yield _table(queries, _named(shape, items.reshape(-1)), items.shape[1])


def _lists(shape: Shape, order: np.ndarray, generator: np.random.Generator) -> Iterator[pa.Table]:
    for start in range(0, shape.queries, ROW_GROUP):
        queries = order[start : start + ROW_GROUP]
        items = _items(shape, queries[:, None], np.arange(shape.each)[None, :])
        scores = generator.random(items.size)
        table = _table(queries, _named(shape, items.reshape(-1)), shape.each)
        yield table.append_column(
            "scores", pa.ListArray.from_arrays(table["items"].chunk(0).offsets, pa.array(scores))
        )


def _long_rows(shape: Shape, generator: np.random.Generator) -> Iterator[pa.Table]:
    rows = generator.permutation(shape.queries * shape.each)
    for start in range(0, len(rows), ROW_GROUP):
        queries, ranks = np.divmod(rows[start : start + ROW_GROUP], shape.each)
        items = _named(shape, _items(shape, queries, ranks))
        scores = generator.random(len(items))
        yield pa.table({"user_id": queries, "item_id": items, "score": scores})


def _items(shape: Shape, queries: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return the numbers of items: a query has each only once, and all are somewhere."""
    return (queries * shape.each + ranks) * 7_919 % shape.items


def _named(shape: Shape, numbers: np.ndarray) -> pa.Array:
    if shape.kind == "text":
        return pc.binary_join_element_wise("article", pa.array(numbers).cast(pa.string()), "-")
    odd = 0x9E3779B97F4A7C15 >> 2 | 1  # multiplied by an odd number, no two become the same
    return pa.array(numbers if shape.kind == "close" else numbers * odd % (1 << 62))


def _table(queries: np.ndarray, items: pa.Array, each: int) -> pa.Table:
    offsets = np.arange(0, len(items) + 1, each, dtype=np.int32)
    return pa.table({"user_id": queries, "items": pa.ListArray.from_arrays(offsets, items)})


def _write(path: Path, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with pq.ParquetWriter(path, first.schema, use_dictionary=False) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def run(files: tuple[Path, Path], metrics: str, limit: int, threads: int) -> Outcome:
    """Evaluate in a process of its own."""
    asked = [*map(str, files), metrics, str(limit), str(threads)]
    finished = subprocess.run(
        [sys.executable, __file__, "--evaluate", *asked], capture_output=True, text=True
    )
    if finished.returncode:
        return Outcome(0, 0.0, f"code {finished.returncode}: {finished.stderr[-300:]}", False)
    return Outcome(*json.loads(finished.stdout))


def evaluate(labels: str, predictions: str, metrics: str, limit: str, threads: str) -> None:
    """Evaluate, and print what it took."""
    import rankmill

    how: dict[str, Any] = {"threads": int(threads), "memory": int(limit), "per_query": False}
    refused = False
    try:
        result = rankmill.evaluate(labels, predictions, _names(metrics), **how)
        said: Any = {name: repr(value) for name, value in result.metrics.items()}
    except rankmill.ResourceError as error:
        said, refused = str(error), True
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps(Outcome(peak, used.ru_utime + used.ru_stime, said, refused)))


def _names(metrics: str) -> list[str]:
    return metrics.split(",")


def verdict(case: Outcome, free: Outcome, limit: int) -> str:
    """Say what is wrong with a case; empty if nothing is."""
    if not case.peak:
        return str(case.said)
    if case.refused:
        return "" if free.peak > limit + ABOVE else f"refused for nothing: {case.said}"
    wrong = []
    if case.peak > limit + ABOVE:
        wrong.append(f"{(case.peak - limit) / MB:,.0f} MB above its limit")
    if case.seconds > SLOWER * free.seconds:
        wrong.append("slow")
    if case.said != free.said:
        wrong.append(f"{case.said} instead of {free.said}")
    return ", ".join(wrong)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="where data are kept; else they are removed")
    parser.add_argument("--only", default="", help="cases whose shape or metrics hold this text")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--share", type=float, default=1.0, help="of the data (%(default)s)")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--evaluate", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.evaluate:
        evaluate(*options.evaluate)
        return 0
    if options.write:
        shape = SHAPES[options.only]
        most = "each" if shape.queries == 1 else "queries"
        size = {"items": shape.items, most: getattr(shape, most)}
        write(
            shape._replace(**{k: max(64, int(v * options.share)) for k, v in size.items()}),
            options.write,
        )
        return 0
    subprocess.run([sys.executable, "-m", "rankmill", "warmup"], check=True, capture_output=True)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="rankmill-memory-"))
    try:
        return table_of(folder, options)
    finally:
        if options.folder is None:
            shutil.rmtree(folder)


def table_of(folder: Path, options: Any) -> int:
    """Print the table of the cases; return 1 if one is over, else 0."""
    print("| data | metrics | limit | peak | no limit | time | no limit | ratio | |")
    print("|---|---|--:|--:|--:|--:|--:|--:|---|")
    unlimited: dict[tuple[str, str], Outcome] = {}
    over = 0
    for name, metrics, limit in CASES:
        if options.only not in f"{name} {metrics}":
            continue
        files = written(folder, name, options.share)
        if (name, metrics) not in unlimited:
            unlimited[name, metrics] = run(files, metrics, UNLIMITED, options.threads)
        free = unlimited[name, metrics]
        case = run(files, metrics, limit * MB, options.threads)
        wrong = verdict(case, free, limit * MB)
        over += bool(wrong)
        what = wrong and f"**{wrong}**"
        print(
            f"| {name} | {metrics.replace(',', ' ')} | {limit} | {case.peak / MB:,.0f} "
            f"| {free.peak / MB:,.0f} "
            f"| {case.seconds:.1f} | {free.seconds:.1f} "
            f"| {case.seconds / max(free.seconds, 0.1):.2f} "
            f"| {what or ('refused: ' + case.said if case.refused else '')} |",
            flush=True,
        )
    print(f"\n{over} of {len(CASES)} cases are over", file=sys.stderr)
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
