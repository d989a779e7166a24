"""What is refused: what is given, the kind of error, and what it says; see test_refusals.py.

A row goes through each way that can be given the same: Python, the command line, rankmill.toml and
Spark. `says` is a pattern of the message; LABELS and PREDICTIONS stand for what the inputs are
called there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import rankmill
from rankmill import InputError, UsageError

MANY = 1500
LABELS = pa.table(
    {
        "query": range(MANY),
        "items": [[1, 2], [1]] * (MANY // 2),
        "country": ["se", "dk", None] * (MANY // 3),
        "many": range(MANY),
        "label_count": range(MANY),
        "w": [1.0, 0.5, 2.0] * (MANY // 3),
    }
)
SYSTEM = pa.table({"query": range(MANY), "items": [[3, 1], [1, 2]] * (MANY // 2)})
SCORED = SYSTEM.append_column("score", pa.array([[0.5, 0.25]] * MANY))
# Small inputs of which one column is changed, as (side, changes); None drops a column.
GOOD = {
    "labels": pa.table({"query_id": [1, 2, 3], "items": [[10, 11], [10], [12]]}),
    "predictions": pa.table(
        {
            "query_id": [1, 2, 3],
            "items": [[10, 12], [11, 10], [10, 12]],
            "confidence": [[0.9, 0.8], [0.7, 0.6], [0.5, 0.4]],
        }
    ),
    "long": pa.table({"query_id": [1, 1, 2], "item_id": [10, 11, 10], "score": [0.3, 0.2, 0.1]}),
}


@dataclass(frozen=True)
class Refusal:
    """A request that is refused: options have the names of rankmill.toml."""

    says: str
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: type[Exception] = UsageError
    asked: str = "evaluate"
    metrics: Any = "map@2"
    labels: Any = None
    predictions: Any = None
    ways: tuple[str, ...] = ("python", "command line", "toml", "spark")

    @property
    def id(self) -> str:
        options = ", ".join(f"{name}={str(one)[:20]}" for name, one in self.options.items())
        return f"{self.asked} {self.metrics}: {options or self.says[:40]}".replace("\n", " ")


HERE = ("python", "command line", "toml")
ONLY_PYTHON = ("python",)


def of_tables() -> Iterator[Refusal]:
    """One side is wrong, and the message names it."""
    full, text_ids = [0.1, 0.2], ["u1", "u2", "u3"]
    numbers = pa.array([1.0, 2.5, 3.0])
    texts = [["a"], ["b"], ["c"]]
    for side, changes, says in (
        ("labels", {"items": None, "hue": [1, 2, 3]}, "no column looks like the item.*query_id"),
        ("predictions", {"query_id": None, "who": [1, 2, 3]}, "query.*who"),
        ("labels", {"user_id": [1, 2, 3]}, "query_id.*user_id"),
        ("predictions", {"doc_ids": [[1], [2], [3]]}, "items.*doc_ids"),
        ("labels", {"label": [0, 1, 0]}, "items.*label"),
        ("predictions", {"score": [full] * 3}, "confidence.*score|score.*confidence"),
        ("predictions", {"confidence": None}, "score"),
        ("predictions", {"confidence": [["x", "y"]] * 3}, "confidence.*'x'"),
        ("predictions", {"confidence": [*full, 0.3]}, "'confidence'.*(double|float|list)"),
        ("labels", {"items": [{"a": "1", "b": "2"}] * 3}, "struct"),
        ("predictions", {"items": [[[1]], [[2]], [[3]]]}, "'items'.*holds list"),
        ("labels", {"query_id": [[1], [2], [3]]}, "'query_id'.*holds list"),
        ("predictions", {"items": texts, "confidence": [[1.0]] * 3}, "holds integers.*none"),
        ("labels", {"items": texts}, "holds integers.*none"),
        ("predictions", {"query_id": text_ids}, "holds integers.*none"),
        ("labels", {"query_id": numbers}, "query_id.*2.5.*fraction"),
        ("labels", {"items": [[1.0], [2.5], [3.0]]}, "items.*2.5.*fraction"),
        ("long", {"item_id": numbers}, "item_id.*2.5.*fraction"),
        ("labels", {"query_id": [1, None, 3]}, "null|no query id"),
        ("long", {"query_id": [1, 1, None]}, "null|no query id"),
        ("labels", {"query_id": [1, 777, 777]}, "777"),
        ("predictions", {"query_id": [777, 2, 777]}, "777"),
        ("predictions", {"confidence": [full, [0.1, math.nan], full]}, "[Nn]a[Nn]"),
        ("long", {"score": [0.1, math.nan, 0.2]}, "[Nn]a[Nn]"),
        ("predictions", {"confidence": [full, [None, 0.1], full]}, "null|None|[Nn]a[Nn]"),
        ("predictions", {"confidence": [full, [0.1], full]}, "confidence.*items|items.*confidence"),
        ("predictions", {"confidence": [[0.1], [0.1, 0.2, 0.3], full]}, "confidence"),
        ("predictions", {"confidence": [full, full, None]}, "confidence"),
        ("labels", {"items": pa.array([[], None, [None]], pa.list_(pa.int64()))}, "no query has"),
        ("labels", {}, "no rows"),
        ("predictions", {}, "no rows"),
    ):
        table = GOOD[side]
        kept = {name: table[name] for name in table.column_names} | changes
        changed = pa.table({name: one for name, one in kept.items() if one is not None})
        sides = {"labels": GOOD["labels"], "predictions": GOOD["predictions"]}
        place = "labels" if side == "labels" else "predictions"
        sides[place] = changed if changes else table.slice(0, 0)
        says = (
            says
            if changes == {} or re.match("no query has|holds int", says)
            else f"{place.upper()}.*{says}"
        )
        yield Refusal(says, kind=InputError, metrics=["map@2", "gap"], ways=HERE, **sides)


def of_metrics() -> Iterator[Refusal]:
    for metric, says in (
        ("mapp@12", "mapp.*did you mean map@12"),
        ("ndgc", "ndgc.*ndcg"),
        *((one, one) for one in ("map@0", "map@-1", "map@ten", "map@1.5")),
        ("map@", "map@"),
        ("@5", "5"),
        ("precision", "precision@"),
        ("f1", "f1@"),
        ("rprec@5", "rprec"),
        ("personalization", "personalization needs a cutoff"),
        ("gini:gm", "gini has no value for each query: leave out :gm"),
        ("gap:gm", "no value for each query"),
        ("map:p101", "p101"),
        ("novelty@3", "novelty@3.*training"),
        ("ild_cosine@3", "ild_cosine@3.*vectors"),
        ("ild@3", "ild@3.*group"),
    ):
        yield Refusal(says, metrics=metric)


def of_counting() -> Iterator[Refusal]:
    """Semantics, scopes, weights, and what is not there."""
    for options, says in (
        ({"rel": 0}, "rel of 'all metrics' is '0(.0)?'; expected a number above 0"),
        ({"gain_function": "cubic"}, "cubic"),
        ({"semantics": {"order": "best"}, "depth": 2}, "order 'best' does not put in order"),
        ({"semantics": {"order": "up"}}, "order.*'up'"),
        ({"semantics": {"far": "up"}}, "far"),
        ({"semantics": {"unlabelled": "zero"}, "weight": "w"}, "unlabelled 'zero' counts them"),
        ({"drop_seen": True}, "drop_seen|drop-seen"),
    ):
        yield Refusal(says, options)
    for options, says in (
        ({"depth": 0}, "depth|range"),
        ({"depth": 2.5}, "depth|2.5"),
        ({"rel": "two"}, "rel.*'two'|'two' is not a valid float"),
        ({"threads": 0}, "threads|range"),
        ({"memory": 0}, "memory|size"),
    ):
        yield Refusal(says, options, ways=HERE)
    for name in ("query", "item", "score", "gain", "label_query", "label_item", "weight"):
        # Even if the metric does not need the column.
        says = "(LABELS|PREDICTIONS).*nowhere|nowhere.*columns"
        yield Refusal(says, {name: "nowhere"}, InputError)
    yield Refusal("gap is not a mean over queries", {"weight": "w"}, metrics=["map", "gap"])
    yield Refusal("gini is not a mean over queries", {"weight": "w"}, metrics="gini")
    yield Refusal("map:gm is not a mean over queries", {"weight": "w"}, metrics="map:gm")
    for values, says in (
        ([1, None, 3], "query 2 has the weight null in column 'w'; expected 0, or a number from"),
        ([1, 2, math.nan], "query 3 has the weight nan in column 'w'"),
        ([1, -0.5, 3], "query 2 has the weight -0.5 in column 'w'"),
        ([math.inf, 1, 3], "query 1 has the weight inf in column 'w'"),
        ([1, 2e100, 3], "query 2 has the weight 2e.100 in column 'w'.* to 1e.100: fix it"),
        ([1, 5e-101, 3], "query 2 has the weight 5e-101 in column 'w'"),
        ([1, 2**53 + 1, 3], "column 'w': the number 9007199254740993 has no float64"),
        ([[1], [2], [3]], "column 'w' holds list.*; expected a number"),
        (["1", "many", "3"], "column 'w'\\): found 'many'; expected a number for the weight"),
    ):
        labels = GOOD["labels"].append_column("w", pa.array(values))
        sides = {"labels": labels, "predictions": GOOD["predictions"]}
        yield Refusal(f"LABELS.*{says}", {"weight": "w"}, InputError, ways=HERE, **sides)
    for gain in (math.nan, math.inf, None, "much"):
        values = pa.array(["1", "much", "2"] if gain == "much" else [1.0, gain, 2.0])
        labels = pa.table({"query_id": [1, 2, 3], "item_id": [10, 10, 12], "gain": values})
        sides = {"labels": labels, "predictions": GOOD["predictions"]}
        says = f"LABELS.*gain.*({'null' if gain is None else ''}{gain})"
        kind, how = InputError, {"gain": "gain"}
        yield Refusal(says.replace("None", "|None"), how, kind, metrics="ndcg", ways=HERE, **sides)


def of_slices() -> Iterator[Refusal]:
    for asked in ("evaluate", "compare"):
        for by, kind, says in (
            ("contry", InputError, "contry"),
            ("no/such.csv", InputError, "no/such.csv"),
            ("items", InputError, "'items'"),
            ("many", Exception, "many.? has 1,500 values.* 1,000 at most"),
            (
                ["country", {"query": [1], "country": ["x"]}],
                UsageError,
                "'country' .of .* and",
            ),
            ("label_count", Exception, "'label_count', which is also what rankmill calls"),
            ({"query": ["a"], "x": [1]}, InputError, "query ids cannot be compared.*integers|none"),
            ({"x": [1], "y": [2]}, InputError, "expected one with query ids"),
            ({"query": [1]}, InputError, "no column but the query ids"),
            ({"query": [1, 1], "age": ["x", "y"]}, InputError, "query 1 has 'x' and 'y'.*'age'"),
        ):
            yield Refusal(says, {"by": by}, kind, asked, ways=HERE)
        for one, says in (
            (3, "by cannot be a int; expected the name of a column of the labels, or a table"),
            ({"label_count"}, "by cannot be a set; expected the name"),
            (rankmill.Labels("a"), "by cannot be a Labels; expected the name"),
            ([rankmill.Predictions("a")], "by cannot be a Predictions; expected the name"),
            (rankmill.Catalogue(), "by cannot be a Catalogue; expected the name"),
            ("", "by holds an empty name"),
        ):
            yield Refusal(says, {"by": one}, asked=asked, ways=ONLY_PYTHON)
    unknown = {"query": [1], "age": ["(unknown)"]}
    yield Refusal("has the value '\\(unknown\\)'", {"by": unknown}, ways=HERE)
    yield Refusal("only of country", {"by": "country", "sum": "x = map@2[city=a]"}, ways=HERE)


def of_comparisons() -> Iterator[Refusal]:
    for options, says in (
        ({"confidence": 1.5}, "expected a number between 0 and 1|1.5"),
        ({"margin": math.nan}, "margin"),
        ({"tests": "u"}, "there is no test 'u'"),
        ({"tests": "tukey"}, "Tukey's test is gone: take the test randomization"),
        ({"correction": "none at all"}, "there is no correction 'none at all'"),
        ({"baseline": "x"}, "there is no system 'x'|x"),
        ({"weight": "w", "tests": "wilcoxon"}, "test 'wilcoxon' does not take weights"),
        ({"cutoffs": "1,x"}, "cutoffs is '1,x'; expected positive integers, such as "),
    ):
        yield Refusal(says, options, asked="compare", ways=HERE)
    for options, says in (
        ({"confidence": "0.95"}, "confidence is '0.95'; expected a number"),
        ({"confidence": 1 - 1e-16}, "expected a number between 0 and 1"),
        ({"confidence": True}, "confidence is True"),
        ({"margin": "0.1"}, "margin is '0.1'; expected a positive number"),
        ({"margin": 1e300}, "margin is 1e[+]300; expected a positive number"),
        ({"tests": [["t"]]}, r"there is no test \['t'\]"),
        ({"correction": ["holm"]}, r"there is no correction \['holm'\]"),
        ({"baseline": ["a"]}, r"there is no system \['a'\]"),
        ({"adjust": rankmill.Labels("a")}, "adjust cannot be a Labels; expected the name"),
        ({"adjust": {"a": 1}}, "adjust cannot be a dict; expected the name"),
        ({"cutoffs": []}, r"cutoffs is \[\]; expected positive integers"),
        ({"cutoffs": 5}, "cutoffs is 5; expected positive integers"),
        ({"cutoffs": [1, True]}, "expected positive integers"),
        ({"cutoffs": [0]}, "expected positive integers"),
    ):
        yield Refusal(says, options, asked="compare", ways=ONLY_PYTHON)
    yield Refusal(
        "none of num_ret", {"cutoffs": "1"}, asked="compare", metrics="num_ret", ways=HERE
    )


REFUSALS = [
    *of_tables(),
    *of_metrics(),
    *of_counting(),
    *of_slices(),
    *of_comparisons(),
]


def sides(row: Refusal) -> tuple[pa.Table, pa.Table]:
    return (
        LABELS if row.labels is None else row.labels,
        SCORED if row.predictions is None else row.predictions,
    )


def written(table: pa.Table, path: Path) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(table, path)
    return path
