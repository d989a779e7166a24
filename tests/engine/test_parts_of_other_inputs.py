"""Parts tell what they read: those of the same rows merge, wherever they are, and no others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import rankmill
from parts_of_inputs import sent
from rankmill.arrays import Matrix, Ragged
from rankmill.parts import State, compare_part, evaluate_part
from rankmill.sources.nouns import Catalogue, Labels, Predictions
from sealed_rows import resealed

QUERIES = 60
IDS = np.arange(QUERIES)
Change = Callable[[dict[str, Any]], None]


def lists(seed: int, longest: int) -> list[list[int]]:
    return (
        np.random.default_rng(seed)
        .permuted(np.tile(np.arange(20), (QUERIES, 1)), axis=1)[:, :longest]
        .tolist()
    )


def sides() -> dict[str, Any]:
    """What a part reads, as tables: those of the labels and predictions are of lists."""
    scores = [[5.0, 4.0, 3.0, 2.0, 1.0]] * QUERIES
    labels = {"user_id": IDS, "items": lists(1, 2), "weight": IDS % 3 + 1.0, "day": IDS % 5}
    run = {"user_id": IDS, "items": lists(2, 5), "score": scores}
    return {
        "labels": pa.table(labels),
        "predictions": pa.table(run),
        "train": pa.table({"user_id": IDS, "items": lists(3, 2)}),
        "by": pa.table(
            {
                "user_id": IDS,
                "country": [f"c{one % 4}" for one in IDS],
                "new": [[True, False, None][one % 3] for one in IDS],
                "since": [date(2026, 1, 1 + one % 3) for one in IDS],
            }
        ),
    }


def part_of(number: str, given: dict[str, Any]) -> State:
    labels = Labels(given["labels"], weight="weight")
    catalogue = Catalogue(train=given["train"], drop_seen=True)
    more: Any = {"by": [given["by"], "day"], "catalogue": catalogue, "part": number}
    return evaluate_part(labels, given["predictions"], ["map@3"], **more)


def with_cell(table: pa.Table, name: str, row: int, value: Any) -> pa.Table:
    cells = table[name].to_pylist()
    cells[row] = value
    return table.set_column(
        table.schema.get_field_index(name), name, pa.array(cells, table[name].type)
    )


def exploded(table: pa.Table) -> pa.Table:
    listed = table.select(["user_id", "items"]).to_pylist()
    rows = [(one["user_id"], item) for one in listed for item in one["items"]]
    users, items = map(list, zip(*rows, strict=True))
    return pa.table({"user_id": users, "item_id": items})


# ------------------------------------------------------------------ other rows


def changed(side: str, name: str, value: Any) -> Change:
    """Change a cell of a side, of a query of the first part, which the second one drops."""

    def change(given: dict[str, Any]) -> None:
        first = {*range(QUERIES)} - {*part_of_queries("2/2")}
        given[side] = with_cell(given[side], name, min(first), value)

    return change


def part_of_queries(number: str) -> list[int]:
    from rankmill.columns.ids import to_ids
    from rankmill.columns.seal import SEEDS, hash_ids

    place, of = map(int, number.split("/"))
    inside = hash_ids(to_ids(IDS, "ids"), SEEDS[0]) % np.uint64(of) == place - 1
    return np.flatnonzero(inside).tolist()


def shorter(side: str) -> Change:
    return lambda given: given.update({side: given[side].slice(0, QUERIES - 1)})


OTHERS: dict[str, tuple[Change, str]] = {
    "an item": (changed("predictions", "items", [1, 2, 3, 4, 99]), "predictions"),
    "the order": (changed("predictions", "items", [4, 3, 2, 1, 0]), "predictions"),
    "no query": (shorter("predictions"), "predictions"),
    "a label": (changed("labels", "items", [98, 99]), "labels"),
    "a weight": (changed("labels", "weight", 9.0), "labels"),
    "a day": (changed("labels", "day", 4), "labels"),
    "a text": (changed("by", "country", "c9"), "slices"),
    "a null": (changed("by", "country", None), "slices"),
    "a bool": (changed("by", "new", None), "slices"),
    "a date": (changed("by", "since", date(2026, 2, 1)), "slices"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_parts_of_other_rows_do_not_merge(what: str) -> None:
    change, named = OTHERS[what]
    given = sides()
    one = part_of("1/2", given)
    assert one.merge(part_of("2/2", given)).result().queries == QUERIES
    change(given)
    other = part_of("2/2", given)
    wanted = rf"parts of other {named}: part 1 of 2 read \d+ rows .* and part 2 (5|6)\d rows"
    for two in (other, sent(other)):
        with pytest.raises(rankmill.UsageError, match=wanted):
            one.merge(two)
        with pytest.raises(rankmill.UsageError, match=f"parts of other {named}"):
            two.merge(sent(one))


def test_parts_of_another_training_set_do_not_merge() -> None:
    given = sides()
    one = part_of("1/2", given)
    changed("train", "items", [0, 19])(given)
    with pytest.raises(rankmill.UsageError, match="states of other catalogue do not merge: 20"):
        one.merge(part_of("2/2", given))


def test_three_parts_are_named_of_which_one_differs() -> None:
    given = sides()
    both = part_of("1/3", given).merge(part_of("3/3", given))
    changed("labels", "items", [98, 99])(given)
    with pytest.raises(rankmill.UsageError, match=r"parts 1, 3 of 3 read 60 rows .* and part 2 60"):
        both.merge(part_of("2/3", given))


def test_order_ranks_rows_without_scores() -> None:
    given = sides()
    rows = exploded(given["predictions"])
    turned = rows.take(pa.array(np.arange(len(rows)).reshape(-1, 5)[:, ::-1].ravel()))
    one = evaluate_part(given["labels"], rows, ["map@3"], part="1/2")
    with pytest.raises(rankmill.UsageError, match="parts of other predictions"):
        one.merge(evaluate_part(given["labels"], turned, ["map@3"], part="2/2"))
    labels = exploded(given["labels"])
    one = evaluate_part(labels, rows, ["map@3"], part="1/2")
    backwards = labels.take(pa.array(np.arange(len(labels))[::-1]))
    assert one.merge(evaluate_part(backwards, rows, ["map@3"], part="2/2")).result().queries


def test_scores_matter_where_they_are_read() -> None:
    given = sides()
    other = with_cell(given["predictions"], "score", 3, [5.0, 4.0, 3.0, 2.0, 1.5])
    for metrics in (["map@3"], ["map@3", "gap"]):
        one = evaluate_part(given["labels"], given["predictions"], metrics, part="1/2")
        two = evaluate_part(given["labels"], other, metrics, part="2/2")
        if metrics == ["map@3"]:
            assert one.merge(two).result().queries == QUERIES
            continue
        with pytest.raises(rankmill.UsageError, match="parts of other predictions"):
            one.merge(two)


def test_a_state_of_format_6_does_not_tell_what_it_read() -> None:
    given = sides()
    rows = [part_of(number, given).to_row() for number in ("1/2", "2/2")]
    old = [
        State.from_row(
            resealed(
                {name: row[name] for name in row if not name.startswith("part.read")}
                | {"format": 6}
            )
        )
        for row in rows
    ]
    assert old[0].merge(old[1]).result().queries == QUERIES
    with pytest.raises(
        rankmill.UsageError, match="and part 2 rows that a state of format 6 does not"
    ):
        State.from_row(rows[0]).merge(old[1])
    given["labels"] = given["labels"].slice(1)
    other = part_of("2/2", given).to_row()
    other = {name: other[name] for name in other if not name.startswith("part.read")}
    with pytest.raises(rankmill.UsageError, match="parts of other labels"):
        old[0].merge(State.from_row(resealed(other | {"format": 6})))


# ------------------------------------------------------------------ the same rows

Given = Callable[[pa.Table, Path, int], Any]


def to_folder(table: pa.Table, folder: Path, number: int) -> Path:
    """Halves in files whose names list them in the other order for every second part."""
    place = folder / str(number)
    place.mkdir()
    for half in (0, 1):
        name = f"{half if number % 2 else 1 - half}.parquet"
        pq.write_table(table.slice(30 * half, 30), place / name)
    return place


def copied(table: pa.Table, folder: Path, number: int) -> Path:
    pq.write_table(table, folder / "given.parquet")
    shutil.copy(folder / "given.parquet", folder / f"{number}.parquet")
    return folder / f"{number}.parquet"


def to_text(table: pa.Table, folder: Path, number: int) -> Path:
    pa_csv.write_csv(exploded(table), folder / f"{number}.csv")
    return folder / f"{number}.csv"


def stream(table: pa.Table, folder: Path, number: int) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(7 * number))


def text_stream(table: pa.Table, folder: Path, number: int) -> pa.RecordBatchReader:
    rows = exploded(table)
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(11 * number))


def dictionaries(table: pa.Table, folder: Path, number: int) -> Any:
    ids, items = table["user_id"].to_pylist(), table["items"].to_pylist()
    return {f"user {one}": listed for one, listed in zip(ids, items, strict=True)}


WAYS: dict[str, Given] = {
    "a copy": copied,
    "a folder in another order": to_folder,
    "text": to_text,
    "a frame": lambda table, folder, number: table.to_pandas(),
    "a table in chunks": lambda table, folder, number: pa.concat_tables(
        [table.slice(0, 20 * number), table.slice(20 * number)]
    ),
    "a stream": stream,
    "a stream of rows": text_stream,
    "a dict": dictionaries,
    "lists": lambda table, folder, number: table["items"].to_pylist(),
    "a Ragged": lambda table, folder, number: Ragged.from_lists(table["items"].to_pylist()),
}


@pytest.mark.parametrize("way", WAYS)
def test_parts_of_the_same_rows_merge_and_of_others_do_not(way: str, tmp_path: Path) -> None:
    given = sides()
    for side in ("labels", "predictions"):
        (tmp_path / side).mkdir()
        given[side] = given[side].select(["user_id", "items"])

    def part(number: int, threads: int, memory: int) -> State:
        of = [WAYS[way](given[n], tmp_path / n, number) for n in ("labels", "predictions")]
        more: Any = {"threads": threads, "memory": memory}
        return evaluate_part(*of, ["map@3"], part=f"{number}/2", **more)

    one, two = part(1, 1, 10), part(2, 3, 1 << 30)
    whole = rankmill.evaluate(given["labels"], given["predictions"], ["map@3"])
    assert one.merge(two).result().metrics == whole.metrics
    shutil.rmtree(tmp_path / "predictions")
    (tmp_path / "predictions").mkdir()
    last = given["predictions"]["items"].to_pylist()[-1]
    given["predictions"] = with_cell(given["predictions"], "items", QUERIES - 1, last[::-1])
    if (tmp_path / "labels" / "2").is_dir():
        shutil.rmtree(tmp_path / "labels" / "2")
    with pytest.raises(rankmill.UsageError, match="parts of other predictions"):
        one.merge(part(2, 2, 10))


def test_parts_of_a_matrix_divide_its_rows() -> None:
    scores = np.random.default_rng(5).normal(size=(QUERIES, 20))
    labels = lists(1, 2)
    one, two = (evaluate_part(labels, Matrix(scores), ["map@3"], part=f"{i}/2") for i in (1, 2))
    whole = rankmill.evaluate(labels, Matrix(scores), ["map@3"])
    found = one.merge(two).result()
    assert (found.metrics, found.audit) == (whole.metrics, whole.audit)
    scores[7] = scores[7][::-1]
    with pytest.raises(rankmill.UsageError, match="parts of other predictions"):
        one.merge(evaluate_part(labels, Matrix(scores), ["map@3"], part="2/2"))


def test_numbers_of_any_type_are_the_same_content() -> None:
    given = sides()
    one = evaluate_part(given["labels"], given["predictions"], ["map@3"], part="1/2")
    narrow = given["predictions"].cast(
        pa.schema(
            {"user_id": pa.int16(), "items": pa.list_(pa.int8()), "score": pa.list_(pa.float32())}
        )
    )
    assert one.merge(evaluate_part(given["labels"], narrow, ["map@3"], part="2/2")).result()


# ------------------------------------------------------------------ comparisons


def test_comparisons_that_share_queries_do_not_merge() -> None:
    given = sides()
    runs = {name: pa.table({"user_id": IDS, "items": lists(seed, 5)}) for name, seed in RUNS}
    halves = [
        compare_part(
            given["labels"].slice(at, 30), {n: one.slice(at, 30) for n, one in runs.items()}, "map"
        )
        for at in (0, 30)
    ]
    for one in (halves[0], type(halves[0]).from_table(halves[0].to_table())):
        assert one.merge(halves[1]).whole.queries == QUERIES
        with pytest.raises(rankmill.UsageError, match="their labels share queries"):
            one.merge(halves[0])
        with pytest.raises(rankmill.UsageError, match="their labels share queries"):
            one.merge(halves[1]).merge(halves[1])


def test_comparisons_of_another_training_set_do_not_merge() -> None:
    given = sides()
    runs = {name: Predictions(given["predictions"]) for name, _ in RUNS}

    def part(at: int) -> Any:
        labels = given["labels"].slice(at, 30)
        return compare_part(labels, runs, ["map"], catalogue=Catalogue(train=given["train"]))

    one = part(0)
    given["train"] = with_cell(given["train"], "items", 3, [0, 19])
    with pytest.raises(rankmill.UsageError, match="comparisons of other catalogue do not merge"):
        one.merge(part(30))


RUNS = ("old", 2), ("new", 3)
