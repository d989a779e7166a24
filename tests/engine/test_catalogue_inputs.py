"""What is read for metrics over a catalogue: what is said of it, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import tells

import rankmill
from flat import flat
from rankmill import InputError, UsageError
from rankmill.nightly.history import History
from rankmill.show.writers import plain_text
from shown import view_all

LABELS = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}}
PREDICTIONS = {
    "q1": [("a", 0.9), ("x", 0.8), ("b", 0.7)],
    "q2": [("y", 0.6), ("c", 0.5)],
    "q5": [("z", 0.3)],
}
TRAIN = pa.table({"user_id": ["q1", "q2"], "item_id": ["a", "c"]})
ITEMS = pa.table({"item_id": ["a", "b", "x", "c"], "genre": ["1", "2", "1", "2"]})


def refused(words: list[str], *sides: Any, metrics: str = "novelty@2", **options: Any) -> None:
    with pytest.raises((UsageError, InputError)) as caught:
        flat(rankmill.evaluate, *(sides or (LABELS, PREDICTIONS)), metrics, **options)
    tells(caught.value, words)


@pytest.mark.small
def test_a_mean_over_lists_tells_how_many() -> None:
    """Three lists of predictions, two of which have two items; two queries have labels."""
    asked = {"items": ITEMS, "item_group": "genre", "train": TRAIN}
    found = flat(rankmill.evaluate, LABELS, PREDICTIONS, "map,novelty,ild,coverage", **asked)
    assert found.lists == {"novelty": 3, "ild": 1, "coverage": 3}
    counts = found.to_arrow()["queries"].to_pylist()
    assert counts == [2, 3, 1, 3]
    assert [row.split()[-1] for row in repr(found).splitlines()[2:6]] == ["2", "3", "1", "3"]
    assert found.to_dict()["lists"] == found.lists
    assert "lists" not in rankmill.evaluate(LABELS, PREDICTIONS, "map").to_dict()


def test_a_gate_and_a_history_count_lists(tmp_path: Any) -> None:
    found = rankmill.evaluate(
        LABELS, PREDICTIONS, "map,novelty", catalogue=rankmill.Catalogue(train=TRAIN)
    )
    History(tmp_path).record(found)
    (run,) = rankmill.History(tmp_path).runs
    assert (run.get("novelty").queries, run.get("map").queries) == (3, 2)
    rules = ["novelty drop <= 0.5"]
    for base in ("last", found):
        how: dict[str, Any] = {"baseline": base, "rules": rules, "train": TRAIN}
        verdict = flat(rankmill.gate, LABELS, PREDICTIONS, history=tmp_path, **how)
        assert verdict.word == "held"


@pytest.mark.small
def test_what_was_read_is_told() -> None:
    asked = {"items": ITEMS, "item_group": "genre", "train": TRAIN}
    result = flat(rankmill.evaluate, LABELS, PREDICTIONS, "ild,novelty", **asked)
    assert result.inputs["items"]["columns"] == {"item": "item_id", "group": "genre"}
    assert "unread" not in result.inputs["items"]
    runs = {"one": PREDICTIONS, "two": PREDICTIONS}
    found = flat(rankmill.compare, LABELS, runs, "map,ild,novelty", **asked)
    for name in ("train", "items"):
        assert found.inputs[name] == result.inputs[name]
        assert found.to_dict()["inputs"][name] == result.inputs[name]
    told = repr(found)
    assert "item = item_id, group = genre" in told
    assert "query = user_id, item = item_id" in told
    results = flat(rankmill.evaluate_runs, LABELS, runs, "ild", **asked)
    assert "group = genre" in plain_text(view_all(results).screen())
    assert "group = genre" in plain_text(result._view().screen())


@pytest.mark.small
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_nan_is_no_group(kind: Any) -> None:
    def groups_of(groups: pa.Array) -> list[str]:
        items = pa.table({"item_id": ["a", "b", "x"], "g": groups})
        how: dict[str, Any] = {"items": items, "item_group": "g"}
        found = flat(rankmill.evaluate, LABELS, PREDICTIONS, "exposure_parity", **how).groups
        return found["group"].to_pylist()

    numbers = np.array([1.5, 2.0, np.nan], kind.to_pandas_dtype())
    nan, null = pa.array(numbers), pa.array(numbers, mask=np.isnan(numbers))
    assert nan.null_count == 0
    assert groups_of(nan) == groups_of(null) == ["1.5", "2"]


# ------------------------------------------------------------------ lists aligned by position


@pytest.mark.small
@pytest.mark.parametrize("options", [{"drop_seen": True}, {"metrics": "novelty"}])
def test_lists_by_position_and_ids_do_not_mix(options: dict[str, Any]) -> None:
    """They never match: no list would have a past."""
    ids = pa.table({"user_id": [10, 11], "item_id": [9, 4]})
    lists = [[1, 2], [3]], [[1, 9], [3, 4]]
    told = ["without query ids", "train", "labels", "both as lists"]
    refused(["labels are lists", *told], *lists, train=ids, **options)
    refused(["train are lists", *told], ids, ids, train=[[9], [4]], in_order=True, **options)
    for train in ([[9]], [[9], [4], [1]]):
        words = ["2 lists of labels", f"{len(train)} of train", "same number"]
        refused(words, *lists, train=train, **options)
    found = flat(rankmill.evaluate, *lists, "map@1", train=[[9], [4]], drop_seen=True)
    assert found.audit["seen_items"] == 2


# ------------------------------------------------------------------ columns


@pytest.mark.small
def test_each_column_of_training_is_found_on_its_own() -> None:
    """By the name that it has in the labels, else by a usual name."""
    labels = pa.table({"cust": ["q1"], "thing": ["a"], "item_id": ["b"]})
    asked: dict[str, Any] = {"query": "cust", "item": "thing", "in_order": True}
    names = [("cust", "item_id"), ("cust", "thing"), ("user_id", "thing"), ("user_id", "docs")]
    for query, item in names:
        train = pa.table({query: ["q1"], item: ["a"], "ts": [1]})
        found = flat(rankmill.evaluate, labels, labels, "novelty", train=train, **asked)
        assert found.audit["seen_items"] == 1
        assert found.inputs["train"]["columns"] == {"query": query, "item": item}


@pytest.mark.small
def test_columns_of_training_in_text(tmp_path: Any) -> None:
    """What its cells hold is told by the cells, and the items, of the labels."""
    (tmp_path / "train.csv").write_text('cust,items\nq1,"a b"\nq2,"c"\n')
    asked: dict[str, Any] = {"query": "cust", "item": "thing"}
    train = str(tmp_path / "train.csv")
    one, titles = ["q1", "q2"], ["q1", "q1", "q2"]
    for queries, things, seen in (
        (one, [["a"], ["c"]], 2),
        (one, ["a b", "c"], 3),
        (titles, ["a b", "Toy Story", "c"], 2),
    ):
        labels = pa.table({"cust": queries, "thing": things})
        found = flat(rankmill.evaluate, labels, labels, "novelty", train=train, **asked)
        assert found.audit["seen_items"] == seen


@pytest.mark.small
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["user_id", "movie", "ts"], ["train:", "item", "movie", "rename it to item_id"]),
        (["movie", "item_id"], ["train:", "query", "rename it to query_id"]),
        (["user_id", "item_id", "doc_id"], ["train:", "item_id, doc_id", "leave all but one"]),
    ],
)
def test_advice_for_columns_of_training_works(columns: list[str], words: list[str]) -> None:
    """No option names them: what is said has to be a thing that can be done."""
    train = pa.table({name: ["q1"] for name in columns})
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(LABELS, PREDICTIONS, "novelty", catalogue=rankmill.Catalogue(train=train))
    tells(caught.value, words)
    assert "--" not in str(caught.value)


@pytest.mark.small
@pytest.mark.parametrize("option", ["train", "items", "features"])
def test_a_file_without_a_header_or_with_floats(option: str, tmp_path: Any) -> None:
    metrics = {"train": "novelty", "items": "coverage", "features": "ild_cosine"}[option]
    (tmp_path / "some.csv").write_text("q1,a\nq2,b\n")
    with pytest.raises(InputError) as caught:
        flat(
            rankmill.evaluate, LABELS, PREDICTIONS, metrics, **{option: str(tmp_path / "some.csv")}
        )
    tells(caught.value, [f"{option}:", "some.csv", "write one above"])
    floats = pa.table({"query_id": ["q1"], "item_id": [1.5], "vector": [[1.0]]})
    with pytest.raises(InputError) as caught:
        flat(rankmill.evaluate, LABELS, PREDICTIONS, metrics, **{option: floats})
    tells(
        caught.value,
        [f"{option}:", f"table of {option}", "row 0", "1.5", "a fraction is not an id"],
    )
    assert "--label" not in str(caught.value)


# ------------------------------------------------------------------ what Python holds


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"train": {"q1": 3}}, ["train: the dict of train", "'q1' is 3"]),
        ({"train": [1, 2]}, ["train: the list of train", "holds 1"]),
        ({"train": 7}, ["train: train cannot be a int"]),
        ({"items": ["a", "b"]}, ["items:", "no such file", "a", "pyarrow.table", "item_id"]),
        ({"items": {"a": 1}}, ["items: the dict of items", "'a' is 1", "pyarrow.table"]),
        ({"items": {"a", "b"}}, ["items: the set of items", "pyarrow.table"]),
        ({"items": [1, 2]}, ["items: the list of items", "pyarrow.table"]),
        ({"items": 7}, ["items: items cannot be a int", "pyarrow.table"]),
        ({"features": {"a": 1}}, ["features: the dict of features", "'a' is 1"]),
    ],
)
def test_what_is_broken_is_called_as_it_was_given(
    options: dict[str, Any], words: list[str]
) -> None:
    metrics = "ild_cosine" if "features" in options else "coverage"
    with pytest.raises((UsageError, InputError)) as caught:
        flat(rankmill.evaluate, LABELS, PREDICTIONS, metrics, **options)
    tells(caught.value, words)
    assert "of labels" not in str(caught.value)


@pytest.mark.parametrize("option", ["items", "features"])
def test_a_file_without_the_column_of_the_others_is_named(option: str, tmp_path: Any) -> None:
    (tmp_path / "1.csv").write_text("item_id,x,y\na,1,2\n")
    (tmp_path / "2.csv").write_text("name,x,y\nb,1,2\n")
    words = [f"{option}: ", "2.csv: no column 'item_id' for the item; the columns are name, x, y"]
    refused(words, metrics="coverage@2", **{option: str(tmp_path)})


@pytest.mark.small
def test_a_catalogue_may_be_a_column_of_many_kinds() -> None:
    for items in (pa.table({"x": ["a", "b"]}), {"i": ["a", "b"]}, [["a"], ["b"]]):
        assert (
            rankmill.evaluate(
                LABELS, PREDICTIONS, "coverage", catalogue=rankmill.Catalogue(items=items)
            )["coverage"]
            == 1
        )


# ------------------------------------------------------------------ which catalogue it was


def identity(**given: Any) -> str:
    asked = "ild_cosine" if "features" in given else "coverage"
    asked += ",exposure_parity" if "item_group" in given else ""
    state = flat(rankmill.parts.evaluate_part, {1: [1]}, {1: [1]}, asked, **given)
    return str(state.catalogue)


@pytest.mark.small
def test_states_of_other_catalogues_do_not_merge() -> None:
    """The counts are the same: 2 items in 2 groups."""
    items = pa.table({"item_id": ["a", "b"], "g": ["1", "2"], "h": ["2", "1"]})
    parts = [
        rankmill.parts.evaluate_part(
            {query: ["a"]},
            {query: ["a", "b"]},
            "exposure_parity@1",
            catalogue=rankmill.Catalogue(items=items, group=group),
        )
        for query, group in (("q1", "g"), ("q2", "h"), ("q3", "g"))
    ]
    with pytest.raises(UsageError) as caught:
        parts[0].merge(parts[1])
    tells(caught.value, ["other catalogue do not merge: 2 items in 2 groups (", ") and 2 items"])
    assert parts[0].merge(parts[2]).result()["exposure_parity@1"] == 0


@pytest.mark.small
def test_the_identity_is_of_the_content_alone() -> None:
    """Each change of an id, a group, an interaction or a number tells; no order does."""
    rng = np.random.default_rng(1)
    n = 40
    items = pa.table({"item_id": np.arange(n), "g": [[f"g{i % 3}", f"g{i % 5}"] for i in range(n)]})
    train = pa.table({"user_id": rng.integers(0, 9, 200), "item_id": rng.integers(0, n, 200)})
    features = pa.table({"item_id": np.arange(n), "v": rng.normal(size=(n, 4)).tolist()})
    given: dict[str, Any] = {"items": items, "item_group": "g", "train": train}
    given["features"] = features
    known = identity(**given)
    for _ in range(3):
        shuffled = {
            name: one.take(rng.permutation(len(one))) if isinstance(one, pa.Table) else one
            for name, one in given.items()
        }
        assert identity(**shuffled, threads=3) == known
    rows = pa.table(
        {"item_id": [*range(n)] * 2, "g": [f"g{i % m}" for m in (3, 5) for i in range(n)]}
    )
    small = items.set_column(0, "item_id", items["item_id"].cast(pa.uint8()))
    assert identity(**given | {"items": rows}) == identity(**given | {"items": small}) == known
    others = [
        {"items": items.set_column(0, "item_id", [[*range(1, n + 1)]])},
        {"items": items.set_column(1, "g", [items["g"].to_pylist()[::-1]])},
        {"train": train.set_column(0, "user_id", [train["user_id"].to_pylist()[::-1]])},
        {"features": features.set_column(1, "v", [features["v"].to_pylist()[::-1]])},
        {"features": features.set_column(1, "v", [(-rng.normal(size=(n, 4))).tolist()])},
        {"train": train.rename_columns(["item_id", "user_id"])},
    ]
    told = [identity(**given | one) for one in others]
    assert len({known, *told}) == 7


@pytest.mark.small
def test_the_identity_of_texts_is_stable() -> None:
    """In every process: the seeds of tables of ids differ, and bits that are stored do not."""
    items = pa.table({"item_id": ["a", "b", "a longer text"], "g": ["1", "2", "2"]})
    state = rankmill.parts.evaluate_part(
        {"q": ["a"]},
        {"q": ["b"]},
        "ild",
        catalogue=rankmill.Catalogue(train={"q": ["b"]}, items=items, group="g"),
    )
    told = "3 items in 2 groups, 1 interaction of 1 query"
    assert state.catalogue == f"{told} (38301f77c4be55406ac1a1e8981fbfc0)"


@pytest.mark.small
def test_what_nothing_looks_at_changes_no_value() -> None:
    """So that a file of options can name it once for all commands."""
    runs = {"one": PREDICTIONS, "two": PREDICTIONS}
    plain = rankmill.evaluate(LABELS, PREDICTIONS, "map")
    for options in ({"train": TRAIN}, {"items": ITEMS, "item_group": "genre"}):
        assert (
            flat(rankmill.evaluate, LABELS, PREDICTIONS, "map", **options).metrics == plain.metrics
        )
        assert flat(rankmill.compare, LABELS, runs, "map", **options).queries == plain.queries
        assert flat(rankmill.gate, LABELS, PREDICTIONS, ["map >= 0.001"], **options).word == "held"


# ------------------------------------------------------------------ runs of a history


def test_runs_with_other_groups_or_training_count_otherwise(tmp_path: Any) -> None:
    """Only in metrics that look at them; runs that say nothing of it can be read still."""
    items = ITEMS.append_column("maker", pa.array(["1", "1", "2", "2"]))
    asked = "map,ild,novelty"
    given: dict[str, Any] = {"items": items, "item_group": "genre", "train": TRAIN}
    found = flat(rankmill.evaluate, LABELS, PREDICTIONS, asked, **given)
    History(tmp_path).record(found)

    def drop(metric: str, baseline: Any = "last", **other: Any) -> str:
        how = {"history": tmp_path} if baseline == "last" else {}
        rule = [f"{metric} drop <= 0.5 confidence none"]
        sides = LABELS, PREDICTIONS, rule
        return flat(rankmill.gate, *sides, baseline=baseline, **how, **given | other).word

    assert drop("ild") == drop("ild", found) == "held"
    for base, words in (("last", "item_group is genre, not maker"), (found, "'genre' there")):
        with pytest.raises((UsageError, InputError), match=words):
            drop("ild", base, item_group="maker")
    for base, words in (("last", "beside is train, items, not train"), (found, "beside")):
        with pytest.raises((UsageError, InputError), match=words):
            drop("novelty", base, items=None, item_group=None)
        others = {"train": None, "items": None, "item_group": None}
        assert drop("map", base, **others) == "held"
    History(tmp_path).record(rankmill.evaluate(LABELS, PREDICTIONS, "map"))
    runs = rankmill.History(tmp_path)
    assert len(runs.trend("map").points) == 2
    assert json.loads(runs.runs[0].rules).items() >= vars(found.scope).items()
