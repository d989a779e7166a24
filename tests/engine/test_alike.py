"""Metrics that end in :baseline: against the formula, SciPy, and evaluate of two lists."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill.analysis.compare.compare import compare_part
from systems import table

NAMES = ["rbo(p=0.9)@4:baseline", "kendall_tau@4:baseline", "recall@2:baseline", "tau:baseline"]


def drawn(seed: int, text: bool) -> tuple[dict, dict]:
    """Labels, and three systems; each lacks some queries, has others and repeats some items."""
    draw = random.Random(seed)
    name = "item {}".format if text else int
    queries = [f"q{n}" if text else n for n in range(60)]
    labels = {query: [name(draw.randrange(9))] for query in queries[:50]}
    runs = {
        system: {
            query: [name(draw.randrange(9)) for _ in range(draw.randint(0, 7))]
            for query in draw.sample(queries, 50)
        }
        for system in ("one", "other", "third")
    }
    return labels, runs


def expected(one: list, other: list) -> list[float]:
    """What lists of the baseline and of a system come to in each of NAMES."""
    one, other = list(dict.fromkeys(one)), list(dict.fromkeys(other))
    depth = min(4, max(len(one), len(other)))
    shares = [len({*one[:d]} & {*other[:d]}) / d for d in range(1, depth + 1)]
    weights = [0.9 ** (d - 1) for d in range(1, depth + 1)]

    def tau(k: int) -> float:
        both = [item for item in other[:k] if item in one[:k]]
        pairs = [(a, b) for at, a in enumerate(both) for b in both[at + 1 :]]
        return sum(1 if one.index(a) < one.index(b) else -1 for a, b in pairs) / max(1, len(pairs))

    found = len({*one[:2]} & {*other[:2]}) / len(one[:2])
    return [np.dot(weights, shares) / sum(weights), tau(4), found, tau(99)]


@pytest.mark.small
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("base", ["one", "other"])
def test_lists_beside_those_of_the_baseline(text: bool, base: str) -> None:
    labels, runs = drawn(7, text)
    tables = {name: table(one) for name, one in runs.items()}
    found = rankmill.compare(table(labels), tables, ["map@3", *NAMES], baseline=base)
    plain = rankmill.compare(table(labels), tables, ["map@3"], baseline=base)
    assert found.differences == plain.differences
    assert found.systems == plain.systems
    rows = {row["query"]: row for row in found.per_query.to_pylist()}
    for system in {*runs} - {base}:
        there = {q: (runs[base].get(q), runs[system].get(q)) for q in labels}
        both = {q: expected(*lists) for q, lists in there.items() if all(lists)}
        for at, name in enumerate(NAMES):
            values = {q: row[f"{system}:{name}"] for q, row in rows.items()}
            assert {q for q, value in values.items() if value is not None} == {*both}
            for query, of in both.items():
                assert values[query] == pytest.approx(of[at], abs=1e-15)
            mean = np.mean([of[at] for of in both.values()])
            assert found.alike[name][system].value == pytest.approx(mean, abs=1e-15)
            assert found.alike[name][system].queries == len(both)
    assert not any(f"{base}:{name}" in found.per_query.column_names for name in NAMES)
    assert rankmill.Comparison.from_json(found.to_json()) == found
    notes = [note for note in found.notes if ":baseline" in note]
    assert len(notes) == len(NAMES)


def test_the_same_bits_whatever_the_threads_and_row_groups(tmp_path) -> None:
    draw = np.random.default_rng(3)
    items = np.tile(np.arange(20), (20_000, 1))
    lists = [draw.permuted(items, axis=1)[:, :8] for _ in range(2)]
    for name, one in zip("ab", lists, strict=True):
        order = draw.permutation(len(one))
        data = pa.table({"query": order, "items": list(one[order])})
        pq.write_table(data, tmp_path / f"{name}.parquet", row_group_size=3_000)
    labels = pa.table({"query": range(20_000), "items": list(lists[0][:, :1])})
    files = {name: str(tmp_path / f"{name}.parquet") for name in "ab"}
    told = []
    for runs, threads in (
        (files, 1),
        (files, 2),
        ({n: pq.read_table(f) for n, f in files.items()}, 2),
    ):
        found = rankmill.compare(labels, runs, ["map@3", *NAMES], threads=threads)
        told.append((found.alike, found.per_query))
    assert told[0] == told[1] == told[2]
    # evaluate's form of two lists, whose scores are the gains
    wanted = {
        q: dict(zip(one, range(8, 0, -1), strict=True)) for q, one in enumerate(lists[0].tolist())
    }
    two = rankmill.evaluate(wanted, dict(enumerate(lists[1].tolist())), "rbo(p=0.9)@4,tau")
    for name in ("rbo(p=0.9)@4", "tau"):
        assert found.alike[f"{name}:baseline"]["b"].value == two[name]


@pytest.mark.small
def test_kendalls_tau_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    draw = np.random.default_rng(3)
    one, other = (
        dict(enumerate(draw.permuted(np.tile(np.arange(30), (9, 1)), axis=1).tolist()))
        for _ in range(2)
    )
    found = rankmill.compare(
        {q: [0] for q in one}, {"one": one, "other": other}, "map,tau:baseline"
    )
    there = [stats.kendalltau(np.argsort(one[q]), np.argsort(other[q])).statistic for q in one]
    np.testing.assert_allclose(found.per_query["other:tau:baseline"], there, rtol=1e-12)


@pytest.mark.small
def test_queries_have_weights() -> None:
    labels = pa.table({"query": [1, 2, 3], "items": [[1], [1], [1]], "w": [1.0, 3.0, 0.0]})
    runs = {"a": {1: [1, 2], 2: [1], 3: [1]}, "b": {1: [2, 1], 2: [1], 3: [2]}}
    given = rankmill.Labels(labels, weight="w")
    found = rankmill.compare(given, runs, "map,recall@1:baseline").alike
    assert found["recall@1:baseline"]["b"] == (0.75, 2)


@pytest.mark.small
def test_what_cannot_be_asked_is_refused() -> None:
    labels, runs = {1: [1]}, {"a": {1: [1]}, "b": {1: [2]}}
    for metric, semantics, why in [
        ("gap:baseline", "default", "cannot be computed for two lists"),
        ("bpref:baseline", "default", "cannot be computed for two lists"),
        ("map@3:median:baseline", "default", "cannot be computed for two lists"),
        ("rbo:baseline", {"order": "worst"}, "no known worst order"),
        ("recall@1:baseline", {"order": "worst"}, "one order of equal confidences"),
    ]:
        with pytest.raises(rankmill.UsageError, match=why):
            rankmill.compare(labels, runs, ["map@3", metric], semantics=semantics)
    for other in (rankmill.evaluate, compare_part):
        with pytest.raises(rankmill.UsageError, match="lists of two systems"):
            other(labels, runs if other is compare_part else runs["a"], "rbo:baseline")
    results = rankmill.evaluate_runs(labels, runs, "map@3")
    with pytest.raises(rankmill.UsageError, match="give labels and runs"):
        rankmill.compare(results, metrics="rbo:baseline")


def test_lists_that_are_too_large_are_refused() -> None:
    runs = {name: {q: list(range(9)) for q in range(99)} for name in "ab"}
    labels = {q: [1] for q in range(99)}
    asked = "map@3,rbo@2:baseline"
    assert rankmill.compare(labels, runs, asked, memory=99 * 16).alike
    with pytest.raises(rankmill.UsageError, match="smaller cutoff, or more memory"):
        rankmill.compare(labels, runs, asked, memory=99 * 16 - 1)


def test_the_command_line(tmp_path, run_cli) -> None:
    labels, runs = drawn(3, text=True)
    for name, one in {"labels": labels, **runs}.items():
        pq.write_table(table(one), tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in ("labels", *runs)]
    page, per_query = str(tmp_path / "page.html"), str(tmp_path / "q.parquet")
    asked = ["compare", *files, "-m", "map@3,rbo(p=0.9)@4:baseline"]
    told = run_cli(*asked, "--per-query", per_query, "--report", page)
    assert "rbo(p=0.9)@4:baseline, where both have a list: other 0." in told.stdout
    assert "other:rbo(p=0.9)@4:baseline" in pq.read_table(per_query).column_names
    assert "rbo(p=0.9)@4:baseline" in (tmp_path / "page.html").read_text()
    alone = run_cli("compare", *files, "-m", "rbo:baseline")
    assert "map@10 " in alone.stdout  # beside the default metrics
    assert run_cli("evaluate", *files[:2], "-m", "rbo:baseline").exit_code == 2
