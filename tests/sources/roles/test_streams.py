"""A stream that breaks off is an error that names it, however often and far ahead it is read."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import tells

import rankmill
from rankmill import Catalogue, InputError, Predictions
from rankmill.parts import evaluate_part
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.roles.source import InputOptions, batch_of

pytestmark = pytest.mark.small

BATCH, BATCHES = 40, 9
ROWS = BATCH * BATCHES
STOPS = 1, 5 * BATCH, ROWS - 1  # the number of rows before the error
ROW = np.arange(ROWS)
SHAPES = {
    "sorted": {"query_id": ROW // 6, "item_id": ROW % 97, "score": 1.0 / (1 + ROW)},
    "scattered": {"query_id": ROW % 60, "item_id": ROW % 97, "score": 1.0 / (1 + ROW)},
    "wide": {"query_id": ROW, "items": [[1, 2]] * ROWS, "scores": [[0.5, 0.25]] * ROWS},
}
TABLES = {shape: pa.table(columns) for shape, columns in SHAPES.items()}
GOOD, LABELS = TABLES["sorted"], pa.table({"query_id": ROW, "item_id": ROW % 97})
BY = pa.table({"query_id": ROW, "country": [f"of {row % 3}" for row in ROW]})


class BrokenError(Exception):
    """What the producer of the rows raises."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams of few rows have many batches."""
    monkeypatch.setattr("rankmill.sources.roles.streams.SMALL_ROWS", BATCH)
    monkeypatch.setattr("rankmill.sources.memory.python_objects.BATCH_ROWS", BATCH)


def batches(table: pa.Table, stop: int, error: BaseException) -> Iterator[pa.RecordBatch]:
    yield from table.slice(0, stop).to_batches(BATCH)
    raise error


def record_batches(table: pa.Table, stop: int, error: BaseException) -> Any:
    return pa.RecordBatchReader.from_batches(table.schema, batches(table, stop, error))


def dicts(table: pa.Table, stop: int, error: BaseException) -> Iterator[dict[str, Any]]:
    yield from table.slice(0, stop).to_pylist()
    raise error


def named_tuples(table: pa.Table, stop: int, error: BaseException) -> Iterator[Any]:
    yield from itertools.starmap(
        namedtuple("Row", table.column_names),  # type: ignore[misc]
        zip(*table.slice(0, stop).to_pydict().values(), strict=True),
    )
    raise error


class Capsule:
    """Anything with an Arrow stream, which tells no more of an error than its text."""

    def __init__(self, *told: Any) -> None:
        self.reader = record_batches(*told)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader.__arrow_c_stream__(requested_schema)


def relation(table: pa.Table, stop: int, error: BaseException) -> Any:
    duckdb = pytest.importorskip("duckdb")
    # A query gives 2048 rows at once; no id comes twice, whichever rows come first.
    ids = table["query_id"].to_numpy()
    copies = [table.set_column(0, "query_id", pa.array(ids + 10**6 * i)) for i in range(12)]
    given = duckdb.from_arrow(pa.concat_tables(copies))
    rows = "select *, row_number() over () as row from given"
    failing = f"cast(case when row > {12 * stop} then '{error}' else query_id::text end as bigint)"
    columns = ", ".join(table.column_names[1:])
    return given.query("given", f"select {failing} as query_id, {columns} from ({rows})")


def lazy_frame(table: pa.Table, stop: int, error: BaseException) -> Any:
    polars = pytest.importorskip("polars")

    def check(frame: Any) -> Any:
        # Older Polars asks for the schema with a frame without this column or rows.
        if "row" not in frame.columns or not len(frame):
            return frame.drop("row", strict=False)
        if frame["row"].max() >= stop:
            raise error
        return frame.drop("row")

    frame = polars.from_arrow(table).with_row_index("row").lazy()
    return frame.map_batches(check, schema=polars.from_arrow(table).schema)


MAKERS: dict[str, Callable[..., Any]] = {
    "RecordBatchReader": record_batches,
    "generator": dicts,
    "Capsule": Capsule,
    "relation": relation,
    "LazyFrame": lazy_frame,
}


def calls(folder: Path) -> dict[str, Callable[..., Any]]:
    """What reads predictions."""

    def compare(data: Any, **more: Any) -> Any:
        return rankmill.compare(LABELS, {"old": GOOD, "new": data}, "map", **more)

    def convert(data: Any, **more: Any) -> Any:
        return rankmill.convert(Predictions(data), folder / "run.parquet", **more)

    return {
        "compare": compare,
        "convert": convert,
        "evaluate": lambda data, **more: rankmill.evaluate(LABELS, data, "map", **more),
        "gap": lambda data, **more: rankmill.evaluate(LABELS, data, "gap", memory=1, **more),
        "gate": lambda data, **more: rankmill.gate(LABELS, data, "map >= 0.0001", **more),
        "explain": lambda data, **more: rankmill.explain(LABELS, data, "map", 3, **more),
        "part": lambda data, **more: evaluate_part(LABELS, data, "map", **more),
    }


