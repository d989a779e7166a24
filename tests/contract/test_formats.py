"""Every way of writing the same input: Arrow types, list layouts, files and column names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import rankmill
import strategies
from flat import flat
from rankmill.arrays import Ragged
from rankmill.io.whole_files import write_by_suffix
from strategies import INTEGER_TYPES, STRING_TYPES

# ((query, labels), ...) and ((query, predictions), ...): map@3 is (1 + 1/2 + 0) / 3
LABELS = [(1, [10, 11]), (2, [10]), (3, [12])]
PREDICTIONS = [(3, [10, 11, 99]), (1, [11, 10, 99]), (2, [11, 10, 99]), (4, [10, 11, 12])]
EXPECTED = {"map@3": 0.5, "hit@1": 1 / 3}
METRICS = list(EXPECTED)


def as_text(value: int) -> str:
    return f"prefix-of-more-than-twelve-{value}" if value % 2 else str(value)


def table(
    listed: Sequence[tuple[int, list[int]]],
    query: pa.DataType,
    item: pa.DataType,
    list_type: Callable[[pa.DataType], pa.DataType] | None = pa.list_,
) -> pa.Table:
    """Make a wide table, or a long one if no list type is given."""
    text = as_text if not pa.types.is_integer(query) else int
    item_text = as_text if not pa.types.is_integer(item) else int
    if list_type is None:
        rows = [(text(q), item_text(i)) for q, items in listed for i in items]
        return pa.table(
            {
                "query_id": strategies.array([q for q, _ in rows], query),
                "item_id": strategies.array([i for _, i in rows], item),
            }
        )
    return pa.table(
        {
            "query_id": strategies.array([text(q) for q, _ in listed], query),
            "items": strategies.lists(
                [[item_text(i) for i in items] for _, items in listed], item, list_type
            ),
        }
    )


def check(labels: Any, predictions: Any, **options: Any) -> Any:
    result = flat(rankmill.evaluate, labels, predictions, METRICS, **options)
    assert result.metrics == pytest.approx(EXPECTED, rel=1e-15)
    return result


WIDE_OR_LONG = pytest.mark.parametrize("list_type", [pa.list_, None], ids=["wide", "long"])


@WIDE_OR_LONG
@pytest.mark.parametrize("right", INTEGER_TYPES, ids=str)
@pytest.mark.parametrize("left", INTEGER_TYPES, ids=str)
def test_integer_widths(left: pa.DataType, right: pa.DataType, list_type: Any) -> None:
    """Queries have one type and items the other; on the other side the types are swapped."""
    result = check(
        table(LABELS, left, right, list_type), table(PREDICTIONS, right, left, list_type)
    )
    assert result.per_query.schema.field(0).type == left
    assert result.per_query["query_id"].to_pylist() == [1, 2, 3]


@WIDE_OR_LONG
@pytest.mark.parametrize("right", STRING_TYPES, ids=str)
@pytest.mark.parametrize("left", STRING_TYPES, ids=str)
def test_string_types(left: pa.DataType, right: pa.DataType, list_type: Any) -> None:
    result = check(
        table(LABELS, left, right, list_type), table(PREDICTIONS, right, left, list_type)
    )
    assert result.per_query["query_id"].to_pylist() == [as_text(q) for q in (1, 2, 3)]


@WIDE_OR_LONG
def test_dictionary_of_integers(list_type: Any) -> None:
    kind = pa.dictionary(pa.int16(), pa.int64())
    labels, predictions = (
        table(side, pa.int64(), pa.int64(), list_type) for side in (LABELS, PREDICTIONS)
    )
    query = predictions["query_id"].combine_chunks().dictionary_encode().cast(kind)
    check(labels, predictions.set_column(0, "query_id", query))


@WIDE_OR_LONG
@pytest.mark.parametrize(
    ("small", "large"),
    [
        (pa.int64(), pa.uint64()),
        (pa.int32(), pa.uint32()),
        (pa.int8(), pa.uint64()),
        (pa.int64(), pa.int64()),
    ],
    ids=str,
)
def test_integers_that_share_bits_do_not_match(small: Any, large: Any, list_type: Any) -> None:
    """-1 differs from the largest unsigned integer, and 2**53 from its neighbour."""
    negative, positive = -1, 2**large.bit_width - 1
    if small == large:
        negative, positive = 2**53, 2**53 + 1
    labels = table([(0, [negative]), (negative, [5])], small, small, list_type)
    predictions = table([(0, [positive]), (positive, [5])], large, large, list_type)
    result = rankmill.evaluate(labels, predictions, ["hit@2"])
    assert result["hit@2"] == 0
    assert result.audit["queries_in_both"] == 1
    assert result.audit["queries_only_labelled"] == 1
    assert result.audit["queries_only_predicted"] == 1


@WIDE_OR_LONG
def test_strings_match_exactly(list_type: Any) -> None:
    """Strings are never cut off or read as numbers, nor trimmed if ids are to be exact."""
    near = [
        "",
        "a",
        "A",
        "a\0",
        "a ",
        "é",
        "e\u0301",
        "0",
        "00",
        "x" * 13,
        "x" * 12,
        "x" * 12 + "y",
    ]
    pairs = [(one, [one]) for one in near]
    others = [(one, [other for other in near if other != one]) for one in near]

    def build(listed: Any) -> pa.Table:
        if list_type is None:
            rows = [(q, i) for q, items in listed for i in items]
            return pa.table({"qid": [q for q, _ in rows], "item_id": [i for _, i in rows]})
        return pa.table({"qid": [q for q, _ in listed], "items": [items for _, items in listed]})

    labels, run, other = (
        noun(build(listed), exact_ids=True)
        for noun, listed in (
            (rankmill.Labels, pairs),
            (rankmill.Predictions, pairs),
            (rankmill.Predictions, others),
        )
    )
    assert rankmill.evaluate(labels, run, ["hit"])["hit"] == 1.0
    assert rankmill.evaluate(labels, other, ["hit"])["hit"] == 0.0
    lists = [Ragged.from_lists([items for _, items in side]) for side in (pairs, others)]
    assert rankmill.arrays.hit(lists[0], lists[0]).tolist() == [1.0] * len(near)
    assert rankmill.arrays.hit(lists[0], lists[1]).tolist() == [0.0] * len(near)


@pytest.mark.parametrize("near", [[1, 2**63], [2**63, 2**63 + 1, 2**64 - 1], [-(2**63), 0, 2**53]])
def test_lists_of_large_integers(near: list[int]) -> None:
    """Python's integers go into a Ragged unchanged, never through floats."""
    lists = Ragged.from_lists([near])
    assert lists.to_lists() == [near]
    others = Ragged.from_lists([[one ^ 1 for one in near if one ^ 1 not in near]])
    assert rankmill.arrays.recall(lists, lists).tolist() == [1.0]
    assert rankmill.arrays.hit(lists, others).tolist() == [0.0]


