"""The walks of metrics that are means over lists end at what evaluate says of the list alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import catalogue_oracle
import rankmill
from catalogues import KINDS, LISTS, table
from flat import flat
from item_groups import GROUPS
from rankmill import InputError, UsageError
from rankmill.metrics.aggregate import aggregate_of, list_walk_of
from rankmill.metrics.aggregates.list_means import GroupShare, ListMean
from rankmill.metrics.aggregates.propensity import ScoredPrecision
from rankmill.metrics.needs import Confidences
from rankmill.metrics.registry import REGISTRY, parse
from strategies import examples
from vectors import VECTORS, scaled

# Terms are added up in the order of the kernel, or in another one.
EXACT = ["popularity", "novelty", "serendipity", "head_share", "middle_share", "tail_share"]
EXACT += ["aplt", "aclt", "epc", "efd", "miscalibration"]
DISTANCES = ["ild", "epd", "ild_cosine", "epd_cosine"]
WITH_GROUPS = {"miscalibration", "ild", "epd"}
WALKED = [f"{name}{at}" for name in (*EXACT, *DISTANCES) for at in ("@1", "@3", "")]
CLOSE = {"rel": 1e-14, "abs": 1e-14}

REPEATED = st.dictionaries(
    st.integers(0, 9), st.lists(st.integers(0, 11), min_size=1, max_size=8), min_size=1, max_size=3
)


def given_to(metric: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options without the groups of items where the metric does not look at them."""
    name = metric.partition("@")[0]
    return options | {"item_group": "genre" if name in WITH_GROUPS else None}


def assert_ends_there(walk: rankmill.Trace, value: float | None) -> None:
    assert walk.value == value, walk.metric
    sums = [one for one in walk.table["sum"].to_pylist() if one is not None]
    assert walk.total == (sums[-1] if sums else 0.0)
    if value is None:
        return
    found = walk.total / (walk.divisor or 1)
    name = walk.metric.partition("@")[0]
    assert found == (value if name in EXACT else pytest.approx(value, **CLOSE)), walk.metric


@pytest.mark.small
@settings(max_examples=examples(25))
@given(
    LISTS,
    REPEATED,
    LISTS,
    GROUPS,
    VECTORS,
    st.sampled_from([*KINDS]),
    st.sampled_from(["once", "drop", "each"]),
)
def test_each_ends_at_the_value_of_its_list_alone(
    labels: dict[int, list[int]],
    predictions: dict[int, list[int]],
    train: dict[int, list[int]],
    groups: dict[int, set[str]],
    vectors: dict[int, list[float]],
    kind: str,
    repeats: str,
) -> None:
    """Also of lists with repeats, without labels, of items that nothing is known of."""
    some = any(labels.values()), any(train.values()), any(groups.values())
    if not all(some) or not any(map(any, vectors.values())):
        return
    name, arrow = KINDS[kind]
    sides = [
        {query: [name(item) for item in listed] for query, listed in one.items()}
        for one in (labels, predictions, train)
    ]
    query = min(predictions)
    tables = [table(one, arrow) for one in sides]
    alone = table({query: sides[1][query]}, arrow)
    genres = pa.array([sorted(one) for one in groups.values()], pa.list_(pa.string()))
    options = {
        "train": tables[2],
        "items": pa.table({"item": pa.array([*map(name, groups)], arrow), "genre": genres}),
        "features": {name(item): vector for item, vector in vectors.items()},
        "semantics": {"repeated_predictions": repeats},
    }
    known = {
        "train": sides[2],
        "catalogue": [*map(name, groups)],
        "groups": {name(item): of for item, of in groups.items()},
        "vectors": {name(item): scaled(vector) for item, vector in vectors.items()},
    }
    listed = sides[1][query]
    plain = len(set(listed)) == len(listed)
    for metric in WALKED:
        asked = given_to(metric, options)
        walk = flat(rankmill.explain, tables[0], tables[1], metric, query, **asked)
        assert_ends_there(
            walk, flat(rankmill.evaluate, tables[0], alone, metric, **asked).metrics[metric]
        )
        if plain:
            wanted = catalogue_oracle.value(metric, sides[0], {query: listed}, **known)
            told = None if wanted is None else pytest.approx(wanted, rel=1e-12, abs=1e-12)
            assert walk.value == told, metric


@pytest.mark.small
@pytest.mark.parametrize("name", REGISTRY)
def test_each_metric_over_lists_has_a_walk_or_is_refused(name: str) -> None:
    """Those that only all lists together have are refused by name, whatever else is given."""
    metric = parse(REGISTRY[name].example)
    kind = aggregate_of(metric)
    kinds = ListMean | GroupShare | ScoredPrecision
    one_by_one = issubclass(kind, kinds) and name != "popularity_lift"
    walked = name in EXACT + DISTANCES + ["psp", "psndcg"]
    assert (list_walk_of(metric) is not None) == one_by_one == walked
    if not (metric.spec.kernel or Confidences in kind.needs or one_by_one):
        side = {1: ["a"]}
        with pytest.raises(UsageError) as why:
            rankmill.explain(side, side, metric.text, 1)
        tells(
            why.value,
            [f"explain does not support {metric.text}: it is of all lists", "popularity, "],
        )


