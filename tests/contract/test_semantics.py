"""evaluate(semantics=...): random inputs under random semantics, against the oracle."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankmill
import semantics_oracle
import strategies
from agreement import assert_agrees
from flat import flat
from rankmill import InputError
from rankmill.semantics.choices import CHOICES, Choices
from semantic_cases import (
    defined,
)
from strategies import Case, some

DEFAULTS = Choices().to_dict()

# ------------------------------------------------------------------ long lists, long ties


def big_case(draw: random.Random, kind: pa.DataType, graded: bool, levels: int) -> Case:
    """Make lists of up to 200 predictions with long ties, beyond all size limits in kernels."""
    name = str if kind == pa.string() else int

    def listed(count: int, items: int, highest: int) -> list[tuple[Any, float]]:
        chosen = [name(draw.randrange(items)) for _ in range(count)]
        return [(item, draw.randrange(1, highest + 1) / 4) for item in chosen]

    labels, predictions = {}, {}
    for query, (labelled, predicted) in enumerate(
        [(3, 40), (90, 33), (130, 200), (5, 129), (2, 3)]
    ):
        gains = listed(labelled, 150, 4)
        labels[name(query)] = [(item, gain if graded else 1.0) for item, gain in gains]
        predictions[name(query)] = listed(predicted, 150, levels)
    predictions[name(0)][7] = (name(1), math.nan)
    predictions[name(9)] = listed(50, 150, levels)
    return Case(labels, predictions, graded, kind, kind, kind, kind, pa.float32())


@pytest.mark.small
@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("kind", "order"),
    some(
        itertools.product(
            [pa.int64(), pa.string()], [one for one in CHOICES["order"] if one != "expected"]
        ),
        5,
    ),
    ids=str,
)
@pytest.mark.long
def test_long_lists(order: str, kind: pa.DataType) -> None:
    draw = random.Random(order)
    metrics = strategies.metric_names([1, 33, 150])
    for repeats, ties, levels in (("drop", "given", 1), ("each", "ids", 30), ("once", "worst", 30)):
        if repeats == "once" and order in semantics_oracle.OPEN_ORDERS:
            continue
        case = big_case(draw, kind, graded=repeats != "each", levels=levels)
        chosen = DEFAULTS | {
            "order": order,
            "repeated_predictions": repeats,
            "repeated_labels": "count",
            "gap_ties": ties,
            "nan_confidence": "last",
            "unlabelled": "one",
        }
        predictions = strategies.chunked(strategies.wide_predictions(case), 2)
        found = defined(metrics, chosen, confidences=True)
        result = flat(
            rankmill.evaluate,
            strategies.wide_labels(case),
            predictions,
            found,
            semantics=chosen,
            gain="gain" if case.graded else None,
        )
        expected = semantics_oracle.evaluate(case.labels, case.predictions, found, chosen)
        assert_agrees(result, expected)
        assert result.audit["repeated_items"] > 30


def expected_in_a_run(found: int, before: int, size: int, hits: int, k: int) -> dict[str, float]:
    """Return what a run adds to metrics, from the probabilities of its numbers of hits.

    ``found`` hits and ``before`` predictions come before the run. The probability that none of the
    first k is a hit, and the expected 1 / rank of the first hit, are for the run alone.
    """
    out = {"precisions": 0.0, "hits": 0.0, "none": 1.0, "first": 0.0}
    chances = {0: 1.0}  # the probability of each number of hits among the places so far
    for place in range(min(size, k - before)):
        after: dict[int, float] = {}
        rank = before + place + 1
        for earlier, chance in chances.items():
            hit = (hits - earlier) / (size - place)
            out["hits"] += chance * hit
            out["precisions"] += chance * hit * (found + earlier + 1) / rank
            if earlier == 0:
                out["first"] += chance * hit / rank
            after[earlier + 1] = after.get(earlier + 1, 0.0) + chance * hit
            after[earlier] = after.get(earlier, 0.0) + chance * (1 - hit)
        chances = after
    out["none"] = chances.get(0, 0.0)
    return out


@pytest.mark.small
@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()], ids=str)
def test_expected_values_over_ties_of_hundreds(dtype: pa.DataType) -> None:
    """Runs of 5, 300, 1 and 200 predictions; the hits are in the second, third and fourth."""
    sizes, hits = [5, 300, 1, 200], [0, 7, 1, 40]
    items = list(range(sum(sizes)))
    bounds = [sum(sizes[:i]) for i in range(5)]
    right = [item for i in range(4) for item in items[bounds[i] : bounds[i] + hits[i]]]
    confidences = [float(-i) for i, size in enumerate(sizes) for _ in range(size)]
    draw = random.Random(5)
    shuffled = draw.sample(range(len(items)), len(items))
    labels = pa.table({"query": [1], "items": [[*right, 1000, 1001]]})
    predictions = pa.table(
        {
            "query": [1],
            "items": [[items[i] for i in shuffled]],
            "score": pa.array([[confidences[i] for i in shuffled]], pa.list_(dtype)),
        }
    )
    total = len(right) + 2
    for k in (3, 6, 200, 305, 306, 400, 506, 10**6):
        names = ["map", "first_hit", "recall", "hit", "precision"]
        result = rankmill.evaluate(
            labels,
            predictions,
            [f"{name}@{k}" for name in names],
            semantics={"order": "expected", "repeated_predictions": "drop"},
        )
        runs = [expected_in_a_run(sum(hits[:i]), bounds[i], sizes[i], hits[i], k) for i in range(4)]
        found = sum(run["hits"] for run in runs)
        expected = [
            sum(run["precisions"] for run in runs) / min(k, total),
            runs[1]["first"],  # the second run has the first hit
            found / total,
            1 - runs[1]["none"],
            found / k,
        ]
        assert list(result.metrics.values()) == pytest.approx(expected, rel=1e-12, abs=1e-15)


BYTES_ORDER = ["9", "z", "\x7f", "\x80", "é", "\uffff", "\U0001f980", "10", "日"]
BIG = [0, 9, 10, 100, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.mark.small
@pytest.mark.parametrize("order", ["item_descending", "item_ascending"])
@pytest.mark.parametrize(
    ("items", "kind"),
    [
        (BYTES_ORDER, pa.string()),
        (BYTES_ORDER, pa.string_view()),
        (BIG, pa.uint64()),
        ([-1, -10, -2, *BIG[:-2], -(2**63)], pa.int64()),
        ([str(i) for i in range(40)], pa.dictionary(pa.int8(), pa.string())),
    ],
    ids=str,
)
def test_ties_by_item_compare_bytes_of_text(order: str, items: list[Any], kind: Any) -> None:
    """Each item is the label of one query; in UTF-16 the first two bytes of "🦀" sort lower."""
    ranked = sorted(items, key=lambda item: str(item).encode(), reverse=order == "item_descending")
    shuffled = random.Random(3).sample(items, len(items))
    confidences = [0.5] * len(items)
    labels = {query: [(item, 1.0)] for query, item in enumerate(items)}
    predictions = {q: list(zip(shuffled, confidences, strict=True)) for q in labels}
    case = Case(labels, predictions, False, pa.int64(), kind, pa.int64(), kind, pa.float64())
    result = rankmill.evaluate(
        strategies.wide_labels(case),
        strategies.wide_predictions(case),
        "first_hit",
        semantics={"order": order},
    )
    ranks = [ranked.index(item) + 1 for item in items]
    assert result.per_query["first_hit"].to_pylist() == [1 / rank for rank in ranks]


# ------------------------------------------------------------------ the same bits


@pytest.fixture(scope="module")
def dump() -> tuple[pa.Table, pa.Table]:
    """Long labels, and predictions with ranks: 500 queries of each, 400 on both sides."""
    draw = np.random.default_rng(77)

    def side(first: int, longest: int) -> dict[str, Any]:
        lengths = draw.integers(1, longest, 500)
        lengths[3] = 2 * longest
        return {
            "query_id": np.repeat(np.arange(first, first + 500), lengths),
            "item_id": draw.integers(0, 60, lengths.sum()),
        }

    labels, predictions = side(0, 6), side(100, 30)
    rows = len(predictions["query_id"])
    scores = draw.integers(0, 12, rows).astype(np.float32)
    scores[::50] = np.nan
    predictions |= {"rank": np.arange(rows), "score": scores}
    return pa.table(labels), pa.table(predictions)


@pytest.mark.parametrize("ties", ["given", "ids"])
def test_gap_that_holds_all_rows_does_not_depend_on_memory(
    ties: str, dump: tuple[pa.Table, pa.Table]
) -> None:
    labels, predictions = dump
    shuffled = predictions.take(np.random.default_rng(1).permutation(len(predictions)))
    values = set()
    for threads, memory in ((1, 1 << 30), (2, 600_000)):
        assert 96 * len(shuffled) > 600_000  # would be grouped on disk if only memory decided
        result = rankmill.evaluate(
            labels,
            shuffled,
            ["gap", "gap@2"],
            semantics={"gap_ties": ties, "nan_confidence": "last"},
            threads=threads,
            memory=memory,
        )
        values.add((result["gap"], result["gap@2"]))
    assert len(values) == 1
    with pytest.raises(InputError, match=f"gap_ties '{ties}' holds all predictions in memory"):
        rankmill.evaluate(
            labels,
            shuffled,
            "gap",
            semantics={"gap_ties": ties, "nan_confidence": "last"},
            memory=100_000,
        )
