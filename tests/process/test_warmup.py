"""Compiling ahead of time, and the messages about compiling."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli_runs import process_on_a_terminal, write_dump
from rankmill.cli import compilation
from rankmill.kernels import cache, jit

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled"
)

# Calls of users, written in other ways than those of warmup(), with EVERY combination of types, or
# only with each type.
USES = """
import itertools
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, pyarrow.types, rankmill
from rankmill.kernels import plain
plain.compile_all().__enter__()  # nothing runs as plain Python, however small it is
from rankmill.metrics.families import confidence, diversity
from rankmill.metrics.registry import examples, parse
from rankmill.semantics.choices import CHOICES
others = (*confidence.METRICS, *diversity.METRICS)
names = [name for name in examples() if parse(name).spec not in others]
generator = np.random.default_rng(0)
def given(labels, train=None):
    items = pa.table({"item": labels["item"], "group": [n % 3 for n in range(len(labels))]})
    vectors = {item: [1.0, n] for n, item in enumerate(labels["item"].unique().to_pylist())}
    had = labels if train is None else train
    catalogue = rankmill.Catalogue(train=had, items=items, group="group", features=vectors)
    return {"catalogue": catalogue}
queries = (pa.int8(), pa.uint64(), pa.string(), pa.large_string(), pa.binary(4))
items = (pa.int32(), pa.string(), pa.dictionary(pa.int8(), pa.string()))
scores = (pa.float16(), pa.float32(), pa.float64(), pa.int16())
kinds = list(itertools.product(queries, items, scores))
for query, item, score in kinds if EVERY else kinds[::29]:
    rows = 300
    texts = np.char.zfill(np.sort(generator.integers(0, 40, rows)).astype(str), 4)
    numbers = np.float16(generator.integers(0, 9, rows))
    table = pa.table({
        "query": pa.array(texts).cast(pa.string()).cast(query)
        if not pa.types.is_integer(query) else pa.array(texts.astype(int)).cast(query),
        "item": pa.array(generator.integers(0, 30, rows)).cast(pa.string()).cast(item)
        if item != pa.int32() else pa.array(generator.integers(0, 30, rows)).cast(item),
        "score": pa.array(numbers).cast(score),
    })
    graded = table.rename_columns(["query", "item", "gain"])
    mixed = generator.permutation(rows)
    for labels in (table.select([0, 1]), graded):
        for memory in (1 << 10, 1 << 30):
            rankmill.evaluate(
                labels, table.take(mixed), names, memory=memory, **given(labels)
            )
        rankmill.compare(labels, {"a": table, "b": table}, ["gap", "gap@2", "map"])
        rankmill.evaluate(
            labels.take(mixed), table, names,
            semantics=rankmill.Semantics(gain_function="exp"), threads=2, **given(labels)
        )
        weighted = labels.append_column("weight", pa.array(np.ones(rows)))
        for labels_too in (weighted, weighted.take(mixed)):
            heavy = rankmill.Labels(labels_too, weight="weight")
            rankmill.evaluate(heavy, table, "map")
        for order in ("item_ascending", "best", "expected") if query == pa.int8() else ():
            semantics = {"order": order, "repeated_predictions": "each"}
            semantics |= {"repeated_labels": "count", "gap_total": "hits"}
            choices = rankmill.Semantics(**semantics).choices
            open_ended = [n for n in examples(choices) if n in names]
            rankmill.evaluate(
                labels.take(mixed), table, open_ended, semantics=semantics, **given(labels)
            )
pq.write_table(table, "p.parquet")
for ties in CHOICES["gap_ties"]:
    semantics = {"repeated_predictions": "drop", "gap_ties": ties, "order": "best"}
    rankmill.evaluate("p.parquet", table, ["gap@3", "ndcg@3"], semantics=semantics)
rankmill.evaluate("p.parquet", "p.parquet", names, **given(table, "p.parquet"))
for lists in ([[1], [2, 3]], [["a"], ["b", "c"]]):
    lists = rankmill.arrays.Ragged.from_lists(lists)
    scores = rankmill.arrays.Ragged(lists.offsets, np.float32([1, 2, 3]))
    table = pa.table({"item": lists.values})
    both = rankmill.Labels(lists, gain=scores), rankmill.Predictions(lists, score=scores)
    rankmill.evaluate(*both, names, **given(table, lists))
    for name in ("average_precision", "first_hit_precision", "recall", "hit", "r_precision", "dcg"):
        getattr(rankmill.arrays, name)(lists, lists)
    rankmill.arrays.dcg(lists, lists, 3, gain=scores, gain_function="exp")
