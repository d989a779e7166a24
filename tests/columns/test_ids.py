"""Ids that are strings: the bytes decide, even if the hashes are equal."""

import itertools
import pickle
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from rankmill.columns.ids import id_text, ids_to_arrow, join_ids, plain, slice_ids, take_ids, to_ids
from rankmill.kernels.identity import SEED, group_rows, home
from rankmill.matching.index import LabelIndex, look_up
from rankmill.matching.label_lists import NO_GAINS, LabelLists

# Longer than any list whose items are compared one by one.
LONG = 200


@pytest.fixture
def equal_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """All strings get the same key, because the product with a seed of 0 is 0."""
    monkeypatch.setattr("rankmill.columns.ids.SEED", np.uint64(0))
    assert set(to_ids(pa.array(["a", "bc", "d" * 40]), "").keys.tolist()) == {0}


def twins(count: int) -> list[str]:
    return [f"item{number:04d} of many" for number in range(count)]


@pytest.mark.small
def test_a_key_is_that_of_the_bytes_alone() -> None:
    """The hash does not depend on where a string is in the data, or on what follows it."""
    text = "abcdefghijklmnopqrs"
    strings = [text[:length] for length in range(20)]
    alone = [to_ids(pa.array([one]), "").keys[0] for one in strings]
    assert len(set(alone)) == 20
    assert to_ids(pa.array(strings), "").keys.tolist() == alone
    followed = to_ids(pa.array([string + end for string in strings for end in ("", "?" * 9)]), "")
    assert followed.keys[::2].tolist() == alone


@pytest.mark.small
@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_a_dictionary_is_written_out_with_offsets_of_64_bits(kind: pa.DataType) -> None:
    """The strings may take more than 2 GiB in full, which is too much for a test."""
    words = pa.array(["a", None, "b", "a", "b"]).cast(kind)
    encoded = words.dictionary_encode().slice(1)
    written = plain(encoded, "")
    assert written.type in (pa.large_string(), pa.large_binary())
    assert written.cast(kind).equals(words.slice(1))
    assert plain(words, "") is words


@pytest.mark.small
@pytest.mark.parametrize("distinct", [1, 40, 3_000])
@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_scattered_rows_are_numbered_in_order_of_first_appearance(
    kind: pa.DataType, distinct: int
) -> None:
    values = np.random.default_rng(distinct).integers(0, distinct, 9_000).tolist()
    ids = to_ids(pa.array(map(str, values)).cast(kind), "")
    groups, first = np.empty((2, len(values)), np.int64)
    numbers: dict[int, int] = {}
    expected = [numbers.setdefault(value, len(numbers)) for value in values]
    assert group_rows(ids, SEED, groups, first) == len(numbers)
    assert groups.tolist() == expected
    assert [values[i] for i in first[: len(numbers)].tolist()] == list(numbers)


@pytest.mark.small
@pytest.mark.lengthy
def test_strings_with_equal_keys_are_grouped_by_their_bytes(equal_keys: None) -> None:
    values = [*twins(300), *reversed(twins(300))]
    groups, first = np.empty((2, len(values)), np.int64)
    assert group_rows(to_ids(pa.array(values), ""), SEED, groups, first) == 300
    assert groups.tolist() == [*range(300), *reversed(range(300))]


@pytest.mark.small
@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.int64()])
def test_ids_are_sliced_taken_and_joined(kind: pa.DataType) -> None:
    generator = np.random.default_rng(0)
    values = [str(number) for number in generator.integers(0, 10 ** generator.integers(1, 18, 50))]
    ids = to_ids(pa.array(["1", *values]).cast(kind)[1:], "")
    order = generator.permutation(50)
    taken = take_ids(ids, order)
    sliced = slice_ids(taken, 10, 20)
    joined = join_ids([taken, slice_ids(ids, 0, 0), sliced, ids])
    expected = [values[i] for i in [*order, *order[10:20], *range(50)]]
    assert ids_to_arrow(joined, set()).cast(pa.string()).to_pylist() == expected
    assert ids_to_arrow(sliced, set()).cast(pa.string()).to_pylist() == expected[10:20]
    assert [id_text(joined, i).strip("'") for i in range(110)] == expected
    assert joined.keys.tolist() == to_ids(pa.array(expected).cast(kind), "").keys.tolist()
    if kind != pa.int64():
        assert sliced.data.nbytes == ids.data.nbytes, "taking ids copies no bytes"
        assert join_ids([sliced]).data.nbytes == len("".join(expected[10:20])), "joining does"


@pytest.mark.small
@pytest.mark.parametrize("others", [0, LONG])
def test_items_with_the_same_key_are_told_apart(equal_keys: None, others: int) -> None:
    a, b, c, d = twins(4)
    more = [b"%d" % number for number in range(others)]
    labels = pa.table({"query_id": [1, 2], "items": [[a, b, b], [c, *more]]})
    predictions = pa.table({"query_id": [1, 2], "items": [[c, b, d, b, a], [d, a, a, b, c, *more]]})
    result = rankmill.evaluate(labels, predictions, ["first_hit", "precision@5"])
    assert result["first_hit"] == pytest.approx((1 / 2 + 1 / 5) / 2)
    assert result.audit["repeated_items"] == 2
    assert result.audit["repeated_labels"] == 1
    assert result["precision@5"] == pytest.approx((2 + 1) / 10)


