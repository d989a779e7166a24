"""LabelIndex finds a query as a dictionary does; LabelStore holds lists in the order added."""

import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill.columns.ids import id_value, to_ids
from rankmill.columns.lists import offsets_of
from rankmill.columns.ranked_lists import Lists, Place
from rankmill.errors import InputError
from rankmill.matching import index as label_index
from rankmill.matching.index import LabelIndex, LabelStore, RepeatedQueryError, look_up, row_type
from rankmill.matching.label_lists import NO_GAINS, LabelLists, clean_labels
from rankmill.threads import Workers

Row = tuple[Any, list[tuple[Any, float]]]


def blocks_of_rows(text: bool, gains: bool, count: int = 40) -> list[list[Row]]:
    """Blocks of queries with the items of each and their gains, falling, without repeats."""
    generator = np.random.default_rng([text, gains])
    name = str if text else int
    number = 0
    blocks = []
    for rows in generator.integers(0, 30, count).tolist():
        block = []
        for _ in range(rows):
            items = generator.permutation(50)[: generator.integers(0, 6)].tolist()
            worths = sorted(generator.integers(1, 5, len(items)).tolist(), reverse=True)
            worths = worths if gains else [1] * len(items)
            block.append(
                (name(number), [(name(i), float(w)) for i, w in zip(items, worths, strict=True)])
            )
            number += 1
        blocks.append(block)
    return blocks


def block_of(rows: list[Row], text: bool, gains: bool, repeats: str) -> Any:
    """What `LabelStore.add` takes: the lists, cleaned too, and what was dropped."""
    kind = pa.string() if text else pa.int64()
    pairs = [pair for _, list_of_pairs in rows for pair in list_of_pairs]
    items = to_ids(pa.array([item for item, _ in pairs], kind), "items")
    numbers = np.array([gain for _, gain in pairs]) if gains else None
    offsets = offsets_of(np.array([len(pairs) for _, pairs in rows], np.int64))
    queries = to_ids(pa.array([query for query, _ in rows], kind), "queries")
    lists = Lists(queries, offsets, items, numbers, 0, 0, Place("labels"), len(rows))
    return lists, *clean_labels(offsets, items, numbers, repeats=repeats)


@pytest.mark.small
@pytest.mark.parametrize("room", [0, 100, 100_000])
@pytest.mark.parametrize("when", ["at once", "at the end", "backwards on threads"])
@pytest.mark.parametrize("repeats", ["set", "count"])
@pytest.mark.parametrize("gains", [False, True])
@pytest.mark.parametrize("text", [False, True])
def test_lists_stand_in_the_order_added(
    text: bool, gains: bool, repeats: str, when: str, room: int
) -> None:
    """Without waiting for copies before an array moves, they went to where it had been."""
    blocks = blocks_of_rows(text, gains)
    store = LabelStore(room, room)
    copies = []
    for rows in blocks:
        copies.append(store.add(*block_of(rows, text, gains, repeats)))
        if when == "at once":
            copies[-1]()
    if when == "backwards on threads":
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda copy: copy(), reversed(copies)))
    index = store.finish({"null_labels": 7})
    rows = [row for block in blocks for row in block]
    labels = index.labels
    assert [id_value(index.queries, i) for i in range(len(rows))] == [query for query, _ in rows]
    assert np.diff(labels.offsets).tolist() == [len(pairs) for _, pairs in rows]
    pairs = [pair for _, pairs in rows for pair in pairs]
    assert [id_value(labels.items, i) for i in range(len(pairs))] == [item for item, _ in pairs]
    assert labels.gains.tolist() == ([gain for _, gain in pairs] if gains else [])
    if repeats == "count":
        assert np.array_equal(labels.all_offsets, labels.offsets)
        assert np.array_equal(labels.all_gains, labels.gains)
    assert index.rows == len(rows)
    assert index.audit["null_labels"] == 7
    assert index.find(index.queries).tolist() == list(range(len(rows)))


