"""One sweep against the oracle: shapes, formats, semantics, threads, parts, scopes and weights.

Each row of the sweep has all metrics, random cases, and all that a result says. A few rows have
every pair of levels of `FACTORS`; `scripts/test --all` crosses all of `CROSSED`.
"""

from __future__ import annotations

import functools
import json
import math
import random
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, assume, given, seed
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import oracle
import oracle_lists
import rankmill
import semantics_oracle
import strategies
from agreement import assert_agrees
from covering import Row, covering, product
from flat import flat
from parts_of_inputs import merged
from rankmill import InputError
from rankmill.metrics.registry import parse
from rankmill.semantics.choices import Choices
from semantic_cases import (
    METRICS,
    bad,
    defined,
    few_orders,
    joinable,
    semantic_cases,
    some_semantics,
)
from strategies import Case, examples

DEFAULTS = Choices().to_dict()

FACTORS = {
    # What orders predictions: lists, columns of rows, or the place of rows in the file.
    "shape": ["lists", "rank", "confidence", "both", "file", "ragged"],
    "labels": ["wide", "long"],
    "format": ["table", "chunks", "parquet", "text", "reader"],
    "semantics": ["default", "chosen"],
    "threads": ["1", "2"],
    "parts": ["whole", "merged", "systems"],
    "scope": ["all", "depth", "judged"],
    "weights": ["none", "some"],
}


def legal(row: Row) -> bool:
    """Ragged lists are no table, have no columns, and their queries have no names to cut by."""
    if row["shape"] == "ragged":
        return (row["labels"], row["format"], row["weights"]) == ("wide", "table", "none") and row[
            "parts"
        ] != "merged"
    return not (row["weights"] == "some" and row["parts"] == "systems")


ALL = product(FACTORS, legal)
random.Random(0).shuffle(ALL)  # so that no level stands beside the same others again and again
FEW = covering(ALL)
# Of the others, each combination of what an input is and how it is worked on.
CROSSED = ["shape", "format", "semantics", "threads", "parts"]
MORE = {tuple(row[factor] for factor in CROSSED): row for row in ALL if row not in FEW}


def title(row: Row) -> str:
    return "-".join(row.values())


# ------------------------------------------------------------------ inputs


def as_text(case: Case) -> Case:
    """Return the case with names and numbers that every text format can hold."""
    case = strategies.plain(case)
    queries = {query: f"q{n}" for n, query in enumerate({**case.labels, **case.predictions})}
    sides = case.labels.values(), case.predictions.values()
    items = [item for side in sides for listed in side for item, _ in listed]
    names = {item: f"item{n}" for n, item in enumerate(dict.fromkeys(items))}

    def number(value: float | None) -> float:
        return 0.25 if bad(value) else max(-9.0, min(9.0, value))

    labels, predictions = (
        {
            queries[query]: [(names[item], number(other)) for item, other in listed]
            for query, listed in side.items()
        }
        for side in (case.labels, case.predictions)
    )
    text = pa.string()
    return Case(labels, predictions, case.graded, text, text, text, text, pa.float64())


def as_ragged(case: Case) -> Case:
    """Return the case by position, and missing confidences as NaN."""
    case = strategies.aligned(case)
    return replace(
        case,
        predictions={
            query: [(item, math.nan if bad(other) else other) for item, other in listed]
            for query, listed in case.predictions.items()
        },
    )


@dataclass
class Inputs:
    """What one row of the sweep evaluates, and what the oracle is given."""

    case: Case
    labels: Any
    predictions: Any
    weights: Mapping[Any, float]
    options: dict[str, Any]


