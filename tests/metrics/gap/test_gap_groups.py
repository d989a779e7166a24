"""Gap without a group of queries: what evaluate gives on the data without these queries."""

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
from rankmill.engine.evaluate import score_systems
from rankmill.engine.state import State
from rankmill.kernels.gap import sum_ties, sum_without
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.gap.gap_groups import (
    GROUPS,
    GapGroups,
    LeftOut,
    groups_in,
    groups_of,
    places_of,
    sum_less,
)
from rankmill.metrics.needs import ORDERED_TIES
from rankmill.semantics.choices import CHOICES
from rankmill.semantics.presets import PRESETS
from rankmill.threads import Workers
from strategies import some

METRICS = ["gap", "gap@2"]
CLOSE = {"rel": 1e-12, "abs": 1e-15}
CHOICES_WITHOUT_ERRORS = {
    name: [choice for choice in choices if choice != "error"] for name, choices in CHOICES.items()
}
Lists = dict[int, list[Any]]


def states(labels: Any, runs: Any, metrics: Any, **options: Any) -> list[State]:
    """Return the state of each system, with its groups."""
    threads = options.pop("threads", None)
    asked = job_of(labels, runs, metrics, options, gap_groups=True)
    with closing(score_systems(*asked, threads)) as systems:
        return [one.tally.state for one in systems]


def left_out(state: State, metric: str = "gap", threads: int = 2) -> LeftOut | None:
    """Count all predictions among the correct ones, as the second pass does, and leave out."""
    groups, gap = groups_in(state.aggregates)[metric], state.aggregates[metric]
    assert isinstance(gap, Gap)
    with Workers(threads) as workers:
        counter = gap.counter(workers)
        for part in groups.parts or ():
            counter.add(part.confidences)
        return groups.left_out(gap.correct, counter.finish(), state.semantics, workers)


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
    predictions = lists(0, 6, [float(one) for one in range(scores)])
    predictions[1000] = [(3, 4.0), (3, 5.0)]
    return labels, predictions


def table(lists: Lists, second: str, dtype: Any = None) -> pa.Table:
    items = pa.array([[one[0] for one in each] for each in lists.values()], pa.list_(pa.int64()))
    numbers = [[one[1] for one in each] for each in lists.values()]
    queries = pa.array(list(lists), pa.int64())
    columns = {"query": queries, "items": items}
    return pa.table(columns | {second: pa.array(numbers, pa.list_(dtype or pa.float64()))})


def group_of(query: int) -> int:
    return int(groups_of(to_ids(np.array([query]), "query"))[0])


def without(lists: Lists, group: set[int]) -> Lists:
    return {query: one for query, one in lists.items() if group_of(query) not in group}


def left_out_plainly(
    labels: Lists, predictions: Lists, metric: str, has_labels: set[int], **options: Any
) -> tuple[list[int], list[float | None]]:
    """Return the sizes of the groups with labels, and the value of evaluate without each."""
    last: set[int] = set()
    sizes, values = [], []
    first = min(map(group_of, has_labels))
    for group in range(GROUPS):
        last.add(group)
        size = sum(group_of(query) == group for query in has_labels)
        if not size:
            continue
        if group == first:
            last |= set(range(max(map(group_of, has_labels)) + 1, GROUPS))
        sizes.append(size)
        left = without(predictions, last) | {2000: []}  # no rows at all would be refused
        both = table(without(labels, last), "gain"), table(left, "score")
        values.append(flat(rankmill.evaluate, *both, metric, **options).metrics[metric])
        last = set()
    return sizes, values


def check(seed: int, queries: int, scores: int, semantics: Any, **options: Any) -> None:
    labels, predictions = made(seed, queries, scores)
    options |= {"semantics": semantics, "gain": "gain"}
    both = table(labels, "gain"), table(predictions, "score")
    [state] = states(both[0], {"": both[1]}, METRICS, **options)
    rel = 0.0
    relevant = {
        query
        for query, listed in labels.items()
        if any(item is not None and gain > rel for item, gain in listed)
    }
    for metric in METRICS:
        found = left_out(state, metric)
        if len(set(map(group_of, relevant))) < 2:
            return
        sizes, values = left_out_plainly(labels, predictions, metric, relevant, **options)
        if state.semantics.gap_ties in ORDERED_TIES or None in values:
            assert found is None
            continue
        assert found is not None
        assert found.sizes.tolist() == sizes
        whole = flat(rankmill.evaluate, *both, metric, **options).metrics[metric]
        assert found.whole == pytest.approx(whole, **CLOSE)
        assert found.values.tolist() == pytest.approx(values, **CLOSE)


