"""Metrics over groups of items: the oracle, known answers, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import catalogue_oracle
import rankmill
from catalogues import KINDS, LISTS, assert_values, table
from flat import flat
from item_groups import GROUPS
from rankmill import InputError, UsageError
from rankmill.columns.elementary import discounts, log2
from rankmill.kernels import catalogue as kernels
from rankmill.metrics.aggregates.parity import Parity, worths
from rankmill.show.writers import write
from sealed_rows import resealed
from strategies import examples

METRICS = [f"{name}{at}" for name in catalogue_oracle.GROUPED for at in ("@1", "@3", "")]


@pytest.mark.small
@settings(max_examples=examples(60))
@given(LISTS, LISTS, LISTS, GROUPS, st.sampled_from([*KINDS]))
def test_the_oracle(
    labels: dict[int, list[int]],
    predictions: dict[int, list[int]],
    train: dict[int, list[int]],
    groups: dict[int, set[str]],
    kind: str,
) -> None:
    """Lists of groups, or a row for each: the same bits; so are two parts in any order."""
    if not any(labels.values()) or not any(train.values()) or not any(groups.values()):
        return
    name, arrow = KINDS[kind]
    sides = [
        {query: [name(item) for item in listed] for query, listed in one.items()}
        for one in (labels, predictions, train)
    ]
    named = {name(item): one for item, one in groups.items()}
    expected = {
        text: catalogue_oracle.value(text, *sides[:2], train=sides[2], groups=named)
        for text in METRICS
    }
    lists = {
        "item": pa.array([*named], arrow),
        "genres": pa.array([sorted(one) for one in named.values()], pa.list_(pa.string())),
    }
    pairs = [(item, one) for item, several in named.items() for one in [*several, None]]
    rows = {
        "item": pa.array([item for item, _ in reversed(pairs)], arrow),
        "genres": pa.array([one for _, one in reversed(pairs)], pa.string()),
    }
    tables = [table(one, arrow) for one in sides]
    options = {"train": tables[2], "item_group": "genres"}
    found = []
    for items in (pa.table(lists), pa.table(rows)):
        parts = []
        for half in (0, 1):
            cut = [
                one.filter(pa.array([q % 2 == half for q in one["query"].to_pylist()], pa.bool_()))
                for one in tables[:2]
            ]
            row = flat(rankmill.parts.evaluate_part, *cut, METRICS, items=items, **options).to_row()
            parts.append(rankmill.parts.State.from_row(pa.Table.from_pylist([row]).to_pylist()[0]))
        found.append(parts[1].merge(parts[0]).result().metrics)
        whole = flat(rankmill.parts.evaluate_part, *tables[:2], METRICS, items=items, **options)
        found.append(whole.result().metrics)
    assert_values(found[0], expected)
    assert all(one == found[0] for one in found)


GENRES = pa.table(
    {"item_id": ["a", "b", "c", "d"], "genre": [["art"], ["boat"], ["art", "boat"], ["art"]]}
)
LABELS = table({1: ["a"], 2: ["b"]}, pa.string())
TRAIN = table({1: ["a", "d"], 2: ["c"], 3: ["b"]}, pa.string())
PREDICTIONS = table({1: ["a", "b"], 2: ["c", "q", "d"]}, pa.string())


@pytest.mark.small
def test_known_answers(tmp_path: Path) -> None:
    given = {"items": GENRES, "item_group": "genre", "train": TRAIN}
    found = flat(rankmill.evaluate, LABELS, PREDICTIONS, METRICS, **given)
    # Query 1 had art alone, and gets half of it; query 2 had half of each, and gets 3/4 art.
    first = math.log(1 / (0.99 / 2 + 0.01))
    second = sum(math.log(0.5 / (0.99 * q + 0.005)) for q in (0.75, 0.25)) / 2
    assert found["miscalibration"] == pytest.approx((first + second) / 2, rel=1e-12)
    assert found["miscalibration@1"] == pytest.approx(0, abs=1e-12)
    # The pairs a, b and c, d; q is in no group.
    assert found["ild"] == (1 + 1 / 2) / 2
    assert found.metrics["ild@1"] is None
    # Of 2.5 items of art and 1.5 of boats: a and half of c at rank 1, and half of c.
    assert found["exposure_parity@1"] == pytest.approx((0.5 / 1.5) / (1.5 / 2.5), rel=1e-12)
    rows = pa.table({"item_id": ["a", "b", "c", "d", "c"], "genre": ["1", "2", "1", "1", "2"]})
    pyarrow.csv.write_csv(rows, tmp_path / "items.csv")
    again = flat(
        rankmill.evaluate,
        LABELS,
        PREDICTIONS,
        METRICS,
        **given | {"items": str(tmp_path / "items.csv")},
    )
    assert again.metrics == found.metrics


@pytest.mark.small
def test_the_table_of_groups() -> None:
    """c is half art and half boats; the labels a and b are of one each, of which a is hit."""
    given = {"items": GENRES, "item_group": "genre"}
    asked = ["exposure_parity@1", "recall_parity", "treatment_parity@1", "impact_parity@1", "map"]
    found = flat(rankmill.evaluate, LABELS, PREDICTIONS, asked, **given)
    assert found.groups is not None
    assert found.groups.to_pydict() == {
        "group": ["art", "boat"],
        "items": [2.5, 1.5],
        "share@1": [0.75, 0.25],
        "exposure@1": [1.5 / 2.5, 0.5 / 1.5],
        "labels": [1, 1],
        "recall": [1, 0],
        "treatment@1": [1.5, 0.5],
        "impact@1": [1, 0],
    }
    assert found["treatment_parity@1"] == 1 / 3
    assert found["recall_parity"] == found["impact_parity@1"] == 0
    assert found.to_dict()["groups"][0]["exposure@1"] == 0.6
    assert "art      2.5    75.0%    0.600000       1  1.00000" in write(found._view(), "table")
    assert "| boat | 1.5 | 25.0% |" in write(found._view(), "markdown")
    without = flat(rankmill.evaluate, LABELS, PREDICTIONS, "ild", **given)
    assert without.groups is None
    assert "groups" not in without.to_dict()


@pytest.mark.small
def test_applicants_for_a_job() -> None:
    """Singh and Joachims' first example: three men ahead of three women who are hardly worse.

    The paper tells the mean exposures 0.71 and 0.39.
    """
    people = [f"m{n}" for n in range(3)] + [f"f{n}" for n in range(3)]
    items = pa.table({"item": people, "sex": ["male"] * 3 + ["female"] * 3})
    asked = ["exposure_parity", "treatment_parity", "impact_parity", "recall_parity@4"]
    found = rankmill.evaluate(
        {1: people}, {1: people}, asked, catalogue=rankmill.Catalogue(items=items, group="sex")
    )
    female, male = found.groups["exposure"].to_pylist()
    assert (round(male, 2), round(female, 2)) == (0.71, 0.39)
    assert found["exposure_parity"] == female / male
    assert found["treatment_parity"] == found["impact_parity"] == female / male
    assert found["recall_parity@4"] == 1 / 3


@pytest.mark.small
@pytest.mark.parametrize(("repeats", "rank"), [("once", 3), ("each", 3), ("drop", 2)])
def test_a_repeat_gets_nothing(repeats: str, rank: int) -> None:
    items = pa.table({"item": ["a", "b"], "group": ["x", "y"]})
    asked = ["impact_parity", "recall_parity", "exposure_parity", "epd"]
    found = flat(
        rankmill.evaluate,
        {1: ["a", "b"]},
        {1: ["a", "a", "b"]},
        asked,
        **{"items": items, "item_group": "group", "train": {1: ["a"]}},
        semantics={"repeated_predictions": repeats},
    )
    worth = 1 / math.log2(rank + 1)
    assert found["impact_parity"] == found["exposure_parity"] == pytest.approx(worth, rel=1e-15)
    assert found["recall_parity"] == 1
    assert found["epd"] == 0.5


@pytest.mark.small
def test_groups_without_labels_and_other_groups() -> None:
    """A group without a label has no recall; states over other groups do not merge."""
    given = {"items": GENRES, "item_group": "genre"}
    found = flat(rankmill.evaluate, {1: ["a"]}, {1: ["b", "a"]}, "recall_parity", **given)
    assert found["recall_parity"] == 1
    assert found.groups["recall"].to_pylist() == [1, None]
    other = pa.table({"item_id": ["a", "b", "c", "d"], "genre": ["x", "boat", "x", "x"]})
    parts = [
        rankmill.parts.evaluate_part(
            LABELS,
            PREDICTIONS,
            "recall_parity",
            catalogue=rankmill.Catalogue(items=one, group="genre"),
        )
        for one in (GENRES, other)
    ]
    with pytest.raises(UsageError, match="states of other catalogue do not merge"):
        parts[0].merge(parts[1])


@pytest.mark.small
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("names", ["art"], ["names", "base", "1 and 2"]),
        ("sums", [1, 2, 3], ["sums", "2 groups"]),
        ("sums", [1, 0, 0, 1 << 29] * 2, ["sums", "29 bits"]),
        ("base", [-1, 2], ["base", "-1"]),
        ("whole", 0, ["whole"]),
    ],
)
def test_damaged_rows(field: str, value: Any, words: list[str]) -> None:
    given = {"items": GENRES, "item_group": "genre"}
    row = flat(rankmill.parts.evaluate_part, LABELS, PREDICTIONS, "recall_parity", **given).to_row()
    with pytest.raises(UsageError) as caught:
        rankmill.parts.State.from_row(resealed(row | {f"recall_parity.{field}": value}))
    tells(caught.value, ["damaged", *words])


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["ild@3", "--item-group", "--items"]),
        ({"item_group": "genre"}, ["--item-group 'genre' on", "--items"]),
        (
            {"items": GENRES, "item_group": "genus"},
            ["items:", "'genus'", "genre", "--item-group|Catalogue(group=...)"],
        ),
        (
            {"items": pa.table({"items": [["a"]], "g": ["x"]}), "item_group": "g"},
            ["items:", "lists", "'g'"],
        ),
        (
            {"items": pa.table({"item": ["a"], "g": pa.array([None], pa.string())})}
            | {"item_group": "g"},
            ["items:", "'g' is empty"],
        ),
        ({"metrics": "miscalibration", "items": GENRES, "item_group": "genre"}, ["--train"]),
    ],
)
def test_refused(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises((UsageError, InputError)) as caught:
        flat(rankmill.evaluate, LABELS, PREDICTIONS, **({"metrics": "ild@3"} | options))
    tells(caught.value, words)


# ------------------------------------------------------------------ exact, whatever the size


@pytest.mark.small
@settings(max_examples=examples(40))
@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=90), min_size=1, max_size=6))
def test_exposure_is_exact(lists: list[list[int]]) -> None:
    """The sum of float64, as fractions, rounded once; in any order of lists and parts."""
    many = {item: {"xyz"[n] for n in range(3) if item >> n & 1} or {"w"} for item in range(41)}
    columns = {"item": [*many], "g": [sorted(one) for one in many.values()]}
    how: dict[str, Any] = {"items": pa.table(columns), "item_group": "g"}
    expected = {name: Fraction(0) for name in "wxyz"}
    for listed in lists:
        first = {item: rank for rank, item in reversed([*enumerate(listed, 1)])}
        for item, rank in first.items():
            worth = Fraction(float(1 / log2(np.array([rank + 1.0]))[0]))
            for name in many[item]:
                expected[name] += worth * (6 // len(many[item]))
    sides = {q: [0] for q in range(len(lists))}, dict(enumerate(lists))
    parts = [
        flat(
            rankmill.parts.evaluate_part,
            *({q: one for q, one in side.items() if q % 2 == half} for side in sides),
            "exposure_parity,exposure_parity@3",
            **how,
        )
        for half in (0, 1)
        if len(lists) > half
    ]
    for order in (parts, parts[::-1]):
        state = order[0]
        for other in order[1:]:
            state = state.merge(other)
        one = state.aggregates["exposure_parity"]
        assert dict(zip(one.names, one.gets(), strict=True)) == {
            name: float(total) for name, total in expected.items()
        }


@pytest.mark.small
def test_sums_carry() -> None:
    """Shares of 2**30 units, and sums of many blocks, fit the digits."""
    groups = np.array([0, 1]), np.array([0]), np.array([1 << 30])
    offsets, rows = np.array([0, 200]), np.zeros(200, np.int64)
    out = np.zeros((1, 4), np.int64)
    kernels.sum_exposure(offsets, rows, np.zeros(0, np.bool_), 200, worths(200), *groups, out)
    exact = sum(Fraction(float(1 / one)) for one in discounts(200)[1:]) * (1 << 30)
    one = Parity(("g",), 1 << 30, out, np.array([1]))
    for _ in range(60):  # doubled each time, up to where the first digit is full
        assert one.gets() == [float(exact)]
        assert (one.sums[:, 2:] < 1 << 29).all()
        if one.sums[0, 1] > 1 << 61:
            break
        one, exact = one.merge(one), 2 * exact


def test_many_groups_take_little_memory_and_time() -> None:
    """Of 50,000 groups and lists of 300 only the groups that occur are looked at."""
    many, queries = 50_000, 40
    rng = np.random.default_rng(0)
    items = pa.table({"item": np.arange(many), "g": np.arange(many)})
    shown = rng.integers(0, many, (queries, 300))
    labels = pa.table({"query": np.arange(queries), "items": shown[:, :1].tolist()})
    lists = pa.table({"query": np.arange(queries), "items": shown.tolist()})
    how: dict[str, Any] = {"items": items, "item_group": "g", "train": labels}
    part = flat(
        rankmill.parts.evaluate_part, labels, lists, "exposure_parity,miscalibration", **how
    )
    assert part.aggregates["exposure_parity"].sums.shape == (many, 4)
    assert part.result()["miscalibration"] > 0
