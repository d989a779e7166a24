"""Metric notebooks and checks of submissions: the published formulas, each problem, what leaks."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankmill
from rankmill.adapters.kaggle.submission_check import PROBLEMS, SCORED, Problem
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


# A small solution may have 12 only, and the submission 0012.
@pytest.mark.filterwarnings("ignore:the solution lost leading zeros:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:counts as wrong:RuntimeWarning")
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
Told = tuple[str, int | None, str | None, tuple[str, ...], tuple[str, ...], int, int | None]


def wrong(
    problem: str,
    row: int | None,
    id: str | None,
    found: str = "",
    expected: str = "",
    total: int = 1,
    first: int | None = None,
) -> Told:
    """What a check says, with texts of words for what was found and what was expected."""
    return problem, row, id, tuple(found.split()), tuple(expected.split()), total, first


# What a submission is -> its problems.
WRONG: dict[str, tuple[pd.DataFrame, list[Told]]] = {
    "a row lacks": (
        frame({"0012": "x", "b": "q"}),
        [wrong("row missing", None, None, "", "c")],
    ),
    "lost zeros": (
        frame({"12": "x", "b": "q", "c": "w"}),
        [wrong("id changed", 0, "12", "12", "0012")],
    ),
    "floats": (
        frame({"12.0": "x", "b": "q", "c": "w"}),
        [wrong("id changed", 0, "12.0", "12.0", "0012")],
    ),
    "doubled": (
        pd.DataFrame({"id": ["0012", "b", "c", "b"], "predictions": ["x", "q", "w", "r"]}),
        [wrong("id repeated", 3, "b", "b", first=1)],
    ),
    "unknown": (frame(RIGHT | {"d": "x"}), [wrong("id unknown", 3, "d", "d")]),
    "no id": (
        pd.DataFrame({"id": ["0012", None, "b", "c"], "predictions": ["x"] * 4}),
        [wrong("id missing", 1, None)],
    ),
    "blanks": (
        frame({"0012": "x", "b ": "q", "c": "w"}),
        [("blanks around id", 1, "b ", ("b ",), ("b",), 1, None)],
    ),
    "empty": (frame(RIGHT | {"b": " "}), [wrong("no prediction", 1, "b")]),
    "a word of pandas": (frame(RIGHT | {"b": "nan"}), [wrong("no prediction", 1, "b")]),
    "too many": (
        frame(RIGHT | {"b": "a b c d e f"}),
        [wrong("too many predictions", 1, "b", total=6)],
    ),
    "repeats": (
        frame(RIGHT | {"b": "q r q q"}),
        [wrong("repeated prediction", 1, "b", "q q", total=2)],
    ),
    "a blank in the header": (
        frame(RIGHT, " predictions"),
        [("column renamed", None, None, (" predictions",), ("predictions",), 1, None)],
    ),
    "columns": (
        frame(RIGHT, "Predictions"),
        [wrong("column renamed", None, None, "Predictions", "predictions")],
    ),
    "other columns": (
        frame(RIGHT, "best"),
        [
            wrong("column missing", None, None, "id best", "predictions"),
            wrong("column unknown", None, None, "best"),
        ],
    ),
    "commas": (
        frame(RIGHT | {"b": "q,r,x"}),
        [wrong("other separator", 1, "b", "q,r,x")],
    ),
    "list": (
        frame(RIGHT | {"b": "['q', 'r']"}),
        [wrong("other separator", 1, "b", "['q', 'r']", total=2)],
    ),
    "index": (
        frame(RIGHT).assign(unnamed=[0, 1, 2]),
        [wrong("column unknown", None, None, "unnamed")],
    ),
}
PAIRS = {
    "odd": ("x 0.5 y", [wrong("broken pair", 1, "b")]),
    "text": ("x high", [wrong("no confidence", 1, "b", "high")]),
    "nan": ("x nan y -inf", [wrong("no confidence", 1, "b", "nan -inf", total=2)]),
    "underscore": ("x 1_0", [wrong("no confidence", 1, "b", "1_0")]),
    "items": ("x 0.5 x 0.25", [wrong("repeated prediction", 1, "b", "x")]),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_problem_is_found_alone(name: str, tmp_path: Path) -> None:
    submission, problems = WRONG[name]
    found = check(frame(TRUTH), submission)
    assert list(map(tuple, found.problems)) == problems
    if '"' not in (text := submission.to_csv(index=False)):  # so that no cell has a comma
        (tmp_path / "s.csv").write_text(text)
        of_file = check(frame(TRUTH), tmp_path / "s.csv").problems
        assert [one[:1] + one[2:-1] for one in of_file] == [one[:1] + one[2:-1] for one in problems]
    assert found.rows == len(submission)


@pytest.mark.parametrize("name", PAIRS)
def test_each_problem_of_pairs_is_found(name: str) -> None:
    text, problems = PAIRS[name]
    submission = frame({"0012": "x 0.5", "b": text, "c": None})
    assert list(map(tuple, check(frame(TRUTH), submission, metric="gap").problems)) == problems


def test_an_item_may_be_named_as_missing_values_are() -> None:
    assert not check(frame(TRUTH | {"b": "None"}), frame(RIGHT | {"b": "None"})).problems


def test_all_problems_have_a_case_and_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("id,predictions\n0012,x,y\n")
    found = check(frame(TRUTH), tmp_path / "u.csv").problems
    assert "line 2" in found[0].found[0]
    cases = [problems for _, problems in [*WRONG.values(), *PAIRS.values()]]
    kinds = {one[0] for problems in cases for one in problems}
    below = {
        "items unlike",
        "item changed",
        "id changed in solution",
        "item changed in solution",
        "other delimiter",
    }
    assert kinds | {found[0].problem} | below == {*PROBLEMS}
    assert all(one.remedy for one in found)


def test_items_that_lost_their_zeros_are_found_and_scored() -> None:
    truth = frame({"a": "007 08", "b": "9", "c": "1"})
    mine = frame({"a": "7 x 8", "b": "9.0 007", "c": "01 1"})
    assert list(map(tuple, check(truth, mine).problems)) == [
        wrong("item changed", 0, "a", "7 8", "007 08", total=2),
        wrong("item changed", 1, "b", "9.0", "9"),
        wrong("item changed", 2, "c", "01", "1"),
    ]
    # An error would show which items are labels; a warning stays in the notebook.
    with pytest.warns(RuntimeWarning, match="counts as wrong: 3 rows: item changed .*dtype=str"):
        assert score(truth, mine, "id") == pytest.approx(0.5 / 3)
    assert not check(frame({"a": "7 007"}), frame({"a": "7 07x 007"})).problems
    pairs = check(truth, frame({"a": "8 0.5", "b": "9 1", "c": "1 1"}), metric="gap").problems
    assert list(map(tuple, pairs)) == [wrong("item changed", 0, "a", "8", "08")]


def test_a_list_names_the_first_few_items_and_says_how_many() -> None:
    padded = [f"{item:03}" for item in range(1, 8)]
    bare = " ".join(str(int(item)) for item in padded)
    found = check(frame({"a": " ".join(padded)}), frame({"a": bare}), metric="map@12")
    assert list(map(tuple, found.problems)) == [
        wrong("item changed", 0, "a", "1 2 3", "001 002 003", total=7)
    ]
    assert "'1', '2', '3' and 4 more" in repr(found)
    (told,) = found.to_dict()["problems"]
    assert told["text"] == (
        "row 0: item changed: '1', '2', '3' and 4 more; the solution has '001', '002', '003': "
        "keep items as text: read with dtype=str, and don't save it from a spreadsheet"
    )


# ------------------------------------------------------------------ who lost the zeros


def lost(solution: list[str], submission: list[str], at: str = "id") -> str:
    """The side that a check says lost the zeros of ids, or of the items of a single list."""
    if at == "id":
        found = check(frame(dict.fromkeys(solution, "x")), frame(dict.fromkeys(submission, "x")))
    else:
        found = check(frame({"q": " ".join(solution)}), frame({"q": " ".join(submission)}))
    kinds = {one.problem for one in found.problems if one.problem.startswith(f"{at} changed")}
    (kind,) = kinds or {f"{at} changed neither"}
    return kind.removeprefix(f"{at} changed").strip().removeprefix("in ") or "submission"


@pytest.mark.parametrize("at", ["id", "item"])
@pytest.mark.parametrize(
    ("solution", "submission", "side"),
    [
        ("0012 0345", "12 345", "submission"),
        ("12 345", "0012 0345", "solution"),
        ("12 6789", "0012 6789", "solution"),  # no zero to lose
        ("12.0 13.0", "12 13", "solution"),
        ("12.0 13.0", "0012 0013", "solution"),
        ("12 13", "12.0 13.0", "submission"),
        ("12 a7", "0012 a7", "solution"),
        ("0012 13", "12 0013", "submission"),  # both: what it lost comes first
        ("5 12 678", "5 012 678", "submission"),  # it added a zero, as 5 has none
        ("1 2 30", "01 002 30", "submission"),  # it added zeros, in two widths
        ("12 13", "12 13", "neither"),
    ],
)
def test_the_side_that_lost_zeros_is_named(
    solution: str, submission: str, side: str, at: str
) -> None:
    assert lost(solution.split(), submission.split(), at) == side


@given(st.lists(st.integers(0, 9999), min_size=2, max_size=30, unique=True))
def test_a_column_that_became_numbers_is_told_from_either_side(numbers: list[int]) -> None:
    bare, padded = list(map(str, numbers)), [f"{one:04}" for one in numbers]
    differ = any(one < 1000 for one in numbers)
    assert lost(bare, padded) == ("solution" if differ else "neither")
    assert lost(padded, bare) == ("submission" if differ else "neither")


def test_the_host_sees_that_the_solution_lost_zeros() -> None:
    solution = pd.DataFrame({"id": [12, 13], "predictions": ["x", "y"]})
    submission = frame({"0012": "x", "0013": "y"})
    with pytest.raises(InputError, match="the solution, not the submission") as error:
        score(solution, submission, "id")
    assert not isinstance(error.value, ParticipantVisibleError)
    assert "'0012'" in str(error.value)
    # Participants see neither side of items, so the score stands.
    solution = pd.DataFrame({"id": ["a", "b"], "predictions": [7, 8]})
    with pytest.warns(RuntimeWarning, match="solution lost leading zeros .* in items of 2 rows"):
        assert score(solution, frame({"a": "007", "b": "008"}), "id") == 0


def test_a_long_text_is_cut_where_people_read_it() -> None:
    whole = ",".join(f"{number:010}" for number in range(9))
    found = check(frame({"a": "x"}), frame({"a": whole}))
    assert found.problems[0].found == (whole,)
    assert f"{whole[:37]}..." in repr(found)
    assert whole[:38] not in repr(found)


def test_many_problems_are_counted_by_kind() -> None:
    """What rejects the file stands first, however many problems only cost score."""
    ids = [f"{number:04}" for number in range(100)]
    mine = frame(dict.fromkeys(ids[:60], "x x y") | {ids[98]: "a b c"})
    found = check(frame(dict.fromkeys(ids, "x")), mine, metric="map@2")
    headline, _, _, _, *rows = repr(found).splitlines()
    assert headline == "160 problems in 61 rows"
    counts, examples = (part.splitlines() for part in "\n".join(rows).split("\n\n"))
    expected = [
        ("row missing", "39", "rejected"),
        ("repeated prediction", "60", "may cost score"),
        ("too many predictions", "61", "not counted"),
    ]
    assert [tuple(re.split("  +", line)[:3]) for line in counts] == expected
    kinds = [re.split("  +", line)[0] for line in examples[2:-1]]
    assert kinds == [kind for kind, *_ in expected for _ in range(5)]
    assert examples[-1] == "the first 5 of each kind; -o problems.csv has all"
    order = [one.effect for one in found.problems]
    assert order == ["rejected"] * 39 + ["may cost score"] * 60 + ["not counted"] * 61
    assert "the first" not in repr(check(frame({"a": "x"}), frame({"a": "x x"})))


def test_what_stops_a_score_is_rejected_and_stands_before_the_rest() -> None:
    rejected = [Problem(kind).effect == "rejected" for kind in PROBLEMS]
    assert rejected == sorted(rejected, reverse=True)
    assert {kind for kind, no in zip(PROBLEMS, rejected, strict=True) if not no} == {*SCORED}


def test_a_right_submission_has_no_problem() -> None:
    assert not check(frame(TRUTH), frame(RIGHT | {"b": "a b c d e"})).problems
    assert not check(frame({7: "1", 8: "2"}), frame({"8": "2", "7": 1})).problems
    # What an item of the solution has is no separator.
    assert not check(frame({"a": "x,1 y|2"}), frame({"a": "x,2 y|1"})).problems
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
        (
            pd.DataFrame({"id": pd.Series(["\ud800"], dtype=object)}),
            "is not Unicode text|valid Unicode",
        ),
        (
            frame(RIGHT).assign(predictions=[["x"], ["q"], []]),
            "predictions: column 'predictions' holds large_list",
        ),
    ],
)
def test_whatever_is_submitted_the_participant_is_told(submission: Any, told: str) -> None:
    with pytest.raises(ParticipantVisibleError) as error:
        score(frame(TRUTH), submission, "id")
    assert any(one in str(error.value) for one in told.split("|"))
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


@pytest.mark.long
def test_kaggles_own_error_is_raised_where_there_is_one() -> None:
    assert run_python(KAGGLE) == "1 row: row missing: add a row for each id of the solution\n"


# ------------------------------------------------------------------ the command


def test_the_command_tells_all_and_ends_with_1(run: Any, tmp_path: Path) -> None:
    truth, mine = tmp_path / "solution.csv", tmp_path / "mine.csv"
    truth.write_text("id,predictions,Usage\n0012,x y,Public\nb,q,Private\n")
    mine.write_text('id,predictions\n12,"x y"\nb,q\n')
    code, shown, error = run("check", truth, mine, "-m", "map@5", "--format", "json")
    assert (code, error) == (1, "")
    told = json.loads(shown)
    assert told["problems"] == [
        {
            "problem": "id changed",
            "row": 2,
            "id": "12",
            "found": ["12"],
            "expected": ["0012"],
            "total": 1,
            "first": None,
            "effect": "rejected",
            "text": "line 2: id changed: '12'; the solution has '0012': keep ids as text: read "
            "with dtype=str, and don't save it from a spreadsheet",
        }
    ]
    assert (told["rows"], told["unit"], told["cutoff"]) == (2, "line", 5)
    assert run("check", truth, mine, "-m", "map@5", "-o", tmp_path / "found.json") == (1, "", "")
    assert json.loads((tmp_path / "found.json").read_text()) == told
    assert run("check", truth, mine, "-m", "map@5", "-o", tmp_path / "found.csv")[0] == 1
    (row,) = pd.read_csv(tmp_path / "found.csv", dtype=str).to_dict("records")
    assert (row["row"], row["id"], row["expected"]) == ("2", "12", "0012")
    assert row["effect"] == "rejected"
    for output in (truth, mine):
        code, _, error = run("check", truth, mine, "-m", "map@5", "-o", output)
        assert (code, "it is one of the inputs" in error) == (2, True)
    mine.write_text("id,predictions\n0012,x\nb,q\n")
    code, shown, error = run("check", truth, mine, "-m", "map@5")
    how = "for its score as a competition computes it, use --preset NAME\n"
    assert (code, shown, error) == (0, f"0 problems in 2 rows\n{how}", "")
    mine.write_text("id,predictions\n0012,x\n" + "b,q\n" * 60)
    code, shown, error = run("check", truth, mine, "-m", "map@5")
    assert code == 1
    assert "id repeated     59  rejected" in shown
    assert shown.count("id repeated") == 1 + 5
    assert shown.endswith("the first 5 of each kind; -o problems.csv has all\n")
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


@pytest.mark.parametrize(
    ("solution", "submission", "said"),
    [
        (("s.csv", ","), ("u.csv", ";"), (";", ",")),
        (("s.csv", ","), ("u.csv", "\t"), ("\t", ",")),
        (("s.csv", ","), ("u.csv", "|"), ("|", ",")),
        (("s.csv", ","), ("u.tsv", "\t"), ("\t", ",")),
        (("s.csv", ";"), ("u.csv", ","), (",", ";")),
        (("s.csv", ";"), ("u.csv", ";"), None),
        (("s.tsv", "\t"), ("u.csv", "\t"), None),
        (None, ("u.csv", ";"), (";", ",")),
        (None, ("u.tsv", "\t"), None),
    ],
)
def test_another_delimiter_than_that_of_the_solution_is_a_problem(
    solution: tuple[str, str] | None,
    submission: tuple[str, str],
    said: tuple[str, str] | None,
    tmp_path: Path,
) -> None:
    truth: Any = frame(TRUTH)
    if solution is not None:
        truth.to_csv(tmp_path / solution[0], sep=solution[1], index=False)
        truth = tmp_path / solution[0]
    mine = tmp_path / submission[0]
    frame(RIGHT).to_csv(mine, sep=submission[1], index=False)
    found = check(truth, mine).problems
    assert [(one.problem, one.found, one.expected) for one in found] == (
        [("other delimiter", said[:1], said[1:])] if said else []
    )
    if said:  # its reader would find no columns
        with pytest.raises(ParticipantVisibleError, match="other delimiter"):
            score(truth, mine, "id")


def test_a_submission_in_another_format_is_named_with_what_was_expected(tmp_path: Path) -> None:
    table = pd.DataFrame({"id": ["0012"], "predictions": [["x", "y"]]})
    table.to_parquet(tmp_path / "mine.parquet")
    (problem,) = check(frame(TRUTH), tmp_path / "mine.parquet").problems
    assert "mine.parquet: column 'predictions' holds list" in problem.found[0]
    assert problem.found[0].endswith("expected text, with items separated by spaces as in a CSV")


def test_a_preset_scores_as_its_competition_does(tmp_path, run):
    truth, mine = frame({"a": "x y", "b": "z"}), frame({"a": "x q", "b": "q z", "c": "x"})
    assert [one.problem for one in check(truth, mine).problems] == ["id unknown"]
    with pytest.raises(ParticipantVisibleError, match="id unknown"):
        score(truth, mine, "id")
    found = check(truth, mine, semantics="kaggle_hm")
    assert (found.problems, found.metric, found.score) == ((), "map@12", 0.5)
    assert score(truth, mine, "id", semantics="kaggle_hm") == 0.5
    assert check(truth, mine, semantics="ml_metrics").score is None  # rejected
    # What is not checked is said of a rejected one, too.
    for one in (mine, frame({"a": "x q", "c": "x"})):
        assert "does not have do not count here" in repr(check(truth, one, semantics="kaggle_hm"))
    for name, one in {"truth.csv": truth, "mine.csv": mine}.items():
        one.to_csv(tmp_path / name, index=False)
    files = tmp_path / "truth.csv", tmp_path / "mine.csv"
    code, shown, _ = run("check", *files, "--preset", "kaggle_hm")
    assert (code, shown.splitlines()[::2]) == (0, ["0 problems in 3 rows", "map@12 = 0.5"])
    code, _, error = run("check", *files)
    assert (code, "missing -m METRIC" in error, "check" in error) == (2, True, True)
    assert run("check", *files, "--preset", "ml_metrics")[0] == 2  # of any cutoff


def test_transactions_are_a_solution(tmp_path, run):
    """The last week as it is: a row an item, with other columns, in another order."""
    bought = pd.DataFrame(
        {
            "t_dat": "2020-09-16",
            "customer_id": ["a1", "b1", "a1", "a1"],
            "article_id": ["0108", "0109", "0110", "0110"],
            "price": [0.5, 0.25, 0.125, 0.125],
        }
    )
    mine = pd.DataFrame(
        {"customer_id": ["a1", "b1", "c1"], "prediction": ["0108 0107", "0107 0109", "0107"]}
    )
    found = check(bought, mine, semantics="kaggle_hm")
    value = rankmill.evaluate(bought, mine, "map@12", semantics="kaggle_hm")["map@12"]
    assert (found.problems, found.score) == ((), value)
    assert score(bought, mine, "customer_id", semantics="kaggle_hm") == value
    with pytest.raises(
        InputError, match=r"none in 'prediction', but '0108': .*read with dtype=str"
    ):
        rankmill.evaluate(bought.assign(article_id=108), mine, "map@12")
    bought.to_csv(tmp_path / "week.csv", index=False)
    mine.to_csv(tmp_path / "mine.csv")
    files = tmp_path / "week.csv", tmp_path / "mine.csv"
    for options in ((), ("--query", "customer_id", "--item", "article_id")):
        code, shown, _ = run("check", *files, "--preset", "kaggle_hm", *options)
        assert (code, "1 problem in 3 rows" in shown, "column unknown" in shown) == (1, True, True)
    # A solution of a row an id still says how to name the columns.
    (renamed,) = check(frame({"a": "x", "b": "y"}), frame({"a": "x", "b": "y"}, "best")).problems[
        :1
    ]
    assert renamed.problem == "column missing"
    with pytest.raises(InputError, match="name a metric as metric='map@12'"):
        check(frame({"a": "x"}), frame({"a": "x"}), "map@12")


def test_a_sample_gives_no_score_and_swapped_files_a_question():
    mine = frame({"a": "x y", "b": "y z", "c": "x z"})

    def shown(solution, submission):
        return repr(check(solution, submission, "id", "map@2", semantics="kaggle_hm"))

    sample = frame(dict.fromkeys("abc", "x y"))
    assert check(sample, mine, "id", "map@2", semantics="kaggle_hm").score is None
    assert "no score: each row of the solution has the same items" in shown(sample, mine)
    assert "no score" not in repr(check(sample, mine, "id", "map@2"))
    truth = frame({"a": "x", "b": "z x"})
    assert "did you swap" in shown(mine, truth)
    assert "did you swap" not in shown(truth, mine)
    assert "did you swap" not in shown(sample, truth)  # of a sample, rows may be missing
    one = frame(dict.fromkeys("abc", "x"))  # each has one label
    assert check(one, mine, "id", "map@1", semantics="kaggle_hm").score == 2 / 3
    assert "did you swap" not in repr(check(one, mine.iloc[:2], "id", "map@1"))
    for text in ("x", "x y z"):  # of so many rows it is one
        many = frame(dict.fromkeys("abcdefghij", text))
        assert check(many, mine, "id", "map@2", semantics="kaggle_hm").score is None
    for lists in (["x", "x"], ["x y", "y x"], ["x y"]):  # each may be labels
        found = check(frame(dict(zip("ab", lists, strict=False))), mine, semantics="kaggle_hm")
        assert found.score is not None


def test_items_of_another_form_and_a_renamed_column_are_named(tmp_path):
    truth = frame({"a": "0108 0109", "b": "0110"})
    (unlike,) = check(truth, frame({"a": "article0108", "b": "article0111"})).problems
    assert (unlike.problem, unlike.found, unlike.expected) == (
        *("items unlike", ("article0108",)), ("0108",)
    )  # fmt: skip
    assert not check(truth, frame({"a": "0999", "b": "0998"})).problems
    mine = frame({"a": "0108", "b": "0110"}).rename(columns={"predictions": "prediction"})
    (renamed,) = check(truth, mine).problems
    assert (renamed.problem, renamed.found, renamed.expected) == (
        *("column renamed", ("prediction",)), ("predictions",)
    )  # fmt: skip
    mine.to_csv(tmp_path / "wide.csv", index=False, encoding="utf-16")
    (unread,) = check(truth, tmp_path / "wide.csv").problems
    assert unread.found[0].endswith("is text in UTF-16; expected UTF-8: save it as UTF-8")


def test_a_preset_knows_the_columns_that_transactions_do_not_name() -> None:
    bought = pd.DataFrame(
        {"day": [1, 2, 2], "customer_id": ["u", "v", "v"], "article_id": [*"ada"]}
    )
    lists = pd.DataFrame({"customer_id": ["u", "v"], "predictions": ["a b", "b d"]})
    (renamed,) = check(bought, lists, semantics="kaggle_hm", item="article_id").problems
    assert (renamed.problem, renamed.found, renamed.expected) == (
        *("column renamed", ("predictions",)), ("prediction",)
    )  # fmt: skip
    right = lists.rename(columns={"predictions": "prediction"})
    found = check(bought, right, semantics="kaggle_hm", item="article_id")
    assert found.score is not None
    assert "check against the sample submission, too" in found.note
    # A sample has all ids, of which others are unknown.
    sample = right.assign(prediction=" ".join(f"{n:02}" for n in range(12)))
    more = pd.concat([right, right.assign(customer_id=["u", "x"])[1:]])
    problems = check(sample, more, semantics="kaggle_hm").problems
    assert [one.found for one in problems if one.problem == "id unknown"] == [("x",)]
    # Where no preset says so, the last column has the lists.
    assert not check(bought, lists, metric="map@2", item="article_id").problems


def test_transactions_in_the_place_of_a_submission_are_asked_about() -> None:
    lists = pd.DataFrame({"customer": ["u", "v"], "prediction": ["a b c", "b c d"]})
    bought = pd.DataFrame({"day": [1, 2], "customer": ["u", "v"], "article": ["a", "d"]})
    found = check(lists, bought, metric="map@3")
    assert "did you swap both files?" in found.note
    assert "swap" not in check(bought, lists, "customer", metric="map@3", item="article").note