# ------------------------------------------------------------------ known answers

LABELS = table({1: ["c"], 2: ["b"]}, pa.string())
PREDICTIONS = table({1: ["a", "b", "a", "c", "q"], 3: ["a"]}, pa.string())
TRAIN = table({1: ["a", "d"], 2: ["a"], 3: ["a", "b"], 4: ["a"]}, pa.string())
ITEMS = pa.table(
    {
        "item_id": ["a", "b", "c", "d", "e"],
        "genre": [["art"], ["art", "boat"], ["car"], ["boat"], ["car"]],
        "x": [1.0, 0.0, -1.0, 1.0, 0.0],
        "y": [0.0, 1.0, 0.0, 1.0, 0.0],
    }
)
GIVEN = {"train": TRAIN, "items": ITEMS, "features": ITEMS.select(["item_id", "x", "y"])}


def walked(metric: str, query: int = 1, **options: Any) -> rankmill.Trace:
    return flat(
        rankmill.explain, LABELS, PREDICTIONS, metric, query, **given_to(metric, GIVEN | options)
    )


def columns(metric: str, *names: str) -> list[list[Any]]:
    table = walked(metric).table
    return [table[name].to_pylist() for name in names]


@pytest.mark.small
def test_what_queries_had() -> None:
    """Item a is with 4 of 6 interactions; b and d with 1, which is less than a fifth: the tail."""
    popularity = walked("popularity@4")
    rows = popularity.table.to_pydict()
    assert rows["item"] == ["a", "b", "a", "c"]
    assert rows["queries"] == [4, 1, 4, 0]
    assert rows["term"] == [4.0, 1.0, 0.0, 0.0]
    assert rows["note"] == ["", "", "repeats rank 1", ""]
    assert (popularity.total, popularity.divisor, popularity.value) == (5.0, 3.0, 5 / 3)
    assert popularity.facts == {
        "labels": "1: c",
        "predictions": "5, of which the first 4 count",
        "training": "4 queries; this one had 2: a, d",
        "catalogue": "5 items",
        "divisor": "the items within the cutoff, each once",
    }
    assert columns("novelty@4", "share", "term") == [[1, 0.25, 1, 0.25], [0.0, 2.0, 0.0, 2.0]]
    parts = columns("tail_share", "part", "term")
    assert parts == [["head", "tail", "head", "tail", "tail"], [0, 1, 0, 1, 1]]
    assert walked("tail_share").value == 3 / 4
    # Of five items c is expected at no rank, and is a hit at the fourth.
    found = columns("serendipity@4", "hit", "at_rank", "by_popularity", "term")
    assert found[0] == [False, False, False, True]
    assert found[1:3] == [[1.0, 0.8, 0.6, 0.4], [1.0, 0.8, 1.0, 0.0]]
    assert found[3] == [0.0, 0.0, 0.0, 0.4]


@pytest.mark.small
def test_groups_and_vectors() -> None:
    """Query 1 had a and d: half art, half boat. It gets a and b, and then c, and q of no group."""
    names, before, now, terms = columns("miscalibration@3", "group", "before", "in_list", "term")
    assert (names, before, now) == (["art", "boat"], [0.5, 0.5], [0.75, 0.25])
    told = [0.5 * math.log(0.5 / (0.99 * q + 0.005)) for q in now]
    assert terms == pytest.approx(told, rel=1e-12)
    names, before, now, terms = columns("miscalibration", "group", "before", "in_list", "term")
    assert (names, before, terms[2]) == (["art", "boat", "car"], [0.5, 0.5, 0.0], 0.0)
    groups, pairs, far = columns("ild", "groups", "compared_with", "term")
    assert groups == ["art", "art, boat", "art", "car", ""]
    assert (pairs, far) == ([2, 2, 0, 2, 0], [0.75, 0.75, 0.0, 1.0, 0.0])
    assert columns("epd", "compared_with", "term") == [[2, 2, 0, 2, 0], [0.5, 0.5, 0.0, 1.0, 0.0]]
    vector, pairs, far = columns("ild_cosine", "vector", "compared_with", "term")
    assert vector == [True, True, True, True, False]
    assert (pairs, far) == ([2, 2, 0, 2, 0], pytest.approx([1.5, 1.0, 0.0, 1.5, 0.0]))
    half = math.sqrt(0.5)
    assert columns("epd_cosine", "term")[0] == pytest.approx(
        [(1 - half) / 2, (1 + 1 - half) / 2, 0, (2 + 1 + half) / 2, 0]
    )


