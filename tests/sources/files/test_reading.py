"""Errors that reading must notice; and long rows, streamed, grouped or spilled, give equal bits."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

import rankmill
from portions import in_batches
from rankmill import InputError
from rankmill.arrays import Ragged
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.inputs.inputs import map_lists
from rankmill.sources.meaning.roles import find_columns
from rankmill.sources.roles.source import BATCH_BYTES, InputOptions
from rankmill.sources.roles.streams import FEW_BYTES, SMALL_ROWS, joined
from rankmill.sources.rows import long
from rankmill.threads import Workers

METRICS = ["map@3", "ndcg", "first_hit@5", "gap", "gap@2"]


def dump(queries: int, seed: int, *, text: bool = False) -> tuple[pa.Table, pa.Table]:
    """Write long labels, and long predictions with ranks and confidences, grouped by query."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 12, queries)
    query = np.repeat(generator.permutation(queries), lengths)
    rank = np.concatenate([generator.permutation(length) for length in lengths])
    item = generator.integers(0, 30, len(query))
    score = generator.integers(0, 50, len(query)).astype(np.float32)
    ids: Any = [f"query {one:05}" for one in query] if text else query
    predictions = pa.table({"query_id": ids, "item_id": item, "rank": rank, "score": score})
    count = generator.integers(1, 5, queries)
    query = np.repeat(np.arange(queries), count)
    ids = [f"query {one:05}" for one in query] if text else query
    labels = pa.table({"query_id": ids, "item_id": generator.integers(0, 30, len(query))})
    return labels, predictions


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


def found(result: rankmill.Result) -> tuple[Any, ...]:
    """Return all that must be the same to the bit."""
    assert result.per_query is not None
    rows = sorted(tuple(row.values()) for row in result.per_query.to_pylist())
    return result.metrics, result.standard_errors, result.bounds, result.audit, rows


@pytest.mark.parametrize("text", [False, True], ids=["integers", "strings"])
def test_streamed_grouped_and_spilled_are_the_same_to_the_bit(tmp_path: Path, text: bool) -> None:
    labels, predictions = dump(3000, 1, text=text)
    expected = found(rankmill.evaluate(labels, predictions, METRICS))
    path = tmp_path / "predictions.parquet"
    for number, table in enumerate([predictions, shuffled(predictions, 2)]):
        for row_group in (701, 100_000):
            pq.write_table(table, path, row_group_size=row_group)
            for memory in (1 << 30, 200_000):
                for threads in (1, 3):
                    result = rankmill.evaluate(
                        shuffled(labels, number), path, METRICS, memory=memory, threads=threads
                    )
                    assert found(result) == expected


def test_rows_that_stand_together_stream(tmp_path: Path) -> None:
    _, predictions = dump(5000, 3)
    path = tmp_path / "predictions.parquet"
    pq.write_table(predictions, path, row_group_size=300)
    source = in_batches(path, 300)
    columns = find_columns(source, InputOptions("predictions"))
    with Workers(2) as workers:
        portions = list(map_lists(lambda lists: lists, source, columns, workers, together=True))
    assert len(portions) > 10
    queries = [one for lists in portions for one in lists.queries.keys.tolist()]
    assert len(queries) == len(set(queries)) == 5000


def test_scattered_rows_are_told_from_those_together() -> None:
    _, predictions = dump(50, 4)
    source = open_source(shuffled(predictions, 5), InputOptions("predictions"))
    columns = find_columns(source, InputOptions("predictions"))
    with Workers(2) as workers, pytest.raises(long.ScatteredRowsError):
        list(map_lists(lambda lists: lists, source, columns, workers, together=True))


def test_one_query_over_many_batches(tmp_path: Path) -> None:
    rows = 3000
    predictions = pa.table({"query_id": [7] * rows, "item_id": range(rows)})
    path = tmp_path / "predictions.parquet"
    pq.write_table(predictions, path, row_group_size=10)
    labels = pa.table({"query_id": [7], "item_id": [rows - 1]})
    result = rankmill.evaluate(labels, path, ["first_hit"])
    assert result["first_hit"] == 1 / rows
    assert result.audit["queries_predicted"] == 1


