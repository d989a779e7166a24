"""What Python programs hold gives the same result, to the last bit, as its twin in Parquet."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import uuid
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
from flat import flat
from rankmill import InputError, RankmillError, UsageError
from rankmill.columns.objects import join_cells, known_array
from rankmill.semantics.choices import CHOICES
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.roles.source import InputOptions
from strategies import examples, stands_for_itself

METRICS = ["map@3", "ndcg", "first_hit", "gap"]
Qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")
ScoredDoc = namedtuple("ScoredDoc", "query_id doc_id score")

# query -> {item: gain}, and query -> {item: score}; scores neither stand in order nor are distinct.
GAINS = {5: {10: 2, 11: 1, 12: 0}, 2: {10: 1}, 9: {13: 3}, 7: {14: 1}}
SCORES = {
    9: {10: 0.25, 13: 0.5},
    5: {12: 0.5, 11: 0.125, 99: 0.75, 10: 0.5},
    2: {98: 0.5, 10: 0.5},
    1: {10: 0.0625},
}
Scored = dict[Any, dict[Any, Any]]

IDS: dict[str, Callable[[int], Any]] = {
    "int": int,
    "negative": lambda i: -i,
    "numpy": np.int32,
    "beyond int64": lambda i: 2**63 + i,
    "text": lambda i: f"d{i}",
    "numpy text": lambda i: np.str_(f"é{i}"),
    "zero byte": lambda i: f"{i}\0",
    "bytes": lambda i: str(i).encode(),
    "uuid": lambda i: uuid.UUID(int=i),
}


def stored(one: Any) -> Any:
    """An id as Parquet holds it."""
    return str(one) if isinstance(one, uuid.UUID) else getattr(one, "item", lambda: one)()


def renamed(scored: Scored, name: Callable[[int], Any]) -> Scored:
    return {name(q): {name(i): n for i, n in items.items()} for q, items in scored.items()}


def array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except OverflowError:
        return pa.array(values, pa.uint64())


def long(scored: Scored, number: str) -> pa.Table:
    rows = [(stored(q), stored(i), n) for q, items in scored.items() for i, n in items.items()]
    queries, items, numbers = zip(*rows, strict=True)
    return pa.table({"query": array(list(queries)), "item": array(list(items)), number: numbers})


def ranked(scored: Scored) -> Scored:
    return {q: dict(sorted(d.items(), key=lambda one: -one[1])) for q, d in scored.items()}


def wide(scored: Scored, number: str) -> pa.Table:
    flat = array([stored(i) for items in scored.values() for i in items])
    offsets = np.cumsum([0, *map(len, scored.values())])
    numbers = [list(items.values()) for items in scored.values()]
    return pa.table(
        {
            "query": array(list(map(stored, scored))),
            "items": pa.LargeListArray.from_arrays(offsets, flat),
            number: numbers,
        }
    )


def outcome(labels: Any, predictions: Any, metrics: Any = METRICS, **options: Any) -> Any:
    result = flat(rankmill.evaluate, labels, predictions, metrics, **options)
    values = {
        name: result.per_query[name].to_pylist() for name in result.per_query.schema.names[1:]
    }
    return result.metrics, result.audit, values, result.per_query.column(0).to_pylist()


def in_parquet(tables: tuple[pa.Table, pa.Table], folder: Path) -> tuple[str, str]:
    paths = str(folder / "labels.parquet"), str(folder / "predictions.parquet")
    for table, path in zip(tables, paths, strict=True):
        pq.write_table(table, path)
    return paths


def twins(name: Callable[[int], Any], folder: Path, *, as_long: bool) -> tuple[Any, Any]:
    gains, scores = renamed(GAINS, name), renamed(SCORES, name)
    if as_long:
        return in_parquet((long(gains, "gain"), long(scores, "score")), folder)
    return in_parquet((wide(gains, "gain"), wide(ranked(scores), "score")), folder)


# ------------------------------------------------------------------ dicts, named tuples and lists


@pytest.mark.parametrize("name", IDS.values(), ids=list(IDS))
def test_dicts_of_numbers(name: Callable[[int], Any], tmp_path: Path) -> None:
    found = outcome(renamed(GAINS, name), renamed(SCORES, name))
    assert found == outcome(*twins(name, tmp_path, as_long=True))


@pytest.mark.small
@pytest.mark.parametrize("order", CHOICES["order"])
def test_dicts_of_numbers_in_any_order_of_equal_ones(order: str, tmp_path: Path) -> None:
    asked: Any = {"metrics": ["map@3", "ndcg@2"], "semantics": {"order": order}}
    pairs = twins(str, tmp_path, as_long=True)
    assert outcome(renamed(GAINS, str), renamed(SCORES, str), **asked) == outcome(*pairs, **asked)


@pytest.mark.parametrize("name", IDS.values(), ids=list(IDS))
def test_dicts_of_pairs(name: Callable[[int], Any], tmp_path: Path) -> None:
    gains, scores = (
        {q: list(items.items()) for q, items in renamed(side, name).items()}
        for side in (GAINS, ranked(SCORES))
    )
    assert outcome(gains, scores) == outcome(*twins(name, tmp_path, as_long=False))


def keys(items: list[Any]) -> Any:
    return dict.fromkeys(items).keys()


@pytest.mark.parametrize("shape", [list, tuple, np.array, pd.Series, keys, set])
@pytest.mark.parametrize("name", IDS.values(), ids=list(IDS))
def test_dicts_of_lists(name: Callable[[int], Any], shape: Any, tmp_path: Path) -> None:
    gains, scores = renamed(GAINS, name), renamed(ranked(SCORES), name)
    labels = {q: shape(list(items)) for q, items in gains.items()}
    runs = {q: (list if shape is set else shape)(list(items)) for q, items in scores.items()}
    tables = [wide(each, "other").drop_columns("other") for each in (gains, scores)]
    assert outcome(labels, runs, "map") == outcome(*in_parquet(tables, tmp_path), "map")


@pytest.mark.parametrize("give", [list, tuple, iter], ids=["list", "tuple", "generator"])
@pytest.mark.parametrize("name", IDS.values(), ids=list(IDS))
def test_named_tuples(name: Callable[[int], Any], give: Any, tmp_path: Path) -> None:
    gains, scores = renamed(GAINS, name), renamed(SCORES, name)
    labels = [Qrel(q, i, n, "0") for q, items in gains.items() for i, n in items.items()]
    runs = [ScoredDoc(q, i, n) for q, items in scores.items() for i, n in items.items()]
    expected = outcome(*twins(name, tmp_path, as_long=True))
    assert outcome(give(labels), give(runs)) == expected
    assert outcome(give(labels), give(runs), memory=1) == expected


class Run:
    """What ranx calls its runs; its classes are told by their names."""

    __module__ = "ranx.data_structures.run"

    def __init__(self, scored: Scored) -> None:
        self.scored = scored

    def to_dict(self) -> Scored:
        return self.scored


def test_ranx() -> None:
    name = IDS["text"]
    gains, scores = renamed(GAINS, name), renamed(SCORES, name)
    assert outcome(Run(gains), Run(scores)) == outcome(gains, scores)


@pytest.mark.parametrize(
    ("labels", "runs"),
    [
        ([["a", "b"], [], ["c"]], [["b"], ["c"], ["x", "c"]]),
        ([{"a", "b"}, set(), {"c"}], (("b",), ["c"], np.array(["x", "c"]))),
        ([[1, 2], None, [3]], [[2], [3], [9, 3]]),
        (np.array([[1, 2], [4, 4], [3, 3]]), np.array([[2, 8], [3, 7], [9, 3]], np.uint8)),
        (np.array([[1, 2], [4, 4], [3, 3]]), np.array([[2, np.nan], [3, 7], [9, 3]])),
        (rankmill.arrays.Ragged.from_lists([[1, 2], [], [3]]), [[2], [3], [9, 3]]),
    ],
)
def test_lists_by_place(labels: Any, runs: Any) -> None:
    def listed(side: Any) -> dict[int, list[Any]]:
        rows = side.to_lists() if isinstance(side, rankmill.arrays.Ragged) else side
        return {q: [] if one is None else list(one) for q, one in enumerate(rows)}

    assert outcome(labels, runs, "map") == outcome(listed(labels), listed(runs), "map")
    assert rankmill.evaluate(labels, runs, "map").inputs["labels"]["shape"] == "ragged"


TEXTS = st.text(st.characters(codec="utf-8"), max_size=3)
SCALARS = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.integers(-(2**64), 2**64) | st.booleans() | st.none()),
    st.lists(TEXTS | st.just("a\0b")),
    st.lists(TEXTS | st.just("\ud800") | st.integers(0, 3), max_size=4),
)


@pytest.mark.small
@settings(max_examples=examples(200), deadline=None)
@given(SCALARS)
def test_a_list_is_the_same_array_where_pandas_is_not_loaded(values: list[Any]) -> None:
    expected = known_array(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "pandas")
        found = known_array(values)
    assert (found is None) == (expected is None)
    if found is not None:
        found.validate(full=True)
        assert found.equals(expected)


def test_a_first_evaluation_of_dicts_does_not_load_pandas() -> None:
    code = """
