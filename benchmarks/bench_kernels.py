"""Time each public operation on a million lists of 12 items, beside a yardstick.

    pytest benchmarks/bench_kernels.py

The first call of each operation is a warm-up, which may compile, and is not timed. `targets.py`
measures the promised ratios; this benchmark shows which operation became faster or slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from generate import (
    PREDICTIONS,
    Dump,
    Popularity,
    Settings,
    draw_labels,
    draw_predictions,
    item_numbers,
)
from rankmill.arrays import Ragged

USERS = 1_000_000
TABLE_USERS = 200_000
CORRECT = 0.06


def aligned_lists(users: int = USERS, seed: int = 0) -> tuple[Ragged, Ragged]:
    """Labels and predictions of the same users in the same order, int64."""
    generator = np.random.default_rng(seed)
    popularity, numbers = Popularity(), item_numbers(generator)
    offsets, labels = draw_labels(generator, popularity, users)
    predictions, _ = draw_predictions(generator, popularity, offsets[:-1], np.diff(offsets), labels)
    every_list = np.arange(users + 1) * PREDICTIONS
    return Ragged(offsets, numbers[labels]), Ragged(every_list, numbers[predictions.ravel()])


def confidences(count: int = USERS * PREDICTIONS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Confidences, float32, and whether each prediction is right."""
    generator = np.random.default_rng(seed)
    return generator.random(count, dtype=np.float32), generator.random(count) < CORRECT


def as_strings(lists: Ragged) -> Ragged:
    return Ragged(lists.offsets, pa.array(lists.values).cast(pa.string()))


@pytest.fixture(scope="session")
def integers() -> tuple[Ragged, Ragged]:
    return aligned_lists()


@pytest.fixture(scope="session")
def strings(integers: tuple[Ragged, Ragged]) -> tuple[Ragged, Ragged]:
    return as_strings(integers[0]), as_strings(integers[1])


@pytest.fixture(scope="session")
def scored() -> tuple[np.ndarray, np.ndarray]:
    return confidences()


@pytest.fixture
def measure(benchmark: Any) -> Callable[..., None]:
    def run(function: Callable[..., Any], *arguments: Any) -> None:
        benchmark.pedantic(function, arguments, rounds=7, warmup_rounds=1)

    return run


@pytest.mark.benchmark(group="12M aligned int64 predictions")
class TestLists:
    def test_yardstick_values_sum(self, integers: Any, measure: Any) -> None:
        measure(integers[1].values.sum)

    def test_average_precision_at_12(self, integers: Any, measure: Any) -> None:
        measure(rankmill.arrays.average_precision, *integers, 12)

    def test_first_hit_precision_at_12(self, integers: Any, measure: Any) -> None:
        measure(rankmill.arrays.first_hit_precision, *integers, 12)

    def test_recall_at_12(self, integers: Any, measure: Any) -> None:
        measure(rankmill.arrays.recall, *integers, 12)

    def test_ndcg_at_12(self, integers: Any, measure: Any) -> None:
        measure(rankmill.arrays.ndcg, *integers, 12)


@pytest.mark.benchmark(group="12M aligned predictions, 9-digit strings")
class TestStrings:
    def test_average_precision_at_12(self, strings: Any, measure: Any) -> None:
        measure(rankmill.arrays.average_precision, *strings, 12)


@pytest.mark.benchmark(group="12M float32 confidences")
class TestGap:
    def test_yardstick_sort(self, scored: Any, measure: Any) -> None:
        measure(np.sort, scored[0])

    def test_global_average_precision(self, scored: Any, measure: Any) -> None:
        measure(rankmill.arrays.global_average_precision, *scored, USERS)


@pytest.mark.benchmark(group="tables of 200k users, map@12 and gap")
class TestTables:
    @pytest.mark.parametrize("order", ["shuffled", "aligned"])
    @pytest.mark.parametrize("kind", ["int64", "strings"])
    def test_evaluate(self, kind: str, order: str, measure: Any) -> None:
        dump = Dump(Settings(TABLE_USERS, strings=kind == "strings", shuffle=order == "shuffled"))
        labels = pa.concat_tables(dump.label_tables())
        predictions = pa.concat_tables(dump.prediction_tables())
        measure(
            lambda: rankmill.evaluate(
                labels, predictions, metrics=["map@12", "gap"], per_query=False
            )
        )
