"""fuse(optimise=): against a plain loop over fuse() and evaluate(), and against ranx."""

from __future__ import annotations

import itertools
import math
import random
import re
from typing import Any

import pytest

import rankmill
from rankmill import UsageError
from rankmill.analysis.stability.halves import random_keys
from rankmill.columns.ids import to_ids

Labels = dict[str, list[str]]
Runs = dict[str, dict[str, list[tuple[str, float]]]]


def random_sides(seed: int, runs: int, queries: int = 12) -> tuple[Labels, Runs]:
    """Labels, and runs of different quality; lists have no equal confidences."""
    draw = random.Random(seed)
    items = [f"d{number}" for number in range(30)]
    labels = {f"q{number}": draw.sample(items, draw.randint(1, 5)) for number in range(queries)}
    systems: Runs = {}
    for system in range(runs):
        help_ = draw.random()
        systems[f"s{system}"] = {
            query: sorted(
                ((one, draw.random() + help_ * (one in right)) for one in draw.sample(items, 9)),
                key=lambda pair: -pair[1],
            )
            for query, right in labels.items()
        }
    return labels, systems


def tenths(runs: int) -> list[list[float]]:
    """All weights in tenths that add up to 1, the most even first, then ascending."""
    found = [one for one in itertools.product(range(11), repeat=runs) if sum(one) == 10]
    found.sort(key=lambda one: (max(one) - min(one), one))
    return [[part / 10 for part in one] for one in found]


def lists_of(fused: Any) -> dict[str, list[tuple[str, float]]]:
    return {
        row["query_id"]: list(zip(row["items"], row["scores"], strict=True))
        for row in fused.table.to_pylist()
    }


def half_of(labels: Labels) -> dict[str, int]:
    import pyarrow as pa

    keys = random_keys(to_ids(pa.array([*labels], pa.large_binary()), "queries"), 0)
    return {query: int(key % 2) for query, key in zip(labels, keys, strict=True)}


@pytest.mark.parametrize(
    ("seed", "runs", "metric", "options"),
    [
        (0, 2, "map@5", {"method": "combsum"}),
        (1, 3, "ndcg", {"method": "mixed", "norm": "z-score"}),
        (2, 2, "mean_rank", {"method": "wmnz"}),
        (3, 2, "gap", {"method": "rrf", "k": 20}),
    ],
)
def test_the_best_of_all_weights(
    seed: int, runs: int, metric: str, options: dict[str, Any]
) -> None:
    labels, systems = random_sides(seed, runs)
    half = half_of(labels)
    assert {*half.values()} == {0, 1}
    parts = [{q: of for q, of in labels.items() if half[q] == one} for one in (0, 1)]
    values: list[list[float]] = []
    for weights in tenths(runs):
        fused = lists_of(rankmill.fuse(systems, weights=weights, **options))
        values.append(
            [
                rankmill.evaluate(one, {query: fused[query] for query in one}, metric)[metric]
                for one in (labels, *parts)
            ]
        )
    pick = min if metric == "mean_rank" else max
    best = [pick(range(len(values)), key=lambda at: values[at][side]) for side in range(3)]
    total = values[best[2]][1] * len(parts[0]) + values[best[1]][2] * len(parts[1])

    others = {f"other{number}": [("d1", 1.0)] for number in range(3)}
    wider = {name: lists | others for name, lists in systems.items()}
    found = rankmill.fuse(wider, train_labels=labels, optimise=metric, **options)
    told = found.optimised
    assert told is not None
    assert told["value"] == values[best[0]][0]
    assert [*told["weights"].values()] == tenths(runs)[best[0]]
    assert told["settings"] == len(values)
    assert told["held_out"] == pytest.approx(total / len(labels), rel=1e-14)
    assert found.trained_on == len(labels)
    assert found.queries == len(labels) + len(others)
    plain = rankmill.fuse(wider, weights=[*told["weights"].values()], **options)
    assert found.table == plain.table


def test_neither_order_nor_threads_change_a_choice() -> None:
    labels, systems = random_sides(5, 3, 40)
    one = rankmill.fuse(systems, train_labels=labels, optimise="map", tries=30, threads=2)
    turned: Any = {name: dict(reversed(of.items())) for name, of in reversed(systems.items())}
    back = dict(reversed(labels.items()))
    other = rankmill.fuse(turned, train_labels=back, optimise="map", tries=30, threads=1)
    assert one.optimised == other.optimised
    assert one.optimised is not None
    assert one.optimised["settings"] == 30
    assert one.table == other.table


def test_of_equal_values_the_most_even_weights_are_chosen() -> None:
    runs = {"b": {"q": [("x", 2.0), ("y", 1.0)]}, "a": {"q": [("x", 9.0), ("z", 1.0)]}}
    found = rankmill.fuse(runs, method="combsum", train_labels={"q": ["x"]}, optimise="map")
    assert found.optimised is not None
    assert found.optimised["weights"] == {"b": 0.5, "a": 0.5}


