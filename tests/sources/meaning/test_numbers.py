"""Scores, gains and weights in text, with a decimal point or a decimal comma."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import tells

import rankmill
from rankmill import InputError, Labels, Predictions, UsageError

LABELS = pa.table({"user_id": [1, 2], "item": ["Toy Story", "Heat"]})


def run(*scores: str) -> pa.Table:
    items = ["Big Fish", "Toy Story", "Heat"]
    return pa.table({"user_id": [1, 1, 2], "item": items, "score": scores})


@pytest.mark.small
def test_decimal_commas_are_read_if_that_is_said() -> None:
    predictions = Predictions(run("0,9", "8,1e-1", "1"), decimal=",")
    assert rankmill.evaluate(LABELS, predictions, "first_hit@3")["first_hit@3"] == 0.75
    graded = LABELS.append_column("gain", pa.array(["2,5", "1"]))
    graded = graded.append_column("w", pa.array(["0,5", "1,5"]))
    labels = Labels(graded, weight="w", decimal=",")
    found = rankmill.evaluate(labels, predictions, "dcg@3")
    assert found["dcg@3"] == pytest.approx((0.5 * 2.5 / math.log2(3) + 1.5) / 2)
    with pytest.raises(UsageError, match="decimal is ';'; expected"):
        rankmill.evaluate(LABELS, Predictions(LABELS, decimal=";"), "map")


@pytest.mark.small
@pytest.mark.parametrize(
    ("scores", "decimal", "wanted"),
    [
        (["0,9", "0,8", "0,7"], ".", ["row 0", "'0,9'", "decimal=','"]),
        (["0,9", "1.234", "0,7"], ",", ["row 1", "'1.234'", "write numbers"]),
        (["0,9", "1.234,5", "0,7"], ",", ["row 1", "'1.234,5'", "write numbers"]),
        (["90%", "80%", "70%"], ",", ["row 0", "'90%'", "percent signs"]),
    ],
)
def test_other_marks_are_refused(scores: list[str], decimal: str, wanted: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(LABELS, Predictions(run(*scores), decimal=decimal), "map")
    tells(caught.value, ["'score'", *wanted])


def test_the_option_of_the_command_line_and_of_a_file(tmp_path: Path, run_cli: Any) -> None:
    sides = tmp_path / "l.csv", tmp_path / "r.csv"
    sides[0].write_text("user_id;item_id;gain\n1;10;1,5\n2;12;0,5\n")
    sides[1].write_text("user_id;item_id;score\n1;11;0,9\n1;10;0,8\n2;12;0,7\n")
    refused = run_cli("evaluate", *sides, "-m", "first_hit")
    assert refused.exit_code == 3
    tells(refused.stderr, ["line 2", "--decimal ','"])
    config = tmp_path / "rankmill.toml"
    config.write_text('labels = "l.csv"\npredictions = "r.csv"\n[columns]\ndecimal = ","\n')
    for words in ([*sides, "--decimal", ","], [config]):
        out = run_cli("evaluate", *words, "-m", "first_hit", "--format", "csv")
        assert out.exit_code == 0, out.stderr
        assert out.stdout.splitlines()[1].startswith("first_hit,0.75,")
    shown = run_cli("head", sides[1], "--decimal", ",").stdout
    tells(shown, ["found by its name, numbers in text, decimal commas", "11 (0.9), 10 (0.8)"])


BIG = [2**53 + 1, 2**53, 5]


def big_scores(form: str, path: Path, name: str = "score", numbers: Any = BIG) -> Any:
    table = pa.table({"user_id": [1, 1, 2], "item_id": [11, 10, 12], name: numbers})
    if form == "text":
        return table.set_column(2, name, table.column(2).cast(pa.string()))
    if form == "decimals":
        return table.set_column(2, name, table.column(2).cast(pa.decimal128(38, 0)))
    if form == "dict":
        return {1: dict(zip([11, 10], numbers, strict=False)), 2: {12: 5}}
    file = path / f"run.{form}"
    if form == "csv":
        table.to_pandas().to_csv(file, index=False)
    elif form == "jsonl":
        table.to_pandas().to_json(file, orient="records", lines=True)
    elif form == "run":
        rows = zip([1, 1, 2], [11, 10, 12], numbers, strict=True)
        file.write_text("".join(f"{u} Q0 {i} 1 {n} t\n" for u, i, n in rows))
    return table if form == "integers" else file


FORMS = ["integers", "text", "decimals", "dict", "csv", "jsonl", "run"]


@pytest.mark.parametrize("form", FORMS)
def test_integers_that_a_float_does_not_hold_are_no_scores(form: str, tmp_path: Path) -> None:
    """As floats, they would tie with others."""
    with pytest.raises(InputError) as caught:
        rankmill.evaluate({1: [10], 2: [12]}, big_scores(form, tmp_path), "first_hit@3")
    source = "run." if form in ("csv", "jsonl", "run") else "of predictions"
    wanted = ["'score'", str(BIG[0]), "has no float64 of the same value", "a rank in place of"]
    tells(caught.value, [source, *wanted])


@pytest.mark.parametrize("form", ["integers", "text", "csv", "jsonl"])
def test_large_ranks_and_scores_that_a_float_holds(form: str, tmp_path: Path) -> None:
    labels = {1: [10], 2: [12]}
    ranked = big_scores(form, tmp_path, "rank")
    assert rankmill.evaluate(labels, ranked, "first_hit@3")["first_hit@3"] == 1
    exact = big_scores(form, tmp_path, "score", [2**60, 2**60 + 2**8, 5])
    assert rankmill.evaluate(labels, exact, "first_hit@3")["first_hit@3"] == 1
    pointed = run("9007199254740993.0", "1e300", "-9e15")
    assert rankmill.evaluate(LABELS, pointed, "first_hit@3")["first_hit@3"] == 1
