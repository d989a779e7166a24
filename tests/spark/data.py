"""Made-up labels and predictions in all shapes, and what has to be equal in two results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

FIELDS = (
    *("metrics", "standard_errors", "bounds", "queries", "effective_queries", "audit"),
    *("semantics", "scope", "aliases", "notes", "gain_function"),
)
QUERIES = 90


def same(one: Any, other: Any) -> None:
    """Check that two results are the same to the last bit."""
    for field in FIELDS:
        assert getattr(one, field) == getattr(other, field), field
    for side in ("labels", "predictions"):
        mine, theirs = ({**each.inputs[side], "source": ""} for each in (one, other))
        assert mine == theirs


def identity(kind: str, number: int) -> Any:
    return number if kind == "integers" else f"id {number}"


def tables(kind: str, labels: str, predictions: str, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """Labels with gains and weights, and predictions with confidences, each "wide" or "long".

    Many confidences are equal, but not within a query: there, long rows of Spark have no order.
    """
    draw = np.random.default_rng(seed)
    of_labels, of_predictions = [], []
    for number in range(QUERIES):
        query = identity(kind, number)
        if number % 9:  # some queries are on one side only
            items = draw.choice(12, draw.integers(1, 5), replace=False)
            of_labels.append(
                {
                    "query": query,
                    "item": [identity(kind, item) for item in items.tolist()],
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
                    "item": [identity(kind, item) for item in items.tolist()],
                    "score": scores.astype(np.float32).tolist(),
                }
            )
    draw.shuffle(of_predictions)
    return (
        shaped(of_labels, labels, {"gain": pa.float64()}, {"weight": pa.float64()}),
        shaped(of_predictions, predictions, {"score": pa.float32()}, {}),
    )


def shaped(rows: list[Any], shape: str, numbers: Any, facts: Any) -> pa.Table:
    if shape == "long":
        names = ["item", *numbers]
        rows = [
            {**row, **dict(zip(names, values, strict=True))}
            for row in rows
            for values in zip(*(row[name] for name in names), strict=True)
        ]
    else:
        numbers = {name: pa.list_(kind) for name, kind in numbers.items()}
    table = pa.Table.from_pylist(rows)
    kinds = {"query": table.schema.field("query").type, "item": table.schema.field("item").type}
    return table.select([*kinds, *numbers, *facts]).cast(pa.schema({**kinds, **numbers, **facts}))
