"""Ids of text beside integers: as integers while all are, and else as text, in every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rankmill
from rankmill.analysis.explain.trace import side_by_side
from rankmill.sources.meaning.looks import ROWS

COUNT = ROWS + 2
LABELS = pa.table({"query": range(COUNT), "item": [1] * COUNT})
# Of what is looked at first, all are integers.
LATE = pa.table(
    {
        "query": [*map(str, range(COUNT - 1)), "x1"],
        "item": [1] * COUNT,
        "score": [0.5] * COUNT,
    }
)
MEAN = (COUNT - 1) / COUNT

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "evaluate": lambda *sides: rankmill.evaluate(*sides, "map")["map"],
    "part": lambda *sides: rankmill.parts.evaluate_part(*sides, "map").result()["map"],
    "compare": lambda labels, run: (
        rankmill.compare(labels, {"a": run, "b": run}, "map").values["map"]["b"].value
    ),
    "explain": lambda *sides: rankmill.explain(*sides, "map", "5").value * MEAN,
    "evaluators": lambda *sides: (
        rankmill.explain_evaluators(*sides, "map", ["default", "trec_eval"]).value
    ),
    "lists": lambda labels, run: (
        side_by_side(labels, {"a": run}, ["5"], 3)[0].lists["a"][0][1] * MEAN
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_later_id_that_is_no_integer(call: str) -> None:
    assert CALLS[call](LABELS, LATE) == pytest.approx(MEAN, rel=1e-12)


@pytest.mark.small
def test_some_text_where_the_other_side_has_integers_is_told() -> None:
    labels = pa.table({"query_id": [1, 2], "item_id": ["1E+05", "7"]})
    run = {1: [100_000], 2: [7]}
    result = rankmill.evaluate(labels, run, "map")
    assert result["map"] == 0.5
    assert "'1E+05' in 'item_id' is no integer, as all item ids" in result.notes[0]
    exact = rankmill.evaluate(rankmill.Labels(labels, exact_ids=True), run, "map")
    assert not exact.notes