def test_files_of_other_types_are_spilled_as_they_are_grouped_in_memory(tmp_path: Path) -> None:
    """The files have int32 and int64, small unsigned types, and at first only null items."""
    _, predictions = dump(300, 8)
    rows = shuffled(predictions.select(["query_id", "item_id", "score"]), 9)
    types = [
        (pa.int64(), pa.null(), pa.float32()),
        (pa.int32(), pa.int64(), pa.float64()),
        (pa.uint16(), pa.uint8(), pa.int16()),
        (pa.int64(), pa.int16(), pa.float32()),
    ]
    for number, kinds in enumerate(types):
        part = rows.slice(number * rows.num_rows // 4, rows.num_rows // 4)
        if kinds[1] == pa.null():
            part = part.set_column(1, "item_id", pa.nulls(part.num_rows))
        names = ("query_id", "item_id", "score")
        part = part.cast(pa.schema(list(zip(names, kinds, strict=True))))
        pq.write_table(part, tmp_path / f"{number}.parquet")
    labels, _ = dump(300, 8)
    whole = found(rankmill.evaluate(labels, tmp_path, METRICS))
    for memory in (1, 10_000):
        assert found(rankmill.evaluate(labels, tmp_path, METRICS, memory=memory)) == whole


def test_rows_that_do_not_fit_on_the_disk_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, predictions = dump(50, 6)
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(rankmill.RankmillError, match=r"temporary file in /nowhere/at/all.*TMPDIR"):
        rankmill.evaluate(labels, shuffled(predictions, 7), ["map"], memory=1)


def test_null_items_with_ranks_of_no_type() -> None:
    labels = pa.table({"query_id": [7, 8], "items": [[1], [2]]})
    nothing = pa.table({"query_id": [7, 8], "item_id": pa.nulls(2), "rank": pa.nulls(2)})
    result = rankmill.evaluate(labels, nothing, ["map"])
    assert (result["map"], result.audit["null_items"]) == (0.0, 2)


@given(
    rows=st.lists(st.integers(1, 300), max_size=60),
    widths=st.lists(st.sampled_from([1, 40, 3000]), min_size=60, max_size=60),
    cut=st.booleans(),
)
def test_joined_batches_are_small_and_hold_all_rows(
    rows: list[int], widths: list[int], cut: bool
) -> None:
    def part(count: int, width: int) -> pa.RecordBatch:
        offsets, items = np.arange(count + 1) * width, np.zeros(count * width)
        lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(items))
        return pa.record_batch({"query": np.arange(count), "item": lists})

    parts = [part(count, width) for count, width in zip(rows, widths, strict=False)]
    if cut:  # slices of something larger
        parts = [one.slice(start, 100) for one in parts for start in range(0, len(one), 100)]
    found = list(joined(iter(parts)))
    if parts:
        assert pa.Table.from_batches(found).equals(pa.Table.from_batches(parts))
    largest = max((len(one) for one in parts), default=0)
    most = max((one.nbytes for one in parts), default=0)
    for one in found[:-1]:  # full, and no more than that
        assert len(one) >= SMALL_ROWS or one.nbytes + len(one) * FEW_BYTES >= BATCH_BYTES
        assert len(one) < SMALL_ROWS + largest
        assert one.nbytes < BATCH_BYTES + most


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.list_view(pa.int64())])
def test_small_chunks_are_read_together(kind: pa.DataType) -> None:
    queries = np.arange(3000)
    items = pa.array([[int(one), 7] for one in queries], kind)
    whole = pa.table({"query_id": queries, "items": items})
    chunks = pa.concat_tables([whole.slice(start, 3) for start in range(0, 3000, 3)])
    source = open_source(chunks, InputOptions("predictions"))
    batches = list(source.pieces(["query_id", "items"])[0])
    assert sum(batch.data.num_rows for batch in batches) == 3000
    if kind == pa.list_(pa.int64()):
        assert len(batches) == 1
    assert found(rankmill.evaluate(whole, chunks, ["map"])) == found(
        rankmill.evaluate(whole, whole, ["map"])
    )
    bad = chunks.append_column(
        "score", pa.array([[0.5, None if q == 2000 else 0.5] for q in queries])
    )
    with pytest.raises(InputError, match=r"row 2000 .*place 1"):
        rankmill.evaluate(whole, bad, ["gap"])


def test_spilled_partitions_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    labels, predictions = dump(2000, 6)
    rankmill.evaluate(labels, shuffled(predictions, 7), ["map"], memory=100_000)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ errors that must be noticed