import sys, rankmill
for a, b in ((1, 2), ("a", "b")):
    rankmill.evaluate({a: [a, b], b: [a]}, {a: [b, a], b: [b]}, ["map@2", "first_hit"])
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_missing_items_and_lists() -> None:
    found = outcome({1: [3, None, float("nan"), 4], 2: None}, {1: [None, 4], 2: [5]}, "map")
    assert found[0] == {"map": 0.5}
    assert (found[1]["null_labels"], found[1]["null_items"]) == (2, 1)
    assert outcome({1: ["a"]}, {1: {None: 2.0, "b": 0.5, "a": 1.0}}, "first_hit")[0] == {
        "first_hit": 1.0
    }


# ------------------------------------------------------------------ frames and Arrow producers


def objects(table: pa.Table) -> pd.DataFrame:
    return pd.DataFrame(
        {one: pd.Series(table[one].to_pylist(), dtype=object) for one in table.schema.names}
    )


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "reader": lambda table: table.to_reader(max_chunksize=1),
    "structs": lambda table: table.to_struct_array(),
    "struct": lambda table: table.to_struct_array().combine_chunks(),
    "dataset": pyarrow.dataset.dataset,
    "scanner": lambda table: pyarrow.dataset.dataset(table).scanner(),
    "pandas": lambda table: table.to_pandas(),
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas of objects": objects,
    "pandas with an index": lambda table: objects(table).set_index("query"),
}


