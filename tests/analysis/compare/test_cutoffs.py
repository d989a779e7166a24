"""Systems compared over cutoffs: the values of `compare` at each, and the ranks of plain loops."""

import pytest

import rankmill
from systems import made, table

CUTOFFS = [4, 1, 2]
pytestmark = pytest.mark.small


def systems():
    """Labels and three systems, two of them equal, as tables."""
    labels, poor, good = made(1)
    runs = {"poor": poor, "good": good, "same": dict(good)}
    return table(labels), {name: table(one) for name, one in runs.items()}


def test_each_metric_is_computed_at_all_cutoffs_instead_of_its_own():
    labels, runs = systems()
    asked = ["map(rel=1)@12", "P_5", "ndcg:median", "num_ret", "iprec@0.5", "map(rel=1)@7"]
    named = ["map(rel=1)@1", "map(rel=1)@2", "map(rel=1)@4", "P_1", "P_2", "P_4"]
    named += ["ndcg@1:median", "ndcg@2:median", "ndcg@4:median", "num_ret", "iprec@0.5"]
    found = rankmill.compare(labels, runs, asked, cutoffs=CUTOFFS)
    beside = rankmill.compare(labels, runs, named)
    assert (found.values, found.differences) == (beside.values, beside.differences)
    assert list(found.values) == named
    assert list(found.ranks) == ["map(rel=1)", "P", "ndcg:median"]
    assert beside.ranks == {}
    assert rankmill.compare(labels, runs, asked, cutoffs="1, 2,4") == found


def test_ranks_are_those_of_plain_loops_and_a_star_tells_where_they_change():
    labels, runs = systems()
    found = rankmill.compare(labels, runs, ["map", "first_rank"], cutoffs=CUTOFFS)
    for metric, sign in (("map", 1), ("first_rank", -1)):
        for k in (1, 2, 4):
            values = {name: sign * one.value for name, one in found.values[f"{metric}@{k}"].items()}
            ranks = {n: 1 + sum(v > values[n] for v in values.values()) for n in values}
            assert found.ranks[metric][k] == ranks
    deep = {query: [9, 1] for query in range(20)}
    top = {query: [1] if query < 8 else [9] for query in range(20)}
    labels = table({query: [1] for query in range(20)})
    runs = {"deep": table(deep), "top": table(top)}
    rows = repr(rankmill.compare(labels, runs, "recall", cutoffs=[1, 2])).splitlines()
    place = next(i for i, row in enumerate(rows) if row.startswith("recall over cutoffs"))
    assert [row.split() for row in rows[place + 1 : place + 5] if "-" not in row] == [
        ["system", "@1", "@2"],
        ["deep", "0.000000", "(2)", "1.000000", "(1)*"],
        ["top", "0.400000", "(1)", "0.400000", "(2)*"],
    ]


def test_kept_results_have_to_hold_the_metrics_at_all_cutoffs():
    labels, runs = systems()
    results = rankmill.evaluate_runs(labels, runs, ["map@1,2"])
    found = rankmill.compare(results, metrics="map", cutoffs=[1, 2])
    assert found == rankmill.compare(labels, runs, "map", cutoffs=[1, 2])
    with pytest.raises(rankmill.UsageError, match="the results have no 'map@3'"):
        rankmill.compare(results, metrics="map", cutoffs=[1, 3])
