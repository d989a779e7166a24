"""Nested objects of Python and JSON: tables and lists by one set of rules, whatever the door."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankmill
from rankmill import InputError, Labels, Predictions, RankmillError
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.roles.source import InputOptions, batch_of

pytestmark = pytest.mark.small

LABELS = pd.DataFrame({"user_id": [1, 2], "item_id": [10, 12]})
LONG = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [11, 10, 12], "score": [0.9, 0.8, 0.7]})
WIDE = pd.DataFrame({"user_id": [1, 2], "items": [[11, 10], [12]]})
BY_USER: Any = {1: [10], 2: [12]}
TEXTS: Any = {"q1": ["a"], "q2": ["c"]}
BIG = 2**64 - 1


def value(labels: Any, predictions: Any, **more: Any) -> float:
    return float(rankmill.evaluate(labels, predictions, "first_hit@3", **more)["first_hit@3"])


@pytest.mark.parametrize("run", [LONG, WIDE], ids=["long", "wide"])
@pytest.mark.parametrize("form", ["dict", "list", "series", "split", "tight", "index", "records"])
def test_dicts_of_pandas(form: Any, run: pd.DataFrame) -> None:
    assert value(LABELS.to_dict(form), run.to_dict(form)) == 0.75


@pytest.mark.parametrize("name", ["r.json", "r.jsonl", "r.txt"])
@pytest.mark.parametrize("run", [LONG, WIDE], ids=["long", "wide"])
@pytest.mark.parametrize("form", ["split", "index", "columns", "table", "records"])
def test_json_of_pandas(form: Any, run: pd.DataFrame, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(run.to_json(orient=form))
    assert value(LABELS, tmp_path / name) == 0.75
    indented = json.dumps(json.loads(run.to_json(orient=form)), indent=1)
    (tmp_path / name).write_text(indented)
    assert value(LABELS, tmp_path / name) == 0.75


def hit(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


def document(name: str) -> Any:
    return hit(id=None, page_content="some words", metadata={"doc_id": name})


def hits_of(make: Callable[[str, float], Any]) -> Any:
    """Hits of two queries, of which the second of the first is right."""
    return {"q1": [make("b", 0.9), make("a", 0.8)], "q2": [make("c", 0.7)]}


def answers_of(wrap: Callable[[Any], Any]) -> Any:
    hits = hits_of(lambda name, score: {"_id": name, "_score": score, "_source": {}})
    return {query: wrap(some) for query, some in hits.items()}


def rows_of_sqlite() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    select = "select 1 user_id, {} item_id, {} rank"
    rows = " union all ".join(select.format(*one) for one in ((10, 2), (11, 1), (12, 3)))
    return connection.execute(rows.replace("1 user_id, 12", "2 user_id, 12")).fetchall()


RECORDS = LABELS.to_dict("records")
FLAGGED = {"user_id": [1, 1, 2], "item_id": [10, 11, 12]}
ROWS: Any = {1: [11, 10], 2: [12]}
RANKED = {"user_id": [1, 2], "rec_1": [11, 12], "rec_2": [10, 13]}
WRAPPED: Any = {
    "user_id": [1, 2],
    "items": [{"list": [{"element": 11}, {"element": 10}]}, {"list": [{"element": 12}]}],
}
FAR = {"ids": [["b", "a"], ["c"]], "distances": [[0.1, 0.2], [0.3]], "documents": None}
ONE_ANSWER = "answer of one search, with its hits in 'hits'.*{query: answer}"


class Response:
    """An answer of Elasticsearch, which is no mapping, but iterates its names."""

    def __init__(self, body: Any) -> None:
        self.body = body

    def __iter__(self) -> Any:
        return iter(self.body)

    def __len__(self) -> int:
        return len(self.body)


# Labels, predictions, and the reciprocal rank or what the error says.
DOCUMENTS: dict[str, tuple[Any, Any, float | str]] = {
    "rows in an envelope": ({"data": LABELS.to_dict("records"), "count": 2}, WIDE, 0.75),
    "a record": ({"user_id": 1, "item_id": 10}, {"user_id": 1, "items": [11, 10]}, 0.5),
    "arrays": (
        {"user_id": np.r_[1, 2], "item_id": np.r_[10, 12]},
        {"user_id": np.r_[1, 2], "items": np.array([[11, 10], [12, 5]])},
        0.75,
    ),
    "names that are told": (
        Labels({"who": [1, 2], "what": [10, 12]}, query="who", item="what"),
        WIDE,
        0.75,
    ),
    "records by query": (
        LABELS.set_index("user_id").to_dict("index"),
        {1: {"items": [11, 10], "scores": [0.9, 0.8]}, 2: {"items": [12], "scores": [0.9]}},
        0.75,
    ),
    "an index with a name": (LABELS.set_index("user_id").to_dict("tight"), WIDE, 0.75),
    "an index without": (LABELS.set_index("user_id").to_dict("split"), WIDE, "like the query.*ind"),
    "columns of two lengths": ({"user_id": [1, 2], "item_id": [10]}, WIDE, "item_id has 1"),
    "a field of later records": (
        [{"user_id": 1, "item_id": 10}, {"user_id": 1, "item_id": 11, "relevance": 0}],
        WIDE,
        "'relevance' is missing",
    ),
    "nested ids": ([{"user": {"id": 1}, "item": 10}, {"user": {"id": 2}, "item": 12}], WIDE, 0.75),
    "triples": ([(1, 10, 1.0), (2, 12, 1.0)], [[1, 11, 0.9], [1, 10, 0.8], [2, 12, 1]], 0.75),
    "triples with booleans": ([(1, 10, np.True_), (1, 11, False)], {1: [11, 10]}, 0.5),
    "triples with decimals": ([(1, 10, Decimal(1))], [(1, 11, Decimal(9))], 0.0),
    "structs of NumPy": (LABELS.to_records(index=False), LONG.to_records(), 0.75),
    "rows of SQLite": (BY_USER, rows_of_sqlite(), 0.75),
    "triples of texts": ([("u", "a", 1)], [("u", "b", 3), ("u", "a", 2)], 0.5),
    "a longer triple": ([(1, 10, 0.5)] * 100 + [(2, 12, 1.0, 3)], WIDE, "row 100 .*three values"),
    "a masked matrix": ([[7], [8]], np.ma.array([[9, 7], [8, 6]], mask=[[1, 0], [0, 0]]), 1.0),
    "a masked column": (
        {"user_id": [1, 1], "item_id": np.ma.array([9, 7], mask=[1, 0])},
        {1: [9, 7]},
        0.5,
    ),
    "three ids": ([[10, 1, 2], [12, 3, 4]], [[11, 10, 5], [12]], 0.75),
    "a matrix of labels": (np.eye(2, 3, dtype=int), [[1, 0], [0, 2]], "0 and 1.*Matrix"),
    "of floats": ([[0.0, 1.0, 0.0]], [[1, 0]], "0 and 1.*Matrix"),
    "of booleans, by query": ({"q": [True, False, False]}, {"q": [1]}, "0 and 1.*Matrix"),
    "zeros and ones": ([[0, 1], [1]], [[0], [1, 0]], 1.0),
    "lists and names": ([[10], [12]], WIDE, "lists without query ids"),
    "a generator of lists": ((one for one in ([10], [12])), iter([[11, 10], [12]]), 0.75),
    "a generator of triples": (LABELS, LONG.itertuples(index=False, name=None), 0.75),
    "Elasticsearch": (TEXTS, answers_of(lambda hits: {"took": 1, "hits": {"hits": hits}}), 0.75),
    "Elasticsearch, bare": (TEXTS, answers_of(list), 0.75),
    "by place": ([["a"], ["c"]], [*answers_of(lambda hits: {"hits": hits}).values()], 0.75),
    "Pinecone": (TEXTS, answers_of(lambda hits: hit(matches=hits)), 0.75),
    "sentence-transformers": (
        [[10], [12]],
        [
            [{"corpus_id": 11, "score": 0.9}, {"corpus_id": 10, "score": 0.8}],
            [{"corpus_id": 12, "score": 1}],
        ],
        0.75,
    ),
    "Qdrant": (TEXTS, hits_of(lambda name, score: hit(id=name, score=score, version=1)), 0.75),
    "LangChain": (TEXTS, hits_of(lambda name, score: document(name)), 0.75),
    "LangChain, scored": (TEXTS, hits_of(lambda name, score: (document(name), score)), 0.75),
    "LlamaIndex": (
        TEXTS,
        hits_of(lambda name, score: hit(node=hit(node_id=name), score=score)),
        0.75,
    ),
    "Chroma": ([["a"], ["c"]], FAR, 0.75),
    "Chroma by query": (
        TEXTS,
        {
            "q1": {"ids": [["b", "a"]], "distances": [[0.1, 0.2]]},
            "q2": {"ids": [["c"]], "distances": [[0.3]]},
        },
        0.75,
    ),
    "Elasticsearch's own class": (TEXTS, answers_of(lambda hits: Response({"hits": hits})), 0.75),
    "Weaviate": (
        TEXTS,
        answers_of(lambda hits: hit(objects=[hit(uuid=one["_id"]) for one in hits])),
        0.75,
    ),
    "Vespa": (TEXTS, answers_of(lambda hits: {"root": {"id": "top", "children": hits}}), 0.75),
    "Haystack": (TEXTS, answers_of(lambda hits: {"documents": hits}), 0.75),
    "Algolia": (TEXTS, hits_of(lambda name, score: {"objectID": name}), 0.75),
    "one answer": (TEXTS, {"took": 1, "hits": {"total": {}, "hits": [{"_id": "b"}]}}, ONE_ANSWER),
    "its hits": (TEXTS, {"hits": [{"_id": "b", "_score": 1.0}]}, ONE_ANSWER),
    "one answer of a class": (TEXTS, Response({"hits": {"hits": [{"_id": "b"}]}}), ONE_ANSWER),
    "queries called so": (
        {"hits": ["a"], "docs": ["c"]},
        {"hits": [{"id": "b"}, {"id": "a"}], "docs": [{"id": "c"}]},
        0.75,
    ),
    "distances and ids": ([[10], [12]], (np.ones((2, 2)), np.ones((2, 2), int)), "ids alone"),
    "both of a query": (BY_USER, {1: (np.r_[11, 10], np.r_[0.9, 0.8])}, "give the ids alone"),
    "no scores": (TEXTS, hits_of(lambda name, score: {"_id": name, "_score": None}), 0.75),
    "a hit without an id": (
        TEXTS,
        {"q1": [{"id": "b", "score": 1.0}, {"score": 0.5}]},
        "'q1' holds .*'score': 0.5.*expected a hit with an id",
    ),
    "hits of one query": ([[10]], [{"id": 11, "score": 0.9}], "expected a list of items for each"),
    "booleans in columns": ({**FLAGGED, "clicked": [True, False, True]}, ROWS, 0.75),
    "NumPy's booleans": ({**FLAGGED, "clicked": np.r_[[True, False, True]]}, ROWS, 0.75),
    "booleans in records": (
        [{"user_id": 1, "item_id": one, "clicked": np.bool_(one == 10)} for one in (10, 11)],
        {1: [11, 10]},
        0.5,
    ),
    "objects with a missing boolean": (
        pd.DataFrame({**FLAGGED, "clicked": [True, None, True]}),
        ROWS,
        "'clicked' is missing",
    ),
    "a boolean of no known name": ({**FLAGGED, "flag": [True, False, True]}, ROWS, "may say which"),
    "booleans and numbers": (
        {**FLAGGED, "clicked": [True, 0, 1]},
        ROWS,
        "holds 0, a number, but True before it is a boolean",
    ),
    "a label that is a boolean": ({**FLAGGED, "label": [True, False, True]}, ROWS, 0.75),
    "records without a key": ([{"user_id": 1, "item_id": 10}, {"user_id": 2}], {1: [11, 10]}, 0.5),
    "a generator of records": (iter(RECORDS), (one for one in RECORDS), 1.0),
    "a column per rank": (BY_USER, RANKED, 0.75),
    "records with a column per rank": (BY_USER, pd.DataFrame(RANKED).to_dict("records"), 0.75),
    "items called like ranks": ({"q": ["d_2"]}, {"q": {"d_1": 0.2, "d_2": 0.9}}, 1.0),
    "weak names": ({"id": [10, 12], "user_id": [1, 2]}, ROWS, 0.75),
    "records with weak names": (BY_USER, [{"uid": 1, "sku": 10}, {"uid": 2, "sku": 5}], 0.5),
    "names of RecBole": ({"user_id:token": [1, 2], "item_id:token": [10, 12]}, ROWS, 0.75),
    "wrapped lists": (BY_USER, WRAPPED, 0.75),
    "wrapped lists in a frame": (BY_USER, pd.DataFrame(WRAPPED), 0.75),
    "wrapped lists in records": (BY_USER, pd.DataFrame(WRAPPED).to_dict("records"), 0.75),
    "structs of Spark": (
        BY_USER,
        {"user_id": [1, 2], "items": [[{"_1": 11, "_2": 0.9}, {"_1": 10}], [{"_1": 12, "_2": 1}]]},
        0.75,
    ),
    "texts by query": ({"q1": "d1 d2", "q2": "d3"}, {"q1": ["d9", "d1"], "q2": ["d3"]}, 0.75),
    "a text by query": ({"q1": "d1", "q2": "d3"}, {"q1": ["d9", "d1"], "q2": ["d3"]}, 0.75),
    "scores as text": (BY_USER, {1: {10: "0.8", 11: "0.9"}, 2: {12: "1"}}, 0.75),
    "gains as text": ({1: {10: "1", 11: "0"}, 2: {12: "1"}}, ROWS, 0.75),
    "a path": ({"a": "a.parquet"}, BY_USER, "several systems are for evaluate_runs"),
    "hits with booleans": (
        {1: [{"id": 10, "clicked": True}, {"id": 11, "clicked": False}]},
        {1: [11, 10]},
        0.5,
    ),
    "hits with texts": (
        {1: [{"id": 10, "relevance": "1"}, {"id": 11, "relevance": "0"}]}, {1: [11, 10]}, 0.5,
    ),
    "gains of labels": ({"q": [{"id": "a", "relevance": 0}, {"id": "b", "relevance": 1}]},
                        {"q": ["a", "b"]}, 0.5),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*'distance' is not read")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents(name: str) -> None:
    labels, predictions, expected = DOCUMENTS[name]
    if isinstance(expected, str):
        with pytest.raises(RankmillError, match=expected):
            value(labels, predictions)
    else:
        assert value(labels, predictions) == expected


CELLS = [
    [[("b", 0.9), ("a", 0.8)], [("c", 0.7)]],
    [{"a": 0.8, "b": 0.9}, {"c": 0.7}],
    [[{"_id": "b", "_score": 2.0}, {"_id": "a", "_score": 1.0}], [{"_id": "c", "_score": 1.0}]],
]


@pytest.mark.parametrize("cells", CELLS, ids=["pairs", "numbers by item", "hits"])
@pytest.mark.parametrize(
    "make", [pd.DataFrame, dict, lambda one: pd.DataFrame(one).to_dict("records")]
)
def test_items_with_numbers_in_cells(
    cells: Any, make: Callable[[Any], Any], tmp_path: Path
) -> None:
    run = make({"query": ["q1", "q2"], "items": cells})
    found = rankmill.evaluate(TEXTS, run, "first_hit,gap")
    assert found["first_hit"] == 0.75
    by_query = dict(zip(TEXTS, cells, strict=True))
    assert rankmill.evaluate(TEXTS, by_query, "first_hit,gap").metrics == found.metrics
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"query": ["q1", "q2"], "items": cells}))
    assert rankmill.evaluate(TEXTS, path, "first_hit,gap").metrics == found.metrics


def test_a_distance_is_no_score() -> None:
    with pytest.warns(RuntimeWarning, match="'distance' is not read"):
        found = rankmill.evaluate([["a"], ["c"]], FAR, "first_hit")
    assert found.metrics == {"first_hit": 0.75}
    assert "'distance' is not read" in found.notes[0]
    table = LONG.rename(columns={"score": "distance"})
    for run in (table, Predictions(table, score="distance")):
        with pytest.raises(RankmillError, match=r"'distance' is smaller for better .* scores that"):
            rankmill.evaluate(LABELS, run, "first_hit")
    with pytest.raises(RankmillError, match="'distance' is smaller for better items"):
        rankmill.evaluate([["a"], ["c"]], FAR, "gap")
    assert value(LABELS, LONG.assign(distance=[0.1, 0.2, 0.3])) == 0.75  # beside a score


def test_columns_of_periods_and_tensors() -> None:
    torch = pytest.importorskip("torch")
    months = pd.PeriodIndex(["2024-01", "2024-02"], freq="M")
    run = {"2024-01": [11, 10], "2024-02": [12]}
    assert value(LABELS.assign(user_id=months), run) == 0.75
    tensors = {name: torch.tensor(LABELS[name].to_list()) for name in LABELS}
    assert value(tensors, LONG) == 0.75


@pytest.mark.parametrize("form", ["dict", "lists", "numbers"])
def test_series_of_several_levels(form: str) -> None:
    frame = pd.DataFrame({"user": [1, 1, 1, 2], "day": [*"abba"], "item": [7, 8, 9, 9], "n": 1.0})
    if form == "numbers":
        series = frame.set_index(["user", "day", "item"])["n"]
    else:
        series = frame.groupby(["user", "day"])["item"].apply(list)
    run = Predictions(frame, query=["user", "day"], score="n")
    assert value(series, run) == 1.0
    assert rankmill.evaluate(series, run, "map").queries == 3


def test_lines_and_documents_of_json(tmp_path: Path) -> None:
    """A single line may be a row or all rows; with more lines or more files it is a row."""
    for name, texts in itertools.product(("l.json", "l.jsonl"), (
        ['{"user_id": 1, "items": [10]}', '{"user_id": 2, "items": [12]}\n\n{"user_id": 3}\n'],
        ['{"1": [10], "2": [12]}'],
        ['{"user_id": [1, 2], "item_id": [10, 12]}'],
        ["[[1, 10, 1.0], [2, 12, 1.0]]"],
    )):  # fmt: skip
        paths = [tmp_path / f"{i}{name}" for i in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        by_text = texts[0].startswith('{"1"')
        run = {str(q): items for q, items in BY_USER.items()} if by_text else BY_USER
        assert value([*map(str, paths)], run) == 1.0
    (tmp_path / "values.json").write_text(LABELS.to_json(orient="values"))
    with pytest.raises(InputError, match="lists without query ids"):
        value(tmp_path / "values.json", LONG)
    long = tmp_path / "long.json"
    long.write_text(json.dumps({f"q{i}": ["é" * 9] for i in range(60_000)}, ensure_ascii=False))
    assert value(long, long) == 1.0


@pytest.mark.parametrize("ids", [(BIG, BIG - 1), ("2024-01-01", "2024-01-01T00:00:00")])
def test_ids_of_json_lines_are_exact(ids: tuple[Any, Any], tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    rows = [{"user_id": one, "items": [one]} for one in ids]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert value(path, {one: [one] for one in ids}) == 1.0
    assert value(path, dict(zip(ids, [[one] for one in ids[::-1]], strict=True))) == 0.0


def test_a_few_lists_are_converted_once() -> None:
    """What looks at them first, and what reads them, get the same arrays."""
    source = open_source({"a": [1, 2], "b": [3]}, InputOptions())
    (first,), (again,) = ([batch_of(one) for one in source.pieces([n])[0]] for n in ("items",) * 2)
    addresses = [one.data.column("items").values.buffers()[1].address for one in (first, again)]
    assert addresses[0] == addresses[1]
    with pytest.raises(InputError, match="query 'b' holds a set"):
        value({"a": [1], "b": [2]}, {"a": [1], "b": {2}})
