"""Every executor gives the bits of one thread, and those are the oracle's values.

Executor x format x memory x slices x weights x catalogue, for what is evaluated, compared and
gated. A few rows have every pair of levels; `scripts/test --all` has all. Spark has its rows in
tests/spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import catalogue_oracle
import oracle
import semantics_oracle
from agreement import CLOSE, CLOSE_ERROR
from covering import Row, covering
from executors import ALL, CATALOGUE, CLASSES, FACTORS, TRAIN, answer, as_dict, plain, sides, told
from rankmill.semantics.choices import Choices

FEW = covering(ALL)


def title(row: Row) -> str:
    return ", ".join(one for one in row.values() if one != "none")


@pytest.mark.rows(16)
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=title(row), marks=[] if row in FEW else [pytest.mark.long])
        for row in ALL
    ],
)
def test_every_executor_gives_the_same_bits(row: Row, tmp_path: Path, run: Any) -> None:
    found, wanted = told(answer(row, tmp_path, run)), told(plain(row))
    if row["executor"] == "parts" and row["asked"] == "compare":
        for one in (found, wanted):  # parts keep no queries and no audit
            for name in ("moved", "audit", "settings"):
                one.pop(name)
    assert found == wanted


# ------------------------------------------------------------------ the oracle

SEMANTICS = Choices().to_dict()
ANSWERED = {
    (row["by"], row["weights"], row["catalogue"]): row
    for row in ALL
    if (row["asked"], row["executor"], row["format"]) == ("evaluate", "one thread", "table")
}
HELD = ("map", "ndcg", "first_hit", "gap")
SHOWN = ("coverage@3", "gini@3", "novelty@3")


def lists(row: Row, side: str) -> dict[str, dict[str, float]]:
    return as_dict(sides(row)[side])


def slices(row: Row) -> dict[str | None, set[str]]:
    """The queries with a label of each slice."""
    labels = sides(row)["labels"].to_pylist()
    classes = dict(zip(*CLASSES.to_pydict().values(), strict=True))
    of: dict[str, Any] = {
        "column": lambda one: one["country"],
        "table": lambda one: classes.get(one["query"]),
        "derived": lambda one: {1: "1", 2: "2"}.get(len(one["item"]), "3-5"),
    }
    found: dict[str | None, set[str]] = {}
    for one in labels if row["by"] != "none" else []:
        found.setdefault(of[row["by"]](one), set()).add(one["query"])
    return found


def expected(
    row: Row, metrics: list[str], queries: set[str] | None = None, others: Any = ()
) -> dict[str, Any]:
    """Metric to value and standard error, of all queries or of a slice, with predictions of others.

    Queries without a label are in the slice that a table has for them.
    """
    labels, predictions = lists(row, "labels"), lists(row, "new")
    if queries is not None:
        labels = {one: items for one, items in labels.items() if one in queries}
        mine = {*queries, *others}
        predictions = {one: items for one, items in predictions.items() if one in mine}
    known = [one for one in metrics if one.partition("@")[0] in HELD]
    pairs = {query: [*items.items()] for query, items in predictions.items()}
    found = semantics_oracle.evaluate(
        {query: [*items.items()] for query, items in labels.items()}, pairs, known, SEMANTICS
    )
    values = {one: (found.metrics[one], found.standard_errors[one]) for one in known}
    if row["weights"] == "some":
        of = sides(row)["labels"]
        worth = dict(zip(of["query"].to_pylist(), of["w"].to_pylist(), strict=True))
        values = {
            name: oracle.weighted_mean_and_error([*each.values()], [worth[one] for one in each])[:2]
            for name, each in found.per_query.items()
        }
    if row["catalogue"] != "none" and queries is None:
        train: dict[str, list[str]] = {}
        for query, item in zip(*TRAIN.to_pydict().values(), strict=True):
            train.setdefault(query, []).append(item)
        shown = {query: [*items] for query, items in predictions.items()}
        items = CATALOGUE["item"].to_pylist()
        for one in SHOWN:
            values[one] = catalogue_oracle.value(one, labels, shown, items, train), None
    return values


@pytest.mark.small
@pytest.mark.parametrize("row", ANSWERED.values(), ids=title)
def test_one_thread_gives_the_values_of_the_oracle(row: Row) -> None:
    result = plain(row)
    asked = list(result.metrics)
    for name, (value, error) in expected(row, asked).items():
        assert result.metrics[name] == pytest.approx(value, **CLOSE), name
        if name not in SHOWN:
            wanted = None if error is None else pytest.approx(error, **CLOSE_ERROR)
            assert result.standard_errors[name] == wanted, name
    cut = slices(row)
    if row["by"] == "none":
        return
    rows = {(one["slice"], one["metric"]): one for one in result.by.to_pylist()}
    assert {of for of, _ in rows} == set(cut)
    classes = dict(zip(*CLASSES.to_pydict().values(), strict=True)) if row["by"] == "table" else {}
    for of, queries in cut.items():
        others = lists(row, "new").keys() - lists(row, "labels")
        unlabelled = [query for query in others if classes.get(query) == of]
        for name, (value, _) in expected(row, asked, queries, unlabelled).items():
            assert rows[of, name]["value"] == pytest.approx(value, **CLOSE), (of, name)
            assert rows[of, name]["queries"] == len(queries)


@pytest.mark.small
@pytest.mark.parametrize("asked", ["compare", "gate"])
@pytest.mark.parametrize("weights", FACTORS["weights"])
def test_differences_are_those_of_the_oracle(asked: str, weights: str) -> None:
    row = {**ALL[0], "asked": asked, "weights": weights, "memory": "ample"}
    row |= {"executor": "one thread", "by": "none", "catalogue": "none", "format": "table"}
    answer = plain(row)
    systems = ("old", "new") if asked == "compare" else ("baseline", "candidate")
    compared = answer if asked == "compare" else answer.comparison
    tables = sides(row)
    values: dict[str, list[float]] = {}
    for name in ("old", "new"):
        of = {query: [*items.items()] for query, items in as_dict(tables[name]).items()}
        labels = {query: [*items.items()] for query, items in lists(row, "labels").items()}
        found = semantics_oracle.evaluate(labels, of, ["map@3"], SEMANTICS)
        values[name] = [*found.per_query["map@3"].values()]
    column = tables["labels"]["w"].to_pylist() if weights == "some" else [1.0] * len(values["old"])
    differences = [new - old for old, new in zip(values["old"], values["new"], strict=True)]
    mean, _error, _ = oracle.weighted_mean_and_error(differences, column)
    one = compared.differences["map@3"][systems[1]]
    assert one.value == pytest.approx(mean, **CLOSE)
    assert one.won + one.tied + one.lost == sum(weight > 0 for weight in column)
    for each, system in zip(("old", "new"), systems, strict=True):
        value, own_error, _ = oracle.weighted_mean_and_error(values[each], column)
        assert compared.values["map@3"][system].value == pytest.approx(value, **CLOSE)
        assert compared.values["map@3"][system].standard_error == pytest.approx(
            own_error, **CLOSE_ERROR
        )
    if asked == "gate" and weights == "none":
        assert answer.outcomes[0].value == pytest.approx(
            oracle.mean_and_error(values["new"])[0], **CLOSE
        )
