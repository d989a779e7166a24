"""Compiled metrics of somebody's own on disk: loaded by the next process, and never a stale one."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from rankmill.kernels import cache
from rankmill.metrics.own import content_of, parts_of, source_of

compiles = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" or not cache.numba_is_known(),
    reason="nothing is saved",
)

# Each argument is a helper's factor and a constant; with each the metrics are defined once more.
PROGRAM = """
import json, sys
import rankmill
from rankmill.kernels.jit import compiled_so_far
from rankmill import metric

SOURCE = '''
import numba

OFFSET = {1}

@numba.njit
def helper(rank, again):
    total = 0.0
    for i in range(again):
        total += {0} / rank
    return total

@metric("helped", better="higher")
def helped(ranks):
    found = 0.0
    for rank in ranks:
        found += helper(rank, 3) + helper(rank, len(ranks))
    return found + OFFSET

@metric("of_block")
def of_block(hits, k, out):
    for q in range(len(out)):
        out[q] = OFFSET

@metric("printed")
def printed(labels):
    print("labels", labels)
    return OFFSET
'''
names = ["helped", "of_block", "printed"]
rankmill.evaluate([["a"]], [["a"]], "mrr")
for text in sys.argv[1:]:
    exec(SOURCE.format(*text.split(",")))
    for name in names:
        before = compiled_so_far()
        value = rankmill.evaluate([["a", "b"]], [["x", "a"]], name)[name]
        after = compiled_so_far()
        print(json.dumps([value, after.compiled - before.compiled, after.loaded - before.loaded]))
"""


def ran(folder: Path, *arguments: str) -> list[list[float]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


@pytest.mark.long
@compiles
def test_the_next_process_loads_what_is_the_same_and_compiles_what_changed(tmp_path: Path) -> None:
    """A function that uses Python, as print does, is not saved."""
    new, old = [[2.0, 1, 0], [0.0, 1, 0]], [[2.0, 0, 1], [0.0, 0, 1]]
    printed = [0.0, 1, 0]
    first = ran(tmp_path, "1.0,0")
    assert first == [*new, printed]
    folder = next(tmp_path.iterdir())
    saved = sorted(one.name for one in folder.iterdir() if one.name.startswith("own."))
    assert len(saved) == 2
    # Loaded, and then defined otherwise in the same process: by the helper, by the constant.
    second = ran(tmp_path, "1.0,0", "2.0,0", "2.0,5")
    assert second[:3] == [*old, printed]
    assert second[3:6] == [[4.0, 1, 0], [0.0, 0, 1], printed]
    assert second[6:] == [[9.0, 1, 0], [5.0, 1, 0], [5.0, 1, 0]]
    assert ran(tmp_path, "2.0,5") == [[9.0, 0, 1], [5.0, 0, 1], [5.0, 1, 0]]
    # A file for each metric, not for each version of it.
    assert saved == sorted(one.name for one in folder.iterdir() if one.name.startswith("own."))
    for name in saved:
        (folder / name).chmod(0o666)  # anybody may have written it
    assert ran(tmp_path, "2.0,5")[:2] == [[9.0, 1, 0], [5.0, 1, 0]]


LIMIT: Any = 1
NOTES = [1.0]
SOMETHING = object()
LARGE = np.zeros(200_000)


@numba.njit
def doubled(value: float) -> float:
    return 2 * value


def plain_helper(value: float) -> float:
    return value


def of_limit(ranks: Any) -> float:
    return LIMIT + len(ranks)


def of_helper(ranks: Any) -> float:
    return doubled(len(ranks)) + np.log2(3.0) + math.sqrt(2)


def closed(value: Any) -> Callable[..., Any]:
    return lambda ranks: value * len(ranks)


def of_default(default: float, **options: Any) -> Callable[..., Any]:
    @numba.njit(**options)
    def inner(value: float, more: float = default) -> float:
        return value + more

    return lambda ranks: inner(len(ranks))


@compiles
def test_content_tells_all_that_compiled_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        content_of(one, "")
        for one in (
            of_limit,
            of_helper,
            closed(1),
            closed(2),
            closed(1.0),
            closed(True),
            closed(np.zeros(2)),
            closed(np.zeros(2, np.float32)),
            closed(np.ones(2)),
            of_default(1.0),
            of_default(2.0),
            of_default(1.0, fastmath=True),
            of_default(1.0, locals={"more": numba.float32}),
            closed(numba.njit(plain_helper)),
            closed(numba.njit("float32(int64)")(plain_helper)),
            closed(numba.njit("float64(int64)")(plain_helper)),
            lambda ranks: ranks.sum(),
            lambda ranks: ranks.max(),
            numba.njit(lambda ranks: ranks.max()),
        )
    ]
    found.append(content_of(of_limit, "otherwise"))
    for value in (2, 1.0, np.int64(1), (1, 2), "1", None, np.float64):
        monkeypatch.setitem(globals(), "LIMIT", value)
        found.append(content_of(of_limit, ""))
    monkeypatch.setitem(globals(), "doubled", numba.njit(plain_helper))
    found.append(content_of(of_helper, ""))
    assert "" not in found[:-8]
    assert found[-8:].count("") == 1  # a number of NumPy
    assert len({*found}) == len(found)
    monkeypatch.undo()
    assert content_of(of_limit, "") == found[0]
    assert content_of(of_helper, "") == found[1]


@pytest.mark.small
@pytest.mark.parametrize(
    "value",
    [NOTES, SOMETHING, LARGE, json, plain_helper, (1, SOMETHING), numba.vectorize(plain_helper)],
)
def test_what_no_text_tells_is_not_saved(value: Any) -> None:
    assert content_of(closed(value), "") == ""


@pytest.mark.long
@compiles
def test_a_definition_tells_what_is_named() -> None:
    """States of two definitions do not merge, also where only such a part differs."""

    def told(function: Any) -> list[str]:
        return [*parts_of(function, source_of(function), set())]

    for one, other in (
        (lambda ranks: ranks.sum(), lambda ranks: ranks.max()),
        (closed(np.int64(1)), closed(np.int64(2))),
        (closed({"a", "b"}), closed({"a", "c"})),
        (of_default(1.0), of_default(2.0)),
        (closed(numba.njit(plain_helper)), closed(numba.njit("int64(int64)")(plain_helper))),
        (closed((LARGE,)), closed((LARGE + (np.arange(len(LARGE)) == 500),))),
    ):
        assert told(one) != told(other)
    assert told(closed({"b", "a"})) == told(closed({"a", "b"}))


@pytest.mark.small
def test_a_name_without_a_value_yet_is_left_out() -> None:
    def function(ranks: Any) -> Any:
        return later

    assert [*parts_of(function, "source", set())] == ["source "]
    later = 1
