"""Kernels that are not on disk run as plain Python while that takes less time than to compile."""

import ast
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from rankmill.kernels import jit, plain
from rankmill.kernels.identity import MULTIPLIER, home
from rankmill.kernels.intrinsics import count_ones

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled"
)


def sum_slots(keys, out):
    """A kernel whose products wrap around, with a helper and an intrinsic."""
    for i in range(len(keys)):
        out[0] += home(keys[i], MULTIPLIER, np.uint64(60)) + np.int64(count_ones(keys[i]))


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(plain, "seconds", {})


def compiled_by(kernel, size: int) -> tuple[int, int]:
    """The result over so many keys, and how many kernels were compiled for it."""
    before, out = jit.compiled_so_far().compiled, np.zeros(1, np.int64)
    kernel(np.arange(size, dtype=np.uint64) * MULTIPLIER, out)
    return int(out[0]), jit.compiled_so_far().compiled - before


def test_small_arrays_compile_nothing_and_give_the_same() -> None:
    small = [compiled_by(jit.kernel(sum_slots), size) for size in (0, 1, 1000)]
    heavy = jit.heavy_kernel(sum_slots)
    with plain.compile_all():
        forced = compiled_by(jit.kernel(sum_slots), 1000)
    assert [count for _, count in small] == [0, 0, 0]
    assert forced == (small[-1][0], 1)
    assert compiled_by(heavy, 0) == (0, 0)  # it was kept on disk


def test_one_version_takes_arrays_however_they_lie() -> None:
    """Those that only may be written to are passed as they are, and those with gaps copied."""
    kernel, wide = jit.kernel(sum_slots), np.arange(2000, dtype=np.uint64) * MULTIPLIER
    even = wide[::2].copy()
    locked = even.copy()
    locked.setflags(write=False)
    before, found = jit.compiled_so_far().compiled, []
    with plain.compile_all():
        for keys in (even, locked, wide[::2], even.view(np.memmap)) * 2:
            out = np.zeros(1, np.int64)
            kernel(keys, out)
            found.append(int(out[0]))
    plainly = np.zeros(1, np.int64)
    with np.errstate(over="ignore"):
        sum_slots(locked, plainly)
    assert found == [int(plainly[0])] * 8
    assert jit.compiled_so_far().compiled - before == 1


def first_two(keys):
    return keys[0], (keys[1], len(keys))


def test_numbers_are_those_of_python_as_compiled() -> None:
    """JSON takes no number of NumPy."""
    keys = np.arange(2)
    plainly = jit.kernel(first_two)(keys)
    with plain.compile_all():
        compiled = jit.kernel(first_two)(keys)
    assert plainly == compiled == (0, (1, 2))
    for found in (plainly, compiled):
        assert {type(found[0]), *map(type, found[1])} == {int}


def test_large_arrays_and_heavy_kernels_are_compiled() -> None:
    assert compiled_by(jit.heavy_kernel(sum_slots), 1)[1] == 1
    other = jit.kernel(sum_slots)
    assert compiled_by(other, plain.SMALL + 1)[1] == 0  # loaded
    assert plain.seconds == {sum_slots: 0.0}


def test_a_kernel_is_compiled_at_last() -> None:
    kernel = jit.kernel(sum_slots)
    plain.seconds[sum_slots] = plain.SECONDS - 1e-9
    assert [compiled_by(kernel, 10)[1] for _ in range(3)] == [0, 1, 0]


@pytest.mark.long
def test_processes_that_are_slow_without_a_kernel_have_it_compiled(tmp_path: Path) -> None:
    """Each process of a nightly job stays below the limit, so none would compile it."""
    program = (
        "import numpy as np\n"
        "from rankmill.kernels import jit, plain\n"
        "from rankmill.kernels.exact import accumulate\n"
        "plain.SLOW = 1e-6\n"
        "bins = np.zeros((2048, 8), np.int64)\n"
        "accumulate(np.ones(99).view(np.int64), np.ones(99, np.int64), bins)\n"
        "print(jit.compiled_so_far().compiled, jit.compiled_so_far().loaded, bins.sum())\n"
    )
    told = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    counts = [one.stdout.split() for one in told]
    assert [one[:2] for one in counts] == [["0", "0"]] * 3 + [["1", "0"], ["0", "1"]]
    assert len({one[2] for one in counts}) == 1
    assert not [*tmp_path.rglob("*.slow")]


@pytest.mark.small
def test_kernels_have_no_function_with_other_bits_as_plain_python() -> None:
    """NumPy's loops of exp, log and powers are its own; those of `math` are those of kernels."""
    todo = "take the function of `math`, such as math.pow(x, y) for x**y: NumPy's has other bits"
    for path in Path(jit.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                where = f"{path.name}, line {node.lineno}: {todo}"
                assert isinstance(node.left, ast.Constant), where
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np":
                other = {"exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "power", "mean"}
                assert node.attr not in other, f"{path.name}, line {node.lineno}: {todo}"


def test_kernels_read_no_offsets_of_labels_without_gains(tmp_path: Path) -> None:
    """Those are of all labels, of which there may be fewer than lists."""
    code = """
from contextlib import suppress
import rankmill
from rankmill.kernels import jit
from rankmill.metrics.registry import REGISTRY
lists = {query: [*map(str, range(query)), "a"] for query in range(9)}  # all of other lengths
semantics = rankmill.Semantics(unlabelled="zero")
values = {}
for name in REGISTRY:
    with suppress(rankmill.RankmillError):
        values[name] = rankmill.evaluate({8: ["a"]}, lists, name, semantics=semantics)[name]
print(values["map"] == values["first_hit"] == 1 / 81, len(values), jit.compiled_so_far().compiled)
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    same, count, compiled = answer.stdout.split() or [answer.stderr, "0", "0"]
    assert (same, compiled) == ("True", "0")
    assert int(count) > 40


def test_an_error_leaves_no_trace_of_the_missing_file() -> None:
    def fails(keys, out):
        out[len(keys)] = 1 // len(keys)

    with pytest.raises(ZeroDivisionError) as caught:
        compiled_by(jit.kernel(fails), 0)
    assert caught.value.__context__ is None


def test_a_first_evaluation_of_little_compiles_nothing(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    ids = [f"item {number}" for number in generator.integers(0, 50, 600)]
    dump = {"query": np.repeat(np.arange(60), 10), "item": ids, "score": generator.random(600)}
    labels = pa.table({name: dump[name] for name in ("query", "item")}).slice(0, 300)
    names = ["map@3", "ndcg", "gap", "first_hit", "auc", "rbp"]
    code = f"""
import pickle, sys, rankmill
from rankmill.kernels import jit
labels, predictions = pickle.load(sys.stdin.buffer)
print(dict(rankmill.evaluate(labels, predictions, {names}).metrics), jit.compiled_so_far().compiled)
"""
    given = pickle.dumps((labels, pa.table(dump)))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    answer = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, env=environment, check=True
    )
    usual = dict(rankmill.evaluate(labels, pa.table(dump), names).metrics)
    assert answer.stdout.decode() == f"{usual} 0\n"
