"""Every bad input gives an error with the file and the place, exit code 3 or 2, and no output."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells

import rankmill
from flat import flat
from rankmill.arrays import Ragged
from rankmill.errors import InputError, RankmillError, UsageError

GOOD_LABELS = pa.table({"query_id": [1, 2, 3], "items": [[10, 11], [10], [12]]})
GOOD_PREDICTIONS = pa.table(
    {
        "query_id": [1, 2, 3],
        "items": [[10, 12], [11, 10], [10, 12]],
        "confidence": [[0.9, 0.8], [0.7, 0.6], [0.5, 0.4]],
    }
)


L, P, LONG_P = "labels", "predictions", "long predictions"


# ------------------------------------------------------------------ files that are not readable


def broken_files(folder: Path) -> dict[str, tuple[object, list[str]]]:
    """Return name -> (source, text that the message must contain)."""
    good = folder / "good.parquet"
    big = pa.table({"query_id": range(20_000), "items": [[i, i + 1] for i in range(20_000)]})
    pq.write_table(big, good, compression="none", use_dictionary=False)
    content = good.read_bytes()
    middle = len(content) // 2
    made = {
        "truncated.parquet": content[:middle],
        "headless.parquet": content[middle:],
        "zeros.parquet": content[:4] + bytes(middle) + content[middle + 4 :],
        "empty.parquet": b"",
        "text.parquet": b"query_id,item_id\n1,2\n" * 10,
    }
    found: dict[str, tuple[object, list[str]]] = {}
    for name, written in made.items():
        (folder / name).write_bytes(written)
        found[name] = folder / name, [name]
    good.unlink()
    (folder / "hollow").mkdir()
    found["missing.parquet"] = (
        folder / "missing.parquet",
        ["missing.parquet", "exist|no such|not f"],
    )
    found["glob"] = str(folder / "nothing-*.parquet"), ["nothing-*.parquet", "match|no file|file"]
    found["hollow"] = folder / "hollow", ["hollow", "file"]
    return found


BROKEN = ["truncated.parquet", "headless.parquet", "zeros.parquet", "empty.parquet"]
BROKEN += ["text.parquet", "missing.parquet", "glob", "hollow"]


@pytest.mark.parametrize("side", ["labels", "predictions"])
@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name: str, side: str, tmp_path: Path, files: Any, cli_fails: Any) -> None:
    source, wanted = broken_files(tmp_path)[name]
    labels, predictions = files(GOOD_LABELS, GOOD_PREDICTIONS)
    pair = (source, predictions) if side == "labels" else (labels, source)
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(*pair, ["map@2"])
    tells(caught.value, wanted)
    cli_fails(pair, 3, wanted, ["map@2"])


@pytest.mark.parametrize("position", range(3))
def test_one_bad_file_of_several_is_named(tmp_path: Path, position: int) -> None:
    paths = [tmp_path / f"part-{part}.parquet" for part in range(3)]
    for part, path in enumerate(paths):
        pq.write_table(GOOD_PREDICTIONS.slice(part, 1), path)
    paths[position].write_bytes(paths[position].read_bytes()[:-20])
    with pytest.raises(InputError, match=f"part-{position}.parquet"):
        rankmill.evaluate(GOOD_LABELS, paths, ["map@2"])


def test_a_query_in_two_files_is_named(tmp_path: Path) -> None:
    for part in ("a", "b"):
        queries = [{"a": 1, "b": 2}[part], 777]
        table = pa.table({"query_id": queries, "items": [[10], [11]]})
        pq.write_table(table, tmp_path / f"{part}.parquet")
    with pytest.raises(InputError, match="777"):
        rankmill.evaluate(GOOD_LABELS, tmp_path, ["map@2"])


# ------------------------------------------------------------------ gains


@pytest.mark.small
@pytest.mark.parametrize(("gain", "gains"), [(1.5e308, "linear"), (1023.9, "exp"), (2000, "exp")])
def test_gains_whose_sum_overflows(gain: float, gains: str) -> None:
    """No result is NaN or infinite: the error names the gain, or the ratio is right."""
    labels, predictions = Ragged.from_lists([[1, 2]]), Ragged.from_lists([[2, 1]])
    try:
        found = rankmill.arrays.ndcg(
            labels, predictions, gain=Ragged.from_lists([[gain, gain]]), gain_function=gains
        )
    except InputError as error:
        tells(error, ["gain"])
    else:
        assert found.tolist() == [1.0]


def test_all_gains_at_most_zero(files: Any) -> None:
    labels = pa.table({"query_id": [1, 2], "item_id": [10, 10], "gain": [0, -1]})
    with pytest.raises(InputError, match="label"):
        flat(rankmill.evaluate, *files(labels, GOOD_PREDICTIONS), ["ndcg"], gain="gain")


# ------------------------------------------------------------------ Ragged and arrays

OFFSETS = {
    "no offsets": [],
    "starts at 1": [1, 2, 3],
    "starts below 0": [-1, 2, 3],
    "falls": [0, 2, 1, 3],
    "ends early": [0, 1, 2],
    "ends late": [0, 1, 4],
    "goes past the end and back": [0, 9, 3],
    "floats": [0.0, 1.0, 3.0],
    "not finite": [0.0, math.nan, 3.0],
    "two-dimensional": [[0, 3]],
    "wraps": np.array([0, 2**64 - 1, 3], np.uint64),
    "one number": 3,
    "text": ["0", "3"],
}


@pytest.mark.small
@pytest.mark.parametrize("name", OFFSETS)
@pytest.mark.parametrize("values", [np.arange(3), ["a", "b", "c"]], ids=["integers", "strings"])
def test_ragged_offsets(name: str, values: Any) -> None:
    with pytest.raises(InputError, match="offset"):
        Ragged(OFFSETS[name], values)
    assert isinstance(InputError(""), ValueError)


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((3, 1)),
        np.array([1j, 2, 3]),
        np.array([True, False, True]),
        [1, "a", 2],
        pa.array([1, None, 3]),
        pa.array([[1], [2], [3]]),
        [None, "a", "b"],
    ],
    ids=["two-dimensional", "complex", "bool", "mixed", "null", "nested", "None"],
)
def test_ragged_values(values: Any) -> None:
    with pytest.raises(InputError, match="value"):
        Ragged([0, 1, 3], values)


def test_ragged_is_a_copy_of_its_offsets() -> None:
    """The check of the offsets would be useless if they could change after it."""
    offsets = np.array([0, 1, 3])
    lists = Ragged(offsets, np.arange(3))
    offsets[1] = 1000
    assert lists.offsets.tolist() == [0, 1, 3]
    with pytest.raises(ValueError, match="read-only"):
        lists.offsets[1] = 1000


ONE, TWO = Ragged.from_lists([[1]]), Ragged.from_lists([[1], [2]])
WORD, HALF = Ragged.from_lists([["a"]]), Ragged.from_lists([[0.5]])


@pytest.mark.small
@pytest.mark.parametrize(
    ("call", "kind", "wanted"),
    [
        (lambda: rankmill.arrays.average_precision(ONE, TWO), InputError, ["1", "2"]),
        (lambda: rankmill.arrays.average_precision(ONE, WORD), InputError, ["int64", "string"]),
        (lambda: rankmill.arrays.average_precision(HALF, HALF), InputError, ["float|double"]),
        (
            lambda: rankmill.arrays.average_precision(ONE, ONE, 0),
            UsageError,
            ["0", "k|cutoff", "1|posit"],
        ),
        (lambda: rankmill.arrays.recall(ONE, ONE, -3), UsageError, ["-3"]),
        (lambda: rankmill.arrays.hit(ONE, ONE, 1.5), UsageError, ["1.5"]),
        (
            lambda: rankmill.arrays.ndcg(ONE, ONE, gain_function="cubic"),
            UsageError,
            ["cubic", "linear", "exp"],
        ),
        (lambda: rankmill.arrays.ndcg(ONE, ONE, gain=TWO), InputError, ["gain"]),
        (lambda: rankmill.evaluate(ONE, TWO, ["map"]), InputError, ["1", "2"]),
        (lambda: rankmill.evaluate(ONE, GOOD_PREDICTIONS, ["map"]), RankmillError, ["Ragged"]),
        (lambda: rankmill.evaluate(ONE, ONE, ["gap"]), RankmillError, ["score|confidence"]),
        (
            lambda: rankmill.evaluate(ONE, rankmill.Predictions(ONE, score=TWO), ["gap"]),
            InputError,
            ["score|confidence"],
        ),
        (lambda: gap([0.5, math.nan], [1, 0], 1), InputError, ["NaN", "1"]),
        (lambda: gap([0.5], [1, 0], 1), InputError, ["1", "2"]),
        (lambda: gap([0.5], [1], 0), RankmillError, ["total", "0"]),
        (
            lambda: gap([0.5], [1], 1, ties="fair"),
            UsageError,
            ["fair", "expected", "worst", "best"],
        ),
    ],
)
def test_arrays(call: Callable[[], Any], kind: type[Exception], wanted: list[str]) -> None:
    with pytest.raises(kind) as caught:
        call()
    tells(caught.value, wanted)


def gap(confidence: list[float], correct: list[int], total: int, **options: Any) -> float:
    values = np.array(confidence), np.array(correct, bool)
    return rankmill.arrays.global_average_precision(*values, total, **options)


# ------------------------------------------------------------------ usage


def test_outputs_that_cannot_be_written(files: Any, run_cli: Any, tmp_path: Path) -> None:
    paths = files(GOOD_LABELS, GOOD_PREDICTIONS)
    before = sorted(tmp_path.rglob("*"))
    for option in ("-o", "--per-query"):
        target = tmp_path / "no" / "such" / "folder.parquet"
        outcome = run_cli("evaluate", *paths, "-m", "map", option, target)
        assert outcome.exit_code == 2
        tells(outcome.stderr, ["folder.parquet|such"])
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("code", "metric", "labels"),
    [
        (0, "map", "the-labels.parquet"),
        (2, "mapp", "the-labels.parquet"),
        (3, "map", "none.parquet"),
    ],
)
def test_a_process(code: int, metric: str, labels: str, files: Any, tmp_path: Path) -> None:
    """The same through python -m rankmill: exit code, and no traceback of any thread."""
    files(GOOD_LABELS, GOOD_PREDICTIONS)
    command = [sys.executable, "-m", "rankmill", "evaluate", labels, "the-predictions.parquet"]
    done = subprocess.run(
        [*command, "-m", metric], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) == bool(code)
    assert bool(done.stdout) == (not code)
