"""convert() and `rankmill convert`: what is written evaluates to the same bits as what was read."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
import strategies
from flat import flat
from portions import in_batches
from rankmill import InputError, ResourceError, UsageError
from rankmill.arrays import Ragged
from rankmill.engine import convert
from strategies import Case, cases

METRICS = ["map@5", "ndcg", "first_hit", "recall@3", "judged@5", "gap"]
# What a wide file without nulls cannot count.
LOST = ("null_items", "null_labels", "tied_ranks")


def content(result: Any) -> tuple[Any, ...]:
    audit = {name: count for name, count in result.audit.items() if name not in LOST}
    ids, *values = (column.to_pylist() for column in result.per_query.columns)
    by_query = dict(zip(ids, zip(*values, strict=True), strict=True))
    return result.metrics, result.standard_errors, result.queries, audit, by_query


def converted(folder: Path, labels: Any, predictions: Any, **options: Any) -> list[Path]:
    paths = [folder / "labels.parquet", folder / "predictions.parquet"]
    for one, path in zip((labels, predictions), paths, strict=True):
        flat(rankmill.convert, one, path, role=path.stem, **options)
    return paths


def check_file(path: Path) -> None:
    """The rows are sorted by id, and the footer tells their bounds."""
    table = pq.read_table(path)
    ids = table["query_id"].to_pylist()
    ids = [one.encode() if isinstance(one, str) else one for one in ids]
    assert all(one < other for one, other in itertools.pairwise(ids))
    for number in range(pq.read_metadata(path).num_row_groups):
        assert pq.read_metadata(path).row_group(number).column(0).statistics.has_min_max


def check(folder: Path, labels: Any, predictions: Any, **options: Any) -> None:
    paths = converted(folder, labels, predictions, **options)
    for path in paths:
        check_file(path)
    before = rankmill.evaluate(labels, predictions, METRICS)
    assert content(rankmill.evaluate(*paths, METRICS)) == content(before)
    assert content(rankmill.evaluate(paths[0], predictions, METRICS)) == content(before)


@settings(max_examples=strategies.examples(10))
@given(case=cases(), seed=st.integers(0, 3))
def test_values_and_counts_are_the_same(tmp_path: Path, case: Case, seed: int) -> None:
    check(tmp_path, strategies.wide_labels(case), strategies.wide_predictions(case))
    rows = [strategies.rows(side, random.Random(seed)) for side in (case.labels, case.predictions)]
    if not all(any(item is not None for _, item, _, _ in side) for side in rows):
        return
    check(
        tmp_path,
        strategies.long_labels(case, rows[0]),
        strategies.long_predictions(case, rows[1], rank=bool(seed % 2)),
    )


@pytest.mark.parametrize("list_type", [pa.large_list, pa.list_view, lambda kind: pa.list_(kind, 2)])
def test_every_list_type(tmp_path: Path, list_type: Callable[..., Any]) -> None:
    side = {3: [(7, 1.0), (8, 0.5)], 1: [(9, 1.0), (7, 2.0)]}
    labels, predictions = (
        strategies.wide(side, pa.int8(), pa.uint16(), pa.float32(), name, list_type)
        for name in ("gain", "score")
    )
    check(tmp_path, labels, predictions)
    schema = pq.read_schema(tmp_path / "predictions.parquet")
    assert schema.names == ["query_id", "items", "scores"]
    assert schema.types == [
        pa.int8(),
        pa.list_(pa.field("element", pa.uint16())),
        pa.list_(pa.field("element", pa.float32())),
    ]
    assert pq.read_schema(tmp_path / "labels.parquet").names == ["query_id", "items", "gains"]


def test_ids_that_are_no_text(tmp_path: Path) -> None:
    ids = [b"\xff\x01", b"\xff", b"\0", b"a"]
    table = pa.table({"query_id": ids, "items": [[one] for one in ids], "score": [[1.0]] * 4})
    check(tmp_path, table.drop(["score"]), table)
    assert pq.read_table(tmp_path / "labels.parquet")["query_id"].to_pylist() == sorted(ids)
    wide = pa.array([one.ljust(4) for one in ids], pa.binary(4))
    check(tmp_path, table.set_column(0, "query_id", wide), table.set_column(0, "query_id", wide))


def test_ragged(tmp_path: Path) -> None:
    items = Ragged.from_lists([[3, 1], [], [2]])
    scores = Ragged(items.offsets, np.array([0.5, 0.25, 1.0]))
    told = rankmill.convert(rankmill.Predictions(items, score=scores), tmp_path / "p.parquet")
    assert (told["queries"], told["items"], told["role"]) == (3, 3, "predictions")
    assert pq.read_table(tmp_path / "p.parquet").to_pydict() == {
        "query_id": [0, 1, 2],
        "items": [[3, 1], [], [2]],
        "scores": [[0.5, 0.25], [], [1.0]],
    }


def test_what_is_kept_and_what_is_left_out(tmp_path: Path) -> None:
    """Null items go, empty lists stay; so do repeats and gains of 0 and less."""
    labels = pa.table(
        {
            "query_id": [9, 10, 2],
            "items": pa.array([[1, None, 1], None, []], pa.list_(pa.int64())),
            "gain": pa.array([[-1.0, 5.0, 0.0], None, []], pa.list_(pa.float64())),
        }
    )
    told = rankmill.convert(labels, tmp_path / "l.parquet")
    assert told["role"] == "labels"
    assert told["null_items"] == 1
    assert pq.read_table(tmp_path / "l.parquet").to_pydict() == {
        "query_id": [2, 9, 10],
        "items": [[], [1, 1], []],
        "gains": [[], [-1.0, 0.0], []],
    }
    rows = pa.table(
        {
            "query": [1, 1, 1, 2],
            "item": [5, 6, 7, None],
            "rank": [2, 1, 1, 1],
            "score": [0.3, 0.1, 0.2, 0.9],
        }
    )
    told = rankmill.convert(rows, tmp_path / "p.parquet")
    assert (told["role"], told["tied_ranks"], told["null_items"]) == ("predictions", 2, 1)
    assert pq.read_table(tmp_path / "p.parquet").to_pydict() == {
        "query_id": [1, 2],
        "items": [[6, 7, 5], []],
        "scores": [[0.1, 0.2, 0.3], []],
    }


@pytest.mark.parametrize(
    ("ids", "long"),
    [
        pytest.param(int, False, id="int-wide", marks=pytest.mark.long),
        pytest.param("user {}".format, False, id="string-wide", marks=pytest.mark.long),
        pytest.param(int, True, id="int-long", marks=pytest.mark.long),
        pytest.param("user {}".format, True, id="string-long"),
    ],
)
@pytest.mark.long
def test_files_that_are_read_by_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids: Any, long: bool
) -> None:
    """Rows are sorted in memory or refused; later evaluations hold a range of ids at a time."""
    monkeypatch.setattr(convert, "GROUP_ROWS", 500)
    draw = np.random.default_rng(0)
    count = 5000
    queries = [ids(i) for i in draw.permutation(count).tolist()]
    table = pa.table(
        {
            "query_id": queries,
            "items": pa.array(draw.integers(0, 20, (count, 4)).tolist()),
            "score": pa.array(draw.random((count, 4)).tolist()),
        }
    )
    if long:
        long = {"query_id": np.repeat(np.array(queries, object), 4).tolist()}
        long |= {name: table[name].combine_chunks().flatten() for name in ("items", "score")}
        table = pa.table(long).take(draw.permutation(4 * count))
    path = tmp_path / "in.parquet"
    pq.write_table(table, path, row_group_size=400)
    with pytest.raises(ResourceError, match=r"in\.parquet: the rows to sort take more than"):
        rankmill.convert(path, tmp_path / "no.parquet", memory=100_000)
    assert not (tmp_path / "no.parquet").exists()
    check(tmp_path, *(in_batches(path, 100, memory=500_000) for _ in range(2)), memory=500_000)
    assert pq.read_metadata(tmp_path / "labels.parquet").num_row_groups >= 10
    pair = tmp_path / "labels.parquet", tmp_path / "predictions.parquet"
    options = {"per_query": False, "memory": 100_000}
    ranged = flat(rankmill.evaluate, *pair, METRICS[:4], **options)
    assert ranged.metrics == rankmill.evaluate(path, path, METRICS[:4]).metrics


@pytest.mark.parametrize("name", ["a.arrow", "glob", "folder"])
def test_files_of_other_formats(tmp_path: Path, name: str) -> None:
    table = pa.table(
        {"qid": [5, 3, 4], "docs": [[1], [2, 3], [4]], "conf": [[0.5], [0.2, 0.1], [1]]}
    )
    source: Any = tmp_path / name
    if name == "a.arrow":
        with pa.ipc.new_file(source, table.schema) as writer:
            writer.write_table(table)
    else:
        (tmp_path / "folder" / "day=1").mkdir(parents=True)
        pq.write_table(table.slice(0, 1), tmp_path / "folder" / "day=1" / "a.parquet")
        pq.write_table(table.slice(1), tmp_path / "folder" / "day=1" / "b.parquet")
        source = str(tmp_path / "folder" / "*" / "*") if name == "glob" else tmp_path / "folder"
    rankmill.convert(source, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {
        "query_id": [3, 4, 5],
        "items": [[2, 3], [4], [1]],
        "scores": [[0.2, 0.1], [1], [0.5]],
    }


# ------------------------------------------------------------------ errors and the command line


@pytest.mark.parametrize(
    ("table", "options", "wanted"),
    [
        (
            {"query": [7, 8, 7], "items": [[1]] * 3},
            {},
            ["query 7", "two rows", "one row per query"],
        ),
        ({"query": ["a", "a"], "items": [[1]] * 2}, {}, ["query 'a'", "two rows"]),
        ({"query": [1, None], "items": [[1]] * 2}, {}, ["no query id", "row 1"]),
        ({"query": [1], "items": [[1]], "score": [[float("nan")]]}, {}, ["score", "nan", "row 0"]),
        ({"query": [1], "items": [[1]], "score": [[1.0, 2]]}, {}, ["1 items", "2 numbers"]),
        ({"query": [1], "thing": [[1]]}, {}, ["no column looks like the item"]),
        ({"query": pa.array([], pa.int64()), "item": pa.array([], pa.int64())}, {}, ["no rows"]),
    ],
)
def test_bad_input(tmp_path: Path, table: Any, options: Any, wanted: list[str]) -> None:
    target = tmp_path / "out.parquet"
    target.write_text("old")
    with pytest.raises(InputError) as caught:
        flat(rankmill.convert, pa.table(table), target, **options)
    tells(caught.value, wanted)
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]
    assert target.read_text() == "old"


def test_files_whose_ids_are_of_several_types(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, ids in (("a", pa.array([1])), ("b", pa.array(["x"])), ("c", pa.array([2**63], "u8"))):
        pq.write_table(
            pa.table({"query": ids, "items": [[1]]}), tmp_path / "in" / f"{name}.parquet"
        )
    files = [tmp_path / "in" / f"{name}.parquet" for name in "abc"]
    rankmill.convert(files[:2], tmp_path / "out.parquet")  # the first rows are integers
    assert pq.read_table(tmp_path / "out.parquet")["query_id"].to_pylist() == ["1", "x"]
    with pytest.raises(InputError, match="to one integer type, or to strings"):
        rankmill.convert([files[0], files[2]], tmp_path / "out.parquet")
    rankmill.convert(files[2], tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["query_id"].to_pylist() == [2**63]


@pytest.mark.parametrize(
    ("path", "options", "wanted"),
    [
        ("out.csv", {}, ["out.csv", ".parquet"]),
        ("no/out.parquet", {}, ["there is no folder"]),
        ("out.parquet", {"role": "labels", "score": "s"}, ["have no use for a score"]),
        (
            "out.parquet",
            {"role": "predictions", "gain": "g"},
            ["have no use for a gain"],
        ),
        ("out.parquet", {"memory": 0}, ["memory is 0"]),
    ],
)
def test_wrong_usage(tmp_path: Path, path: str, options: Any, wanted: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        flat(rankmill.convert, pa.table({"query": [1], "item": [2]}), tmp_path / path, **options)
    tells(caught.value, wanted)


def test_the_role_is_found_by_the_columns(tmp_path: Path) -> None:
    both = {"query": [1, 1], "item": [2, 3]}
    for more, options, role in (
        ({"rel": [1, 2]}, {}, "labels"),
        ({"rel": [1, 2], "score": [1, 2]}, {}, "predictions"),
        ({"rel": [1, 2], "rank": [1, 2]}, {"gain": "rel"}, "labels"),
        ({"x": [1, 2]}, {"gain": "x"}, "labels"),
        ({"x": [1, 2]}, {"rank": "x"}, "predictions"),
        ({}, {}, "predictions"),
        ({"x": [1, 2]}, {"in_order": True}, "predictions"),
        ({"x": [1, 2]}, {"binary": True}, "labels"),
        ({"item_name": ["a", "b"], "label": [1, 0]}, {}, "labels"),
    ):
        told = flat(rankmill.convert, pa.table(both | more), tmp_path / "out.parquet", **options)
        assert told["role"] == role


def test_no_column_is_passed_over(tmp_path: Path) -> None:
    """A number that may be the score, or the gain, is not dropped without a word."""
    table = pa.table({"query": [1, 1], "item": [2, 3], "x": [0.5, 1]})
    with pytest.raises(InputError, match="the numeric column 'x' is left over"):
        rankmill.convert(table, tmp_path / "out.parquet")
    with pytest.warns(RuntimeWarning, match="the numeric column 'x' is not read"):
        rankmill.convert(rankmill.Labels(table), tmp_path / "out.parquet")
    ranked = table.append_column("rank", pa.array([2, 1])).rename_columns(
        ["query", "item", "score", "rank"]
    )
    for options, expected in (({}, [1.0, 0.5]), ({"in_order": True}, [0.5, 1.0])):
        flat(rankmill.convert, ranked, tmp_path / "out.parquet", **options)
        assert pq.read_table(tmp_path / "out.parquet")["scores"].to_pylist() == [expected]


def test_streams(tmp_path: Path) -> None:
    for table, role in (
        (pa.table({"query": [2, 1, 2], "item": [2, 3, 4], "score": [0.5, 1, 1]}), "predictions"),
        (pa.table({"query": [2, 1], "items": [[2, 3], [4]], "gain": [[1, 2], [0]]}), "labels"),
    ):
        for memory in (1 << 30, 200):
            stream = table.to_reader(1)
            told = rankmill.convert(stream, tmp_path / "stream.parquet", memory=memory)
            assert told["role"] == role
            rankmill.convert(table, tmp_path / "table.parquet")
            one, other = (pq.read_table(tmp_path / f"{of}.parquet") for of in ("stream", "table"))
            assert one == other


@pytest.mark.parametrize("asked", ["told", "found"])
def test_text(tmp_path: Path, asked: str, run_cli: Any) -> None:
    """TREC and CSV evaluate to the same bits as what is made of them."""
    qrels = [f"{q} 0 d{i} {i - 1}" for q in (10, 9, 101) for i in range(4)]
    run = [f"{q} Q0 d{i} 0 {i * 7 % 5 / 8} x" for q in (9, 101, 10, 3) for i in range(9)]
    texts = {"qrels.txt": qrels, "run.trec": run}
    texts["labels.csv"] = [
        "user,item,gain",
        *(f"{one.split()[0]},{one.split()[2]},{one.split()[3]}" for one in qrels),
    ]
    texts["p.csv"] = [
        "user,item,score",
        *(f"{one.split()[0]},{one.split()[2]},{one.split()[4]}" for one in run),
    ]
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    for labels, predictions in (("qrels.txt", "run.trec"), ("labels.csv", "p.csv")):
        paths = tmp_path / labels, tmp_path / predictions
        out = tmp_path / "l.parquet", tmp_path / "p.parquet"
        for path, target, flag in zip(paths, out, ("--labels", "--predictions"), strict=True):
            outcome = run_cli("convert", path, target, *([flag] if asked == "told" else []))
            assert outcome.exit_code == 0, outcome.stderr
            check_file(target)
        assert content(rankmill.evaluate(*out, METRICS)) == content(
            rankmill.evaluate(*paths, METRICS)
        )


def test_ids_of_text_match_integers(tmp_path: Path) -> None:
    run, out = tmp_path / "run.trec", tmp_path / "run.parquet"
    run.write_text("".join(f"{q} Q0 d{q} 1 0.5 x\n" for q in (10, 9)))
    labels = pa.table({"query": [9, 10], "item": ["d9", "x"]})
    rankmill.convert(run, out)
    assert pq.read_table(out)["query_id"].to_pylist() == ["10", "9"]
    assert content(rankmill.evaluate(labels, out)) == content(rankmill.evaluate(labels, run))


def test_command_line(tmp_path: Path, run_cli: Any) -> None:
    table = pa.table({"who": [2, 1, 2], "item": [5, 6, None], "sim": [0.5, 0.25, 1.0]})
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, path)
    told = run_cli("convert", path, out, "--query", "who", "--score", "sim", "--memory", "200B")
    assert told.exit_code == 0, told.stderr
    assert told.stdout == (
        f"wrote        {out}\n"
        "predictions  2 queries, 2 items\n"
        "read as      long: query=who, item=item, score=sim\n"
        "left out     1 null items\n"
    )
    assert pq.read_table(out)["scores"].to_pylist() == [[0.25], [0.5]]
    for arguments, code, wanted in (
        ((path, path), 2, ["it is one of the inputs"]),
        ((path, tmp_path / "out.csv"), 2, ["expected a name in .parquet"]),
        ((path, out, "--score", "x"), 3, ["no column 'x' for the score"]),
        ((tmp_path / "none", out), 3, ["no such file"]),
        ((path, out, "--as", "x"), 2, ["--as"]),
        ((path, out, "--query", "who", "--memory", "9B"), 4, ["9 bytes", "allow more memory"]),
    ):
        outcome = run_cli("convert", *arguments)
        assert outcome.exit_code == code, outcome.stderr
        tells(outcome.stderr, wanted)
