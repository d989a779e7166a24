"""Time all metrics at four cutoffs beside map@12 alone, on labels without and with gains.

    python benchmarks/many_metrics.py [--users 1_000_000] [--rounds 5] [--cutoffs 5,10,20,50]

The dump is that of the demo with its users shuffled. Its labels have no gains; whole gains from 1
to 3; the same with a tenth of them 0, which is judged and not relevant; or gains that all differ.
Each run takes turns with map@12 alone. Values of queries are not kept. The script prints the median
of the wall time and of the CPU time of each, and their ratios. Then it does so for metrics of
somebody's own beside those that they equal, without gains; the promise is a ratio of 1.05.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rankmill
from generate import Settings, cache_folder, cached_dump
from rankmill.metrics.registry import REGISTRY, is_defined, parse
from rankmill.semantics.choices import DEFAULT

GAINS = {
    "none": None,
    "1 to 3": ([1.0, 2.0, 3.0], [0.6, 0.25, 0.15]),
    "0 to 3": ([0.0, 1.0, 2.0, 3.0], [0.1, 0.5, 0.25, 0.15]),
    "all differ": ([], []),
}


# The values that speed is promised for, whatever metrics come later.
AT_CUTOFFS = (
    "map first_hit precision recall hit f1 relative_p auc ndcg dcg err nerr q_measure rbp bpm "
    "judged pair_accuracy"
)
WHOLE = (
    "rprec rprec_mult@0.5 iprec@0.5 iprec_avg bing num_rel_ret set_p set_f set_map set_relative_p "
    "g ndcg_rel rndcg insq inst bpref infap"
)
PROMISED = [f"{name}@{k}" for name in AT_CUTOFFS.split() for k in (5, 10, 20, 50)] + WHOLE.split()


class Times(NamedTuple):
    """Medians of seconds, and of their ratios to those of "map@12"."""

    wall: float
    cpu: float
    wall_ratio: float
    cpu_ratio: float

    def cells(self) -> str:
        """Return them as cells of a table."""
        seconds = f"{self.wall:.2f} s | {self.cpu:.2f} s"
        return f"{seconds} | {self.wall_ratio:.2f} | {self.cpu_ratio:.2f}"


def names_at(cutoffs: list[int]) -> list[str]:
    """Every metric with a value a query, at each cutoff if it takes one.

    Not those that refuse a query without predictions, which the dump has, that need an order of
    ties of their own, or subtopics.
    """
    names = []
    for spec in REGISTRY.values():
        if (
            not spec.kernel
            or spec.home
            or spec.without_labels != "scored"
            or spec.gains == "subtopics"
        ):
            continue
        if not is_defined(parse(spec.example), DEFAULT):
            continue
        at = spec.at is None and spec.cutoff != "none"
        name = spec.example.partition("@")[0]
        names += [f"{name}@{k}" for k in cutoffs] if at else [spec.example]
    return [name for name in names if not parse(name).counts_empty]


def with_gains(labels: Path, gains: tuple[list[float], list[float]] | None, folder: Path) -> Path:
    if gains is None:
        return labels
    table = pq.read_table(labels)
    items = table["items"].combine_chunks()
    generator, count = np.random.default_rng(0), len(items.values)
    levels, shares = gains
    drawn = generator.choice(levels, count, p=shares) if levels else generator.uniform(0, 5, count)
    column = pa.ListArray.from_arrays(items.offsets, pa.array(drawn))
    path = folder / "labels.parquet"
    rows = pq.ParquetFile(labels).metadata.row_group(0).num_rows
    pq.write_table(table.append_column("gain", column), path, row_group_size=rows)
    return path


def timed(labels: Path, predictions: Path, metrics: list[str]) -> tuple[float, float]:
    """The wall time and the CPU time of one evaluation."""
    wall, cpu = time.perf_counter(), time.process_time()
    rankmill.evaluate(labels, predictions, metrics, per_query=False)
    return time.perf_counter() - wall, time.process_time() - cpu


def beside_map(
    labels: Path, predictions: Path, runs: dict[str, list[str]], rounds: int
) -> Iterator[tuple[str, Times]]:
    """Yield the name of each run of some metrics, and its times beside those of "map@12".

    The runs take turns; the first turn does not count.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, metrics in runs.items():
            took = timed(labels, predictions, metrics)
            times[name] += [took] if turn else []
    for name, took in times.items():
        ratios = np.array(took) / np.array(times["map@12"])
        yield name, Times(*np.median(took, axis=0), *np.median(ratios, axis=0))


@rankmill.metric("own_map@k", range=(0, 1), better="higher")
def own_map(ranks, labels, k):
    total = 0.0
    for found in range(len(ranks)):
        total += (found + 1) / ranks[found]
    return total / min(k, labels)


@rankmill.metric("own_recall@k", range=(0, 1), better="higher")
def own_recall(ranks, labels):
    return len(ranks) / labels


@rankmill.metric("own_rbp@k", range=(0, 1), better="higher")
def own_rbp(hits, k, p=0.8, out=None):
    offsets, ranks = hits.offsets, hits.ranks
    for q in range(len(out)):
        power, rank, total = 1.0, 1, 0.0
        for h in range(offsets[q], offsets[q + 1]):
            while rank < ranks[h]:
                power *= p
                rank += 1
            total += (1 - p) * power
        out[q] = total


def print_own(labels: Path, predictions: Path, rounds: int) -> None:
    """Print the ratios of the CPU times of own metrics and of those that they equal."""
    print("\n| own metric | CPU | built in | CPU | ratio |")
    print("|---|---:|---|---:|---:|")
    for theirs in ("map@12", "recall@12", "rbp@12"):
        both = [f"own_{theirs}"], [theirs]
        times = [[timed(labels, predictions, one)[1] for one in both] for _ in range(rounds + 1)]
        (ours, its), ratio = np.median(times[1:], axis=0), np.median([a / b for a, b in times[1:]])
        print(f"| own_{theirs} | {ours:.3f} s | {theirs} | {its:.3f} s | {ratio:.3f} |")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=1_000_000, help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--cutoffs", default="5,10,20,50", help="(%(default)s)")
    asked = parser.parse_args(arguments)
    dump = cache_folder().parent / f"many-{asked.users}"
    labels, predictions = cached_dump(dump, Settings(users=asked.users, shuffle=True))
    names = names_at([int(k) for k in asked.cutoffs.split(",")])
    unjudged = [name for name in names if not parse(name).spec.needs_judged]
    runs = {"map@12": ["map@12"], "all": names, "all but judged": unjudged, "promised": PROMISED}
    kinds = {name: len({parse(one).name for one in of}) for name, of in runs.items()}
    print("| gains | metrics | values | wall | CPU | wall / map@12 | CPU / map@12 |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for what, gains in GAINS.items():
        with TemporaryDirectory() as folder:
            path = with_gains(labels, gains, Path(folder))
            for name, found in beside_map(path, predictions, runs, asked.rounds):
                shown = f"{kinds[name]}: {name} | {len(runs[name])} | {found.cells()}"
                print(f"| {what} | {shown} |", flush=True)
    print_own(labels, predictions, 4 * asked.rounds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
