"""Files of the kinds that trec_eval's own tests have: they read and agree, or the line is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytrec_eval
from conftest import tells

import rankmill
from closeness import CLOSE
from rankmill import InputError

QRELS = {"1": {"a": 1, "b": 0, "c": 2, "d": 1}, "2": {"b": 1, "e": 1, "n": -1}, "9": {"f": 1}}
SCORES = {
    "1": {"b": 4.0, "a": 3.5, "x": 3.25, "c": 3.0},
    "2": {"y": 2.0, "n": 1.5, "e": 1.0, "b": 0.5},
    "9": {"f": 1.0},
}
MEASURES = {
    **{"map": "map", "mrr": "recip_rank", "P_5": "P_5", "recall_5": "recall_5", "ndcg": "ndcg"},
    **{"ndcg@5": "ndcg_cut_5", "bpref": "bpref", "Rprec": "Rprec", "num_ret": "num_ret"},
    **{"success_1": "success_1", "iprec@0.5": "iprec_at_recall_0.50", "infap": "infAP"},
}


def qrels_text(qrels: dict[str, dict[str, int]] = QRELS) -> str:
    return "".join(
        f"{query} 0 {item} {gain}\n" for query, of in qrels.items() for item, gain in of.items()
    )


def run_text(run: dict[str, dict[str, Any]] = SCORES) -> str:
    """The ranks contradict the scores: trec_eval does not look at them."""
    return "".join(
        f"{query} Q0 {item} {9 - rank} {score} tag\n"
        for query, of in run.items()
        for rank, (item, score) in enumerate(of.items())
    )


def written(folder: Path, *files: str | bytes) -> list[str]:
    paths = [folder / name for name in ("a.qrels", "a.run")]
    for path, content in zip(paths, files, strict=True):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [str(path) for path in paths]


def agrees(paths: list[str], run: dict[str, dict[str, float]]) -> rankmill.Result:
    asked = pytrec_eval.RelevanceEvaluator(QRELS, set(MEASURES.values()))
    expected = asked.evaluate(run)
    found = rankmill.evaluate(*paths, list(MEASURES), semantics="trec_eval")
    assert found.per_query is not None
    assert sorted(found.per_query["query_id"].to_pylist()) == sorted(expected)
    for name, there in MEASURES.items():
        values = [expected[query][there] for query in found.per_query["query_id"].to_pylist()]
        column = found.per_query[found.aliases.get(name, name)].to_pylist()
        assert column == pytest.approx(values, **CLOSE), name
    return found


def shuffled(text: str) -> str:
    """Rows of a query stand apart."""
    rows = text.splitlines(keepends=True)
    return "".join(rows[::2] + rows[1::2])


# What is done to both texts; they say the same.
ALIKE: dict[str, Any] = {
    "as it is": lambda text: text,
    "tabs": lambda text: text.replace(" ", "\t"),
    "tabs and blanks": lambda text: text.replace(" ", " \t  "),
    "spaces around": lambda text: "".join(f"  {line} \n" for line in text.splitlines()),
    "CR LF": lambda text: text.replace("\n", "\r\n"),
    "CR CR LF": lambda text: text.replace("\n", "\r\r\n"),
    "no last line break": lambda text: text[:-1],
    "empty lines": lambda text: "\n" + text.replace("\n", "\n\n \n"),
    "comments": lambda text: "# a comment of four\n" + text.replace("\n", "\n#x\n", 3) + "# end",
    "rows apart": shuffled,
    "byte order mark": lambda text: "\ufeff" + text,
}


@pytest.mark.parametrize("kind", ALIKE)
def test_files_that_say_the_same(tmp_path: Path, kind: str) -> None:
    change = ALIKE[kind]
    agrees(written(tmp_path, change(qrels_text()), change(run_text())), SCORES)


@pytest.mark.small
@pytest.mark.parametrize("behind", [" more", "\tand 3 more # fields", " 1 2 3 4 5 6 7 8 9"])
def test_fields_behind_the_tag_in_some_lines(tmp_path: Path, behind: str) -> None:
    rows = run_text().splitlines()
    rows[::2] = [row + behind for row in rows[::2]]
    agrees(written(tmp_path, qrels_text(), "\n".join(rows)), SCORES)


# How scores are written; none are equal in float32.
WRITTEN = {
    "negative": ["-0.5", "-1", "-1.5", "-2e2"],
    "exponents": ["1.5E+2", "1e1", "2.5e-3", "1E-30"],
    "huge": ["3e38", "1e38", "1", "-3e38"],
    "beyond float32": ["1e39", "3e38", "0", "-1e39"],
    "whole, and signed": ["+3", "2", "+1.", ".5"],
    "many digits": ["0.10000000000000000555", "0.099999", "0000.05", "-0"],
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_scores_in_every_form(tmp_path: Path, kind: str) -> None:
    items = ["b", "a", "x", "c"]
    for order in (items, items[::-1], ["c", "b", "a", "x"]):
        texts = {"1": dict(zip(order, WRITTEN[kind], strict=True)), "9": {"f": "1"}}
        run = {query: {item: float(one) for item, one in of.items()} for query, of in texts.items()}
        agrees(written(tmp_path, qrels_text(), run_text(texts)), run)


@pytest.mark.small
def test_runs_without_some_queries_or_the_ends_of_lists(tmp_path: Path) -> None:
    """Queries that the run does not have are left out, as without -c; by hand with it."""
    cut = {"1": dict(list(SCORES["1"].items())[:2])}
    paths = written(tmp_path, qrels_text(), run_text(cut))
    found = agrees(paths, cut)
    assert (found.queries, found["map"]) == (1, 0.5 / 3)
    complete = {"preset": "trec_eval", "unpredicted": "zero"}
    found = rankmill.evaluate(*paths, "map", semantics=complete)
    assert (found.queries, found["map"]) == (3, pytest.approx(0.5 / 9, **CLOSE))


@pytest.mark.small
@pytest.mark.parametrize("cut", [2, 4, 8, 11])
def test_a_run_that_ends_within_a_line_is_refused(tmp_path: Path, cut: int) -> None:
    rows = run_text().splitlines()
    text = "\n".join([*rows[:-1], rows[-1][:cut]])
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(*written(tmp_path, qrels_text(), text), "map", semantics="trec_eval")
    tells(caught.value, [f"a.run: line {len(rows)}"])


REFUSED = {
    "a document twice in a run": (
        qrels_text(),
        run_text() + "1 Q0 b 5 0.1 tag\n",
        ["a.run", "query '1'|query 1", "'b'", "second time"],
    ),
    "a document twice in the qrels": (
        qrels_text() + "1 0 a 1\n",
        run_text(),
        ["a.qrels", "'1'", "'a'", "second time|twice|2 times"],
    ),
    "a score that is none": (
        qrels_text(),
        run_text().replace("3.25", "high"),
        ["a.run (line 3", "'high'"],
    ),
    "a gain that is none": (qrels_text() + "9 0 z x\n", run_text(), ["a.qrels (line 9", "'x'"]),
    "a field too few": (qrels_text() + "9 0 z\n", run_text(), ["a.qrels: line 9", "3 columns"]),
    "a field too many": (
        qrels_text() + "9 0 z 1 2\n",
        run_text(),
        ["a.qrels: line 9", "5 columns"],
    ),
    "a score of nan": (qrels_text(), run_text().replace("3.25", "nan"), ["a.run: line 3", "nan"]),
}


@pytest.mark.small
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_names_the_place(tmp_path: Path, kind: str) -> None:
    *files, wanted = REFUSED[kind]
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(*written(tmp_path, *files), "map", semantics="trec_eval")
    tells(caught.value, wanted)