@pytest.mark.small
@given(
    st.integers(0, 2**32),
    st.integers(2, 12),
    st.sampled_from([1, 3, 1000]),
    st.fixed_dictionaries({n: st.sampled_from(c) for n, c in CHOICES_WITHOUT_ERRORS.items()}),
)
def test_leaving_out_is_evaluating_the_rest(
    seed: int, queries: int, scores: int, semantics: dict[str, str]
) -> None:
    if semantics["order"] == "expected":  # gap@2 has no value then
        semantics["order"] = "given"
    if semantics["order"] in ("worst", "best"):  # they refuse a repeat that keeps its rank
        semantics["repeated_predictions"] = "drop"
    check(seed, queries, scores, semantics)


@pytest.mark.parametrize("name", some(PRESETS, 3))
def test_leaving_out_under_each_preset(name: str) -> None:
    semantics = PRESETS[name].semantics.to_dict()
    semantics |= {n: c[0] for n, c in CHOICES_WITHOUT_ERRORS.items() if semantics[n] == "error"}
    if semantics["order"] == "expected":
        semantics["order"] = "given"
    check(7, 30, 5, semantics)


@pytest.mark.parametrize("scope", [{"depth": 3}, {"judged_only": True}])
def test_leaving_out_within_a_scope(scope: dict[str, Any]) -> None:
    for total in CHOICES["gap_total"]:
        check(11, 30, 5, {"gap_total": total}, **scope)


@pytest.mark.small
@pytest.mark.parametrize(
    "ties", [0, *(pytest.param(ties, marks=pytest.mark.lengthy) for ties in (1, 2, 3))]
)
def test_large_ties_are_added_as_they_are_one_by_one(ties: int) -> None:
    right = np.array([70_000, 1, 900, 20_000, 3])
    at = np.array([500_000, 1, 900, 30_000, 5000])
    above = np.array([1_000_000, 0, 7, 9000, 3])
    values, nothing, sums = np.arange(5.0), np.empty(0), np.zeros(5)
    sum_ties(right, at, above, 0, 0, sums)
    found = sum_without(values, right, at, above, nothing, nothing, ties)
    assert found == pytest.approx(sums[0] + sums[ties + 1], rel=1e-14)
    # Two values are left without a prediction, and one has a single correct one left.
    group = np.repeat(values, [1000, 1, 900, 3000, 4999])
    correct = np.repeat(values, [10, 1, 900, 0, 2])
    left = right - [10, 1, 900, 0, 2], at - [1000, 1, 900, 3000, 4999], above
    kept = left[0] > 0
    assert left[1].tolist() == [499_000, 0, 0, 27_000, 1]
    between = np.array([1_000_000 + 0 + 7, 9000, 3])
    sum_ties(left[0][kept], left[1][kept], between, 0, 0, sums)
    found = sum_without(values, right, at, above, group, correct, ties)
    assert found == pytest.approx(sums[0] + sums[ties + 1], rel=1e-14)


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
    assert groups_of(to_ids(pa.array(numbers), "q")).tolist() == [0, 89, 80, 41]
    assert groups_of(to_ids(pa.array(words), "q")).tolist() == [10, 1, 68, 74, 16, 68]


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


# ------------------------------------------------------------------ merging, rows, memory


def parts_of(seed: int, count: int, dtype: Any = None) -> tuple[list[State], State]:
    labels, predictions = made(seed, 40)
    whole = states(table(labels, "gain"), {"": table(predictions, "score", dtype)}, METRICS)[0]
    parts = []
    for part in range(count):
        some = [{q: one for q, one in side.items() if q % count == part} for side in
                (labels, predictions)]  # fmt: skip
        tables = table(some[0], "gain"), table(some[1], "score", dtype)
        parts += states(tables[0], {"": tables[1]}, METRICS)
    return parts, whole


def same(one: LeftOut | None, other: LeftOut | None) -> bool:
    assert one is not None
    assert other is not None
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.small
@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()])
def test_parts_merge_in_any_order_to_the_same_bits(dtype: Any) -> None:
    parts, whole = parts_of(3, 4, dtype)
    for seed in range(5):
        drawn = random.Random(seed).sample(parts, len(parts))
        merged = drawn[0].merge(drawn[1]).merge(drawn[2].merge(drawn[3]))
        row = pa.Table.from_pylist([merged.to_row()]).to_pylist()[0]
        again = State.from_row(row)
        assert again.to_row().keys() == row.keys()
        for metric in METRICS:
            for threads in (1, 3):
                assert same(left_out(merged, metric, threads), left_out(whole, metric))
            assert same(left_out(again, metric), left_out(whole, metric))
            rows = [
                pa.array([groups_in(one.aggregates)[metric].to_row()]) for one in (merged, whole)
            ]
            assert rows[0].equals(rows[1]) or dtype  # room is that of each
            content = [
                groups_in(one.aggregates)[metric].to_row()["confidences"] for one in (merged, whole)
            ]
            assert np.array_equal(*content)


