"""Evaluating in parts: merged states give what one evaluation gives, to the last bit."""

from __future__ import annotations

import dataclasses
import functools
import pickle
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
from flat import flat
from parts_of_inputs import FIELDS, METRICS, counted, merged, random_parts
from rankmill.metrics.gap.gap_counts import Among
from rankmill.semantics.presets import preset
from strategies import examples


def rows(first: int, last: int, dtype: type) -> tuple[pa.Table, pa.Table]:
    """Return long labels and predictions of queries first to last; many confidences are tied."""
    draw = np.random.default_rng(first)
    parts = {"labels": 4, "predictions": 7}
    tables = []
    for n in parts.values():
        queries = np.repeat(np.arange(first, last), n)
        items = draw.integers(0, 20, len(queries))
        keep = draw.random(len(queries)) < 0.9
        scores = draw.integers(0, 9, len(queries)).astype(dtype)
        columns = {"query": queries[keep], "item": items[keep], "score": scores[keep]}
        tables.append(pa.table(columns))
    return tables[0].drop_columns("score"), tables[1]


def split(table: pa.Table, part: int, of: int) -> pa.Table:
    return table.filter(pa.array(np.asarray(table["query"]) % of == part))


def through_arrow(state: rankmill.parts.State) -> rankmill.parts.State:
    """Return the state after a conversion to a table and back, as a cluster sends it."""
    return rankmill.parts.State.from_row(pa.Table.from_pylist([state.to_row()]).to_pylist()[0])


@pytest.mark.small
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("semantics", ["default", "spark", "sklearn", "vsc2022"])
def test_merged_parts_are_the_whole(dtype: type, semantics: str) -> None:
    if semantics in ("sklearn", "vsc2022"):  # they refuse repeats; sklearn leaves gap@2 undefined
        semantics = {
            **preset(semantics).semantics.to_dict(),
            "repeated_predictions": "drop",
            "repeated_labels": "set",
            "order": "given",
        }
    labels, predictions = rows(0, 60, dtype)
    whole = rankmill.evaluate(labels, predictions, METRICS, semantics=semantics)
    count = 3
    parts = [(split(labels, i, count), split(predictions, i, count)) for i in range(count)]
    states = [rankmill.parts.evaluate_part(*part, METRICS, semantics=semantics) for part in parts]
    random.Random(1).shuffle(states)
    state = functools.reduce(rankmill.parts.State.merge, map(through_arrow, states))
    counted = [
        rankmill.parts.second_pass(state, part[1], memory=1 + i) for i, part in enumerate(parts)
    ]
    among = {
        name: functools.reduce(
            Among.merge,
            (rankmill.parts.State.read_counts(one[name].to_row()) for one in counted),
        )
        for name in ("gap", "gap@2")
    }
    result = state.result(among)
    for field in FIELDS:
        assert getattr(result, field) == getattr(whole, field), field


@pytest.mark.small
def test_padding_in_any_part_is_a_note_of_the_whole() -> None:
    lists = rankmill.arrays.Ragged.from_lists
    labels, runs = lists([[1]]), (lists([[1, 2]]), lists([[3, -1]]))
    parts = [rankmill.parts.evaluate_part(labels, one, "map") for one in runs]
    rows = [one.to_row() for one in parts]
    assert [row.pop("audit.padded_lists") for row in rows] == [0, 1]
    one, other = map(rankmill.parts.State.from_row, (part.to_row() for part in parts))
    (note,) = one.merge(other).result().notes
    assert note == rankmill.evaluate(labels, runs[1], "map").notes[0]
    assert not one.result().notes


def test_states_of_other_questions_do_not_merge() -> None:
    labels, predictions = rows(0, 9, np.float64)
    states = [
        rankmill.parts.evaluate_part(labels, predictions, metric, semantics=semantics)
        for metric, semantics in [("map", "default"), ("map@3", "default"), ("map", "spark")]
    ]
    states.append(
        rankmill.parts.evaluate_part(
            labels, predictions, "map", semantics=rankmill.Semantics(gain_function="exp")
        )
    )
    with pytest.raises(rankmill.UsageError, match="states of other metrics do not merge"):
        states[0].merge(states[1])
    with pytest.raises(rankmill.UsageError, match="states of other semantics do not merge"):
        states[0].merge(states[2])
    with pytest.raises(
        rankmill.UsageError, match="states of other gain_function do not merge: linear"
    ):
        states[0].merge(through_arrow(states[3]))
    assert len({state.fingerprint for state in states}) == 4


@pytest.mark.small
def test_gap_in_parts_needs_the_second_pass() -> None:
    labels, predictions = rows(0, 9, np.float64)
    state = rankmill.parts.evaluate_part(labels, predictions, "gap")
    with pytest.raises(
        rankmill.UsageError, match="gap needs a second pass: give result\\(\\) what second_pass"
    ):
        state.result()
    with pytest.raises(rankmill.UsageError, match="'ids' needs all predictions at once"):
        rankmill.parts.evaluate_part(labels, predictions, "gap", semantics={"gap_ties": "ids"})


