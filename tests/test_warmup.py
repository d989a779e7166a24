"""Compiling ahead of time, and the messages about compiling."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import CompileResultCacheImpl

from cli_runs import on_a_terminal, write_dump
from rankmill.kernels import jit

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled"
)

# Calls of users, written in other ways than those of warmup().
USES = """
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, pyarrow.types, rankmill
from rankmill.metrics.registry import REGISTRY
from rankmill.semantics.choices import CHOICES
kernels = {name: one for name, one in REGISTRY.items() if one.kernel or name == "gap"}
kernels = {name: one for name, one in kernels.items() if one.gains != "subtopics"}
names = [name + "@7" if spec.cutoff != "none" else name for name, spec in kernels.items()]
generator = np.random.default_rng(0)
for query in (pa.int8(), pa.uint64(), pa.string(), pa.large_string(), pa.binary(4)):
    for item in (pa.int32(), pa.string(), pa.dictionary(pa.int8(), pa.string())):
        for score in (pa.float16(), pa.float32(), pa.float64(), pa.int16()):
            rows = 300
            queries = np.char.zfill(np.sort(generator.integers(0, 40, rows)).astype(str), 4)
            scores = np.float16(generator.integers(0, 9, rows))
            table = pa.table({
                "query": pa.array(queries).cast(pa.string()).cast(query)
                if not pa.types.is_integer(query) else pa.array(queries.astype(int)).cast(query),
                "item": pa.array(generator.integers(0, 30, rows)).cast(pa.string()).cast(item)
                if item != pa.int32() else pa.array(generator.integers(0, 30, rows)).cast(item),
                "score": pa.array(scores).cast(score),
            })
            graded = table.rename_columns(["query", "item", "gain"])
            mixed = generator.permutation(rows)
            for labels in (table.select([0, 1]), graded):
                for memory in (1 << 10, 1 << 30):
                    rankmill.evaluate(labels, table.take(mixed), names, memory=memory)
                rankmill.compare(labels, {"a": table, "b": table}, ["gap", "gap@2", "map"])
                rankmill.evaluate(labels.take(mixed), table, names, gain_function="exp", threads=2)
                weighted = labels.append_column("weight", pa.array(np.ones(rows)))
                for labels_too in (weighted, weighted.take(mixed)):
                    rankmill.evaluate(labels_too, table, "map", weight="weight")
                for order in ("item_ascending", "best", "expected") if query == pa.int8() else ():
                    semantics = {"order": order, "repeated_predictions": "each"}
                    semantics |= {"repeated_labels": "count", "gap_total": "hits"}
                    open_ended = [name for name in names if "gap" not in name] + ["gap"]
                    rankmill.evaluate(labels.take(mixed), table, open_ended, semantics=semantics)
pq.write_table(table, "p.parquet")
for ties in CHOICES["gap_ties"]:
    semantics = {"repeated_predictions": "drop", "gap_ties": ties, "order": "best"}
    rankmill.evaluate("p.parquet", table, ["gap@3", "ndcg@3"], semantics=semantics)
rankmill.evaluate("p.parquet", "p.parquet", names)
for lists in ([[1], [2, 3]], [["a"], ["b", "c"]]):
    lists = rankmill.Ragged.from_lists(lists)
    scores = rankmill.Ragged(lists.offsets, np.float32([1, 2, 3]))
    rankmill.evaluate(lists, lists, names, score=scores, gain=scores)
    for name in ("average_precision", "first_hit_precision", "recall", "hit", "r_precision", "dcg"):
        getattr(rankmill, name)(lists, lists)
    rankmill.dcg(lists, lists, 3, gain=scores, gain_function="exp")