def with_polars(lazy: bool) -> Callable[[pa.Table], Any]:
    def make(table: pa.Table) -> Any:
        polars = pytest.importorskip("polars", reason="Polars is not installed")
        frame = polars.from_arrow(table)
        return frame.lazy() if lazy else frame

    return make


def with_duckdb(table: pa.Table) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    return duckdb.connect().from_arrow(table)


FRAMES |= {"polars": with_polars(False), "lazy": with_polars(True), "duckdb": with_duckdb}


NAMES = {"int": int, "text": IDS["text"], "uint": lambda i: 2**63 + i}
SHAPES = ["long", "wide"]


# Each frame with two of the six kinds of names and shapes, one of each shape.
@pytest.mark.rows(5)
@pytest.mark.parametrize(
    ("frame", "name", "shape"),
    [
        pytest.param(*one, marks=[pytest.mark.long][: (sum(places) + places[2]) % 3])
        for one in itertools.product(FRAMES, NAMES, SHAPES)
        for places in [tuple(map(list.index, ([*FRAMES], [*NAMES], SHAPES), one))]
    ],
)
def test_frames(frame: str, name: str, shape: str, tmp_path: Path) -> None:
    made, id_of = FRAMES[frame], NAMES[name]
    paths = twins(id_of, tmp_path, as_long=shape == "long")
    expected = outcome(*paths)
    tables = [pq.read_table(path) for path in paths]
    assert outcome(*map(made, tables)) == expected
    assert outcome(*map(made, tables), memory=1) == expected
    labels, runs = map(made, tables)
    assert rankmill.evaluate_runs(labels, {"a": runs}, METRICS)["a"].metrics == expected[0]
    plan = rankmill.plan(*map(made, tables), "map")
    assert plan["labels"]["columns"]["query"] == "query"
    text = str(rankmill.explain(*paths, "map", id_of(5)))
    shown = str(rankmill.explain(*map(made, tables), "map", id_of(5)))
    assert shown.splitlines()[2:] == text.splitlines()[2:]
    whole = rankmill.explain_evaluators(*paths, "map", ["default", "trec_eval"])
    found = rankmill.explain_evaluators(*map(made, tables), "map", ["default", "trec_eval"])
    assert (found.value, found.wholes, found.fields) == (whole.value, whole.wholes, whole.fields)


