"""What users hand over: it opens nothing, prints, pickles, and is equal to its like."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from rankmill import Catalogue, Labels, Predictions, Rules, Semantics, Tests, UsageError
from rankmill.sources.inputs.any_source import open_source

TABLE = pa.table({"user_id": [7], "items": [[1, 2]]})
NOUNS = [
    Labels("there is no such file", gain="stars"),
    Labels(TABLE, weight="w"),
    Labels(np.array([[1, 2]])),
    Predictions({"q": [("a", np.float64(0.5))]}, in_order=True),
    Catalogue(train=TABLE, drop_seen=True),
    Semantics("trec_eval", rel=2, order="given"),
    Rules(["map >= 0.1"], undecided="fail"),
    Tests("randomization", seed=3),
]


@pytest.mark.small
@pytest.mark.parametrize("one", NOUNS, ids=lambda one: type(one).__name__)
def test_a_noun_pickles_and_is_equal_to_its_like_alone(one: object) -> None:
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert [other == one for other in NOUNS].count(True) == 1
    assert repr(one).startswith(f"{type(one).__name__}(")
    assert len(repr(one)) < 300
    with pytest.raises(AttributeError):
        one.data = one.rules = one.preset = one.train = one.tests = 1  # type: ignore[attr-defined]


@pytest.mark.small
@pytest.mark.parametrize("noun", [Labels, Predictions, Catalogue, Semantics, Rules, Tests])
def test_only_what_a_noun_is_made_of_stands_without_a_name(noun: type) -> None:
    named = [TABLE] if noun in (Labels, Predictions) else [] if noun is Catalogue else ["t"]
    for more in (["a"], ["a", "b", "c"]):
        with pytest.raises(TypeError, match="positional argument"):
            noun(*named, *more)


@pytest.mark.small
def test_data_that_cannot_be_compared_are_not_equal() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError

        __hash__ = None  # type: ignore[assignment]

    assert Labels(Odd()) != Labels(Odd())
    assert Labels(np.array([1, 2])) != Labels(np.array([1, 2, 3]))
    assert Labels("a") != Predictions("a")


@pytest.mark.small
def test_a_noun_in_the_place_of_another_is_refused() -> None:
    with pytest.raises(UsageError, match=r"labels cannot be Predictions\(\.\.\.\)"):
        rankmill.evaluate(Predictions(TABLE), TABLE, "map")
    with pytest.raises(UsageError, match=r"predictions cannot be Labels\(\.\.\.\)"):
        rankmill.evaluate_runs(TABLE, {"a": Labels(TABLE)}, "map")
    with pytest.raises(UsageError, match="catalogue is a str; expected Catalogue"):
        rankmill.evaluate(TABLE, TABLE, "map", catalogue="items.parquet")  # type: ignore[arg-type]
    for odd, shown in ((Tests("t"), "a Tests"), (Rules("map >= 0.1"), "a Rules"), (3, "3")):
        with pytest.raises(UsageError, match=f"rules is {shown}; expected rules"):
            rankmill.gate(TABLE, TABLE, Rules(odd))  # type: ignore[arg-type]
    # The second of two systems stands where metrics or rules do.
    for data in (TABLE, TABLE.to_pandas(), {"u": ["a"]}, [["a"], ["b"]]):
        odd = "list" if isinstance(data, list) else type(data).__name__
        for function, what in ((rankmill.evaluate, "metrics"), (rankmill.gate, "rules")):
            with pytest.raises(UsageError, match=f"{what} is a {odd}; expected"):
                function(TABLE, TABLE, data)  # type: ignore[operator]
    first = rankmill.evaluate(TABLE, TABLE, "map,recall@1")
    assert rankmill.evaluate(TABLE, TABLE, first.metrics).metrics == first.metrics
    for told in ({"confidence": 3}, {"confidence": True}, {"confidence": "x"}):
        with pytest.raises(UsageError, match=r"confidence is .*; expected a number between 0 and"):
            rankmill.gate(TABLE, TABLE, Rules("map >= 0.1", **told))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"moved is 1\.5; expected an integer"):
        rankmill.gate(TABLE, TABLE, "map >= 0.1", moved=1.5)
    with pytest.raises(UsageError, match="by cannot be a Labels"):
        rankmill.gate(TABLE, TABLE, "map >= 0.1", by=Labels(TABLE))
    for lone in (Labels(TABLE), Predictions(TABLE), "run.parquet"):
        with pytest.raises(UsageError, match=f"runs is a {type(lone).__name__}; expected a map"):
            rankmill.evaluate_runs(TABLE, lone, "map")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unknown preset"):
        Semantics("trec")
    with pytest.raises(UsageError, match="ap_divisor cannot be 'label'"):
        Semantics(ap_divisor="label")


@pytest.mark.small
def test_head_tells_what_would_be_read() -> None:
    told = Labels(TABLE).head()
    assert (told["role"], told["queries"][0]["items"]) == ("labels", [1, 2])
    assert "read as  labels" in repr(told)
    assert rankmill.head(TABLE)["role"] == "predictions"


@pytest.mark.small
def test_each_run_may_have_columns_of_its_own() -> None:
    other = pa.table({"who": [7], "what": [[9, 2]]})
    runs = {"a": TABLE, "b": Predictions(other, query="who", item="what")}
    found = rankmill.compare(TABLE, runs, "map")
    assert {name: one.value for name, one in found.values["map"].items()} == {"a": 1.0, "b": 0.25}


@pytest.mark.parametrize("noun", [Labels, Predictions])
def test_all_but_the_data_is_named(noun: Any) -> None:
    with pytest.raises(TypeError, match="too many positional arguments"):
        noun("rows.csv", "stars")


@pytest.mark.small
def test_each_input_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []

    def spy(value: Any, asked: Any, **more: Any) -> Any:
        opened.append(value)
        return open_source(value, asked, **more)

    monkeypatch.setattr("rankmill.sources.inputs.inputs.open_source", spy)
    monkeypatch.setattr("rankmill.sources.inputs.catalogue_items.open_source", spy)
    monkeypatch.setattr("rankmill.sources.inputs.catalogue_items.open_source", spy)
    # The function of this name hides the folder from pytest.
    monkeypatch.setattr(import_module("rankmill.analysis.explain.evaluators"), "open_source", spy)
    labels, predictions, train = (
        pa.table({"query": [1, 2], "items": lists})
        for lists in ([[1], [2]], [[1, 2], [3, 1]], [[3], [4]])
    )
    items = pa.table({"item": [1, 2, 3, 4]})
    features = pa.table({"item": [1, 2, 3, 4], "vector": [[1.0], [0.5], [2.0], [3.0]]})
    catalogue = rankmill.Catalogue(train=train, items=items, features=features)
    metrics = ["map@2", "novelty@2", "coverage@2", "ild_cosine@2"]
    rankmill.evaluate(labels, predictions, metrics, catalogue=catalogue)
    assert [*map(id, opened)] == [*map(id, (labels, predictions, train, items, features))]
    opened.clear()
    rankmill.explain_evaluators(labels, predictions, "map@2", ["default", "spark"])
    assert [*map(id, opened)] == [id(labels), id(predictions)]