topics = pa.table({"query": ["1", "1"], "item": ["a", "b"], "subtopic": ["x", "y"]})
diverse = [f"{name}@9" for name, one in REGISTRY.items() if one.gains == "subtopics"]
rankmill.evaluate(topics, {"1": ["a", "c"]}, diverse, subtopic="subtopic")
rankmill.fuse([table, table.take(mixed)], method="combmed", top=3, weights=[1, 2])
rankmill.global_average_precision(np.float16([1, 2]), [True, False], 2)
from rankmill.training.listwise import listwise_ap, listwise_ap_loss
for scores in (np.float16([[1, 0]]), np.float32([[1, 0]]), [[1, 0]]):
    listwise_ap(scores, [[0, 1]], 5, tied=True)
    listwise_ap_loss(scores, [[True, False]], 5, -1, 1, weights=[2])
from rankmill.compare.paired import paired_of
from rankmill.compare.significance import TESTS, run_test, tukey
for differences in ([0.1, 0.2, 0.4] * 7, np.float32([1, 2, 3] * 60), range(2000)):
    for name in TESTS:
        run_test(name, paired_of(differences), replicates=50, seed=-1)
tukey([[1, 2, 3], [2, 3, 1]], replicates=50)
rankmill.stability("p.parquet", {"a": "p.parquet", "b": "p.parquet"}, "map")
from rankmill.kernels.jit import compiled_so_far
print(compiled_so_far().compiled)
"""


@pytest.fixture
def in_fresh_cache(tmp_path):
    """Run Python with an empty folder for compiled kernels; return what it prints."""

    def run(*arguments: str) -> str:
        answer = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        )
        assert (answer.returncode, answer.stderr) == (0, "")
        return answer.stdout

    return run


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nb?"))


def test_after_a_warmup_nothing_is_compiled(in_fresh_cache, tmp_path):
    said = in_fresh_cache("-m", "rankmill", "warmup").splitlines()
    before = kept(tmp_path / "cache")
    compiled = len([path for path in before if path.suffix == ".nbc"])
    assert compiled > 30
    assert said[0].startswith(f"compiled {compiled} kernels, 0 were there, in ")
    assert said[1].startswith(f"kept in {tmp_path / 'cache'}")

    again = in_fresh_cache("-m", "rankmill", "warmup")
    assert again.startswith(f"compiled 0 kernels, {compiled} were there, in ")

    assert in_fresh_cache("-c", USES) == "0\n"
    assert kept(tmp_path / "cache") == before


def test_a_terminal_is_told_of_a_long_compilation(tmp_path, monkeypatch):
    labels, predictions = map(str, write_dump(tmp_path))
    code = (
        "import rankmill\n"
        f"rankmill.evaluate({labels!r}, {predictions!r}, ['map', 'ndcg', 'gap', 'f1@2'])"
    )
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    assert on_a_terminal(code, 80) == ["compiling kernels (first run only) ..."]
    assert on_a_terminal(code, 80) == []


def test_a_cache_that_cannot_be_written_is_one_warning(monkeypatch):
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])  # so no folder is found
    monkeypatch.setattr(jit, "_warned", [])
    monkeypatch.setattr(jit, "_dispatchers", {})
    kernels = [jit.kernel(function) for function in (lambda a: a + 1, lambda a: a + 2)]
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR to a writable folder") as caught:
        assert [kernel(1) for kernel in kernels] == [2, 3]
    assert len(caught) == 1
    assert jit.compiled_so_far().folders == []


def test_a_kernel_that_cannot_be_saved_is_one_warning_too(monkeypatch):
    class Full:
        """A compiled function that works after its first call, which fails to save it."""

        def __init__(self, function):
            self.function = function
            self.calls = 0

        def __call__(self, *arguments):
            self.calls += 1
            if self.calls == 1:
                raise OSError(28, "No space left on device")
            return self.function(*arguments)

    monkeypatch.setattr(jit, "njit", lambda **options: Full)
    monkeypatch.setattr(jit, "_warned", [])
    monkeypatch.setattr(jit, "_dispatchers", {})
    kernels = [jit.kernel(function) for function in (lambda a: a + 1, lambda a: a + 2)]
    with pytest.warns(RuntimeWarning, match="No space left on device") as caught:
        assert [kernel(1) for kernel in kernels] == [2, 3]
    assert len(caught) == 1
