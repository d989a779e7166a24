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
LONG = pa.table({"query_id": [1, 1, 2], "item_id": [10, 11, 10], "score": [0.3, 0.2, 0.1]})


def change(table: pa.Table, **columns: Any) -> pa.Table:
    """The table with columns replaced, added, or (None) dropped."""
    kept = {name: table[name] for name in table.column_names} | columns
    return pa.table({name: column for name, column in kept.items() if column is not None})


FLOAT, TEXT_IDS = pa.array([1.0, 2.5, 3.0]), pa.array(["u1", "u2", "u3"])
FLOATS, TEXTS = pa.array([[1.0], [2.5], [3.0]]), pa.array([["a"], ["b"], ["c"]])
NO_LABEL = pa.array([[], None, [None]], pa.list_(pa.int64()))
NAN = math.nan
FULL = [0.1, 0.2]
DOUBLE = "double|float"
FIRST_ROW, LAST_ROW = "row 1|row 2", "row 2|row 3"  # rows may count from 0 or from 1
SAY_QUERY, SAY_ITEM, SAY_SCORE = "--query|query=", "--item|item=", "--score|score="
L, P, LONG_P = "labels", "predictions", "long predictions"

# name -> (side, columns to change in the good table of that side (None: to drop), texts that the
# message must contain, with alternatives separated by |)
BAD: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "no item column": (L, {"items": None, "hue": [1, 2, 3]}, ["item", "query_id", "hue", SAY_ITEM]),
    "no query column": (P, {"query_id": None, "who": [1, 2, 3]}, ["query", "who", SAY_QUERY]),
    "two query columns": (L, {"user_id": [1, 2, 3]}, ["query_id", "user_id", "items", SAY_QUERY]),
    "two item columns": (P, {"doc_ids": [[1], [2], [3]]}, ["items", "doc_ids", SAY_ITEM]),
    "items and labels": (L, {"label": [0, 1, 0]}, ["items", "label", SAY_ITEM]),
    "two score columns": (P, {"score": [FULL] * 3}, ["confidence", "score", SAY_SCORE]),
    "no score column": (P, {"confidence": None}, ["score", "query_id", "items", SAY_SCORE]),
    "scores that are text": (P, {"confidence": [["x", "y"]] * 3}, ["confidence", "'x'"]),
    "one score a list": (P, {"confidence": [*FULL, 0.3]}, ["confidence", "list", DOUBLE]),
    "items in structs": (L, {"items": [{"a": "1", "b": "2"}] * 3}, ["items", "struct"]),
    "lists of lists": (P, {"items": [[[1]], [[2]], [[3]]]}, ["items", "list"]),
    "query lists": (L, {"query_id": [[1], [2], [3]]}, ["query_id", "list"]),
    "text item ids": (P, {"items": TEXTS, "confidence": FLOATS}, ["items", "integers", "none"]),
    "text label ids": (L, {"items": TEXTS}, ["items", "integers", "none"]),
    "text query ids": (P, {"query_id": TEXT_IDS}, ["query_id", "integers", "none"]),
    "float query ids": (L, {"query_id": FLOAT}, ["query_id", "2.5", "fraction"]),
    "float item ids": (L, {"items": FLOATS}, ["items", "2.5", "fraction"]),
    "float ids of predictions": (LONG_P, {"item_id": FLOAT}, ["item_id", "2.5", "fraction"]),
    "null query id": (L, {"query_id": [1, None, 3]}, ["null", "query_id", FIRST_ROW]),
    "null query id, long": (LONG_P, {"query_id": [1, 1, None]}, ["null", "query_id", LAST_ROW]),
    "a query twice in labels": (L, {"query_id": [1, 777, 777]}, ["777", "query"]),
    "a query twice in predictions": (P, {"query_id": [777, 2, 777]}, ["777", "query"]),
    "a query twice by name": (L, {"query_id": ["anna", "otto", "anna"]}, ["anna", "query"]),
    "NaN confidence": (
        P,
        {"query_id": [1, 555, 3], "confidence": [FULL, [0.1, NAN], [NAN, NAN]]},
        ["NaN", "confidence", f"555|{FIRST_ROW}"],
    ),
    "NaN, long": (LONG_P, {"score": [0.1, NAN, 0.2]}, ["NaN", "score", f"{FIRST_ROW}|query 1"]),
    "null confidence": (
        P,
        {"query_id": [1, 555, 3], "confidence": [FULL, [None, 0.1], FULL]},
        ["null|None", "confidence", f"555|{FIRST_ROW}"],
    ),
    "fewer confidences than items": (
        P,
        {"query_id": [1, 555, 3], "confidence": [FULL, [0.1], FULL]},
        ["555", "confidence", "items", "1", "2"],
    ),
    "as many confidences in all, though": (
        P,
        {"query_id": [555, 2, 3], "confidence": [[0.1], [0.1, 0.2, 0.3], FULL]},
        ["555", "confidence", "items"],
    ),
    "null list of confidences": (
        P,
        {"query_id": [1, 2, 555], "confidence": [FULL, FULL, None]},
        ["555", "confidence", "items"],
    ),
    "no labels": (L, {}, ["row|empty"]),
    "no predictions": (P, {}, ["row|empty"]),
    "no labelled query": (L, {"items": NO_LABEL}, ["label", "no query"]),
}


