"""Compare rankmill.kaggle with the loops and pandas formulas that notebooks run.

    python benchmarks/kaggle.py [--users 1_000_000] [--rounds 5] [--only mapk]

Both sides get the same input and take turns. Their results must agree; then the medians of their
times are compared. A rival that would take minutes gets only the first 1 / share of the queries,
and rankmill is timed on these queries too; "× at full size" compares the time for each query. The
script prints a markdown table.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from rankmill import kaggle

ITEMS = 100_000
WIDTH = 12
CLASSES = 15_000


# ------------------------------------------------------------------ what notebooks do


def loop_apk(labels: Any, predictions: Any, k: int) -> float:
    predictions = predictions[:k]
    found = total = 0.0
    for place, item in enumerate(predictions):
        if item in labels and item not in predictions[:place]:
            found += 1
            total += found / (place + 1)
    return total / min(k, len(labels)) if len(labels) else 0.0


def loop_mapk(labels: Any, predictions: Any, k: int = WIDTH) -> float:
    scores = [loop_apk(*pair, k) for pair in zip(labels, predictions, strict=True)]
    return float(np.mean(scores))


def intersect_ap(labels: np.ndarray, predictions: np.ndarray, k: int) -> float:
    total = 0.0
    for i in range(1, k + 1):
        precision = len(np.intersect1d(labels, predictions[:i])) / i
        total += precision * (1 if predictions[i - 1] in labels else 0)
    return total / min(k, len(labels))


def intersect_map(labels: np.ndarray, predictions: np.ndarray, k: int = WIDTH) -> float:
    pairs = zip(labels, predictions, strict=True)
    return float(np.mean([intersect_ap(*pair, k) for pair in pairs]))


def index_map(labels: Any, predictions: Any) -> float:
    def score(label: Any, listed: list[Any]) -> float:
        try:
            return 1 / (listed[:5].index(label) + 1)
        except ValueError:
            return 0.0

    return float(np.mean([score(*pair) for pair in zip(labels, predictions, strict=True)]))


def pandas_gap(predicted: Any, confidence: Any, true: Any) -> float:
    rows = pd.DataFrame({"predicted": predicted, "confidence": confidence, "true": true})
    rows = rows.sort_values("confidence", ascending=False, na_position="last")
    rows["right"] = (rows["predicted"] == rows["true"]).astype(int)
    rows["precision"] = rows["right"].cumsum() / np.arange(1, len(rows) + 1)
    return float((rows["precision"] * rows["right"]).sum() / rows["true"].count())


def loop_average_precision(labels: list[int], predictions: list[int]) -> float:
    found = total = 0.0
    for rank, item in enumerate(predictions, start=1):
        if item in labels:
            found += 1
            total += found / rank
    return total / len(labels)


# ------------------------------------------------------------------ the comparisons


@dataclass(frozen=True)
class Case:
    """Two functions of the same columns; the rival gets the first 1 / share of their rows."""

    name: str
    ours: Callable[..., float]
    rival: Callable[..., float]
    columns: tuple[Any, ...]
    share: int = 1


def first_rows(columns: tuple[Any, ...], share: int) -> tuple[Any, ...]:
    return tuple(column[: len(column) // share] for column in columns)


def lists_of_users(users: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, 4 a user, and distinct predictions, 12 a user; a quarter of the labels are hit."""
    generator = np.random.default_rng(0)
    step = generator.integers(1, ITEMS // WIDTH, (users, 1))
    predictions = generator.integers(0, ITEMS, (users, 1)) + step * np.arange(WIDTH)
    labels = predictions[:, generator.permutation(WIDTH)[:4]]
    missed = generator.random(labels.shape) < 0.75
    return np.where(missed, labels + 10 * ITEMS, labels), predictions


def list_cases(users: int) -> Iterator[Case]:
    labels, predictions = lists_of_users(users)
    arrow = tuple(
        pa.FixedSizeListArray.from_arrays(pa.array(table.ravel()), table.shape[1])
        for table in (labels, predictions)
    )
    lists = labels.tolist(), predictions.tolist()

    def at_12(labels: Any, predictions: Any) -> float:
        return kaggle.mapk(labels, predictions, WIDTH)

    def loop_of_arrow(labels: Any, predictions: Any) -> float:
        return loop_mapk(labels.to_pylist(), predictions.to_pylist())

    def index_map_of_rows(labels: Any, predictions: Any) -> float:
        return index_map(labels.tolist(), predictions.tolist())

    yield Case("mapk, 2-D arrays", at_12, loop_mapk, (labels, predictions), 50)
    yield Case("mapk, Arrow lists (the loop converts them)", at_12, loop_of_arrow, arrow, 5)
    yield Case("mapk, Python lists", at_12, loop_mapk, lists, 5)
    arrays = (labels, predictions)
    at_full = kaggle.mean_average_precision
    yield Case("mean_average_precision, 2-D arrays", at_full, intersect_map, arrays, 250)
    first = labels[:, 0], predictions
    yield Case(
        "map_per_set, arrays (the loop converts them)",
        kaggle.map_per_set,
        index_map_of_rows,
        first,
        5,
    )
    listed = [one[0] for one in lists[0]], lists[1]
    yield Case("map_per_set, Python lists", kaggle.map_per_set, index_map, listed)


def string_cases(users: int) -> Iterator[Case]:
    labels, predictions = (
        [[f"{item:09}" for item in one] for one in table.tolist()]
        for table in lists_of_users(users)
    )

    def at_12(labels: Any, predictions: Any) -> float:
        return kaggle.mapk(labels, predictions, WIDTH)

    yield Case("mapk, Python lists of strings", at_12, loop_mapk, (labels, predictions), 5)


def gap_cases(rows: int) -> Iterator[Case]:
    generator = np.random.default_rng(1)
    predicted = generator.integers(0, CLASSES, rows)
    right = generator.random(rows) < 0.3
    true = np.where(right, predicted, generator.integers(0, CLASSES, rows))
    confidence = generator.permutation(rows) / rows  # all confidences are different
    yield Case("GAP_vector, int64", kaggle.GAP_vector, pandas_gap, (predicted, confidence, true))
    unlabelled = np.where(generator.random(rows) < 0.3, np.nan, true)
    columns = predicted, confidence, unlabelled
    yield Case("GAP_vector, labels of float64 with NaN", kaggle.GAP_vector, pandas_gap, columns)


def one_list_case(items: int) -> Iterator[Case]:
    generator = np.random.default_rng(2)
    labels = generator.permutation(items)[: max(1, items // 100)].tolist()
    columns = labels, generator.permutation(items).tolist()
    name = f"average_precision, one list of {items:,} with {len(labels):,} labels"
    yield Case(name, kaggle.average_precision, loop_average_precision, columns)


def all_cases(users: int) -> Iterator[Case]:
    yield from list_cases(users)
    yield from string_cases(users)
    yield from gap_cases(WIDTH * users)
    yield from one_list_case(users // 10)


# ------------------------------------------------------------------ timing


def seconds(work: Callable[..., float], columns: tuple[Any, ...]) -> tuple[float, float]:
    start = time.perf_counter()
    value = work(*columns)
    return time.perf_counter() - start, value


def in_times(ratio: float) -> str:
    return f"{ratio:,.{0 if ratio >= 10 else 1}f} ×"


def measure(case: Case, rounds: int) -> str:
    few = first_rows(case.columns, case.share)
    (_, ours), (_, theirs) = seconds(case.ours, few), seconds(case.rival, few)
    if abs(ours - theirs) > 1e-9:
        sys.exit(f"{case.name}: rankmill says {ours}, the rival {theirs}")
    times = [
        (
            seconds(case.ours, case.columns)[0],
            seconds(case.ours, few)[0],
            seconds(case.rival, few)[0],
        )
        for _ in range(rounds)
    ]
    full, part, rival = map(statistics.median, zip(*times, strict=True))
    whole, sample = len(case.columns[-1]), len(few[-1])
    return (
        f"| {case.name} | {whole:,} | {full:.3f} s | {sample:,} | {part:.4f} s | {rival:.2f} s "
        f"| {in_times(rival / part)} | {in_times(rival / sample / (full / whole))} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only cases whose name holds this")
    arguments = parser.parse_args()
    print("| what | rows | rankmill | rows of the rival | rankmill | rival | × | × at full size |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for case in all_cases(arguments.users):
        if arguments.only in case.name:
            print(measure(case, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
