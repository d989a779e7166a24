"""Functions of arrays, long lists, many queries and a huge list against the oracle."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import oracle_lists
import rankmill
import strategies
from agreement import CLOSE, assert_agrees
from flat import flat
from rankmill.arrays import Ragged
from strategies import Case, examples, some


def expect(
    case: Case, metrics: list[str], gains: str = "linear", by_confidence: bool = False
) -> oracle.Evaluation:
    return oracle.evaluate(case.labels, case.predictions, metrics, gains, by_confidence)


METRICS = strategies.metric_names()
ROWS = st.integers(0, 2**32).map(random.Random)


@pytest.mark.small
@settings(max_examples=examples(60))
@given(strategies.cases(), st.sampled_from(["linear", "exp"]))
def test_array_functions(case: Case, gains: str) -> None:
    """Each function of (labels, predictions, k), one value a query, zero without labels."""
    case = strategies.aligned(case)
    labels = strategies.ragged(case.labels, case.label_item)
    predictions = strategies.ragged(case.predictions, case.prediction_item)
    scale = {"gain_function": gains}
    if case.graded:
        scale["gain"] = strategies.ragged(case.labels, pa.float64(), 1)
    names = {"map": "average_precision", "first_hit": "first_hit_precision"}
    names["rprec"] = "r_precision"
    for text in METRICS:
        name, k = oracle.parse(text)
        # kendall_tau of arrays takes scores from the order of lists.
        if name in ("rbp", "judged", "bpref", "kendall_tau") or not hasattr(
            rankmill.arrays, names.get(name, name)
        ):
            continue
        if name in oracle.POOLED or "(" in text:
            continue
        function = getattr(rankmill.arrays, names.get(name, name))
        options = scale if name in ("dcg", "ndcg") else {}
        # The binary functions take no gains, so every label counts, whatever its gain.
        given_labels = (
            case.labels
            if options
            else {query: [item for item, _ in listed] for query, listed in case.labels.items()}
        )
        arguments = {} if name == "rprec" else {"k": k}
        found = function(labels, predictions, **arguments, **options)
        expected = [
            oracle.query_value(text, given_labels[q], case.predictions[q], gains)
            for q in case.labels
        ]
        assert found.dtype == np.float64
        assert found.tolist() == pytest.approx(expected, **CLOSE)


@pytest.mark.small
@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.sampled_from(strategies.CONFIDENCES), st.booleans()), max_size=30),
    st.integers(1, 50),
    st.sampled_from([np.float32, np.float64]),
    ROWS,
)
def test_global_average_precision(
    pairs: list[tuple[float, bool]], total: int, kind: type, shuffle: random.Random
) -> None:
    mixed = shuffle.sample(pairs, len(pairs))
    for ties in ("expected", "worst", "best"):
        values = [
            rankmill.arrays.global_average_precision(
                np.array([confidence for confidence, _ in listed], kind),
                np.array([right for _, right in listed], bool),
                total,
                ties=ties,
            )
            for listed in (pairs, mixed)
        ]
        assert values[0] == values[1]
        assert values[0] == pytest.approx(
            oracle.global_average_precision(pairs, total, ties), **CLOSE
        )


@pytest.mark.long
@pytest.mark.small
@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("kind", "shape"),
    some(itertools.product([pa.int64(), pa.string()], ["wide", "rank", "confidence"]), 6),
    ids=str,
)
def test_long_lists_among_many_queries(kind: pa.DataType, shape: str) -> None:
    """The input is too large for comparing lists pair by pair and for tables that never grow.

    Query 0 has 90 labels and 120 predictions, with repeats and ties; 700 others have one or two.
    """
    draw = random.Random(20)
    name = str if kind == pa.string() else int

    def listed(count: int, items: int) -> list[tuple[Any, float]]:
        return [(name(draw.randrange(items)), draw.randrange(1, 30) / 8) for _ in range(count)]

    labels = {name(query): listed(draw.randrange(1, 3), 9) for query in range(700)}
    predictions = {name(query): listed(draw.randrange(1, 3), 9) for query in range(100, 800)}
    labels[name(0)], predictions[name(0)] = listed(90, 150), listed(120, 150)
    case = Case(labels, predictions, True, kind, kind, kind, kind, pa.float64())
    metrics = strategies.metric_names([2, 100])
    if shape == "wide":
        tables = strategies.wide_labels(case), strategies.wide_predictions(case)
    else:
        rows = strategies.rows(predictions, draw)
        label_rows = strategies.rows(labels, draw)
        case = replace(
            case,
            labels=oracle.lists_of_rows(label_rows),
            predictions=oracle.lists_of_rows(rows, shape),
        )
        tables = (
            strategies.long_labels(case, label_rows),
            strategies.long_predictions(case, rows, rank=shape == "rank"),
        )
    result = flat(rankmill.evaluate, *tables, metrics, gain="gain")
    assert result.audit["repeated_items"] > 30
    assert_agrees(result, expect(case, metrics, by_confidence=shape == "confidence"))


# ------------------------------------------------------------------ size, threads, row groups


@pytest.fixture(scope="module")
def dump() -> dict[str, np.ndarray]:
    """5,500 users, some 12 predictions each; ties, repeats, queries on one side only."""
    draw = np.random.default_rng(20240229)
    return {
        "label_query": np.sort(draw.integers(0, 5_000, 15_000)),
        "label_item": draw.zipf(1.3, 15_000) % 500,
        "prediction_query": np.sort(draw.integers(500, 5_500, 60_000)),
        "prediction_item": draw.zipf(1.3, 60_000) % 500,
        "confidence": draw.integers(0, 3000, 60_000).astype(np.float32) / 1024,
    }


def _write(dump: dict[str, np.ndarray], folder: Path, rows_a_group: int, wide: bool) -> list[Path]:
    paths = []
    for side, columns in (("label", {}), ("prediction", {"confidence": dump["confidence"]})):
        query, item = dump[f"{side}_query"], dump[f"{side}_item"]
        if wide:
            queries, starts = np.unique(query, return_index=True)
            offsets = pa.array([*starts, len(query)], pa.int32())
            table = pa.table(
                {"query_id": queries, "items": pa.ListArray.from_arrays(offsets, item)}
            )
            for name, values in columns.items():
                table = table.append_column(name, pa.ListArray.from_arrays(offsets, values))
        else:
            table = pa.table({"query_id": query, "item_id": item, **columns})
        paths.append(folder / f"{side}-{rows_a_group}-{wide}.parquet")
        pq.write_table(table, paths[-1], row_group_size=rows_a_group)
    return paths


@pytest.mark.parametrize(
    "queries",
    [
        pytest.param(540, marks=pytest.mark.small),
        600,
        pytest.param(5_500, marks=pytest.mark.long),
    ],
)
def test_a_dump_equals_the_oracle(
    dump: dict[str, np.ndarray], tmp_path: Path, queries: int
) -> None:
    labelled, predicted = (dump[f"{side}_query"] < queries for side in ("label", "prediction"))
    dump = {
        name: values[labelled if name.startswith("label") else predicted]
        for name, values in dump.items()
    }
    metrics = strategies.metric_names([12])
    labels: dict[int, list[Any]] = {}
    for query, item in zip(dump["label_query"].tolist(), dump["label_item"].tolist(), strict=True):
        labels.setdefault(query, []).append((item, 1.0))
    rows = zip(
        dump["prediction_query"].tolist(),
        dump["prediction_item"].tolist(),
        [None] * len(dump["prediction_item"]),
        dump["confidence"].tolist(),
        strict=True,
    )
    expected = oracle.evaluate(
        labels, oracle.lists_of_rows(rows, "confidence"), metrics, by_confidence=True
    )
    result = rankmill.evaluate(*_write(dump, tmp_path, 3_000, False), metrics)
    assert_agrees(result, expected)
    assert result.per_query["query_id"].to_pylist() == list(labels)


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("length", "slow"),
    [(20_000, False), pytest.param(80_000, False, marks=pytest.mark.long), (2_000, True)],
)
@pytest.mark.long
def test_one_huge_list(length: int, slow: bool) -> None:
    """Predictions against a quarter as many labels in one query, beside small ones.

    Fewer for the metrics whose oracle is slow.
    """
    draw = np.random.default_rng(7)
    huge = draw.integers(0, length * 3 // 4, length)
    right = draw.integers(0, length * 3 // 4, length // 4)
    labels = {0: [1, 2], 1: right.tolist(), 2: [5], 3: []}
    confidence = draw.integers(0, length // 40, length) / 4096
    predictions = {
        0: [(2, 0.5), (1, 0.25)],
        1: list(zip(huge.tolist(), confidence.tolist(), strict=True)),
        2: [],
        3: [(9, 0.75)],
    }
    metrics = [
        metric
        for metric in strategies.metric_names([1000, 10**12], bare=False)
        if (oracle.parse(metric)[0] in oracle_lists.SLOW) == slow
    ]
    result = rankmill.evaluate(
        Ragged.from_lists(list(labels.values())),
        rankmill.Predictions(
            Ragged.from_lists([[item for item, _ in listed] for listed in predictions.values()]),
            score=Ragged.from_lists(
                [[float(c) for _, c in listed] for listed in predictions.values()]
            ),
        ),
        metrics,
    )
    assert_agrees(result, oracle.evaluate(labels, predictions, metrics))
