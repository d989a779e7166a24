"""A metric with needs that no file of the package knows: its class, theirs and its row suffice."""

from __future__ import annotations

import random
import sys
import types
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from rankmill.columns.seal import seal_of
from rankmill.metrics import registry
from rankmill.metrics.aggregate import (
    Aggregate,
    AggregateSettings,
    Closing,
    Need,
    Needs,
    ScoredBlock,
    Totals,
    Value,
)
from rankmill.metrics.base import MetricSpec
from rankmill.metrics.needs import TrainingRows, given
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.record import Count, Counts, Fixed

pytestmark = pytest.mark.small

RANKS = 8
BLOCKS: list[str] = []


class New(Need):
    """Whether each item is new: no query had it in training. It is found once for a block."""

    needs: ClassVar[Needs] = (TrainingRows,)

    @classmethod
    def find(cls, scored: ScoredBlock, catalogue: Any) -> np.ndarray:
        BLOCKS.append("new")
        return scored.needs[TrainingRows] < 0

    @classmethod
    def find_labels(cls, index: Any, catalogue: Any) -> np.ndarray:
        return given(given(catalogue).training).find(index.labels.items) < 0


@dataclass(frozen=True, eq=False)
class Places(Aggregate, Need):
    """How many lists reach each rank: added up once for all metrics that need it."""

    name = "places"
    given = "items"
    lacks = "needs to know what can be shown: give it with --items"

    counts: Counts = field(default_factory=lambda: np.zeros(RANKS, np.int64))
    largest: Fixed = 0

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        return cls(largest=max(one.k or 0 for one in asked.users))

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        BLOCKS.append("places")
        lengths = np.diff(scored.lists.offsets)
        reached = np.array([(lengths > rank).sum() for rank in range(RANKS)])
        return self.merge(type(self)(reached, self.largest))

    def check(self, row: state_rows.Row, prefix: str) -> None:
        if len(self.counts) != RANKS:
            raise state_rows.damaged(
                f"{prefix}counts holds {len(self.counts)} numbers, not {RANKS}"
            )


@dataclass(frozen=True)
class NewShare(Aggregate):
    """New items of all lists within k, over the places there; and among labels, behind the point.

    The labels that are new count as thousandths, so that it shows that they are known.
    """

    needs: ClassVar[Needs] = (New, Places)

    new: Count = 0
    labels: Count = 0
    cutoff: Fixed = 0

    @classmethod
    def init(cls, asked: AggregateSettings) -> Self:
        return cls(cutoff=asked.metric.k or 0)

    def update(self, scored: ScoredBlock, asked: AggregateSettings) -> Self:
        offsets, new = scored.lists.offsets, scored.needs[New]
        ranks = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
        return self.merge(type(self)(int((new & (ranks < self.cutoff)).sum())))

    def close(self, closing: Closing) -> Self:
        return self.merge(type(self)(labels=int(closing.needs[New].sum())))

    def finish(self, totals: Totals) -> Value:
        reached = totals.needs[Places].counts[: self.cutoff].sum()
        return Value(self.new / int(reached) + self.labels / 1000)


