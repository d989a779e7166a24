"""What stopped first readers of the pages: each message, note or option that gets them on."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rankmill
from strategies import examples

QRELS = "1 0 a 1\n1 0 b 1\n2 0 a 1\n"


def lines(path: Path, text: str) -> str:
    """The path of a file with a text; each line ends at a slash or a line break."""
    path.write_text(text.replace("/", "\n") + "\n")
    return str(path)


# ------------------------------------------------------------------ repeats


@pytest.mark.small
def test_a_repeat_is_named_with_what_to_type(run: Any, tmp_path: Path) -> None:
    qrels = lines(tmp_path / "qrels", QRELS)
    ranked = lines(tmp_path / "bm25.run", "1 Q0 a 1 3 t/1 Q0 c 2 2 t/1 Q0 a 3 1 t/2 Q0 a 1 1 t")
    asked = ["evaluate", qrels, ranked, "-m", "map", "--preset", "trec_eval"]
    code, _, err = run(*asked)
    assert code == 3
    assert "query '1' predicts item 'a' a second time" in err
    typed = "--semantics repeated_predictions=drop"
    assert f"use {typed}, or" in err
    assert run(*asked, *typed.split())[0] == 0
    with pytest.raises(rankmill.InputError, match=r'Semantics\(repeated_predictions="drop"\)'):
        rankmill.evaluate(qrels, ranked, "map", semantics="trec_eval")
    twice = lines(tmp_path / "twice", QRELS + "1 0 a 1")
    code, _, err = run("evaluate", twice, ranked, "-m", "map", "--semantics=repeated_labels=error")
    assert (code, "--semantics repeated_labels=set" in err) == (3, True)


# ------------------------------------------------------------------ ids of two kinds


@pytest.mark.small
@pytest.mark.parametrize("side", ["labels", "predictions"])
def test_dicts_with_integers_on_one_side_are_compared_if_any_text_is_an_integer(side: str) -> None:
    for texts, same in (({"7": [1]}, 1), ({"7": [1], "x": [1]}, 1), ({"007": [1], "8": [1]}, 0)):
        both = {"labels": texts, "predictions": texts, side: {7: [1]}}
        result = rankmill.evaluate(both["labels"], both["predictions"], "map")
        assert result.audit["queries_in_both"] == same
    both = {"labels": {"x": [1]}, "predictions": {"x": [1]}, side: {7: [1]}}
    with pytest.raises(rankmill.InputError) as told:
        rankmill.evaluate(both["labels"], both["predictions"], "map")
    message = f"the dict of {side} holds integers in 'query'"
    assert "the query ids cannot be compared" in str(told.value)
    assert message in str(told.value)


# ------------------------------------------------------------------ explain


@pytest.mark.small
@pytest.mark.parametrize("metric", ["map", "ndcg@2", "gap", "auprc"])
def test_explain_shows_systems_side_by_side_as_each_alone(
    run: Any, runs: list[str], tmp_path: Path, metric: str
) -> None:
    """In each format; a query that a system lacks has a value, and no items."""
    more = ["-m", metric, *(["--query-id", "2"] if metric in ("map", "ndcg@2") else [])]
    both = json.loads(run("explain", *runs, *more, "--format", "json")[1])["systems"]
    alone = {}
    for path in runs[1:]:
        alone[Path(path).name] = json.loads(
            run("explain", runs[0], path, *more, "--format", "json")[1]
        )
    for name, one in alone.items():
        assert both[name].items() <= one.items()
        assert (len(both[name]["rows"]), both[name]["value"]) == (len(one["rows"]), one["value"])
    rows = list(csv.DictReader(run("explain", *runs, *more, "--format", "csv")[1].splitlines()))
    counts = {name: sum(row["system"] == name for row in rows) for name in alone}
    assert counts == {name: len(one["rows"]) for name, one in alone.items()}
    assert run("explain", *runs, *more, "-o", tmp_path / "rows.parquet")[0] == 0
    assert pq.read_table(tmp_path / "rows.parquet")["system"].to_pylist() == [
        row["system"] for row in rows
    ]
    out = run("explain", *runs, *more)[1]
    assert [line.split()[:3] for line in out.splitlines()[-2:]] == [
        ["value", "of", name] for name in alone
    ]


@pytest.mark.small
def test_explain_takes_a_file_with_one_system_or_several(
    run: Any, runs: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "rankmill.toml"
    text = f"labels = {runs[0]!r}\n"
    file.write_text(f"{text}predictions = {runs[1]!r}\nmetrics = 'map'\n")
    alone = run("explain", *runs[:2], "-m", "map", "--query-id", "4")
    assert run("explain", file, "--query-id", "4") == alone
    systems = f"[systems]\nold = {runs[1]!r}\nnew = {runs[2]!r}\n"
    file.write_text(f"{text}metrics = ['map', 'ndcg']\nbaseline = 'new'\n{systems}")
    code, _, err = run("explain", file, "--query-id", "4")
    assert (code, "missing -m METRIC" in err) == (2, True)
    shown = run("explain", file, "--query-id", "4", "-m", "map")
    assert shown == run("explain", *runs, "--query-id", "4", "-m", "map")
    lines_shown = [line.split() for line in shown[1].splitlines()]
    assert lines_shown[2:4] == [["1", "a", "yes", "1.00000", "b", "no", "0.000000"],
                                ["2", "b", "no", "0.00000", "b", "no", "0.000000",
                                 "repeats", "rank", "1"]]  # fmt: skip
    file.write_text(f"{text}metrics = 'map'\ndrop_seen = true\ntrain = {runs[0]!r}\n{systems}")
    code, out, err = run("explain", file, "--query-id", "4")
    assert (code, err, "without items seen in training" in out) == (0, "", True)


# ------------------------------------------------------------------ what compare leaves out


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Labels of 5 queries, and two runs: one lacks 2 of them, and one repeats an item."""
    labels = lines(tmp_path / "qrels", "/".join(f"{q} 0 a 1" for q in range(1, 6)))
    old = [f"{q} Q0 a 1 2 t/{q} Q0 b 2 1 t" for q in (1, 4, 5)]
    new = [f"{q} Q0 b 1 3 t/{q} Q0 {'a' if q < 4 else 'b'} 2 2 t" for q in range(1, 6)]
    return [labels, lines(tmp_path / "old", "/".join(old)), lines(tmp_path / "new", "/".join(new))]


