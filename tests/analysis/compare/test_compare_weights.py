"""Weights in a comparison: weighted differences, their tests, and slices."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from statsmodels.regression.linear_model import WLS

import rankmill
from systems import made, table


def weighted(seed=5, count=60):
    labels, poor, good = made(seed, count)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.5, 1e6], count)
    weights[:5] = 3
    of_labels = table(labels).append_column("w", pa.array(weights))
    of_labels = of_labels.append_column("half", pa.array([f"h{q % 2}" for q in labels]))
    return of_labels, {"poor": table(poor), "good": table(good)}, weights


def differences_of(labels, runs, metric):
    values = [rankmill.evaluate(labels, one, metric).per_query[metric] for one in runs.values()]
    return values[1].to_numpy() - values[0].to_numpy()


@pytest.mark.small
def test_differences_are_weighted():
    labels, runs, weights = weighted()
    found = rankmill.compare(
        rankmill.Labels(labels, weight="w"), runs, ["map@3"], tests=["t", "randomization"]
    )
    differences = differences_of(labels, runs, "map@3")
    one, counted = found.differences["map@3"]["good"], weights > 0
    assert one.value == pytest.approx(np.average(differences, weights=weights), rel=1e-13)
    # The regression on a constant: its robust standard error HC1 is that of the weighted mean.
    fit = WLS(differences[counted], np.ones(counted.sum()), weights[counted]).fit(cov_type="HC1")
    t = float(fit.t_test([1], use_t=True).tvalue[0, 0])
    effective = weights.sum() ** 2 / (weights**2).sum()
    freedom = (effective - 1) / (1 + 2 * (1 - effective / counted.sum()))
    half = stats.t.ppf(0.975, freedom) * one.value / t
    assert (one.low, one.high) == pytest.approx((one.value - half, one.value + half), rel=1e-9)
    assert one.tests["t"].p == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-9)
    assert one.won + one.tied + one.lost == counted.sum()
    assert found.effective_queries == pytest.approx(effective, rel=1e-13)
    value = found.values["map@3"]["good"]
    alone = rankmill.evaluate(rankmill.Labels(labels, weight="w"), runs["good"], "map@3")
    assert (value.value, value.standard_error) == (
        alone["map@3"],
        alone.standard_errors["map@3"],
    )


@pytest.mark.small
def test_randomization_flips_weighted_differences():
    labels, runs, weights = weighted(count=12)
    found = rankmill.compare(
        rankmill.Labels(labels, weight="w"), runs, ["map@3"], tests="randomization"
    )
    products = differences_of(labels, runs, "map@3") * weights
    signs = 1 - 2 * ((np.arange(2**12)[:, None] >> np.arange(12)) & 1)
    sums = np.abs((signs * products).sum(axis=1))
    p = (sums >= abs(products.sum()) * (1 - 1e-12)).mean()
    assert found.differences["map@3"]["good"].tests["randomization"].p == pytest.approx(p)


@pytest.mark.small
def test_equal_weights_change_nothing():
    labels, runs, _ = weighted()
    same = labels.set_column(2, "w", pa.array(np.full(60, 0.25)))
    plain = rankmill.compare(labels, runs, ["map@3", "recall@2"], by="half")
    found = rankmill.compare(
        rankmill.Labels(same, weight="w"), runs, ["map@3", "recall@2"], by="half"
    )
    assert found.effective_queries == 60

    def told(one):
        return one.values, one.differences

    for one, other in zip([found, *found.slices], [plain, *plain.slices], strict=True):
        for mine, theirs in zip(told(one), told(other), strict=True):
            for metric, of in mine.items():
                for name, each in of.items():
                    expected = theirs[metric][name]
                    if hasattr(each, "tests"):
                        assert each.low == pytest.approx(expected.low, rel=1e-12)
                        each, expected = each.tests["t"], expected.tests["t"]
                        assert each.corrected_p == pytest.approx(expected.corrected_p, rel=1e-9)
                        each, expected = (
                            one._replace(corrected_p=None) for one in (each, expected)
                        )
                    assert tuple(each) == tuple(expected)
