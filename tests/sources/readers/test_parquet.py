"""Many small Parquet files, which are read together, and a wrong one among them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from portions import in_batches
from rankmill import InputError, Labels, Predictions
from rankmill.columns.ranked_lists import Place
from rankmill.sources.readers.parquet import FILES_AT_ONCE
from rankmill.sources.roles.source import BATCH_ROWS

FILES, ROWS = 40, 5
INTEGERS = pa.int64()
METRICS = ["map@3", "gap", "ndcg", "coverage"]


def sides(ids: Any = INTEGERS) -> tuple[pa.Table, pa.Table]:
    """Labels and predictions of FILES * ROWS queries, some of them with nulls and no items."""
    generator = np.random.default_rng(3)
    queries = pa.array(range(FILES * ROWS)).cast(ids)
    lists = [generator.permutation(9)[: generator.integers(0, 6)] for _ in queries]
    scores = [generator.random(len(one)).round(1) for one in lists]
    labels = [generator.permutation(9)[: generator.integers(0, 3)] for _ in queries]
    of_ids = pa.list_(ids)
    return (
        pa.table({"user_id": queries, "items": pa.array(map(list, labels)).cast(of_ids)}),
        pa.table(
            {
                "user_id": queries,
                "items": pa.array(map(list, lists)).cast(of_ids),
                "scores": pa.array(map(list, scores), pa.list_(pa.float64())),
            }
        ),
    )


def written(folder: Path, table: pa.Table, **how: Any) -> Path:
    folder.mkdir()
    for i in range(FILES):
        pq.write_table(table.slice(i * ROWS, ROWS), folder / f"part-{i:03}.parquet", **how)
    return folder


def batches(path: Path, columns: list[str], rows: int = BATCH_ROWS) -> list[list[int]]:
    """The rows of each file, of each batch, which has so many rows at most."""
    source = in_batches(path, rows)
    read = [batch for piece in source.pieces(columns) for batch in piece]
    return [[one.data.num_rows for one in batch.files()] for batch in read]


@pytest.mark.parametrize("ids", [pa.int64(), pa.string(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("how", [{}, {"row_group_size": 2}])
def test_small_files_give_the_bits_of_one(tmp_path: Path, ids: Any, how: dict[str, Any]) -> None:
    labels, predictions = sides(pa.string() if pa.types.is_dictionary(ids) else ids)
    if pa.types.is_dictionary(ids):
        predictions = predictions.set_column(0, "user_id", predictions["user_id"].cast(ids))
    expected = rankmill.evaluate(labels, predictions, METRICS)
    folders = [
        written(tmp_path / "labels", labels, **how),
        written(tmp_path / "p", predictions, **how),
    ]
    for threads in (1, 3):
        found = rankmill.evaluate(*map(str, folders), METRICS, threads=threads)
        assert found.metrics == expected.metrics
        assert found.audit == expected.audit
        assert found.per_query.equals(expected.per_query)


def test_small_files_are_read_together(tmp_path: Path) -> None:
    """Those that pandas wrote, too, whose footers differ by the number of their rows."""
    folder = written(tmp_path / "p", sides()[1])
    for i in range(FILES, FILES_AT_ONCE + 8):
        shutil.copy(folder / "part-000.parquet", folder / f"part-{i:03}.parquet")
    assert batches(folder, ["user_id", "items"]) == [[ROWS] * FILES_AT_ONCE, [ROWS] * 8]
    every = FILES_AT_ONCE + 8
    assert batches(folder, ["user_id"]) == [[]] * every  # as errors of long rows name one file
    frame = sides()[1].to_pandas()
    for rows in (1, 2, 3):
        frame[:rows].to_parquet(tmp_path / str(rows))
    for i, path in enumerate(folder.iterdir()):
        shutil.copy(tmp_path / str(1 + i % 3), path)
    assert [len(one) for one in batches(folder, ["user_id", "items"])] == [FILES_AT_ONCE, 8]


def test_no_more_is_read_together_than_a_batch_holds(tmp_path: Path) -> None:
    folder = written(tmp_path / "p", sides()[1])
    assert batches(folder, ["user_id", "items"], 3 * ROWS) == [[ROWS] * 3] * 13 + [[]]


def rewrite(change: Callable[[dict[str, list[Any]]], None]) -> Callable[[Path], None]:
    def act(path: Path) -> None:
        held = pq.read_table(path)
        columns = held.to_pydict()
        change(columns)
        pq.write_table(pa.table(columns, held.schema), path)

    return act


def put(column: str, row: int, value: Any) -> Callable[[Path], None]:
    return rewrite(lambda columns: columns[column].__setitem__(row, value))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def damage(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[4:60] = bytes(56)
    path.write_bytes(raw)


def lengthen(path: Path) -> None:
    """The footer says one row more: its thrift number 5 is written as 10, and 6 as 12."""
    raw = path.read_bytes()
    at = raw.rindex(b"\x16\x0a\x19")
    path.write_bytes(raw[:at] + b"\x16\x0c\x19" + raw[at + 3 :])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (put("user_id", 2, None), "row 2 has no query id"),
        (put("scores", 1, [0.5] * 7), "row 1 .* numbers in 'scores'"),
        (put("user_id", 3, 0), "query 0 appears a second time in row 3"),
        (put("user_id", 3, 10**6), None),
        (rewrite(lambda columns: columns.update(items=columns["items"][::-1])), "row ."),
        (cut, "whole Parquet file"),
        (damage, "row group 0 cannot be read"),
        (lengthen, "says 6 rows, but those of its 1 row groups .5. add up to 5"),
    ],
)
def test_the_file_at_fault_is_named(tmp_path: Path, wrong: Any, said: str | None) -> None:
    labels, predictions = sides()
    folder = written(tmp_path / "p", predictions)
    wrong(folder / "part-027.parquet")
    if said is None:  # nothing is wrong with a stranger
        rankmill.evaluate(labels, str(folder), METRICS)
        return
    with pytest.raises(InputError, match=f"part-027.parquet.* {said}"):
        rankmill.evaluate(labels, str(folder), METRICS)


def test_strangers_that_come_twice_name_their_file(tmp_path: Path) -> None:
    labels, predictions = sides()
    folder = written(tmp_path / "p", predictions)
    put("user_id", 1, 10**6)(folder / "part-003.parquet")
    put("user_id", 4, 10**6)(folder / "part-030.parquet")
    with pytest.raises(InputError, match=r"part-030.parquet: query 1000000 .* in row 4"):
        rankmill.evaluate(labels, str(folder), METRICS)


def test_labels_name_their_file(tmp_path: Path) -> None:
    labels, predictions = sides()
    folder = written(tmp_path / "labels", labels)
    put("user_id", 4, 7)(folder / "part-011.parquet")
    with pytest.raises(InputError, match=r"part-011.parquet: query 7 .* in row 4"):
        rankmill.evaluate(str(folder), predictions, METRICS)


@pytest.mark.parametrize(
    ("semantics", "column", "value", "said"),
    [
        ({"repeated_labels": "error"}, "items", [3, 3], "query 57 has label 3 a second time"),
        ({"repeated_predictions": "error"}, "items", [3, 3], "row 2, query 57 predicts item 3 a"),
        ({"unlabelled": "error"}, "user_id", 10**6, "query 1000000 in row 2 has predictions but"),
    ],
)
def test_what_semantics_refuse_names_its_file(
    tmp_path: Path, semantics: Any, column: str, value: Any, said: str
) -> None:
    given: list[Any] = [table.select(["user_id", "items"]) for table in sides()]
    at = int("repeated_labels" not in semantics)
    folder = written(tmp_path / "p", given[at])
    put(column, 2, value)(folder / "part-011.parquet")
    given[at] = str(folder)
    with pytest.raises(InputError, match=f"part-011.parquet: {said}"):
        rankmill.evaluate(*given, "map@3", semantics={"preset": "default", **semantics})


def test_what_is_made_of_columns_names_their_file(tmp_path: Path) -> None:
    labels, predictions = sides(pa.string())
    query = ["user_id", "day"]
    labels, predictions = (
        one.append_column("day", one["user_id"]) for one in (labels, predictions)
    )
    folder = written(tmp_path / "p", predictions)
    put("day", 3, None)(folder / "part-021.parquet")
    with pytest.raises(InputError, match=r"part-021.parquet: row 3 has no query id"):
        rankmill.evaluate(
            Labels(labels, query=query), Predictions(str(folder), query=query), METRICS
        )


def test_a_file_that_another_replaces_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "p", sides()[1])
    source = in_batches(folder, BATCH_ROWS)
    put("user_id", 4, 7)(folder / "part-011.parquet")
    (piece,) = source.pieces(["user_id", "items"])
    with pytest.raises(InputError, match=r"part-011.parquet changed while it was read"):
        next(piece)


def test_folders_are_columns_of_small_files(tmp_path: Path) -> None:
    labels, predictions = sides()
    folder = written(tmp_path / "p", predictions)
    for i, path in enumerate(sorted(folder.iterdir())):
        day = folder / f"day={i % 3}"
        day.mkdir(exist_ok=True)
        path.rename(day / path.name)
    days = [i % 3 for i in range(FILES) for _ in range(ROWS)]
    labels = labels.append_column("day", pa.array(days, pa.int64()))
    sorted_days = predictions.append_column("day", pa.array(days, pa.int64()))
    query = ["user_id", "day"]
    found = rankmill.evaluate(
        Labels(labels, query=query), Predictions(str(folder), query=query), METRICS
    )
    expected = rankmill.evaluate(
        Labels(labels, query=query), Predictions(sorted_days, query=query), METRICS
    )
    assert found.metrics == expected.metrics


def test_places_of_rows_of_several_files() -> None:
    files = ((0, Place("a", 4)), (3, Place("b", 0)), (3, Place("c", 0)), (5, Place("d")))
    whole = Place("a", 4, files=files)
    named = [(whole.at(i).source, whole.of(i)) for i in range(6)]
    assert named == [
        ("a", "row 4"),
        ("a", "row 5"),
        ("a", "row 6"),
        ("c", "row 0"),
        ("c", "row 1"),
        ("d", ""),
    ]
    for start in range(6):
        later = whole.onwards(start)
        assert later.source == named[start][0]
        assert [(later.at(i).source, later.of(i)) for i in range(6 - start)] == named[start:]
    for rows in ([1, 3, 5], [4], [0, 2, 3]):
        some = whole.take(np.array(rows))
        assert [(some.at(i).source, some.of(i)) for i in range(len(rows))] == [
            named[row] for row in rows
        ]


def test_a_part_of_small_files_names_the_file_at_fault(tmp_path: Path) -> None:
    labels, predictions = sides()
    folder = written(tmp_path / "p", predictions)
    put("scores", 1, [0.5] * 7)(folder / "part-027.parquet")
    said = set()
    for number in (1, 2):
        try:
            rankmill.parts.evaluate_part(labels, str(folder), METRICS[:2], part=f"{number}/2")
        except InputError as error:
            said.add(str(error))
    (message,) = said
    assert "part-027.parquet: row 1 " in message


def of_bytes(*texts: bytes) -> pa.Array:
    """A column of text, which Arrow does not check."""
    return pa.array(texts, pa.binary()).view(pa.string())


def test_ids_that_are_not_utf8_are_compared_as_bytes(tmp_path: Path) -> None:
    labels, predictions = str(tmp_path / "labels"), str(tmp_path / "predictions")
    queries, items = of_bytes(b"u", b"u", b"\xff"), of_bytes(b"a", b"a\xff", b"a")
    pq.write_table(pa.table({"query_id": queries, "item_id": items}), labels, use_dictionary=False)
    rows = {"query_id": queries, "item_id": of_bytes(b"a", b"\xffa", b"a"), "score": [3, 2, 1]}
    pq.write_table(pa.table(rows), predictions)
    assert rankmill.evaluate(labels, predictions, "map@3").metrics == {"map@3": 0.75}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("score", of_bytes(b"3", b"\xff")),
        ("items", of_bytes(b"['a', 'b']", b"['\xff', 'b', 'it''s']")),
    ],
)
def test_text_that_is_not_utf8_is_no_number_and_no_list(
    tmp_path: Path, name: str, values: pa.Array
) -> None:
    labels = pa.table({"query_id": ["u", "v"], "items": [["a"], ["b"]]})
    rows = {"query_id": ["u", "v"], "items" if name == "items" else "item_id": ["a", "b"]}
    pq.write_table(pa.table(rows | {name: values}), tmp_path / "p")
    with pytest.raises(InputError, match=rf"p \(row 1, column '{name}'\): found b.*\\xff.* in"):
        rankmill.evaluate(labels, str(tmp_path / "p"), "map@3")
