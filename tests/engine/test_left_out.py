"""Metrics without a group of queries: what evaluate gives on the data without these queries."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankmill
from flat import flat, job_of
from rankmill.columns.ids import to_ids
from rankmill.engine.cuts import Cuts
from rankmill.engine.evaluate import score_systems
from rankmill.engine.job import parse_job
from rankmill.engine.left_out import NO_VALUE, LeftOut, groups_in, leave_out
from rankmill.engine.slices import GROUP, GROUPS, QueryGroups, classes_of_groups, groups_of
from rankmill.engine.state import State
from rankmill.metrics.base import Metric
from rankmill.metrics.needs import ORDERED_TIES
from rankmill.metrics.registry import REGISTRY, parse
from rankmill.semantics.choices import CHOICES
from rankmill.semantics.presets import PRESETS
from rankmill.sources.nouns import Labels
from rankmill.spark.exchange.returned_rows import packed
from rankmill.spark.systems import places_in, values_left, whole_of
from rankmill.threads import Workers
from strategies import some

POOLED = [
    "gap",
    "gap@2",
    "auprc",
    "auprc_step",
    "roc_auc",
    "best_f1",
    "best_f1_threshold",
    "dprime",
]
POOLED += ["recall_at_precision@0.3", "precision_at_recall@0.2"]
CALIBRATED = ["ece", "brier", "log_loss"]
SHOWN = ["coverage@2", "coverage_of_labels@2", "gini@3", "entropy@3", "hhi@2", "personalization@2"]
SUMMARIES = ["precision@3:micro", "recall@2:pooled", "map@3:gm", "map@3:sum", "map@3:above=0.2"]
EVERY = [*POOLED, *CALIBRATED, *SHOWN, *SUMMARIES]
CLOSE = {"rel": 1e-12, "abs": 1e-15}
CHOICES_WITHOUT_ERRORS = {
    name: [choice for choice in choices if choice != "error"] for name, choices in CHOICES.items()
}
Lists = dict[int, list[Any]]


def scored(labels: Any, runs: Any, metrics: Any, **options: Any) -> tuple[list[Any], list[State]]:
    """Return what each metric of each system is without each group, and the states."""
    threads = options.pop("threads", None)
    more = {"groups": QueryGroups(), "cuts": Cuts()}
    found, states = [], []
    with (
        closing(score_systems(*job_of(labels, runs, metrics, options, **more), threads)) as systems,
        Workers(threads) as workers,
    ):
        for one in systems:
            state, values = one.tally.state, one.result.metrics
            states.append(state)
            found.append(leave_out(state, one.tally.among, values, workers))
    return found, states


def made(seed: int, queries: int, scores: int = 9) -> tuple[Lists, Lists]:
    """Return lists of labels with gains and of predictions with confidences, many of them tied."""
    draw = random.Random(seed)

    def lists(least: int, most: int, second: list[float]) -> Lists:
        return {
            query: [
                (draw.choice([None, *range(8)]), draw.choice(second))
                for _ in range(draw.randint(least, most))
            ]
            for query in draw.sample(range(2 * queries), queries)
            if draw.random() < 0.9
        }

    labels = lists(0, 4, [-1.0, 0.0, 1.0, 2.0])
    labels[1000] = [(3, 1.0)]
    predictions = lists(0, 6, [one / scores for one in range(scores)])
    predictions[1000] = [(3, 0.4), (3, 0.5)]
    return labels, predictions


def table(lists: Lists, second: str, dtype: Any = None) -> pa.Table:
    items = pa.array([[one[0] for one in each] for each in lists.values()], pa.list_(pa.int64()))
    numbers = [[one[1] for one in each] for each in lists.values()]
    queries = pa.array(list(lists), pa.int64())
    columns = {"query": queries, "items": items}
    return pa.table(columns | {second: pa.array(numbers, pa.list_(dtype or pa.float64()))})


def group_of(query: int) -> int:
    return int(groups_of(to_ids(np.array([query]), "query"))[0])


def left_out_plainly(
    labels: Lists,
    predictions: Lists,
    metrics: list[str],
    sizes: dict[tuple[int, ...], int],
    **options: Any,
) -> dict[str, list[float | None]]:
    """Return the value of evaluate without each of some groups, some of which go together."""
    found: dict[str, list[float | None]] = {name: [] for name in metrics}
    for together in sizes:
        kept = [
            {query: one for query, one in lists.items() if group_of(query) not in together}
            for lists in (labels, predictions)
        ]
        both = table(kept[0], "gain"), table(kept[1] | {2000: []}, "score")  # no rows are refused
        values = flat(rankmill.evaluate, *both, metrics, **options).metrics
        for name in metrics:
            found[name].append(values[name])
    return found


def check(
    seed: int, queries: int, scores: int, semantics: Any, metrics: list[str], **options: Any
) -> None:
    labels, predictions = made(seed, queries, scores)
    options |= {"semantics": semantics, "gain": "gain"}
    both = table(labels, "gain"), table(predictions, "score")
    [found], [state] = scored(both[0], {"": both[1]}, metrics, **options)
    groups = {numbers: one.queries for numbers, one in groups_in(state).items()}
    assert sum(groups.values()) == state.queries
    assert min(groups.values(), default=1) > 0
    if len(groups) < 2:
        assert {*found.values()} <= {NO_VALUE}
        return
    plainly = left_out_plainly(labels, predictions, metrics, groups, **options)
    whole = flat(rankmill.evaluate, *both, metrics, **options).metrics
    total = sum(groups.values())
    for name, values in plainly.items():
        one = found[name]
        ordered = state.semantics.gap_ties in ORDERED_TIES and name.startswith("gap")
        if ordered or None in values or whole[name] is None:
            assert isinstance(one, str)
            continue
        assert isinstance(one, LeftOut)
        assert one.whole == whole[name]
        assert one.sizes.tolist() == [*groups.values()]
        if name.endswith(":sum"):  # as if as many queries were left
            values = [v * total / (total - n) for v, n in zip(values, groups.values(), strict=True)]
        assert one.values.tolist() == pytest.approx(values, **CLOSE)
        # Of gap the range grows with the labels of a query.
        assert one.bounds[0] <= min(values)
        assert max(values) <= one.bounds[1] + 1e-12 or name.startswith(("gap", "auprc", "best_f1"))


@pytest.mark.small
@given(
    st.integers(0, 2**32),
    st.integers(2, 40),
    st.sampled_from([1, 3, 1000]),
    st.fixed_dictionaries({n: st.sampled_from(c) for n, c in CHOICES_WITHOUT_ERRORS.items()}),
)
def test_leaving_out_is_evaluating_the_rest(
    seed: int, queries: int, scores: int, semantics: dict[str, str]
) -> None:
    if semantics["order"] == "expected":  # gap@2 has no value then
        semantics["order"] = "given"
    metrics = ["gap", "gap@2", "auprc", "map@3:gm"]
    if semantics["order"] in ("worst", "best"):  # they refuse a repeat that keeps its rank
        semantics["repeated_predictions"] = "drop"
    else:
        metrics.append("gini@3")
    check(seed, queries, scores, semantics, metrics)


@pytest.mark.rows(6)
@pytest.mark.parametrize("metric", EVERY)
def test_every_metric_without_a_group_is_that_of_the_rest(metric: str) -> None:
    check(3, 60, 1000, "default", [parse(metric).text])


@pytest.mark.parametrize("name", some(PRESETS, 3))
def test_leaving_out_under_each_preset(name: str) -> None:
    semantics = PRESETS[name].semantics.to_dict()
    semantics |= {n: c[0] for n, c in CHOICES_WITHOUT_ERRORS.items() if semantics[n] == "error"}
    if semantics["order"] == "expected":
        semantics["order"] = "given"
    check(7, 30, 5, semantics, ["gap", "gap@2", "coverage@2"])


@pytest.mark.parametrize("scope", [{"depth": 3}, {"judged_only": True}])
def test_leaving_out_within_a_scope(scope: dict[str, Any]) -> None:
    for total in CHOICES["gap_total"]:
        check(11, 30, 5, {"gap_total": total}, ["gap", "roc_auc"], **scope)


@pytest.mark.small
def test_each_metric_that_is_no_mean_can_leave_out_or_is_a_quantile() -> None:
    for name in REGISTRY:
        one = Metric(REGISTRY[name], None, name)
        assert one.is_mean is bool(REGISTRY[name].kernel)
    job = parse_job(["map", "map:median", "map:p90", *EVERY], Labels(None), "default")
    assert [one.text for one in job.left_out] == [parse(one).text for one in EVERY]


# ------------------------------------------------------------------ groups


@pytest.mark.small
def test_the_group_of_an_id_depends_on_its_value_alone() -> None:
    numbers = [0, 7, 255, 2**31 - 1]
    kinds = pa.int64(), pa.int32(), pa.uint32(), pa.uint64()
    groups = {tuple(groups_of(to_ids(pa.array(numbers, kind), "q"))) for kind in kinds}
    assert len(groups) == 1
    words = ["", "a", "ab", "é", "x" * 30, "x" * 31]
    texts = [pa.array(words, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())]
    texts.append(pa.array([one.encode() for one in words], pa.binary()))
    assert len({tuple(groups_of(to_ids(one, "q"))) for one in texts}) == 1
    alone = [int(groups_of(to_ids(pa.array([one]), "q"))[0]) for one in words]
    assert alone == groups_of(to_ids(texts[0], "q")).tolist()
    # The same in every process and version: intervals of saved comparisons must not move.
    assert groups_of(to_ids(pa.array(numbers), "q")).tolist() == [19, 9, 9, 15]
    assert groups_of(to_ids(pa.array(words), "q")).tolist() == [10, 1, 8, 14, 16, 8]


def test_groups_are_even_whatever_the_ids() -> None:
    n = 100_000
    for ids in (
        np.arange(n),
        np.arange(n) * 100,
        np.arange(n) << 32,
        pa.array([f"user{i:07}" for i in range(n)]),
    ):
        counts = np.bincount(groups_of(to_ids(ids, "q")), minlength=GROUPS)
        chi_squared = ((counts - n / GROUPS) ** 2).sum() / (n / GROUPS)
        assert abs(chi_squared - GROUPS) < 5 * np.sqrt(2 * GROUPS)


@pytest.mark.small
@given(st.lists(st.integers(-1, 6), min_size=1, max_size=40), st.randoms())
def test_a_cluster_is_in_one_group_whatever_the_order(
    codes: list[int], draw: random.Random
) -> None:
    ids, clusters = np.arange(len(codes)), np.array(codes)
    _, groups = classes_of_groups(to_ids(ids, "q"), clusters)
    for code in {*codes} - {-1}:
        assert len({*groups[clusters == code]}) == 1
    alone = clusters == -1
    assert (groups == groups_of(to_ids(ids, "q")))[alone].all()
    order = np.array(draw.sample(range(len(codes)), len(codes)))
    renamed = np.array([-1 if one < 0 else 6 - one for one in codes])
    _, again = classes_of_groups(to_ids(ids[order], "q"), renamed[order])
    assert (again == groups[order]).all()


# ------------------------------------------------------------------ merging, rows, memory


def parts_of(seed: int, count: int, dtype: Any = None, **more: Any) -> tuple[list[State], State]:
    labels, predictions = made(seed, 40)
    how: Any = (POOLED + SHOWN,)
    both = table(labels, "gain"), {"": table(predictions, "score", dtype)}
    whole = scored(*both, *how, **more)[1][0]
    parts = []
    for part in range(count):
        some = [
            {q: one for q, one in side.items() if q % count == part}
            for side in (labels, predictions)
        ]
        tables = table(some[0], "gain"), table(some[1], "score", dtype)
        parts += scored(tables[0], {"": tables[1]}, *how, **more)[1]
    return parts, whole


def counted(state: State, workers: Workers) -> dict[str, Any]:
    """Return the counts of the second pass from what the groups hold."""
    found = {}
    for name, one in state.two_passes.items():
        counter = one.counter(workers)
        for of_group in groups_in(state).values():
            for part in of_group.two_passes[name].held() or ():
                counter.add(part)
        found[name] = counter.finish()
    return found


def same(one: LeftOut | str, other: LeftOut | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.rows(1)
@pytest.mark.small
@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()])
@pytest.mark.long
def test_parts_merge_in_any_order_to_the_same_bits(dtype: Any) -> None:
    parts, whole = parts_of(3, 4, dtype)
    with Workers(1) as one, Workers(3) as three:
        numbers = whole.finish(counted(whole, one), one).metrics
        expected = leave_out(whole, counted(whole, one), numbers, one)
        assert all(isinstance(left, LeftOut) for left in expected.values())
        for seed in range(5):
            drawn = random.Random(seed).sample(parts, len(parts))
            merged = drawn[0].merge(drawn[1]).merge(drawn[2].merge(drawn[3]))
            for workers in (one, three):
                found = leave_out(merged, counted(merged, workers), numbers, workers)
                assert all(same(found[name], left) for name, left in expected.items())
        # A state travels without the predictions that it holds; all else leaves out as before.
        row = pa.Table.from_pylist([merged.to_row()]).to_pylist()[0]
        again = State.from_row(row)
        assert again.to_row().keys() == row.keys()
        found = leave_out(again, {}, numbers, one)
        assert all(same(found[name], expected[name]) for name in SHOWN)
        assert "need more memory" in str(found["gap"])


@pytest.mark.rows(1)
@pytest.mark.small
@pytest.mark.parametrize("ties", [one for one in CHOICES["gap_ties"] if one not in ORDERED_TIES])
@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()])
def test_places_of_parts_leave_out_to_the_same_bits(dtype: Any, ties: str) -> None:
    """On Spark a group comes as its places among the correct confidences, from several parts."""
    parts, whole = parts_of(4, 3, dtype, semantics={"gap_ties": ties})
    with Workers(1) as workers:
        among = counted(whole, workers)
        numbers = whole.finish(among, workers).metrics
        expected = leave_out(whole, among, numbers, workers)
        small = whole.small()
        names = [*small.two_passes]
        wholes = [whole_of(small, name, among[name], "0") for name in names]
        rows = [row for one in parts for row in places_in(one, dict(enumerate(wholes)))]
        every = pa.Table.from_batches(rows).sort_by([("task", "ascending"), ("group", "ascending")])
        told = pa.Table.from_batches(values_left(iter(every.to_batches()), packed(tuple(wholes))))
        known: dict[str, list[Any]] = {name: [None] * len(groups_in(small)) for name in names}
        for row in told.to_pylist():
            known[names[row["task"]]][row["group"]] = row["value"]
        found = leave_out(small, among, numbers, workers, known)
    for name in names:
        left, wanted = found[name], expected[name]
        if None in known[name]:  # a group without a prediction: the driver leaves it out
            continue
        assert same(left, wanted), name


@pytest.mark.small
def test_what_takes_too_much_memory_is_dropped() -> None:
    labels, predictions = made(5, 40)
    tables = table(labels, "gain"), {"": table(predictions, "score")}
    for memory, kept in ((1 << 20, True), (1000, False)):
        [found], _ = scored(*tables, ["gap", "gini@3"], memory=memory)
        assert isinstance(found["gap"], LeftOut) is kept
        if not kept:
            assert found["gap"] == "the predictions with their queries need more memory: allow more"


@pytest.mark.small
def test_groups_that_take_too_much_memory_say_what_they_need() -> None:
    labels, predictions = made(5, 40)
    tables = table(labels, "gain"), table(predictions, "score")
    runs = {"old": tables[1], "new": tables[1]}
    found = rankmill.compare(tables[0], runs, "gini@3", memory=1000)
    note = next(one for one in found.notes if one.startswith("gini@3 is"))
    assert "its groups of queries need more than" in note
    assert found.values["gini@3"]["new"].value is not None
    assert found.values["gini@3"]["new"].low is None
    assert found.differences["gini@3"]["new"].tests == {}


@pytest.mark.small
def test_an_evaluation_has_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rankmill.engine.cuts.classes_of_groups", lambda *_: pytest.fail("groups were made")
    )
    labels, predictions = made(5, 20)
    both = table(labels, "gain"), table(predictions, "score")
    found = rankmill.evaluate(*both, EVERY)
    assert found.by is None
    rankmill.compare(both[0], {"a": both[1], "b": both[1]}, ["map", "map:median"])


@pytest.mark.small
def test_results_of_a_comparison_tell_nothing_of_groups() -> None:
    labels, predictions = made(5, 40)
    both = table(labels, "gain"), table(predictions, "score")
    _, [state] = scored(both[0], {"": both[1]}, ["gap", "map"])
    with Workers(1) as workers:
        result = state.finish(counted(state, workers), workers)
    assert result.by is None
    assert {name for name, _ in state.slices} == {GROUP}
    assert all(one.names == ("gap",) for one in state.slices.values())
    assert GROUP not in replace(result).to_json()
