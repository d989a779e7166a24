"""Metric notebooks and checks of submissions: the published formulas, each problem, what leaks."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankmill.adapters.kaggle.submission_check import PROBLEMS, SCORED
from rankmill.errors import InputError, UsageError
from rankmill.kaggle import ParticipantVisibleError, check, score
from repository import run_python

pytestmark = pytest.mark.small


def frame(rows: dict[Any, Any], column: str = "predictions") -> pd.DataFrame:
    return pd.DataFrame({"id": list(rows), column: list(rows.values())})


# ------------------------------------------------------------------ the published formulas


def published_apk(actual: list[str], predicted: list[str], k: int) -> float:
    """As Kaggle's page about mean average precision defines it, query by query."""
    total, hits = 0.0, 0
    for place, one in enumerate(predicted[:k]):
        if one in actual and one not in predicted[:place]:
            hits += 1
            total += hits / (place + 1)
    return total / min(len(actual), k) if actual else 0.0


def published_gap(rows: list[tuple[str, float, set[str]]], labelled: int) -> float:
    """The sum of P(i) rel(i) by falling confidence, over the images with a landmark."""
    hits, total = 0, 0.0
    for place, (item, _, labels) in enumerate(sorted(rows, key=lambda row: -row[1]), 1):
        if item in labels:
            hits += 1
            total += hits / place
    return total / labelled


@given(st.integers(0, 10**9), st.sampled_from([5, 7, 12]))
def test_map_is_the_published_formula(seed: int, k: int) -> None:
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(9)] + ["0012", "12"]
    ids = [f"{i:03}" for i in range(rng.randint(1, 30))]
    actual = {one: [rng.choice(words) for _ in range(rng.randint(0, 8))] for one in ids}
    found = {one: [rng.choice(words) for _ in range(rng.randint(1, 15))] for one in ids}
    if not any(actual.values()):
        actual[ids[0]] = ["w1"]
    solution = frame({one: " ".join(of) or None for one, of in actual.items()})
    submission = frame({one: " ".join(of) for one, of in found.items()}).sample(
        frac=1, random_state=seed % 2**32
    )
    expected = sum(published_apk(actual[one], found[one], k) for one in ids) / len(ids)
    assert score(solution, submission, "id", f"map@{k}") == pytest.approx(expected, rel=1e-13)


@given(st.integers(0, 10**9), st.booleans())
def test_gap_is_the_published_formula(seed: int, long: bool) -> None:
    rng = random.Random(seed)
    ids = [f"{i:03x}" for i in range(rng.randint(1, 40))]
    marks = list(map(str, range(6)))
    truth = {one: {rng.choice(marks)} if rng.random() < 0.7 else set() for one in ids}
    truth[ids[0]] = {"1"}
    confidences = rng.sample(range(10**6), len(ids))
    rows = [(one, rng.choice(marks), c / 7e5) for one, c in zip(ids, confidences, strict=True)]
    solution = frame({one: " ".join(of) or None for one, of in truth.items()}, "landmarks")
    if long:
        submission = pd.DataFrame(rows, columns=["id", "landmarks", "conf"])
    else:
        submission = frame({one: f"{item} {c!r}" for one, item, c in rows}, "landmarks")
        left = rng.randrange(len(rows))
        if left:  # no landmark predicted
            submission.loc[left, "landmarks"] = None
            del rows[left]
    expected = published_gap(
        [(item, c, truth[one]) for one, item, c in rows], sum(map(bool, truth.values()))
    )
    asked = {"confidence": "conf"} if long else {}
    found = score(solution, submission, "id", "gap", **asked)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_several_rows_of_an_id_stand_by_falling_confidence() -> None:
    solution = pd.DataFrame({"id": [1, 1, 2], "item": [7, 8, 9], "Usage": ["Public"] * 3})
    rows = [(1, 5, 0.1), (1, 8, 0.9), (2, 9, 0.3), (1, 7, 0.5)]
    submission = pd.DataFrame(rows, columns=["id", "item", "p"])
    assert score(solution, submission, "id", "map@5", confidence="p") == 1.0
    submission.loc[0, "p"] = 1.0
    expected = (published_apk(["7", "8"], ["5", "8", "7"], 5) + 1) / 2
    assert score(solution, submission, "id", "map@5", confidence="p") == expected


