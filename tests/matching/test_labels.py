"""LabelIndex: every way to find a query gives the same row as a dictionary."""

import numpy as np
import pyarrow as pa
import pytest

from rankmill.columns.ids import to_ids
from rankmill.matching.index import LabelIndex, RepeatedQueryError
from rankmill.matching.label_lists import NO_GAINS, LabelLists
from rankmill.matching.lookup import look_up, row_type


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
