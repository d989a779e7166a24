"""An aggregate that no file of the package knows: its class and the row of its metric suffice."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from rankmill.columns.ids import ids_to_arrow, take_ids
from rankmill.metrics import registry
from rankmill.metrics.aggregate import Aggregate, AggregateSettings, ScoredBlock, Totals, Value
from rankmill.metrics.base import MetricSpec
from rankmill.metrics.records.record import kind

pytestmark = pytest.mark.small


def read_items(row: Any, name: str) -> frozenset[Any]:
    return frozenset(row[name])


@dataclass(frozen=True)
class Distinct(Aggregate):
    """The distinct items among the first k predictions of all queries."""

    items: Annotated[frozenset[Any], kind(frozenset.union, read_items, sorted)] = frozenset()

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        offsets = scored.lists.offsets
        ranks = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
        kept = take_ids(scored.lists.items, np.flatnonzero(ranks < asked.metric.limit))
        return self.merge(type(self)(frozenset(ids_to_arrow(kept, set()).to_pylist())))

    def finish(self, totals: Totals) -> Value:
        return Value(float(len(self.items)))


@pytest.fixture(autouse=True)
def distinct_items(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("rankmill.metrics.distinct")
    module.Distinct = Distinct  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    row = MetricSpec(
        "distinct", None, "distinct items", "0 and up", "-", aggregate="distinct.Distinct"
    )
    for table in (registry.REGISTRY, registry.NAMES, registry._BY_NAME):
        monkeypatch.setitem(table, "distinct", row)


LABELS = pa.table({"user_id": [1, 2, 3], "items": [[1], [2], [3]]})
PREDICTIONS = pa.table({"user_id": [1, 2, 3], "items": [[1, 7], [2, 1], [7, 9, 8]]})


def test_it_is_computed_beside_others_and_needs_no_confidences() -> None:
    result = rankmill.evaluate(LABELS, PREDICTIONS, "distinct@1,map,distinct@2")
    assert result.metrics == {"distinct@1": 3.0, "map": 2 / 3, "distinct@2": 4.0}
    assert result.standard_errors["distinct@1"] is None
    assert result.per_query.column_names == ["user_id", "map"]
    assert result["Distinct@2"] == 4.0
    plan = rankmill.plan(LABELS, PREDICTIONS, "distinct@2")
    assert "score" not in plan["predictions"]["columns"]


def test_it_merges_and_travels() -> None:
    states = [
        rankmill.parts.evaluate_part(
            LABELS.slice(row, 1), PREDICTIONS.slice(row, 1), "distinct@2,map"
        )
        for row in range(3)
    ]
    rows = [pa.Table.from_pylist([state.to_row()]).to_pylist()[0] for state in states]
    first, second, third = map(rankmill.parts.State.from_row, rows)
    merged = third.merge(first.merge(second))
    assert merged.result().metrics == {"distinct@2": 4.0, "map": 2 / 3}


def test_what_it_lacks_is_told() -> None:
    with pytest.raises(rankmill.UsageError, match="explain does not support distinct"):
        rankmill.explain(LABELS, PREDICTIONS, "distinct", 1)