def test_pandas_ids() -> None:
    """Integers that pandas made floats, categories, nullable integers and UUIDs are ids."""
    expected = outcome({1: [3], 2: [4]}, {1: [4, 3], 2: [4]}, "map")
    labels = pd.DataFrame({"user": [1, 2], "item": [3, 4]})
    runs = pd.DataFrame({"user": [1, 1, 2, 2], "item": [4.0, 3.0, np.nan, 4.0]})
    assert outcome(labels, runs, "map")[0] == expected[0]
    for kind in ("Int64", "category", object, "int8"):
        assert outcome(labels.astype({"item": kind}), runs, "map")[0] == expected[0]
    as_text = labels.assign(item=labels["item"].map(lambda i: uuid.UUID(int=i)))
    hexes = runs.dropna().assign(
        item=runs["item"].dropna().map(lambda i: str(uuid.UUID(int=int(i))))
    )
    assert outcome(as_text, hexes, "map")[0] == expected[0]
    with pytest.raises(InputError, match=r"found 4\.5; a fraction is not an id: write integers"):
        outcome(labels, runs.assign(item=[4.5, 3.0, 1.0, 4.0]), "map")


@pytest.mark.parametrize(
    "cell",
    [
        lambda one: np.array(one, np.int16),
        lambda one: np.array(one, ">i8"),
        lambda one: np.array(one, np.uint64),
        lambda one: np.repeat(one, 2)[::2],  # skips some
        lambda one: np.array(one, np.int32 if one[0] % 2 else np.int64),
    ],
)
def test_cells_of_integer_arrays(cell: Callable[[list[int]], Any]) -> None:
    labels, runs = [[1, 2, 3], [5], [7, 8]], [[3, 9, 1], [6, 5], [8]]

    def frame(lists: list[list[int]]) -> pd.DataFrame:
        return pd.DataFrame({"query": range(3), "items": [cell(one) for one in lists]})

    found = rankmill.evaluate(frame(labels), frame(runs), METRICS[:2])
    expected = rankmill.evaluate(labels, runs, METRICS[:2])
    assert [found[name] for name in METRICS[:2]] == [expected[name] for name in METRICS[:2]]


def test_a_cell_of_integers_in_two_dimensions() -> None:
    cells = [np.array([1, 2]), np.array([[3], [4]])]
    frame = pd.DataFrame({"query": [1, 2], "items": pd.Series(cells, dtype=object)})
    with pytest.raises(InputError, match="row 1 holds an array of 2 dimensions"):
        rankmill.evaluate(frame, frame, ["map"])


def test_series() -> None:
    table = pd.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "c"], "score": [0.5, 0.75, 1.0]})
    lists = table.groupby("user")["item"].apply(list)
    expected = outcome({1: ["b"], 2: ["x"]}, {1: ["a", "b"], 2: ["c"]}, "map")
    assert outcome({1: ["b"], 2: ["x"]}, lists, "map") == expected
    assert outcome(pd.Series(["b", "x"], [1, 2]), lists, "map") == expected
    scores = table.set_index(["user", "item"])["score"]
    assert outcome({1: ["b"], 2: ["x"]}, scores, "first_hit")[0] == {"first_hit": 0.5}


def test_only_columns_that_are_read_matter() -> None:
    frame = pd.DataFrame({"user": [1], "items": [[2]], "other": [{"no": object()}], "more": [1j]})
    assert outcome(frame, frame, "map")[0] == {"map": 1.0}
    with pytest.raises(InputError, match="Arrow cannot read column 'more'"):
        outcome(frame, frame, "map", item="more")
    with pytest.raises(InputError, match="column 'other': row 0 holds"):
        outcome(frame, frame, "map", item="other")


