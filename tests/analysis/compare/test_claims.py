"""What a comparison says of its own verdicts."""

import numpy as np
import pytest
from scipy import stats

import rankmill


def of(values):
    labels = {query: [1] for query in range(len(next(iter(values.values()))))}
    runs = {
        name: {query: [1] if hit else [2] for query, hit in enumerate(hits)}
        for name, hits in values.items()
    }
    return rankmill.compare(labels, runs, "hit@1")


def test_no_difference_shown_says_what_could_have_been_shown():
    draw = np.random.default_rng(0)
    old, new = (draw.random(400) < 0.5 for _ in range(2))
    found = of({"old": old, "new": new})
    one = found.differences["hit@1"]["new"]
    assert one.verdict == "no difference shown"
    error = stats.sem(new.astype(float) - old)
    expected = (stats.t.ppf(0.975, 399) + stats.t.ppf(0.8, 399)) * error
    assert one.detects == pytest.approx(expected)
    told = f"in 80% of such comparisons one is shown from these on: {expected:.2g} (hit@1, new)"
    assert told in repr(found)


def test_two_queries_show_no_difference_that_there_is():
    one = of({"old": [True, True], "new": [False, True]}).differences["hit@1"]["new"]
    assert (one.value, one.low, one.high, one.detects) == (-0.5, -1, 1, None)


def test_a_difference_that_rests_on_few_queries_says_so():
    # Five of a thousand queries are lost, none won: t shows it, and one more query undoes it.
    old, new = np.ones(1000, bool), np.arange(1000) >= 5
    found = of({"old": old, "new": new})
    one = found.differences["hit@1"]["new"]
    assert one.verdict == "worse"
    assert one.tests["t"].p < 0.05
    assert one.bound_p > 0.05
    assert "rests on few queries: new in hit@1" in repr(found)
    many = of({"old": old, "new": np.arange(1000) >= 40})
    assert many.differences["hit@1"]["new"].bound_p < 0.05
    assert "rests on few" not in repr(many)
