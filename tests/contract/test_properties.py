"""Random inputs: every metric against the oracle, and every shape of input against the others."""

from __future__ import annotations

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
from flat import flat
from rankmill.arrays import Ragged
from strategies import Case, examples

CLOSE = {"rel": 1e-12, "abs": 1e-15}
# A standard error is the root of a sum of squared differences; it is 0 if all values are equal.
CLOSE_ERROR = {"rel": 1e-12, "abs": 1e-12}


def assert_agrees(result: Any, expected: oracle.Evaluation) -> None:
    """Compare all of a result with the oracle's."""
    there = {name: one for name, one in expected.metrics.items() if one is not None}
    assert {name: result.metrics[name] for name in there} == pytest.approx(there, **CLOSE)
    assert {name for name, one in result.metrics.items() if one is not None} == there.keys()
    assert list(result.metrics) == list(expected.metrics)
    for name, error in expected.standard_errors.items():
        wanted = None if error is None else pytest.approx(error, **CLOSE_ERROR)
        assert result.standard_errors[name] == wanted
    assert set(result.bounds) == set(expected.bounds)
    for name, bounds in expected.bounds.items():
        assert result.bounds[name] == pytest.approx(bounds, **CLOSE)
        assert bounds[0] - 1e-12 <= result.metrics[name] <= bounds[1] + 1e-12
    assert result.queries == expected.queries
    assert result.audit == expected.audit
    table = result.per_query
    queries = table.column(0).to_pylist()
    assert sorted(queries) == sorted(next(iter(expected.per_query.values())))
    assert table.column_names[1:] == list(expected.per_query)
    for name, values in expected.per_query.items():
        assert table.schema.field(name).type == pa.float64()
        found = dict(zip(queries, table[name].to_pylist(), strict=True))
        assert found == pytest.approx(values, **CLOSE)


def expect(
    case: Case, metrics: list[str], gains: str = "linear", by_confidence: bool = False
) -> oracle.Evaluation:
    return oracle.evaluate(case.labels, case.predictions, metrics, gains, by_confidence)


def gain_of(case: Case) -> str | None:
    return "gain" if case.graded else None


METRICS = strategies.metric_names()
ROWS = st.integers(0, 2**32).map(random.Random)


@pytest.mark.small
@settings(max_examples=examples(60))
@given(strategies.cases(), st.sampled_from(["linear", "exp"]), st.sampled_from([None, 1, 2]))
def test_wide_tables(case: Case, gains: str, threads: int | None) -> None:
    labels, predictions = strategies.wide_labels(case), strategies.wide_predictions(case)
    result = rankmill.evaluate(
        rankmill.Labels(labels, gain=gain_of(case)),
        predictions,
        METRICS,
        threads=threads,
        semantics=rankmill.Semantics(gain_function=gains),
    )
    expected = expect(case, METRICS, gains)
    assert_agrees(result, expected)
    assert result.per_query["query_id"].to_pylist() == list(expected.per_query["map"])
    assert result.per_query.schema.field("query_id").type == case.label_query


