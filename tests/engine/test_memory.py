"""Labels beyond memory: shares of the queries give the same bits as labels held at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
import strategies
from flat import flat
from rankmill import InputError
from rankmill.engine import first_pass
from rankmill.engine.first_pass import bytes_of_labels
from rankmill.engine.job import open_job, parse_job
from rankmill.semantics.presets import PRESETS
from strategies import Case, examples, some

METRICS = ["map@3", "ndcg", "first_hit@2", "gap", "gap@2", "recall@5"]


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of shares that each system is scored in."""
    counts: list[int] = []
    shares_of = first_pass.shares_of

    def noted(*arguments: Any) -> Any:
        found = shares_of(*arguments)
        counts.append(len(found))
        return found

    monkeypatch.setattr("rankmill.engine.first_pass.shares_of", noted)
    return counts


def outcome(labels: Any, predictions: Any, **options: Any) -> Any:
    """Return all that must be the same to the bit, or the error."""
    options = {"metrics": METRICS, "per_query": False, **options}
    try:
        result = flat(rankmill.evaluate, labels, predictions, **options)
    except InputError as error:
        return str(error)
    return result.metrics, result.standard_errors, result.bounds, result.audit, result.queries


def noting(seen: list[tuple[int, int | None]]) -> Any:
    return lambda *at: seen.append(at)


