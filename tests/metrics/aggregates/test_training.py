"""Metrics that need what queries had in training: the oracle, RecTools, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import catalogue_oracle
import rankmill
from catalogues import KINDS, LISTS, assert_values, table
from flat import flat
from rankmill import InputError, UsageError
from strategies import examples, some

METRICS = [f"{name}@{k}" for name in catalogue_oracle.TRAINED for k in (1, 3)]
METRICS += [*catalogue_oracle.TRAINED, "coverage@2", "gini@2", "personalization@2", "map@3"]
METRICS = [f"{name}@{k}" for name in catalogue_oracle.SCORED for k in (1, 3)] + METRICS
METRICS = ["psp(a=0.5,b=0.4)@3", "aplt(head=0.3)@3", *METRICS]
OF_ALL = METRICS[:-1]


def named(side: dict[int, list[int]], kind: str) -> dict[int, list[Any]]:
    name = KINDS[kind][0]
    return {query: [name(item) for item in listed] for query, listed in side.items()}


@pytest.mark.small
@pytest.mark.parametrize("queries", [1, 2, 3])
def test_a_propensity_is_at_most_1(queries: int) -> None:
    """Its logarithm is below 1 with fewer than 3 queries, where what is rare would count less."""
    catalogue = rankmill.Catalogue(train={query: [1] for query in range(queries)})
    for listed in ([2, 1], [1, 2], [2, 9]):
        found = rankmill.evaluate({0: [1, 2]}, {0: listed}, "psp@1,psndcg@2", catalogue=catalogue)
        assert all(0 <= value <= 1 for value in found.metrics.values())


@pytest.mark.small
@settings(max_examples=examples(60))
@given(
    LISTS,
    LISTS,
    LISTS,
    st.none() | st.sets(st.integers(0, 14), min_size=1),
    st.sampled_from([*KINDS]),
)
def test_the_oracle(
    labels: dict[int, list[int]],
    predictions: dict[int, list[int]],
    train: dict[int, list[int]],
    catalogue: set[int] | None,
    kind: str,
) -> None:
    """Also in two parts, through rows of Arrow: the same to the last bit."""
    if not any(labels.values()) or not any(train.values()):
        return
    sides = [named(one, kind) for one in (labels, predictions)]
    before, arrow = named(train, kind), KINDS[kind][1]
    every = None if catalogue is None else [KINDS[kind][0](n) for n in sorted(catalogue)]
    expected = {
        text: catalogue_oracle.value(text, *sides, catalogue=every, train=before) for text in OF_ALL
    }
    given: dict[str, Any] = {"train": table(before, arrow)}
    if every is not None:
        given["items"] = pa.table({"item_id": pa.array([*every, every[0]], arrow)})
    tables = [table(one, arrow) for one in sides]
    whole = flat(rankmill.parts.evaluate_part, *tables, METRICS, **given)
    found = whole.result()
    assert_values(found.metrics, expected)
    known = every if every is not None else {item for one in before.values() for item in one}
    shown = [(query, item) for query, listed in sides[1].items() for item in listed]
    assert found.audit["seen_items"] == sum(item in before.get(q, ()) for q, item in shown)
    assert found.audit["unknown_items"] == sum(item not in known for _, item in shown)
    halves = []
    for half in (0, 1):
        cut = [
            one.filter(pa.array([q % 2 == half for q in one["query"].to_pylist()], pa.bool_()))
            for one in tables
        ]
        row = flat(rankmill.parts.evaluate_part, *cut, METRICS, **given).to_row()
        halves.append(rankmill.parts.State.from_row(pa.Table.from_pylist([row]).to_pylist()[0]))
    assert halves[1].merge(halves[0]).result().metrics == found.metrics
    left = {
        query: [item for item in listed if item not in before.get(query, ())]
        for query, listed in sides[1].items()
    }
    dropped = flat(rankmill.parts.evaluate_part, *tables, METRICS, **given, drop_seen=True).result()
    again = flat(
        rankmill.parts.evaluate_part, tables[0], table(left, arrow), METRICS, **given
    ).result()
    assert dropped.metrics == again.metrics
    assert dropped.audit["seen_items"] == found.audit["seen_items"]


# The example in the documentation of RecTools' Serendipity: users, items and ranks.
RECO = {1: ["i1", "i2"], 2: ["i2", "i3"], 3: ["i3"], 4: ["i2", "i3"]}
LATER = {1: ["i1", "i2"], 2: ["i2", "i3"], 3: ["i2"], 4: ["i2"]}
BEFORE = {1: ["i1", "i2"], 2: ["i1", "i2"], 3: ["i1"]}
ITEMS = pa.table({"item": ["i1", "i2", "i3", "i4"]})


def tables(*sides: dict[int, list[str]]) -> list[pa.Table]:
    return [table(one, pa.string()) for one in sides]


@pytest.mark.small
def test_known_answers() -> None:
    labels, predictions, train = tables(LATER, RECO, BEFORE)
    metrics = "serendipity@1,serendipity@2,novelty@1,popularity@1,head_share,tail_share,coverage"
    found = rankmill.evaluate(
        labels, predictions, metrics, catalogue=rankmill.Catalogue(train=train, items=ITEMS)
    )
    assert found["serendipity@1"] == 0.5 / 4
    assert found["serendipity@2"] == (0.5 + 0.125) / 4
    assert found["novelty@1"] == pytest.approx((np.log2(3 / 2) * 2 + np.log2(3)) / 4, rel=1e-14)
    assert found["popularity@1"] == (3 + 2 + 0 + 2) / 4
    # i1 alone has 3 of 5 interactions; i2 is less popular, with none below it.
    assert (found["head_share"], found["tail_share"]) == (1 / 7, 6 / 7)
    assert found["coverage"] == 3 / 4
    assert found.standard_errors["popularity@1"] is not None
    assert found.inputs["train"]["rows"] == 3
    assert found.inputs["items"]["columns"] == {"item": "item"}
    assert found.audit["seen_items"] == 3
    assert "seen_items 3" in str(found)
    without = rankmill.evaluate(labels, predictions, "map,coverage@1")
    assert "train" not in without.inputs
    assert without.audit["seen_items"] == 0


@pytest.mark.small
def test_every_shape_and_format(tmp_path: Path) -> None:
    """Lists, rows, repeated rows, CSV and Parquet; columns named otherwise than in the labels."""
    labels, predictions, train = tables(LATER, RECO, BEFORE)
    first = rankmill.evaluate(
        labels, predictions, METRICS, catalogue=rankmill.Catalogue(train=train, items=ITEMS)
    )
    rows = [(query, item) for query, items in BEFORE.items() for item in items]
    long = pa.table({"user_id": [q for q, _ in rows], "movieId": [i for _, i in rows]})
    twice = pa.concat_tables([long, long]).take([9, 1, 2, 3, 4, 5, 6, 7, 8, 0])
    pyarrow.csv.write_csv(twice, tmp_path / "train.csv")
    pyarrow.csv.write_csv(ITEMS, tmp_path / "items.csv")
    pq.write_table(train, tmp_path / "train.parquet")
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 {item} 1\n" for q, item in rows))
    lists = pa.table({"items": [["i1", "i2"], ["i4", "i3", "i1"], None]})
    for before, items in [
        (long, lists),
        (twice, str(tmp_path / "items.csv")),
        (str(tmp_path / "train.csv"), ITEMS),
        (tmp_path / "train.parquet", ITEMS),
        (str(tmp_path / "qrels.txt"), ITEMS.append_column("genre", pa.array(["a"] * 4))),
        (BEFORE, ITEMS),
    ]:
        again = rankmill.evaluate(
            labels, predictions, METRICS, catalogue=rankmill.Catalogue(train=before, items=items)
        )
        assert again.metrics == first.metrics


@pytest.mark.small
def test_the_command_line_and_the_file(tmp_path: Path, run: Any) -> None:
    for name, one in zip(("l", "p", "t"), tables(LATER, RECO, BEFORE), strict=True):
        pq.write_table(one, tmp_path / f"{name}.parquet")
    pq.write_table(ITEMS, tmp_path / "i.parquet")
    paths = [str(tmp_path / f"{name}.parquet") for name in "lpti"]
    asked = ["-m", "novelty@1", "-m", "coverage@1", "--format", "json"]
    beside = ["--train", paths[2], "--items", paths[3]]
    told = json.loads(run("evaluate", *paths[:2], *asked, *beside)[1])
    assert told["metrics"]["coverage@1"] == 0.75
    assert told["audit"]["seen_items"] == 3
    dropped = json.loads(run("evaluate", *paths[:2], *asked, *beside, "--drop-seen")[1])
    assert dropped["scope"]["drop_seen"] is True
    assert dropped["metrics"]["novelty@1"] > told["metrics"]["novelty@1"]
    (tmp_path / "rankmill.toml").write_text(
        'labels = "l.parquet"\npredictions = "p.parquet"\nmetrics = ["novelty@1", "coverage@1"]\n'
        'train = "t.parquet"\nitems = "i.parquet"\ndrop_seen = true\n'
    )
    again = json.loads(run("evaluate", str(tmp_path / "rankmill.toml"), "--format", "json")[1])
    assert again["metrics"] == dropped["metrics"]


@pytest.mark.small
def test_a_comparison_and_a_gate_know_them() -> None:
    labels, predictions, train = tables(LATER, RECO, BEFORE)
    runs = {"a": predictions, "b": labels}
    found = rankmill.compare(
        labels, runs, "map,novelty@1", catalogue=rankmill.Catalogue(train=train, items=ITEMS)
    )
    alone = rankmill.evaluate(
        labels, predictions, "novelty@1", catalogue=rankmill.Catalogue(train=train)
    )
    assert found.values["novelty@1"]["a"].value == alone["novelty@1"]
    assert found.differences["novelty@1"]["b"].tests["t"].p is not None
    verdict = rankmill.gate(
        labels,
        predictions,
        ["novelty@1 >= 9", "seen_items <= 2"],
        catalogue=rankmill.Catalogue(train=train),
    )
    assert {one.word for one in verdict.outcomes} == {"regressed", "bad audit"}


@pytest.mark.small
def test_drop_seen_with_gap_reads_predictions_once() -> None:
    """A dropped prediction is not there in gap either, whatever the memory."""
    labels = table({1: ["a"], 2: ["b"]}, pa.string())
    rows = {"query": [1, 1, 2, 2], "item": ["x", "a", "b", "y"], "score": [0.9, 0.8, 0.7, 0.1]}
    train = table({1: ["x"], 2: ["z"]}, pa.string())
    found = rankmill.evaluate(
        labels, pa.table(rows), "gap,map", catalogue=rankmill.Catalogue(train=train, drop_seen=True)
    )
    assert (found["gap"], found["map"]) == (1.0, 1.0)
    with pytest.raises(InputError, match="gap with drop_seen holds all predictions in memory"):
        rankmill.evaluate(
            labels,
            pa.table(rows),
            "gap",
            memory=1,
            catalogue=rankmill.Catalogue(train=train, drop_seen=True),
        )


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["novelty@3", "--train", "training"]),
        ({"metrics": "map", "drop_seen": True}, ["drop_seen", "--train"]),
        ({"train": pa.table({"query": [1], "item": [5]})}, ["train:", "integers", "i1"]),
        ({"train": pa.table({"query": [1]})}, ["train:", "item"]),
        (
            {"train": table({1: []}, pa.string())},
            ["train:", "no items", "what queries had in training"],
        ),
        (
            {"metrics": "coverage", "items": pa.table({"a": ["x"], "b": ["y"]})},
            ["items:", "a", "b"],
        ),
        (
            {"metrics": "coverage", "items": pa.table({"item": [1.5]})},
            ["items:", "1.5", "fraction"],
        ),
        ({"metrics": "coverage", "items": pa.table({"item": [7]})}, ["items:", "integers", "i1"]),
    ],
)
def test_refused(options: dict[str, Any], words: list[str]) -> None:
    labels, predictions = tables(LATER, RECO)
    with pytest.raises((UsageError, InputError)) as caught:
        flat(rankmill.evaluate, labels, predictions, **({"metrics": "novelty@3"} | options))
    tells(caught.value, words)


@pytest.mark.small
def test_states_of_two_training_sets_do_not_merge() -> None:
    labels, predictions, train = tables(LATER, RECO, BEFORE)
    parts = [
        rankmill.parts.evaluate_part(
            labels, predictions, "novelty@1", catalogue=rankmill.Catalogue(train=one)
        )
        for one in (train, labels)
    ]
    with pytest.raises(UsageError) as caught:
        parts[0].merge(parts[1])
    tells(caught.value, ["other catalogue", "5 interactions of 3 queries", "6 interactions"])


@pytest.mark.small
def test_explain_drops_what_was_seen_only_if_asked() -> None:
    labels, predictions, train = tables(LATER, RECO, BEFORE)
    assert (
        rankmill.explain(
            labels, predictions, "map", 1, catalogue=rankmill.Catalogue(train=train)
        ).value
        == 1.0
    )
    dropping = rankmill.Catalogue(train=train, drop_seen=True)
    values = rankmill.evaluate(labels, predictions, "map", catalogue=dropping).per_query
    for query, value in zip(values["query"].to_pylist(), values["map"].to_pylist(), strict=True):
        found = rankmill.explain(labels, predictions, "map", query, catalogue=dropping)
        assert found.value == value
    found = rankmill.explain(labels, predictions, "map", 1, catalogue=dropping)
    assert "dropped: later ones move up" in found.facts["seen in training"]
    assert found.table.num_rows < len(rankmill.explain(labels, predictions, "map", 1).table)


# ------------------------------------------------------------------ RecTools


@pytest.mark.parametrize("seed", some(range(25), 5))
def test_they_equal_rectools(seed: int) -> None:
    """Ragged lists, users without labels or a past, cold items; where RecTools is installed."""
    metrics = pytest.importorskip("rectools.metrics")
    pd = pytest.importorskip("pandas")
    draw = np.random.default_rng(seed)
    items = np.arange(40)

    def frame(users: Any, most: int, low: int, high: int) -> Any:
        rows = [
            (int(user), int(item), rank)
            for user in users
            for rank, item in enumerate(
                draw.choice(items[low:high], draw.integers(1, most), replace=False), 1
            )
        ]
        return pd.DataFrame(rows, columns=["user_id", "item_id", "rank"])

    reco = frame(range(30), 12, 0, 40)
    later, before = frame(range(5, 35), 8, 10, 40), frame(range(0, 28), 9, 0, 30)
    catalogue = items.tolist()
    made = {}
    for k in (1, 5, 12):
        made |= {
            f"coverage@{k}": metrics.CatalogCoverage(k=k, normalize=True).calc(reco, catalogue),
            f"novelty@{k}": metrics.MeanInvUserFreq(k=k).calc(reco, before),
            f"popularity@{k}": metrics.AvgRecPopularity(k=k).calc(reco, before),
            f"serendipity@{k}": metrics.Serendipity(k=k).calc(reco, later, before, catalogue),
        }
    found = rankmill.evaluate(
        pa.Table.from_pandas(later[["user_id", "item_id"]]),
        pa.Table.from_pandas(reco),
        list(made),
        catalogue=rankmill.Catalogue(
            train=pa.Table.from_pandas(before[["user_id", "item_id"]]),
            items=pa.table({"item_id": catalogue}),
        ),
    )
    assert found.metrics == pytest.approx(made, rel=1e-12, abs=1e-12)


# ------------------------------------------------------------------ repeated predictions


@pytest.mark.small
@pytest.mark.parametrize("repeated", ["once", "each"])
@pytest.mark.parametrize("listed", [["a", "x", "x"], ["a", "a", "x"]])
def test_serendipity_counts_an_item_once(listed: list[str], repeated: str) -> None:
    """At its first place, whatever other metrics make of repeats."""
    how: dict[str, Any] = {
        "train": {"q1": ["z"]},
        "items": pa.table({"item_id": ["a", "b", "x", "z"]}),
        "semantics": {"repeated_predictions": repeated},
    }
    labels, predictions = {"q1": ["a"]}, {"q1": listed}
    found = flat(rankmill.evaluate, labels, predictions, "serendipity,serendipity@2", **how)
    whole = {"serendipity": 0.5, "serendipity@2": 0.5 if listed[1] == "x" else 1.0}
    assert found.metrics == whole
