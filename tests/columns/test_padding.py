"""Items that are none, such as -1: told of where they count, and dropped where that is asked."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
from flat import flat
from rankmill.columns.ids import to_ids
from rankmill.errors import UsageError
from rankmill.sources.meaning.plain_ids import padded_tails
from strategies import examples

METRICS = ["map", "precision@3", "recall@2", "gap"]
LABELS = {1: [5, 6], 2: [8], 3: [7]}
LISTS: dict[int, list[Any]] = {1: [5, -1, 6, -1], 2: [9, 8], 3: [-1]}
SCORES = {1: [0.9, 0.8, 0.7, float("nan")], 2: [0.6, 0.5], 3: [0.4]}
KEPT = {1: [(5, 0.9), (6, 0.7)], 2: [(9, 0.6), (8, 0.5)], 3: []}


def wide(kind: Any, padding: Any) -> Any:
    """The lists as a table; items are of an Arrow type, and -1 is `padding`."""
    lists = [[padding if item == -1 else kind(item) for item in one] for one in LISTS.values()]
    return pa.table({"query": [*LISTS], "items": lists, "scores": [*SCORES.values()]})


def long(kind: Any, padding: Any) -> Any:
    rows = wide(kind, padding).to_pylist()
    return pa.Table.from_pylist(
        [
            {"query": row["query"], "item": item, "score": score}
            for row in rows
            for item, score in zip(row["items"], row["scores"], strict=True)
        ]
    )


@pytest.mark.small
@pytest.mark.parametrize("shape", [wide, long])
@pytest.mark.parametrize(("kind", "padding"), [(int, -1), (str, "-1"), (str, "PAD"), (int, 0)])
@pytest.mark.parametrize("suffix", ["", ".parquet", ".jsonl", ".csv"])
def test_padding_is_a_null_item(
    tmp_path: Path, shape: Any, kind: Any, padding: Any, suffix: str
) -> None:
    predictions: Any = shape(kind, padding)
    path = str(tmp_path / f"run{suffix}")
    if suffix == ".parquet":
        pq.write_table(predictions, path)
    elif suffix:
        rows = predictions.to_pylist()
        text = "".join(json.dumps(row).replace("NaN", "null") + "\n" for row in rows)
        if suffix == ".csv":
            cells = [[str(row[name]) for name in row] for row in rows]
            lines = [predictions.schema.names, *cells]
            text = "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)
        Path(path).write_text(text)
    predictions = path if suffix else predictions
    labels = {query: [kind(item) for item in one] for query, one in LABELS.items()}
    kept = {query: [(kind(item), score) for item, score in one] for query, one in KEPT.items()}
    found = rankmill.evaluate(
        rankmill.Labels(labels, padding=padding),
        rankmill.Predictions(predictions, padding=padding),
        METRICS,
    )
    alone = rankmill.evaluate(labels, kept, METRICS)
    assert found.metrics == alone.metrics
    assert found.audit["null_items"] == 3
    assert not found.notes


@pytest.mark.small
def test_matrices_of_both_sides() -> None:
    labels = np.array([[5, 6], [8, -1]])
    predictions = np.array([[5, -1, -1], [9, 8, -1]])
    found = rankmill.evaluate(
        rankmill.Labels(labels, padding=-1),
        rankmill.Predictions(predictions, padding=-1),
        ["map", "setp"],
    )
    assert dict(found.metrics) == dict(
        rankmill.evaluate([[5, 6], [8]], [[5], [9, 8]], ["map", "setp"]).metrics
    )
    assert (found.audit["null_labels"], found.audit["null_items"]) == (1, 3)


@pytest.mark.small
@pytest.mark.parametrize(
    ("lists", "told"), [([5, -1, -1], 1), ([-1], 0), ([-1, 5], 0), ([5, 6], 0)]
)
@pytest.mark.parametrize("kind", [int, str, np.uint64])
def test_a_note_where_lists_end_in_padding(lists: list[int], told: int, kind: Any) -> None:
    if kind is np.uint64:
        lists, told = [one % 2**64 for one in lists], 0
    items = pa.array(
        [kind(item) for item in lists], None if kind is str else pa.from_numpy_dtype(kind)
    )
    run = pa.table({"query": [1], "items": pa.ListArray.from_arrays([0, len(lists)], items)})
    labels = pa.table({"query": [1], "items": pa.ListArray.from_arrays([0, 1], items[:1])})
    notes = rankmill.evaluate(labels, run, ["map"]).notes
    assert sum("--padding -1" in note for note in notes) == told


@pytest.mark.small
@pytest.mark.parametrize("name", ["items", "train"])
def test_padding_in_a_catalogue(name: str) -> None:
    given: Any = {"train": {1: [4, -1], 2: [5]}, "items": pa.table({"item": [4, 5, -1]})}[name]
    with pytest.warns(RuntimeWarning, match="the catalogue holds the item -1"):
        found = flat(rankmill.evaluate, {1: [4]}, {1: [4]}, ["coverage"], **{name: given})
    assert found["coverage"] == 1 / 3
    found = flat(rankmill.evaluate, {1: [4]}, {1: [4]}, ["coverage"], **{name: given}, padding=-1)
    assert found["coverage"] == 1 / 2


@pytest.mark.small
def test_padding_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="padding is 'PAD', but the items in 'items' of"):
        rankmill.evaluate(
            rankmill.Labels({1: [4]}, padding="PAD"),
            rankmill.Predictions({1: [4]}, padding="PAD"),
            ["map"],
        )
    ragged = rankmill.arrays.Ragged.from_lists([[1]])
    with pytest.raises(UsageError, match="holds no padding"):
        rankmill.evaluate(
            rankmill.Labels(ragged, padding=-1), rankmill.Predictions(ragged, padding=-1), ["map"]
        )


@pytest.mark.small
def test_padding_of_other_commands(tmp_path: Path, run_cli: Any) -> None:
    path = str(tmp_path / "run.csv")
    Path(path).write_text("query,item,score\n1,5,2\n1,-1,1\n2,-1,2\n2,6,1\n")
    catalogue = tmp_path / "items.csv"
    catalogue.write_text("item_id,name\n5,a\n6,b\n-1,none\n")
    told = run_cli(
        "evaluate", path, path, "-m", "coverage", "--items", catalogue, "--padding", "-1"
    )
    assert "coverage  1.00000" in told.stdout, told.stderr
    told = run_cli("convert", path, tmp_path / "run.parquet", "--padding", "-1", "--predictions")
    assert told.exit_code == 0, told.stderr
    assert pq.read_table(tmp_path / "run.parquet").column("items").to_pylist() == [["5"], ["6"]]
    assert "1  6 (1)\n" in run_cli("head", path, "--padding", "-1", "--predictions").stdout


@pytest.mark.small
@pytest.mark.parametrize(
    "items",
    [
        pa.ListArray.from_arrays([0, 3], pa.array(["a", "-1", "b"]).cast(pa.string_view())),
        pa.ListArray.from_arrays([0, 3], pa.array(["a", "-1", "b"]).dictionary_encode()),
        pa.FixedSizeListArray.from_arrays(pa.array(["x", "y", "z", "a", "-1", "b"]), 3)[1:],
        pa.ListArray.from_arrays([0, 4], pa.array([b"a", None, b"-1", b"b"])),
    ],
    ids=["views", "dictionary", "fixed", "bytes"],
)
def test_padding_in_lists_of_any_type(items: Any) -> None:
    run = pa.table({"query": [1], "items": items})
    found = rankmill.evaluate(
        rankmill.Labels({1: ["b"]}, padding="-1"), rankmill.Predictions(run, padding="-1"), ["map"]
    )
    assert found["map"] == 0.5
    assert found.audit["null_items"] == items[0].values.null_count + 1


@pytest.mark.small
@given(st.lists(st.lists(st.sampled_from([-1, 0, 1, 11, 2**62]), max_size=4)))
@settings(max_examples=examples(100), deadline=None)
@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.int8(), pa.string(), pa.binary()])
def test_lists_that_end_in_padding_are_counted(kind: Any, lists: list[list[int]]) -> None:
    text = kind in (pa.string(), pa.binary())
    usable = [one for one in (-1, 0, 1, 11, 2**62) if text or _fits(one, kind)]
    lists = [[one for one in some if one in usable] for some in lists]
    flat = [str(one) if text else one for some in lists for one in some]
    ids = to_ids(pa.array(flat, pa.string() if text else kind).cast(kind), "items")
    offsets = np.cumsum([0, *map(len, lists)])
    wanted = sum(len(some) > 1 and some[-1] == -1 for some in lists)
    assert padded_tails(offsets, ids) == wanted


def _fits(number: int, kind: Any) -> bool:
    return {8: -128 <= number < 128}.get(kind.bit_width, number >= 0 or kind == pa.int64())
