"""Made-up labels and predictions in all shapes, and what has to be equal in two results."""

from __future__ import annotations

import itertools
import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rankmill.spark.exchange.layout import to_arrow

WORKED = ("seconds", "checksum", "inputs", "baseline", "result", "comparison")
FIELDS = (
    *("metrics", "standard_errors", "bounds", "queries", "effective_queries", "audit"),
    *("semantics", "scope", "aliases", "notes", "gain_function"),
)
QUERIES = 90
_FILES, _NUMBERS = tempfile.TemporaryDirectory(), itertools.count()
# Kinds of ids: as Arrow types, and as values of a number.
KINDS: dict[str, tuple[Any, Any]] = {
    "integers": (pa.int64(), int),
    "small integers": (pa.int32(), int),
    "large integers": (pa.int64(), lambda number: (1 << 62) + number),
    "strings": (pa.string(), "id {}".format),
    "large strings": (pa.large_string(), "id {} \N{SNOWMAN}".format),
}


def frame_of(session: Any, table: Any) -> Any:
    """A DataFrame of a table of Arrow, which Spark 3.5 does not take."""
    if session.version >= "4":
        return session.createDataFrame(table)
    path = f"{_FILES.name}/{next(_NUMBERS)}.parquet"
    pq.write_table(table, path)
    return session.read.parquet(path)


def as_frames(notes: list[str]) -> list[str]:
    """Notes on tables as those on DataFrames of the same rows."""
    return [one.replace("the table of", "the DataFrame of") for one in notes]


def same(one: Any, other: Any) -> None:
    """Check that two results are the same to the last bit."""
    for field in FIELDS:
        mine, theirs = getattr(one, field), getattr(other, field)
        assert mine == (as_frames(theirs) if field == "notes" else theirs), field
    for side in ("labels", "predictions"):
        mine, theirs = ({**each.inputs[side], "source": ""} for each in (one, other))
        assert mine == theirs


def same_with(found: Any, whole: Any) -> None:
    """Check that two results are the same, with their slices and what a catalogue adds."""
    same(found, whole)
    assert found.lists == whole.lists
    assert found.sums == whole.sums
    assert found.inputs.keys() == whole.inputs.keys()
    for name in found.inputs:
        assert found.inputs[name] | {"source": ""} == whole.inputs[name] | {"source": ""}
    for name in ("groups", "by"):
        one, other = getattr(found, name), getattr(whole, name)
        assert one is other is None or one.equals(other), name


def alike(found: Any, whole: Any) -> None:
    """Check that comparisons or verdicts say the same, except for the names of inputs."""
    one, other = (
        {name: value for name, value in each.to_dict().items() if name not in WORKED}
        for each in (found, whole)
    )
    if "notes" in other:
        other["notes"] = as_frames(other["notes"])
    assert one == other


def same_verdict(found: Any, whole: Any) -> None:
    """Check that two verdicts are the same, with their results and comparisons."""
    alike(found, whole)
    same(found.result, whole.result)
    assert (found.comparison is None) == (whole.comparison is None)
    if whole.comparison is not None:
        alike(found.comparison, whole.comparison)


def same_queries(frame: Any, table: pa.Table) -> None:
    """Check that a DataFrame has the values of queries of a table, in any order."""
    found = to_arrow(frame)
    assert found.column_names == table.column_names
    key = [(found.column_names[0], "ascending")]
    assert found.sort_by(key).to_pylist() == table.sort_by(key).to_pylist()


def tables(kind: str, labels: str, predictions: str, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """Labels with gains and weights, and predictions with confidences, each "wide" or "long".

    Many confidences are equal, but not within a query: there, long rows of Spark have no order.
    """
    draw = np.random.default_rng(seed)
    id_type, identity = KINDS[kind]
    of_labels, of_predictions = [], []
    for number in range(QUERIES):
        query = identity(number)
        if number % 9:  # some queries are on one side only
            items = draw.choice(12, draw.integers(1, 5), replace=False)
            of_labels.append(
                {
                    "query": query,
                    "item": [identity(item) for item in items.tolist()],
                    "gain": draw.integers(0, 4, len(items)).astype(float).tolist(),
                    "weight": float(number % 5),
                }
            )
        if number % 7:
            items = draw.choice(12, draw.integers(1, 8), replace=False)
            scores = np.sort(draw.choice(30, len(items), replace=False))[::-1] / 32
            of_predictions.append(
                {
                    "query": query,
                    "item": [identity(item) for item in items.tolist()],
                    "score": scores.astype(np.float32).tolist(),
                }
            )
    draw.shuffle(of_predictions)
    return (
        shaped(of_labels, labels, id_type, {"gain": pa.float64()}, {"weight": pa.float64()}),
        shaped(of_predictions, predictions, id_type, {"score": pa.float32()}, {}),
    )


def shaped(rows: list[Any], shape: str, id_type: Any, numbers: Any, facts: Any) -> pa.Table:
    kinds = {"item": id_type, **numbers}
    if shape == "long":
        rows = [
            {**row, **dict(zip(kinds, values, strict=True))}
            for row in rows
            for values in zip(*(row[name] for name in kinds), strict=True)
        ]
    else:
        kinds = {name: pa.list_(kind) for name, kind in kinds.items()}
    return pa.Table.from_pylist(rows, pa.schema({"query": id_type, **kinds, **facts}))