def test_arrays_of_polars_are_lists_and_objects_are_refused() -> None:
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    frame = polars.DataFrame({"user": [1], "items": [[2, 3]]})
    arrays = frame.with_columns(polars.col("items").cast(polars.Array(polars.Int64, 2)))
    assert rankmill.evaluate(arrays, arrays, ["map"])["map"] == 1
    objects = frame.with_columns(items=polars.Series([{2, 3}], dtype=polars.Object))
    with pytest.raises(InputError, match="no type for the objects of column 'items'"):
        rankmill.evaluate(objects, frame, ["map"])


def test_a_stream_that_was_read_holds_no_rows() -> None:
    table = pa.table({"user": [1], "items": [[2]]})
    reader = table.to_reader()
    assert rankmill.evaluate(table, reader, ["map"])["map"] == 1
    with pytest.raises(InputError, match="holds no rows; expected predictions: a stream"):
        rankmill.evaluate(table, reader, ["map"])


def test_only_columns_of_polars_that_are_read_matter() -> None:
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    frame = polars.DataFrame({"user": [1], "items": [[2]]})
    frame = frame.with_columns(other=polars.lit(1).cast(polars.Int128))
    assert outcome(frame, frame.lazy(), "map")[0] == {"map": 1.0}
    for one in (frame, frame.lazy()):
        with pytest.raises(InputError, match="Arrow has no type for a column"):
            outcome(frame, one, "map", item="other", label_item="items")


def test_decimal_scores() -> None:
    """DuckDB calls 0.5 a decimal."""
    labels = pa.table({"query": [1], "item": [2]})
    runs = pa.table(
        {"query": [1, 1], "item": [2, 3], "score": pa.array([0.25, 0.5]).cast(pa.decimal128(3, 2))}
    )
    assert outcome(labels, runs, "first_hit")[0] == {"first_hit": 0.5}
    with pytest.raises(InputError, match="a fraction is not an id: write integers or text"):
        outcome(labels.set_column(1, "item", runs["score"].slice(1)), runs, "map")


# ------------------------------------------------------------------ streams


def test_streams_are_not_held() -> None:
    """A stream is read only as far ahead as threads need."""
    read, done, ahead = 0, 0, []

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for start in range(0, 200 * 8192, 8192):
            read += 1
            ahead.append(read - done // 8192)
            ids = np.arange(start, start + 8192)
            lists = pa.FixedSizeListArray.from_arrays(pa.array(ids), 1)
            yield pa.record_batch({"query": ids, "items": lists})

    def progress(rows: int, _: int | None) -> None:
        nonlocal done
        done = rows

    schema = next(batches()).schema
    read, ahead = 0, []
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    result = rankmill.evaluate({3: [3]}, reader, "map", progress=progress, threads=2)
    assert result["map"] == 1.0
    assert read == 200
    assert max(ahead) < 50


def test_rows_are_taken_as_they_are_needed() -> None:
    taken = 0

    def rows() -> Iterator[ScoredDoc]:
        nonlocal taken
        for taken in range(10**6):
            yield ScoredDoc(taken, 1, 0.5)

    source = open_source(rows(), InputOptions("predictions"))
    assert taken < 1000
    next(source.pieces(["query_id"])[0])
    assert taken < 10**5


# ------------------------------------------------------------------ round trips

some_ids = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6, unique=True),
    st.lists(
        st.text(st.characters(codec="utf-8"), max_size=3).filter(stands_for_itself),
        min_size=1,
        max_size=6,
        unique=True,
    ),
)


@given(some_ids, some_ids, st.randoms(use_true_random=False))
@settings(max_examples=examples(30), deadline=None)
def test_round_trips(queries: list[Any], items: list[Any], random: Any) -> None:
    def some(kinds: Any) -> Scored:
        return {
            q: {
                i: random.choice(kinds) for i in random.sample(items, random.randint(1, len(items)))
            }
            for q in random.sample(queries, random.randint(1, len(queries)))
        }

    gains, scores = some([0, 1, 2]), some([0.5, 1, 2.0, -1])
    gains[queries[0]] = {items[0]: 1}
    expected = outcome(long(gains, "gain"), long(scores, "score"))
    assert outcome(gains, scores) == expected
    assert outcome(objects(long(gains, "gain")), objects(long(scores, "score"))) == expected