@pytest.mark.long
def test_a_reader_that_stops_early_is_an_error(tmp_path: Path) -> None:
    """A page header has fewer values than the footer, and no checksum covers it."""
    rows = 400
    table = pa.table({"query_id": np.arange(rows) // 4, "item_id": np.arange(rows)})
    path = tmp_path / "p.parquet"
    pq.write_table(table, path, row_group_size=100, compression="none", use_dictionary=False)
    whole = path.read_bytes()
    noticed = 0
    for place in range(4, 120):
        broken = bytearray(whole)
        broken[place] ^= 1
        path.write_bytes(broken)
        try:
            rankmill.evaluate(table, in_batches(path, 100), ["map"])  # row groups one by one
        except InputError as error:
            noticed += "p.parquet" in str(error) and "footer says" in str(error)
    assert noticed, "no flip made the reader stop early: the test has lost its point"


def test_nulls_inside_a_dictionary_are_nulls() -> None:
    ids = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array([7, None]))
    good = pa.table({"query": [7, 0], "items": [[1], [2]]})
    with pytest.raises(InputError, match="null"):
        rankmill.evaluate(pa.table({"query": ids, "items": [[1], [2]]}), good, ["map"])
    items = pa.ListArray.from_arrays(
        [0, 1, 3],
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array([0, None])),
    )
    result = rankmill.evaluate(good, pa.table({"query": [7, 0], "items": items}), ["map"])
    assert result.audit["null_items"] == 1


def test_a_sibling_column_is_not_counted_for_the_items(tmp_path: Path) -> None:
    table = pa.table({"query_id": [1, 2], "items.n": [3, 2], "items": [[1, 2, 3], [4, 5]]})
    path = tmp_path / "p.parquet"
    pq.write_table(table, path)
    assert rankmill.evaluate(path, path, ["map"])["map"] == 1.0


def list_view(offsets: list[int], sizes: list[int]) -> pa.Array:
    views = [pa.array(one, pa.int32()) for one in (offsets, sizes)]
    return pa.ListViewArray.from_arrays(*views, pa.array([1, 2, 3]))


@pytest.mark.parametrize(
    "bad",
    [
        list_view([0, 90_000_000], [1, 2]),
        list_view([-4, 0], [1, 2]),
    ],
    ids=["view beyond", "view before"],
)
def test_arrow_arrays_with_bad_offsets(bad: pa.Array) -> None:
    with pytest.raises(InputError, match="Arrow"):
        Ragged.from_arrow(bad)


def test_hive_values_keep_their_type(tmp_path: Path) -> None:
    def write(values: list[Any]) -> Path:
        root = tmp_path / f"{values[0]}"
        for number, value in enumerate(values):
            folder = root / f"user_id={value}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"items": [[number]]}), folder / "part.parquet")
        return root

    big = [3, 1 << 40]
    labels = pa.table({"user_id": big, "items": [[0], [1]]})
    assert rankmill.evaluate(labels, write(big), ["hit"])["hit"] == 1.0
    text = ["007", "08"]
    labels = pa.table({"user_id": text, "items": [[0], [1]]})
    root = write(text)
    assert rankmill.evaluate(labels, root, ["hit"])["hit"] == 1.0
    assert rankmill.evaluate(labels, f"{root}/user_id=*/part.parquet", ["hit"])["hit"] == 1.0


@pytest.mark.parametrize(
    "given", ["rank=3", "rank=3/p", "rank=3/p/*.parquet", "rank=3/p/a.parquet"]
)
def test_folders_above_what_is_given_are_no_partitions(tmp_path: Path, given: str) -> None:
    """Here a rank of 3 in each row would give the order of the file."""
    folder = tmp_path / "rank=3" / "p"
    folder.mkdir(parents=True)
    rows = {"query_id": [1, 1, 1], "item_id": [5, 6, 7], "score": [0.1, 0.2, 0.3]}
    pq.write_table(pa.table(rows), folder / "a.parquet")
    labels = pa.table({"query_id": [1], "item_id": [7]})
    assert rankmill.evaluate(labels, tmp_path / given, ["map"])["map"] == 1.0


@pytest.mark.parametrize(
    "given", ["", "query_id=*", "query_id=*/*.parquet", "*/part.parquet", "**/*"]
)
def test_folders_below_what_is_given_are_partitions(tmp_path: Path, given: str) -> None:
    for query in (1, 2):
        folder = tmp_path / "q" / f"query_id={query}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"items": [[query]]}), folder / "part.parquet")
    labels = pa.table({"query_id": [1, 2], "items": [[1], [2]]})
    source = f"{tmp_path}/q/{given}" if given != "**/*" else f"{tmp_path}/**/*.parquet"
    assert rankmill.evaluate(labels, source, ["hit"])["hit"] == 1.0