def test_pairs_of_several_labels_and_other_semantics() -> None:
    solution = frame({"v1": "1 2", "v2": "3"})
    submission = frame({"v1": "1 0.9 5 0.8 2 0.7", "v2": "3 0.6"})
    expected = 1 + 2 / 3 + 3 / 4
    assert score(solution, submission, "id", "gap") == pytest.approx(expected / 2)
    pairs = {"gap_total": "label_pairs"}
    assert score(solution, submission, "id", "gap", semantics=pairs) == pytest.approx(expected / 3)


# ------------------------------------------------------------------ problems

TRUTH = {"0012": "x y", "b": "q", "c": "z"}
RIGHT = {"0012": "x", "b": "q r", "c": "w"}
# What a submission is -> its problems: kind, row, found, expected.
WRONG: dict[str, tuple[pd.DataFrame, list[tuple[str, str, str, str]]]] = {
    "a row lacks": (frame({"0012": "x", "b": "q"}), [("row missing", "", "", "'c'")]),
    "lost zeros": (
        frame({"12": "x", "b": "q", "c": "w"}),
        [("id changed", "row 0", "'12'", "'0012'")],
    ),
    "floats": (
        frame({"12.0": "x", "b": "q", "c": "w"}),
        [("id changed", "row 0", "'12.0'", "'0012'")],
    ),
    "doubled": (
        pd.DataFrame({"id": ["0012", "b", "c", "b"], "predictions": ["x", "q", "w", "r"]}),
        [("id repeated", "row 3", "'b', as row 1", "")],
    ),
    "unknown": (frame(RIGHT | {"d": "x"}), [("id unknown", "row 3", "'d'", "")]),
    "no id": (
        pd.DataFrame({"id": ["0012", None, "b", "c"], "predictions": ["x"] * 4}),
        [("id missing", "row 1", "", "")],
    ),
    "empty": (frame(RIGHT | {"b": " "}), [("no prediction", "row 1", "", "")]),
    "too many": (
        frame(RIGHT | {"b": "a b c d e f"}),
        [("too many predictions", "row 1", "6, not 5 at most", "")],
    ),
    "repeats": (
        frame(RIGHT | {"b": "q r q q"}),
        [("repeated prediction", "row 1", "'q'", "")] * 2,
    ),
    "columns": (
        frame(RIGHT, "Predictions"),
        [
            ("column missing", "", "no 'predictions' among 'id', 'Predictions'", "predictions"),
            ("column unknown", "", "'Predictions'", ""),
        ],
    ),
    "index": (
        frame(RIGHT).assign(**{"Unnamed: 0": [0, 1, 2]}),
        [("column unknown", "", "'Unnamed: 0'", "")],
    ),
}
PAIRS = {
    "odd": ("x 0.5 y", [("broken pair", "row 1", "", "")]),
    "text": ("x high", [("no confidence", "row 1", "'high'", "")]),
    "nan": (
        "x nan y -inf",
        [("no confidence", "row 1", f"'{one}'", "") for one in ("nan", "-inf")],
    ),
    "underscore": ("x 1_0", [("no confidence", "row 1", "'1_0'", "")]),
    "items": ("x 0.5 x 0.25", [("repeated prediction", "row 1", "'x'", "")]),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_problem_is_found_alone(name: str) -> None:
    submission, problems = WRONG[name]
    found = check(frame(TRUTH), submission)
    assert list(map(tuple, found.problems)) == problems
    assert found.rows == len(submission)


@pytest.mark.parametrize("name", PAIRS)
def test_each_problem_of_pairs_is_found(name: str) -> None:
    text, problems = PAIRS[name]
    submission = frame({"0012": "x 0.5", "b": text, "c": None})
    assert list(map(tuple, check(frame(TRUTH), submission, metric="gap").problems)) == problems


def test_all_problems_have_a_case_and_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("id,predictions\n0012,x,y\n")
    found = check(frame(TRUTH), tmp_path / "u.csv").problems
    assert "line 2" in found[0].found
    cases = [problems for _, problems in [*WRONG.values(), *PAIRS.values()]]
    kinds = {one[0] for problems in cases for one in problems}
    assert kinds | {found[0].problem, "item changed"} == {*PROBLEMS}  # the last is below
    assert all(one.remedy for one in found)


def test_items_that_lost_their_zeros_are_found_and_scored() -> None:
    truth = frame({"a": "007 08", "b": "9", "c": "1"})
    mine = frame({"a": "7 x 8", "b": "9.0 007", "c": "01 1"})
    assert list(map(tuple, check(truth, mine).problems)) == [
        ("item changed", "row 0", "'7'", "'007'"),
        ("item changed", "row 1", "'9.0'", "'9'"),
        ("item changed", "row 2", "'01'", "'1'"),
    ]
    # An error would show which items are labels.
    assert score(truth, mine, "id") == pytest.approx(0.5 / 3)
    assert not check(frame({"a": "7 007"}), frame({"a": "7 07x 007"})).problems
    pairs = check(truth, frame({"a": "8 0.5", "b": "9 1", "c": "1 1"}), metric="gap").problems
    assert list(map(tuple, pairs)) == [("item changed", "row 0", "'8'", "'08'")]


def test_a_right_submission_has_no_problem() -> None:
    assert not check(frame(TRUTH), frame(RIGHT | {"b": "a b c d e"})).problems
    assert not check(frame({7: "1", 8: "2"}), frame({"8": "2", "7": 1})).problems
    # pandas makes floats of a column of which a cell is empty
    assert score(frame({1: 5, 2: None}), frame({1: 5, 2: 6}), "id", "map@1") == 0.5


@given(st.permutations(sorted(WRONG)), st.integers(2, 4))
def test_problems_add_up(names: list[str], count: int) -> None:
    """Each row's problems are those of this row, whatever is wrong with others."""
    submission = pd.concat([WRONG[one][0] for one in names[:count] if "column" not in one])
    found = check(frame(TRUTH), submission.reset_index(drop=True)[["id", "predictions"]])
    kinds = [one.problem for one in found.problems]
    assert kinds == sorted(kinds, key=list(PROBLEMS).index)
    ids = submission["id"].tolist()
    again = sum(ids.count(one) - 1 for one in {*ids} if one is not None and one == one)
    assert kinds.count("id repeated") == again


# ------------------------------------------------------------------ who sees what


@pytest.mark.parametrize("name", WRONG)
def test_participants_see_no_solution(name: str) -> None:
    submission, problems = WRONG[name]
    secret = {"0012": "secret1 secret2", "b": "secret3", "c": "secret4", "hidden": "secret5"}
    assert {one[0] for one in problems} <= {*SCORED} or name
    with pytest.raises(ParticipantVisibleError) as told:
        score(frame(secret), submission, "id")
    text = str(told.value)
    assert "secret" not in text
    assert "hidden" not in text
    assert ("'0012'" in text) == ("0012" in text)
    if "changed" in text:
        assert "0012" not in text


@pytest.mark.parametrize(
    ("submission", "told"),
    [
        (frame(RIGHT).iloc[:0], "3 rows: row missing: add a row"),
        (pd.DataFrame(), "no 'predictions' among none"),
        (frame(RIGHT)["predictions"], "no 'id' among 'query', 'items'"),
        (frame(RIGHT)[["id", "predictions", "predictions"]], "several columns 'predictions'"),
        (pd.DataFrame({"id": pd.Series(["\ud800"], dtype=object)}), "is not Unicode text"),
        (frame(RIGHT).assign(predictions=[["x"], ["q"], []]), "expected text"),
    ],
)
def test_whatever_is_submitted_the_participant_is_told(submission: Any, told: str) -> None:
    with pytest.raises(ParticipantVisibleError) as error:
        score(frame(TRUTH), submission, "id")
    assert told in str(error.value)
    assert check(frame(TRUTH), submission).problems


def test_the_host_sees_another_error() -> None:
    for solution, metric, kind in (
        (frame(TRUTH).rename(columns={"id": "key"}), "map@5", InputError),
        (pd.DataFrame({"id": [None], "predictions": ["a"]}), "map@5", InputError),
        (frame(TRUTH).assign(other=1), "map@5", InputError),
        (frame(dict.fromkeys(TRUTH)), "gap", InputError),
        (frame(TRUTH), "map", UsageError),
        (frame(TRUTH), "mop@5", UsageError),
    ):
        submission = frame({one: f"{item.split()[0]} 0.5" for one, item in RIGHT.items()})
        with pytest.raises(kind) as told:
            score(solution, submission, "id", metric)
        assert not isinstance(told.value, ParticipantVisibleError)


def test_what_the_formula_answers_stops_no_score() -> None:
    value = score(frame(TRUTH), frame(RIGHT | {"b": "a q q d e f"}), "id")
    assert value == pytest.approx((0.5 + 0.5 + 0) / 3)


KAGGLE = """
import sys, types
theirs = types.ModuleType("kaggle_metric_utilities")
theirs.ParticipantVisibleError = type("ParticipantVisibleError", (Exception,), {})
sys.modules[theirs.__name__] = theirs
import pandas as pd
from rankmill.kaggle import ParticipantVisibleError, score
assert ParticipantVisibleError is theirs.ParticipantVisibleError
frame = pd.DataFrame({"id": [1, 2], "predictions": [3, 4]})
try:
    score(frame, frame.iloc[:1], "id")
except theirs.ParticipantVisibleError as error:
    print(error)
"""


def test_kaggles_own_error_is_raised_where_there_is_one() -> None:
    assert run_python(KAGGLE) == "1 row: row missing: add a row for each id of the solution\n"


# ------------------------------------------------------------------ the command


def test_the_command_tells_all_and_ends_with_1(run: Any, tmp_path: Path) -> None:
    truth, mine = tmp_path / "solution.csv", tmp_path / "mine.csv"
    truth.write_text("id,predictions,Usage\n0012,x y,Public\nb,q,Private\n")
    mine.write_text('id,predictions\n12,"x, y"\nb,q\n')
    code, shown, error = run("check", truth, mine, "-m", "map@5", "--format", "json")
    assert (code, error) == (1, "")
    (problem,) = json.loads(shown)["problems"]
    assert (problem["problem"], problem["row"]) == ("id changed", "line 2")
    mine.write_text("id,predictions\n0012,x\nb,q\n")
    code, shown, error = run("check", truth, mine, "-m", "map@5")
    assert (code, shown, error) == (0, "0 problems in 2 rows\n", "")
    mine.write_text("id,predictions\n0012,x\n" + "b,q\n" * 60)
    code, shown, error = run("check", truth, mine, "-m", "map@5")
    assert code == 1
    assert "and 9 more" in shown
    assert run("check", truth, tmp_path / "none.csv", "-m", "map@5")[0] == 3
    assert run("check", mine, truth, "-m", "map")[0] == 2
    mine.write_text("")
    assert run("check", truth, mine, "-m", "map@5")[0] == 1


def test_files_and_frames_have_the_same_score(tmp_path: Path) -> None:
    frame(TRUTH).to_csv(tmp_path / "s.csv", index=False)
    frame(RIGHT).to_csv(tmp_path / "u.csv", index=False)
    assert score(tmp_path / "s.csv", tmp_path / "u.csv", "id") == score(
        frame(TRUTH), frame(RIGHT), "id"
    )
    assert math.isclose(score(frame(TRUTH), frame(RIGHT), "id"), 0.5)
