"""Metrics of somebody's own: the same bits as the built-in ones, everywhere, and clear errors."""

from __future__ import annotations

import functools
import importlib.metadata
import math
import os
import pickle
import random
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankmill
from rankmill import metric
from rankmill.errors import InputError, UsageError
from rankmill.metrics import packages, registry
from rankmill.metrics.own import parts_of
from rankmill.parts import State, evaluate_part
from strategies import Case, cases, examples, wide_labels, wide_predictions

pytestmark = pytest.mark.small


def precisions(ranks: Any, labels: int, k: int) -> float:
    """average precision"""
    total = 0.0
    for found in range(len(ranks)):
        total += (found + 1) / ranks[found]
    return total / min(k, labels)


def recall_at(labels: int, ranks: Any, k: int) -> float:
    return len(ranks) / labels


def recall(labels: int, ranks: Any) -> float:
    return len(ranks) / labels


def ndcg(ranks: Any, gains: Any, label_gains: Any, discounts: Any, k: int) -> float:
    total = 0.0
    for hit in range(len(ranks)):
        total += gains[hit] / discounts[ranks[hit]]
    ideal = 0.0
    for rank in range(1, min(k, len(label_gains)) + 1):
        ideal += label_gains[rank - 1] / discounts[rank]
    return total / ideal


def first(ranks: Any, predictions: int) -> float:
    return ranks[0] if len(ranks) else predictions + 1


def rbp_of_block(hits: Any, k: int, p: float = 0.8, out: Any = None) -> None:
    for q in range(len(out)):
        power, rank, total = 1.0, 1, 0.0
        for h in range(hits.offsets[q], hits.offsets[q + 1]):
            while rank < hits.ranks[h]:
                power *= p
                rank += 1
            total += (1 - p) * power
        out[q] = total


