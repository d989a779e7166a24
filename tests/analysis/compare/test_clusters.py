"""Queries in clusters, such as the sessions of a user: errors, tests, slices and rules."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS

import rankmill
import unseen_oracle
from flat import flat
from rankmill.analysis.statistics.paired_differences import ClusteredPaired, of_clusters, paired_of
from rankmill.analysis.statistics.significance import DEPENDENT, run_test
from systems import made, table


def clustered(seed=5, count=240, clusters=24):
    labels, poor, good = made(seed, count)
    users = np.random.default_rng(seed).integers(0, clusters, count)
    users[: clusters * 3] = np.repeat(np.arange(clusters), 3)
    of_labels = table(labels).append_column("user", pa.array([f"u{u}" for u in users]))
    of_labels = of_labels.append_column("half", pa.array([f"h{q % 2}" for q in labels]))
    return of_labels, {"poor": table(poor), "good": table(good)}, users


def values_of(labels, runs, metric):
    found = [
        rankmill.evaluate(rankmill.Labels(labels, query="query"), one, metric).per_query[metric]
        for one in runs.values()
    ]
    return [one.to_numpy() for one in found]


def robust(values, users):
    """The mean and its cluster-robust standard error, of statsmodels, and the degrees of freedom.

    These are those of statsmodels for clusters of one size, and fewer for others.
    """
    fit = OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": users}, use_t=True
    )
    sizes = np.unique(users, return_counts=True)[1]
    effective = sizes.sum() ** 2 / (sizes**2).sum()
    freedom = (effective - 1) / (1 + 2 * (1 - effective / len(sizes)))
    assert freedom <= fit.df_resid_inference == len(sizes) - 1
    return fit.params[0], fit.bse[0], freedom


@pytest.mark.small
def test_errors_and_tests_are_those_of_statsmodels():
    labels, runs, users = clustered()
    found = rankmill.compare(labels, runs, ["map@3"], cluster="user")
    old, new = values_of(labels, runs, "map@3")
    value = found.values["map@3"]["good"]
    assert value[:2] == pytest.approx(robust(new, users)[:2], rel=1e-12)
    mean, error, freedom = robust(new - old, users)
    one = found.differences["map@3"]["good"]
    half = stats.t.ppf(0.975, freedom) * error
    assert found.clusters == 24
    assert one.value == pytest.approx(mean, rel=1e-12)
    assert (one.low, one.high) == pytest.approx((mean - half, mean + half), rel=1e-10)
    p = 2 * stats.t.sf(abs(mean / error), freedom)
    assert one.tests["t"].p == pytest.approx(p, rel=1e-9)
    assert (one.won, one.tied, one.lost) == tuple(
        int(each.sum()) for each in (new > old, new == old, new < old)
    )
    assert found.to_dict()["clusters"] == 24
    assert "24 clusters by user" in repr(found)


@pytest.mark.small
def test_slices_count_the_clusters_that_they_hold():
    labels, runs, users = clustered()
    found = rankmill.compare(labels, runs, ["map@3"], cluster="user", by="half")
    whole = rankmill.compare(labels, runs, ["map@3"], cluster="user")
    assert found.values == whole.values
    old, new = values_of(labels, runs, "map@3")
    for number, one in enumerate(found.slices):
        kept = np.arange(len(users)) % 2 == number
        mean, error, freedom = robust((new - old)[kept], users[kept])
        half = stats.t.ppf((1 + one.confidence) / 2, freedom) * error
        ends = one.differences["map@3"]["good"]
        tail, how = (1 - one.confidence) / 2, {"codes": users[kept]}
        low = unseen_oracle.smallest((new - old)[kept], -1, tail, **how)
        high = unseen_oracle.largest((new - old)[kept], 1, tail, **how)
        expected = min(low, mean - half), max(high, mean + half)
        assert (ends.low, ends.high) == pytest.approx(expected, rel=1e-9)


@pytest.mark.small
def test_a_relative_difference_has_the_ends_that_the_test_does_not_refute():
    labels, runs, users = clustered()
    one = rankmill.compare(labels, runs, ["map@3"], cluster="user").differences["map@3"]["good"]
    old, new = values_of(labels, runs, "map@3")
    for end in (one.relative_low, one.relative_high):
        mean, error, freedom = robust(new - (1 + end) * old, users)
        assert abs(mean / error) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-8)


@pytest.mark.small
def test_the_clusters_may_be_in_a_table_of_by_which_has_no_limit_of_values():
    labels, runs, users = clustered()
    ids = labels.column("query")
    by = pa.table({"user_id": ids, "who": [f"w{u}" for u in users], "half": labels["half"]})
    expected = rankmill.compare(labels, runs, ["map@3"], cluster="user", by="half")
    found = rankmill.compare(labels.select([0, 1]), runs, ["map@3"], cluster="who", by=by)
    assert found.values == expected.values
    assert [one.value for one in found.slices] == [("h0",), ("h1",)]
    many = pa.table({"user_id": [*range(1500)], "items": [[1]] * 1500})
    many = many.append_column("one", pa.array([*range(1500)]))
    alone = rankmill.compare(many, {"a": many, "b": many}, ["map@3"], cluster="one")
    assert alone.clusters == 1500


@pytest.mark.small
@pytest.mark.lengthy
def test_a_query_without_a_cluster_is_one_of_its_own():
    labels, runs, _ = clustered()
    nobody = labels.set_column(2, "user", pa.nulls(len(labels), pa.string()))
    found = rankmill.compare(nobody, runs, ["map@3"], cluster="user", tests=["t", "randomization"])
    plain = rankmill.compare(labels.select([0, 1]), runs, ["map@3"], tests=["t", "randomization"])
    assert found.clusters == len(labels)
    one, other = (each.differences["map@3"]["good"] for each in (found, plain))
    assert one.tests["t"] == other.tests["t"]
    assert found.values == plain.values


@pytest.mark.small
def test_randomization_flips_whole_clusters():
    random = np.random.default_rng(1)
    codes = np.repeat(np.arange(10), random.integers(1, 9, 10))
    differences = random.normal(0.2, 1, len(codes))
    sums = np.bincount(codes, differences)
    signs = 1 - 2 * ((np.arange(2**10)[:, None] >> np.arange(10)) & 1)
    p = (np.abs((signs * sums).sum(axis=1)) >= abs(sums.sum()) * (1 - 1e-12)).mean()
    assert run_test("randomization", ClusteredPaired.of(differences, codes)).p == pytest.approx(p)


@pytest.mark.small
def test_sums_of_clusters_are_exact_whatever_the_order():
    random = np.random.default_rng(3)
    values = random.normal(size=400) * 10.0 ** random.integers(-12, 12, 400)
    codes = random.integers(0, 40, 400)
    order = random.permutation(400)
    one, other = of_clusters(values, codes), of_clusters(values[order], 40 - codes[order])
    assert one.mean == other.mean
    assert sorted(one.sums) == sorted(other.sums)
    assert one.mean.mean == paired_of(values).mean
    alike = of_clusters(np.full(30, 0.1), np.repeat(np.arange(12), [1, 2, 3, 4] * 3))
    assert alike.mean.standard_error == 0.0
    tests = [
        [run_test(test, ClusteredPaired.of(*given), threads=threads) for test in DEPENDENT]
        for given, threads in (((values, codes), 1), ((values[order], codes[order]), 2))
    ]
    assert tests[0] == tests[1]


@pytest.mark.small
@pytest.mark.parametrize("clusters", [8, 20])
def test_few_clusters_are_told(clusters):
    labels, runs, _ = clustered(clusters=clusters)
    found = rankmill.compare(
        labels, runs, ["map@3"], cluster="user", tests=["t", "randomization"], by="half"
    )
    one = found.differences["map@3"]["good"]
    notes = " ".join(found.notes)
    assert f"{clusters} clusters by user" in notes
    if clusters < 10:
        assert (one.verdict, one.low) == (None, None)
        assert "there is no test" in notes
        assert all(each.p is None for each in one.tests.values())
    else:
        assert "take randomization" in notes
        assert one.tests["t"].p is not None


@pytest.mark.small
def test_clusters_of_very_unequal_size_have_randomization_alone():
    codes = np.repeat(np.arange(14), [400, *[5] * 13])
    paired = ClusteredPaired.of(np.random.default_rng(0).normal(size=len(codes)), codes)
    assert run_test("t", paired).p is None
    assert run_test("randomization", paired).p is not None


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tests": "wilcoxon"}, "wilcoxon"),
        ({"tests": ["t", "wilcoxon"]}, "wilcoxon"),
        ({"weight": "half"}, "weight"),
        ({"cluster": "label_count"}, "label_count"),
        ({"cluster": ""}, "cluster is ''"),
        ({"cluster": 3}, "cluster is 3"),
        ({"cluster": "nobody", "label_query": "query"}, "nobody"),
    ],
)
def test_what_clusters_cannot_have_is_refused_by_name(options, words):
    labels, runs, _ = clustered(count=80)
    with pytest.raises(rankmill.RankmillError, match=words):
        flat(rankmill.compare, labels, runs, ["map@3"], **{"cluster": "user"} | options)


@pytest.mark.small
def test_states_of_clusters_do_not_merge():
    labels, runs, _ = clustered(count=80)
    state = rankmill.compare(labels, runs, ["map@3"], cluster="user").state
    for act in (lambda: state.merge(state), state.to_table):
        with pytest.raises(
            rankmill.UsageError, match="in clusters, which may be in several states"
        ):
            act()


def least_drop(old, new, users):
    """Return the lower end of a drop at 0.9: of t over clusters, or of what was not seen."""
    drop = new - old  # the better system is named old
    mean, error, freedom = robust(drop, users)
    bound = unseen_oracle.smallest(drop, -1.0, 0.05, codes=users)
    return min(mean - stats.t.ppf(0.95, freedom) * error, bound)


@pytest.mark.small
def test_a_gate_takes_the_errors_of_clusters():
    labels, runs, users = clustered()
    old, new = values_of(labels, runs, "map@3")
    rules = ["map@3 drop <= 0.01 confidence 0.9", "map@3 >= 0.2 confidence 0.9"]
    found = rankmill.gate(
        labels,
        runs["poor"],
        rankmill.Rules(rules, undecided="warn"),
        baseline=runs["good"],
        cluster="user",
    )
    assert found.outcomes[0].low == pytest.approx(least_drop(old, new, users), rel=1e-9)
    mean, error, freedom = robust(old, users)
    alone = rankmill.gate(labels, runs["poor"], rules[1:], cluster="user")
    for outcome in (found.outcomes[1], alone.outcomes[0]):
        end = mean + stats.t.ppf(0.95, freedom) * error
        bound = unseen_oracle.largest(old, 1.0, 0.05, codes=users)
        assert outcome.high == pytest.approx(max(end, bound), rel=1e-9)
    assert "intervals are those of 24 clusters by user" in alone.notes


@pytest.mark.small
def test_a_gate_refuses_what_has_no_clusters(tmp_path):
    labels, runs, _ = clustered(count=80)
    before = tmp_path / "old.json"
    before.write_text(
        rankmill.evaluate(rankmill.Labels(labels, query="query"), runs["good"], "map@3").to_json()
    )
    with pytest.raises(rankmill.UsageError, match="is the JSON of a result"):
        rankmill.gate(
            labels,
            runs["poor"],
            "map@3 drop <= 1% confidence 0.9",
            baseline=str(before),
            cluster="user",
        )
    with pytest.raises(rankmill.UsageError, match="mean over queries"):
        rankmill.gate(labels, runs["poor"], "gap >= 0.1 confidence 0.9", cluster="user")


@pytest.mark.small
def test_a_gate_pairs_clusters_with_the_values_of_an_earlier_run(tmp_path):
    labels, runs, users = clustered()
    fewer = labels[10:]
    before = rankmill.evaluate(
        rankmill.Labels(fewer, query="query"), runs["good"], "map@3"
    ).per_query
    pq.write_table(before, tmp_path / "old.parquet")
    found = rankmill.gate(
        labels,
        runs["poor"],
        "map@3 drop <= 0.01 confidence 0.9",
        baseline=str(tmp_path / "old.parquet"),
        cluster="user",
    )
    old, new = values_of(labels, runs, "map@3")
    end = least_drop(old[10:], new[10:], users[10:])
    assert found.outcomes[0].low == pytest.approx(end, rel=1e-9)


def test_the_command_and_its_file_take_clusters_and_a_covariate(run, tmp_path):
    labels, runs, users = clustered()
    labels = labels.append_column("before", pa.array(users.astype(float)))
    tables = {"labels": labels, **runs}
    for name, one in tables.items():
        pq.write_table(one, tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in tables]
    code, out, _ = run("compare", *files, "-m", "map@3", "--cluster", "user")
    assert code == 0
    assert "they come in 24 clusters by user" in out
    ids = pa.table({"query": labels["query"], "then": labels["before"]})
    pq.write_table(ids, tmp_path / "then.parquet")
    told = tmp_path / "rankmill.toml"
    for line, words in (
        ('cluster = "user"', "they come in 24 clusters by user"),
        ('adjust = "before"', "adjusted: by before; variance less by map@3"),
        ('adjust = "then.parquet"', "; variance less by map@3 new"),
    ):
        told.write_text(
            f'labels = "labels.parquet"\nmetrics = ["map@3"]\n{line}\n'
            '[systems]\nold = "poor.parquet"\nnew = "good.parquet"\n'
            '[columns]\nlabel_query = "query"\n'
        )
        code, out, err = run("compare", told)
        assert (code, words in out) == (0, True), (out, err)
