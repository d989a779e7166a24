"""The options of public functions: the same everywhere; a misspelt one is told by the function."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pytest

import rankmill

TABLE = pa.table({"user_id": [1], "items": [[1]], "score": [[0.5]]})
ITEMS = rankmill.arrays.Ragged.from_lists([[1]])


def state() -> rankmill.parts.State:
    return rankmill.parts.evaluate_part(TABLE, TABLE, "gap")


CALLS: dict[str, tuple[Any, ...]] = {
    "evaluate": (TABLE, TABLE),
    "evaluate_runs": (TABLE, {"a": TABLE}),
    "evaluate_part": (TABLE, TABLE, "map"),
    "plan": (TABLE, TABLE),
    "explain": (TABLE, TABLE, "map", 1),
    "explain_evaluators": (TABLE, TABLE, "map"),
    "average_precision": (ITEMS, ITEMS),
    "ndcg": (ITEMS, ITEMS),
    "precision": (ITEMS, ITEMS, 3),
    "global_average_precision": ([0.5], [True], 1),
}


def named(name: str) -> Any:
    """Return a public function, wherever it is."""
    homes = rankmill, rankmill.arrays, rankmill.parts
    return next(getattr(home, name) for home in homes if name in home.__all__)


@pytest.mark.small
@pytest.mark.parametrize("name", CALLS)
def test_a_misspelt_option_is_told_by_the_function_that_was_called(name: str) -> None:
    function = named(name)
    function(*CALLS[name])
    with pytest.raises(
        TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'treads'"
    ):
        function(*CALLS[name], treads=2)
    with pytest.raises(TypeError, match=rf"^{name}\(\) .*(positional|missing)"):
        function()


@pytest.mark.small
def test_the_query_of_explain_is_its_query_id() -> None:
    with pytest.raises(TypeError, match=r"use query_id=\.\.\. or Labels\(data, query=\.\.\.\)"):
        rankmill.explain(TABLE, TABLE, "map", query=1)


@pytest.mark.small
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"metric": "map"}, "use metrics=..."),
        ({"k": 10}, "write it behind a metric, as in 'map@10'"),
        ({"query": "u"}, r"use Labels\(data, query=...\) or Predictions"),
        ({"nothing": 1}, "argument 'nothing'$"),
    ],
)
def test_a_wrong_argument_says_which_is_meant(given: dict[str, Any], told: str) -> None:
    for function in (rankmill.evaluate, rankmill.evaluate_runs, rankmill.compare):
        with pytest.raises(TypeError, match=f"got an unexpected .*{told}"):
            function({}, {}, **given)


@pytest.mark.small
def test_the_second_pass_tells_its_own_name() -> None:
    rankmill.parts.second_pass(state(), TABLE, threads=1)
    for wrong in ("treads", "semantics", "gain"):
        with pytest.raises(TypeError, match=rf"^second_pass\(\) .*'{wrong}'"):
            rankmill.parts.second_pass(state(), TABLE, **{wrong: 2})


def test_signatures_are_that_of_evaluate() -> None:
    def options(name: str) -> dict[str, Any]:
        parameters = inspect.signature(named(name)).parameters.values()
        return {one.name: one for one in parameters if one.kind is one.KEYWORD_ONLY}

    whole = options("evaluate")
    assert options("evaluate_runs") == whole
    del whole["partitions"]  # a part is a partition, and the others do nothing on Spark
    assert options("evaluate_part").keys() == whole.keys() - {"per_query"} | {"part"}
    whole = {name: one for name, one in whole.items() if name not in ("by", "sums")}
    assert options("plan").keys() == whole.keys() - {"progress", "threads", "per_query"}
    assert options("explain").keys() == whole.keys() - {"per_query"} | {"rows"}
    assert options("explain_evaluators").keys() == whole.keys() - {"per_query", "catalogue"}
    assert {*options("second_pass")} == {"part", "threads", "memory"}


@pytest.mark.small
def test_runs_are_a_mapping() -> None:
    with pytest.raises(rankmill.UsageError, match="runs is a list; expected a mapping of names"):
        rankmill.evaluate_runs(TABLE, [TABLE])


@pytest.mark.small
@pytest.mark.parametrize(
    ("option", "told"),
    [
        (
            "query",
            r"'query': use Labels\(data, query=\.\.\.\) or Predictions\(data, query=\.\.\.\)$",
        ),
        ("preset", r"'preset': use semantics=\.\.\.$"),
        ("train", r"'train': use Catalogue\(train=\.\.\.\)$"),
        ("optoin", r"'optoin'$"),
    ],
)
def test_an_option_of_commands_is_told_to_be_a_field(option: str, told: str) -> None:
    for function in (rankmill.evaluate, rankmill.evaluate_runs, rankmill.compare, rankmill.gate):
        with pytest.raises(TypeError, match=told):
            function(TABLE, TABLE, "map", **{option: "x"})


@pytest.mark.small
def test_the_lists_of_one_system_are_no_systems() -> None:
    one = {f"q{n}": ["a", "b"] for n in range(3)}
    for function in (rankmill.evaluate_runs, rankmill.compare):
        with pytest.raises(rankmill.UsageError, match="runs has 'q0' with the items of one list"):
            function(one, one, "map")
    with pytest.raises(rankmill.InputError, match=r"no such file or folder: a\.parquet"):
        rankmill.compare(one, {"old": ["a.parquet"], "new": ["b.parquet"]}, "map")
