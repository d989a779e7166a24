"""Evaluating in parts: states, counts and rows that do not belong together are refused."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
from flat import flat
from parts_of_inputs import FIELDS, METRICS, counted, merged, random_parts, sent
from rankmill.metrics.records.state_rows import PIECE, Seen
from sealed_rows import resealed
from strategies import examples


@pytest.mark.small
@settings(max_examples=examples(30))
@given(st.integers(0, 2**32).map(random.Random))
def test_a_second_pass_of_other_predictions_is_refused(draw: random.Random) -> None:
    parts = random_parts(draw, 3)
    states = [flat(rankmill.parts.evaluate_part, *part, METRICS, query="q") for part in parts]
    state = merged(states, draw)
    right = state.result(counted(state, parts, draw))
    taken = [part for part in parts for _ in range(draw.choice([0, 1, 1, 2]))] or parts[:1]
    counts = counted(state, taken, draw)
    if confidences(taken) != confidences(parts):
        with pytest.raises(rankmill.UsageError, match="each part once"):
            state.result(counts)
        return
    result = state.result(counts)  # a part without predictions may be left out
    for field in FIELDS:
        assert getattr(result, field) == getattr(right, field), field


def confidences(parts: list[Any]) -> list[list[float]]:
    """The metrics of gap: gap and gap@2."""
    listed = [
        [score for item, score in zip(row["items"], row["score"], strict=True) if item is not None]
        for _, table in parts
        for row in table.to_pylist()
    ]
    return [sorted(score for scores in listed for score in scores[:k]) for k in (None, 2)]


def part_of(confidences: list[float], first: int, kind: Any = np.float64) -> Any:
    """Return queries with one right prediction each, for every confidence from `first` on."""
    queries = np.arange(first, first + len(confidences))
    items = pa.array([[1]] * len(queries))
    scores = pa.array([np.array([one], kind) for one in confidences])
    return pa.table({"q": queries, "items": items, "score": scores})


def state_of(table: pa.Table, metrics: Any = "gap", **options: Any) -> rankmill.parts.State:
    labels = table.drop_columns("score")
    return flat(rankmill.parts.evaluate_part, labels, table, metrics, query="q", **options)


@pytest.mark.small
@pytest.mark.parametrize("size", [3, 7])
def test_a_second_pass_of_another_state_is_refused(size: int) -> None:
    first, second = part_of([0, 1, 2], 0), part_of(list(range(100, 100 + size)), 10)
    state, other = state_of(first), state_of(second)
    both = state.merge(other)
    alone = rankmill.parts.second_pass(state, rankmill.Predictions(first, query="q"))
    with pytest.raises(rankmill.UsageError, match="gap: the second pass used another state"):
        both.result(alone)
    with pytest.raises(rankmill.UsageError, match="used another state"):
        other.result({"gap": sent(alone["gap"])})
    of_both = rankmill.parts.second_pass(both, rankmill.Predictions(second, query="q"))
    with pytest.raises(rankmill.UsageError, match="these counts were made with two states"):
        of_both["gap"].merge(alone["gap"])
    with pytest.raises(
        rankmill.UsageError, match=f"first pass saw {3 + size} predictions and the second {size}:"
    ):
        both.result(of_both)
    of_all = rankmill.parts.second_pass(both, rankmill.Predictions(first, query="q"))["gap"].merge(
        of_both["gap"]
    )
    assert both.result({"gap": of_all})["gap"] == 1.0


@pytest.mark.small
def test_a_part_counted_twice_in_place_of_another_of_its_size_is_refused() -> None:
    first, second = part_of([1, 2, 3], 0), part_of([1, 2, 4], 10)
    state = state_of(first).merge(state_of(second))
    once = rankmill.parts.second_pass(state, rankmill.Predictions(first, query="q"))["gap"]
    with pytest.raises(rankmill.UsageError, match="both passes saw 6 predictions, but of other"):
        state.result({"gap": once.merge(once)})
    # Every correct confidence is counted often enough here; only the wrong predictions differ.
    labels = pa.table({"q": [0, 1], "items": [[1], [1]]})
    tables = [
        pa.table({"q": [row], "items": [[1, 2]], "score": [[0.5, wrong]]})
        for row, wrong in ((0, 0.75), (1, 0.25))
    ]
    states = [
        rankmill.parts.evaluate_part(
            rankmill.Labels(labels.slice(row, 1), query="q"),
            rankmill.Predictions(table, query="q"),
            "gap",
        )
        for row, table in enumerate(tables)
    ]
    state = states[0].merge(states[1])
    once = rankmill.parts.second_pass(state, rankmill.Predictions(tables[0], query="q"))["gap"]
    with pytest.raises(rankmill.UsageError, match="both passes saw 4 predictions, but of other"):
        state.result({"gap": once.merge(once)})


@pytest.mark.small
def test_counts_of_another_job_or_metric_are_refused() -> None:
    table = part_of([1, 2, 3], 0)
    state = state_of(table, ["gap", "gap@2"])
    right = rankmill.parts.second_pass(state, rankmill.Predictions(table, query="q"))
    with pytest.raises(rankmill.UsageError, match="gap: the second pass used another state"):
        state.result({"gap": right["gap@2"], "gap@2": right["gap"]})
    for options in ({"semantics": "spark"}, {"gain_function": "exp"}, {"metrics": ["gap", "map"]}):
        other = state_of(table, **{"metrics": ["gap", "gap@2"], **options})
        counts = rankmill.parts.second_pass(other, rankmill.Predictions(table, query="q"))
        with pytest.raises(rankmill.UsageError, match="gap: the second pass used another state"):
            state.result(right | counts)


@pytest.mark.small
def test_fingerprints_depend_neither_on_the_float_type_nor_on_the_order_of_merges() -> None:
    first, second = part_of([0.0, 0.25], 0, np.float32), part_of([-0.0, 1.0], 10, np.float32)
    states = [state_of(first), state_of(second)]
    wide = [state_of(part_of([-0.0, 1.0], 10, np.float64)), state_of(first)]
    assert states[0].aggregates["gap"].correct.values.dtype == np.float32
    assert wide[0].aggregates["gap"].correct.values.dtype == np.float64
    # A second pass sorts in the narrower type.
    assert sent(wide[0]).aggregates["gap"].correct.values.dtype == np.float32
    merges = [states[0].merge(states[1]), states[1].merge(states[0])]
    assert len({np.signbit(one.aggregates["gap"].correct.values[0]) for one in merges}) == 2
    merges += [sent(one) for one in merges]
    merges.append(wide[0].merge(wide[1]))
    assert len({one.counted_among("gap") for one in merges}) == 1
    counts = [
        sent(rankmill.parts.second_pass(one, rankmill.Predictions(table, query="q"))["gap"])
        for one, table in zip(merges, (first, second), strict=False)
    ]
    assert merges[3].result({"gap": counts[0].merge(counts[1])})["gap"] == 1.0


def damages() -> dict[str, tuple[dict[str, Any], str]]:
    """Damage to the row of a state: the fields that differ, and the text of the error."""
    return {
        "older": (
            {"format": 0},
            "is of format 0, and this version of rankmill reads formats 6 to 7",
        ),
        "metric": ({"metrics": ["gap", "map@2"]}, "its checksum is not that of its fields"),
        "no list": ({"metrics": "gap"}, "metrics is 'gap', not a list of texts"),
        "unknown": ({"metrics": ["gap", "mapp"]}, "its checksum is not that of its fields"),
        "semantics": ({"semantics": "{"}, "semantics: "),
        "choice": ({"semantics": '{"order": "no"}'}, "semantics: .*order cannot be 'no'"),
        "gain_function": (
            {"gain_function": "exp"},
            "fingerprint is not that of its metrics, semantics and gain function",
        ),
        "scope": ({"scope": '{"far": 1}'}, "scope: .*'far'"),
        "other scope": ({"scope": '{"depth": 1}'}, "fingerprint is not that of .*, or its scope"),
        "queries": ({"queries": -1}, "queries is -1, not a count"),
        "half": ({"gap_total": 1.5}, "gap_total is 1.5, not a count"),
        "audit": ({"audit.null_items": None}, "audit.null_items is None, not a count"),
        "mean": ({"map.count": 4}, "map is a mean over 4 of 3 queries"),
        "sum": ({"map.total": "-5"}, "map.total is '-5', not a sum"),
        "squares": ({"map.squares": "0"}, "map.squares is less than map.total allows"),
        "length": ({"gap.counts": [1, 1]}, "gap.values and gap.counts hold 3 and 2 numbers"),
        "negative": ({"gap.counts": [1, -1, 1]}, r"gap.counts\[1\] is -1, not a count"),
        "too many": (
            {"gap.counts": [1, 2**60, 2**63 - 1]},
            "gap.counts add up to .*, of 3 predictions",
        ),
        "not int": ({"gap.counts": [1.0, 1.0, 1.0]}, "gap.counts is not a list of numbers"),
        "nested": ({"gap.values": [[1.0], [2.0, 3.0]]}, "gap.values is not a list of numbers"),
        "unsorted": ({"gap.values": [1.0, 3.0, 2.0]}, "gap.values is not strictly ascending"),
        "equal": ({"gap.values": [1.0, 1.0, 2.0]}, "gap.values is not strictly ascending"),
        "nan": ({"gap.values": [1.0, 2.0, np.nan]}, "gap.values is not strictly ascending"),
        "fewer": ({"gap.predictions": 2}, "gap.counts add up to 3, of 2 predictions"),
        "checksum": ({"gap.checksum": "12"}, "gap.checksum is '12', not 16 hexadecimal digits"),
    }


@pytest.mark.small
@pytest.mark.parametrize("damage", damages())
def test_the_row_of_a_state_is_checked(damage: str) -> None:
    row = state_of(part_of([1, 2, 3], 0), ["gap", "map"]).to_row()
    changed, message = damages()[damage]
    assert rankmill.parts.State.from_row(row).to_row().keys() == row.keys()
    with pytest.raises(rankmill.UsageError, match=message):
        rankmill.parts.State.from_row(resealed(row | changed))
    if not changed.keys() & {"format", "metrics"}:
        with pytest.raises(rankmill.UsageError, match="its checksum is not that of its fields"):
            rankmill.parts.State.from_row(row | changed)


@pytest.mark.small
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"format": "1"}, "is of format '1'"),
        ({"state": None}, "state is None, not text"),
        ({"at": [1, 1]}, "at and above hold 2 and 3 numbers"),
        ({"above": [0, -1, 0]}, r"above\[1\] is -1, not a count"),
        ({"at": [1, 1, 2]}, "at and above add up to 4, of 3 predictions"),
    ],
)
def test_the_row_of_counts_is_checked(changed: dict[str, Any], message: str) -> None:
    table = part_of([1, 2, 3], 0)
    row = rankmill.parts.second_pass(state_of(table), rankmill.Predictions(table, query="q"))[
        "gap"
    ].to_row()
    with pytest.raises(rankmill.UsageError, match=message):
        rankmill.parts.State.read_counts(resealed(row | changed))


@pytest.mark.small
def test_every_field_of_a_row_is_needed() -> None:
    table = part_of([1, 2, 3], 0)
    state = state_of(table, ["gap", "map"])
    counts = rankmill.parts.second_pass(state, rankmill.Predictions(table, query="q"))["gap"]
    for one in (state, counts):
        row = one.to_row()
        for name in row:
            left = {key: value for key, value in row.items() if key != name}
            with pytest.raises(rankmill.UsageError, match="is damaged: it"):
                type(one).from_row(left)


@pytest.mark.small
def test_states_made_by_hand_are_checked_before_kernels_read_them() -> None:
    table = part_of([1, 2, 3], 0)
    state = state_of(table)
    counts = rankmill.parts.second_pass(state, rankmill.Predictions(table, query="q"))["gap"]
    with pytest.raises(rankmill.UsageError, match="at and above hold 1 and 3 numbers"):
        state.result({"gap": replace(counts, at=counts.at[:1])})
    short = replace(counts, at=counts.at[:1], above=counts.above[:1])
    with pytest.raises(rankmill.UsageError, match="counted among another state"):
        state.result({"gap": short})
    with pytest.raises(rankmill.UsageError, match="made with two states"):
        counts.merge(short)
    with pytest.raises(rankmill.UsageError, match="saw 3 predictions, but of other confidences"):
        state.result({"gap": replace(counts, at=counts.at[[0, 0, 0]] - [0, 0, 1])})


@pytest.mark.small
def test_the_checksum_of_confidences_depends_on_no_order_and_tells_equal_sums_apart() -> None:
    def seen(*values: float, kind: Any = np.float64) -> Seen:
        return Seen.of(np.array(values, kind), checksum=True)

    # The bits of the first pair have equal sums, and so do the numbers of the second pair.
    for one, other in (((1, 4), (2, 2)), ((1, 4), (2, 3)), ((0.5,), (0.25,))):
        assert seen(*one) != seen(*other)
    assert seen(1, 2, -0.0) == seen(2, kind=np.float32).merge(seen(0.0, 1))
    many = np.random.default_rng(0).random(PIECE + 9)
    assert Seen.of(many, checksum=True) == Seen.of(np.sort(many), checksum=True)
