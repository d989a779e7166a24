"""All outcomes read alike: each class with each method of their base."""

from __future__ import annotations

import datetime
import itertools
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from flat import flat
from rankmill.errors import InputError, UsageError
from rankmill.kaggle import check
from rankmill.nightly.history import History
from rankmill.results.answer import Answer

GOLD = {1: [1], 2: [3], 3: [1], 4: [2]}
RUNS = {"a": {1: [1], 2: [3], 3: [2], 4: [5, 2]}, "b": {1: [2, 1], 2: [3], 4: [7, 8]}}
SLICES = pa.table({"query": list(GOLD), "half": ["x", "x", "y", "y"]})
CONFIDENT = {
    q: [(item, 1.0 / rank) for rank, item in enumerate(of, 1)] for q, of in RUNS["a"].items()
}


def history(runs: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        for day in (1, 2):
            time = datetime.datetime(2026, 1, day, tzinfo=datetime.UTC)
            result = rankmill.evaluate(GOLD, runs["a"], ["map", "first_hit@1"])
            History(folder).record(result, time=time, tags={"day": str(day)})
        runs_of = rankmill.History(folder).runs
    return rankmill.History.held(
        "nights", [replace(one, id=str(at)) for at, one in enumerate(runs_of)]
    )


COMPARED = {"by": SLICES, "moved": 2, "margin": 0.3, "tests": ("t", "wilcoxon")}
ANSWERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "Result": lambda runs: rankmill.evaluate(GOLD, runs["a"], ["map", "gini", "num_ret:sum"]),
    "Results": lambda runs: rankmill.evaluate_runs(GOLD, runs, "map"),
    "Comparison": lambda runs: flat(rankmill.compare, GOLD, runs, "map,gini", **COMPARED),
    "Verdict": lambda runs: rankmill.gate(
        GOLD, runs["a"], ["map drop <= 50%", "map >= 0.1"], baseline=runs["b"]
    ),
    "History": history,
    "Trace": lambda runs: rankmill.explain(GOLD, runs["a"], "map", 1),
    "EvaluatorDifferences": lambda runs: rankmill.explain_evaluators(GOLD, runs["a"], "map"),
    "SubmissionCheck": lambda runs: check(
        pd.DataFrame({"id": list(runs["a"]), "items": "x"}),
        pd.DataFrame({"id": [*runs["b"], 9], "items": "x x"}),
    ),
    "GatePower": lambda runs: rankmill.gate_power(
        GOLD, runs["a"], [f"map drop <= {len(runs['a'])}%"], baseline=runs["b"]
    ),
}
OTHERS: dict[str, Callable[[], Any]] = {
    "gap": lambda: rankmill.evaluate(GOLD, CONFIDENT, ["gap", "map"]),
    "weights": lambda: rankmill.evaluate(
        rankmill.Labels(pa.table({"query": [1, 2], "item": [1, 3], "w": [1.5, 2.0]}), weight="w"),
        RUNS["a"],
        "map",
    ),
    "groups": lambda: rankmill.evaluate(
        GOLD,
        RUNS["a"],
        "exposure_parity@2",
        catalogue=rankmill.Catalogue(
            items=pa.table({"item": [1, 2, 3, 5], "genre": ["x", "y", "x", None]}), group="genre"
        ),
    ),
    "no value": lambda: rankmill.evaluate(GOLD, {9: [1]}, "map", semantics="trec_eval"),
    "different queries": lambda: rankmill.evaluate_runs(GOLD, RUNS, "map", semantics="trec_eval"),
    "clusters": lambda: rankmill.compare(GOLD, RUNS, "map", by=SLICES, cluster="half"),
    "cutoffs": lambda: rankmill.compare(GOLD, RUNS, "map,gini", cutoffs=[1, 2]),
    "no baseline": lambda: rankmill.gate(GOLD, RUNS["a"], ["map >= 0.9", "queries >= 2"]),
    "gap by rank": lambda: rankmill.explain(GOLD, CONFIDENT, "gap"),
    "curve": lambda: rankmill.explain(GOLD, CONFIDENT, "auprc"),
    "no rows": lambda: rankmill.explain(GOLD, {3: [5]}, "map", 1),
    "text": lambda: rankmill.explain({"q": ["a"]}, {"q": ["b", "a"]}, "map", "q"),
}
ALL: dict[str, Callable[[], Any]] = {
    **{name: lambda make=make: make(RUNS) for name, make in ANSWERS.items()},  # type: ignore[misc]
    **OTHERS,
}
# What has a picture, and why the others have none.
PICTURED = (
    *("Result", "Results", "Comparison", "Verdict", "History", "gap", "weights", "groups"),
    *("no value", "different queries", "clusters", "cutoffs"),
)


