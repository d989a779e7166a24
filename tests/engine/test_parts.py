"""Evaluating in parts: merged states give what one evaluation gives, to the last bit."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from flat import flat
from parts_of_inputs import METRICS


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
