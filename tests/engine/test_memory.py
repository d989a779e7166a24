"""Labels beyond memory: ranges of sorted queries give the same bits as labels held at once."""

from __future__ import annotations

from dataclasses import replace
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
from rankmill.engine.job import open_job, parse_job
from rankmill.engine.memory import bytes_of_all, id_ranges
from rankmill.semantics.presets import PRESETS
from rankmill.sources.files.files import File
from rankmill.sources.files.footers import read_footer, row_groups
from strategies import Case, examples, some

METRICS = ["map@3", "ndcg", "first_hit@2", "gap", "gap@2", "recall@5"]


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of ranges of each attempt, in which more is read twice than usual.

    0 means no ranges. A 0 after another number within one evaluation means that it started again.
    """
    cut: list[int] = []
    score_ranges = first_pass._score_ranges

    def noted(*arguments: Any) -> Any:
        cut.append(0 if arguments[-1] == [None] else len(arguments[-1]))
        return score_ranges(*arguments)

    monkeypatch.setattr("rankmill.engine.memory.MOST_READ", 5)
    monkeypatch.setattr("rankmill.engine.first_pass._score_ranges", noted)
    return cut


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


def in_order(case: Case) -> Case:
    """The case with the queries of both sides sorted, strings by their bytes."""

    def key(query: Any) -> Any:
        return query.encode() if isinstance(query, str) else query

    return replace(
        case,
        labels={query: case.labels[query] for query in sorted(case.labels, key=key)},
        predictions={query: case.predictions[query] for query in sorted(case.predictions, key=key)},
    )


@pytest.mark.small
@settings(max_examples=examples(80))
@given(
    st.one_of(strategies.cases(), strategies.cases().map(in_order)),
    st.tuples(st.booleans(), st.booleans()),
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(list(PRESETS)),
    st.sampled_from([1, 60, 200]),
    st.integers(1, 3),
)
def test_ranges_of_any_input(
    tmp_path: Path,
    ranges: list[int],
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
    assert ranges.pop() == 0
    found = outcome(label_files, prediction_files, **options, memory=memory, threads=threads)
    hypothesis.event(f"{min(ranges[-1], 2)} ranges, {type(found).__name__}")
    assert len(ranges) == 1, "only wrong footers need a second start"
    ranges.clear()
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
def test_ranges_of_many_row_groups(tmp_path: Path, ranges: list[int], text: bool) -> None:
    labels, predictions = dump(4000, 1, text=text)
    sides = [(labels, predictions), (to_wide(labels), to_wide(predictions))]
    cases = [(700, 700, 1, 1, 2), (333, 100, 3, 50_000, 1), (100, 500, 4, 150_000, 3)]
    for case, (label_group, prediction_group, files, memory, threads) in enumerate(cases):
        tables = sides[case % 2][0], sides[case // 2][1]
        expected = outcome(*tables)
        assert ranges.pop() == 0
        one = write(tables[0], tmp_path / "labels", label_group, files)
        other = write(tables[1], tmp_path / "predictions", prediction_group, files)
        seen: list[tuple[int, int | None]] = []
        found = outcome(one, other, memory=memory, threads=threads, progress=noting(seen))
        assert found == expected
        assert ranges.pop() > 1
        assert seen == sorted(seen)
        assert seen[-1] == (len(tables[1]),) * 2
    assert not ranges


def test_several_systems_and_states(tmp_path: Path, ranges: list[int]) -> None:
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
    assert len(ranges) == 2
    assert min(ranges) > 1
    assert seen == sorted(seen)
    assert seen[-1] == (len(predictions) + len(other),) * 2
    for name, table in (("a", predictions), ("b", other)):
        alone = rankmill.evaluate(labels, table, METRICS)
        assert (results[name].metrics, results[name].audit) == (alone.metrics, alone.audit)
    state = rankmill.parts.evaluate_part(paths[0], paths[1], METRICS, memory=1)
    assert str(state.to_row()) == str(
        rankmill.parts.evaluate_part(labels, predictions, METRICS).to_row()
    )


def test_padding_is_dropped_in_ranges(tmp_path: Path, ranges: list[int]) -> None:
    rng = np.random.default_rng(11)
    paths = []
    for name in ("labels", "predictions"):
        items = np.sort(rng.integers(-1, 9, (2_000, 4)))[:, ::-1]
        table = pa.table({"user_id": np.arange(2_000), "items": items.tolist()})
        paths.append(write(table, tmp_path / name, row_group=100))
    sides = rankmill.Labels(paths[0], padding=-1), rankmill.Predictions(paths[1], padding=-1)
    whole = rankmill.evaluate(*sides, ["map@3", "recall"], per_query=False)
    divided = rankmill.evaluate(*sides, ["map@3", "recall"], per_query=False, memory=50_000)
    assert ranges[-1] > 1
    assert divided.metrics == whole.metrics


def test_files_that_share_ids_are_sorted_too(tmp_path: Path, ranges: list[int]) -> None:
    """Files split by a hash of the query, each of them sorted, have overlapping row groups."""
    tables = list(map(to_wide, dump(3000, 4)))
    for name, table in zip(("labels", "predictions"), tables, strict=True):
        (tmp_path / name).mkdir()
        for part in range(3):
            rows = table.filter(pa.array(np.asarray(table["query"]) % 9 // 3 == part))
            pq.write_table(rows, tmp_path / name / f"{part}.parquet", row_group_size=50)
    paths = (str(tmp_path / "labels"), str(tmp_path / "predictions"))
    assert outcome(*paths, memory=40_000) == outcome(*tables)
    assert len(ranges) == 2
    assert ranges[0] > 1


# ------------------------------------------------------------------ inputs that are not sorted


def with_footer(path: Path, found: int, wanted: int) -> None:
    """Make the footer of a file claim another bound than the real one."""
    raw = path.read_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    old, new = (number.to_bytes(8, "little", signed=True) for number in (found, wanted))
    footer = raw[start:]
    assert old in footer
    path.write_bytes(raw[:start] + footer.replace(old, new))


@pytest.mark.parametrize(
    ("side", "bound"), [("labels", "low"), ("predictions", "low"), ("predictions", "high")]
)
def test_bounds_that_are_wrong(tmp_path: Path, ranges: list[int], side: str, bound: str) -> None:
    tables = list(map(to_wide, dump(3000, 5)))
    paths = [
        Path(write(table, tmp_path / name, 100)) / "0.parquet"
        for name, table in zip(("labels", "predictions"), tables, strict=True)
    ]
    whole = outcome(*tables)
    path = paths[side == "predictions"]
    group = row_groups(read_footer(File(str(path), str(path))), 0, "query", "item")[3]
    if bound == "low":
        with_footer(path, group.low, group.high)
    else:
        with_footer(path, group.high, group.low)
    ranges.clear()
    assert outcome(*map(str, paths), memory=1) == whole
    assert ranges[0] > 1, "the footers must look sorted"
    assert ranges[1:] == [0]


def test_a_range_without_labels(tmp_path: Path, ranges: list[int]) -> None:
    tables = list(map(to_wide, dump(3000, 5)))
    paths = [
        Path(write(table, tmp_path / name, 100)) / "0.parquet"
        for name, table in zip(("labels", "predictions"), tables, strict=True)
    ]
    group = row_groups(read_footer(File(str(paths[0]), str(paths[0]))), 0, "query", "item")[3]
    with_footer(paths[0], group.high, group.low - 1)  # no id is between these bounds
    labels, predictions = map(str, paths)
    plan = rankmill.plan(labels, predictions, ["map"], memory=1, per_query=False)
    assert plan["labels"]["rows"] == tables[0].num_rows
    assert outcome(labels, predictions, memory=1) == outcome(*tables)


def test_rows_out_of_order_within_row_groups(tmp_path: Path, ranges: list[int]) -> None:
    tables = list(map(to_wide, dump(3000, 6)))
    mixed = []
    draw = np.random.default_rng(0)
    for table in tables:
        order = np.arange(len(table))
        for start in range(0, len(order), 200):
            draw.shuffle(order[start : start + 200])
        mixed.append(table.take(pa.array(order)))
    labels = write(mixed[0], tmp_path / "labels", 200)
    predictions = write(mixed[1], tmp_path / "predictions", 200)
    assert outcome(labels, predictions, memory=1) == outcome(*tables)
    assert ranges[0] > 1
    assert ranges[1:] == [0], "only the tables are held whole"


@pytest.mark.parametrize(
    ("metrics", "share", "mixed", "count"),
    [("map", 0.9, 3000, 2), ("gap", 1.5, 3000, 0), ("gap", 1.5, 300, 2), ("gap", 0.9, 3000, 0)],
)
def test_how_much_ranges_may_read_twice(
    tmp_path: Path, metrics: str, share: float, mixed: int, count: int
) -> None:
    """Of predictions in any order, all: so where labels fit, but leave little, they are held."""
    labels, predictions = map(to_wide, dump(3000, 6))
    order, draw = np.arange(len(predictions)), np.random.default_rng(0)
    for start in range(0, len(order), mixed):
        draw.shuffle(order[start : start + mixed])
    sides = (
        rankmill.Labels(write(labels, tmp_path / "labels", 100)),
        rankmill.Predictions(
            write(predictions.take(pa.array(order)), tmp_path / "predictions", 100)
        ),
    )
    job = parse_job(metrics, sides[0], "default", keep_values=False)
    with open_job(job, sides[0], {"": sides[1]}) as (opened, inputs):
        whole = bytes_of_all(opened)
        within = replace(job, memory=int(whole * share))
        assert len(id_ranges(opened, inputs[""], within, whole)) == count
    found = outcome(sides[0], sides[1], metrics=metrics, memory=int(whole * share))
    assert found == outcome(labels, predictions, metrics=metrics)


@pytest.mark.parametrize(
    "case", ["shuffled", "no statistics", "a table", "values per query", "two types"]
)
def test_labels_are_held(tmp_path: Path, ranges: list[int], case: str) -> None:
    labels, predictions = map(to_wide, dump(2000, 7))
    if case == "shuffled":
        order = np.random.default_rng(0).permutation(len(predictions))
        predictions = predictions.take(pa.array(order))
    statistics = case != "no statistics"
    paths: list[Any] = [
        write(labels, tmp_path / "labels", 100),
        write(predictions, tmp_path / "predictions", 100, write_statistics=statistics),
    ]
    if case == "a table":
        paths[0] = labels
    if case == "two types":  # ids of a signed and of an unsigned type are refused together
        columns = {"query": pa.array([1 << 20], pa.int32()), "item": [[1]]}
        labels = pa.concat_tables([labels, pa.table(columns)], promote_options="permissive")
        pq.write_table(pa.table(columns), Path(paths[0]) / "1.parquet")
    per_query = case == "values per query"
    found = outcome(*paths, memory=1, per_query=per_query)
    assert found == outcome(labels, predictions)
    assert ranges == [0, 0]


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("what", ["repeated", "null", "no label"])
def test_errors_are_those_of_held_labels(
    tmp_path: Path, ranges: list[int], side: int, what: str
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
    assert ranges == [0, ranges[1]]
    assert ranges[1] > 1


def test_queries_that_must_be_labelled(tmp_path: Path, ranges: list[int]) -> None:
    tables = list(map(to_wide, dump(1000, 9)))
    paths = [write(one, tmp_path / str(number), 100) for number, one in enumerate(tables)]
    for field in ("unlabelled", "unpredicted"):
        whole = outcome(*paths, semantics={field: "error"})
        assert f"{field} is 'error'" in whole
        assert outcome(*paths, semantics={field: "error"}, memory=1) == whole
    assert set(ranges) == {0}, "the footers might be wrong about what is missing"


def test_bounds_of_ids_are_not_read_where_labels_fit() -> None:
    table = pa.table({"query": [1], "items": [[1]], "item": [1]})

    def unread(*arguments: Any) -> Any:
        raise AssertionError("the bounds of ids were asked for")

    job = parse_job("map", rankmill.Labels(table), "default", keep_values=False)
    with open_job(
        job, rankmill.Labels(table, item="items"), {"": rankmill.Predictions(table, item="items")}
    ) as (labels, inputs):
        asking = replace(labels, source=replace(labels.source, row_groups=unread))
        assert id_ranges(asking, inputs[""], job, 1) == []
        with pytest.raises(AssertionError, match="were asked for"):
            id_ranges(asking, inputs[""], job, 1 << 40)


def test_labels_of_a_range_without_predictions_count(tmp_path: Path, ranges: list[int]) -> None:
    """Coverage is over all labels, and a block of predictions is not what brings them."""
    query = np.arange(600)
    labels = pa.table({"query": query, "items": (query[:, None] + [0, 1000]).tolist()})
    predictions = pa.table({"query": query, "items": (query[:, None] % 70 + [0, 1]).tolist()})
    predictions = pa.concat_tables([predictions[:200], predictions[450:]])
    paths = [write(one, tmp_path / name, 50) for one, name in ((labels, "l"), (predictions, "p"))]
    metrics = ["coverage@1", "coverage", "coverage_of_labels", "gini", "map"]
    expected = outcome(labels, predictions, metrics=metrics)
    assert ranges.pop() == 0
    assert outcome(*paths, metrics=metrics, memory=1) == expected
    assert ranges[0] > 3
    assert expected[0]["coverage"] == 71 / 1200


# ------------------------------------------------------------------ what has to be held whole


@pytest.mark.small
@pytest.mark.parametrize("what", ["its labels take", "a list, which is read as a whole, takes"])
def test_what_cannot_be_divided_is_refused_with_the_number(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankmill.engine.memory.SPARED", 1)
    many = pa.table({"user_id": [2, 1, 3], "items": [[1], [2], [3]]})
    one = pa.table({"user_id": [2], "items": [list(range(100_000))]})
    labels = write(many, tmp_path / "labels", 10)
    predictions = write(one if "list" in what else many, tmp_path / "predictions", 10)
    told = rankmill.plan(labels, predictions, "map@3", memory=1 << 20)
    assert told["least"] == (6_400_000 if "list" in what else 3 * (35 + 8))
    memory = told["least"] - 1
    with pytest.raises(rankmill.ResourceError) as caught:
        rankmill.evaluate(labels, predictions, "map@3", memory=memory)
    side = predictions if "list" in what else labels
    for text in (side, what, f"allow {told['least'] // 10**6 + 1}MB"):
        assert text in str(caught.value)
    rankmill.evaluate(labels, predictions, "map@3", memory=memory + 1)