def built(row: Row, case: Case, shuffle: random.Random, weights: bool) -> Inputs:
    """Return both sides as tables (or Ragged), and the case as its shape shows it."""
    if row["shape"] == "ragged":
        case = as_ragged(case)
        gain = strategies.ragged(case.labels, pa.float64(), 1) if case.graded else None
        labels = rankmill.Labels(strategies.ragged(case.labels, case.label_item), gain=gain)
        predictions = rankmill.Predictions(
            strategies.ragged(case.predictions, case.prediction_item),
            score=strategies.ragged(case.predictions, case.confidence, 1),
        )
        return Inputs(case, labels, predictions, {}, {})
    worth = {query: shuffle.choice([0.0, 1.0, 2.0, 3.5, 0.1]) for query in case.labels}
    if row["labels"] == "wide":
        labels = strategies.wide_labels(case)
    else:
        rows = strategies.rows(case.labels, shuffle)
        labels = strategies.long_labels(case, rows)
        case = replace(case, labels=oracle.lists_of_rows(rows))
    if weights:
        column = [worth[query] for query in labels["query_id"].to_pylist()]
        labels = labels.append_column("w", pa.array(column, pa.float64()))
    if row["shape"] == "lists":
        predictions = strategies.wide_predictions(case)
    else:
        rows = strategies.rows(case.predictions, shuffle)
        ranked, scored = row["shape"] in ("rank", "both"), row["shape"] in ("confidence", "both")
        predictions = strategies.long_predictions(case, rows, rank=ranked, confidence=scored)
        order = "rank" if row["shape"] == "both" else row["shape"]
        if order == "confidence":
            rows = [(*one[:3], -math.inf if bad(one[3]) else one[3]) for one in rows]
        case = replace(case, predictions=oracle.lists_of_rows(rows, order))
    options: dict[str, Any] = {"gain": "gain"} if case.graded else {}
    return Inputs(case, labels, predictions, worth, options | ({"weight": "w"} if weights else {}))


def stored(table: Any, how: str, folder: Path, name: str) -> Any:
    """Return the table in one of the formats, with several chunks or row groups."""
    if not isinstance(table, pa.Table) or how == "table" or not len(table):
        return table
    if how == "chunks":
        return strategies.chunked(strategies.sliced(table), 2)
    if how == "reader":
        return table.to_reader(max_chunksize=2)
    path = folder / name
    if how == "parquet":
        pq.write_table(strategies.storable(table), path.with_suffix(".parquet"), row_group_size=2)
        return path.with_suffix(".parquet")
    if pa.types.is_list(table.schema.field(1).type):
        lines = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
        path.with_suffix(".jsonl").write_text(lines)
        return path.with_suffix(".jsonl")
    pa_csv.write_csv(table, path.with_suffix(".csv"))
    return path.with_suffix(".csv")


# ------------------------------------------------------------------ results


def evaluated(
    row: Row, inputs: Inputs, metrics: list[str], folder: Path, shuffle: random.Random, **more: Any
) -> rankmill.Result:
    """Evaluate as the row says: at once, in parts that merge, or beside another system."""
    more |= inputs.options
    pair = {"labels": inputs.labels, "predictions": inputs.predictions}

    def given_as(tables: Mapping[str, Any], name: str = "") -> list[Any]:
        return [stored(one, row["format"], folder, side + name) for side, one in tables.items()]

    if row["parts"] == "whole":
        return flat(rankmill.evaluate, *given_as(pair), metrics, **more)
    if row["parts"] == "systems":
        labels, predictions = given_as(pair)
        other = stored(inputs.predictions, row["format"], folder, "other")
        results = flat(
            rankmill.evaluate_runs, labels, {"a": predictions, "b": other}, metrics, **more
        )
        assert results["a"].metrics == results["b"].metrics
        assert results["a"].per_query.equals(results["b"].per_query)
        return results["b"]
    parts = [{side: half(table, part) for side, table in pair.items()} for part in (0, 1)]
    files = [given_as(one, str(n)) for n, one in enumerate(parts)]
    states = [flat(rankmill.parts.evaluate_part, *one, metrics, **more) for one in files]
    state = merged(states, shuffle)
    if not oracle.POOLED & {parse(one).name for one in metrics}:
        return state.result()
    files = [given_as(one, f"again{n}") for n, one in enumerate(parts)]
    counted = [rankmill.parts.second_pass(state, one[1]) for one in files]
    among = {name: merged([one[name] for one in counted], shuffle) for name in counted[0]}
    return state.result(among)


