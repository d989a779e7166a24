"""The delete-m jackknife: its formula, and the intervals and tests that come from it."""

from __future__ import annotations

import math
import random
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logit

import rankmill
from flat import job_of
from rankmill.analysis.compare.differences.differences import Difference, Estimate
from rankmill.analysis.compare.differences.pooled_differences import (
    pooled_difference,
    pooled_estimates,
)
from rankmill.analysis.statistics.significance import JackknifeError, estimate, jackknife_test
from rankmill.engine.cuts import Cuts
from rankmill.engine.evaluate import score_systems
from rankmill.engine.left_out import LeftOut, leave_out
from rankmill.engine.slices import QueryGroups
from rankmill.metrics.registry import parse
from rankmill.threads import Workers


def plainly(whole: float, left_out: list[float], sizes: list[int]) -> float:
    """Return the standard error as Busing et al. write it, equations (5) and (7)."""
    g, n = len(sizes), sum(sizes)
    theta = g * whole - sum((1 - m / n) * v for m, v in zip(sizes, left_out, strict=True))
    total = 0.0
    for m, value in zip(sizes, left_out, strict=True):
        h = n / m
        pseudo = h * whole - (h - 1) * value
        total += (pseudo - theta) ** 2 / (h - 1)
    return math.sqrt(total / g)


NUMBERS = st.floats(-2, 2)


@pytest.mark.small
@given(NUMBERS, st.lists(st.tuples(NUMBERS, st.integers(1, 50)), min_size=2, max_size=40))
def test_the_formula(whole: float, groups: list[tuple[float, int]]) -> None:
    left_out, sizes = ([one[i] for one in groups] for i in (0, 1))
    found = estimate(whole, np.array(left_out), np.array(sizes))
    assert found is not None
    scale = max(abs(one - whole) for one in left_out) * sum(sizes)
    wanted = pytest.approx(plainly(whole, left_out, sizes), rel=1e-9, abs=1e-12 * (1 + scale))
    assert found.standard_error == wanted
    assert found.freedom == len(sizes) - 1


@pytest.mark.small
def test_of_a_mean_it_is_the_standard_error_of_the_mean() -> None:
    values = np.random.default_rng(0).normal(size=37)
    left_out = (values.sum() - values) / 36
    found = estimate(float(values.mean()), left_out, np.ones(37))
    assert found is not None
    assert found.standard_error == pytest.approx(stats.sem(values), rel=1e-12)
    test = jackknife_test(float(values.mean()), found, 0.9)
    scipys = stats.ttest_1samp(values, 0.0)
    assert test.p == pytest.approx(scipys.pvalue, rel=1e-10)
    assert (test.low, test.high) == pytest.approx(tuple(scipys.confidence_interval(0.9)))


@pytest.mark.small
def test_edge_cases_are_never_nan() -> None:
    assert estimate(0.5, np.array([]), np.array([])) is None
    assert estimate(0.5, np.array([0.4]), np.array([7])) is None
    assert estimate(0.5, np.array([0.5, 0.5]), np.array([7, 1])) == JackknifeError(0.0, 1)
    assert jackknife_test(0.1, None, 0.95) == (None, None, None, None, 0)
    assert jackknife_test(0.0, None, 0.95) == (None, None, None, None, 0)
    assert jackknife_test(0.0, JackknifeError(0.0, 9), 0.95) == (1.0, None, None, None, 0)
    assert jackknife_test(0.1, JackknifeError(0.0, 9), 0.95) == (None, None, None, None, 0)


# ------------------------------------------------------------------ systems

GAP = parse("gap")


def scored(
    labels: Any, runs: Any, metrics: Any, **options: Any
) -> tuple[dict[str, Any], dict[str, dict[str, LeftOut | str]]]:
    """Return the value of each metric and system, and its values without each group."""
    values: dict[str, Any] = {}
    without: dict[str, Any] = {}
    threads = options.pop("threads", None)
    asked = job_of(labels, runs, metrics, options, groups=QueryGroups(), cuts=Cuts())
    with (
        closing(score_systems(*asked, threads)) as systems,
        Workers(2) as workers,
    ):
        for one in systems:
            of = leave_out(one.tally.state, one.tally.among, one.result.metrics, workers)
            for metric, left in of.items():
                values.setdefault(metric, {})[one.name] = one.result.metrics[metric]
                without.setdefault(metric, {})[one.name] = left
    return values, without


def made(queries: int, good: float, seed: int) -> pa.Table:
    draw = random.Random(seed)
    rows = []
    for query in range(queries):
        items = [query if draw.random() < good else -rank for rank in range(3)]
        rows.append((query, items, [round(draw.random() + (i == query), 2) for i in items]))
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("query", "items", "score"), map(list, columns), strict=True)))


def labels(queries: int) -> pa.Table:
    return pa.table({"query": range(queries), "items": [[query] for query in range(queries)]})


RUNS = {"old": made(300, 0.2, 1), "same": made(300, 0.2, 1), "new": made(300, 0.5, 2)}


