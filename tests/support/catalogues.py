"""What other tests share with those of catalogue."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

import catalogue_oracle

CLOSE = {"rel": 1e-12, "abs": 1e-15}


MORE = (
    catalogue_oracle.TRAINED
    | catalogue_oracle.SCORED
    | catalogue_oracle.GROUPED
    | catalogue_oracle.FEATURED
)


NAMES = [name for name in catalogue_oracle.VALUES if name not in MORE]


METRICS = [f"{name}@{k}" for name in NAMES for k in (1, 3, 50)]


METRICS += [name for name in NAMES if name != "personalization"]


METRICS += ["gini(of=N)@3", "gini(of=N)"]


# Integers that lie close together, far apart and below 0, and strings that share a start.
KINDS: dict[str, Any] = {
    "near": (lambda n: n, pa.int16()),
    "far": (lambda n: (n - 4) * 10**15, pa.int64()),
    "large": (lambda n: 2**63 + n, pa.uint64()),
    "text": (lambda n: "item-of-some-length-" * (n % 2) + str(n // 2), pa.string()),
}


LISTS = st.dictionaries(
    st.integers(0, 9), st.lists(st.integers(0, 11), max_size=6, unique=True), max_size=8
)


def table(lists: dict[int, list[Any]], kind: Any, name: str = "items") -> pa.Table:
    return pa.table(
        {
            "query": pa.array([*lists], pa.int64()),
            name: pa.array([*lists.values()], pa.list_(kind)),
        }
    )


def assert_values(found: dict[str, float | None], expected: dict[str, float | None]) -> None:
    for name, value in expected.items():
        wanted = value if value is None else pytest.approx(value, **CLOSE)
        assert found[name] == wanted, name