# Own name -> function, and what it equals.
PAIRS: dict[str, tuple[Callable[..., Any], str]] = {
    "own_map": (precisions, "map"),
    "own_recall": (recall, "recall"),
    "own_ndcg": (ndcg, "ndcg"),
    "own_rbp": (rbp_of_block, "rbp"),
}
POSITIVE = (0, math.inf)


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Forget what a test defines: others go through all metrics."""
    yield
    for spec in registry.own_metrics():
        for table in (registry.REGISTRY, registry.NAMES, registry._BY_NAME):
            table.pop(spec.name.lower(), None)
    packages._loaded.clear()


@pytest.fixture(scope="module")
def pairs() -> dict[str, Any]:
    """The rows of own metrics, compiled and plain, made once: each is compiled but once."""
    for name, (function, _) in PAIRS.items():
        metric(f"{name}[@k]", range=POSITIVE, better="higher")(function)
        metric(f"{name}_plain[@k]", range=POSITIVE, better="higher", compile=False)(function)
    return {name: registry.REGISTRY[name] for name in [*PAIRS, *(f"{one}_plain" for one in PAIRS)]}


@pytest.fixture
def oracles(pairs: dict[str, Any]) -> None:
    for spec in pairs.values():
        registry.register(spec)


SEMANTICS = st.fixed_dictionaries(
    {},
    optional={
        "repeated_predictions": st.sampled_from(["once", "drop", "each"]),
        "repeated_labels": st.sampled_from(["set", "count"]),
        "order": st.sampled_from(["given", "item_descending", "worst", "best"]),
        "unpredicted": st.sampled_from(["zero", "skip"]),
        "unlabelled": st.sampled_from(["zero", "skip", "one"]),
        "no_relevant": st.sampled_from(["zero", "skip", "one", "scored"]),
    },
)


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(cases(), SEMANTICS, st.integers(1, 5), st.sampled_from(["", "(rel=2)"]))
def test_own_versions_have_the_bits_of_the_built_in_ones(
    oracles: None, case: Case, semantics: dict[str, str], k: int, rel: str
) -> None:
    labels, predictions = wide_labels(case), wide_predictions(case)
    semantics = {"nan_confidence": "last"} | semantics
    pairs = {own: name for own, (_, name) in PAIRS.items() if not rel or name != "ndcg"}
    theirs = [f"{name}{rel}{at}" for name in pairs.values() for at in ("", f"@{k}")]
    for end in ("", "_plain"):
        ours = [f"{name}{end}{rel}{at}" for name in pairs for at in ("", f"@{k}")]
        try:
            result = rankmill.evaluate(
                labels, predictions, [*ours, *theirs], semantics=semantics, threads=2
            )
        except InputError as error:  # of the case, whatever is asked for
            with pytest.raises(InputError, match=re.escape(str(error)[:20])):
                rankmill.evaluate(labels, predictions, theirs, semantics=semantics)
            return
        table = result.per_query
        for one, other in zip(ours, theirs, strict=True):
            assert result.metrics[one] == result.metrics[other]
            assert table[one].to_pylist() == table[other].to_pylist()


DRAW = random.Random(2)
LABELS = {query: DRAW.sample(range(40), 4) for query in range(200)}
OLD = {query: DRAW.sample(range(40), 10) for query in range(200)}
NEW = {
    query: [*labels[: 1 + query % 3], *DRAW.sample(range(40, 80), 8)]
    for query, labels in LABELS.items()
}


def test_it_works_by_name_everywhere(oracles: None) -> None:
    names = ["own_map@5", "map@5"]
    found = rankmill.compare(LABELS, {"old": OLD, "new": NEW}, names, by="label_count")
    sides = found.to_dict()["metrics"]
    for of in sides.values():  # no range is known of one's own metric
        of["new"]["difference"].pop("bound_p")
    assert sides["own_map@5"] == sides["map@5"]
    held, lost = (
        rankmill.gate(LABELS, one, "own_map@5 drop <= 1%", baseline=other)
        for one, other in ((NEW, OLD), (OLD, NEW))
    )
    assert (held.word, lost.word) == ("held", "regressed")
    weighted = pa.table(
        {"query": [*LABELS], "items": [*LABELS.values()], "w": [1.0 + q % 3 for q in LABELS]}
    )
    result = rankmill.evaluate(rankmill.Labels(weighted, weight="w"), OLD, names)
    assert result["own_map@5"] == result["map@5"]
    summed = rankmill.evaluate(LABELS, NEW, ["own_map@5:median", "map@5:median"])
    assert summed["own_map@5:median"] == summed["map@5:median"]
    assert rankmill.explain_evaluators(LABELS, OLD, "own_map@5").metric == "own_map@5"


def test_explain_ends_at_the_value(oracles: None) -> None:
    values = rankmill.evaluate(LABELS, NEW, "own_map@5").per_query
    for query in (0, 7):
        trace = rankmill.explain(LABELS, NEW, "own_map@5", query)
        assert trace.value == trace.total == values["own_map@5"].to_pylist()[query]
        table = trace.table
        assert table["sum"].to_pylist()[-1] == trace.value
        assert [bool(term) for term in table["term"].to_pylist()] == table["hit"].to_pylist()


def part(some: slice, name: str = "own_map@5,map") -> State:
    queries = [*LABELS][some]
    return evaluate_part({q: LABELS[q] for q in queries}, {q: OLD[q] for q in queries}, name)


def test_states_merge_and_travel(oracles: None) -> None:
    halves = [State.from_row(part(some).to_row()) for some in (slice(90, None), slice(90))]
    whole = rankmill.evaluate(LABELS, OLD, "own_map@5,map")
    assert halves[0].merge(halves[1]).result().metrics == whole.metrics


def helper(rank: int) -> float:
    return 1 / rank


def test_states_of_other_definitions_never_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    def define() -> None:
        @metric("reciprocal@k", better="higher", compile=False)
        def reciprocal(ranks: Any) -> Any:
            return sum(helper(rank) for rank in ranks)

    define()
    before = part(slice(90), "reciprocal@3")
    row = before.to_row()
    define()  # again, as a cell of a notebook runs again
    assert before.merge(part(slice(90, None), "reciprocal@3")).queries == 200
    monkeypatch.setitem(globals(), "helper", lambda rank: 2 / rank)
    define()
    with pytest.raises(UsageError, match="states of other definitions do not merge"):
        before.merge(part(slice(90, None), "reciprocal@3"))
    with pytest.raises(UsageError, match="a metric of your own is defined otherwise"):
        State.from_row(row)


def test_a_state_whose_metric_is_not_defined_says_so() -> None:
    metric("gone@k", compile=False)(recall_at)
    row = part(slice(90), "gone@3").to_row()
    for table in (registry.REGISTRY, registry.NAMES, registry._BY_NAME):
        table.pop("gone")
    with pytest.raises(UsageError, match=r"unknown metric 'gone@3': .* by @rankmill.metric$"):
        State.from_row(row)


def test_a_history_compares_with_the_same_definition_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def define() -> None:
        @metric("reciprocal@k", better="higher", compile=False)
        def reciprocal(ranks: Any) -> Any:
            return sum(helper(rank) for rank in ranks)

    define()
    result = rankmill.evaluate(LABELS, OLD, "reciprocal@3")
    history = rankmill.History(tmp_path / "history")
    history.record(result)
    rule = "reciprocal@3 drop <= 1%"

    def held() -> Any:
        return rankmill.gate(LABELS, NEW, rule, baseline="last", history=history.name)

    assert held().word == "held"
    read = rankmill.Result.from_json(result.to_json())
    assert read == result
    monkeypatch.setitem(globals(), "helper", lambda rank: 2 / rank)
    define()
    message = r"no run to compare reciprocal@3 with: .*reciprocal@3 had another definition"
    with pytest.raises(InputError, match=message):
        held()
    del registry.REGISTRY["reciprocal"], registry.NAMES["reciprocal"]
    del registry._BY_NAME["reciprocal"]
    with pytest.raises(UsageError, match="unknown metric 'reciprocal@3'"):
        held()
    assert rankmill.Result.from_json(result.to_json()).metrics == result.metrics
    assert [one["metric"] for one in history.to_arrow().to_pylist()] == ["reciprocal@3"]


def test_a_row_travels_by_pickle(oracles: None) -> None:
    spec = registry.REGISTRY["own_map"]
    again = pickle.loads(pickle.dumps(spec))
    assert again.fingerprint == spec.fingerprint
    registry.register(again)
    found = rankmill.evaluate(LABELS, OLD, "own_map@5,map@5")
    assert found["own_map@5"] == found["map@5"]


def test_hits_beyond_the_cutoff_are_not_seen_whatever_else_is_asked(oracles: None) -> None:
    alone = rankmill.evaluate(LABELS, OLD, "own_rbp@2")
    beside = rankmill.evaluate(LABELS, OLD, "own_rbp@2,map@9")
    assert alone["own_rbp@2"] == beside["own_rbp@2"]


def test_lists_without_predictions_are_as_bad_as_can_be() -> None:
    metric("lost", range=(0, 100), better="lower")(first)
    result = rankmill.evaluate({1: ["a"], 2: ["b"]}, {1: ["x", "a"]}, "lost")
    assert result.per_query["lost"].to_pylist() == [2.0, 100.0]
    metric("shown", range=(0, 100))(compiled_length)
    assert rankmill.evaluate({1: ["a"], 2: ["b"]}, {1: ["x"]}, "shown")["shown"] == 0.5


@numba.njit
def compiled_length(predictions: int) -> int:
    return predictions


BROKEN: list[tuple[Any, str]] = [
    (lambda k: math.nan, "its value is nan; expected 0 to 1"),
    (lambda k: k, "its value is 3.0; expected 0 to 1"),
    (lambda ranks: 1 / ranks[0], "its function fails with IndexError"),
    (lambda labels: 1 / (labels - 1), "its function fails with ZeroDivisionError"),
]
PLAIN: list[tuple[Any, str]] = [
    (lambda k: np.zeros(2), r"its function returns a ndarray of shape \(2,\); expected a number"),
    (lambda k: None, "its function returns a NoneType; expected a number"),
    (lambda k: {}[k], "its function fails with KeyError: 3"),
]


@pytest.mark.parametrize(
    ("function", "message", "compile"),
    [
        *(pytest.param(*one, True, marks=pytest.mark.lengthy) for one in BROKEN[1:3]),
        *((*one, False) for one in [*BROKEN, *PLAIN]),
    ],
)
def test_a_wrong_value_names_the_metric_and_the_query(
    function: Callable[..., Any], message: str, compile: bool
) -> None:
    metric("broken@k", range=(0, 1), compile=compile)(function)
    with pytest.raises(InputError, match=rf"broken@3 of query 'q': {message}"):
        rankmill.evaluate({"q": ["a"]}, {"q": ["x", "y"]}, "broken@3")


@pytest.mark.parametrize("value", [1.1e100, -1.7e308, math.inf])
def test_values_whose_squares_are_too_large(value: float) -> None:
    """Their standard error would be none that JSON, or a float64, could hold."""
    metric("large", compile=False)(lambda labels: value / labels)
    lists = {1: ["a"], 2: ["b"]}
    with pytest.raises(InputError, match=r"its value is .*; expected a number"):
        rankmill.evaluate(lists, lists, "large")
    metric("larger", compile=False)(lambda labels, ranks: 1e100 if ranks[0] == 1 else -1e100)
    found = rankmill.evaluate(lists, {1: ["a"], 2: ["x", "b"]}, "larger", sums="x = 1e50*larger")
    assert found.standard_errors["larger"] == 1e100
    assert rankmill.Result.from_json(found.to_json()) == found


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled")
def test_what_does_not_compile_runs_as_plain_python_and_says_so() -> None:
    @metric("texts@k", range=(0, 1))
    def texts(ranks: Any, k: int) -> float:
        return len({str(rank) for rank in ranks} - {object()}) / k

    with pytest.warns(RuntimeWarning, match="texts runs as plain Python, .* does not compile: "):
        result = rankmill.evaluate(LABELS, OLD, "texts@5,precision@5")
    assert result["texts@5"] == result["precision@5"]

    @metric("jitted")
    @numba.njit
    def jitted(ranks: Any) -> Any:
        return ranks.nothing

    with pytest.raises(UsageError, match=r"the function of jitted does not compile: .*nothing"):
        rankmill.evaluate(LABELS, OLD, "jitted")


def only_fours(ranks: Any, labels: int) -> float:
    if labels == 4:
        raise ValueError("four")
    return 1.0


def in_a_block(hits: Any, k: int, out: Any) -> None:
    out[:] = 1.0
    if (hits.label_counts == 4).any():
        raise ValueError("four")


def in_a_large_block(hits: Any, k: int, out: Any) -> None:
    out[:] = 1.0
    if len(out) > 1:
        raise ValueError("large")


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("function", [only_fours, in_a_block])
def test_a_function_that_fails_names_the_query(function: Any, compile: bool) -> None:
    """That of a block, too, which is called for one query at a time to find it."""
    metric("failing", compile=compile)(function)
    labels = {"a": [1], "b": [2], "c": [1, 2, 3, 4], "d": [7, 8]}
    message = "failing of query 'c': its function fails with ValueError: four"
    with pytest.raises(InputError, match=message):
        rankmill.evaluate(labels, {query: [9, 2] for query in labels}, "failing")


def test_a_block_that_fails_as_a_whole_is_told_as_such() -> None:
    metric("failing", compile=False)(in_a_large_block)
    message = "failing of a block of queries, and of none of them alone: its function fails with"
    with pytest.raises(InputError, match=message):
        rankmill.evaluate(LABELS, OLD, "failing")


@pytest.mark.parametrize("compile", [False, True])
def test_what_the_function_of_a_block_leaves_out_has_no_value(compile: bool) -> None:
    def some(hits: Any, k: int, out: Any) -> None:
        for q in range(len(out)):
            if hits.label_counts[q] != 2:
                out[q] = 1.0

    metric("some", compile=compile)(some)
    with pytest.raises(InputError, match=r"some of query 2: its value is nan; expected a number"):
        rankmill.evaluate({1: ["a"], 2: ["a", "b"]}, {1: ["a"], 2: ["c"]}, "some")


@pytest.mark.parametrize("compile", [False, True])
def test_a_parameter_may_have_any_name(compile: bool) -> None:
    """Those of the loop that calls the function, too."""

    def named(labels: int, q: float = 1.0, start: float = 2.0, empty: int = 4, len: int = 8) -> Any:
        return labels * 100 + q + start + empty + len

    metric("named", compile=compile)(named)
    found = rankmill.evaluate(LABELS, OLD, "named,named(q=2.5)")
    assert [*found.metrics.values()] == [415.0, 416.5]


def test_a_metric_without_a_better_side_has_no_drop() -> None:
    metric("length")(compiled_length)
    with pytest.raises(UsageError, match="neither"):
        rankmill.gate(LABELS, OLD, "length drop <= 1%", baseline=OLD)


async def later(labels: int) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("name", "options", "function", "message"),
    [
        ("map@k", {}, recall, "a metric named 'map' already exists: choose another name"),
        ("MRR", {}, recall, "a metric named 'MRR' already exists"),
        ("P_10", {}, recall, "a metric named 'P_10' already exists"),
        ("recsys", {}, recall, "a metric named 'recsys' already exists"),
        ("a b", {}, recall, "'a b' is not a name for a metric; expected one such as 'wins@k'"),
        ("a", {}, precisions, r"a takes k, and no cutoff: call it 'a@k' or 'a\[@k\]'"),
        ("a", {"range": (1, 0)}, recall, r"the range of a is \(1, 0\); expected \(low, high\)"),
        ("a", {"better": "up"}, recall, "better of a is 'up'; expected higher, lower or neither"),
        ("a", {}, lambda rank: 1, "the function of a takes rank; expected any of ranks, gains"),
        ("a", {}, lambda ranks, rel=1: 1, "takes rel, which every metric has"),
        ("a", {}, lambda: 1, "the function of a takes nothing; expected any of ranks, gains"),
        ("a", {}, lambda p=math.nan: 1, "the function of a takes p=nan; expected any of ranks"),
        ("a", {}, lambda p=math.inf: 1, "the function of a takes p=inf; expected any of ranks"),
        ("a", {}, later, "a is a generator or coroutine; expected a function that returns"),
        ("a", {}, functools.partial(recall, 1), "a is a partial; expected a function"),
        ("a", {}, max, "a is a builtin_function_or_method; expected a function that"),
    ],
)
def test_a_wrong_definition_is_refused(
    name: str, options: dict[str, Any], function: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        metric(name, **options)(function)


def test_an_own_name_is_taken_once() -> None:
    metric("mine")(recall)
    with pytest.raises(
        UsageError, match=r"a metric named 'mine' already exists, of .*test_own.py, line \d+: "
    ):
        metric("mine")(first)


def test_a_cell_that_is_run_again_defines_it_anew() -> None:
    def run_cell(worth: float) -> None:
        @metric("again", compile=False)
        def again(ranks: Any) -> float:
            return worth

    for worth in (0.25, 0.75):
        run_cell(worth)
        assert rankmill.evaluate({1: [1]}, {1: [1]}, "again")["again"] == worth


WORTH = 0.25


@pytest.mark.parametrize("compile", [True, False])
def test_a_function_sees_the_values_of_today(
    compile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba keeps those of globals that it compiled with."""

    @metric("of_today@k", compile=compile)
    def of_today(ranks: Any) -> float:
        return WORTH * len(ranks)

    labels, predictions = {1: [1, 2]}, {1: [1, 2]}
    for worth in (0.25, 0.5, 0.25):
        monkeypatch.setitem(of_today.__globals__, "WORTH", worth)
        assert rankmill.evaluate(labels, predictions, "of_today@2")["of_today@2"] == 2 * worth