@pytest.fixture(autouse=True)
def new_share(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("rankmill.metrics.new_share")
    module.NewShare = NewShare  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    row = MetricSpec("new", None, "share of new", "0 to 1", "-", aggregate="new_share.NewShare")
    for table in (registry.REGISTRY, registry.NAMES, registry._BY_NAME):
        monkeypatch.setitem(table, "new", row)
    BLOCKS.clear()


DRAW = random.Random(4)
LABELS = {query: DRAW.sample(range(30), 3) for query in range(200)}
PREDICTIONS = {query: DRAW.sample(range(30), DRAW.randint(1, RANKS)) for query in range(200)}
TRAIN = {query: DRAW.sample(range(20), 2) for query in range(100)}
CATALOGUE = rankmill.Catalogue(train=TRAIN, items=pa.table({"item": list(range(30))}))


def table(lists: dict[int, list[int]], some: slice = slice(None)) -> pa.Table:
    chosen = list(lists)[some]
    return pa.table({"user_id": chosen, "items": [lists[one] for one in chosen]})


def wanted(k: int) -> float:
    known = {item for had in TRAIN.values() for item in had}
    shown = [item for listed in PREDICTIONS.values() for item in listed[:k]]
    labels = [item for right in LABELS.values() for item in right if item not in known]
    return sum(item not in known for item in shown) / len(shown) + len(labels) / 1000


@pytest.mark.parametrize("threads", [1, 3])
def test_needs_are_found_once_a_block_and_added_up_once(threads: int) -> None:
    result = rankmill.evaluate(
        table(LABELS), table(PREDICTIONS), "new@2,map,new@5", catalogue=CATALOGUE, threads=threads
    )
    assert result["new@2"] == wanted(2)
    assert result["new@5"] == wanted(5)
    assert sorted(result.metrics) == ["map", "new@2", "new@5"]
    assert BLOCKS.count("new") == BLOCKS.count("places") > 0
    once = list(BLOCKS)
    BLOCKS.clear()
    rankmill.evaluate(
        table(LABELS), table(PREDICTIONS), "new@2", catalogue=CATALOGUE, threads=threads
    )
    assert sorted(BLOCKS) == sorted(once)  # as many as for two metrics


def part(some: slice, metrics: str = "new@2,map,new@5") -> rankmill.parts.State:
    return rankmill.parts.evaluate_part(
        table(LABELS, some), table(PREDICTIONS, some), metrics, catalogue=CATALOGUE
    )


def test_it_merges_and_travels() -> None:
    parts = [part(slice(start, start + 70)).to_row() for start in (140, 0, 70)]
    parts = [pa.Table.from_pylist([row]).to_pylist()[0] for row in parts]
    first, second, third = map(rankmill.parts.State.from_row, parts)
    merged = third.merge(first).merge(second)
    assert merged.result().metrics["new@2"] == wanted(2)
    assert merged.result().metrics["new@5"] == wanted(5)
    whole = part(slice(None)).to_row()
    assert seal_of(merged.to_row()) == seal_of(whole)
    assert [name for name in whole if "places" in name] == ["places.counts", "places.largest"]
    assert whole["places.largest"] == 5
    assert whole["new@2.cutoff"] == 2


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("places.counts", [1] * (RANKS - 1), "places.counts holds 7 numbers, not 8"),
        ("places.counts", [-1] * RANKS, r"places.counts\[0\] is -1, not a count"),
        ("places.largest", "5", "places.largest is '5', not a count"),
        ("new@5.new", -1, "new@5.new is -1, not a count"),
        ("places.counts", None, "it has no 'places.counts'"),
    ],
)
def test_a_damaged_row_is_refused(field: str, value: Any, message: str) -> None:
    row = part(slice(0, 9)).to_row()
    with pytest.raises(rankmill.UsageError, match="its checksum is not that of its fields"):
        rankmill.parts.State.from_row(row | {field: value})
    row = {name: one for name, one in row.items() if name != "row_checksum"} | {field: value}
    row = {name: one for name, one in row.items() if one is not None}
    with pytest.raises(rankmill.UsageError, match=message):
        rankmill.parts.State.from_row(state_rows.sealed(row))


def test_an_error_says_what_it_lacks() -> None:
    of = table(LABELS), table(PREDICTIONS)
    planned = rankmill.plan(*of, "map,new@2", catalogue=CATALOGUE)
    assert "score" not in planned["predictions"]["columns"]
    for beside, message in (
        ({}, "^new@2 needs what queries had in training"),
        (
            {"train": TRAIN},
            "^new@2 needs to know what can be shown: give it with Catalogue.items=....",
        ),
    ):
        with pytest.raises(rankmill.UsageError, match=message):
            rankmill.evaluate(*of, "map,new@2", catalogue=rankmill.Catalogue(**beside))
    with pytest.raises(rankmill.UsageError, match=r"leave out this metric, or"):
        rankmill.plan(rankmill.Labels(of[0], weight="w"), of[1], "new@2", catalogue=CATALOGUE)