@pytest.mark.small
@pytest.mark.parametrize("repeats", ["set", "count"])
@pytest.mark.parametrize("gains", [None, [1.0, 1.0, 1.0], [3.0, 0.0, 1.0]])
@pytest.mark.parametrize(
    "items",
    [
        pa.array(["a", "b", "a"]),
        pa.array([7, 2, 7], pa.uint8()),
        pa.array([2**63, 2, 7], pa.uint64()),
        pa.array([-1, 2, 7]),
    ],
)
def test_a_lone_block_is_as_one_of_several(items: Any, gains: Any, repeats: str) -> None:
    """It is not copied; another block without lists makes the store copy both."""
    found = []
    for rows in ([3], [3, 0]):
        store = LabelStore(3, 3)
        for count in rows:
            offsets = np.array([0, *[2, 3][:count]])
            ids = to_ids(items[:count], "items")
            numbers = None if gains is None else np.array(gains[:count])
            queries = to_ids(pa.array([5, 9][:count], pa.uint32()), "queries")
            lists = Lists(queries, offsets, ids, numbers, 0, 0, Place("labels"), count)
            cleaned = clean_labels(offsets, ids, numbers, repeats=repeats, judged=True)
            store.add(lists, *cleaned)()
        found.append(store.finish())
    one, other = found
    assert [id_value(one.queries, i) for i in range(2)] == [5, 9]
    assert (one.audit, one.rows - other.rows) == (other.audit, 0)
    both = one.labels, other.labels
    for mine, theirs in [both, (both[0].judged, both[1].judged)]:
        assert (mine is None) == (theirs is None)
        if mine is None or theirs is None:
            continue
        assert mine.items.kind == theirs.items.kind
        count = len(theirs.items.keys)
        assert [id_value(mine.items, i) for i in range(count)] == [
            id_value(theirs.items, i) for i in range(count)
        ]
        for name in ("offsets", "gains", "all_offsets", "all_gains"):
            assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name
    assert one.queries.kind == other.queries.kind


@pytest.mark.small
def test_arrays_move_while_threads_copy() -> None:
    blocks = blocks_of_rows(text=True, gains=True, count=400)
    prepared = [block_of(rows, True, True, "set") for rows in blocks]
    expected = LabelStore(100_000, 100_000)
    moved = LabelStore(0, 0)
    for one in prepared:
        expected.add(*one)()
    with Workers(4) as workers:
        for _ in workers.map(lambda copy: copy(), (moved.add(*one) for one in prepared)):
            pass
    one, other = expected.finish(), moved.finish()
    assert np.array_equal(one.labels.items.keys, other.labels.items.keys)
    assert np.array_equal(one.labels.items.data, other.labels.items.data)
    assert np.array_equal(one.labels.gains, other.labels.gains)
    assert np.array_equal(one.queries.data, other.queries.data)


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.small
@pytest.mark.parametrize("finished", [True, False])
def test_labels_end_with_the_last_name_for_them(finished: bool, without_collector: None) -> None:
    """A range of labels is freed before the next is read, without the garbage collector."""
    store = LabelStore(1000, 1000)
    written: Any = [
        store.add(*block_of(rows, False, False, "set")) for rows in blocks_of_rows(False, False)[:3]
    ]
    held = weakref.ref(store._queries._keys._array)
    index = store.finish() if finished else None
    del store, written
    assert (held() is None) == (index is None)
    del index
    assert held() is None


@pytest.mark.small
@pytest.mark.parametrize("wide", [True, False])
def test_workers_copy_labels(tmp_path: Path, monkeypatch: Any, wide: bool) -> None:
    """The thread that asks only makes room: it appended all labels before, and readers waited."""
    threads: set[int] = set()
    write = label_index._Write.__call__

    def seen(self: Any) -> None:
        if self._copies:
            threads.add(threading.get_ident())
        write(self)

    monkeypatch.setattr(label_index._Write, "__call__", seen)
    queries, items = np.arange(300_000) // 2, np.arange(300_000)
    table = pa.table({"query_id": queries, "item_id": items})
    if wide:
        lists = pa.ListArray.from_arrays(np.arange(0, 300_001, 2, np.int32), pa.array(items))
        table = pa.table({"query_id": queries[::2], "items": lists})
    path = tmp_path / "labels.parquet"
    pq.write_table(table, path, row_group_size=40_000)
    found = rankmill.evaluate(path, {7: [15, 1, 14]}, ["first_hit"], threads=2)
    assert found.audit["labels"] == 300_000
    assert found["first_hit"] == 1 / 150_000
    assert len(threads) > 0
    assert threading.get_ident() not in threads


@pytest.mark.small
def test_a_broken_block_leaves_no_thread(tmp_path: Path) -> None:
    """The error of the first broken row group, and nothing that runs on."""
    before = threading.active_count()
    path = tmp_path / "labels.parquet"
    numbers = [[1.0], [2.0]] * 4000
    numbers[5001] = [float("nan")]
    table = pa.table({"query_id": np.arange(8000), "items": [[1], [2]] * 4000, "gain": numbers})
    pq.write_table(table, path, row_group_size=1000)
    with pytest.raises(InputError, match=r"row 5001 .*'gain' is nan"):
        rankmill.evaluate(path, {1: [1]}, ["ndcg"])
    assert threading.active_count() == before