# ------------------------------------------------------------------ lists

LIST_TYPES = {
    "list": pa.list_,
    "large_list": pa.large_list,
    "fixed_size_list": lambda kind: pa.list_(kind, 3),
    "list_view": pa.list_view,
    "large_list_view": pa.large_list_view,
}
LAYOUTS = {
    "whole": lambda one: one,
    "sliced": strategies.sliced,
    "chunked": lambda one: strategies.chunked(one, 1),
    "chunks of a slice": lambda one: strategies.chunked(strategies.sliced(one), 2),
    "with an empty chunk": lambda one: pa.concat_tables([one.slice(0, 0), one, one.slice(0, 0)]),
}


@pytest.mark.parametrize("item", [pa.int32(), pa.string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", LIST_TYPES)
def test_list_types_and_layouts(name: str, layout: str, item: pa.DataType) -> None:
    labels = table(LABELS, pa.int64(), item)
    predictions = table(PREDICTIONS, pa.int64(), item, LIST_TYPES[name])
    confidence = strategies.lists([[3.0, 2.0, 1.0]] * 4, pa.float32(), LIST_TYPES[name])
    predictions = predictions.append_column("confidence", confidence)
    check(labels, LAYOUTS[layout](predictions))
    # All three confidences are tied across queries: 3 of 4 lists have a hit at one of the ranks.
    shaped = rankmill.evaluate(labels, LAYOUTS[layout](predictions), ["gap"])
    plain = predictions.set_column(1, "items", table(PREDICTIONS, pa.int64(), item)["items"])
    plain = plain.set_column(2, "confidence", pa.array([[3.0, 2.0, 1.0]] * 4))
    assert shaped["gap"] == rankmill.evaluate(labels, plain, ["gap"])["gap"] > 0


@pytest.mark.parametrize("name", LIST_TYPES)
def test_ragged_from_arrow(name: str) -> None:
    array = strategies.lists([[1, 2, 3], [4, 5, 6], [7, 8, 9]], pa.int16(), LIST_TYPES[name])
    ragged = Ragged.from_arrow(array.slice(1))
    assert ragged.to_lists() == [[4, 5, 6], [7, 8, 9]]
    assert ragged.offsets.tolist() == [0, 3, 6]
    assert ragged.offsets.dtype == "int64"


@pytest.mark.parametrize("name", ["list", "large_list", "list_view", "large_list_view"])
def test_values_under_null_lists_are_not_there(name: str) -> None:
    values = [[1], None, [2, 3], None, []]
    array = strategies.lists(values, pa.int64(), LIST_TYPES[name])
    assert Ragged.from_arrow(array).to_lists() == [[1], [], [2, 3], [], []]
    assert Ragged.from_arrow(array.slice(1, 3)).to_lists() == [[], [2, 3], []]
    column = pa.table({"query_id": range(5), "items": array})
    labels = pa.table({"query_id": range(5), "items": [[1]] * 5})
    result = rankmill.evaluate(labels, column, ["hit"])
    assert result.per_query["hit"].to_pylist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert result.audit["queries_predicted"] == 2


def test_null_fixed_size_lists_are_empty() -> None:
    items = pa.array([[1, 2], None, [3, None]], pa.list_(pa.int64(), 2))
    predictions = pa.table({"query_id": [1, 2, 3], "items": items})
    labels = pa.table({"query_id": [1, 2, 3], "items": [[2], [1], [3]]})
    result = rankmill.evaluate(labels, predictions.slice(1), ["first_hit"])
    assert result.per_query["first_hit"].to_pylist() == [0.0, 0.0, 1.0]
    assert result.audit["null_items"] == 1


def test_null_items_move_the_rest_up() -> None:
    predictions = pa.table(
        {"query_id": [1], "items": [[None, 5, None, 7]], "score": [[4, 3, 2, 1]]}
    )
    labels = pa.table({"query_id": [1], "items": [[7, None, 7]]})
    result = rankmill.evaluate(labels, predictions, ["first_hit", "gap"])
    assert result.metrics == {"first_hit": 0.5, "gap": 0.5}
    assert result.audit["null_items"] == 2
    assert result.audit["null_labels"] == result.audit["repeated_labels"] == 1


# ------------------------------------------------------------------ files


def split_files(folder: Path, name: str, one: pa.Table, parts: int = 2) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}-{part}.parquet" for part in range(parts)]
    for part, path in enumerate(paths):
        first, last = len(one) * part // parts, len(one) * (part + 1) // parts
        pq.write_table(one.slice(first, last - first), path)
    return paths


@WIDE_OR_LONG
def test_files_lists_globs_and_directories(tmp_path: Path, list_type: Any, run_cli: Any) -> None:
    labels = split_files(tmp_path / "l", "x", table(LABELS, pa.int64(), pa.int64(), list_type), 1)
    wanted = table(PREDICTIONS, pa.int64(), pa.int64(), list_type)
    paths = split_files(tmp_path / "p", "part", wanted, 3)
    globbed = str(tmp_path / "p" / "part-*.parquet")
    for source in (paths, [str(path) for path in paths], globbed, tmp_path / "p"):
        result = check(labels[0], source)
        assert result.inputs["predictions"]["rows"] == len(wanted)
        assert result.inputs["labels"]["shape"] == ("wide" if list_type else "long")
        assert result.inputs["predictions"]["columns"]["query"] == "query_id"
    check(str(labels[0]), str(tmp_path / "p"))
    check(table(LABELS, pa.int64(), pa.int64()), paths)
    for source in (globbed, tmp_path / "p", ",".join(map(str, paths))):
        outcome = run_cli("evaluate", labels[0], source, "-m", "map@3", "--format", "csv")
        assert outcome.exit_code == 0, outcome.stderr
        assert "0.5" in outcome.stdout


@WIDE_OR_LONG
def test_hive_partitioned_directories(tmp_path: Path, list_type: Any) -> None:
    """A partition column that no option names does not matter."""
    for name, side in (("labels", LABELS), ("predictions", PREDICTIONS)):
        one = table(side, pa.int64(), pa.int64(), list_type)
        country = pa.array(["se" if query % 2 else "dk" for query in one["query_id"].to_pylist()])
        one = one.append_column("country", country)
        pyarrow.dataset.write_dataset(
            one,
            tmp_path / name,
            format="parquet",
            partitioning=pyarrow.dataset.partitioning(
                pa.schema([("country", pa.string())]), flavor="hive"
            ),
        )
    check(tmp_path / "labels", str(tmp_path / "predictions"))


def test_query_as_hive_partition(tmp_path: Path) -> None:
    """The query id itself may be a partition: user_id=7/part-0.parquet."""
    for name, side in (("labels", LABELS), ("predictions", PREDICTIONS)):
        for query, items in side:
            folder = tmp_path / name / f"user_id={query}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"item_id": items}), folder / "part-0.parquet")
    check(tmp_path / "labels", tmp_path / "predictions")


def test_files_of_different_widths(tmp_path: Path) -> None:
    """Two files of one input have the same names, but integers of different widths."""
    first = table(PREDICTIONS[:2], pa.int32(), pa.int16())
    second = table(PREDICTIONS[2:], pa.int64(), pa.int64())
    pq.write_table(first, tmp_path / "a.parquet")
    pq.write_table(second, tmp_path / "b.parquet")
    check(table(LABELS, pa.int64(), pa.int64()), tmp_path)


# ------------------------------------------------------------------ names

QUERY_NAMES = ["query_id", "q_id", "qid", "user_id", "customer_id", "image_id"]
ITEM_NAMES = ["item_id", "items", "item", "doc_id", "docno", "article_id"]
ITEM_NAMES += ["prediction", "predictions", "labels", "label"]
SCORE_NAMES = ["score", "scores", "confidence", "conf"]


@WIDE_OR_LONG
@pytest.mark.parametrize(
    ("query", "item"),
    [(name, "item_id") for name in QUERY_NAMES] + [("query_id", name) for name in ITEM_NAMES],
)
def test_aliases(query: str, item: str, list_type: Any) -> None:
    labels = table(LABELS, pa.int64(), pa.int64(), list_type).rename_columns([query, item])
    predictions = table(PREDICTIONS, pa.int64(), pa.int64(), list_type)
    result = check(labels, predictions.rename_columns([query, item]))
    assert result.inputs["labels"]["columns"]["item"] == item
    assert result.per_query.column_names[0] == query


@pytest.mark.parametrize("name", SCORE_NAMES)
def test_score_aliases(name: str) -> None:
    """In a long file without ranks, the confidences define the order."""
    labels = pa.table({"qid": [1], "label": [7]})
    predictions = pa.table({"qid": [1, 1, 1], "prediction": [5, 6, 7], name: [0.1, 0.2, 0.9]})
    assert rankmill.evaluate(labels, predictions, ["hit@1"])["hit@1"] == 1.0
    ranked = predictions.append_column("rank", pa.array([1, 3, 2]))
    result = rankmill.evaluate(labels, ranked, ["first_hit", "gap"])
    assert result.metrics == {"first_hit": 0.5, "gap": 1.0}
    assert result.inputs["predictions"]["columns"]["score"] == name


def test_overrides(run_cli: Any, tmp_path: Path) -> None:
    """Columns of any name, several of them with an alias; others of a type that is not wanted."""
    junk = pa.array([{"x": 1.5}] * 3)
    labels = pa.table({"who": [1, 1, 2], "what": [5, 6, 5], "item": junk, "stars": [1, 0, 2]})
    predictions = pa.table(
        {"u": [1, 1, 2], "p": [6, 5, 5], "score": junk, "s": [0.1, 0.2, 0.3], "place": [2, 1, 1]}
    )
    names = {"query": "u", "item": "p", "label_query": "who", "label_item": "what"}
    names |= {"gain": "stars", "rank": "place", "score": "s"}
    result = flat(rankmill.evaluate, labels, predictions, ["dcg", "map", "gap"], **names)
    assert result.metrics == pytest.approx({"dcg": 1.5, "map": 1.0, "gap": 1.0})
    assert result.per_query.column_names[0] == "who"
    paths = tmp_path / "l.parquet", tmp_path / "p.parquet"
    for one, path in zip((labels, predictions), paths, strict=True):
        pq.write_table(one, path)
    options = [
        word for name, column in names.items() for word in (f"--{name.replace('_', '-')}", column)
    ]
    outcome = run_cli("evaluate", *paths, "-m", "dcg", "--format", "json", *options)
    assert outcome.exit_code == 0, outcome.stderr
    assert '"dcg": 1.5' in outcome.stdout


@pytest.mark.small
def test_equal_ranks_of_a_query_are_counted_and_keep_the_order_of_rows() -> None:
    labels = pa.table({"query": [1, 2], "item": [5, 5]})
    predictions = pa.table(
        {"query": [1, 1, 1, 2, 2], "item": [7, 5, 8, 5, 7], "rank": [1, 1, 2, 1, 2]}
    )
    result = rankmill.evaluate(labels, predictions, "first_hit")
    assert result.audit["tied_ranks"] == 2
    assert result.per_query["first_hit"].to_pylist() == [0.5, 1.0]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "jsonl"])
def test_a_format_of_cells_is_told_of_any_file(tmp_path: Path, suffix: str) -> None:
    """An item with a comma may be a list: the error says to name such a format."""
    labels = pa.table({"user": [1, 1, 2], "item": ["drill-2,5mm", "axe", "saw"]})
    path = tmp_path / f"labels.{suffix}"
    with open(path, "wb") as file:
        write_by_suffix(file, labels, path)
    predictions = pa.table({"user": [1, 2], "items": [["axe", "x"], ["y", "saw"]]})
    with pytest.raises(rankmill.InputError, match="csv-long if each is one item"):
        rankmill.evaluate(str(path), predictions, "hit@1")
    told = rankmill.Labels(str(path), format="csv-long")
    assert rankmill.evaluate(told, predictions, "hit@1")["hit@1"] == 0.5
