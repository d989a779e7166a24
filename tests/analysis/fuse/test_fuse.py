"""fuse() and `rankmill fuse`: against the formulas in plain Python, and against ranx."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import os
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import rankmill
import strategies
from flat import flat
from rankmill import InputError, UsageError
from rankmill.analysis.fuse import input_runs as reading
from rankmill.analysis.fuse.fusion_view import Fused
from rankmill.analysis.fuse.methods import METHODS, NORMS

Listed = list[tuple[Any, float]]
Lists = dict[Any, Listed]

INTEGERS = [0, 1, -1, 2, 255, 256, 2**63 - 1, -(2**63)]
STRINGS = ["a", "ab", "b", "B", "é", "a\0", "", "the same first bytes 1", "the same first bytes 2"]
SCORES = [-1.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1e-300, 3e200]


# ------------------------------------------------------------------ the oracle


def numbers_of(
    listed: Listed, norm: str, k: int, parameter: float, candidates: Sequence[Any]
) -> dict[Any, float]:
    """What each item gets from a list, before its weight; repeats are left out."""
    first: dict[Any, float] = {}
    for item, score in listed:
        first.setdefault(item, score)
    items, scores = list(first), list(first.values())
    n, m, ranks = len(items), len(candidates), range(1, len(items) + 1)
    left: float | None = None  # what a candidate gets that is not in the list
    if norm == "rrf":
        found = [1 / (k + rank) for rank in ranks]
    elif norm == "rank":
        found = [1 - (rank - 1) / n for rank in ranks]
    elif norm == "borda":
        found, left = [1 - (rank - 1) / m for rank in ranks], 0.5 - (n - 1) / (2 * m) if m else 0.0
    elif norm == "bordafuse":
        found, left = [m - rank + 1.0 for rank in ranks], (m - n + 1) / 2
    elif norm == "isr":
        found = [1 / rank**2 for rank in ranks]
    elif norm == "rbc":
        found = [(1 - parameter) * parameter ** (rank - 1) for rank in ranks]
    elif norm == "none":
        found = scores
    elif norm == "max":
        found = [one / max(scores) for one in scores]
    elif len(set(scores)) < 2:
        found = [0.0] * n
    elif norm == "min-max":
        found = [(one - min(scores)) / (max(scores) - min(scores)) for one in scores]
    elif norm == "min-max-inverted":
        found = [(max(scores) - one) / (max(scores) - min(scores)) for one in scores]
    elif norm == "sum":
        total = added(one - min(scores) for one in scores)
        found = [(one - min(scores)) / total for one in scores]
    else:
        low, width = min(scores), max(scores) - min(scores)
        scaled = [(one - low) / width for one in scores]
        mean = math.fsum(scaled) / n
        found = [(one - mean) / statistics.pstdev(scaled) for one in scaled]
    numbers = dict(zip(items, found, strict=True))
    if left is not None:
        numbers |= {item: left for item in candidates if item not in numbers}
    return numbers


def added(numbers: Iterable[float]) -> float:
    """The sum, rounded after each number, as `sum` does not from Python 3.12 on."""
    return functools.reduce(operator.add, numbers)


COMBINED: dict[str, Any] = {
    **dict.fromkeys(("rrf", "combsum", "bordafuse", "rbc"), lambda parts, _: added(parts)),
    **dict.fromkeys(("combmnz", "isr"), lambda parts, _: added(parts) * len(parts)),
    "combanz": lambda parts, _: added(parts) / len(parts),
    "combmin": lambda parts, _: min(parts),
    "combmax": lambda parts, _: max(parts),
    "combmed": lambda parts, _: statistics.median(parts),
    "combgmnz": lambda parts, gamma: added(parts) * len(parts) ** gamma,
    "mixed": lambda parts, _: added(parts) * math.sqrt(len(parts)),
    "log-isr": lambda parts, _: added(parts) * math.log(len(parts)),
    "logn-isr": lambda parts, sigma: added(parts) * math.log(len(parts) + sigma),
}
PARAMETERS = {"combgmnz": 0.7, "rbc": 0.8, "logn-isr": 0.01}
# The methods by rank -> what an item gets from a list.
BY_RANK = {one: one for one in ("rrf", "bordafuse", "rbc", "isr")}
BY_RANK |= {"log-isr": "isr", "logn-isr": "isr", "condorcet": "condorcet"}


def by_votes(lists: Sequence[Listed], weights: Sequence[float], ids: list[Any]) -> list[Any]:
    """Ids, ascending, sorted by majority: chunks of 16 by insertion, which are merged then."""
    places = [{item: at for at, (item, _) in reversed([*enumerate(one)])} for one in lists]

    def ahead(a: Any, b: Any) -> bool:
        votes = [0.0, 0.0]
        for weight, place in sorted(zip(weights, places, strict=True), key=lambda one: one[0]):
            at = place.get(a, math.inf), place.get(b, math.inf)
            votes[0] += weight * (at[0] < at[1])
            votes[1] += weight * (at[1] < at[0])
        return votes[0] > votes[1] or (votes[0] == votes[1] and as_bytes(a) < as_bytes(b))

    parts = []
    for start in range(0, len(ids), 16):
        part: list[Any] = []
        for item in ids[start : start + 16]:
            at = len(part)
            while at and ahead(item, part[at - 1]):
                at -= 1
            part.insert(at, item)
        parts.append(part)
    while len(parts) > 1:
        merged = []
        for one, other in itertools.zip_longest(parts[::2], parts[1::2], fillvalue=[]):
            found, rest = [], [list(one), list(other)]
            while rest[0] and rest[1]:
                found.append(rest[ahead(rest[1][0], rest[0][0])].pop(0))
            merged.append(found + rest[0] + rest[1])
        parts = merged
    return parts[0] if parts else []


def as_bytes(item: Any) -> Any:
    return item.encode() if isinstance(item, str) else item


def oracle(
    runs: Sequence[Mapping[Any, Listed]],
    method: str,
    norm: str | None = None,
    weights: Sequence[float] | None = None,
    k: int = 60,
    top: int | None = None,
    parameter: float = 0.0,
) -> Lists:
    fused = {}
    norm = BY_RANK.get(method) or norm or "min-max"
    weights = weights or [1.0] * len(runs)
    for query in sorted({query for run in runs for query in run}, key=as_bytes):
        lists = [run.get(query, []) for run in runs]
        ids = sorted({item for listed in lists for item, _ in listed}, key=as_bytes)
        if method == "condorcet":
            voted = by_votes(lists, weights, ids)
            fused[query] = [(one, float(len(ids) - at)) for at, one in enumerate(voted)][:top]
            continue
        parts: dict[Any, list[float]] = {item: [] for item in ids}
        masses: dict[Any, list[float]] = {item: [] for item in ids}
        for listed, weight in zip(lists, weights, strict=True):
            for item, number in numbers_of(listed, norm, k, parameter, ids).items():
                parts[item].append(number if method == "wmnz" else weight * number)
                masses[item].append(weight)
        if method == "wmnz":
            scores = {
                item: added(sorted(of)) * added(sorted(masses[item])) for item, of in parts.items()
            }
        else:
            combined = COMBINED[method]
            scores = {item: combined(sorted(of), parameter) for item, of in parts.items()}
        order = sorted(scores, key=lambda item: (-scores[item], as_bytes(item)))
        fused[query] = [(item, scores[item]) for item in order[:top]]
    return fused


def lists_of(found: Fused | pa.Table) -> Lists:
    table = found.table if isinstance(found, Fused) else found
    return {
        row["query_id"]: list(zip(row["items"], row["scores"], strict=True))
        for row in table.to_pylist()
    }


def check(found: Lists, expected: Lists, exact: bool) -> None:
    assert list(found) == list(expected)
    if exact:
        assert found == expected
        return
    for query, listed in expected.items():
        ours = found[query]
        assert dict(ours) == pytest.approx(dict(listed), rel=1e-9, abs=1e-9)
        assert ours == sorted(ours, key=lambda pair: (-pair[1], as_bytes(pair[0])))


# ------------------------------------------------------------------ shapes of input


def as_wide(run: Lists, seed: int) -> pa.Table:
    rows = list(run.items())
    random.Random(seed).shuffle(rows)
    item = pa.string() if rows and isinstance(rows[0][0], str) else pa.int64()
    return pa.table(
        {
            "user": pa.array([query for query, _ in rows], item),
            "items": pa.array([[i for i, _ in listed] for _, listed in rows], pa.list_(item)),
            "scores": pa.array(
                [[s for _, s in listed] for _, listed in rows], pa.list_(pa.float64())
            ),
        }
    )


def as_long(run: Lists, seed: int) -> pa.Table:
    """Scattered rows; the rank tells the order of each list. An empty list has no row."""
    rows = [
        (query, item, score, rank)
        for query, listed in run.items()
        for rank, (item, score) in enumerate(listed)
    ]
    random.Random(seed).shuffle(rows)
    columns = zip(*rows, strict=True) if rows else ([], [], [], [])
    text = any(isinstance(query, str) for query in run)
    kinds = [pa.string() if text else pa.int64()] * 2 + [pa.float64(), pa.int64()]
    names = ["user", "item", "score", "rank"]
    arrays = [pa.array(one, kind) for one, kind in zip(columns, kinds, strict=True)]
    return pa.table(dict(zip(names, arrays, strict=True)))


@st.composite
def all_runs(draw: st.DrawFn) -> list[Lists]:
    """Two to four runs of lists in any order of scores, with repeats and empty lists."""
    ids = draw(st.sampled_from([INTEGERS, STRINGS]))
    pairs = st.tuples(st.sampled_from(ids), st.sampled_from(SCORES))
    lists = st.dictionaries(
        st.sampled_from(ids), st.lists(pairs, max_size=9), min_size=1, max_size=5
    )
    return draw(st.lists(lists, min_size=2, max_size=4))


# ------------------------------------------------------------------ properties


@pytest.mark.small
@settings(max_examples=strategies.examples(60))
@given(
    runs=all_runs(),
    method=st.sampled_from([name for name, row in METHODS.items() if row.rates is None]),
    norm=st.sampled_from([None, *NORMS]),
    weighted=st.booleans(),
    k=st.sampled_from([1, 60]),
    top=st.sampled_from([None, 1, 3]),
    memory=st.sampled_from([300, 1 << 30]),
    shapes=st.lists(st.sampled_from(["dict", "wide", "sorted", "long"]), min_size=4, max_size=4),
    seed=st.integers(0, 5),
)
def test_is_the_oracle(
    runs: list[Lists],
    method: str,
    norm: str | None,
    weighted: bool,
    k: int,
    top: int | None,
    memory: int,
    shapes: list[str],
    seed: int,
) -> None:
    options: dict[str, Any] = {"method": method, "top": top}
    if method in PARAMETERS:
        options["parameter"] = PARAMETERS[method]
    if method == "rrf":
        options["k"] = k
    elif norm is not None and method not in BY_RANK:
        options["norm"] = norm
    if norm == "max":
        runs = [{q: [(i, abs(s) + 0.5) for i, s in of] for q, of in run.items()} for run in runs]
    weights = [2.0, 0.3, 1.0, 7.0][: len(runs)] if weighted else None
    inputs = []
    for i, (run, shape) in enumerate(zip(runs, shapes, strict=False)):
        if shape == "long" and any(run.values()):
            runs[i] = run = {query: listed for query, listed in run.items() if listed}
            inputs.append(as_long(run, seed))
        elif shape == "dict":
            inputs.append(run if any(run.values()) else as_wide(run, seed))
        else:
            inputs.append(as_wide(run, seed))
            if shape == "sorted":
                inputs[-1] = inputs[-1].sort_by("user")
    found = lists_of(flat(rankmill.fuse, inputs, weights=weights, memory=memory, **options))
    exact = options.get("norm") not in ("z-score", "sum") and method not in ("rbc", "combgmnz")
    check(found, oracle(runs, weights=weights, **options), exact)
    # Neither the order of the runs nor the number of threads changes a bit.
    again = flat(
        rankmill.fuse, inputs[::-1], weights=weights and weights[::-1], threads=1, **options
    )
    assert lists_of(again) == found


def random_runs(seed: int, most: int = 12) -> list[Lists]:
    """Four runs that lack queries and items of each other."""
    rng = random.Random(seed)
    runs = []
    for _ in range(4):
        sizes = {query: rng.randint(0, most) for query in range(8) if rng.random() < 0.8} | {9: 3}
        lists = {query: rng.sample(range(14), size) for query, size in sizes.items()}
        runs.append({q: [(i, rng.uniform(0.5, 9)) for i in of] for q, of in lists.items()})
    return runs


@pytest.mark.small
@pytest.mark.parametrize("method", [name for name, row in METHODS.items() if row.rates is None])
def test_each_method_and_norm_is_the_oracle(method: str) -> None:
    options = {"parameter": PARAMETERS[method]} if method in PARAMETERS else {}
    for seed, norm in enumerate([None] if method in BY_RANK else NORMS):
        runs, weights = random_runs(seed), [0.3, 0.7, 0.1, 0.2]
        given = {"method": method, "norm": norm, **options}
        found = lists_of(rankmill.fuse(runs, weights=weights, **given))
        check(found, oracle(runs, weights=weights, **given), exact=False)
        orders = list(itertools.permutations(range(4)))
        for order in orders[:: max(1, 24 // strategies.examples(24))]:
            again = [runs[at] for at in order], [weights[at] for at in order]
            assert lists_of(rankmill.fuse(again[0], weights=again[1], **given)) == found


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_long_lists_in_many_blocks(text: bool, ordered: bool, monkeypatch: Any) -> None:
    """Lists that are merged after they are sorted in chunks; runs lack queries of each other."""
    monkeypatch.setattr(reading, "BLOCK_ROWS", 7)
    generator = np.random.default_rng(0)
    runs = []
    for _ in range(3):
        run: Lists = {}
        for query in generator.choice(60, 45, replace=False).tolist():
            items = generator.choice(400, generator.integers(0, 200), replace=False).tolist()
            scores = sorted(generator.integers(0, 30, len(items)).tolist(), reverse=True)
            pairs = zip(items, map(float, scores), strict=True)
            run[query] = [(f"d{i}" if text else i, score) for i, score in pairs]
        runs.append({f"q{query}" if text else query: run[query] for query in run})
    inputs = [as_wide(run, 1) for run in runs]
    if ordered:
        inputs = [one.sort_by("user") for one in inputs]
    for options in (
        {"method": "rrf"},
        {"method": "combmnz", "norm": "min-max"},
        {"method": "condorcet"},
        {"method": "bordafuse"},
    ):
        expected = oracle(runs, **options)
        for memory in (10_000, 1 << 30):
            found = flat(rankmill.fuse, inputs, memory=memory, **options)
            check(lists_of(found), expected, exact=True)


def test_mixed_integers_and_text_of_integers(tmp_path: Path) -> None:
    """Ids of text are read as integers where another run has integers; widths are joined."""
    path = tmp_path / "a.run"
    path.write_text("1 Q0 7 1 0.5 x\n2 Q0 8 1 0.5 x\n")
    narrow = pa.table(
        {"query": pa.array([1], pa.int8()), "items": pa.array([[7]], pa.list_(pa.uint8()))}
    )
    fused = rankmill.fuse([path, narrow]).table
    assert fused.schema.field("query_id").type == pa.int64()
    assert lists_of(fused) == {1: [(7, 2 / 61)], 2: [(8, 1 / 61)]}


# ------------------------------------------------------------------ known answers, and ranx


def test_paper_example_of_combmnz() -> None:
    """An item in both lists beats a better one that is in a single list."""
    one = {"q": [("a", 10.0), ("b", 6.0), ("c", 0.0)]}
    other = {"q": [("b", 3.0), ("d", 2.0), ("e", 1.0)]}
    found = rankmill.fuse([one, other], method="combmnz")
    assert lists_of(found)["q"] == [("b", 3.2), ("a", 1.0), ("d", 0.5), ("c", 0.0), ("e", 0.0)]


RANX = {
    **{("rrf", None): ("rrf", None), ("combmin", "none"): ("min", None)},
    **{("combsum", norm): ("sum", norm) for norm in NORMS},
    **{("combmnz", norm): ("mnz", norm) for norm in NORMS},
    **{("combanz", norm): ("anz", norm) for norm in NORMS},
    **{("combmax", norm): ("max", norm) for norm in NORMS},
    **{("combmed", norm): ("med", norm) for norm in NORMS},
    **{("combgmnz", norm): ("gmnz", norm) for norm in NORMS},
    **{("mixed", norm): ("mixed", norm) for norm in NORMS},
    **{("wmnz", norm): ("wmnz", norm) for norm in NORMS},
    **{(one, None): (one.replace("-", "_"), None) for one in BY_RANK if one != "rrf"},
}
THEIR_NAMES = {"gmnz": "gamma", "rbc": "phi", "logn_isr": "sigma"}
WEIGHTED = {"bordafuse": "w_bordafuse", "condorcet": "w_condorcet", "sum": "wsum"}


@pytest.mark.filterwarnings("ignore")  # those that ranx causes
def test_ranx() -> None:
    """On random dumps: no ties within a list, the same queries on all sides, no empty list."""
    ranx = pytest.importorskip("ranx", reason="ranx is not installed: pip install '.[peers]'")
    generator = np.random.default_rng(7)
    combinations = itertools.cycle(RANX.items())
    for turn in range(3 * len(RANX)):
        (method, norm), (theirs, their_norm) = next(combinations)
        runs = []
        # Lists of other items that vote in circles have an order of ranx that no rule gives.
        whole = method == "condorcet"
        for _ in range(3 if whole else generator.integers(2, 5)):
            run = {}
            for query in range(4):
                size = 5 if whole else generator.integers(1, 15)
                items = generator.choice(5 if whole else 30, size, replace=False).tolist()
                scores = sorted(generator.uniform(0.1, 9, len(items)).tolist(), reverse=True)
                run[f"q{query}"] = [(f"d{i}", s) for i, s in zip(items, scores, strict=True)]
            runs.append(run)
        weights = generator.uniform(0.2, 3, len(runs)).tolist() if turn % 2 else None
        if theirs in ("mixed", "wmnz"):
            weights = weights or [1.0] * len(runs)
        elif theirs not in WEIGHTED:
            weights = None
        params: dict[str, Any] = {} if weights is None else {"weights": weights}
        if theirs in THEIR_NAMES:
            params = {THEIR_NAMES[theirs]: PARAMETERS[method]}
        called = theirs if weights is None else WEIGHTED.get(theirs, theirs)
        asked = None if their_norm in (None, "none") else their_norm.replace("z-score", "zmuv")
        objects = [ranx.Run({query: dict(one) for query, one in run.items()}) for run in runs]
        expected = ranx.fuse(objects, norm=asked, method=called, params=params or None).to_dict()
        options = {"parameter": PARAMETERS[method]} if method in PARAMETERS else {}
        found = lists_of(rankmill.fuse(runs, method=method, norm=norm, weights=weights, **options))
        assert found.keys() == expected.keys()
        for query, listed in found.items():
            if whole and circular([run[query] for run in runs], weights or [1.0] * 3):
                continue
            assert dict(listed) == pytest.approx(expected[query], rel=1e-9, abs=1e-12), called


def circular(lists: Sequence[Listed], weights: Sequence[float]) -> bool:
    """Whether majorities go in a circle."""
    ids = sorted({item for listed in lists for item, _ in listed})
    voted = {tuple(by_votes(lists, weights, list(one))) for one in itertools.permutations(ids)}
    return len(voted) > 1


# ------------------------------------------------------------------ files


def test_files_of_both_kinds_read_back(tmp_path: Path) -> None:
    runs = [{"q2": [("b", 2.0), ("a", 1.0)], "q1": [("é", 5.0)]}, {"q1": [("a", 1.0)]}]
    table = rankmill.fuse(runs)
    told = rankmill.fuse(runs, tmp_path / "fused.parquet")
    assert pq.read_table(tmp_path / "fused.parquet").to_pylist() == table.table.to_pylist()
    assert (told.queries, told.items, told.queries_in_all) == (2, 4, 1)
    assert (table.queries, table.items, table.queries_in_all) == (2, 4, 1)
    assert [run["queries"] for run in told.runs.values()] == [2, 1]
    rankmill.fuse(runs, tmp_path / "fused.run")
    lines = (tmp_path / "fused.run").read_text().splitlines()
    assert lines[0] == f"q1 Q0 a 1 {1 / 61} rankmill"
    assert [line.split()[:4] for line in lines[2:]] == [
        ["q2", "Q0", "b", "1"],
        ["q2", "Q0", "a", "2"],
    ]
    labels = {"q1": ["a"], "q2": ["b"]}
    values = [
        rankmill.evaluate(labels, one, ["map", "gap"]).metrics
        for one in (table, tmp_path / "fused.parquet", tmp_path / "fused.run")
    ]
    assert values[0] == values[1] == values[2]


def test_nothing_is_written_on_an_error(tmp_path: Path) -> None:
    runs = [{"q1": [("a b", 2.0)]}, {"q1": [("c", 1.0)]}]
    with pytest.raises(InputError) as error:
        rankmill.fuse(runs, tmp_path / "fused.run")
    tells(error.value, ["'a b'", "white space", ".parquet"])
    assert os.listdir(tmp_path) == []


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    reader = (
        as_wide({2: [(1, 0.5)], 1: [(3, 0.5)]}, 0).sort_by([("user", "descending")]).to_reader()
    )
    assert list(lists_of(rankmill.fuse([reader, {1: [3]}]))) == [1, 2]


# ------------------------------------------------------------------ errors


GOOD: dict[str, Any] = {"q": [("a", 1.0), ("b", 0.5)]}


@pytest.mark.parametrize(
    ("runs", "options", "wanted"),
    [
        ([GOOD], {}, ["1 run", "two or more"]),
        ([GOOD] * 2, {"method": "borda"}, ["'borda'", "rrf, combsum"]),
        ([GOOD] * 2, {"method": "combsum", "norm": "l2"}, ["'l2'", "min-max"]),
        ([GOOD] * 2, {"norm": "rank"}, ["rrf", "leave out the norm"]),
        ([GOOD] * 2, {"method": "combsum", "k": 3}, ["k is a constant of rrf"]),
        ([GOOD] * 2, {"k": 0}, ["k is 0"]),
        ([GOOD] * 2, {"parameter": 1}, ["rrf has no parameter"]),
        ([GOOD] * 2, {"method": "rbc"}, ["phi", "--parameter", "from 0 to 1"]),
        ([GOOD] * 2, {"method": "rbc", "parameter": 1.5}, ["phi of rbc is 1.5", "from 0 to 1"]),
        ([GOOD] * 2, {"top": 0}, ["top is 0"]),
        ([GOOD] * 2, {"weights": [1]}, ["1 weights for 2 runs"]),
        ([GOOD] * 2, {"weights": [1, math.nan]}, ["a weight is nan", "0 or more"]),
        ([GOOD] * 2, {"weights": [1, -1]}, ["a weight is -1"]),
        ([GOOD] * 2, {"weights": [0, 0.0]}, ["all weights are 0"]),
        ([GOOD] * 2, {"weights": [1, True]}, ["a weight is True"]),
        ([GOOD] * 2, {"path": "fused.csv"}, ["fused.csv", ".parquet, .run, .trec"]),
    ],
)
def test_usage_errors(runs: Any, options: dict[str, Any], wanted: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        flat(rankmill.fuse, runs, **options)
    tells(error.value, wanted)


@pytest.mark.parametrize(
    ("run", "options", "wanted"),
    [
        ({"q": ["a"]}, {"method": "combsum"}, ["score", "fusing by confidences"]),
        ({1: ["a"]}, {}, ["query ids cannot be compared"]),
        ([["a"]], {}, ["run 1", "run 2", "query ids"]),
        ({"q": [("a", math.inf), ("b", 1.0)]}, {"method": "combsum"}, ["query 'q'", "infinite"]),
        ({"q": [("a", -1.0)]}, {"method": "combsum", "norm": "max"}, ["query 'q'", "positive"]),
        ({"q": [("a", math.inf)]}, {"method": "combmax", "norm": "none"}, ["query 'q'", "rrf"]),
        ({"q": [("a", 1e308), ("b", -1e308)]}, {"method": "combsum", "norm": "z-score"}, ["'q'"]),
        (
            {"q": [("a", 5e-324), ("b", 0.0), ("c", 0.0)]},
            {"method": "combsum", "norm": "z-score"},
            ["'q'", "not a finite number"],
        ),
        (pa.table({"q": ["q", "q"], "items": [["a"], ["b"]]}), {"query": "q"}, ["two rows"]),
    ],
)
def test_input_errors(run: Any, options: dict[str, Any], wanted: list[str]) -> None:
    other = GOOD if "query" not in options else run
    with pytest.raises(InputError) as error:
        flat(rankmill.fuse, [other, run], **options)
    tells(error.value, wanted)


@pytest.mark.small
@pytest.mark.parametrize("method", [name for name in METHODS if name in COMBINED])
def test_a_query_whose_lists_are_all_empty(method: str) -> None:
    options = {"parameter": PARAMETERS[method]} if method in PARAMETERS else {}
    for norm in [None] if method in BY_RANK else NORMS:
        run = {"empty": [], "q": [("a", 1.0)]}
        found = lists_of(rankmill.fuse([run, run], method=method, norm=norm, **options))
        assert found["empty"] == []
        assert [item for item, _ in found["q"]] == ["a"]


def test_lists_without_ids() -> None:
    assert lists_of(rankmill.fuse([[["a"], ["b"]], [["a"], []]])) == {
        0: [("a", 2 / 61)],
        1: [("b", 1 / 61)],
    }
    with pytest.raises(InputError) as error:
        rankmill.fuse([[["a"], ["b"]], [["a"]]])
    tells(error.value, ["2 lists", "1"])


# ------------------------------------------------------------------ the command


def test_command(run_cli: Any, tmp_path: Path) -> None:
    for name, run in (("a", {"q1": [("x", 2.0), ("y", 1.0)]}), ("b", {"q1": [("y", 2.0)]})):
        pq.write_table(as_long(run, 0), tmp_path / f"{name}.parquet")
    paths = tmp_path / "a.parquet", tmp_path / "b.parquet"
    output = tmp_path / "fused.run"
    outcome = run_cli("fuse", *paths, "-o", output, "--weights", "1,3", "--top", 1)
    assert outcome.exit_code == 0, outcome.stderr
    tells(outcome.stdout, ["1 query, 1 item: rrf", "in all runs  1 query"])
    assert output.read_text().split()[2] == "y"
    for wrong, wanted in (
        (["--weights", "1,x"], "'1,x'"),
        (["--norm", "rank"], "rrf"),
        (["--method", "x"], "combsum"),
    ):
        outcome = run_cli("fuse", *paths, "-o", output, *wrong)
        assert outcome.exit_code == 2
        tells(outcome.stderr, [wanted])
    assert run_cli("fuse", *paths, "-o", paths[0]).exit_code == 2


def test_options_beyond_what_arrays_hold() -> None:
    runs = {name: {"q": [("a", 2.0), (name, 1.0)]} for name in ("b", "c")}
    with pytest.raises(UsageError, match=f"k is {2**63}; expected at most {2**52}"):
        rankmill.fuse(runs, k=2**63)
    assert rankmill.fuse(runs, top=2**63) == rankmill.fuse(runs)
    with pytest.raises(
        UsageError, match="weights is 5; expected a list with a number for each run"
    ):
        rankmill.fuse(runs, weights=5)  # type: ignore[arg-type]


@pytest.mark.small
@pytest.mark.parametrize(
    ("typed", "name"), [("ISR", "isr"), ("CombSUM", "combsum"), ("log_ISR", "log-isr")]
)
def test_names_of_methods_in_any_case(typed: str, name: str, run: Any, tmp_path: Path) -> None:
    one = {"q": [("a", 0.9), ("b", 0.5)]}
    assert (
        rankmill.fuse([one, one], method=typed).table
        == rankmill.fuse([one, one], method=name).table
    )
    for bad, told in (("Borda", "type bordafuse;"), ("SUM", "type combsum;")):
        with pytest.raises(UsageError, match=told):
            rankmill.fuse([one, one], method=bad)
    with pytest.raises(UsageError, match=r"there is no norm 'ZMUV': type z-score"):
        rankmill.fuse([one, one], method="CombSum", norm="ZMUV")
    files = [tmp_path / f"{name}.parquet" for name in "ab"]
    for file in files:
        pq.write_table(pa.table({"query": ["q"], "items": [["a"]], "scores": [[1.0]]}), file)
    asked = typed.replace("_", "-")
    code, _, err = run("fuse", *map(str, files), "-o", str(tmp_path / "f.run"), "--method", asked)
    assert code == 0, err