@pytest.mark.small
def test_parts_without_labels_or_predictions_count_as_in_the_whole() -> None:
    labels, predictions = rows(0, 20, np.float64)
    whole = rankmill.evaluate(labels, predictions.slice(0, 60), METRICS)
    pieces = [
        (labels.slice(0, 0), predictions.slice(0, 0)),
        (split(labels, 0, 2), split(predictions.slice(0, 60), 0, 2)),
        (split(labels, 1, 2).slice(0, 0), split(predictions.slice(0, 60), 1, 2)),
    ]
    states = [rankmill.parts.evaluate_part(*piece, METRICS) for piece in pieces]
    with pytest.raises(rankmill.InputError, match="holds no rows"):
        rankmill.evaluate(*pieces[0], METRICS)
    assert states[0].queries == 0
    assert (
        states[0].result(rankmill.parts.second_pass(states[0], pieces[0][1])).metrics["gap"] is None
    )
    state = functools.reduce(rankmill.parts.State.merge, map(through_arrow, states))
    assert state.queries == len(set(split(labels, 0, 2)["query"].to_pylist()))
    unpredicted = rankmill.parts.evaluate_part(
        split(labels, 1, 2), predictions.slice(0, 0), METRICS
    )
    assert unpredicted.aggregates["recall@4"].total == 0
    unknown = dataclasses.replace(unpredicted, origin=None)  # else the same queries are refused
    assert state.merge(unknown).queries == whole.queries
    with pytest.raises(rankmill.UsageError, match="the predictions of one and the labels of the"):
        state.merge(unpredicted)


@pytest.mark.small
@pytest.mark.parametrize("wide", [True, False])
def test_a_part_without_labels_needs_no_weights(wide: bool) -> None:
    items = pa.array([[1], [2]]) if wide else pa.array([1, 2])
    labels = pa.table({"query": [1, 2], "item": items, "weight": [0.5, 2]})
    predictions = pa.table({"query": [1, 2, 3], "item": [[1], [1], [1]]})
    whole = rankmill.evaluate(rankmill.Labels(labels, weight="weight"), predictions, ["map"])
    parts = [(labels, predictions.slice(0, 2)), (labels.slice(2), predictions.slice(2))]
    states = [flat(rankmill.parts.evaluate_part, *part, ["map"], weight="weight") for part in parts]
    result = states[0].merge(states[1]).result()
    assert (result.metrics, result.audit) == (whole.metrics, whole.audit)


@pytest.mark.small
@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2"])
def test_threads_are_a_positive_integer(wrong: Any) -> None:
    table = pa.table({"q": [1], "items": [[1]], "score": [[0.5]]})
    state = rankmill.parts.evaluate_part(
        rankmill.Labels(table, query="q"), rankmill.Predictions(table, query="q"), "gap"
    )
    counted = rankmill.parts.second_pass(state, rankmill.Predictions(table, query="q"))
    for call in (
        lambda: rankmill.parts.second_pass(
            state, rankmill.Predictions(table, query="q"), threads=wrong
        ),
        lambda: rankmill.parts.second_pass(
            state, rankmill.Predictions(table, query="q"), memory=wrong
        ),
        lambda: state.result(counted, threads=wrong),
    ):
        with pytest.raises(rankmill.UsageError, match="expected a positive integer"):
            call()


@pytest.mark.small
@settings(max_examples=examples(30))
@given(st.integers(0, 2**32).map(random.Random), st.sampled_from(["default", "spark", "lenskit"]))
def test_random_parts_merged_by_random_trees(draw: random.Random, semantics: str) -> None:
    parts = random_parts(draw, draw.randrange(1, 5))
    labels, predictions = (
        pa.concat_tables(side, promote_options="permissive") for side in zip(*parts, strict=True)
    )
    if not any(labels["items"].to_pylist()) or not predictions.num_rows:
        return
    options = {
        "query": "q",
        "semantics": preset(semantics).semantics,
        "gain_function": draw.choice(["linear", "exp"]),
    }
    whole = flat(rankmill.evaluate, labels, predictions, METRICS, **options)
    states = [flat(rankmill.parts.evaluate_part, *part, METRICS, **options) for part in parts]
    state = merged(states, draw)
    result = merged(states, draw).result(counted(state, parts, draw))
    for field in FIELDS:
        assert getattr(result, field) == getattr(whole, field), field


@pytest.mark.small
def test_rows_of_all_parts_make_one_table() -> None:
    table = pa.table({"q": [1], "items": [["a"]], "score": [[0.5]]})
    parts = [table, table.slice(0, 0)]
    states = [
        rankmill.parts.evaluate_part(
            rankmill.Labels(one, query="q"), rankmill.Predictions(one, query="q"), "gap"
        )
        for one in parts
    ]
    rows = pa.Table.from_pylist([state.to_row() for state in states]).to_pylist()
    state = functools.reduce(rankmill.parts.State.merge, map(rankmill.parts.State.from_row, rows))
    counted = [
        rankmill.parts.second_pass(state, rankmill.Predictions(one, query="q"))["gap"]
        for one in parts
    ]
    assert state.result({"gap": counted[0].merge(counted[1])})["gap"] == 1.0


@pytest.mark.small
def test_a_state_is_as_large_after_it_was_looked_at() -> None:
    items = pa.array([[1]] * 2000)
    scores = pa.array([[float(i)] for i in range(2000)])
    table = pa.table({"q": range(2000), "items": items, "score": scores})
    state = rankmill.parts.evaluate_part(
        rankmill.Labels(table, query="q"), rankmill.Predictions(table, query="q"), "gap"
    )
    state.to_row()
    once = len(pickle.dumps(state))
    assert once < 2000 * 16 + 2 * 256 * 8 + 5000
    state.result(rankmill.parts.second_pass(state, rankmill.Predictions(table, query="q")))
    assert len(pickle.dumps(state)) == once
    assert pickle.loads(pickle.dumps(state)).fingerprint == state.fingerprint
