"""What columns look like: half floats are numbers like others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import rankmill
from rankmill.sources.meaning.looks import look


def test_half_floats_are_numbers() -> None:
    whole, parts = (pa.array(np.array(one, np.float16)) for one in ([1, 2, 1], [0.5, 0.25, np.inf]))
    assert (look(whole), look(parts)) == ("integer", "fraction")
    ids = {"query_id": [1, 1, 2], "item_id": [1, 2, 1]}
    expected = rankmill.evaluate(
        pa.table(ids | {"gain": [1, 2, 1]}), pa.table(ids | {"score": [0.5, 0.25, 9.0]}), "ndcg"
    )
    found = rankmill.evaluate(
        pa.table(ids | {"gain": whole}), pa.table(ids | {"score": parts}), "ndcg"
    )
    assert found.metrics == expected.metrics
