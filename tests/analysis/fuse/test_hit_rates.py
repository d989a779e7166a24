"""Trained methods: against the formulas in plain Python, and against ranx."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
import strategies
from rankmill import InputError, UsageError
from rankmill.analysis.fuse import input_runs as reading
from rankmill.analysis.fuse.methods import METHODS

TRAINED = [name for name, row in METHODS.items() if row.rates is not None]
PARAMETERS = {"slidefuse": 2, "probfuse": 3}
BINS = [0, 5, 10, 15, 20, 30, 100, 200, 500, 1000]
GROWING = [0, 5, 15, 35, 75, 155, 315, 635, 1275, 2555, 5115]
RARE = math.log(0.001 / 0.999)

Run = dict[Any, list[tuple[Any, float]]]
Relevant = dict[Any, list[Any]]


# ------------------------------------------------------------------ the oracle


def ranked(run: Run, query: Any) -> list[Any]:
    """The items of a list without repeats."""
    return list(dict.fromkeys(item for item, _ in run.get(query, [])))


def hits_of(run: Run, labels: Relevant) -> list[list[bool]]:
    return [[item in of for item in ranked(run, query)] for query, of in labels.items() if of]


def share(hits: Sequence[bool], start: int, end: int) -> float:
    return sum(hits[start:end]) / (end - start)


def mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def place(rank: int, ends: Sequence[int]) -> int | None:
    return next((k for k, end in enumerate(ends[1:]) if rank < end), None)


def average_precision(hits: Sequence[bool], labels: int) -> float:
    ranks = [rank for rank, hit in enumerate(hits, 1) if hit]
    return sum(at / rank for at, rank in enumerate(ranks, 1)) / labels


def rate(
    method: str, run: Run, labels: Relevant, rank: int, n: int, score: float, parameter: int
) -> float:
    """What the item at a rank, from 0, of a list of n items gets."""
    hits = hits_of(run, labels)
    if method == "mapfuse":
        counts = [len(set(of)) for of in labels.values() if of]
        pairs = zip(hits, counts, strict=True)
        return mean([average_precision(*pair) for pair in pairs]) / (rank + 1)
    if method in ("posfuse", "slidefuse"):
        width = parameter if method == "slidefuse" else 0
        window = range(max(0, rank - width), min(n - 1, rank + width) + 1)
        long = [[one[at] for one in hits if len(one) > at] for at in window]
        return sum(sum(one) / len(one) if one else 0.0 for one in long) / len(window)
    if method == "probfuse":
        k = rank // math.ceil(n / parameter)
        sizes = [math.ceil(len(one) / parameter) for one in hits]
        parts = [one[k * size : (k + 1) * size] for one, size in zip(hits, sizes, strict=True)]
        return mean([sum(part) / len(part) if part else 0.0 for part in parts]) / (k + 1)
    if method == "segfuse":
        at = place(rank, GROWING)
        return (
            0.0
            if at is None
            else mean([share(one, *GROWING[at : at + 2]) for one in hits]) * (score + 1)
        )
    at = place(rank, BINS)
    if at is None:
        return RARE
    rates = mean([share(one, *BINS[at : at + 2]) for one in hits]) or 0.001
    return math.log(rates / ((1 - rates) or 0.001))


def oracle(
    runs: Sequence[Run], labels: Relevant, method: str, weights: Sequence[float] | None = None
) -> dict[Any, dict[Any, float]]:
    fused: dict[Any, dict[Any, float]] = {}
    for query in {query for run in runs for query in run}:
        parts: dict[Any, list[float]] = {}
        everything = {item for run in runs for item in ranked(run, query)}
        for run, weight in zip(runs, weights or [1.0] * len(runs), strict=True):
            items = ranked(run, query)
            first = dict(reversed(run.get(query, [])))
            low, high = min(first.values(), default=0), max(first.values(), default=0)
            for rank, item in enumerate(items):
                score = (first[item] - low) / ((high - low) or 1)
                number = rate(
                    method, run, labels, rank, len(items), score, PARAMETERS.get(method, 0)
                )
                parts.setdefault(item, []).append(weight * number)
            if method == "bayesfuse":
                for item in everything - {*items}:
                    parts.setdefault(item, []).append(weight * RARE)
        fused[query] = {item: sum(of) for item, of in parts.items()}
    return fused


def scores_of(found: Any) -> dict[Any, dict[Any, float]]:
    return {
        row["query_id"]: dict(zip(row["items"], row["scores"], strict=True))
        for row in found.table.to_pylist()
    }


def fused(runs: Any, labels: Any, method: str, **options: Any) -> Any:
    if method in PARAMETERS:
        options["parameter"] = PARAMETERS[method]
    return rankmill.fuse(runs, method=method, train_labels=labels, **options)


IDS = [0, 1, 2, 3, -1, 255, 2**63 - 1]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Run], Relevant]:
    items = st.lists(st.sampled_from(IDS), max_size=9)
    runs = []
    for _ in range(draw(st.integers(2, 4))):
        lists = draw(st.dictionaries(st.integers(0, 5), items, min_size=1))
        runs.append(
            {q: [(item, 1.0 / (1 + at)) for at, item in enumerate(of)] for q, of in lists.items()}
        )
    labels = draw(st.dictionaries(st.integers(0, 6), items, min_size=1))
    runs[0][0] = runs[0].get(0) or [(3, 1.0)]  # so that something can be learned
    return runs, labels | {0: [3, 1]}


def as_table(run: Run) -> pa.Table:
    columns = {
        "query": pa.array(list(run), pa.int64()),
        "items": pa.array([[i for i, _ in of] for of in run.values()], pa.list_(pa.int64())),
        "scores": pa.array([[s for _, s in of] for of in run.values()], pa.list_(pa.float64())),
    }
    return pa.table(columns)


@pytest.mark.small
@settings(max_examples=strategies.examples(40))
@given(case=cases(), method=st.sampled_from(TRAINED), weighted=st.booleans())
def test_is_the_oracle(case: tuple[list[Run], Relevant], method: str, weighted: bool) -> None:
    runs, labels = case
    weights = [2.0, 0.5, 1.0, 3.0][: len(runs)] if weighted else None
    tables = [as_table(run) for run in runs]
    found = fused(tables, labels, method, weights=weights)
    expected = oracle(runs, labels, method, weights)
    ours = scores_of(found)
    assert ours.keys() == expected.keys()
    for query, scores in expected.items():
        assert ours[query] == pytest.approx(scores, rel=1e-12, abs=1e-14)
    # The order of the runs and of rows changes no bit, nor do repeats of labels.
    again = fused(
        [one.take(list(range(len(one)))[::-1]) for one in tables[::-1]],
        {query: of + of[:1] for query, of in reversed(labels.items())},
        method,
        weights=weights and weights[::-1],
        threads=1,
    )
    assert again.table.to_pylist() == found.table.to_pylist()


@pytest.mark.small
@pytest.mark.parametrize("method", TRAINED)
def test_each_method_is_the_oracle(method: str) -> None:
    """Runs that lack queries and items of each other, and training queries."""
    rng = random.Random(5)
    runs: list[Run] = []
    for _ in range(3):
        lists = {q: rng.sample(range(12), rng.randint(0, 12)) for q in rng.sample(range(7), 5)}
        runs.append({q: [(i, 20.0 - at) for at, i in enumerate(of)] for q, of in lists.items()})
    labels: Relevant = {q: rng.sample(range(12), rng.randint(0, 4)) for q in range(5)}
    found = fused(runs, labels, method, weights=[0.5, 1.0, 3.0])
    for query, scores in oracle(runs, labels, method, [0.5, 1.0, 3.0]).items():
        assert scores_of(found)[query] == pytest.approx(scores, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("method", TRAINED)
def test_long_lists_in_many_blocks(method: str, monkeypatch: Any) -> None:
    """Beyond the last bin and segment, and added up over many blocks."""
    rng = random.Random(3)
    runs: list[Run] = []
    for most in (30, 1100):
        run = {}
        for query in rng.sample(range(12), 9):
            items = rng.sample(range(3000), rng.randint(0, most))
            run[query] = [(item, 1e4 - at) for at, item in enumerate(items)]
        runs.append(run)
    labels = {query: rng.sample(range(3000), 400) for query in range(12)}
    whole = fused([as_table(run) for run in runs], labels, method).table
    monkeypatch.setattr(reading, "BLOCK_ROWS", 2)
    found = fused([as_table(run) for run in runs], labels, method, memory=20_000)
    assert found.table.to_pylist() == whole.to_pylist()
    if method in ("bayesfuse", "segfuse"):
        some = {query for query in runs[0] if query in runs[1]} - {*list(runs[0])[1:]}
        runs = [{q: of for q, of in run.items() if q in some or q in labels} for run in runs]
        hits_of_run = {id(run): hits_of(run, labels) for run in runs}
        monkeypatch.setattr(f"{__name__}.hits_of", lambda run, _: hits_of_run[id(run)])
        for query, scores in oracle(runs, labels, method).items():
            assert scores_of(found)[query] == pytest.approx(scores, rel=1e-9, abs=1e-9)


@pytest.mark.filterwarnings("ignore")  # those that ranx causes
def test_ranx() -> None:
    """The same queries on all sides, no ties, no empty list."""
    ranx = pytest.importorskip("ranx", reason="ranx is not installed: pip install '.[peers]'")
    from ranx.meta.fuse import fusion_switch

    theirs_of = {"slidefuse": {"w": 2}, "probfuse": {"n_segments": 3}}
    for turn in range(3 * len(TRAINED)):
        method, rng = TRAINED[turn % len(TRAINED)], random.Random(turn)
        runs: list[Run] = []
        for _ in range(rng.randint(2, 4)):
            run: Run = {}
            for query in range(6):
                items = rng.sample(range(40), rng.randint(1, 35))
                run[f"q{query}"] = [(f"d{i}", 50.0 - at) for at, i in enumerate(items)]
            runs.append(run)
        labels = {f"q{q}": [f"d{i}" for i in rng.sample(range(40), 9)] for q in range(6)}
        objects = [ranx.Run({q: dict(of) for q, of in run.items()}) for run in runs]
        qrels = ranx.Qrels({q: dict.fromkeys(of, 1) for q, of in labels.items()})
        module = __import__(f"ranx.fusion.{method}", fromlist=["x"])
        given = theirs_of.get(method, {})
        asked = {} if method == "slidefuse" else given
        learned = getattr(module, f"{method}_train")(qrels, objects, **asked)
        if method == "segfuse":
            objects = [ranx.normalization.min_max_norm(one) for one in objects]
        rest = given if method == "slidefuse" else {}
        expected = fusion_switch(method)(objects, learned, **rest).to_dict()
        for query, scores in scores_of(fused(runs, labels, method)).items():
            assert scores == pytest.approx(expected[query], rel=1e-9, abs=1e-12), method


# ------------------------------------------------------------------ inputs and errors

GOOD: Run = {"q": [("a", 1.0), ("b", 0.5)]}


def test_gains_of_zero_are_no_labels() -> None:
    rows = {"query": ["q", "q", "r"], "item": ["a", "b", "a"], "gain": [0, 2, 0]}
    ours = fused([GOOD, GOOD], pa.table(rows), "posfuse").table.to_pylist()
    assert ours == [{"query_id": "q", "items": ["b", "a"], "scores": [2.0, 0.0]}]


def test_usage_and_input_errors() -> None:
    for labels, method, kind, wanted in (
        (None, "probfuse", UsageError, ["probfuse is trained", "--train-labels"]),
        ({"q": ["a"]}, "rrf", UsageError, ["rrf is not trained"]),
        ({"q": []}, "posfuse", InputError, ["no query of the training labels"]),
        ({1: [2]}, "posfuse", InputError, ["cannot be compared"]),
        ({"other": ["a"]}, "mapfuse", InputError, ["no run has a list of a query"]),
    ):
        with pytest.raises(kind) as error:
            rankmill.fuse([GOOD, GOOD], method=method, train_labels=labels)
        tells(error.value, wanted)
    with pytest.raises(UsageError, match=r"segments of probfuse is 2.5; expected an integer"):
        rankmill.fuse([GOOD, GOOD], method="probfuse", train_labels=GOOD, parameter=2.5)


def test_streams_and_the_command(run_cli: Any, tmp_path: Path) -> None:
    labels = {1: [3], 2: [1]}
    runs = [{1: [(3, 0.5), (1, 0.2)], 2: [(3, 1.0)]}, {2: [(1, 0.9)], 1: [(1, 0.5)]}]
    expected = fused(runs, labels, "bayesfuse")
    read_once = [as_table(run).to_reader() for run in runs]
    assert fused(read_once, labels, "bayesfuse").table.equals(expected.table)
    for i, run in enumerate(runs):
        pq.write_table(as_table(run), tmp_path / f"{i}.parquet")
    pq.write_table(pa.table({"query": [1, 2], "item": [3, 1]}), tmp_path / "labels.parquet")
    output = tmp_path / "fused.parquet"
    asked = ("--method", "bayesfuse", "--train-labels", tmp_path / "labels.parquet", "-o", output)
    outcome = run_cli("fuse", tmp_path / "0.parquet", tmp_path / "1.parquet", *asked)
    assert outcome.exit_code == 0, outcome.stderr
    assert pq.read_table(output).to_pylist() == expected.table.to_pylist()