def same_json(found: Answer) -> None:
    text = found.to_json(indent=2)
    again = type(found).from_json(text)
    assert again.to_json(indent=2) == text
    assert again == found
    if '"rows": []' not in text:  # then JSON does not tell which columns there are
        assert again.to_markdown() == found.to_markdown()
        assert repr(again) == repr(found)
    assert repr(again)


def same_pickle(found: Answer) -> None:
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is type(found)
    assert again == found
    assert again.to_json() == found.to_json()


def frames(found: Answer) -> None:
    table, frame, polars = found.to_arrow(), found.to_pandas(), found.to_polars()
    assert isinstance(table, pa.Table)
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert list(frame) == polars.columns == table.column_names
    assert len(frame) == len(polars) == len(table)
    assert polars.to_dict(as_series=False) == table.to_pydict()


def texts(found: Answer) -> None:
    assert found.to_markdown().count("|") >= 4
    assert r"\begin{tabular}" in found.to_latex()
    assert found.to_html().startswith("<table>")
    assert (found._repr_html_() or "") + "\n" == found.to_html()
    assert repr(found)


@pytest.mark.parametrize("check", [same_json, same_pickle, frames, texts])
@pytest.mark.parametrize("name", ALL)
def test_each_method_of_each_class(name: str, check: Callable[[Answer], None]) -> None:
    found = ALL[name]()
    assert isinstance(found, Answer)
    check(found)


def test_json_of_a_comparison_has_all_bits_but_those_of_queries(tmp_path: Any) -> None:
    found = ANSWERS["Comparison"](RUNS)
    again = rankmill.Comparison.from_json(found.to_json())
    left = {name for name, one in vars(again).items() if one is None and vars(found)[name]}
    assert left == {"per_query", "state"}
    same = replace(found, per_query=None, state=None)
    assert vars(again) == vars(same)
    # A table of Parquet keeps the rest.
    pq.write_table(found.per_query, tmp_path / "values.parquet")
    assert pq.read_table(tmp_path / "values.parquet").equals(found.per_query)


@pytest.mark.parametrize("name", ALL)
def test_a_picture_or_why_there_is_none(name: str) -> None:
    found = ALL[name]()
    if name in PICTURED:
        assert found.plot()._repr_svg_().startswith("<svg")
        if name != "History":
            type(found).from_json(found.to_json()).plot()
    else:
        with pytest.raises(UsageError, match=r"has no picture|there is no picture of a [A-Z]"):
            found.plot()


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_of_the_same_call_are_equal(name: str) -> None:
    one, other = ANSWERS[name](RUNS), ANSWERS[name](RUNS)
    assert type(one).__name__ == name
    assert one == other
    assert one != 1
    changed = ANSWERS[name](RUNS | {"a": {1: [7, 1], 2: [4], 3: [2]}})
    assert one != changed
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"metrics": 1}', "{"])
@pytest.mark.parametrize("name", ["Result", "Comparison", "Trace"])
def test_what_is_no_json_of_a_class(name: str, text: str) -> None:
    kind = type(ANSWERS[name](RUNS))
    with pytest.raises(InputError, match=f"the JSON of a {name} "):
        kind.from_json(text)


def test_the_json_of_another_class_and_the_name_of_a_file_are_told() -> None:
    made = [
        rankmill.evaluate(GOLD, RUNS["a"], "map"),
        rankmill.evaluate_runs(GOLD, RUNS, "map"),
        rankmill.compare(GOLD, RUNS, "map"),
        rankmill.gate(GOLD, RUNS["a"], "map >= 0.1"),
    ]
    for one, other in itertools.permutations(made, 2):
        kind = type(one).__name__
        with pytest.raises(UsageError, match=rf"of a {kind}: use rankmill\.{kind}\.from_json"):
            type(other).from_json(one.to_json())
    with pytest.raises(UsageError, match=r"Path\('map\.json'\)\.read_text\(\)"):
        rankmill.Result.from_json("map.json")


def test_a_result_that_was_changed_is_refused() -> None:
    text = rankmill.evaluate(GOLD, RUNS["a"], "map").to_json()
    with pytest.raises(InputError, match="does not match its checksum"):
        rankmill.Result.from_json(text.replace("0.625", "0.75"))


def test_what_was_read_from_json_cannot_be_recorded(tmp_path: Any) -> None:
    found = rankmill.compare(GOLD, RUNS, "map")
    with pytest.raises(UsageError, match="read from JSON"):
        History(tmp_path).record(rankmill.Comparison.from_json(found.to_json()))