integers = st.integers(-(2**64), 2**65) | st.sampled_from(
    [sign * 2**bits + more for sign in (1, -1) for bits in (31, 62, 63) for more in (-1, 0, 1)]
)


@pytest.mark.small
@given(st.lists(st.lists(integers) | st.lists(integers).map(tuple)))
@settings(max_examples=examples(100), deadline=None)
def test_lists_of_integers_are_joined_as_they_are(lists: list[Any]) -> None:
    every = [one for some in lists for one in some]
    lengths, found = join_cells(lists, str)
    assert (lengths.tolist(), [int(one) for one in found]) == ([*map(len, lists)], every)
    fit = bool(every) and all(-(2**63) <= one < 2**63 for one in every)
    assert isinstance(found, np.ndarray) == fit


# ------------------------------------------------------------------ what is wrong

GOOD: Any = {1: [2]}


@pytest.mark.parametrize(
    ("labels", "runs", "kind", "wanted"),
    [
        (GOOD, {1: [2, "a"]}, InputError, "query 1, place 1 of its list, holds 'a', a text"),
        ({1: [2], 2: ["a"]}, GOOD, InputError, "query 2, place 0 of its list, holds 'a', a text"),
        (
            {1: ["a"], 2: [5]},
            {1: ["a"]},
            InputError,
            "query 2, place 0 of its list, holds 5, a number",
        ),
        ({1: [2], "b": [2]}, GOOD, InputError, "key 1 holds 'b', a text, but 1 before"),
        (GOOD, {1: [True]}, InputError, "item holds large_list<item: bool>; ids are"),
        (GOOD, {1: [2**64]}, InputError, "holds 18446744073709551616; expected integers"),
        (GOOD, {1: [-1, 2**63]}, InputError, "expected integers that all fit"),
        (GOOD, {1: ["\ud800"]}, InputError, "valid Unicode"),
        (GOOD, {1: [2.5]}, InputError, "contains floats; expected the items of each query"),
        (GOOD, {1: [[2]]}, InputError, r"holds \[2\] \(list\)"),
        (GOOD, {None: [2]}, InputError, "has no query id"),
        (
            GOOD,
            {1: {2: "high"}},
            InputError,
            "column 'score'.: found 'high'; expected a number",
        ),
        (GOOD, {1: {2: None}}, InputError, "expected a number for every item"),
        (GOOD, {1: [(2, 1.0), (3,)]}, InputError, r"holds \(3,\) \(tuple\); expected"),
        (GOOD, {1: {2}}, UsageError, "a set, which has no order"),
        (GOOD, {1: [2], 5: {2}}, InputError, "query 5 holds a set, which has no order"),
        (GOOD, {1: {2: 1.0}, 2: [3]}, InputError, "query 2 holds .*; expected {item: number}"),
        (GOOD, {1: [2], 3: "abc"}, InputError, r"query 3 holds 'abc' \(str\); expected a list"),
        (GOOD, {1: 2}, UsageError, r"the value of 1 is 2 \(int\); expected {query: \[items\]}"),
        (GOOD, {"a": "a.parquet"}, UsageError, "evaluate_runs"),
        (GOOD, {"a": {1: [2]}}, UsageError, "evaluate_runs"),
        (GOOD, {"a": {1: {2: 0.5}}}, UsageError, "evaluate_runs"),
        (GOOD, {}, InputError, "holds no rows"),
        (GOOD, [[2]], UsageError, "predictions are lists or Ragged without|predictions are lists"),
        ([[2]], [[2], [3]], InputError, "1 list of labels and 2 of predictions"),
        ([1, 2], [[1], [2]], UsageError, r"holds 1 \(int\); expected a list of items for each"),
        ([[1], [2]], np.array([1, 2]), UsageError, "expected a list of items for each query"),
        (np.zeros((1, 1, 1)), [[1]], InputError, "has 3 dimensions; expected two, with a row of"),
        (
            GOOD,
            np.array(5),
            InputError,
            "the ndarray of predictions has 0 dimensions; expected two",
        ),
        (GOOD, [pd.DataFrame({"user": [1]})] * 2, UsageError, "join its parts.*; several systems"),
        ([pa.table({"user": [1]})], GOOD, UsageError, "labels holds tables; .*concat_tables$"),
        (GOOD, iter([1, 2]), UsageError, "expected named tuples"),
        (GOOD, iter([ScoredDoc(1, 2, 0.5), (1, 3)]), InputError, r"row 1 is \(1, 3\)"),
        (GOOD, 5, UsageError, "predictions cannot be a int"),
        (GOOD, pd.DataFrame({"user": [1], "items": ["abc"], "x": [[1]]}), InputError, "compared"),
        (GOOD, pd.DataFrame({"user": [1, 2], "items": [[1], "abc"]}), InputError, "row 1 holds"),
        (GOOD, pd.DataFrame({"user": [1], "items": [{1}]}), InputError, "row 0 holds a set"),
        (GOOD, pd.DataFrame([[1, 2, 3]], columns=["user", "a", "a"]), UsageError, "several"),
        (GOOD, pa.chunked_array([[1, 2]]), InputError, "expected structs"),
    ],
)
def test_bad_objects(labels: Any, runs: Any, kind: type[RankmillError], wanted: str) -> None:
    with pytest.raises(kind, match=wanted):
        rankmill.evaluate(labels, runs, "map")