def evaluated_plainly(
    inputs: Inputs, metrics: list[str], weights: str, read: bool, **more: Any
) -> rankmill.Result:
    """Evaluate the lists that the oracle is given as tables, on one thread with much memory."""
    labels = strategies.wide_labels(inputs.case)
    if weights == "some":
        worth = [inputs.weights[query] for query in labels["query_id"].to_pylist()]
        labels = labels.append_column("w", pa.array(worth, pa.float64()))
    predictions = strategies.wide_predictions(inputs.case)
    predictions = predictions if read else predictions.drop_columns("confidence")
    more |= inputs.options | {"threads": 1, "memory": 1 << 30}
    if inputs.case.graded:
        more["gain"] = "gain"
    return flat(rankmill.evaluate, labels, predictions, metrics, **more)


def bits(result: rankmill.Result) -> tuple[Any, ...]:
    """Return what is the same to the last bit however an input is read and cut."""
    return result.metrics, result.standard_errors, result.bounds, result.effective_queries


def half(table: pa.Table, part: int) -> pa.Table:
    """Return the rows of half of the queries, whatever the type of these."""
    kept = [zlib.crc32(str(query).encode()) % 2 == part for query in table["query_id"].to_pylist()]
    rows = [table.slice(row, 1) for row, one in enumerate(kept) if one]
    return pa.concat_tables([table.slice(0, 0), *rows])


def weighted(expected: oracle.Evaluation, weights: Mapping[Any, float]) -> oracle.Evaluation:
    """Return the oracle's answer with means of weighted queries."""
    means = {
        name: oracle.weighted_mean_and_error(
            list(values.values()), [weights[query] for query in values]
        )
        for name, values in expected.per_query.items()
    }
    return replace(
        expected,
        metrics={name: value for name, (value, _, _) in means.items()},
        standard_errors={name: error for name, (_, error, _) in means.items()},
    )


def assert_row_agrees(
    result: rankmill.Result, expected: oracle.Evaluation, inputs: Inputs, row: Row, chosen: Row
) -> None:
    """Compare what a row says with the oracle's: for rows of parts without values by query."""
    whole = row["parts"] != "merged"
    if row["weights"] == "some":
        expected = weighted(expected, inputs.weights)
        worth = [inputs.weights[query] for query in next(iter(expected.per_query.values()))]
        effective = oracle.weighted_mean_and_error(worth, worth)[2]
        assert result.effective_queries == effective
        assert not whole or result.per_query["weight"].to_pylist() == worth
    assert_agrees(result, expected, exact=chosen["order"] != "expected", per_query=whole)
    held = row["shape"] != "ragged" and row["format"] in ("table", "chunks")
    if whole and held and chosen["unlabelled"] == "skip":  # else of a type that holds the others
        assert result.per_query.schema.field("query_id").type == inputs.case.label_query


def asked(row: Row, chosen: dict[str, str], read: bool) -> list[str]:
    """Return the metrics that have a value in such a row."""
    metrics = defined(METRICS, chosen, confidences=read)
    if row["scope"] == "judged":
        metrics = [one for one in metrics if oracle.parse(one)[0] not in oracle_lists.NO_WORST]
    if row["weights"] == "some":  # of those that are means of values from kernels
        specs = {one: parse(one).spec for one in metrics}
        return [m for m, one in specs.items() if one.kernel and one.without_labels != "refused"]
    held = chosen["gap_ties"] in ("given", "ids") or row["scope"] == "judged"
    if row["parts"] == "merged" and held:
        return [one for one in metrics if oracle.parse(one)[0] not in oracle.POOLED]
    return metrics


