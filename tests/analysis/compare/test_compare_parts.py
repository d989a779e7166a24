"""A comparison in parts, as tasks of Spark make it, without Spark: the bits of the whole."""

from __future__ import annotations

import random
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import rankmill
from flat import flat, job_of
from rankmill.analysis.compare.conclusion import finish
from rankmill.analysis.compare.differences.differences import Settings, lists_moved
from rankmill.analysis.compare.queries.join import join_runs
from rankmill.engine.cuts import Cuts
from rankmill.engine.evaluate import Local
from rankmill.engine.segments import POPULARITY, class_of_items, class_of_median
from rankmill.spark.exchange.returned_rows import packed, unpacked
from rankmill.spark.systems import Findings
from strategies import examples

ALIKE = ("values", "differences", "queries", "left_out", "differing", "unpredicted", "moved")


def made(draw: random.Random, text: bool) -> tuple[pa.Table, dict[str, pa.Table], pa.Table]:
    """Labels with weights, two systems, and classes of queries; few values, so that many tie."""
    queries = draw.sample(range(60), 30)
    ids = {query: f"q{query}" if text else query for query in queries}

    def lists(chosen: list[int]) -> list[list[int]]:
        return [draw.sample(range(6), draw.randrange(4)) for _ in chosen]

    def of(chosen: list[int]) -> dict[str, list[Any]]:
        items = pa.array(lists(chosen), pa.list_(pa.int64()))
        return {"query": [ids[one] for one in chosen], "item": items}

    labelled = draw.sample(queries, 24)
    weights = [float(draw.randrange(4)) for _ in labelled]
    runs = {name: pa.table(of(draw.sample(queries, 20))) for name in ("a", "b", "c")}
    some = draw.sample(queries, 12)
    classes = {"query": [ids[one] for one in some], "class": [f"c{one % 3}" for one in some]}
    return pa.table({**of(labelled), "w": weights}), runs, pa.table(classes)


def part(table: pa.Table, parts: int, number: int) -> pa.Table:
    """The rows of the queries of a part."""
    texts = [str(one).lstrip("q") for one in table["query"].to_pylist()]
    return table.filter(pa.array([int(one) % parts == number for one in texts], pa.bool_()))


def popular(labels: pa.Table) -> pa.Table:
    """The popularity of the labels of each query, as it is counted over all of them."""
    pairs = zip(labels["query"].to_pylist(), labels["item"].to_pylist(), strict=True)
    lists = {query: set(items) for query, items in pairs}
    counts: dict[int, int] = {}
    for items in lists.values():
        for item in items:
            counts[item] = counts.get(item, 0) + 1
    many = np.unique(np.array(list(counts.values()), np.int64), return_counts=True)
    sizes, items_of = (one[::-1] for one in many)
    kinds = dict(zip(sizes.tolist(), class_of_items(sizes, items_of), strict=True))
    found = {}
    for query, items in lists.items():
        known = [kinds[counts[item]] for item in items]
        if known:
            numbers = (len(known), known.count(0), known.count(0) + known.count(1))
            found[query] = POPULARITY[int(class_of_median(*map(np.array, numbers)))]
    return pa.table({"query": [*found], "label_popularity": [*found.values()]})


@hypothesis.settings(max_examples=examples(10))
@given(
    seed=st.integers(0, 2**32),
    parts=st.sampled_from([2, 5]),
    text=st.booleans(),
    unpredicted=st.sampled_from(["zero", "skip"]),
    weight=st.sampled_from([None, "w"]),
)
def test_parts_merge_to_the_comparison_of_the_whole(
    seed: int, parts: int, text: bool, unpredicted: str, weight: str | None
) -> None:
    draw = random.Random(seed)
    labels, runs, classes = made(draw, text)
    options: dict[str, Any] = {"semantics": {"unpredicted": unpredicted}, "weight": weight}
    popularity = popular(labels)
    by = ["w", classes, "label_popularity", "unpredicted"]
    settings = Settings(moved=3)
    found = []
    for number in range(parts):
        own = {name: part(run, parts, number) for name, run in runs.items()}
        known = (part(one, parts, number) for one in (classes, popularity))
        cuts = Cuts(("w",), ("label_popularity", "unpredicted"), (next(known),), next(known))
        joined = join_runs(
            *job_of(part(labels, parts, number), own, ["map", "p@2"], options, part=True),
            "b",
            cuts,
            Local(threads=1),
        )
        rows = {name: one.num_rows for name, one in own.items()}
        found.append(Findings.of(joined, rows, settings.moved, crossed=True, alone=True))
    draw.shuffle(found)
    while len(found) > 1:  # in any order, and after a journey
        one, other = found.pop(), unpacked(packed(found.pop(0)))
        found.insert(draw.randrange(len(found) + 1), one.merge(other))
    (last,) = found
    results = {name: state.result() for name, state in last.states.items()}
    whole = flat(
        rankmill.compare,
        labels,
        runs,
        ["map", "p@2"],
        baseline="b",
        by=by,
        moved=3,
        **options,
    )
    for name, one in results.items():
        inputs = {"labels": {}, "predictions": {"rows": last.rows[name]}}
        results[name] = rankmill.Result(**{**vars(one), "inputs": inputs})
        assert last.rows[name] == runs[name].num_rows
        assert last.alone[name].whole.queries == one.queries
        assert {m: of[name].mean.mean for m, of in last.alone[name].whole.columns.items()} == (
            one.metrics
        )
    one = finish(last.state, settings, 1, results, moved=lists_moved(last.moved))
    for field in (*ALIKE, "slices"):
        assert getattr(one, field) == getattr(whole, field), field