@pytest.mark.small
def test_compare_names_the_queries_left_out_and_the_command_that_lists_them(
    run: Any, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["compare", *runs, "-m", "map", "--semantics", "unpredicted=skip"]
    code, out, _ = run(*asked)
    assert code == 0
    note = "2 queries are left out of the comparison: old lacks 2 (2, 3); to list them"
    (line,) = (one for one in out.splitlines() if one.startswith(note))
    program, *typed = shlex.split(line.rpartition(": ")[2])
    assert program == "rankmill"
    code, out, _ = run(*typed)
    assert (code, "queries.csv has an empty value for each" in out) == (0, True)
    rows = list(csv.DictReader((tmp_path / "queries.csv").read_text().splitlines()))
    assert [row["query_id"] for row in rows if not row["old:map"]] == ["2", "3"]
    found = json.loads(run(*asked, "--format", "json")[1])
    assert found["lacking"] == {"old": {"queries": 2, "first": ["2", "3"]}}
    assert run(*asked, "--report", "page.html")[0] == 0
    assert note.partition(";")[0] in (tmp_path / "page.html").read_text()
    assert "lacks" not in run("compare", *runs, "-m", "map")[1]  # which scores 0 for them


@pytest.mark.small
def test_compare_shows_the_audit_of_each_system(run: Any, runs: list[str], tmp_path: Path) -> None:
    """As evaluate does: the counts of both commands are the same, and so are those of JSON."""
    code, out, _ = run("compare", *runs, "-m", "map")
    assert code == 0
    alone = run("evaluate", *runs, "-m", "map")[1].splitlines()
    for name, counts in (("queries_only_labelled", ["2", "0"]), ("repeated_items", ["0", "2"])):
        (shown,) = (one for one in out.splitlines() if one.startswith(name))
        assert shown.split()[1:3] == counts
        assert shown.split() in [one.split() for one in alone]
    audit = json.loads(run("compare", *runs, "-m", "map", "--format", "json")[1])["audit"]
    assert [one["repeated_items"] for one in audit.values()] == [0, 2]
    assert run("compare", *runs, "-m", "map", "--report", tmp_path / "page.html")[0] == 0
    assert "repeated predictions" in (tmp_path / "page.html").read_text()
    clean = run("compare", runs[0], runs[1], f"{runs[1]},", "-m", "map")
    assert "audit" not in clean[1]


@pytest.mark.small
def test_notes_of_every_system_are_shown_with_its_name(
    run: Any, runs: list[str], tmp_path: Path
) -> None:
    """Of several systems only the notes of the first were shown."""
    other = lines(tmp_path / "other", "99 Q0 a 1 2 t")
    note = "other: no query is in both inputs"
    for command in ("compare", "evaluate"):
        assert note in run(command, *runs[:2], other, "-m", "map")[1]


@pytest.mark.small
def test_losses_alone_and_csv_has_the_queries_that_moved(run: Any, runs: list[str]) -> None:
    asked = ["compare", *runs, "-m", "map", "--moved"]
    rows = list(csv.DictReader(run(*asked, "5", "--format", "csv")[1].splitlines()))
    moved = [row for row in rows if row["query"]]
    content = json.loads(run(*asked, "5", "--format", "json")[1])["moved"]["map"]["new"]
    assert [row["query"] for row in moved] == [one["query"] for one in content]
    for row, one in zip(moved, content, strict=True):
        told = [float(row[name]) for name in ("baseline_value", "value", "difference")]
        assert told == [one[name] for name in ("baseline", "value", "difference")]
    assert {row["query"] for row in moved} == {"1", "2", "3", "4", "5"}
    lost = run(*asked, "-5", "--format", "csv")[1].splitlines()
    assert [row["query"] for row in csv.DictReader(lost) if row["query"]] == ["4", "5", "1"]
    assert "map: the queries where new lost most against old" in run(*asked, "-5")[1]
    plain = run("compare", *runs, "-m", "map", "--format", "csv")[1]
    assert "query," not in plain.splitlines()[0]


# ------------------------------------------------------------------ zeros that ids lost


def zeros_lost(labels: set[str], predicted: set[str]) -> set[str]:
    """Queries without labels that are a query without predictions but for zeros: every pair."""

    def plainly(one: str) -> str:
        return re.sub(r"\.0+$", "", one).lstrip("0")

    meant = {plainly(one) for one in labels - predicted}
    return {one for one in predicted - labels if plainly(one) in meant}


@pytest.mark.small
@settings(max_examples=examples(40))
@given(*[st.sets(st.from_regex(r"\A[0a]{0,2}[17]{1,2}(\.0)?\Z"), min_size=1, max_size=8)] * 2)
@example({"1", "7"}, {"1", "01"})
def test_queries_that_lost_zeros_are_counted_in_any_order(
    labels: set[str], predicted: set[str]
) -> None:
    lost = zeros_lost(labels, predicted)
    for order in (sorted, lambda ids: sorted(ids, reverse=True)):
        sides = [{one: [1] for one in order(ids)} for ids in (labels, predicted)]
        notes = [one for one in rankmill.evaluate(*sides, "map").notes if "zeros in" in one]
        assert len(notes) == bool(lost)
        for note in notes:
            found = re.match(
                r"(\d+) quer.* of zeros .*, such as '(.*?)', which is '(.*?)' in", note
            )
            assert found is not None
            assert (int(found[1]), found[2]) == (len(lost), min(lost))
            assert found[3] in labels - predicted


@pytest.mark.small
def test_compare_says_whose_ids_lost_their_zeros(run: Any, tmp_path: Path) -> None:
    users = [f"{number:03}" for number in range(1, 41)]
    few = [one.lstrip("0") if one in ("007", "012") else one for one in users]
    paths = []
    for name, ids in {"labels": users, "full": users, "few": few}.items():
        rows = "/".join(f"{one},a" for one in ids)
        paths.append(lines(tmp_path / f"{name}.csv", f"user_id,item_id/{rows}"))
    told = (
        "2 queries have no labels because of zeros in the id, such as '12', which is '012' in the "
        "labels: keep ids as text (read with dtype=str, and don't save it from a spreadsheet)"
    )
    assert told in run("evaluate", paths[0], paths[2], "-m", "map")[1].splitlines()
    assert f"few: {told}" in run("compare", *paths, "-m", "map")[1].splitlines()
    assert "zeros in" not in run("evaluate", *paths[:2], "-m", "map")[1]
    # A query without labels may be among the labels.
    empty = {"01": [], "2": [1], "3": [1]}
    assert rankmill.evaluate(empty, {"01": [1], "2": [1]}, "map").notes == []
