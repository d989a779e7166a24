"""A slice of every aggregate has the bits of an evaluation of its queries alone."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
from rankmill import Catalogue, InputError, Labels, Semantics, UsageError
from rankmill.engine import first_pass
from rankmill.parts import State, evaluate_part
from sealed_rows import resealed
from strategies import examples

KINDS = ["a", "b", "c", None]
OF_QUERIES = ["map@3", "recall@3:micro", "first_rank:median", "utility", "bpref", "ndcg@2"]
POOLED = ["gap", "gap@2", "auprc", "best_f1", "best_f1_threshold", "brier", "ece", "dprime"]
SHOWN = ["coverage@2", "coverage_of_labels@3", "gini@3", "entropy", "hhi", "personalization@2"]
BESIDE = [
    "popularity@2",
    "popularity_lift",
    "novelty",
    "serendipity@2",
    "head_share@2",
    "psp@2",
    "psndcg@3",
]
GROUPS = [
    "exposure_parity",
    "treatment_parity@2",
    "recall_parity",
    "miscalibration@2",
    "ild",
    "epd@2",
]

SIDES = st.integers(0, 2**32).map(random.Random)
CHOICES: dict[str, Any] = {
    "unlabelled": ["skip", "zero", "one"],
    "unpredicted": ["zero", "skip"],
    "no_relevant": ["skip", "zero", "one"],
    "repeated_labels": ["set", "count"],
    "repeated_predictions": ["once", "each"],
    "order": ["given", "confidence", "item_descending"],
    "gap_ties": ["expected", "worst", "given"],
    "gap_total": ["labelled_queries", "label_pairs", "predicted_label_pairs", "hits"],
}


def sides(draw: random.Random, count: int = 24, repeats: bool = True) -> tuple[pa.Table, pa.Table]:
    """Labels with a kind, gains and weights, and predictions; some queries are on one side only."""
    labels, lists = [], []
    for query in draw.sample(range(100), count):
        pick = draw.choices if repeats else draw.sample
        items = pick(range(9), k=draw.choice([0, 1, 1, 2, 4]))
        gains = [draw.choice([-1.0, 0.0, 1.0, 2.0]) if draw.random() < 0.3 else 1.0 for _ in items]
        if draw.random() < 0.9:
            kind = draw.choice(KINDS)
            labels.append((query, kind, items, gains, draw.choice([0.0, 0.5, 1.0, 3.0])))
        if draw.random() < 0.8:
            shown = pick(range(12), k=draw.randint(0, 6))
            lists.append((query, shown, [draw.randint(0, 4) / 4 for _ in shown]))
    kinds = [pa.int64(), pa.string(), pa.list_(pa.int64()), pa.list_(pa.float64()), pa.float64()]
    fields = zip(["query", "kind", "items", "gains", "w"], kinds, strict=True)
    held = pa.Table.from_pylist([], pa.schema([*fields]))
    if labels:
        held = pa.table([*map(list, zip(*labels, strict=True))], schema=held.schema)
    shape = pa.schema([("query", kinds[0]), ("items", kinds[2]), ("scores", kinds[3])])
    given = pa.Table.from_pylist([], shape)
    if lists:
        given = pa.table([*map(list, zip(*lists, strict=True))], schema=shape)
    return held, given


def of_kind(
    labels: pa.Table, lists: pa.Table, kind: str | None, table: pa.Table | None = None
) -> tuple[pa.Table, pa.Table]:
    """The queries of one kind on both sides; a table tells also that of those without labels."""
    if table is not None:
        kinds = dict(zip(*(one.to_pylist() for one in table.columns), strict=True))
        return tuple(  # type: ignore[return-value]
            one.filter(
                pa.array([kinds.get(q) == kind for q in one["query"].to_pylist()], pa.bool_())
            )
            for one in (labels, lists)
        )
    same = pc.equal(labels["kind"], kind).fill_null(False) if kind else labels["kind"].is_null()
    own = labels.filter(same)
    others = labels.filter(pc.invert(same))["query"]
    mine = pc.is_in(lists["query"], own["query"])
    if kind is None:
        mine = pc.invert(pc.is_in(lists["query"], others))
    return own, lists.filter(mine)


def rows_of(found: pa.Table, by: str = "kind") -> dict[Any, Any]:
    return {
        (row["slice"], row["metric"]): (row["value"], row["standard_error"], row["queries"])
        for row in found.to_pylist()
        if row["by"] == by
    }


def assert_alone(
    labels: pa.Table,
    lists: pa.Table,
    metrics: list[str],
    how: dict[str, Any],
    table: pa.Table | None = None,
    **noun: Any,
) -> int:
    """Hold every slice to an evaluation of its queries; return how many were compared."""
    labels = labels if table is None else labels.drop_columns(["kind"])
    by = "kind" if table is None else table
    try:
        whole = rankmill.evaluate(
            Labels(labels, **noun), lists, metrics, by=by, per_query=False, **how
        )
    except (InputError, UsageError) as error:
        with pytest.raises(type(error)):
            rankmill.evaluate(Labels(labels, **noun), lists, metrics, **how)
        return 0
    plain = rankmill.evaluate(Labels(labels, **noun), lists, metrics, **how)
    assert plain.metrics == whole.metrics
    found, compared = rows_of(whole.by), 0
    assert {metric for _, metric in found} == {*metrics} or not found
    for kind in KINDS:
        own = of_kind(labels, lists, kind, table)
        how_alone = {name: one for name, one in how.items() if name != "memory"}
        try:
            alone = rankmill.evaluate(Labels(own[0], **noun), own[1], metrics, **how_alone)
        except InputError:  # without a label, or without a row
            continue
        if not alone.queries:
            assert kind not in {value for value, _ in found}
            continue
        for name in metrics:
            wanted = alone.metrics[name], alone.standard_errors[name], alone.averaged(name)
            assert found[kind, name] == wanted, (kind, name)
            compared += 1
    return compared


@pytest.mark.small
@settings(max_examples=examples(40))
@given(SIDES, st.sampled_from([1, 2, 4]), st.booleans())
def test_values_of_queries_and_confidences(draw: random.Random, threads: int, little: bool) -> None:
    labels, lists = sides(draw)
    chosen = {name: draw.choice(some) for name, some in CHOICES.items() if draw.random() < 0.5}
    metrics = draw.sample(OF_QUERIES + POOLED, 5)
    if {"first_rank:median", "utility"} & {*metrics}:  # no value where a side is empty
        chosen |= {"unpredicted": "skip", "no_relevant": "skip", "unlabelled": "skip"}
    how: dict[str, Any] = {"threads": threads, "semantics": Semantics(**chosen)}
    if little and chosen.get("gap_ties") != "given":
        how["memory"] = 100  # confidences are read a second time
    assert_alone(labels, lists, metrics, how, some_table(draw), gain="gains")


def some_table(draw: random.Random) -> pa.Table | None:
    """A table of the kinds of most queries, with labels or without; or none, half of the time."""
    if draw.random() < 0.5:
        return None
    queries = draw.sample(range(100), 80)
    return pa.table({"query": queries, "kind": pa.array(draw.choices(KINDS, k=80), pa.string())})


@pytest.mark.small
@settings(max_examples=examples(20))
@given(SIDES)
def test_what_lists_show(draw: random.Random) -> None:
    labels, lists = sides(draw)
    how = {"threads": draw.choice([1, 3])}
    assert_alone(labels, lists, SHOWN, how, some_table(draw), gain="gains")
    train = pa.table({"query": [*range(30)], "items": [[n % 12, n % 7] for n in range(30)]})
    items = pa.table({"item": [*range(12)], "genre": [["x"], ["y"], ["x", "y"]] * 4})
    beside = Catalogue(train=train, items=items, group="genre", drop_seen=draw.random() < 0.5)
    every = [*BESIDE, *GROUPS, *SHOWN]
    assert_alone(labels, lists, every, {"catalogue": beside}, some_table(draw), gain="gains")


@pytest.mark.small
@pytest.mark.parametrize("preset", ["trec_eval", "default"])
@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("weight", [None, "w"])
def test_presets_judged_only_and_weights(preset: str, judged_only: bool, weight: Any) -> None:
    compared = 0
    for seed in range(4):
        labels, lists = sides(random.Random(seed), 60, repeats=False)
        metrics = (
            ["map", "ndcg@3", "recall@5:micro"] if weight else ["map", "bpref", "precision@3:micro"]
        )
        metrics += [] if weight else ["map:gm"] if preset == "trec_eval" else ["gap"]
        how = {"semantics": Semantics(preset, judged_only=judged_only)}
        compared += assert_alone(labels, lists, metrics, how, gain="gains", weight=weight)
    assert compared > 20


@pytest.mark.small
@settings(max_examples=examples(20))
@given(SIDES)
def test_states_of_parts_give_the_same_bits_in_any_order(draw: random.Random) -> None:
    labels, lists = sides(draw, 40)
    of_items = draw.random() < 0.5
    metrics = ["map", "recall@3:micro", "map:p90", *["coverage@2", "gini@2"] * of_items]
    sums = ["a = 0.5*map[kind=a] + 2*recall@3:micro", "b = 0.25*map:p90 + map"]
    how: Any = {"by": ["kind", "label_count"], "sums": sums}
    try:
        whole = rankmill.evaluate(Labels(labels, gain="gains"), lists, metrics, **how)
    except InputError:  # nothing of this kind, or without a label
        return
    rows = []
    for part in range(3):
        own, given = (
            one.filter(pa.array([q % 3 == part for q in one["query"].to_pylist()], pa.bool_()))
            for one in (labels, lists)
        )
        state = evaluate_part(Labels(own, gain="gains"), given, metrics, **how)
        rows.append(pa.Table.from_pylist([state.to_row()]).to_pylist()[0])
    draw.shuffle(rows)
    one, two, three = map(State.from_row, rows)
    merged = one.merge(two.merge(three))
    assert (
        merged.to_row()["row_checksum"] == State.from_row(merged.to_row()).to_row()["row_checksum"]
    )
    other = three.merge(one).merge(two)
    # Items are kept in the order in which they were found.
    assert of_items or other.to_row()["row_checksum"] == merged.to_row()["row_checksum"]
    for found in (merged.result(), other.result()):
        assert found.by == whole.by
        assert found.sums == whole.sums
        assert found.metrics == whole.metrics
    with pytest.raises(UsageError, match="states of other slices do not merge"):
        one.merge(evaluate_part(labels, lists, metrics, sums=sums[1:]))


@pytest.mark.small
@settings(max_examples=examples(15))
@given(SIDES)
def test_a_table_cuts_queries_without_labels_in_every_layout(draw: random.Random) -> None:
    """Parts, and shares that little memory makes, ask the whole table as one evaluation does."""
    labels, lists = sides(draw, 40)
    labels, metrics = labels.drop_columns(["kind"]), ["coverage@2", "gini@2", "map@3"]
    kinds = pa.array(draw.choices(KINDS, k=100), pa.string())
    how: Any = {"by": pa.table({"query": range(100), "kind": kinds})}
    how["semantics"] = Semantics(unlabelled=draw.choice(CHOICES["unlabelled"]))
    whole = rankmill.evaluate(Labels(labels, gain="gains"), lists, metrics, **how)
    little = rankmill.evaluate(Labels(labels, gain="gains"), lists, metrics, memory=100, **how)
    states = []
    for part in range(3):
        own, given = (
            one.filter(pa.array([q % 3 == part for q in one["query"].to_pylist()], pa.bool_()))
            for one in (labels, lists)
        )
        states.append(evaluate_part(Labels(own, gain="gains"), given, metrics, **how))
    parts = states[2].merge(states[0]).merge(states[1]).result()
    assert whole.by == little.by == parts.by


@pytest.mark.small
def test_what_has_no_slices_in_parts_is_refused() -> None:
    labels, lists = sides(random.Random(1))
    with pytest.raises(UsageError, match="gap has no slices in parts or on Spark, as the second"):
        evaluate_part(labels, lists, ["map", "gap"], by="kind")
    with pytest.raises(UsageError, match="needs the labels of all queries: use evaluate"):
        evaluate_part(labels, lists, ["map"], by="label_popularity")


@pytest.mark.small
def test_a_damaged_row_of_slices() -> None:
    labels, lists = sides(random.Random(1))
    row = evaluate_part(labels, lists, ["map"], by="kind").to_row()
    with pytest.raises(UsageError, match="checksum"):
        State.from_row(row | {"by": "other"})
    with pytest.raises(UsageError, match="its slices are not those of by"):
        State.from_row(resealed(row | {"by": "other"}))
    with pytest.raises(UsageError, match="slices"):
        State.from_row(resealed(row | {"slices": row["slices"][:40]}))


@pytest.mark.small
def test_sums_leave_default_metrics_out_as_the_preset_does() -> None:
    labels, lists = sides(random.Random(3), repeats=False)
    plain = rankmill.evaluate(labels, lists, semantics="torchmetrics")
    summed = rankmill.evaluate(labels, lists, semantics="torchmetrics", sums="x = 0.5*map@3")
    assert plain.notes  # something is left out
    assert summed.notes == plain.notes
    assert summed.metrics == plain.metrics | {"map@3": 2 * summed["x"]}


@pytest.mark.small
@pytest.mark.parametrize("per_query", [False, True])
def test_empty_slices_slices_of_one_query_and_nulls(per_query: bool) -> None:
    labels = pa.table(
        {
            "query": [1, 2, 3, 4],
            "items": [["a"], ["b"], [], ["c"]],
            "kind": ["one", None, "empty", None],
        }
    )
    lists = pa.table({"query": [1, 2, 3], "items": [["a"], ["c"], ["c"]], "scores": [[0.5]] * 3})
    metrics = ["map", "gap", "coverage"]
    result = rankmill.evaluate(labels, lists, metrics, by="kind", per_query=per_query)
    assert (result.per_query is not None) == per_query
    found = rows_of(result.by)
    assert found == {
        ("one", "map"): (1.0, None, 1),
        ("one", "gap"): (1.0, None, 1),
        ("one", "coverage"): (1.0, None, 1),
        (None, "map"): (0.0, 0.0, 2),
        (None, "gap"): (0.0, None, 2),
        (None, "coverage"): (0.5, None, 1),
    }


@pytest.mark.small
@pytest.mark.parametrize("ties", ["given", "ids", "worst", "expected", "threshold"])
def test_gap_of_a_slice_without_predictions(ties: str) -> None:
    labels = pa.table({"query": [1, 2], "items": [["a"], ["b"]], "kind": ["some", "none"]})
    lists = pa.table({"query": [1], "items": [["a"]], "scores": [[0.5]]})
    found = rankmill.evaluate(labels, lists, "gap", by="kind", semantics=Semantics(gap_ties=ties))
    assert rows_of(found.by) == {("none", "gap"): (0.0, None, 1), ("some", "gap"): (1.0, None, 1)}


# ------------------------------------------------------------------ OTTO


OTTO = {"clicks": 0.1, "carts": 0.3, "orders": 0.6}


@pytest.mark.parametrize("sessions", [3_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_otto_in_one_command(tmp_path: Path, run: Any, sessions: int) -> None:
    """The score, its interval and its slices, beside NumPy on the arrays that made the files."""
    draw = np.random.default_rng(sessions)
    lines, shown = ["session,type,ground_truth"], ["session_type,labels"]
    counted: dict[str, list[tuple[int, int]]] = {kind: [] for kind in OTTO}
    for kind, share, most in (("clicks", 0.95, 2), ("carts", 0.3, 12), ("orders", 0.15, 41)):
        lists = draw.permuted(np.tile(np.arange(50), (sessions, 1)), axis=1)[:, :20]
        truths = draw.permuted(np.tile(np.arange(50), (sessions, 1)), axis=1)
        sizes, there = draw.integers(1, most, sessions), draw.random(sessions) < share
        within = (lists[:, :, None] == truths[:, None, :40]).any(1) if sessions < 5_000 else None
        for i in range(sessions):
            shown.append(f"{i}_{kind},{' '.join(map(str, lists[i].tolist()))}")
            if there[i]:
                truth = truths[i, : sizes[i]]
                lines.append(f"{i},{kind},{' '.join(map(str, truth.tolist()))}")
                hits = np.isin(lists[i], truth) if within is None else within[i, : sizes[i]]
                counted[kind].append((int(hits.sum()), min(20, int(sizes[i]))))
    lines[1:] = sorted(lines[1:], key=lambda line: int(line.partition(",")[0]))  # as OTTO's are
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    (tmp_path / "submission.csv").write_text("\n".join(shown))
    name = "relative_p@20:micro"
    otto = "otto = " + " + ".join(f"{w}*{name}[type={kind}]" for kind, w in OTTO.items())
    given = tmp_path / "labels.csv", tmp_path / "submission.csv"
    asked = "--label-query", "{session}_{type}", "-m", name, "--by", "type", "--sum", otto
    code, _, text = run("evaluate", *given, *asked, "-o", tmp_path / "found.json")
    assert code == 0, text
    told = json.loads((tmp_path / "found.json").read_text())
    score = squares = 0.0
    for kind, weight in OTTO.items():
        hits, divisors = np.array(counted[kind], np.float64).T
        ratio, n = hits.sum() / divisors.sum(), len(hits)
        error = np.sqrt(n / (n - 1) * ((hits - ratio * divisors) ** 2).sum()) / divisors.sum()
        (row,) = (one for one in told["by"] if one["slice"] == kind)
        assert (row["value"], row["queries"]) == (pytest.approx(ratio, rel=1e-12), n)
        assert row["standard_error"] == pytest.approx(error, rel=1e-12)
        score, squares = score + weight * ratio, squares + (weight * error) ** 2
    found = told["sums"]["otto"]
    assert found["value"] == pytest.approx(score, rel=1e-12)
    assert found["standard_error"] == pytest.approx(np.sqrt(squares), rel=1e-12)
    assert found["high"] - score == pytest.approx(1.959964 * np.sqrt(squares), rel=1e-6)
    assert score - found["low"] == pytest.approx(1.959964 * np.sqrt(squares), rel=1e-6)


@pytest.mark.small
def test_a_stream_cuts_and_is_read_once() -> None:
    labels, lists = sides(random.Random(8))
    table = labels.select(["query", "kind"])
    labels = labels.drop_columns(["kind"])
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    sums = "x = map[kind=a]"
    found = rankmill.evaluate(labels, lists, "map", by=stream, sums=sums)
    assert found.by == rankmill.evaluate(labels, lists, "map", by=table, sums=sums).by
    with pytest.raises(UsageError, match="slices are only of kind: name 'city' in by"):
        rankmill.evaluate(labels, lists, "map", by=table, sums="x = map[city=a]")


@pytest.mark.small
def test_ranges_of_labels_give_the_same_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, count = random.Random(1), 600
    kinds = [draw.choice(KINDS) for _ in range(count)]
    for name, length in (("labels", 3), ("run", 9)):
        lists = [draw.sample(range(50), length) for _ in range(count)]
        table = pa.table({"query": range(count), "items": lists, "kind": kinds})
        table = table if name == "labels" else table.drop_columns(["kind"])
        pq.write_table(table, tmp_path / name, row_group_size=100)
    metrics = ["map", "recall@5:micro", "coverage@3", "map:p90"]
    how: Any = {"by": ["kind", "label_count"], "sums": "x = map[kind=a] + 0.5*recall@5:micro"}
    both = tmp_path / "labels", tmp_path / "run"
    whole = rankmill.evaluate(*both, metrics, **how)
    found: list[Any] = []
    shares = first_pass.shares_of
    monkeypatch.setattr(first_pass, "shares_of", lambda *of: found.append(shares(*of)) or found[-1])
    little = rankmill.evaluate(*both, metrics, memory=10_000, per_query=False, **how)
    assert len(found[0]) > 3
    assert (little.by, little.sums) == (whole.by, whole.sums)