@pytest.mark.parametrize("rows", [1, 1500, 150_000])
def test_folders_that_give_all_columns(tmp_path: Path, rows: int) -> None:
    folder = tmp_path / "query_id=7" / "item_id=8"
    folder.mkdir(parents=True)
    other = pa.table({"other": np.zeros(rows, np.bool_)})
    pq.write_table(other, folder / "a.parquet", row_group_size=70_000)
    result = rankmill.evaluate(pa.table({"query_id": [7], "item_id": [8]}), tmp_path, ["map"])
    assert result["map"] == 1.0
    assert result.inputs["predictions"]["rows"] == rows
    assert result.audit["repeated_items"] == rows - 1
    told = rankmill.plan(pa.table({"query_id": [7], "item_id": [8]}), tmp_path, ["map"])
    assert told["predictions"]["bytes"] == 0


def test_a_partition_column_that_is_stored_too(tmp_path: Path) -> None:
    folder = tmp_path / "query_id=5"
    folder.mkdir()
    pq.write_table(pa.table({"query_id": [5], "items": [[1]]}), folder / "a.parquet")
    assert rankmill.evaluate(tmp_path, tmp_path, ["map"])["map"] == 1.0


def test_many_row_groups_of_one_row(tmp_path: Path) -> None:
    table = pa.table({"query_id": range(500), "items": [[one, one + 1] for one in range(500)]})
    path = tmp_path / "p.parquet"
    pq.write_table(table, path, row_group_size=1)
    assert rankmill.evaluate(path, path, ["map"])["map"] == 1.0


def test_tiny_exponential_gains() -> None:
    one = Ragged.from_lists([[5]])
    assert rankmill.arrays.ndcg(
        one, one, gain=Ragged.from_lists([[1e-17]]), gain_function="exp"
    ).tolist() == [1.0]


def test_no_items_at_all_can_be_compared_with_anything() -> None:
    labels = Ragged.from_lists([["a"], ["b"]])
    nothing = Ragged.from_lists([[], []])
    assert rankmill.evaluate(labels, nothing, ["map"])["map"] == 0.0


def test_cutoffs_beyond_every_integer_type() -> None:
    lists = Ragged.from_lists([[1, 2]])
    assert rankmill.evaluate(lists, lists, [f"map@{10**30}"]).metrics == {f"map@{10**30}": 1.0}
    assert rankmill.arrays.recall(lists, lists, 10**30).tolist() == [1.0]


@pytest.mark.parametrize("number", [2**60, -(2**62), 2**53 + 2])
def test_large_whole_confidences_that_float64_holds(number: int) -> None:
    labels = pa.table({"query": [1], "items": [[5]]})
    predictions = pa.table({"query": [1], "items": [[4, 5]], "score": [[number, number - 2]]})
    if float(number - 2) == number - 2:
        assert rankmill.evaluate(labels, predictions, ["gap"])["gap"] == 0.5
    else:
        with pytest.raises(InputError, match="float64"):
            rankmill.evaluate(labels, predictions, ["gap"])


def test_a_named_confidence_column_is_checked_without_gap() -> None:
    labels = pa.table({"query": [1], "items": [[5]]})
    predictions = pa.table({"query": [1], "items": [[5]], "score": [[float("nan")]]})
    assert rankmill.evaluate(labels, predictions, ["map"])["map"] == 1.0
    with pytest.raises(InputError, match="nan"):
        rankmill.evaluate(labels, rankmill.Predictions(predictions, score="score"), ["map"])


def test_a_file_of_nothing_but_nulls(tmp_path: Path) -> None:
    pq.write_table(pa.table({"query_id": [1], "items": pa.nulls(1)}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"query_id": [2], "items": [[7]]}), tmp_path / "b.parquet")
    result = rankmill.evaluate(tmp_path, tmp_path, ["map"])
    assert (result.queries, result["map"]) == (1, 1.0)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux only")
def test_the_name_of_a_file_need_not_be_utf8(tmp_path: Path) -> None:
    table = pa.table({"user_id": [1, 2], "items": [[1], [2]]})
    name = os.path.join(os.fsencode(tmp_path), b"x\xff")
    for write, suffix in ((pq.write_table, b".parquet"), (feather.write_feather, b".arrow")):
        write(table, tmp_path / "plain")
        os.replace(tmp_path / "plain", name + suffix)
        path = os.fsdecode(name + suffix)
        assert rankmill.evaluate(path, path, ["map"])["map"] == 1.0
