"""Query ids of several columns: the same numbers as one column of ids, in every format."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
from flat import flat
from rankmill.engine.head import head
from rankmill.errors import InputError, UsageError
from rankmill.sources.roles.source import key_of
from strategies import examples

METRICS = ["map", "recall@2", "first_hit"]
BOTH = ["session", "type"]
TEMPLATE = "{session}_{type}"
KINDS = ("clicks", "carts,x", "a\\", "\\,")

# A query is a place in TUPLES; no two are equal, though many are if their texts are just joined.
TUPLES = [(session, kind) for session in (1, 2, 12) for kind in KINDS]
LABELS = {0: [5], 1: [6, 7], 3: [8], 4: [5, 9], 7: [9], 10: [6], 11: [7, 8]}
RUN = {0: [5, 6], 1: [9, 7], 2: [8], 4: [9], 5: [5], 7: [6, 9], 10: [6], 11: [8, 1]}


def table(lists: dict[int, list[int]], columns: list[Any], names: list[str], wide: bool) -> Any:
    """The lists as a table whose queries are `columns[query]`, a tuple with a value a name."""
    rows = [
        {**dict(zip(names, columns[query], strict=True)), ("items" if wide else "item"): one}
        for query, items in lists.items()
        for one in ([items] if wide else items)
    ]
    return pa.Table.from_pylist(rows)


def as_json(one: Any, path: Path) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in one.to_pylist()))
    return str(path)


def as_text(one: Any, path: Path, delimiter: str) -> str:
    if pa.types.is_list(one.schema.types[-1]):
        texts = [" ".join(map(str, cell)) for cell in one.column("items").to_pylist()]
        one = one.set_column(one.num_columns - 1, "items", pa.array(texts))
    options = pyarrow.csv.WriteOptions(delimiter=delimiter)
    pyarrow.csv.write_csv(one, path, options)
    return str(path)


def written(write: Callable[..., Any], one: Any, path: Path) -> str:
    write(one, path)
    return str(path)


FORMS: dict[str, Callable[[Any, Path], Any]] = {
    "table": lambda one, path: one,
    "reader": lambda one, path: one.to_reader(max_chunksize=2),
    "pandas": lambda one, path: one.to_pandas(),
    "polars": lambda one, path: pl.from_arrow(one),
    "lazy": lambda one, path: pl.from_arrow(one).lazy(),  # type: ignore[union-attr]
    "rows": lambda one, path: list(one.to_pandas().itertuples(index=False)),
    "parquet": lambda one, path: written(
        lambda *both: pq.write_table(*both, row_group_size=3), one, path.with_suffix(".parquet")
    ),
    "dictionaries": lambda one, path: one.set_column(1, "type", one.column(1).dictionary_encode()),
    "arrow": lambda one, path: written(
        pyarrow.feather.write_feather, one, path.with_suffix(".arrow")
    ),
    "jsonl": lambda one, path: as_json(one, path.with_suffix(".jsonl")),
    "csv": lambda one, path: as_text(one, path.with_suffix(".csv"), ","),
    "tsv": lambda one, path: as_text(one, path.with_suffix(".tsv"), "\t"),
}


def values(labels: Any, predictions: Any, **options: Any) -> dict[str, float]:
    """The values of a run in the order of its rows."""
    options = {"in_order": True, "metrics": METRICS} | options
    return dict(flat(rankmill.evaluate, labels, predictions, **options).metrics)


def expected() -> dict[str, float]:
    """The values where a query is one number."""
    return values(LABELS, RUN)


@pytest.mark.small
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wide", [False, True], ids=["long", "wide"])
def test_columns_make_a_query_in_every_format(tmp_path: Path, form: str, wide: bool) -> None:
    sides = [
        FORMS[form](table(one, TUPLES, BOTH, wide), tmp_path / name)
        for name, one in (("labels", LABELS), ("run", RUN))
    ]
    assert values(*sides, query=BOTH) == expected()
    if form not in ("reader", "lazy"):
        assert values(*sides, query="session,type") == expected()


@pytest.mark.small
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("of_labels", [True, False], ids=["labels", "predictions"])
def test_a_template_meets_a_column_of_texts(tmp_path: Path, form: str, of_labels: bool) -> None:
    plain = [(session, "abcd"[place]) for session in (1, 2, 12) for place in range(4)]
    joined = [(f"{session}_{kind}",) for session, kind in plain]
    made = {"label_query" if of_labels else "query": TEMPLATE}
    made |= {"query": "key"} if of_labels else {"label_query": "key"}
    sides = [
        FORMS[form](
            table(one, plain if parts else joined, BOTH if parts else ["key"], True),
            tmp_path / name,
        )
        for name, one, parts in (("labels", LABELS, of_labels), ("run", RUN, not of_labels))
        if form != "dictionaries" or parts
    ]
    if form == "dictionaries":
        other = table(RUN if of_labels else LABELS, joined, ["key"], True)
        sides = [sides[0], other] if of_labels else [other, sides[0]]
    assert values(*sides, **made) == expected()


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(st.text("a,\\_ é", min_size=0, max_size=3), st.text("a,\\_", max_size=3)),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_tuples_of_texts_match_only_if_all_parts_are_equal(pairs: list[tuple[str, str]]) -> None:
    first = {place: [1] for place in range(len(pairs))}
    labels = table(first, pairs, BOTH, True)
    for number, one in enumerate(pairs):  # each alone finds itself, and no other
        run = table({0: [1]}, [one], BOTH, True)
        found = rankmill.evaluate(
            rankmill.Labels(labels, query=BOTH, exact_ids=True),
            rankmill.Predictions(run, query=BOTH, exact_ids=True),
            ["recall@1"],
        )
        assert found.audit["queries_in_both"] == 1
        assert found.per_query.column("recall@1").to_pylist()[number] == 1
        assert len(set(found.per_query.column("session,type").to_pylist())) == len(pairs)


@pytest.mark.small
def test_parts_are_compared_as_ids_are(tmp_path: Path) -> None:
    texts = table({0: [5]}, [("1", "a")], BOTH, True)
    numbers = table({0: [5]}, [(1, "a")], BOTH, True)
    assert values(texts, numbers, query=BOTH)["map"] == 1
    path = tmp_path / "run.csv"
    path.write_text("session,type,items\n1,a,5\n")
    assert values(numbers, str(path), query=BOTH)["map"] == 1
    path.write_text("session,type,items\n01,a,5\n")
    assert values(numbers, str(path), query=BOTH, semantics={"unpredicted": "zero"})["map"] == 0
    assert values(texts, str(path), query=BOTH, semantics={"unpredicted": "zero"})["map"] == 0


@pytest.mark.small
def test_a_null_part_is_a_null_id() -> None:
    one = pa.table({"session": [1, 2], "type": ["a", None], "items": [[1], [2]]})
    with pytest.raises(
        InputError, match=r"row 1.* has no query id \(null in column 'session,type'"
    ):
        values(one, one, query=BOTH)


@pytest.mark.small
@pytest.mark.parametrize(
    ("pairs", "fails"),
    [
        ([("u_1", "a"), ("u_2", "b")], False),
        ([("1", "a_b"), ("1", "c")], False),
        ([("u_1", "a"), ("u", "1_a")], True),
        ([("u_1", "a"), ("2", "c_d")], True),
    ],
)
def test_texts_that_may_be_of_different_queries_are_refused(
    pairs: list[tuple[str, str]], fails: bool
) -> None:
    lists = {place: [1] for place in range(len(pairs))}
    labels = table(lists, pairs, BOTH, True)
    run = table(lists, [("_".join(one),) for one in pairs], ["key"], True)
    if fails:
        with pytest.raises(InputError, match="several columns of the query hold '_'"):
            values(labels, run, label_query=TEMPLATE, query="key")
    else:
        assert values(labels, run, label_query=TEMPLATE, query="key")["map"] == 1


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_query": BOTH, "query": "key"}, r"consist of session, type, .* of one column"),
        ({"query": TEMPLATE}, r"if both have the columns, use query=\['session', 'type'\]"),
        ({"query": "{session}{type}"}, "nothing between them"),
        (
            {"query": BOTH, "label_query": ["type", "session"]},
            "of type, session, .*same order",
        ),
        *(({"query": one}, "expected the name of a column") for one in ([], (), "", [""], 3)),
        ({"query": ["key", "key"]}, "column 'key' twice"),
        ({"query": "{key}_{key}"}, "column 'key' twice"),
        ({"query": ["session", "typ"]}, "no column 'typ' for the query"),
        ({"query": ["session", "share"]}, "column 'share'\\): found 0.5; a fraction is not an id"),
    ],
)
def test_keys_that_cannot_be_compared(options: dict[str, Any], message: str) -> None:
    one = pa.table({"session": [1], "type": ["a"], "key": ["1_a"], "share": [0.5], "items": [[1]]})
    with pytest.raises((InputError, UsageError), match=message):
        values(one, one, **options)


@pytest.mark.small
@pytest.mark.parametrize("query", ["session,typ", "{session}_{typ}", "typ,session"])
def test_a_mistyped_part_of_a_text_file(tmp_path: Path, query: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("session,type,items\n1,a,5\n")
    with pytest.raises(InputError, match="no column 'typ' for the query"):
        values(str(path), str(path), query=query)


@pytest.mark.small
def test_a_column_with_a_comma_is_one_column() -> None:
    one = pa.table({"a,b": [1], "a": [2], "b": [3], "items": [[1]]})
    found = rankmill.evaluate(
        rankmill.Labels(one, query="a,b"), rankmill.Predictions(one, query="a,b"), ["map"]
    )
    assert found.per_query.column("a,b").to_pylist() == [1]
    found = rankmill.evaluate(
        rankmill.Labels(one, query=["a", "b"]), rankmill.Predictions(one, query=["a", "b"]), ["map"]
    )
    assert found.per_query.column("(a,b)").to_pylist() == ["2,3"]
    assert key_of("{a}-{b}", ["a-b"]).name == "{a}-{b}"  # type: ignore[union-attr]


@pytest.mark.small
def test_parts_are_no_items_and_no_gains() -> None:
    one = pa.table({"image_id": [1, 1], "class": ["a", "b"], "rel": [1, 2], "item_id": [3, 4]})
    found = rankmill.evaluate(
        rankmill.Labels(one, query=["image_id", "class", "rel"], binary=True),
        rankmill.Predictions(one, query=["image_id", "class", "rel"], in_order=True),
        ["map"],
    )
    assert found["map"] == 1
    assert found.inputs["labels"]["columns"] == {"query": "image_id,class,rel", "item": "item_id"}
    assert "unread" not in found.inputs["labels"]


@pytest.mark.small
def test_an_earlier_run_of_the_same_columns_in_another_order(tmp_path: Path) -> None:
    one = pa.table({"s": [1, 1, 2], "t": [1, 2, 1], "item": [5, 6, 7]})
    for query in (["s", "t"], ["t", "s"]):
        found = rankmill.evaluate(
            rankmill.Labels(one, query=query, item="item"),
            rankmill.Predictions(one, query=query, item="item", in_order=True),
            ["map"],
        )
        pq.write_table(found.per_query, tmp_path / f"{query[0]}.parquet")
    options: dict[str, Any] = {"query": ["s", "t"], "item": "item", "in_order": True}
    rules = ["map drop <= 1%"]
    assert flat(rankmill.gate, one, one, rules, baseline=str(tmp_path / "s.parquet"), **options)
    with pytest.raises(
        UsageError, match=r"consist of s, t, those of .*t.parquet of t, s: name the"
    ):
        flat(rankmill.gate, one, one, rules, baseline=str(tmp_path / "t.parquet"), **options)


@pytest.mark.small
def test_slices_by_a_part_and_by_a_table(tmp_path: Path) -> None:
    labels, predictions = (table(one, TUPLES, BOTH, False) for one in (LABELS, RUN))
    runs = {"one": predictions, "other": predictions}
    cut = pa.table({"session": [1, 2], "type": ["clicks", "clicks"], "new": ["x", "y"]})
    found = flat(
        rankmill.compare,
        labels,
        runs,
        ["map"],
        query=BOTH,
        in_order=True,
        by=["type", cut],
        correction="none",
    )
    told = {(*one.by, *one.value): one.queries for one in found.slices}
    assert {one.by for one in found.slices} == {("type",), ("new",)}  # the ids are no slices
    assert told["type", "clicks"] == sum(TUPLES[query][1] == "clicks" for query in LABELS)
    assert told["new", "x"] == 1


@pytest.mark.small
def test_training_with_the_same_columns() -> None:
    train = table({0: [5], 1: [1], 2: [6]}, TUPLES, BOTH, False)
    labels, predictions = (table(one, TUPLES, BOTH, False) for one in (LABELS, RUN))
    found = rankmill.evaluate(
        rankmill.Labels(labels, query=BOTH),
        rankmill.Predictions(predictions, query=BOTH, in_order=True),
        ["map"],
        catalogue=rankmill.Catalogue(train=train, drop_seen=True),
    )
    alone = rankmill.evaluate(
        LABELS,
        RUN,
        ["map"],
        catalogue=rankmill.Catalogue(train={0: [5], 1: [1], 2: [6]}, drop_seen=True),
    )
    assert found["map"] == alone["map"]
    assert found.audit["seen_items"] == alone.audit["seen_items"] == 1


@pytest.mark.small
def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: Any) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        done = run_cli(*arguments)
        assert done.exit_code == 0, done.stderr
        return str(done.stdout)

    Path("labels.csv").write_text(
        "session,type,ground_truth\n1,clicks,5\n1,orders,6 7\n2,clicks,8\n2,orders,9 10\n"
    )
    Path("run.csv").write_text(
        "session,type,item\n1,clicks,5\n1,orders,6\n1,orders,7\n2,clicks,8\n2,orders,9\n"
    )
    Path("submission.csv").write_text(
        "session_type,labels\n1_clicks,5\n1_orders,6 7\n2_clicks,8\n2_orders,9 10\n"
    )
    Path("rankmill.toml").write_text(
        'labels = "labels.csv"\npredictions = "submission.csv"\nmetrics = ["recall@20"]\n'
        f'[columns]\nlabel_query = "{TEMPLATE}"\n'
    )
    both = ("--in-order", "--query", "session,type")
    told = json.loads(
        run("evaluate", "labels.csv", "run.csv", "-m", "recall@20", *both, "--format", "json")
    )
    assert told["metrics"]["recall@20"] == 0.875
    told = json.loads(run("evaluate", "rankmill.toml", "--format", "json"))
    assert told["metrics"]["recall@20"] == 1
    assert "1,orders" in run(
        "explain", "labels.csv", "run.csv", "-m", "map", *both, "--query-id", "1,orders"
    )
    assert "1,orders" in run("head", "labels.csv", "--labels", "--query", "session,type")
    run("convert", "run.csv", "run.parquet", *both)
    rows = pq.read_table("run.parquet").to_pylist()
    assert rows[1] == {"query_id": "1,orders", "items": ["6", "7"]}
    run("convert", "run.csv", "same.parquet", "--in-order", "--query", TEMPLATE)
    assert pq.read_table("same.parquet").column("query_id").to_pylist()[1] == "1_orders"
    Path("other.csv").write_text(Path("run.csv").read_text())
    run("compare", "labels.csv", "run.csv", "other.csv", "-m", "map", *both, "--by", "type")
    run("gate", "labels.csv", "run.csv", *both, "--rule", "recall@20 >= 0.8")


@pytest.mark.small
def test_head_tells_of_the_parts() -> None:
    one = pa.table({"session": [1], "type": ["a"], "items": [[1]]})
    told = head(rankmill.Labels(one, query=BOTH))
    by = {column["name"]: (column["role"], column["rules"]) for column in told["columns"]}
    assert by["session,type"] == ("query", ["you named it"])
    assert by["session"] == by["type"] == (None, ["part of the query"])


@pytest.mark.small
def test_a_part_that_is_read_as_a_number(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"session": 1, "type": 2, "items": [5]}\n')
    assert values(str(path), str(path), query=BOTH, weight="type")["map"] == 1


@pytest.mark.small
def test_a_query_in_two_rows_asks_for_more_columns() -> None:
    one = pa.table({"session": [1, 1], "type": ["a", "b"], "items": [[1], [2]]})
    with pytest.raises(InputError, match="if several columns make a query, name them all"):
        values(one, one)
    assert values(one, one, query=BOTH)["map"] == 1