@pytest.mark.rows(3)
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("shape", TABLES)
def test_predictions_that_break_off(tmp_path: Path, shape: str, kind: str) -> None:
    for call, stop, threads in itertools.product(calls(tmp_path).values(), STOPS, (1, 2)):
        with pytest.raises(InputError) as caught:
            call(MAKERS[kind](TABLES[shape], stop, BrokenError("lost")), threads=threads)
        told = tells(caught.value, [f"the {kind} of predictions broke off: ", "lost", "fix what"])
        assert "\n" not in told
    assert not [*tmp_path.iterdir()]


INPUTS: dict[str, tuple[pa.Table, Callable[[Any], Any]]] = {
    "labels": (LABELS, lambda data: rankmill.evaluate(data, GOOD, "map")),
    "labels with weights": (
        LABELS.append_column("weight", pa.array(ROW % 5 + 1)),
        lambda data: rankmill.evaluate(rankmill.Labels(data, weight="weight"), GOOD, "map"),
    ),
    "labels to convert": (
        LABELS,
        lambda data: rankmill.convert(rankmill.Labels(data), "run.parquet"),
    ),
    "train": (
        TABLES["scattered"].select([0, 1]),
        lambda data: rankmill.evaluate(LABELS, GOOD, "novelty@3", catalogue=Catalogue(train=data)),
    ),
    "items": (
        LABELS.select(["item_id"]),
        lambda data: rankmill.evaluate(LABELS, GOOD, "coverage@3", catalogue=Catalogue(items=data)),
    ),
    "features": (
        pa.table({"item_id": ROW, "vector": [[1.0, row] for row in ROW]}),
        lambda data: rankmill.evaluate(
            LABELS, GOOD, "ild_cosine@3", catalogue=Catalogue(features=data)
        ),
    ),
    "by": (BY, lambda data: rankmill.evaluate(LABELS, GOOD, "map", by=data)),
    "by in a gate": (
        BY,
        lambda data: rankmill.gate(LABELS, GOOD, "map[country=*] >= 0.0001", by=data),
    ),
    "adjust": (
        pa.table({"query_id": ROW, "load": ROW % 7}),
        lambda data: rankmill.compare(LABELS, {"old": GOOD, "new": GOOD}, "map", adjust=data),
    ),
    "predictions as a baseline": (
        TABLES["scattered"],
        lambda data: rankmill.gate(LABELS, GOOD, "map drop <= 5%", baseline=data),
    ),
}


@pytest.mark.parametrize("role", INPUTS)
def test_other_inputs_that_break_off(role: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    table, call = INPUTS[role]
    for make, stop in itertools.product((record_batches, named_tuples), STOPS):
        with pytest.raises(InputError) as caught:
            call(make(table, stop, BrokenError("lost")))
        tells(
            caught.value, [f" of {role.split()[0]} broke off: BrokenError: lost; expected all rows"]
        )


@pytest.mark.parametrize("error", [BrokenError("lost"), KeyboardInterrupt()])
@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_a_stream_that_is_kept_breaks_off_each_time(memory: int, error: BaseException) -> None:
    source = open_source(record_batches(GOOD, 5 * BATCH, error), InputOptions("predictions"))
    assert source.kept is not None
    with closing(source.kept(memory, None)) as kept:
        for _ in range(2):
            rows = 0
            with pytest.raises((InputError, KeyboardInterrupt)):  # noqa: PT012
                for block in kept.pieces(["item_id"])[0]:
                    rows += batch_of(block).data.num_rows
            assert rows == 5 * BATCH


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), MemoryError("no room")])
@pytest.mark.parametrize("make", [record_batches, dicts])
def test_what_is_no_error_of_the_rows_stays_what_it_is(make: Any, error: BaseException) -> None:
    """Ctrl-C, the end of the process, and a shortage of the machine are not of the input."""
    for threads, stop in itertools.product((1, 2), STOPS):
        with pytest.raises(type(error)) as caught:
            rankmill.evaluate(
                LABELS, make(TABLES["scattered"], stop, error), "map", threads=threads
            )
        assert caught.value is error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionError("reset\nby peer"), "ConnectionError: reset; expected"),
        (RuntimeError(), "RuntimeError; expected"),
        (InputError("row 7 is bad"), "row 7 is bad"),
    ],
)
def test_what_is_told_of_an_error(error: Exception, told: str) -> None:
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(LABELS, dicts(GOOD, 1, error), "map")
    assert "\n" not in tells(caught.value, [told])
    assert error in (caught.value, caught.value.__cause__)


def test_a_stream_that_cannot_begin() -> None:
    class Refused:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            raise ConnectionError("refused")

    with pytest.raises(InputError, match="the Refused of labels broke off: ConnectionError: ref"):
        rankmill.evaluate(Refused(), GOOD, "map")


@pytest.mark.parametrize("cut", ["gate", "cluster"])
def test_rows_that_come_once_tell_their_columns_and_cut(cut: str) -> None:
    """The names of the columns are asked for before the rows are read."""

    def found(by: Any) -> Any:
        if cut == "gate":
            verdict = rankmill.gate(LABELS, GOOD, "map[country=*] >= 0.0001", by=by)
            return verdict.outcomes, verdict.notes
        runs = {"old": GOOD, "new": TABLES["scattered"]}
        return rankmill.compare(LABELS, runs, "map", by=by, cluster="country").to_dict()["clusters"]

    rows = map(namedtuple("Row", BY.column_names)._make, zip(*BY.to_pydict().values(), strict=True))
    assert found(rows) == found(BY)