def sides(name: str) -> tuple[pa.Table, pa.Table, str]:
    """The two tables of a bad case, and the side that is bad."""
    side, columns, _ = BAD[name]
    tables = {L: GOOD_LABELS, P: LONG if side == LONG_P else GOOD_PREDICTIONS}
    bad = L if side == L else P
    tables[bad] = change(tables[bad], **columns) if columns else tables[bad].slice(0, 0)
    if name == "a query twice by name":
        tables[P] = change(tables[P], query_id=TEXT_IDS)
    return tables[L], tables[P], bad


@pytest.mark.small
@pytest.mark.parametrize("name", BAD)
def test_tables(name: str) -> None:
    """An InputError names the side, because there is no file name."""
    labels, predictions, bad = sides(name)
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(labels, predictions, ["map@2", "gap"])
    tells(caught.value, [*BAD[name][2], bad.removesuffix("s")])


@pytest.mark.parametrize("name", BAD)
def test_files(name: str, files: Any, cli_fails: Any) -> None:
    """With files, the error names the file, the exit code is 3, and nothing is written."""
    labels, predictions, bad = sides(name)
    paths = files(labels, predictions)
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(*paths, ["map@2", "gap"])
    message = tells(caught.value, [*BAD[name][2], f"the-{bad}.parquet"])
    cli_fails(paths, 3, message.splitlines(), ["map@2", "gap"])


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


@pytest.mark.parametrize("gain", [math.nan, math.inf, None, "much"])
def test_bad_gains(gain: Any, files: Any, cli_fails: Any) -> None:
    values = pa.array([1.0, gain, 2.0] if gain != "much" else ["1", "much", "2"])
    labels = pa.table({"query_id": [1, 2, 3], "item_id": [10, 10, 12], "gain": values})
    paths = files(labels, GOOD_PREDICTIONS)
    with pytest.raises(InputError) as caught:
        flat(rankmill.evaluate, *paths, ["ndcg"], gain="gain")
    wanted = [
        "gain",
        "the-labels.parquet",
        {"much": "'much'", None: "null|None"}.get(gain, str(gain)),
    ]
    tells(caught.value, wanted)
    cli_fails(paths, 3, wanted, ["ndcg"], "--gain", "gain")


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

USAGE = {
    "mapp@12": ["mapp", "did you mean map@12"],
    "ndgc": ["ndgc", "ndcg"],
    "map@0": ["map@0", "positive|at least 1|from 1"],
    "map@-1": ["map@-1"],
    "map@ten": ["map@ten"],
    "map@1.5": ["map@1.5"],
    "map@": ["map@"],
    "@5": ["@5"],
    "precision": ["precision", "precision@"],
    "f1": ["f1", "f1@"],
    "rprec@5": ["rprec"],
}


@pytest.mark.parametrize("metric", USAGE)
def test_metric_names(metric: str, files: Any, cli_fails: Any) -> None:
    with pytest.raises(UsageError) as caught:
        rankmill.evaluate(GOOD_LABELS, GOOD_PREDICTIONS, [metric])
    tells(caught.value, USAGE[metric])
    paths = files(GOOD_LABELS, GOOD_PREDICTIONS)
    cli_fails(paths, 2, USAGE[metric], ["map", metric])


@pytest.mark.parametrize(
    "options",
    [{"gain_function": "cubic"}, {"threads": 0}, {"metrics": []}, {"metrics": ()}],
    ids=str,
)
def test_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        flat(rankmill.evaluate, GOOD_LABELS, GOOD_PREDICTIONS, **({"metrics": ["map"]} | options))
    tells(caught.value, [name.removesuffix("s") for name in options])


NAMED = ["query", "item", "score", "gain", "label_query", "label_item"]


@pytest.mark.parametrize(
    ("option", "predictions"),
    [(option, GOOD_PREDICTIONS) for option in NAMED] + [("score", LONG), ("rank", LONG)],
    ids=[*NAMED, "score of a long file", "rank"],
)
def test_named_columns_that_are_not_there(
    option: str, predictions: pa.Table, files: Any, cli_fails: Any
) -> None:
    """A mistyped name is an error even if the metric does not need the column."""
    paths = files(GOOD_LABELS, predictions)
    wanted = ["nowhere", "query_id", "item", "the-labels|the-predictions"]
    with pytest.raises(InputError) as caught:
        flat(rankmill.evaluate, *paths, ["map"], **{option: "nowhere"})
    tells(caught.value, wanted)
    cli_fails(paths, 3, wanted, ["map"], f"--{option.replace('_', '-')}", "nowhere")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--threads", "0"], 2),
        (["--gain-function", "cubic"], 2),
        (["--bogus"], 2),
        (["--format", "x"], 2),
    ],
)
def test_cli_usage(options: list[str], code: int, files: Any, cli_fails: Any) -> None:
    paths = files(GOOD_LABELS, GOOD_PREDICTIONS)
    cli_fails(paths, code, [options[0]], ["map"], *options)


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