@pytest.mark.small
@pytest.mark.parametrize("metric", WALKED)
def test_lists_without_a_value(metric: str) -> None:
    """Query 2 has no prediction; query 3 has one and no label, which is no pair."""
    walk = walked(metric, 2)
    assert (walk.value, walk.total) == (None, 0.0)
    assert walk.headline == f"{metric} of query 2: it does not count"
    alone = table({3: ["a"]}, pa.string())
    asked = given_to(metric, GIVEN)
    value = flat(rankmill.evaluate, LABELS, alone, metric, **asked).metrics[metric]
    assert_ends_there(walked(metric, 3), value)
    assert (value is None) == metric.startswith(("ild", "epc", "efd"))
    with pytest.raises(InputError, match="query 9 is neither in"):
        walked(metric, 9)


@pytest.mark.small
@pytest.mark.parametrize("order", ["given", "item_ascending", "worst", "best", "expected"])
@pytest.mark.parametrize("depth", [None, 2])
def test_any_order(order: str, depth: int | None) -> None:
    scored = pa.table({"query": [1], "items": [["a", "b", "c"]], "score": [[0.5, 0.9, 0.5]]})
    for name in (*EXACT, *DISTANCES):
        options = given_to(name, GIVEN) | {"semantics": {"order": order}, "depth": depth}
        ties = order in ("worst", "best", "expected")
        if ties and (depth is not None or name.startswith(("serendipity", "epc", "efd"))):
            continue
        walk = flat(rankmill.explain, LABELS, scored, name, 1, **options)
        assert_ends_there(walk, flat(rankmill.evaluate, LABELS, scored, name, **options)[name])
        if name in EXACT[:-1] and order == "item_ascending":
            assert walk.table["item"].to_pylist() == ["b", "a", "c"][:depth]


@pytest.mark.small
def test_lists_by_position() -> None:
    lists = (
        rankmill.arrays.Ragged.from_lists([[1], [2, 3]]),
        rankmill.arrays.Ragged.from_lists([[5], [2, 9]]),
    )
    train = rankmill.arrays.Ragged.from_lists([[2], [5, 2]])
    walk = flat(rankmill.explain, *lists, "novelty", 1, train=train)
    assert walk.table["queries"].to_pylist() == [2, 0]
    assert walk.value == 0.5


@pytest.mark.small
def test_what_is_missing_is_told() -> None:
    for metric, wanted in (
        ("novelty", ["novelty needs what queries had in training", "--train"]),
        ("ild", ["ild needs the groups", "--item-group"]),
        ("ild_cosine", ["ild_cosine needs the vectors", "--features"]),
    ):
        with pytest.raises(UsageError) as why:
            rankmill.explain(LABELS, PREDICTIONS, metric, 1)
        tells(why.value, wanted)


def test_on_the_command_line(tmp_path: Path, monkeypatch: Any, run_cli: Any) -> None:
    monkeypatch.chdir(tmp_path)
    sides = {"labels": LABELS, "run": PREDICTIONS, "train": TRAIN, "items": ITEMS}
    for name, one in sides.items():
        pq.write_table(one, f"{name}.parquet")
    asked = ["explain", "labels.parquet", "run.parquet", "--query-id", 1]
    beside = ["--items", "items.parquet", "--item-group", "genre", "--train", "train.parquet"]
    found = run_cli(*asked, *beside, "-m", "epd@2", "--format", "csv")
    assert found.exit_code == 0, found.stderr
    assert found.stdout.splitlines()[1:] == ["1,a,art,2,0.5,0.5,", '2,b,"art, boat",2,0.5,1.0,']
    shown = run_cli(*asked, *beside, "-m", "miscalibration@2")
    assert "boat   0.500000  0.250000" in shown.stdout
    found = run_cli(*asked, "-m", "novelty", "--train", "train.parquet", "-o", "train.parquet")
    assert (found.exit_code, pq.read_table("train.parquet")) == (2, TRAIN)
    assert "cannot write to train.parquet: it is one of the inputs" in found.stderr


@pytest.mark.small
@pytest.mark.parametrize("metric", ["psp@1", "psp(a=0.5,b=0.4)@3", "psndcg@3"])
def test_hits_by_propensity_end_at_the_value_of_the_query(metric: str) -> None:
    """They are a ratio over all queries, so that the value is that of the query alone."""
    labels, run = {1: ["a", "b", "d"]}, {1: ["b", "x", "a"]}
    train = rankmill.Catalogue(train={n: ["a", "b"] if n % 2 else ["a", "x"] for n in range(9)})
    walk = rankmill.explain(labels, run, metric, 1, catalogue=train)
    value = rankmill.evaluate(labels, run, metric, catalogue=train)[metric]
    assert 0 < walk.value == value == pytest.approx(walk.total / walk.divisor, rel=1e-14)