DEFINED = '''
import rankmill

@rankmill.metric("wins@k", range=(0, 1), better="higher", compile=False)
def wins(ranks, k, weight=1.0):
    """the share of the first k that are right"""
    return weight * len(ranks) / k
'''


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_metrics.py").write_text(DEFINED)
    (tmp_path / "labels.csv").write_text("query,item\n1,a\n1,b\n2,c\n")
    (tmp_path / "run.csv").write_text("query,item,score\n1,a,3\n1,x,2\n2,y,3\n")
    return tmp_path


def test_a_command_runs_a_file_that_defines_metrics(files: Path, run: Any) -> None:
    given = ("labels.csv", "run.csv", "-m", "wins@2", "--format", "json")
    code, _, told = run("evaluate", *given)
    assert code == 2
    assert "unknown metric 'wins@2': " in told
    assert "; define your own by --define FILE.py" in told
    with pytest.raises(UsageError, match=r"lists all; define your own by @rankmill.metric$"):
        rankmill.evaluate([[1]], [[1]], "wins@2")
    assert '"wins@2": 0.25' in run("evaluate", *given, "--define", "my_metrics.py")[1]
    listed = run("metrics", "wins", "--define", "my_metrics.py")[1]
    assert "the share of the first k that are right" in listed
    assert "my_metrics.py, line 4" in listed
    (files / "my_metrics.py").write_text("1 / 0")
    packages._loaded.clear()
    code, _, told = run("metrics", "--define", "my_metrics.py")
    assert code == 2
    assert "my_metrics.py: it fails with ZeroDivisionError: division by zero" in told


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "run.csv", "other.csv", "-m", "wins@2", "--moved=1", "--quiet"],
        ["gate", "run.csv", "--rule", "wins@2 >= 0.1"],
        ["gate", "run.csv", "--baseline", "other.csv", "--rule", "wins@2 drop <= 0.1"],
        ["explain", "run.csv", "--query-id=1", "-m", "wins@2"],
        ["evaluate", "run.csv", "-m", "wins@2", "--report", "page.html"],
    ],
    ids=" ".join,
)
def test_every_command_takes_definitions(files: Path, run: Any, words: list[str]) -> None:
    (files / "other.csv").write_text("query,item,score\n1,b,3\n1,a,2\n2,y,3\n")
    command, *others = words
    code, told, error = run(command, "labels.csv", *others, "--define", "my_metrics.py")
    assert code in (0, 1), error
    assert "wins" in told
    if command == "compare":
        assert "rankmill explain labels.csv run.csv other.csv" in told
        assert "--define=my_metrics.py" in told


