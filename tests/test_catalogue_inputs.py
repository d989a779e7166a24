"""What is read for metrics over a catalogue: what is said of it, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from conftest import tells
from rankmill import InputError, UsageError
from rankmill.results.result import view_of
from rankmill.results.systems import systems_view
from rankmill.results.writers import plain_text

LABELS = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}}
PREDICTIONS = {
    "q1": [("a", 0.9), ("x", 0.8), ("b", 0.7)],
    "q2": [("y", 0.6), ("c", 0.5)],
    "q5": [("z", 0.3)],
}
TRAIN = pa.table({"user_id": ["q1", "q2"], "item_id": ["a", "c"]})
ITEMS = pa.table({"item_id": ["a", "b", "x", "c"], "genre": ["1", "2", "1", "2"]})


def refused(words: list[str], *sides: Any, metrics: str = "novelty@2", **options: Any) -> None:
    with pytest.raises((UsageError, InputError)) as caught:
        rankmill.evaluate(*(sides or (LABELS, PREDICTIONS)), metrics, **options)
    tells(caught.value, words)


@pytest.mark.small
def test_a_mean_over_lists_tells_how_many() -> None:
    """Three lists of predictions, two of which have two items; two queries have labels."""
    asked = {"items": ITEMS, "item_group": "genre", "train": TRAIN}
    found = rankmill.evaluate(LABELS, PREDICTIONS, "map,novelty,ild,coverage", **asked)
    assert found.lists == {"novelty": 3, "ild": 1}
    counts = found.to_arrow()["queries"].to_pylist()
    assert counts == [2, 3, 1, 2]
    assert [row.split()[-1] for row in repr(found).splitlines()[2:6]] == ["2", "3", "1", "2"]
    assert found.to_dict()["lists"] == found.lists
    assert "lists" not in rankmill.evaluate(LABELS, PREDICTIONS, "map").to_dict()


def test_a_gate_and_a_history_count_lists(tmp_path: Any) -> None:
    found = rankmill.evaluate(LABELS, PREDICTIONS, "map,novelty", train=TRAIN)
    rankmill.record(found, tmp_path)
    (run,) = rankmill.history(tmp_path).runs
    assert (run.get("novelty").queries, run.get("map").queries) == (3, 2)
    rules = ["novelty drop <= 0.5"]
    for base in ("last", found):
        how: dict[str, Any] = {"baseline": base, "rules": rules, "train": TRAIN}
        verdict = rankmill.gate(LABELS, PREDICTIONS, history=tmp_path, **how)
        assert verdict.word == "held"


@pytest.mark.small
def test_what_was_read_is_told() -> None:
    asked = {"items": ITEMS, "item_group": "genre", "train": TRAIN}
    result = rankmill.evaluate(LABELS, PREDICTIONS, "ild,novelty", **asked)
    assert result.inputs["items"]["columns"] == {"item": "item_id", "group": "genre"}
    assert "unread" not in result.inputs["items"]
    runs = {"one": PREDICTIONS, "two": PREDICTIONS}
    found = rankmill.compare(LABELS, runs, "map,ild,novelty", **asked)
    for name in ("train", "items"):
        assert found.inputs[name] == result.inputs[name]
        assert found.to_dict()["inputs"][name] == result.inputs[name]
    told = repr(found)
    assert "item = item_id, group = genre" in told
    assert "query = user_id, item = item_id" in told
    results = rankmill.evaluate_runs(LABELS, runs, "ild", **asked)
    assert "group = genre" in plain_text(systems_view(results, True).screen())
    assert "group = genre" in plain_text(view_of(result).screen())


@pytest.mark.small
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_nan_is_no_group(kind: Any) -> None:
    def groups_of(groups: pa.Array) -> list[str]:
        items = pa.table({"item_id": ["a", "b", "x"], "g": groups})
        how: dict[str, Any] = {"items": items, "item_group": "g"}
        found = rankmill.evaluate(LABELS, PREDICTIONS, "exposure_parity", **how).groups
        return found["group"].to_pylist()

    numbers = np.array([1.5, 2.0, np.nan], kind.to_pandas_dtype())
    nan, null = pa.array(numbers), pa.array(numbers, mask=np.isnan(numbers))
    assert nan.null_count == 0
    assert groups_of(nan) == groups_of(null) == ["1.5", "2"]