@pytest.mark.small
def test_systems_are_compared_by_the_same_groups() -> None:
    values, without = scored(labels(300), RUNS, ["gap"])
    of, left = values["gap"], without["gap"]
    shown = pooled_estimates(of, left, 0.95)
    new = left["new"]
    old = left["old"]
    assert isinstance(new, LeftOut)
    assert isinstance(old, LeftOut)
    assert (new.sizes == old.sizes).all()
    for name, one in (("old", old), ("new", new)):
        error = plainly(one.whole, one.values.tolist(), one.sizes.tolist())
        value, low, high = (shown[name][i] for i in (0, 2, 3))
        assert (value, shown[name].standard_error) == pytest.approx((of[name], error), rel=1e-9)
        # Of the logit, with as many degrees of freedom as groups make up the error.
        share = one.sizes / one.sizes.sum()
        pseudo = (1 / share - 1) * (one.whole - one.values)
        parts = (pseudo - (share * pseudo).sum()) ** 2 / (1 / share - 1)
        freedom = min(len(share) - 1, parts.sum() ** 2 / (parts**2).sum())
        half = stats.t.ppf(0.975, freedom) * error / (value * (1 - value))
        assert logit([low, high]) == pytest.approx([logit(value) - half, logit(value) + half])
    found = pooled_difference(of, left, "old", "new", 0.95, GAP)
    less = of["new"] - of["old"]
    error = plainly(less, (new.values - old.values).tolist(), new.sizes.tolist())
    half = stats.t.ppf(0.975, len(new.sizes) - 1) * error
    assert (found.value, found.relative) == (less, less / of["old"])
    assert (found.low, found.high) == pytest.approx((less - half, less + half), rel=1e-9)
    p = 2 * stats.t.sf(less / error, len(new.sizes) - 1)
    test = found.tests["t"]
    assert test.p == pytest.approx(p, rel=1e-9)
    assert test[1:] == (None, found.low, found.high, 1)
    back = pooled_difference(of, left, "new", "old", 0.95, GAP)
    assert back.tests["t"].direction == -1
    assert back.value == -less
    assert back.tests["t"].p == test.p


@pytest.mark.small
def test_a_system_against_itself() -> None:
    values, without = scored(labels(300), RUNS, ["gap@2"])
    found = pooled_difference(values["gap@2"], without["gap@2"], "old", "same", 0.95, GAP)
    # The groups have no spread, so there is no interval.
    assert (found.value, found.relative, found.low, found.high) == (0.0, 0.0, None, None)
    assert found.tests["t"] == (1.0, None, None, None, 0)


@pytest.mark.small
def test_few_hits_have_no_interval_and_say_so() -> None:
    tables = {
        name: pa.table(
            {
                "query": range(60),
                "items": [[q if q < hits else -1] for q in range(60)],
                "score": [[7 * q % 60 / 60] for q in range(60)],
            }
        )
        for name, hits in (("few", 4), ("many", 30))
    }
    found = rankmill.compare(labels(60), tables, "gap")
    few, many = (found.values["gap"][name] for name in tables)
    assert (few.low, few.high) == (None, None)
    assert many.low is not None
    assert many.high is not None
    assert 0 < many.low < many.value < many.high < 1
    assert "there is none for few, which has fewer than 10 hits" in found.notes[0]
    # A collapse is still seen: one of the two has hits enough.
    assert found.differences["gap"]["many"].low is not None
    verdict = rankmill.gate(
        labels(60), tables["few"], rankmill.Rules("gap >= 0.001 confidence 0.95", undecided="fail")
    )
    assert verdict.word == "not enough data"
    assert "4 hits are too few" in verdict.outcomes[0].reason


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"memory": 5000}, "the predictions with their queries need more memory: allow more"),
        (
            {"semantics": {"gap_ties": "ids"}},
            "the jackknife does not know the order of gap_ties 'ids'",
        ),
    ],
)
def test_what_is_not_known_is_told(options: dict[str, Any], why: str) -> None:
    few = {name: one.slice(0, 150) for name, one in RUNS.items()}
    if "semantics" not in options:
        few |= {"new": RUNS["new"]}
    values, without = scored(labels(300), few, ["gap"], **options)
    of, left = values["gap"], without["gap"]
    assert left["new"] == why
    assert pooled_estimates(of, left, 0.95)["new"] == Estimate(of["new"])
    less = of["new"] - of["old"]
    wanted = Difference(less, less / of["old"])
    assert pooled_difference(of, left, "old", "new", 0.95, GAP) == wanted


@pytest.mark.small
def test_one_query_has_a_value_and_nothing_more() -> None:
    runs = {"old": made(1, 1.0, 1), "new": made(1, 0.0, 1)}
    values, without = scored(labels(1), runs, ["gap"], semantics={"gap_total": "hits"})
    of, left = values["gap"], without["gap"]
    assert left["old"] == "it has no value without some of the queries"
    assert pooled_estimates(of, left, 0.95)["old"] == Estimate(of["old"])
    less = of["new"] - of["old"]
    wanted = Difference(less, less / of["old"])
    assert pooled_difference(of, left, "old", "new", 0.95, GAP) == wanted