@pytest.mark.small
@pytest.mark.parametrize("ties", [one for one in CHOICES["gap_ties"] if one not in ORDERED_TIES])
@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()])
def test_places_of_parts_leave_out_to_the_same_bits(dtype: Any, ties: str) -> None:
    """On Spark a group comes as its places among the correct confidences, from several parts."""
    parts, whole = parts_of(4, 3, dtype)
    semantics = replace(whole.semantics, gap_ties=ties)
    for metric in METRICS:
        gap, groups = whole.aggregates[metric], groups_in(whole.aggregates)[metric]
        together = groups.together()
        assert isinstance(gap, Gap)
        assert together is not None
        with Workers(1) as workers:
            counter = gap.counter(workers)
            for part in groups.parts or ():
                counter.add(part.confidences)
            among = counter.finish()
            expected = groups.left_out(gap.correct, among, semantics, workers)
        own = np.zeros((int(together.max()) + 1, 3, len(gap.correct.values)), np.int64)
        for one in parts:
            for tagged in groups_in(one.aggregates)[metric].parts or ():
                for group, found in places_of(tagged, gap.correct.values, together).items():
                    found.add_to(own[group])
        nothing = np.zeros_like(own[0])
        sums = [sum_less(gap.correct, among, semantics, one) for one in (nothing, *own)]
        hits = own[:, 0].sum(axis=1)
        assert hits.sum() == gap.correct.counts.sum()
        assert same(groups.small().divided(semantics, hits, sums), expected)


@pytest.mark.small
def test_states_with_and_without_groups_do_not_merge() -> None:
    parts, whole = parts_of(3, 2)
    means = {name: whole.aggregates[name] for name in whole.names}
    bare = State.from_row(replace(whole, aggregates=means).to_row())
    assert not groups_in(bare.aggregates)
    for one, other in ((parts[0], bare), (bare, parts[0])):
        with pytest.raises(rankmill.UsageError, match="with and without groups"):
            one.merge(other)


@pytest.mark.small
@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("groups", [GROUPS], "groups holds 100; expected numbers below 100"),
        ("correct", [2], "correct holds 2"),
        ("correct", [], "confidences and correct hold 1 and 0"),
        ("confidences", [float("nan")], "confidences holds NaN"),
        ("labelled", [1], "labelled holds 1 numbers, not 100"),
        ("label_pairs", [-1] * GROUPS, "not a count"),
    ],
)
def test_a_damaged_row_is_refused(name: str, value: Any, wanted: str) -> None:
    row = GapGroups(room=100).to_row()
    row |= {"confidences": [0.5], "groups": [1], "correct": [1]}
    assert GapGroups.from_row(row).complete
    with pytest.raises(rankmill.UsageError, match=wanted):
        GapGroups.from_row(row | {name: value})


@pytest.mark.small
def test_what_takes_too_much_memory_is_dropped_whatever_the_order() -> None:
    labels, predictions = made(5, 40)
    tables = table(labels, "gain"), {"": table(predictions, "score")}
    count = sum(item is not None for listed in predictions.values() for item, _ in listed)
    for memory, complete in ((10 * count, True), (10 * count - 1, False)):
        [state] = states(*tables, ["gap"], memory=memory)
        assert groups_in(state.aggregates)["gap"].complete is complete
        assert (left_out(state) is not None) is complete
        again = State.from_row(state.to_row())
        assert groups_in(again.aggregates)["gap"].complete is complete
    parts, _ = parts_of(5, 3)
    small = [groups_in(one.aggregates)["gap"] for one in parts]
    small = [GapGroups(one.parts, one.size, 10 * count - 1) for one in small]
    for first, second, third in ((0, 1, 2), (2, 1, 0)):
        assert not small[first].merge(small[second]).merge(small[third]).complete


@pytest.mark.small
def test_an_evaluation_holds_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GapGroups, "init", lambda _: pytest.fail("groups were made"))
    labels, predictions = made(5, 20)
    rankmill.evaluate(table(labels, "gain"), table(predictions, "score"), METRICS)