def check(
    row: Row,
    case: Case,
    chosen: dict[str, str],
    gains: str,
    shuffle: random.Random,
    folder: Path,
) -> None:
    """Evaluate a case as the row says, and compare all of the result with the oracle's.

    With two threads and lists in rows, confidences are read twice if gap does not hold all rows.
    """
    shape, scope = row["shape"], row["scope"]
    if scope != "all" and chosen["order"] in semantics_oracle.OPEN_ORDERS:
        scope = "judged"  # a depth is refused
    row = row | {"scope": scope}
    assume(few_orders(case) and joinable(case))
    if row["format"] == "text":
        case = as_text(case)
    # Predictions without any row are refused.
    assume(case.predictions if shape in ("lists", "ragged") else strategies.rows(case.predictions))
    if shape == "confidence" and chosen["nan_confidence"] == "error":
        assume(not any(bad(one[3]) for one in strategies.rows(case.predictions)))
    inputs = built(row, case, shuffle, row["weights"] == "some")
    # If there are ranks, confidences are read only if a metric or a choice needs them.
    read = shape in ("lists", "ragged", "confidence") or (
        shape == "both" and chosen["order"] != "given"
    )
    metrics = asked(row, chosen, read)
    within = {"depth": 2 if scope == "depth" else None, "judged_only": scope == "judged"}
    truth = functools.partial(
        semantics_oracle.evaluate,
        inputs.case.labels,
        inputs.case.predictions,
        semantics=chosen,
        gains=gains,
        confidences_read=read,
        long_by_confidence=shape == "confidence",
        **within,
    )
    pooled = [one for one in metrics if oracle.parse(one)[0] in oracle.POOLED]
    held = pooled and (chosen["gap_ties"] in ("given", "ids") or scope == "judged")
    few = row["threads"] == "2" and shape == "lists" and row["format"] != "reader" and not held
    options = within | {
        "semantics": chosen,
        "gain_function": gains,
        "threads": int(row["threads"]),
        "memory": 1 if few else 1 << 30,
    }
    run = functools.partial(evaluated, row, inputs, folder=folder, shuffle=shuffle, **options)
    while True:
        try:
            expected = truth(metrics)
            break
        except semantics_oracle.RefusedError as error:
            alone = [one for one in metrics if one == str(error)]
            with pytest.raises(InputError):
                run(alone or metrics)
            if not alone:
                return
            metrics = [one for one in metrics if one not in alone]
    result = run(metrics)
    assert_row_agrees(result, expected, inputs, row, chosen)
    plain = bits(evaluated_plainly(inputs, metrics, row["weights"], read, **options))
    assert bits(result) == plain
    assert result.semantics.to_dict() == chosen
    if scope != "all":
        gone = semantics_oracle.dropped(
            inputs.case.labels, inputs.case.predictions, chosen, **within
        )
        assert {name: result.audit[name] for name in gone} == gone


@pytest.mark.rows(12)
@pytest.mark.small
@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=title(row)) for row in FEW]
    + [pytest.param(row, id=title(row), marks=pytest.mark.long) for row in MORE.values()],
)
def test_every_way_to_evaluate_agrees_with_the_oracle(
    row: Row, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("sweep")
    fixed = {"unlabelled": "skip"} if row["weights"] == "some" else {}
    semantics = some_semantics(**fixed) if row["semantics"] == "chosen" else st.just(DEFAULTS)

    @seed(zlib.crc32(title(row).encode()))
    # To shrink a failure would take minutes, as each try evaluates every metric.
    @hypothesis_settings(max_examples=examples(16) if row in FEW else 1, phases=[Phase.generate])
    @given(
        semantic_cases() if row["semantics"] == "chosen" else strategies.cases(),
        semantics,
        st.sampled_from(["linear", "exp"]),
        st.integers(0, 2**32).map(random.Random),
    )
    def holds(case: Case, chosen: dict[str, str], gains: str, shuffle: random.Random) -> None:
        check(row, case, chosen, gains, shuffle, folder)

    holds()