def write(table: pa.Table, folder: Path, row_group: int, files: int = 1, **options: Any) -> str:
    """Write the rows to a folder of consecutive files."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    table, step = strategies.storable(table), max(1, -(-len(table) // files))
    for number, start in enumerate(range(0, max(1, len(table)), step)):
        part = table.slice(start, step)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=row_group, **options)
    return str(folder)


@pytest.mark.small
@settings(max_examples=examples(80))
@given(
    strategies.cases(),
    st.tuples(st.booleans(), st.booleans()),
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(list(PRESETS)),
    st.sampled_from([1, 60, 200]),
    st.integers(1, 3),
)
def test_shares_of_any_input(
    tmp_path: Path,
    shares: list[int],
    case: Case,
    wide: tuple[bool, bool],
    sizes: tuple[int, int, int, int],
    semantics: str,
    memory: int,
    threads: int,
) -> None:
    labels = strategies.wide_labels(case)
    predictions = strategies.wide_predictions(case)
    if not wide[0]:
        labels = strategies.long_labels(case, strategies.rows(case.labels))
    if not wide[1]:
        predictions = strategies.long_predictions(case, strategies.rows(case.predictions))
    if not len(labels) or not len(predictions):
        return
    options: dict[str, Any] = {
        "gain": "gain" if case.graded else None,
        "semantics": PRESETS[semantics].semantics,
        "metrics": ["map", "recall@5"],
    }
    if PRESETS[semantics].semantics.gap_ties not in ("given", "ids"):  # those hold all predictions
        options["metrics"].append("gap")
    label_files = write(labels, tmp_path / "labels", sizes[0], sizes[2])
    prediction_files = write(predictions, tmp_path / "predictions", sizes[1], sizes[3])
    try:
        whole = outcome(label_files, prediction_files, **options)
    except rankmill.UsageError:
        return  # the metric is not defined under these semantics
    assert shares.pop() == 1
    found = outcome(label_files, prediction_files, **options, memory=memory, threads=threads)
    hypothesis.event(f"{min(shares.pop(), 2)} shares, {type(found).__name__}")
    if isinstance(whole, str) and isinstance(found, str):
        return  # with several errors, another one may come first
    assert found == whole


def dump(queries: int, seed: int, *, text: bool = False) -> tuple[pa.Table, pa.Table]:
    """Long labels, some graded 0, and long predictions, sorted by query; half of 1 in 8 missing."""
    draw = np.random.default_rng(seed)
    tables = []
    for most in (6, 12):
        known = np.flatnonzero(draw.random(queries) < 0.95)
        query = np.repeat(known * 3 - queries, draw.integers(1, most, len(known)))
        ids: Any = [f"{one + queries:06}" for one in query] if text else query
        items = pa.array(draw.integers(0, 30, len(query)))
        numbers = draw.integers(0, 50, len(query)).astype(np.float32)
        tables.append(pa.table({"query": ids, "item": items, "score": numbers}))
    return tables[0].drop_columns("score"), tables[1]


def to_wide(table: pa.Table) -> pa.Table:
    aggregations = [(name, "list") for name in table.column_names[1:]]
    grouped = table.group_by("query", use_threads=False).aggregate(aggregations)
    return grouped.rename_columns(table.column_names).sort_by("query")


@pytest.mark.parametrize("text", some([True, False], 2), ids=["strings", "integers"])
@pytest.mark.long
def test_shares_of_many_row_groups(tmp_path: Path, shares: list[int], text: bool) -> None:
    labels, predictions = dump(4000, 1, text=text)
    sides = [(labels, predictions), (to_wide(labels), to_wide(predictions))]
    cases = [(700, 700, 1, 1, 2), (333, 100, 3, 50_000, 1), (100, 500, 4, 150_000, 3)]
    for case, (label_group, prediction_group, files, memory, threads) in enumerate(cases):
        tables = sides[case % 2][0], sides[case // 2][1]
        expected = outcome(*tables)
        assert shares.pop() == 1
        one = write(tables[0], tmp_path / "labels", label_group, files)
        other = write(tables[1], tmp_path / "predictions", prediction_group, files)
        seen: list[tuple[int, int | None]] = []
        found = outcome(one, other, memory=memory, threads=threads, progress=noting(seen))
        assert found == expected
        assert shares.pop() > 1
        assert seen == sorted(seen)
        assert seen[-1] == (len(tables[1]),) * 2
    assert not shares


def test_several_systems_and_states(tmp_path: Path, shares: list[int]) -> None:
    labels, predictions = dump(2000, 2)
    other = dump(2000, 3)[1]
    paths = [
        write(table, tmp_path / str(number), 500)
        for number, table in enumerate([labels, predictions, other])
    ]
    runs = {"a": paths[1], "b": paths[2]}
    seen: list[tuple[int, int | None]] = []
    options: dict[str, Any] = {"memory": 1, "per_query": False}
    options["progress"] = noting(seen)
    results = flat(rankmill.evaluate_runs, paths[0], runs, METRICS, **options)
    assert len(shares) == 2
    assert min(shares) > 1
    assert seen == sorted(seen)
    assert seen[-1] == (len(predictions) + len(other),) * 2
    for name, table in (("a", predictions), ("b", other)):
        alone = rankmill.evaluate(labels, table, METRICS)
        assert (results[name].metrics, results[name].audit) == (alone.metrics, alone.audit)
    state = rankmill.parts.evaluate_part(paths[0], paths[1], METRICS, memory=1)
    assert str(state.to_row()) == str(
        rankmill.parts.evaluate_part(labels, predictions, METRICS).to_row()
    )


def test_padding_is_dropped_in_shares(tmp_path: Path, shares: list[int]) -> None:
    rng = np.random.default_rng(11)
    paths = []
    for name in ("labels", "predictions"):
        items = np.sort(rng.integers(-1, 9, (2_000, 4)))[:, ::-1]
        table = pa.table({"user_id": np.arange(2_000), "items": items.tolist()})
        paths.append(write(table, tmp_path / name, row_group=100))
    sides = rankmill.Labels(paths[0], padding=-1), rankmill.Predictions(paths[1], padding=-1)
    whole = rankmill.evaluate(*sides, ["map@3", "recall"], per_query=False)
    divided = rankmill.evaluate(*sides, ["map@3", "recall"], per_query=False, memory=50_000)
    assert shares[-1] > 1
    assert divided.metrics == whole.metrics


@pytest.mark.parametrize("case", ["shuffled", "two types"])
def test_files_in_any_order(tmp_path: Path, shares: list[int], case: str) -> None:
    labels, predictions = map(to_wide, dump(2000, 7))
    if case == "shuffled":
        order = np.random.default_rng(0).permutation(len(predictions))
        predictions = predictions.take(pa.array(order))
    paths = [write(labels, tmp_path / "labels", 100), write(predictions, tmp_path / "run", 100)]
    if case == "two types":
        columns = {"query": pa.array([1 << 20], pa.int32()), "item": [[1]]}
        labels = pa.concat_tables([labels, pa.table(columns)], promote_options="permissive")
        pq.write_table(pa.table(columns), Path(paths[0]) / "1.parquet")
    assert outcome(*paths, memory=1) == outcome(labels, predictions)
    assert shares == [16, 1]


@pytest.mark.parametrize("case", ["a table", "values per query"])
def test_labels_are_held(tmp_path: Path, shares: list[int], case: str) -> None:
    labels, predictions = map(to_wide, dump(2000, 7))
    path = write(predictions, tmp_path / "predictions", 100)
    held: Any = labels if case == "a table" else write(labels, tmp_path / "labels", 100)
    found = outcome(held, path, memory=1, per_query=case == "values per query")
    assert found == outcome(labels, predictions)
    assert shares == [1, 1]


@pytest.mark.parametrize(
    ("metrics", "part", "count"),
    [("map", 0.9, 2), ("map", 1.4, 1), ("gap", 1.4, 1), ("gap", 1.2, 2), ("gap", 0.6, 3)],
)
def test_how_many_shares_there_are(
    tmp_path: Path, shares: list[int], metrics: str, part: float, count: int
) -> None:
    """Labels take three quarters of the memory at most."""
    labels, predictions = map(to_wide, dump(3000, 6))
    paths = [write(labels, tmp_path / "labels", 100), write(predictions, tmp_path / "run", 100)]
    job = parse_job(metrics, rankmill.Labels(paths[0]), "default")
    with open_job(job, rankmill.Labels(paths[0]), {"": rankmill.Predictions(paths[1])}) as found:
        whole = bytes_of_labels(found[0])
    assert outcome(*paths, metrics=metrics, memory=int(whole * part)) == outcome(
        labels, predictions, metrics=metrics
    )
    assert shares == [count, 1]


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("what", ["repeated", "null", "no label"])
def test_errors_are_those_of_held_labels(
    tmp_path: Path, shares: list[int], side: int, what: str
) -> None:
    tables = list(map(to_wide, dump(1000, 8)))
    table = tables[side]
    if what == "no label":
        tables[0] = tables[0].set_column(
            1, "item", pa.array([[]] * len(tables[0]), pa.list_(pa.int64()))
        )
    else:
        ids = table["query"].to_pylist()
        ids[501] = ids[499] if what == "repeated" else None  # row groups end before row 500
        tables[side] = table.set_column(0, "query", pa.array(ids, pa.int64()))
        if what == "repeated":
            tables[side] = tables[side].sort_by("query")
    paths = [write(one, tmp_path / str(number), 100) for number, one in enumerate(tables)]
    whole = outcome(*paths)
    assert isinstance(whole, str)
    assert outcome(*paths, memory=1) == whole
    assert shares == [1, 16]


def test_queries_that_must_be_labelled(tmp_path: Path, shares: list[int]) -> None:
    tables = list(map(to_wide, dump(1000, 9)))
    paths = [write(one, tmp_path / str(number), 100) for number, one in enumerate(tables)]
    for field in ("unlabelled", "unpredicted"):
        whole = outcome(*paths, semantics={field: "error"})
        assert f"{field} is 'error'" in whole
        assert outcome(*paths, semantics={field: "error"}, memory=1) == whole
    assert set(shares) == {1}


def test_labels_of_a_share_without_predictions_count(tmp_path: Path, shares: list[int]) -> None:
    """Coverage is over all labels, and a block of predictions is not what brings them."""
    query = np.arange(600)
    labels = pa.table({"query": query, "items": (query[:, None] + [0, 1000]).tolist()})
    predictions = pa.table({"query": query, "items": (query[:, None] % 70 + [0, 1]).tolist()})
    predictions = pa.concat_tables([predictions[:5], predictions[450:455]])
    paths = [write(one, tmp_path / name, 50) for one, name in ((labels, "l"), (predictions, "p"))]
    metrics = ["coverage@1", "coverage", "coverage_of_labels", "gini", "map"]
    expected = outcome(labels, predictions, metrics=metrics)
    assert shares.pop() == 1
    assert outcome(*paths, metrics=metrics, memory=1) == expected
    assert shares[0] > 3
    assert expected[0]["coverage"] == 12 / 1200


# ------------------------------------------------------------------ what has to be held whole


@pytest.mark.small
@pytest.mark.parametrize("what", ["its labels take", "a list, which is read as a whole, takes"])
def test_what_cannot_be_divided_is_refused_with_the_number(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankmill.engine.first_pass.SPARED", 1)
    many = pa.table({"user_id": range(300), "items": [[1]] * 300})
    one = pa.table({"user_id": [2], "items": [list(range(100_000))]})
    labels = write(many, tmp_path / "labels", 10)
    predictions = write(one if "list" in what else many, tmp_path / "predictions", 10)
    held = 6_400_000 if "list" in what else 300 * (35 + 8)
    shares = 1 if "list" in what else 16
    memory = -(-held // shares) - 1
    with pytest.raises(rankmill.ResourceError) as caught:
        rankmill.evaluate(labels, predictions, "map@3", memory=memory, per_query=False)
    side = predictions if "list" in what else labels
    for text in (side, what, f"allow {held // shares // 10**6 + 1}MB"):
        assert text in str(caught.value)
    rankmill.evaluate(labels, predictions, "map@3", memory=memory + 1, per_query=False)