def test_only_a_toml_in_the_working_folder_runs_code(
    files: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    (files / "rankmill.toml").write_text(
        'labels = "labels.csv"\npredictions = "run.csv"\nmetrics = "wins@2"\n'
        'define = "my_metrics.py"\n'
    )
    assert "0.25" in run("evaluate", "rankmill.toml")[1]
    packages._loaded.clear()
    (files / "below").mkdir()
    monkeypatch.chdir(files / "below")
    code, _, told = run("evaluate", "../rankmill.toml")
    assert code == 2
    assert "define: it runs code, which only a file in the working folder may ask for" in told
    assert not packages._loaded


def test_packages_define_metrics_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name, value = "wins", "package"

        def load(self) -> None:
            module = types.ModuleType("package")
            exec(DEFINED, vars(module))

    def points(group: str) -> list[Any]:
        assert group == "rankmill.metrics"
        return [Point()]

    monkeypatch.setattr(importlib.metadata, "entry_points", points)
    packages.load_packages.cache_clear()
    assert registry.parse("wins(weight=0.5)@2").values == {"weight": 0.5}
    assert "package" not in sys.modules
    packages.load_packages.cache_clear()


BURNING = """
import rankmill, time

@rankmill.metric("burned", compile=False)
def burned(labels):
    began = time.thread_time()
    while time.thread_time() - began < {seconds}:
        pass
    return labels
"""


@pytest.mark.long
def test_a_command_says_what_plain_python_took(files: Path) -> None:
    """If it is a tenth of the time or more, and nobody asked for quiet."""

    def told(seconds: float, *options: str) -> str:
        (files / "my_metrics.py").write_text(BURNING.format(seconds=seconds))
        command = [sys.executable, "-m", "rankmill", "evaluate", "labels.csv", "run.csv"]
        done = subprocess.run(
            [*command, "-m", "burned", "--define", "my_metrics.py", *options],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        return done.stderr

    line = r"burned took (\d+\.\d) s of (\d+\.\d) s of processor time as plain Python\n"
    found = re.search(line, told(0.3))  # for each of two queries
    assert found is not None
    took, whole = map(float, found.groups())
    assert 0.6 <= took <= whole
    assert "plain Python" not in told(0.3, "--quiet")
    assert "plain Python" not in told(0.0)


def test_a_function_of_a_module_is_part_of_the_definition(tmp_path: Path) -> None:
    told = []
    for number, body in enumerate(("1 / rank", "2 / rank", "1 / rank  # the same")):
        file = tmp_path / f"of_mine{number}.py"
        file.write_text(f"def helper(rank):\n    return {body}\n")
        of_mine = types.ModuleType("of_mine")
        of_mine.__file__ = str(file)
        exec(compile(file.read_text(), file, "exec"), vars(of_mine))
        space: dict[str, Any] = {"of_mine": of_mine, "np": np}
        exec("def value(ranks):\n    return of_mine.helper(np.log2(ranks[0] + 1))", space)
        told.append([*parts_of(space["value"], "", set())])
    assert told[0] == told[2] != told[1]


def factorial_of(labels: int) -> int:
    product = 1
    for number in range(1, labels + 1):
        product *= number
    return product


@pytest.mark.lengthy
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled")
@pytest.mark.parametrize(
    ("sign", "function"),
    [
        (r"\*\*", lambda labels: 2 ** (labels * 35)),
        (r"\*\*", lambda ranks: 1 / 2 ** ranks[0]),
        (r"\*\*", lambda labels: labels**3),
        ("<<", lambda labels: 1 << labels),
        (r"\*=", factorial_of),
    ],
)
def test_integers_beyond_64_bits_are_an_error(sign: str, function: Any) -> None:
    """And not 0, which is what compiled code makes of 2**70."""
    rankmill.metric("growing", better="higher")(function)
    for _ in range(2):  # nothing wrong is loaded from disk
        with pytest.raises(
            UsageError, match=rf"of growing, .*test_own.py, line \d+: {sign} of integers"
        ):
            rankmill.evaluate([["a", "b"]], [["a", "b"]], "growing")


def test_floats_and_squares_may_grow() -> None:
    function = lambda labels, ranks: 2.0 ** (labels * 35) + labels**2 + ranks[0] ** 2  # noqa: E731
    rankmill.metric("grown", better="higher")(function)
    assert rankmill.evaluate([["a", "b"]], [["a"]], "grown")["grown"] == 2.0**70 + 5
