"""What other tests share with those of parts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa

import rankmill

METRICS = ["map@3", "gap", "first_hit", "ndcg@5", "gap@2", "recall@4"]


FIELDS = ("metrics", "standard_errors", "bounds", "queries", "audit", "semantics")


CONFIDENCES = [-np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, np.inf]  # exact in float32


def random_parts(draw: random.Random, count: int) -> list[tuple[pa.Table, pa.Table]]:
    """Make wide labels and predictions; a part may lack one side, and has its own float type."""
    kinds = pa.list_(pa.int64())
    parts = []
    for part in range(count):
        queries = list(range(10 * part, 10 * part + draw.randrange(5)))
        labels = [draw.sample(range(6), draw.randrange(4)) for _ in queries]
        items = [draw.choices([*range(6), None], k=draw.randrange(6)) for _ in queries]
        scores = [[draw.choice(CONFIDENCES) for _ in listed] for listed in items]
        floats = pa.list_(draw.choice([pa.float32(), pa.float64()]))
        columns = {"q": pa.array(queries, pa.int64()), "items": pa.array(items, kinds)}
        columns["score"] = pa.array(scores, floats)
        parts.append(
            (
                pa.table({"q": columns["q"], "items": pa.array(labels, kinds)}),
                pa.table(columns).slice(0, draw.choice([len(queries), len(queries), 1])),
            )
        )
    return parts


def merged(states: list[Any], draw: random.Random) -> Any:
    """Merge all of them in any order and any tree, with some conversions to a table and back."""
    states = draw.sample(states, len(states))
    while len(states) > 1:
        one = states.pop(draw.randrange(len(states))).merge(states.pop(draw.randrange(len(states))))
        states.append(sent(one) if draw.random() < 0.5 else one)
    return states[0]


def sent(state: Any) -> Any:
    row = pa.Table.from_pylist([state.to_row()]).to_pylist()[0]
    return type(state).from_row(row)


def counted(state: rankmill.parts.State, parts: list[Any], draw: random.Random) -> Any:
    """The second pass over the predictions of some parts."""
    each = [
        rankmill.parts.second_pass(state, rankmill.Predictions(part[1], query="q"))
        for part in parts
    ]
    return {name: merged([one[name] for one in each], draw) for name in ("gap", "gap@2")}