def test_a_series_alone_is_no_table() -> None:
    series = pytest.importorskip("polars", reason="Polars is not installed").Series("items", [[1]])
    with pytest.raises(
        InputError, match="expected a table, with a column of query ids in addition"
    ):
        rankmill.evaluate(GOOD, series, "map")
    with pytest.raises(UsageError, match=r"by is a Series of values alone: give a table .* query"):
        rankmill.compare(GOOD, {"a": GOOD, "b": GOOD}, "map", by=series)


def test_numbers_beside_lists_are_pairs() -> None:
    with pytest.raises(UsageError, match=r"\(item, number\) pairs"):
        rankmill.evaluate([[1]], rankmill.Predictions([[1]], score=[[0.5]]), "gap")


class WithoutArrow:
    """What has only the older protocol of frames."""

    def __dataframe__(self) -> None: ...


def test_other_frames_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be a WithoutArrow"):
        rankmill.evaluate(WithoutArrow(), GOOD)


def test_rows_as_dicts_are_not_taken_for_items_by_query():
    """As MTEB has them."""
    rows = [{"user_id": 7, "item": 1}, {"user_id": 8, "item": 2}, {"user_id": 7, "item": 3}]
    table = pa.Table.from_pylist(rows)
    expected = rankmill.evaluate(table, table.slice(1), "map").metrics
    assert rankmill.evaluate(rows, rows[1:], "map").metrics == expected == {"map": 0.75}
    assert rankmill.evaluate(iter(rows), (one for one in rows[1:]), "map").metrics == expected
    qrels = [
        {"query-id": "q", "corpus-id": one, "score": gain} for one, gain in (("a", 2), ("b", 1))
    ]
    run = [one | {"score": -one["score"] / 2} for one in qrels]
    found = rankmill.evaluate(qrels, run, "ndcg,num_rel")
    assert (
        found.metrics
        == rankmill.evaluate(*map(pa.Table.from_pylist, (qrels, run)), "ndcg,num_rel").metrics
    )
    with pytest.raises(InputError, match=r"row 2 is 3 \(int\); expected a dict as the first"):
        rankmill.evaluate([*qrels, 3], run)


def test_numbers_as_tensors_of_no_dimension():
    torch = pytest.importorskip("torch")
    for one in (torch.tensor, np.array):
        labels = {"q": [one(3)], "p": [one(1)]}
        for run in (
            {"q": [one(3), one(4)], "p": [one(2), one(1)]},
            {"q": {3: one(0.5), 4: one(0.25)}, "p": {2: one(2), 1: one(1)}},
            {"q": [(one(3), one(0.5)), (one(4), one(0.25))], "p": [(one(2), one(2)), (1, one(1))]},
        ):
            assert rankmill.evaluate(labels, run, "map").metrics == {"map": 0.75}
        rows = [ScoredDoc("q", one(3), one(0.5)), ScoredDoc("p", one(1), one(0.25))]
        for run in (rows, iter(rows), [row._asdict() for row in rows]):
            assert rankmill.evaluate(labels, run, "map").metrics == {"map": 1.0}
    keys = {torch.tensor(7): {torch.tensor(2).short(): torch.tensor(0.5).bfloat16()}}
    assert rankmill.evaluate({7: [2]}, keys, "map").metrics == {"map": 1.0}
    with pytest.raises(InputError, match="expected a number"):
        rankmill.evaluate({"q": ["b"]}, {"q": {"a": torch.tensor(np.nan)}}, "gap")