def test_what_is_given_stays() -> None:
    labels, systems = random_sides(6, 2)
    both: dict[str, Any] = {"train_labels": labels, "optimise": "map"}
    phi = rankmill.fuse(systems, method="rbc", weights=[1, 2], **both).optimised
    assert phi is not None
    assert (phi["settings"], [*phi["weights"].values()]) == (11, [1, 2])
    exact = rankmill.fuse(systems, method="rbc", weights=[1 / 3, 2], parameter=0.0, **both)
    assert "--weights 0.3333333333333333,2 --parameter 0\n" in f"{exact!r}"
    by_hand = {
        number: rankmill.evaluate(
            labels, rankmill.fuse(systems, method="rbc", weights=[1, 2], parameter=number), "map"
        )["map"]
        for number in (*(n / 10 for n in range(1, 10)), 0.95, 0.98)
    }
    assert phi["value"] == max(by_hand.values()) == by_hand[phi["parameter"]]
    sigma = rankmill.fuse(systems, method="logn-isr", parameter=0.5, **both).optimised
    assert sigma is not None
    assert (sigma["settings"], sigma["parameter"]) == (11, 0.5)
    k = rankmill.fuse(systems, **both).optimised
    assert k is not None
    assert k["settings"] == 110
    assert k["k"] in range(10, 101, 10)


def test_gains_and_queries_without_a_list_count() -> None:
    runs = [{"a": [("x", 2.0), ("y", 1.0)]}, {"a": [("y", 2.0), ("z", 1.0)]}]
    labels = {"a": {"x": 1, "y": 3}, "b": {"x": 1}}
    found = rankmill.fuse(runs, method="combsum", train_labels=labels, optimise="ndcg").optimised
    best = [("y", 1.0), ("x", 0.9)]
    assert found is not None
    assert found["value"] == rankmill.evaluate(labels, {"a": best}, "ndcg")["ndcg"] < 0.51


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"train_labels": {"q0": ["a"]}, "optimise": "map@5,10"}, "expected one metric"),
        ({"train_labels": {"q0": ["a"]}, "optimise": "num_ret"}, "with a better side"),
        ({"train_labels": {"q0": ["a"]}, "optimise": "nope"}, "nope"),
        ({"optimise": "map"}, "give train_labels="),
        ({"train_labels": {"q0": ["a"]}}, "name a metric by optimise="),
        ({"train_labels": {"q0": ["a"]}, "optimise": "map", "method": "posfuse"}, "not trained"),
        ({"train_labels": {"q0": ["a"]}, "optimise": "map", "method": "who"}, "no method 'who'"),
        ({"train_labels": {"q0": ["a"]}, "optimise": "map", "tries": 0}, "tries is 0"),
        (
            {"train_labels": rankmill.Labels("x.parquet", weight="w"), "optimise": "map"},
            "without weights and subtopics",
        ),
        ({"train_labels": {"z": ["a"]}, "optimise": "map"}, "nothing to optimize"),
    ],
)
def test_what_does_not_fit_is_told(options: dict[str, Any], told: str) -> None:
    _, systems = random_sides(7, 2)
    with pytest.raises(rankmill.RankmillError, match=told):
        rankmill.fuse(systems, **options)


def test_many_runs_draw_distinct_settings() -> None:
    labels, systems = random_sides(8, 7, 3)
    found = rankmill.fuse(
        systems, method="combsum", train_labels=labels, optimise="map", tries=20
    ).optimised
    assert found is not None
    assert found["settings"] == 20
    assert math.isclose(sum(found["weights"].values()), 1.0)
    with pytest.raises(UsageError, match="all weights are 0"):
        rankmill.fuse(systems, weights=[0] * 7)


@pytest.mark.filterwarnings("ignore")  # those that ranx causes
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["wsum", "mixed"])
def test_ranx(seed: int, method: str) -> None:
    """Each setting of its grid has its value; the norm leaves no ties among the first five."""
    ranx = pytest.importorskip("ranx", reason="ranx is not installed: pip install '.[peers]'")
    labels, systems = random_sides(seed, 2 + seed % 2)
    qrels = ranx.Qrels({query: dict.fromkeys(of, 1) for query, of in labels.items()})
    runs = [ranx.Run({query: dict(of) for query, of in run.items()}) for run in systems.values()]
    chosen, report = ranx.optimize_fusion(
        qrels, runs, norm="sum", method=method, metric="map@5",
        return_optimization_report=True, show_progress=False,
    )  # fmt: skip
    ours = method.replace("wsum", "combsum")
    best = 0.0
    for config, value in zip(report.configs, report.results, strict=True):
        weights = [float(one) for one in re.findall(r"\d\.\d", config)]
        fused = rankmill.fuse(systems, method=ours, norm="sum", weights=weights)
        found = rankmill.evaluate(labels, fused, "map@5", semantics="ranx")["map@5"]
        assert found == pytest.approx(value, rel=1e-12)
        best = max(best, found)
    told = rankmill.fuse(
        systems, method=ours, norm="sum", train_labels=labels, optimise="map@5"
    ).optimised
    assert told is not None
    assert len(report.configs) <= told["settings"] == math.comb(9 + len(runs), len(runs) - 1)
    if len(runs) == 2:
        assert told["value"] == pytest.approx(best, rel=1e-12)
    assert told["value"] >= best * (1 - 1e-12)
    assert chosen["weights"]