@pytest.mark.small
def test_queries_with_the_same_key_are_told_apart(equal_keys: None) -> None:
    known, strange = twins(40)[:30], twins(40)[30:]
    items = [[number] for number in range(40)]
    labels = pa.table({"query_id": known, "items": items[:30]})
    predictions = pa.table(
        {"query_id": [*strange, *known[::-1]], "items": items[30:] + items[29::-1]}
    )
    result = rankmill.evaluate(labels, predictions, ["hit"])
    assert result["hit"] == 1
    assert result.audit["queries_only_predicted"] == 10


@pytest.mark.small
def test_long_rows_with_the_same_key_are_told_apart(equal_keys: None) -> None:
    queries = twins(30)
    order = np.random.default_rng(0).permutation(60)
    rows = pa.table({"query_id": queries * 2, "item_id": range(60)}).take(order)
    result = rankmill.evaluate(rows, rows, ["recall@2", "map"])
    assert (result.queries, result["recall@2"], result["map"]) == (30, 1, 1)


@pytest.mark.small
@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 64])
def test_every_byte_is_compared(length: int) -> None:
    """This must hold even if all hashes are 0."""
    base = b"x" * length
    strings = [base, base[1:], base + b"x"]
    strings += [base[:i] + b"y" + base[i + 1 :] for i in range(length)]
    ids = to_ids(pa.array(strings), "")
    ids = ids._replace(keys=np.zeros_like(ids.keys))
    no_labels = LabelLists(np.zeros(len(strings) + 1, np.int64), slice_ids(ids, 0, 0), NO_GAINS)
    assert LabelIndex(ids, no_labels).find(ids).tolist() == list(range(len(strings)))


# ------------------------------------------------------------------ no file can force collisions


def spread(keys: np.ndarray, seed: int) -> float:
    """Return the share of distinct home slots among the keys, in a table of 2**16 slots."""
    shift = np.uint64(64 - 16)
    with np.errstate(over="ignore"):  # for runs without the JIT
        homes = {int(home(key, np.uint64(seed), shift)) for key in keys}
    return len(homes) / len(keys)


@pytest.mark.small
def test_integers_made_to_collide_are_spread() -> None:
    """These integers collide under a hash without a seed, and must not collide with one."""
    numbers = np.arange(2000, dtype=np.uint64)
    inverse = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
    mixed = numbers << np.uint64(22)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * inverse
    families = [mixed ^ (mixed >> np.uint64(32)), numbers << np.uint64(40), numbers * inverse]
    seeds = np.random.default_rng(0).integers(0, 1 << 62, 5) * 2 + 1
    for keys in families:
        assert np.mean([spread(keys, seed) for seed in seeds.tolist()]) > 0.5


@pytest.mark.small
def test_strings_made_to_collide_have_keys_of_their_own() -> None:
    """In a plain product, the highest bit of a factor changes only the product's highest bit."""
    low, high = b"\0" * 7, b"\x80"
    texts = [
        first + second
        for first in (low + b"\0", low + high)
        for second in (b"\0" * 8, b"\0\0\0\x80\0\0\0" + high)
    ]
    texts = [b"".join(four) for four in itertools.product(texts, repeat=4)]
    keys = to_ids(pa.array(texts, pa.binary()), "").keys
    assert len(set(keys.tolist())) == len(texts) == 256


def test_the_time_does_not_grow_with_the_square() -> None:
    """Before the seed, 100,000 integers in one slot took 13 s, and long rows of them 24 s."""
    count = 100_000
    mixed = np.arange(count, dtype=np.uint64) << np.uint64(22)
    inverse = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
    mixed = (mixed ^ (mixed >> np.uint64(32))) * inverse
    queries = (mixed ^ (mixed >> np.uint64(32))).view(np.int64)
    order = np.random.default_rng(0).permutation(count)
    labels = pa.table({"query_id": queries, "item_id": queries})
    predictions = labels.take(pa.array(order))
    start = time.perf_counter()
    for one, other in ((labels, predictions), (predictions, labels)):
        assert rankmill.evaluate(one, other, ["first_hit"], per_query=False)["first_hit"] == 1
    assert time.perf_counter() - start < 8


READER = """
import pickle, sys
import pyarrow as pa
from rankmill.columns.ids import to_ids
lookup = pickle.load(sys.stdin.buffer)
print(lookup.find(to_ids(pa.array({wanted}), "items")).tolist())
"""


@pytest.mark.parametrize(
    ("ids", "wanted", "rows"),
    [
        (["b", "", "a long id"], ["a long id", "b", "c", ""], [2, 0, -1, 1]),
        ([7, 1 << 40, -3], [-3, 8, 7, 1 << 40], [2, -1, 0, 1]),
    ],
)
@pytest.mark.long
def test_ids_that_travel_are_found_in_another_process(
    ids: list[Any], wanted: list[Any], rows: list[int]
) -> None:
    """Where another seed makes the keys of strings, and the places of all."""
    sent = pickle.dumps(look_up(to_ids(pa.array(ids), "items"))[0])
    code = READER.format(wanted=wanted)
    found = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True)
    assert found.stdout.decode().strip() == str(rows), found.stderr.decode()
