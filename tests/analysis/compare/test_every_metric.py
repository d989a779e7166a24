"""Every metric that compare takes has an interval and a test, and none leaves its range."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankmill
from flat import flat
from rankmill.analysis.compare import compare as compare_module
from rankmill.analysis.statistics.unseen import drawn_quantiles, quantile_ends
from rankmill.columns.ids import to_ids
from rankmill.engine.slices import groups_of
from rankmill.metrics.registry import parse

POOLED = ["gap", "auprc", "auprc_step", "roc_auc", "best_f1", "best_f1_threshold", "dprime"]
POOLED += ["ece", "brier", "log_loss", "gauc"]
SHOWN = ["coverage@3", "coverage_of_labels@3", "gini@3", "entropy@3", "hhi@3", "personalization@3"]
LISTS = ["novelty@3", "popularity@3", "serendipity@3", "ild@3", "aplt@3"]
SUMMARIES = ["map:median", "map:p90", "map:p10", "map:gm", "map:sum", "map:above=0.2"]
SUMMARIES += ["precision@3:micro"]
EVERY = [*POOLED, *SHOWN, *LISTS, *SUMMARIES]
QUERIES = 200


def tables(seed: int = 1, queries: int = QUERIES) -> tuple[pa.Table, dict[str, pa.Table]]:
    random = np.random.default_rng(seed)
    ids = np.arange(queries)
    labels = [random.choice(300, 3, replace=False).tolist() for _ in ids]
    runs = {}
    for name, good in (("old", 0.3), ("new", 0.5)):
        items, scores = [], []
        for of_query in labels:
            others = random.choice(np.arange(300, 600), 6, replace=False).tolist()
            right = random.random(3) < good
            shown = [a if hit else b for a, b, hit in zip(of_query, others[:3], right, strict=True)]
            items.append(shown + others[3:])
            scores.append(np.sort(random.random(6))[::-1].tolist())
        runs[name] = pa.table({"query": ids, "items": items, "scores": scores})
    clusters = [f"c{one % 70}" for one in ids]
    return pa.table({"query": ids, "items": labels, "shop": clusters}), runs


def beside() -> dict[str, Any]:
    train = pa.table(
        {"query": np.arange(QUERIES), "items": [[q % 40, q % 7] for q in range(QUERIES)]}
    )
    items = pa.table({"item": range(600), "genre": [[f"g{i % 5}"] for i in range(600)]})
    return {"train": train, "items": items, "item_group": "genre"}


@pytest.fixture(scope="module")
def found() -> Any:
    return flat(rankmill.compare, *tables(), EVERY, **beside())


@pytest.mark.parametrize("metric", EVERY)
def test_every_metric_has_an_interval_and_a_test(found: Any, metric: str) -> None:
    one, name = parse(metric), parse(metric).text
    for value in found.values[name].values():
        assert one.bounds[0] <= value.low <= value.value <= value.high
        assert value.high <= max(one.bounds[1], value.value)
    less = found.differences[name]["new"]
    assert less.low <= less.value <= less.high
    assert 0 <= less.tests["t"].p <= 1
    assert less.verdict is not None
    width = one.bounds[1] - one.bounds[0]
    assert -width <= less.low
    assert less.high <= width


@pytest.mark.parametrize("metric", ["gini@3", "roc_auc", "gap", "map:gm", "brier"])
def test_errors_are_those_of_a_jackknife_by_hand(found: Any, metric: str) -> None:
    """The obvious slow jackknife: evaluate without each group, as Busing et al. add it up."""
    labels, runs = tables()
    group = groups_of(to_ids(np.arange(QUERIES), "query"))
    name = parse(metric).text
    without = []
    for one in sorted({*group.tolist()}):
        kept = pa.array(group != one)
        parts = labels.filter(kept), runs["new"].filter(kept)
        without.append(flat(rankmill.evaluate, *parts, metric, **beside()).metrics[name])
    sizes = np.bincount(group)
    h = sizes.sum() / sizes[sizes > 0]
    value = found.values[name]["new"].value
    pseudo = h * value - (h - 1) * np.array(without)
    estimate = (pseudo / h).sum()
    error = math.sqrt(((pseudo - estimate) ** 2 / (h - 1)).mean())
    assert found.values[name]["new"].standard_error == pytest.approx(error, rel=1e-9)


def test_an_error_is_that_of_a_bootstrap_of_a_peer(found: Any) -> None:
    """`scipy.stats.bootstrap` draws queries with replacement; both estimate the same spread."""
    labels, runs = tables()
    scores = np.array(runs["new"]["scores"].to_pylist())
    items = runs["new"]["items"].to_pylist()
    correct = np.array(
        [[i in of for i in row] for row, of in zip(items, labels["items"].to_pylist(), strict=True)]
    )

    def brier(queries: np.ndarray) -> float:
        return float(((scores[queries] - correct[queries]) ** 2).mean())

    one = found.values["brier"]["new"]
    assert brier(np.arange(QUERIES)) == pytest.approx(one.value)
    drawn = stats.bootstrap(
        (np.arange(QUERIES),), brier, n_resamples=500, vectorized=False, rng=1, method="percentile"
    )
    # 20 groups know an error to a sixth.
    assert one.standard_error == pytest.approx(drawn.standard_error, rel=0.5)


def test_whole_clusters_are_left_out() -> None:
    labels, runs = tables()
    metrics = ["gini@3", "gap", "map:median", "map:p90"]
    found = flat(rankmill.compare, labels, runs, metrics, cluster="shop")
    alone = flat(rankmill.compare, labels, runs, metrics)
    for name in found.values:
        for table in (found, alone):
            assert table.values[name]["new"].low is not None
            assert table.differences[name]["new"].low is not None
    assert found.values["gini@3"]["new"] != alone.values["gini@3"]["new"]
    # One cluster a query: the same as no cluster, to the last bit.
    each = labels.set_column(2, "shop", pa.array([f"u{q}" for q in range(QUERIES)]))
    same = flat(rankmill.compare, each, runs, ["gini@3", "gap"], cluster="shop")
    assert same.values["gini@3"] == alone.values["gini@3"]
    assert same.differences["gap"]["new"].low == alone.differences["gap"]["new"].low


def test_a_note_says_of_how_many_lists_a_coverage_is(found: Any) -> None:
    note = next(one for one in found.notes if "gini@3, " in one)
    assert "are not means over queries: each interval is a jackknife over 20 groups" in note
    assert "; it is that of 200 lists" in note
    labels, runs = tables()
    fewer = flat(rankmill.compare, labels, runs | {"new": runs["new"].slice(0, 150)}, "gini@3")
    assert any("other numbers of lists (old 200, new 150)" in one for one in fewer.notes)


def test_threads_and_the_order_of_rows_change_no_bit() -> None:
    labels, runs = tables()
    metrics = ["gini@3", "gap", "map:median", "map:p90", "ece"]
    order = np.random.default_rng(5).permutation(QUERIES)
    one = flat(rankmill.compare, labels, runs, metrics, threads=1)
    other = flat(
        rankmill.compare,
        labels.take(order),
        {name: run.take(order[::-1]) for name, run in runs.items()},
        metrics,
        threads=2,
    )
    assert one.values == other.values
    assert one.differences == other.differences


# ------------------------------------------------------------------ medians and percentiles


@given(st.integers(2, 60), st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 2**32))
def test_the_order_statistics_are_those_of_the_binomial(n: int, share: float, seed: int) -> None:
    values = np.random.default_rng(seed).random(n)
    low, high = quantile_ends(values, share, (-1.0, 2.0), 0.95)
    ordered = [-1.0, *np.sort(values).tolist(), 2.0]
    ranks = [int(stats.binom.ppf(tail, n, share)) for tail in (0.025, 0.975)]
    wanted = [ranks[0], min(ranks[1] + 1, n + 1)]
    # The bound of a share is that of Clopper and Pearson, which is one rank off at most.
    for end, rank in zip((low, high), wanted, strict=True):
        assert abs(ordered.index(end) - rank) <= 1


def test_draws_are_those_of_a_plain_bootstrap() -> None:
    random = np.random.default_rng(3)
    old, new = random.random(400) ** 2, random.random(400) ** 2
    found = np.quantile(drawn_quantiles((old, new), "median", 0.5, None), (0.025, 0.975), axis=1)
    plain = []
    for _ in range(2000):
        taken = random.integers(0, 400, 400)
        plain.append([np.median(one[taken]) for one in (old, new)])
    wanted = np.quantile(np.array(plain), (0.025, 0.975), axis=0)
    assert found == pytest.approx(wanted, abs=0.02)
    clusters = drawn_quantiles((old, new), "median", 0.5, np.arange(400))
    assert np.quantile(clusters, (0.025, 0.975), axis=1) == pytest.approx(wanted, abs=0.02)
    again = drawn_quantiles((old, new), "median", 0.5, None)
    assert (again == drawn_quantiles((old, new), "median", 0.5, None)).all()
    # What is far from the quantile does not count, however far it is.
    far = drawn_quantiles((old + 100 * (old > 0.9), new), "median", 0.5, None)
    assert (far == again).all()


def test_swapped_systems_draw_the_same() -> None:
    random = np.random.default_rng(4)
    pair = np.round(random.random(90), 1), np.round(random.random(90) ** 1.2, 1)
    pair[0][:9] = np.nan
    one, other = (drawn_quantiles(sides, "p10", 0.1, None) for sides in (pair, pair[::-1]))
    assert (one == other[::-1]).all()


@pytest.mark.parametrize("beyond", [5, 6, 7, 8])
def test_the_interval_of_a_median_is_beyond_0_where_it_is_better(
    monkeypatch: pytest.MonkeyPatch, beyond: int
) -> None:
    """With 7 draws of 300 beyond 0 it was not better, and its interval said that it was."""
    drawn = np.stack([np.full(300, 0.5), 0.6 + np.arange(300.0) / 1000])
    drawn[1, :beyond] = 0.4
    monkeypatch.setattr(compare_module, "drawn_quantiles", lambda *asked: drawn)
    labels = pa.table({"query": range(9), "items": [[1]] * 9})
    runs = {
        name: pa.table({"query": range(9), "items": [of] * 9})
        for name, of in {"old": [2, 1], "new": [1]}.items()
    }
    found = rankmill.compare(labels, runs, "map:median").differences["map:median"]["new"]
    assert (found.verdict == "better") == (found.low > 0) == (beyond <= 6)
    assert (found.relative_low > 0) == (found.low > 0)


def test_queries_that_count_for_one_system_alone() -> None:
    labels, runs = tables()
    runs["new"] = runs["new"].slice(0, 150)
    how = {"semantics": {"unpredicted": "skip"}}
    found = flat(
        rankmill.compare, labels, runs, ["map:median", "gini@3", "precision@3:micro"], **how
    )
    for name in found.values:
        assert found.values[name]["new"].low is not None
        assert found.differences[name]["new"].low is not None