topics = pa.table({"query": ["1", "1"], "item": ["a", "b"], "subtopic": ["x", "y"]})
diverse = [one.name + "@9" * (one.cutoff != "none") for one in diversity.METRICS]
topics = rankmill.Labels(topics, subtopic="subtopic")
rankmill.evaluate(topics, {"1": ["a", "c"]}, diverse)
rankmill.arrays.global_average_precision(np.float16([1, 2]), [True, False], 2)
from rankmill.adapters.torch.listwise import listwise_ap, listwise_ap_loss
for scores in (np.float16([[1, 0]]), np.float32([[1, 0]]), [[1, 0]]):
    rankmill.arrays.top_k(scores, 1, seen=[[0]])
    rankmill.evaluate([[1]], rankmill.arrays.Matrix(scores), "map@1,gap")
    listwise_ap(scores, [[0, 1]], 5, tied=True)
    listwise_ap_loss(scores, [[True, False]], 5, -1, 1, weights=[2])
from rankmill.analysis.statistics.paired_differences import paired_of
from rankmill.analysis.statistics.significance import TESTS, run_test
for differences in ([0.1, 0.2, 0.4] * 7, np.float32([1, 2, 3] * 60), range(2000)):
    for name in TESTS:
        run_test(name, paired_of(differences), replicates=50, seed=-1)
rankmill.compare("p.parquet", {"a": "p.parquet", "b": "p.parquet"}, "map")
from rankmill.kernels.jit import compiled_so_far
print(compiled_so_far().compiled)
"""


# What a process used, one file of the cache a line. The cache that all tests share holds most of it
# already, so that this takes seconds where an empty one would take a minute.
USED = """
import sys
from rankmill.cli import main
from rankmill.kernels import cache
used, place_of = [], cache.place_of
def noted(*arguments):
    used.append(place_of(*arguments))
    return used[-1]
cache.place_of = noted
try:
    main(["warmup"], prog_name="rankmill")
finally:
    for place in used:
        print(place.path)
"""


def printed(code: str, folder: Path, kept: Path | None = None) -> list[str]:
    """Run Python in a folder; return the lines that it prints."""
    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | ({} if kept is None else {"NUMBA_CACHE_DIR": str(kept)}),
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    return answer.stdout.splitlines()


@pytest.mark.skipif(not cache.numba_is_known(), reason="numba has a cache of its own")
@pytest.mark.long
@pytest.mark.parametrize("every", [False, True])
def test_after_a_warmup_nothing_is_compiled(tmp_path, every, monkeypatch):
    _, _, told, _, kept_in, *used = printed(USED, tmp_path)
    (kernels,) = map(int, re.findall(r"\d+(?= kernels are compiled)", told))
    assert kernels == len(set(used)) > 30
    assert kept_in.endswith(f"kernels are kept in {Path(used[0]).parent}")

    kept = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(kept))
    folder = Path(cache.folder_of(os.path.dirname(jit.__file__)))
    for path in used:
        shutil.copy(path, folder)
    before = sorted(folder.iterdir())
    assert printed(f"EVERY = {every}{USES}", tmp_path, kept) == ["0"]
    assert sorted(folder.iterdir()) == before


@pytest.mark.long
def test_a_terminal_is_told_of_a_long_compilation(tmp_path, monkeypatch):
    labels, predictions = map(str, write_dump(tmp_path))
    run = f"rankmill.evaluate({labels!r}, {predictions!r}, ['map', 'ndcg', 'gap'])"
    # Otherwise kernels run as plain Python on so few queries.
    imports = "import rankmill\nfrom rankmill.kernels.plain import compile_all"
    code = f"{imports}\nwith compile_all():\n    {run}"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    assert process_on_a_terminal(code, 80) == ["compiling kernels (first run only) ..."]
    assert process_on_a_terminal(code, 80) == []


def test_a_cache_that_cannot_be_written_is_one_warning(monkeypatch):
    def fails(directory):
        raise RuntimeError("no folder for them can be written to")

    monkeypatch.setattr(cache, "folder_of", fails)
    assert results_with_one_warning(monkeypatch, "set NUMBA_CACHE_DIR to a folder that you") == []


def test_a_kernel_that_cannot_be_saved_is_one_warning_too(monkeypatch, tmp_path):
    def fails(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "save", fails)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (folder,) = results_with_one_warning(monkeypatch, "No space left on device")
    assert os.listdir(folder) == []


def results_with_one_warning(monkeypatch, text):
    """Compile two kernels, and return the folders that have some."""
    monkeypatch.setattr(jit, "_warned", [])
    monkeypatch.setattr(jit, "_record", jit._Record())
    kernels = [jit.heavy_kernel(function) for function in (lambda a: a + 1, lambda a: a + 2)]
    with pytest.warns(RuntimeWarning, match=text) as caught:
        assert [kernel(1) for kernel in kernels] == [2, 3]
    assert len(caught) == 1
    assert jit.compiled_so_far().compiled == 2
    return jit.compiled_so_far().folders


def test_what_a_warmup_reads_as_text_can_be_read():
    """The long tests are not in CI, and a stricter rule may refuse what the warm-up evaluates."""
    compilation._evaluate_text()