@pytest.mark.parametrize("repeats", ["set", "count"])
def test_labels_are_the_same_with_all_judged_items_beside_them(repeats: str) -> None:
    generator = np.random.default_rng(28)
    offsets = offsets_of(generator.integers(0, 7, 200))
    items = to_ids(pa.array(generator.integers(0, 9, offsets[-1])), "items")
    gains = generator.integers(-1, 3, offsets[-1]).astype(float)
    alone, counts = clean_labels(offsets, items, gains, repeats=repeats)
    found, counts_beside = clean_labels(offsets, items, gains, repeats=repeats, judged=True)
    assert counts == counts_beside
    assert min(counts.values()) > 0
    assert found.judged is not None
    assert len(found.judged.gains) > len(found.gains)
    for name in ("offsets", "gains", "all_offsets", "all_gains"):
        assert np.array_equal(getattr(found, name), getattr(alone, name)), name
    assert np.array_equal(found.items.keys, alone.items.keys)


def index_of(values: np.ndarray) -> LabelIndex:
    no_labels = LabelLists(np.zeros(len(values) + 1, np.int64), to_ids(values[:0], ""), NO_GAINS)
    return LabelIndex(to_ids(values, "the query"), no_labels)


def expected(values: np.ndarray, wanted: np.ndarray) -> list[int]:
    rows = {value: row for row, value in enumerate(values.tolist())}
    return [rows.get(value, -1) for value in wanted.tolist()]


def ids(generator: np.random.Generator, kind: str, size: int) -> np.ndarray:
    """Return distinct ids with gaps, over the whole range of the type."""
    limits = np.iinfo(kind)
    drawn = generator.integers(limits.min, limits.max, size, dtype=kind, endpoint=True)
    ends = np.array([limits.min, limits.max], kind)
    return generator.permutation(np.unique(np.concatenate([drawn, ends])))


@pytest.mark.small
@pytest.mark.parametrize("size", [0, 1, 7, 1500])
@pytest.mark.parametrize("kind", ["int64", "uint64", "int16"])
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("order", ["as stored", "backwards", "shuffled"])
@pytest.mark.parametrize("close", [True, False])
def test_find_equals_a_dictionary(
    size: int, kind: str, ascending: bool, order: str, close: bool
) -> None:
    generator = np.random.default_rng([size, ascending, len(order)])
    everything = ids(generator, kind, size)
    if close:  # at the lowest values of the type, where differences wrap around
        within = generator.permutation(4 * size)[:size]
        everything = np.iinfo(kind).min + within.astype(kind)
    values = everything[: len(everything) * 3 // 4]
    if ascending:
        values, everything = np.sort(values), np.sort(everything)
    wanted = {"backwards": everything[::-1], "shuffled": generator.permutation(everything)}
    looked_up = np.ascontiguousarray(wanted.get(order, everything))
    index = index_of(values)
    assert index.find(to_ids(looked_up, "")).tolist() == expected(values, looked_up)


def test_far_jumps_turn_to_the_table() -> None:
    generator = np.random.default_rng(0)
    values = np.cumsum(generator.integers(1, 9, 100_000)) - 300_000
    index = index_of(values)
    in_order = to_ids(values[::3], "")
    assert index.find(in_order).tolist() == list(range(0, 100_000, 3))
    assert index._lookup is None, "ids in order need no table"
    shuffled = generator.permutation(np.arange(values[0] - 5, values[-1] + 5))[:20_000]
    assert index.find(to_ids(shuffled, "")).tolist() == expected(values, shuffled)
    assert index._lookup is not None
    assert index.find(in_order).tolist() == list(range(0, 100_000, 3))


@pytest.mark.parametrize("ascending", [True, False])
def test_signed_and_unsigned_ids_match_by_value(ascending: bool) -> None:
    values = np.array([1, 5, 2**63, 2**64 - 1], np.uint64)
    index = index_of(values if ascending else values[::-1].copy())
    found = index.find(to_ids(np.array([-1, 5, -(2**63), 1], np.int64), ""))
    assert found.tolist() == [-1, 1, -1, 0] if ascending else [-1, 2, -1, 3]


@pytest.mark.parametrize("values", [[1, 2, 2], [2, 1, 2], ["b", "a", "b"]])
def test_a_repeated_id_is_found(values: list[object]) -> None:
    queries = to_ids(pa.array(values), "")
    with pytest.raises(RepeatedQueryError) as caught:
        LabelIndex(queries, index_of(np.empty(0, np.int64)).labels)
    assert caught.value.row == 2


def test_rows_are_held_by_integers_that_are_wide_enough() -> None:
    assert row_type(2**31 - 1) == np.int32
    assert row_type(2**31) == np.int64


def test_sparse_integers_are_looked_up_by_hash_and_close_ones_directly() -> None:
    for step, direct in ((30, True), (300, False)):
        keys = to_ids(np.arange(1000) * step - 7000, "")
        lookup, repeated = look_up(keys)
        assert (len(lookup.words) > 0, repeated) == (direct, -1)
        assert lookup.find(keys).tolist() == list(range(1000))