class Handler:
    """What ir_datasets hands over, with its named tuples."""

    def __init__(self, **rows):
        for name, every in rows.items():
            setattr(self, f"{name}_iter", lambda every=every: iter(every))


def test_datasets_of_ir_datasets():
    qrels = [Qrel("1", "a", 2, "0"), Qrel("1", "b", 0, "0"), Qrel("2", "c", 1, "0")]
    scored = [ScoredDoc("1", "b", 2.0), ScoredDoc("1", "a", 1.0), ScoredDoc("2", "c", 3.0)]
    both = Handler(docs=[], qrels=qrels, scoreddocs=scored)
    expected = rankmill.evaluate(qrels, scored, "map,ndcg@5,bpref").metrics
    assert rankmill.evaluate(both, both, "map,ndcg@5,bpref").metrics == expected
    assert expected["map"] == 0.75
    with pytest.raises(
        UsageError, match=r"predictions cannot be a dataset .* without scoreddocs_iter"
    ):
        rankmill.evaluate(qrels, Handler(qrels=qrels))


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame])
def test_a_dict_of_systems_is_not_taken_for_lists_by_query(make):
    one = make({"user_id": ["7"], "item": ["1"]})
    with pytest.raises(UsageError, match=r"'new' is .*evaluate_runs"):
        rankmill.evaluate(one, {"new": one, "old": one})


@pytest.mark.small
def test_a_note_tells_that_nothing_is_in_both() -> None:
    labels = {"q1": ["010"], "q2": ["7"]}
    strange = rankmill.evaluate(labels, {"Q1": ["010"], "Q2": ["7"]}, ["map"])
    (note,) = strange.notes
    assert note.startswith("no query is in both inputs: the labels have 'q1', the predictions 'Q1'")
    (note,) = rankmill.evaluate(labels, {"q1": ["x"], "q2": ["8"]}, ["map", "mrr"]).notes
    assert note.startswith("no prediction is correct; ids are compared exactly")
    (note,) = rankmill.evaluate(labels, {"q1": ["10"], "q2": ["7"]}, ["map"]).notes
    assert "'010' in 'items' is no integer, as all item ids of the dict of predictions are" in note
    assert rankmill.evaluate(labels, {"q1": []}, ["map"]).notes == []


@pytest.mark.small
def test_progress_is_a_function_or_printed(capsys: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="progress is 7; expected True, or a function"):
        rankmill.evaluate({1: [2]}, {1: [2]}, ["map"], progress=7)
    one = {1: [2], 3: [4]}
    pq.write_table(
        pa.table({"query": [1], "items": [[2]], "score": [[1.0]]}), tmp_path / "a.parquet"
    )
    for run in (
        lambda way: rankmill.evaluate(one, one, ["map"], progress=way),
        lambda way: rankmill.explain_evaluators(one, one, "map", progress=way),
        lambda way: rankmill.convert(tmp_path / "a.parquet", tmp_path / "b.parquet", progress=way),
    ):
        run(False)
        assert capsys.readouterr().err == ""
        run(True)
        assert re.search(r"\r([1-9][0-9]*) of \1 rows\n$", capsys.readouterr().err)


def test_bare_scores_and_sparse_features_are_refused_with_what_to_give() -> None:
    scores = np.random.default_rng(4).permutation(60).reshape(6, 10) / 64
    dense = np.eye(6, 10, dtype=int)
    for matrix in (scores, scores.tolist(), scores.astype("f4")):
        with pytest.raises(InputError, match=r"contains floats; .* use rankmill.arrays.Matrix"):
            rankmill.evaluate([[1]] * 6, matrix, "map")
    with pytest.raises(UsageError, match=r"features cannot be a csr_matrix.*toarray"):
        rankmill.evaluate(
            GAINS,
            SCORES,
            "ild_cosine@2",
            catalogue=rankmill.Catalogue(features=scipy.sparse.csr_matrix(dense)),
        )