@pytest.mark.small
@settings(max_examples=examples(60))
@given(strategies.cases(), ROWS, st.sampled_from(["rank", "confidence", "file"]))
def test_long_tables(case: Case, shuffle: random.Random, order: str) -> None:
    label_rows = strategies.rows(case.labels, shuffle)
    prediction_rows = strategies.rows(case.predictions, shuffle)
    if not prediction_rows:
        return
    pooled = () if order != "file" else oracle.POOLED
    metrics = [name for name in METRICS if oracle.parse(name)[0] not in pooled]
    long_case = replace(
        case,
        labels=oracle.lists_of_rows(label_rows),
        predictions=oracle.lists_of_rows(prediction_rows, order),
    )
    result = rankmill.evaluate(
        rankmill.Labels(strategies.long_labels(case, label_rows), gain=gain_of(case)),
        strategies.long_predictions(case, prediction_rows, order == "rank", order != "file"),
        metrics,
    )
    assert_agrees(result, expect(long_case, metrics, by_confidence=order == "confidence"))


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
        if name in ("rbp", "judged", "bpref") or not hasattr(
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


@pytest.mark.small
@pytest.mark.lengthy
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
@pytest.mark.parametrize("shape", ["wide", "rank", "confidence"])
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
        case = replace(case, predictions=oracle.lists_of_rows(rows, shape))
        tables = (
            strategies.long_labels(case, strategies.rows(labels, draw)),
            strategies.long_predictions(case, rows, rank=shape == "rank"),
        )
    result = flat(rankmill.evaluate, *tables, metrics, gain="gain")
    assert result.audit["repeated_items"] > 30
    assert_agrees(result, expect(case, metrics, by_confidence=shape == "confidence"))


# ------------------------------------------------------------------ one shape against another


@settings(max_examples=examples(40))
@given(strategies.cases(nulls=False), ROWS, st.integers(1, 4))
def test_wide_long_table_ragged_and_parquet_are_equal(
    tmp_path_factory: pytest.TempPathFactory, case: Case, shuffle: random.Random, group: int
) -> None:
    """All shapes of one case give the same numbers to the last bit, and the same audit."""
    case = strategies.plain(case)
    if not case.predictions:
        return
    folder = tmp_path_factory.mktemp("shapes")
    wide = strategies.wide_labels(case), strategies.wide_predictions(case)
    labels = strategies.long_labels(case, strategies.rows(case.labels, shuffle))
    predictions = strategies.long_predictions(case, strategies.rows(case.predictions, shuffle))
    pairs: dict[str, tuple[Any, Any]] = {
        "wide": wide,
        "chunked": (strategies.chunked(wide[0], 2), strategies.chunked(wide[1], 1)),
        "long": (labels, predictions),
        "wide labels": (wide[0], predictions),
        "long labels": (labels, wide[1]),
    }
    for name in ("wide", "long"):
        paths = folder / f"{name}-labels.parquet", folder / f"{name}-predictions.parquet"
        for table, path in zip(pairs[name], paths, strict=True):
            pq.write_table(_writable(table), path, row_group_size=group)
        pairs[f"{name} file"] = paths
    results = {
        name: flat(rankmill.evaluate, *pair, METRICS, gain=gain_of(case))
        for name, pair in pairs.items()
    }
    results["ragged"] = _evaluate_ragged(strategies.aligned(case))
    assert_agrees(results["wide"], expect(case, METRICS))
    for name, result in results.items():
        assert result.metrics == results["wide"].metrics, name
        assert result.bounds == results["wide"].bounds, name
        assert result.standard_errors == results["wide"].standard_errors, name
        audit = dict(result.audit)
        if name == "ragged":  # queries without labels are empty label lists there
            missing = set(case.predictions) - set(case.labels)
            audit["empty_label_lists"] -= len(missing)
        assert audit == results["wide"].audit, name


def _writable(table: pa.Table) -> pa.Table:
    """Return views as plain strings, because Parquet files do not store views."""
    fields = []
    for field in table.schema:
        kind = field.type
        if pa.types.is_list(kind) and kind.value_type == pa.string_view():
            kind = pa.list_(pa.string())
        fields.append(field.with_type(pa.string() if kind == pa.string_view() else kind))
    return table.cast(pa.schema(fields))


def _evaluate_ragged(case: Case) -> Any:
    gain = strategies.ragged(case.labels, pa.float64(), 1) if case.graded else None
    result = rankmill.evaluate(
        rankmill.Labels(strategies.ragged(case.labels, case.label_item), gain=gain),
        rankmill.Predictions(
            strategies.ragged(case.predictions, case.prediction_item),
            score=strategies.ragged(case.predictions, case.confidence, 1),
        ),
        METRICS,
    )
    assert_agrees(result, expect(case, METRICS))
    assert result.per_query.column_names[0] == "query"
    assert result.per_query.schema.field(0).type == pa.int64()
    labelled = [q for q, listed in case.labels.items() if oracle.label_gains(listed)]
    assert result.per_query["query"].to_pylist() == labelled
    return result


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


@pytest.mark.parametrize("wide", [True, False], ids=["wide", "long"])
def test_threads_and_row_groups_do_not_change_a_bit(
    dump: dict[str, np.ndarray], tmp_path: Path, wide: bool
) -> None:
    metrics = ["map@12", "map", "first_hit", "ndcg@5", "f1@3", "gap", "gap@4"]
    results = [
        rankmill.evaluate(*_write(dump, tmp_path, rows_a_group, wide), metrics, threads=threads)
        for rows_a_group in (700, 9_973, 1_000_000)
        for threads in (1, 2, None)
    ]
    first = results[0]
    assert first.audit["repeated_items"] > 1000
    assert first.audit["tied_confidences"] > 1000
    assert 0 < first["map@12"] < 1
    for result in results[1:]:
        assert result.metrics == first.metrics
        assert result.standard_errors == first.standard_errors
        assert result.bounds == first.bounds
        assert result.audit == first.audit
        assert result.per_query.equals(first.per_query)


@pytest.mark.parametrize("queries", [1_200, pytest.param(5_500, marks=pytest.mark.long)])
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


@pytest.mark.parametrize(
    ("length", "slow"),
    [(20_000, False), pytest.param(80_000, False, marks=pytest.mark.long), (2_000, True)],
)
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
