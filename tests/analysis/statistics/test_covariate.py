"""Differences that are adjusted by what was known of each query before (CUPED)."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS

import rankmill
from flat import flat
from rankmill.analysis.statistics.paired_differences import AdjustedWeighted, fit_of
from systems import made, table


def known(seed=5, count=80):
    """Labels with a number of each query, which the differences of two systems follow."""
    labels, poor, good = made(seed, count)
    runs = {"poor": table(poor), "good": table(good)}
    old, new = (rankmill.evaluate(table(labels), one, "map@3") for one in runs.values())
    old, new = (one.per_query["map@3"].to_numpy() for one in (old, new))
    before = new - old + np.random.default_rng(seed).normal(3, 0.2, count)
    return table(labels).append_column("before", pa.array(before)), runs, before, old, new


def regression(values, before, mean=None):
    design = np.column_stack(
        [np.ones(len(before)), before - np.mean(before if mean is None else mean)]
    )
    fit = OLS(values, design).fit()
    return fit.params[0], fit.bse[0], fit.df_resid


def hold(found, values, before, mean=None):
    expected, error, freedom = regression(values, before, mean)
    one = found.differences["map@3"]["good"]
    half = stats.t.ppf(0.975, freedom) * error
    assert one.value == pytest.approx(expected, rel=1e-10)
    assert (one.low, one.high) == pytest.approx((expected - half, expected + half), rel=1e-9)
    p = 2 * stats.t.sf(abs(expected / error), freedom)
    assert one.tests["t"].p == pytest.approx(p, rel=1e-8)
    return one, error


@pytest.mark.small
def test_a_column_adjusts_as_the_regression_does():
    labels, runs, before, old, new = known()
    found = rankmill.compare(labels, runs, ["map@3"], adjust="before")
    plain = rankmill.compare(labels.select([0, 1]), runs, ["map@3"])
    one, error = hold(found, new - old, before)
    other = plain.differences["map@3"]["good"]
    assert found.values == plain.values
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert one.high - one.low < 0.5 * (other.high - other.low)
    reduction = 1 - error**2 / (np.var(new - old, ddof=1) / len(old))
    assert one.variance_reduction == pytest.approx(reduction, rel=1e-10)
    assert other.variance_reduction is None
    assert (one.won, one.tied, one.lost) == (other.won, other.tied, other.lost)
    assert f"variance less by map@3 good {reduction:.1%}" in repr(found)
    for end in (one.relative_low, one.relative_high):
        mean, of_mean, freedom = regression(new - (1 + end) * old, before)
        assert abs(mean / of_mean) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-7)


@pytest.mark.small
def test_a_file_has_the_mean_of_all_its_queries(tmp_path):
    labels, runs, before, old, new = known()
    more = np.append(before, [9.0, 4.0])
    ids = [*labels["query"].to_pylist(), 901, 902]
    pq.write_table(pa.table({"query": ids, "then": more}), tmp_path / "then.parquet")
    rows = (f"{one},{value!r}\n" for one, value in zip(ids, more.tolist(), strict=True))
    (tmp_path / "then.csv").write_text("query,then\n" + "".join(rows))
    for name in ("then.parquet", "then.csv"):
        path = str(tmp_path / name)
        found = rankmill.compare(labels.select([0, 1]), runs, ["map@3"], adjust=path)
        hold(found, new - old, before, more)
        assert any("over 82 queries" in note for note in found.notes)
    more = {"query": ids, "visits": [1] * len(ids), "then": more}
    pq.write_table(pa.table(more), tmp_path / "several.parquet")
    path = str(tmp_path / "several.parquet")
    with pytest.raises(rankmill.UsageError, match=r"adjust has .* expected one: choose it"):
        rankmill.compare(labels.select([0, 1]), runs, ["map@3"], adjust=path)
    found = rankmill.compare(labels.select([0, 1]), runs, ["map@3"], adjust=f"{path}:then")
    hold(found, new - old, before, np.array(more["then"]))


@pytest.mark.small
def test_a_query_without_a_number_counts_as_if_it_had_the_mean():
    labels, runs, before, old, new = known()
    lacking = pa.table({"query": labels["query"], "then": before})[10:]
    found = rankmill.compare(labels.select([0, 1]), runs, ["map@3"], adjust=lacking)
    mean = before[10:].mean()
    hold(found, new - old, np.append(np.full(10, mean), before[10:]), before[10:])
    assert any("10 queries without one count" in note for note in found.notes)
    assert any("says nothing of queries with another mean" in note for note in found.notes)
    assert found.to_dict()["settings"]["adjust"] == "a table"
    found.to_json()


@pytest.mark.small
def test_the_fit_does_not_depend_on_the_order():
    random = np.random.default_rng(0)
    values, covariate = random.normal(size=(2, 1000))
    order = random.permutation(1000)
    assert fit_of(values, covariate) == fit_of(values[order], covariate[order])
    # Without a spread there is nothing to explain, whatever rounding leaves.
    for one, other in ((values, np.full(1000, 0.1)), (np.full(1000, 0.1), covariate)):
        assert fit_of(one, other).freedom == 999
    assert fit_of(np.full(1000, 0.1), covariate).standard_error == 0


@pytest.mark.small
@pytest.mark.parametrize("limit", ["0.01", "2%"])
def test_a_drop_is_adjusted_and_a_value_is_not(limit):
    labels, runs, before, old, new = known()
    rules = [f"map@3 drop <= {limit} confidence 0.9", "map@3 >= 0.1 confidence 0.9"]
    options = {"baseline": runs["good"], "undecided": "warn"}
    found = flat(rankmill.gate, labels, runs["poor"], rules, adjust="before", **options)
    plain = flat(rankmill.gate, labels.select([0, 1]), runs["poor"], rules, **options)
    assert found.outcomes[1] == plain.outcomes[1]
    assert plain.outcomes[1].baseline == pytest.approx(new.mean(), rel=1e-12)
    assert (
        "drops over all queries, and the values given with them, are adjusted by before"
        in found.notes
    )
    one, other = found.outcomes[0], plain.outcomes[0]
    assert one.measured == pytest.approx(other.measured, rel=1e-9)
    assert one.low > other.low
    base = new if limit == "0.01" else (1 - one.low) * new
    values = new - old if limit == "0.01" else base - old
    mean, error, freedom = regression(values, before)
    end = mean - stats.t.ppf(0.95, freedom) * error
    # One query that was not seen moves the end of t, and by little.
    assert 0 < end - (one.low if limit == "0.01" else 0.0) < 0.04


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tests": "wilcoxon"}, "wilcoxon"),
        ({"adjust": ""}, "adjust is empty"),
        ({"adjust": "nobody"}, "nobody"),
        ({"adjust": pa.table({"query": [0], "a": [1.0], "b": [1.0]})}, "expected one"),
        ({"adjust": pa.table({"query": [0], "a": ["x"]})}, "number"),
        ({"adjust": pa.table({"query": [0], "a": [np.inf]})}, "infinite"),
        ({"adjust": pa.table({"query": [9999], "a": [1.0]})}, "no query of the labels"),
    ],
)
def test_what_cannot_be_adjusted_is_refused(options, words):
    labels, runs, *_ = known(count=20)
    with pytest.raises(rankmill.RankmillError, match=words):
        flat(rankmill.compare, labels, runs, ["map@3"], **{"adjust": "before"} | options)


def sandwich(values, before, weights, codes, centred):
    """Return the constant of the regression and its cluster-robust error, by linear algebra."""
    x = np.column_stack([np.ones(len(values)), before])
    bread = np.linalg.inv(x.T @ (weights[:, None] * x))
    beta = bread @ x.T @ (weights * values)
    scores = (weights * (values - x @ beta))[:, None] * x
    sums = np.array([scores[codes == one].sum(axis=0) for one in np.unique(codes)])
    count = len(sums)
    at = np.array([1.0, (weights * before).sum() / weights.sum() if centred else 0.0])
    variance = at @ bread @ (sums.T @ sums) @ bread @ at * count / (count - 1)
    return at @ beta, variance**0.5


@pytest.mark.small
@pytest.mark.parametrize("kind", ["clusters", "weights"])
def test_clusters_and_weights_adjust_as_a_sandwich_does(kind):
    random = np.random.default_rng(4)
    codes = np.arange(90) // 3
    before = random.normal(0, 1, 90) + 0.3
    base, values = (before * slope + random.normal(0, 1, 90) for slope in (0.4, 0.9))
    weights = np.round(random.lognormal(0, 1, 90), 3) if kind == "weights" else None
    one = AdjustedWeighted.over(values, base, before, weights, None if kind == "weights" else codes)
    of = np.ones(90) if weights is None else weights
    groups = np.arange(90) if kind == "weights" else codes
    for mine, wanted in ((one, values - base), (one.mine, values), (one.theirs, base)):
        mean, error = sandwich(wanted, before, of, groups, kind == "weights")
        assert mine.mean == pytest.approx(mean)
        if kind == "clusters":
            assert mine.standard_error == pytest.approx(error)
        else:  # the corrections for few queries differ by a hundredth or so
            assert mine.standard_error == pytest.approx(error, rel=0.05)
    assert 0 < one.reduction < 1
    assert (one.won, one.lost) == ((values > base).sum(), (values < base).sum())
    order = random.permutation(90)
    again = AdjustedWeighted.over(
        values[order],
        base[order],
        before[order],
        None if weights is None else weights[order],
        None if kind == "weights" else codes[order],
    )
    assert again.mean == pytest.approx(one.mean, rel=1e-14)


@pytest.mark.small
@pytest.mark.parametrize("options", [{"cluster": "shop"}, {"weight": "visits"}])
def test_compare_adjusts_with_clusters_and_weights(options):
    labels, runs, *_ = known(count=80)
    labels = labels.append_column("shop", pa.array([f"s{i // 2}" for i in range(len(labels))]))
    labels = labels.append_column("visits", pa.array([1.0 + i % 5 for i in range(len(labels))]))
    plain = flat(rankmill.compare, labels, runs, ["map@3"], **options)
    found = flat(rankmill.compare, labels, runs, ["map@3"], adjust="before", **options)
    for name, one in found.differences["map@3"].items():
        other = plain.differences["map@3"][name]
        assert 0 < one.variance_reduction < 1
        assert one.high - one.low < other.high - other.low
        assert (one.won, one.lost) == (other.won, other.lost)
        assert one.relative_low < one.relative < one.relative_high
    told = "weighted mean of before over these" if "weight" in options else "mean of before over 80"
    assert any(told in note for note in found.notes)
    of_gate = labels, runs["good"], "map@3 drop <= 10%"
    with pytest.raises(rankmill.UsageError, match="adjust cannot be combined with"):
        flat(rankmill.gate, *of_gate, baseline=runs["poor"], adjust="before", **options)


@pytest.mark.small
def test_a_gate_adjusts_drops_of_values_of_queries_only():
    labels, runs, *_ = known(count=20)
    with pytest.raises(rankmill.UsageError, match="for a rule with drop"):
        rankmill.gate(labels, runs["poor"], "map@3 >= 0.1", adjust="before")


@pytest.mark.small
def test_a_number_that_few_queries_have_adjusts_nothing():
    """Two queries that both won by chance would hide how far they spread."""
    values, few = np.tile([0.1, -0.1], 100), np.zeros(200)
    few[:2] = values[:2] = 1
    plain = fit_of(values, np.ones(200))
    assert fit_of(values, few - 0.01) == plain
    assert AdjustedWeighted.over(values, 0 * values, few, np.ones(200), None).reduction == 0
    labels, runs, *_ = known()
    few = pa.array([9.0, 9.0] + [0.0] * 78)
    labels = labels.drop(["before"]).append_column("before", few)
    found = rankmill.compare(labels, runs, ["map@3"], adjust="before")
    alone = rankmill.compare(labels.select([0, 1]), runs, ["map@3"])
    assert any("nothing is adjusted: too few queries" in note for note in found.notes)
    one, other = (each.differences["map@3"]["good"] for each in (found, alone))
    assert (one.value, one.low, one.high) == (other.value, other.low, other.high)
